// SPDX-License-Identifier: GPL-2.0-or-later
/* Room for what comes under load. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "evidence.h"

void *room_memory(size_t size)
{
	void *memory = malloc(size + 1);

	if (!memory)
		fail("no memory for %zu bytes", size);
	explicit_bzero(memory, size + 1); /* calloc() would leave it to the first use */
	return memory;
}

/*
 * The table of open files doubles when it is full, and never shrinks: under load the kernel would
 * look for pages that lie side by side.
 */
void room_files(int most)
{
	rlim_t wanted = (rlim_t)most;
	struct rlimit limit;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur < wanted) {
		struct rlimit raised = { wanted, limit.rlim_max };

		if (raised.rlim_max < wanted)
			raised.rlim_max = wanted;
		if (setrlimit(RLIMIT_NOFILE, &raised)) {
			/* Not permitted: what finds no room is not looked at. */
			limit.rlim_cur = limit.rlim_max;
			setrlimit(RLIMIT_NOFILE, &limit);
			most = (int)limit.rlim_max;
		}
	}
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, most - 1);
	if (fd >= 0)
		close(fd);
}
