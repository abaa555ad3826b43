// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: vm/qemu_disk_model/rings.c with reads that the host would end in another order: the
 * first and the third are of a pipe into which a thread writes later, the others of a file (the
 * argument). Prints the reads' numbers as they are done.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "rings.h"

#define READS 4

static int ends[2]; /* of the pipe */

static void *write_later(void *unused)
{
	for (int i = 0; i < READS / 2; i++) {
		usleep(200000);
		if (write(ends[1], "x", 1) != 1)
			_exit(2);
	}
	return unused;
}

int main(int argc, char **argv)
{
	static char buffer[READS];
	struct io_uring_cqe *result;
	struct io_uring ring;
	unsigned int head;
	pthread_t writer;
	int file = argc == 2 ? open(argv[1], O_RDONLY) : -1;

	alarm(20);
	if (file < 0 || pipe(ends) || io_uring_queue_init(16, &ring, 0) ||
	    pthread_create(&writer, NULL, write_later, NULL))
		return 2;
	for (int i = 0; i < READS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_read(sqe, i % 2 ? file : ends[0], &buffer[i], 1, i % 2 ? i : -1);
		io_uring_sqe_set_data64(sqe, i + 1);
	}
	submit_and_finish(&ring);
	io_uring_for_each_cqe(&ring, head, result)
		printf("%llu=%d ", (unsigned long long)result->user_data, result->res);
	return 0;
}
