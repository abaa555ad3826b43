// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU gives its TLB another size when it flushes it, by how many entries were used within 100 ms of
 * the host (tlb_mmu_resize_locked in accel/tcg/cputlb.c). The guest can see the size: a larger TLB is
 * refilled less often, and each refill sets the accessed bit of a page, which the guest's reclaim
 * reads and clears. So on a guest's own clock the CPU's thread gets a time that its flushes count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>

#include "main_loop.h"
#include "qemu.h"

#define BEGIN_S 4000000000LL /* later than any time of the host that QEMU has read before */
#define FLUSH_US 100         /* a thousand flushes are one of QEMU's windows of 100 ms */

IN_PLACE int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	static int (*of_the_host)(struct timeval *, void *);
	static long long us; /* only of the CPU's thread */

	if (is_cpu_thread) {
		us += FLUSH_US;
		now->tv_sec = BEGIN_S + us / 1000000;
		now->tv_usec = us % 1000000;
		return 0;
	}
	if (!of_the_host)
		of_the_host = dlsym(RTLD_NEXT, "gettimeofday");
	return of_the_host(now, zone);
}
