// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: a disk of vm/qemu_disk_model/disk.c, told what to do. The argument: its words, as in
 * DISK_MODEL. Of each line of stdin:
 *     put NOW PLACE BYTES     a request comes
 *     next                    the place and the end of the request that is done first; `idle`
 *     old                     how many were taken for their age
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"

static void finish_first(struct disk *disk)
{
	struct request *first = disk->served;

	if (!disk->n_served) {
		puts("idle");
		return;
	}
	for (int i = 1; i < disk->n_served; i++)
		if (disk->served[i].done < first->done)
			first = &disk->served[i];
	printf("%lld %lld\n", (long long)first->sqe.off, (long long)first->done);
	struct request done = *first;
	*first = disk->served[--disk->n_served];
	dispatch_on(disk, done.done);
}

int main(int argc, char **argv)
{
	long long now, place, bytes;
	char line[256];

	if (argc != 2 || !read_disk(argv[1]))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "put %lld %lld %lld", &now, &place, &bytes) == 3) {
			struct io_uring_sqe request = {
				.opcode = IORING_OP_READ, .off = place, .len = bytes};

			add_waiting(disks, &request, now);
			dispatch_on(disks, now);
		} else if (!strcmp(line, "next\n")) {
			finish_first(disks);
		} else {
			printf("%ld\n", disks->n_old);
		}
		fflush(stdout);
	}
	return 0;
}
