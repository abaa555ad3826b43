// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: the parts of monitors/evidence, told what to do. `! WHY` is an error of taskstats.
 *     fold STACK                        hex
 *     pace SECONDS                      seconds
 *     stat LINE                         comm in hex, state, minflt, majflt; `gone`
 *     find MESSAGE                      where struct taskstats begins and ends
 *     layout VERSION SIZE               known, comm, pid, ppid, each delay
 *     replay MESSAGE VERSION            µs of each delay, as taskstats_read() finds them
 *     taskstats                         this machine's: the version
 *     ask PID                           its whole answer, in hex
 *     read PID…                         `gone`, or µs of each delay with commas
 *     follow PID                        a stream's tasks; 0: none
 *     refresh                           its tasks now: `PROCESS/PID/STATE/COMM`
 *     sleepers MOST, sleep SECONDS      those in state D; 0: closed
 *     numbered NAME                     pids
 *     rows COUNT SIZE                   makes them: how many bytes were handed over each time
 *     fds                               how many are open
 *     allocations                       how many there were so far
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>

#include "evidence/evidence.h"
#include "orders.h"

#define FILE_OF_ROWS 7
#define OUT_BYTES (64 << 10)

static struct accounts accounts;
static struct tasks tasks;
static struct sleepers sleepers;
static long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
	allocations++;
	return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	allocations++;
	return __real_realloc(memory, size);
}

/* Stands for the outlet's. */
bool outlet_text(int file, struct text *text)
{
	if (file != FILE_OF_ROWS || !text->used || text->data[text->used - 1] != '\n')
		abort();
	text_format(&out, "%s%zu", out.used ? " " : "", text->used);
	text_clear(text);
	return true;
}

static bool failed(const char *error)
{
	if (error)
		text_format(&out, "! %s", error);
	return error;
}

static void do_fold(void)
{
	struct text folded = { 0 };
	size_t size;
	char *data = bytes(1, &size);

	blocked_fold(&folded, data, size);
	add_hex(folded.data, folded.used);
	free(folded.data);
	free(data);
}

static void do_stat(void)
{
	struct stat_line stat;
	size_t size;
	char *data = bytes(1, &size);

	if (stat_parse(&stat, data, size)) {
		add_hex(stat.comm, stat.comm_size);
		text_format(&out, " %c %llu %llu", stat.state, (unsigned long long)stat.minflt,
			    (unsigned long long)stat.majflt);
	} else {
		text_string(&out, "gone");
	}
	free(data);
}

static void do_find(void)
{
	size_t size, begin, end;
	char *data = bytes(1, &size);

	if (!failed(taskstats_find(data, size, &begin, &end)))
		text_format(&out, "%zu %zu", begin, end);
	free(data);
}

static void do_layout(void)
{
	struct layout layout;

	if (failed(taskstats_layout(&layout, (int)number(1), (size_t)number(2))))
		return;
	text_format(&out, "%d %zu %zu %zu", layout.known, layout.comm, layout.pid, layout.ppid);
	for (int i = 0; i < DELAYS; i++)
		text_format(&out, " %zu", layout.delay[i]);
}

static void add_delays(const uint64_t us[DELAYS])
{
	for (int i = 0; i < DELAYS; i++)
		text_format(&out, "%s%llu", i ? "," : "", (unsigned long long)us[i]);
}

/* The answer comes from a socket pair, as the one to the first request. */
static void do_replay(void)
{
	struct accounts played = { .sequence = 7 };
	uint64_t us[1][DELAYS];
	size_t end;
	int pair[2], pid = 1;
	bool found;
	char *data = bytes(1, &played.length);

	socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	played.socket = pair[0];
	if (failed(taskstats_find(data, played.length, &played.begin, &end)) ||
	    failed(taskstats_layout(&played.layout, (int)number(2), end - played.begin)))
		abort();
	/* One that nobody waits for any more comes first. */
	send(pair[1], data, played.length, 0);
	((struct nlmsghdr *)data)->nlmsg_seq = 8;
	send(pair[1], data, played.length, 0);
	taskstats_read(&played, &pid, 1, us, &found);
	if (found)
		add_delays(us[0]);
	close(pair[0]);
	close(pair[1]);
	free(data);
}

static void do_ask(void)
{
	char message[4096];
	size_t size;

	if (!failed(taskstats_ask(&accounts, (int)number(1), message, sizeof(message), &size)))
		add_hex(message, size);
}

static void do_read(void)
{
	uint64_t us[TASKSTATS_BATCH][DELAYS];
	bool found[TASKSTATS_BATCH];
	int pids[TASKSTATS_BATCH];

	for (int i = 1; i < count; i++)
		pids[i - 1] = (int)number(i);
	taskstats_read(&accounts, pids, count - 1, us, found);
	for (int i = 0; i < count - 1; i++) {
		text_string(&out, i ? " " : "");
		if (found[i])
			add_delays(us[i]);
		else
			text_string(&out, "gone");
	}
}

static void do_taskstats(void)
{
	if (!failed(taskstats_open(&accounts)))
		text_number(&out, accounts.layout.version);
}

static void do_pace(void)
{
	text_seconds(&out, blocked_pace(nanoseconds(1)));
}

static void do_follow(void)
{
	tasks_follow(&tasks, (int)number(1));
}

static void do_refresh(void)
{
	tasks_refresh(&tasks);
	for (int i = 0; i < tasks.count; i++) {
		struct task *task = tasks.all[i];

		if (!task_look(task))
			continue;
		text_format(&out, "%s%d/%d/%c/", i ? " " : "", task->process, task->pid,
			    task->state);
		task_name(&out, task);
	}
}

static void do_sleepers(void)
{
	if (sleepers.most)
		sleepers_close(&sleepers);
	sleepers.most = 0;
	if (number(1))
		sleepers_open(&sleepers, (int)number(1));
}

static void add_pids(const int *pids, int found)
{
	for (int i = 0; i < found; i++)
		text_format(&out, "%s%d", i ? " " : "", pids[i]);
}

static void do_sleep(void)
{
	int found[MOST_PROCESSES];

	add_pids(found, sleepers_look(&sleepers, nanoseconds(1), found));
}

static void do_numbered(void)
{
	int found[MOST_TASKS];

	add_pids(found, blocked_numbered(words[1], found, MOST_TASKS));
}

static void do_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int found = 0;

	while (readdir(folder))
		found++;
	closedir(folder);
	text_number(&out, found);
}

static void do_rows(void)
{
	for (int64_t row = number(1); row; row--) {
		for (int64_t i = number(2); i > 1; i--)
			text_char(&rows_text, 'x');
		text_char(&rows_text, '\n');
		rows_ended(FILE_OF_ROWS);
	}
	rows_put(FILE_OF_ROWS);
}

static void do_allocations(void)
{
	text_number(&out, allocations);
}

int main(void)
{
	static const struct order orders[] = {
		{ "fold", do_fold },
		{ "pace", do_pace },
		{ "stat", do_stat },
		{ "find", do_find },
		{ "layout", do_layout },
		{ "replay", do_replay },
		{ "taskstats", do_taskstats },
		{ "ask", do_ask },
		{ "read", do_read },
		{ "follow", do_follow },
		{ "refresh", do_refresh },
		{ "sleepers", do_sleepers },
		{ "sleep", do_sleep },
		{ "numbered", do_numbered },
		{ "rows", do_rows },
		{ "fds", do_fds },
		{ "allocations", do_allocations },
	};

	text_reserve(&out, OUT_BYTES);
	rows_open();
	tasks_room(1);
	obey_all(orders, ARRAY_SIZE(orders));
	return 0;
}
