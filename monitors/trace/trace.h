/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reclaim, throttling, compaction, block IO and failed allocations, as the kernel sees them: sums
 * that the programs of trace.bpf.c make (docs/developer/tracing.md). Everything is made by trace_open(),
 * before the load: then trace_cells() reads mapped memory (and, where something is in flight, a file
 * of sysfs), and trace_failures() makes one system call if there were none.
 */
#ifndef TRACE_H
#define TRACE_H

#include "common.h"

/* A block device that is watched: what it is (`disk`, `crypt`, `data-1` …), the kernel's name of it. */
struct device {
	const char *prefix, *name;
};

#define FAILURES_AT_ONCE 16 /* rows of failures: some 10 KiB */

extern bool trace_loud; /* what libbpf and the kernel's verifier warn of goes to stderr */

/* Never fails: what this kernel lacks goes to missing, what goes wrong later to problems. */
void trace_open(const struct device *, int count, struct list *missing, struct list *problems);
bool trace_any(void); /* whether there are any columns */
void trace_columns(struct text *); /* names, a tab between two */
/* Values since the beginning, a tab between two; an open span counts as far as it is. */
void trace_cells(struct text *);
/*
 * Rows of allocfail.tsv, of what failed since the last call, at most FAILURES_AT_ONCE; false: there
 * may be more.
 */
bool trace_failures(struct text *, int64_t t0);
bool trace_many_failures(void); /* so many rows wait that the next second is too late for them */
void trace_reclaimers(struct text *); /* reclaim.tsv's rows, by pid */
void trace_forget(void); /* what failed and who reclaimed until now is not the workload's */
void trace_close(void); /* what found no room, and whose end was not seen, goes to problems */

#endif
