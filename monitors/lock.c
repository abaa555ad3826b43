// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

/* Touched before it is locked: a later page fault would wait in direct reclaim behind everybody. */
#define RESERVE_BYTES (64 << 10)
#define STACK_BYTES (32 << 10)

static struct {
	double cpu, elapsed;
	long major;
} began;

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / NS;
}

static long major_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_majflt;
}

static __attribute__((noinline)) void touch_stack(void)
{
	char stack[STACK_BYTES];

	explicit_bzero(stack, sizeof(stack));
}

/* One arena that is never trimmed, with some of it in hand; the rest of it is given back first. */
static void touch_heap(void)
{
	void *block;

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 25);
	malloc_trim(0);
	block = malloc(RESERVE_BYTES);
	if (block)
		explicit_bzero(block, RESERVE_BYTES);
	free(block);
}

/*
 * Locks a mapping that is code, or a file's: what was not touched yet would be read from a disk
 * that is busy. The kernel's own pages cannot be locked.
 */
static int lock_mapping(const char *line)
{
	unsigned long start, end;
	char flags[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &start, &end, flags, &path) < 3 || !path)
		return 0;
	if (!strncmp(line + path, "[vdso]", 6) || !strncmp(line + path, "[vsyscall]", 10))
		return 0;
	if (flags[2] != 'x' && (flags[0] != 'r' || line[path] != '/'))
		return 0;
	return mlock((void *)start, end - start);
}

static const char *lock_memory(struct list *problems)
{
	const char *how = "onfault";
	char line[512];
	FILE *maps;

	touch_heap();
	touch_stack();
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) {
		how = "all";
		if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
			list_add(problems, "mlockall: %s", strerror(errno));
			return "";
		}
	}
	maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (lock_mapping(line)) {
			list_add(problems, "mlock: %s", strerror(errno));
			break;
		}
	}
	if (maps)
		fclose(maps);
	return how;
}

static bool spare_from_oom(struct list *problems)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "-1000", 5) == 5;

	if (!done)
		list_add(problems, "oom_score_adj: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return done;
}

bool raise_thread(int priority, struct list *problems)
{
	struct sched_param param = { .sched_priority = priority };

	if (!sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		return true;
	if (problems)
		list_add(problems, "SCHED_FIFO %d: %s", priority, strerror(errno));
	return false;
}

struct locked become_observer(int priority, struct list *problems)
{
	struct locked done;

	done.locked = lock_memory(problems);
	done.oom_score_adj = spare_from_oom(problems);
	done.fifo = raise_thread(priority, problems) ? priority : 0;
	cost_begin();
	return done;
}

void locked_facts(struct text *out, const struct locked *done)
{
	text_format(out, "\"locked\": \"%s\", ", done->locked);
	if (done->oom_score_adj)
		text_string(out, "\"oom_score_adj\": -1000, ");
	text_format(out, "\"fifo\": %d", done->fifo);
}

void cost_begin(void)
{
	began.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	began.elapsed = seconds(CLOCK_MONOTONIC);
	began.major = major_faults();
}

/* `NAME: N kB` of a file of /proc, or null. */
static void field(struct text *out, const char *path, const char *name)
{
	char data[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, data, sizeof(data) - 1);
	char *found;

	if (fd >= 0)
		close(fd);
	data[size > 0 ? size : 0] = '\0';
	found = strstr(data, name);
	if (found)
		text_number(out, strtol(found + strlen(name), NULL, 10));
	else
		text_string(out, "null");
}

void cost(struct text *out)
{
	text_format(out, "\"cpu_s\": %.4f, \"elapsed_s\": %.3f, \"locked_kib\": ",
		    seconds(CLOCK_PROCESS_CPUTIME_ID) - began.cpu,
		    seconds(CLOCK_MONOTONIC) - began.elapsed);
	/* 4.14; shared pages count by their share */
	field(out, "/proc/self/smaps_rollup", "\nLocked:");
	text_string(out, ", \"vmlck_kib\": ");
	/* the whole of every locked mapping, present or not */
	field(out, "/proc/self/status", "\nVmLck:");
	text_format(out, ", \"major_faults\": %ld", major_faults() - began.major);
}
