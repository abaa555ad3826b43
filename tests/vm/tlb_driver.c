// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: gettimeofday() of vm/qemu_disk_model/tlb.c. Prints microseconds: of the host twice, then
 * as the CPU's thread three times.
 */
#include <stdio.h>
#include <sys/time.h>

#include "main_loop.h"

__thread bool is_cpu_thread;

int main(void)
{
	struct timeval now;

	for (int i = 0; i < 5; i++) {
		is_cpu_thread = i >= 2;
		gettimeofday(&now, NULL);
		printf("%lld ", now.tv_sec * 1000000LL + now.tv_usec);
	}
	return 0;
}
