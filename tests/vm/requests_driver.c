// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: vm/qemu_disk_model/{requests,rings,disk}.c in a QEMU whose guest has nothing to do: as in
 * QEMU with an instruction counter as clock, setting a timer makes the clock leap to it, unless the
 * guest has an interrupt to handle. The arguments: a file, the words of its disk without its numbers,
 * and the places of reads of 4096 bytes that come at 0. Prints for each when QEMU handles its end,
 * in ns. The guest has handled an interrupt as soon as the timer's function returns.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "qemu.h"
#include "rings.h"

static struct io_uring ring;
static int64_t clock_ns, deadline = -1;
static bool interrupted;
static callback *timer_function;

int64_t qemu_clock_get_ns(int clock)
{
	return clock_ns;
}

void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, callback *call,
		     void *opaque)
{
	timer_function = call;
}

void timer_mod_ns(void *timer, int64_t at)
{
	deadline = at;
	if (!interrupted && clock_ns < at)
		clock_ns = at;
}

bool runstate_is_running(void)
{
	return true;
}

void *qemu_add_vm_change_state_handler(void (*call)(void *opaque, bool running, int state),
				       void *opaque)
{
	return NULL;
}

void *qemu_get_aio_context(void)
{
	return NULL;
}

void qemu_notify_event(void)
{
}

void aio_bh_schedule_oneshot_full(void *context, callback *call, void *opaque, const char *name)
{
}

bool aio_poll(void *context, bool blocking)
{
	struct io_uring_cqe *result;

	while (!io_uring_peek_cqe(&ring, &result)) {
		printf("%llu %lld %d\n", (unsigned long long)result->user_data, (long long)clock_ns,
		       result->res);
		io_uring_cqe_seen(&ring, result);
		interrupted = true;
	}
	return true;
}

int main(int argc, char **argv)
{
	static char buffer[4096];
	struct stat status;
	char words[200];
	int file = argc > 3 ? open(argv[1], O_RDONLY) : -1;

	alarm(20);
	if (file < 0 || fstat(file, &status) || io_uring_queue_init(64, &ring, 0))
		return 2;
	snprintf(words, sizeof(words), "%lu %lu %s", status.st_dev, status.st_ino, argv[2]);
	if (!read_disk(words))
		return 3;
	for (int i = 3; i < argc; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_read(sqe, file, buffer, sizeof(buffer), strtoull(argv[i], NULL, 10));
		io_uring_sqe_set_data64(sqe, i - 3);
	}
	io_uring_submit(&ring);
	while (deadline >= 0) {
		if (clock_ns < deadline)
			clock_ns = deadline;
		deadline = -1;
		timer_function(NULL);
		interrupted = false;
	}
	return 0;
}
