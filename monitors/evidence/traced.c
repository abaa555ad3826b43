// SPDX-License-Identifier: GPL-2.0-or-later
/* trace.tsv, allocfail.tsv, reclaim.tsv: sums that trace/ has made in the kernel. */
#include <limits.h>
#include <string.h>

#include "evidence.h"
#include "trace/sums.h"
#include "trace/trace.h"

#define MOST_DEVICES 16
#define FAILURES_NS NS /* between two looks at the failed allocations */
/* Times that failed allocations are asked for at one look: as often as a full map takes. */
#define MOST_ASKED (MOST_FAILURES / FAILURES_AT_ONCE)

static bool tracing;
static int to_trace, to_failures, to_reclaim;
static int64_t began, failures_taken;

void traced_open(const char *folder, char **words, int count, struct list *missing,
		 struct list *problems)
{
	struct device devices[MOST_DEVICES];
	int found = 0;

	for (int i = 0; i < count && found < MOST_DEVICES; i++) {
		char *name = strchr(words[i], '=');

		if (!name)
			continue;
		*name++ = '\0';
		devices[found++] = (struct device){ words[i], name };
	}
	trace_open(devices, found, missing, problems);
	tracing = trace_any();
	if (!tracing)
		return;
	to_trace = outlet_open(folder, "trace.tsv");
	to_failures = outlet_open(folder, "allocfail.tsv");
	to_reclaim = outlet_open(folder, "reclaim.tsv");
}

void traced_row(void)
{
	if (!tracing)
		return;
	text_add(&rows_text, rows_mark.data, rows_mark.used);
	trace_cells(&rows_text);
	text_char(&rows_text, '\n');
	rows_put(to_trace);
}

static void add_failures(int most)
{
	bool all = false;

	for (; !all && most; most--) {
		all = trace_failures(&rows_text, began);
		rows_put(to_failures);
	}
}

static void add_reclaimers(void)
{
	text_string(&rows_text,
		    "pid\tcomm\tdirect_reclaims\tdirect_reclaim_us\tdirect_reclaim_pages\n");
	trace_reclaimers(&rows_text);
	rows_put(to_reclaim);
}

void traced_rehearse(void)
{
	if (!tracing)
		return;
	traced_row();
	add_failures(MOST_ASKED);
	add_reclaimers();
}

void traced_begin(int64_t t0)
{
	began = t0;
	if (!tracing)
		return;
	trace_forget();
	text_string(&rows_text, "elapsed_s\tlate_s\t");
	trace_columns(&rows_text);
	text_char(&rows_text, '\n');
	rows_put(to_trace);
	text_string(&rows_text, "elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack\n");
	rows_put(to_failures);
}

void traced_failures(int64_t now)
{
	bool due = now - failures_taken >= FAILURES_NS - EARLY_NS;

	if (!tracing || !(due || trace_many_failures()))
		return;
	failures_taken = now;
	add_failures(MOST_ASKED);
}

void traced_end(void)
{
	if (!tracing)
		return;
	traced_row();
	add_failures(INT_MAX);
	add_reclaimers();
}

void traced_close(void)
{
	if (tracing)
		trace_close();
}
