// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: outlet.c, told what to do. Orders on stdin, each answered by a line on stdout:
 *     add FD NAME               a file: its number
 *     open LANE FOLDER NAME     a file of a result, of which this process writes that lane
 *     start                     the thread, as an ordinary one
 *     put FILE SIZE LIMIT       and SIZE bytes: whether they fitted
 *     flood COUNT WIDTH LIMIT   so many numbered lines, of this width, to each file in turn: how
 *                               many fitted
 *     waiting, failing          as they are
 *     faults                    page faults of this thread so far
 *     posts                     how often a semaphore was posted: the thread was woken, or ended
 *     finish SECONDS            how many bytes were left over
 *     facts                     JSON
 *     fail                      fail(): no answer
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "lane.h"

static atomic_long posts;

int __real_sem_post(sem_t *semaphore);
int __wrap_sem_post(sem_t *semaphore);

int __wrap_sem_post(sem_t *semaphore)
{
	posts++;
	return __real_sem_post(semaphore);
}

static long word(void)
{
	double value;

	if (scanf("%lf", &value) != 1)
		abort();
	return (long)value;
}

static double seconds(void)
{
	double value;

	if (scanf("%lf", &value) != 1)
		abort();
	return value;
}

static int files;

static int add(void)
{
	int fd = (int)word();
	char name[32];

	if (scanf("%31s", name) != 1)
		abort();
	files++;
	return outlet_add(fd, name);
}

static int open_in_lane(void)
{
	char folder[512], name[128];

	if (scanf("%d %511s %127s", &lane_number, folder, name) != 3)
		abort();
	files++;
	return outlet_open(folder, name);
}

static bool put(void)
{
	int file = (int)word();
	size_t size = (size_t)word(), limit = (size_t)word();
	char *data = malloc(size + 1);
	bool fitted;

	getchar(); /* the order's newline */
	if (!data || fread(data, 1, size, stdin) != size)
		abort();
	fitted = outlet_put(file, data, size, limit);
	free(data);
	return fitted;
}

static long flood(void)
{
	long count = word(), fitted = 0;
	int width = (int)word();
	size_t limit = (size_t)word();
	struct timespec pause = { .tv_nsec = 200000 };
	struct text line = { 0 };

	for (long n = 0; n < count; n++) {
		text_clear(&line);
		text_format(&line, "%0*ld\n", width, n);
		if (outlet_put((int)(n % files), line.data, line.used, limit))
			fitted++;
		else if (n % 7 == 0)
			nanosleep(&pause, NULL);
	}
	free(line.data);
	return fitted;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static long obey(const char *order)
{
	if (!strcmp(order, "add"))
		return add();
	if (!strcmp(order, "open"))
		return open_in_lane();
	if (!strcmp(order, "start")) {
		outlet_start(0);
		return 1;
	}
	if (!strcmp(order, "put"))
		return put();
	if (!strcmp(order, "flood"))
		return flood();
	if (!strcmp(order, "waiting"))
		return (long)outlet_waiting();
	if (!strcmp(order, "failing"))
		return outlet_failing();
	if (!strcmp(order, "faults"))
		return faults();
	if (!strcmp(order, "posts"))
		return posts;
	if (!strcmp(order, "fail"))
		fail("told to");
	if (!strcmp(order, "finish"))
		return (long)outlet_finish((int64_t)(seconds() * NS));
	abort();
}

int main(void)
{
	struct text facts = { 0 };
	char order[16];

	channel_open(); /* for SIGPIPE */
	while (scanf("%15s", order) == 1) {
		if (strcmp(order, "facts")) {
			printf("%ld\n", obey(order));
			fflush(stdout);
			continue;
		}
		text_char(&facts, '{');
		outlet_facts(&facts);
		text_char(&facts, '}');
		say(&facts);
	}
	_Exit(0); /* the thread may hang */
}
