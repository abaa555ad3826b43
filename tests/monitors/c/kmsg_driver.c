// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: what kmsg.c makes of made-up records. stdin: an int32 and that many bytes, which are
 * one record; a negative int32: that read fails with this errno. Each EAGAIN ends a reading of the
 * ring; of it stdout gets a line `BYTES SLICES RECORDS MISSED` and the bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "sampler/sampler.h"

#define SLICE 64

ssize_t __wrap_read(int fd, void *buffer, size_t size);

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	int32_t told;

	(void)fd;
	if (fread(&told, sizeof(told), 1, stdin) != 1)
		exit(0);
	if (told < 0) {
		errno = -told;
		return -1;
	}
	if ((size_t)told > size || fread(buffer, 1, (size_t)told, stdin) != (size_t)told)
		abort();
	return told;
}

int main(void)
{
	struct text lines = { 0 }, all = { 0 };
	size_t room;

	kmsg_rehearse(&lines);
	room = lines.room;
	text_reserve(&all, 1);
	for (;;) {
		struct kmsg kmsg = { .fd = 0 };
		int slices = 0;
		bool empty;

		text_clear(&all);
		do {
			text_clear(&lines); /* as the sampler does */
			empty = kmsg_read(&kmsg, &lines, SLICE);
			text_add(&all, lines.data, lines.used);
			slices++;
		} while (!empty);
		if (lines.room != room) /* memory that was not rehearsed */
			abort();
		printf("%zu %d %lld %lld\n", all.used, slices, (long long)kmsg.records,
		       (long long)kmsg.missed);
		fwrite(all.data, 1, all.used, stdout);
		fflush(stdout);
	}
}
