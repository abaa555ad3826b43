// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: do_the_rest() of vm/qemu_disk_model/rings.c on the file that is the first argument.
 * Further arguments: r or w, 1 or 2 (parts of a vector; 0: no vector), the request's offset and
 * bytes, the kernel's result. Prints the corrected result, and the bytes that are then in the
 * buffer as letters ('.': not read).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rings.h"

#define MOST 64

int main(int argc, char **argv)
{
	static char buffer[MOST + 1];
	struct io_uring_sqe request = {0};
	struct io_uring_cqe result = {0};
	int file = argc == 7 ? open(argv[1], O_RDWR) : -1, parts, bytes;
	struct iovec vector[2];
	bool reads;

	alarm(20);
	if (file < 0 || (bytes = atoi(argv[5])) > MOST)
		return 2;
	reads = argv[2][0] == 'r';
	parts = atoi(argv[3]);
	memset(buffer, reads ? '.' : 'W', bytes);
	vector[0] = (struct iovec){buffer, parts == 2 ? bytes / 2 : bytes};
	vector[1] = (struct iovec){buffer + bytes / 2, bytes - bytes / 2};
	request.opcode = parts ? reads ? IORING_OP_READV : IORING_OP_WRITEV :
			 reads ? IORING_OP_READ : IORING_OP_WRITE;
	request.fd = file;
	request.off = atoi(argv[4]);
	request.addr = (uintptr_t)(parts ? (void *)vector : buffer);
	request.len = parts ? parts : bytes;
	result.res = atoi(argv[6]);
	do_the_rest(&request, &result);
	printf("%d %s\n", result.res, buffer);
	return 0;
}
