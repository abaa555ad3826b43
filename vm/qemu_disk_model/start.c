// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes disks whose requests take the time that a model gives, on the guest's clock.
 *
 * This library is preloaded into QEMU. It reads from the environment: DISK_MODEL, with DEVICE INODE
 * ROTATES PARALLEL DEPTH ACCESS_NS BYTES_PER_S of each modelled disk, joined by ';' (disk.c
 * explains them, requests.c how QEMU waits); DISK_MODEL_OWN_CLOCK, set if the guest's clock counts
 * instructions (main_loop.c); DISK_MODEL_SAY, set for a line on stderr at the start, and the counts
 * at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "main_loop.h"
#include "qemu.h"
#include "requests.h"

__attribute__((constructor)) static void read_model(void)
{
	const char *text = getenv("DISK_MODEL");

	/* The program that starts QEMU has this library preloaded, too. */
	if (strncmp(program_invocation_short_name, "qemu", 4))
		return;
	own_clock = getenv("DISK_MODEL_OWN_CLOCK") && runstate_is_running;
	if (!text)
		return;
	if (!timer_init_full || !timer_mod_ns || !qemu_clock_get_ns || !runstate_is_running ||
	    !qemu_add_vm_change_state_handler || !qemu_get_aio_context || !aio_poll ||
	    !aio_bh_schedule_oneshot_full) {
		fprintf(stderr, "disk model: this QEMU exports no timers\n");
		exit(1);
	}
	for (const char *disk = text; disk; disk = strchr(disk, ';') ? strchr(disk, ';') + 1 : NULL)
		if (!read_disk(disk)) {
			fprintf(stderr, "disk model: cannot read DISK_MODEL=%s\n", text);
			exit(1);
		}
	if (getenv("DISK_MODEL_SAY"))
		fprintf(stderr, "disk model: on\n");
	atexit(print_counts);
}
