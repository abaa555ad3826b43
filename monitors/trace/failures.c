/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of allocfail.tsv and reclaim.tsv, out of the maps of the programs. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define MANY 64 /* rows that wait are taken at the next tick */
#define ENOTSUPP 524 /* the kernel's own, which no header of the C library has */
#define MOST_RECLAIMERS 512

struct row {
	uint32_t pid;
	struct reclaimer task;
};

static int failures = -1, reclaimers = -1;
static volatile long long *sums;
static long long rows_taken;
static struct list *problems;
static bool told; /* that something went wrong */

void failures_open(int failures_map, int reclaimers_map, volatile long long *sums_of,
		   struct list *to)
{
	failures = failures_map;
	sums = sums_of;
	reclaimers = reclaimers_map;
	problems = to;
}

/*
 * Takes out one entry; 0, or -errno. In one step since 5.14 (kernel commit 3e87f192b405); before,
 * what a program adds to the entry between its reading and its removal is lost.
 */
static int remove_entry(const struct failure_key *key, struct failure *failure)
{
	static bool in_steps;

	if (!in_steps) {
		if (!bpf_map_lookup_and_delete_elem(failures, key, failure))
			return 0;
		if (errno != EINVAL && errno != ENOTSUPP)
			return -errno;
		in_steps = true;
	}
	if (bpf_map_lookup_elem(failures, key, failure) || bpf_map_delete_elem(failures, key))
		return -errno;
	return 0;
}

static int take_first(struct failure_key *key, struct failure *failure)
{
	int error;

	if (bpf_map_get_next_key(failures, NULL, key))
		return -errno;
	error = remove_entry(key, failure);
	if (!error)
		rows_taken++;
	return error;
}

static void add_comm(struct text *to, const char *comm)
{
	text_escape(to, comm, strnlen(comm, COMM));
}

static void add_failure(struct text *to, const struct failure_key *key,
			const struct failure *failure, int64_t t0)
{
	text_seconds(to, (int64_t)failure->first - t0);
	text_format(to, "\t%llu\t%u\t", failure->count, key->pid);
	add_comm(to, failure->comm);
	text_format(to, "\t%u\t0x%x\t", key->order, key->gfp);
	for (int i = 0, some = 0; i < FRAMES; i++) {
		if (!failure->stack[i])
			continue;
		if (some++)
			text_string(to, " <- ");
		symbols_name(to, KERNEL_CODE | failure->stack[i]);
	}
	text_char(to, '\n');
}

bool trace_many_failures(void)
{
	return failures >= 0 && sums[SUM_FAILURE_ROWS] - rows_taken >= MANY;
}

bool trace_failures(struct text *to, int64_t t0)
{
	struct failure_key key;
	struct failure failure;

	for (int i = 0; failures >= 0 && i < FAILURES_AT_ONCE; i++) {
		int error = take_first(&key, &failure);

		if (error == -ENOENT)
			return true;
		if (error) {
			/* Once: the next look may have more luck. */
			if (!told)
				list_add(problems, "failed allocations: %s", strerror(-error));
			told = true;
			return true;
		}
		add_failure(to, &key, &failure, t0);
	}
	return failures < 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

void trace_reclaimers(struct text *to)
{
	struct row *rows = calloc(MOST_RECLAIMERS, sizeof(*rows));
	uint32_t *last = NULL;
	int count = 0;

	for (; rows && reclaimers >= 0 && count < MOST_RECLAIMERS; count++) {
		struct row *row = &rows[count];

		if (bpf_map_get_next_key(reclaimers, last, &row->pid))
			break;
		last = &row->pid;
		if (bpf_map_lookup_elem(reclaimers, last, &row->task))
			row->task.count = 0;
	}
	if (count)
		qsort(rows, count, sizeof(*rows), by_pid);
	for (int i = 0; i < count; i++) {
		const struct reclaimer *task = &rows[i].task;

		if (!task->count || (i && rows[i].pid == rows[i - 1].pid))
			continue;
		text_format(to, "%u\t", rows[i].pid);
		add_comm(to, task->comm);
		text_format(to, "\t%llu\t%llu\t%llu\n", task->count, task->ns / 1000, task->pages);
	}
	free(rows);
}

void trace_forget(void)
{
	struct failure_key key;
	struct failure failure;
	uint32_t pid;

	while (failures >= 0 && !take_first(&key, &failure))
		;
	while (reclaimers >= 0 && !bpf_map_get_next_key(reclaimers, NULL, &pid))
		if (bpf_map_delete_elem(reclaimers, &pid))
			break;
}
