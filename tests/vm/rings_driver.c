// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: vm/qemu_disk_model/rings.c with a ring like the one of QEMU's main loop, where what
 * waits for an event stands beside reads of a file (the argument; at 0, 4096, 8192 …, of which those
 * at odd places are taken out). Prints what it took, what is done then, how many wait in the ring.
 * The second argument: the ring's flags.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rings.h"

#define READS 6

static bool take_odd(const struct io_uring_sqe *request)
{
	if (request->off / 4096 % 2 == 0)
		return false;
	printf("%llu ", (unsigned long long)request->off);
	return true;
}

int main(int argc, char **argv)
{
	static char buffer[READS][4096];
	struct io_uring_cqe *result;
	struct io_uring ring;
	unsigned int head;
	int never = eventfd(0, 0), file = argc == 3 ? open(argv[1], O_RDONLY) : -1;

	alarm(20);
	if (file < 0 || io_uring_queue_init(16, &ring, atoi(argv[2])))
		return 2;
	for (int i = 0; i < READS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_poll_add(sqe, never, POLLIN);
		io_uring_sqe_set_data64(sqe, 0);
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_read(sqe, file, buffer[i], sizeof(buffer[i]), 4096 * i);
		io_uring_sqe_set_data64(sqe, 1 + 4096 * i);
	}
	printf("%d: ", has_file_requests(&ring));
	printf("%d: ", take_out(&ring, take_odd));
	submit_and_finish(&ring);
	io_uring_for_each_cqe(&ring, head, result)
		printf("%llu=%d ", (unsigned long long)result->user_data - 1, result->res);
	printf(": %u %d\n", io_uring_sq_ready(&ring), has_file_requests(&ring));
	return 0;
}
