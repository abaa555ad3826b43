// SPDX-License-Identifier: GPL-2.0-or-later
/* tasks.tsv: what /proc and taskstats say of tasks. */
#include "evidence.h"

static struct accounts accounts;
static int to_tasks;

void samples_open(const char *folder, struct list *missing)
{
	static const enum delay younger[] = { COMPACT, FREEPAGES, IRQ, THRASHING, WPCOPY };
	const char *error = taskstats_open(&accounts);

	if (error)
		list_add(missing, "%s", error);
	for (size_t i = 0; i < ARRAY_SIZE(younger) && !error; i++)
		if (!accounts.layout.delay[younger[i]])
			list_add(missing, "taskstats %s", delay_names[younger[i]]);
	to_tasks = outlet_open(folder, "tasks.tsv");
}

void samples_header(void)
{
	text_string(&rows_text, "elapsed_s\tlate_s\tstream\tpid\tcomm\tstate\t");
	for (int i = 0; i < DELAYS && accounts.socket >= 0; i++) {
		if (accounts.layout.delay[i]) {
			text_string(&rows_text, delay_names[i]);
			text_string(&rows_text, "_us\t");
		}
	}
	text_string(&rows_text, "majflt\tminflt\n");
	rows_put(to_tasks);
}

/* us: µs of each delay; NULL: not known. */
static void task_row(const char *stream, const struct task *task, const uint64_t *us)
{
	text_add(&rows_text, rows_mark.data, rows_mark.used);
	text_string(&rows_text, stream);
	text_char(&rows_text, '\t');
	text_number(&rows_text, task->pid);
	text_char(&rows_text, '\t');
	task_name(&rows_text, task);
	text_char(&rows_text, '\t');
	text_char(&rows_text, task->state);
	text_char(&rows_text, '\t');
	for (int i = 0; i < DELAYS && accounts.socket >= 0; i++) {
		if (!accounts.layout.delay[i])
			continue;
		if (us)
			text_number(&rows_text, (int64_t)us[i]);
		text_char(&rows_text, '\t');
	}
	text_number(&rows_text, (int64_t)task->majflt);
	text_char(&rows_text, '\t');
	text_number(&rows_text, (int64_t)task->minflt);
	text_char(&rows_text, '\n');
	rows_ended(to_tasks);
}

void samples_add(struct batch *batch, const char *stream, const struct tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++) {
		if (batch->count == TASKSTATS_BATCH)
			samples_take(batch);
		batch->streams[batch->count] = stream;
		batch->tasks[batch->count++] = tasks->all[i];
	}
}

void samples_take(struct batch *batch)
{
	uint64_t us[TASKSTATS_BATCH][DELAYS];
	bool found[TASKSTATS_BATCH] = { false };
	int pids[TASKSTATS_BATCH];

	for (int i = 0; i < batch->count; i++)
		pids[i] = batch->tasks[i]->pid;
	if (batch->count && accounts.socket >= 0)
		taskstats_read(&accounts, pids, batch->count, us, found);
	/* One that is gone has no row: tasks_refresh() forgets it. */
	for (int i = 0; i < batch->count; i++)
		if (task_look(batch->tasks[i]))
			task_row(batch->streams[i], batch->tasks[i], found[i] ? us[i] : NULL);
	batch->count = 0;
	rows_put(to_tasks);
}

void samples_facts(struct text *out)
{
	text_string(out, "\"taskstats_version\": ");
	if (accounts.socket >= 0)
		text_number(out, accounts.layout.version);
	else
		text_string(out, "null");
	text_format(out, ", \"delayacct\": %s", delay_accounting() ? "true" : "false");
}
