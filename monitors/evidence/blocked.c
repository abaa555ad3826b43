// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folded stacks, and every process that sleeps uninterruptibly: /proc/PID/stack
 * (CONFIG_STACKTRACE, root only) and /proc/PID/wchan; proc(5).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "evidence.h"

#define STACK_BYTES 4096
#define FRAMES 24
#define LIST_NS (5 * NS) /* between two looks for processes that are new */
#define SCAN_NS (NS - NS / 10)
#define SHARE 50 /* a scan may not take more than 1/SHARE of the time, however many processes */

int64_t blocked_pace(int64_t silent_ns)
{
	if (silent_ns < 2 * NS)
		return NS / 4;
	return silent_ns < 10 * NS ? NS / 2 : NS;
}

/* The function that this line of a stack names; the line's end goes to *next. NULL: none. */
static const char *function(const char *line, const char *end, const char **next, size_t *size)
{
	const char *name, *behind;

	*next = memchr(line, '\n', (size_t)(end - line));
	if (!*next)
		*next = end;
	name = memchr(line, ' ', (size_t)(*next - line));
	if (!name || ++name == *next || (*next - name > 1 && !memcmp(name, "0x", 2)))
		return NULL;
	for (behind = name; behind < *next && *behind != '+' && *behind != ' '; behind++)
		;
	*size = (size_t)(behind - name);
	return *size ? name : NULL;
}

/* Functions, innermost first, joined by ` <- `. */
void blocked_fold(struct text *text, const char *stack, size_t size)
{
	const char *end = stack + size, *line = stack, *next;
	size_t before = text->used, length;

	for (int frame = 0; frame < FRAMES && line < end; frame++, line = next + 1) {
		const char *name = function(line, end, &next, &length);

		if (!name)
			continue;
		if (text->used > before)
			text_string(text, " <- ");
		text_add(text, name, length);
	}
}

/* False: there is none. */
static bool add_first(struct text *text, const char *stack, size_t size)
{
	const char *end = stack + size, *line = stack, *next, *name = NULL;
	size_t length;

	for (int frame = 0; frame < FRAMES && line < end && !name; frame++, line = next + 1)
		name = function(line, end, &next, &length);
	if (name)
		text_add(text, name, length);
	return name;
}

static void add_wchan(struct text *text, struct task *task)
{
	char name[256];
	int size = task_read(task, TASK_WCHAN, name, sizeof(name));

	if (size > 0 && name[size - 1] == '\n')
		size--;
	if (size > 0)
		text_add(text, name, (size_t)size);
}

void blocked_row(struct text *text, const struct text *begin, const char *stream,
		 const int64_t *silent_ns, struct task *task)
{
	char stack[STACK_BYTES];
	int got = task_read(task, TASK_STACK, stack, sizeof(stack));
	size_t size = got > 0 ? (size_t)got : 0;

	text_add(text, begin->data, begin->used);
	text_string(text, stream);
	text_char(text, '\t');
	if (silent_ns)
		text_seconds(text, *silent_ns);
	text_char(text, '\t');
	text_number(text, task->pid);
	text_char(text, '\t');
	task_name(text, task);
	text_char(text, '\t');
	text_char(text, task->state);
	text_char(text, '\t');
	/* The kernel leaves the scheduler out of both: wchan is the first of the stack. */
	if (!add_first(text, stack, size))
		add_wchan(text, task);
	text_char(text, '\t');
	text_number(text, (int64_t)task->majflt);
	text_char(text, '\t');
	text_number(text, (int64_t)task->minflt);
	text_char(text, '\t');
	blocked_fold(text, stack, size);
	text_char(text, '\n');
}

/* Processes by their numbers: the first of those from `turn` on, and the first of all. */
struct listing {
	int turn, most, all;
	int later_count, later[MOST_PROCESSES];
	int first_count, first[MOST_PROCESSES];
};

static bool list_process(void *data, int pid)
{
	struct listing *listing = data;

	listing->all++;
	if (pid >= listing->turn && listing->later_count < listing->most)
		listing->later[listing->later_count++] = pid;
	if (listing->first_count < listing->most)
		listing->first[listing->first_count++] = pid;
	return true;
}

static int open_stat(int pid)
{
	char path[48];

	/* /proc/PID/stat would add up all of its threads. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Hold these open, in this ascending order, and no others. */
static void keep_open(struct sleepers *sleepers, const int *pids, int count)
{
	int fds[MOST_PROCESSES], old = 0;

	for (int i = 0; i < count; i++) {
		fds[i] = -1;
		for (; old < sleepers->count && sleepers->pids[old] <= pids[i]; old++) {
			if (sleepers->pids[old] == pids[i])
				fds[i] = sleepers->fds[old];
			else if (sleepers->fds[old] >= 0)
				close(sleepers->fds[old]);
		}
		if (fds[i] < 0)
			fds[i] = open_stat(pids[i]);
	}
	for (; old < sleepers->count; old++)
		if (sleepers->fds[old] >= 0)
			close(sleepers->fds[old]);
	memcpy(sleepers->pids, pids, sizeof(*pids) * (size_t)count);
	memcpy(sleepers->fds, fds, sizeof(*fds) * (size_t)count);
	sleepers->count = count;
}

/* Whether these are all processes; else the next ones come next. */
static bool list_processes(struct sleepers *sleepers)
{
	struct listing listing = { .turn = sleepers->turn, .most = sleepers->most };
	int wanted[MOST_PROCESSES], count = 0;

	if (!numbers_in(sleepers->folder, list_process, &listing))
		return false;
	if (listing.all <= sleepers->most) {
		keep_open(sleepers, listing.first, listing.first_count);
		return true;
	}
	for (int left = sleepers->most - listing.later_count; count < left; count++) {
		if (listing.first[count] >= listing.turn)
			break;
		wanted[count] = listing.first[count];
	}
	sleepers->turn = 1 + (count ? wanted[count - 1] : listing.later[listing.later_count - 1]);
	memcpy(wanted + count, listing.later, sizeof(int) * (size_t)listing.later_count);
	keep_open(sleepers, wanted, count + listing.later_count);
	return false;
}

void sleepers_open(struct sleepers *sleepers, int most)
{
	memset(sleepers, 0, sizeof(*sleepers));
	sleepers->most = most;
	sleepers->folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void sleepers_close(struct sleepers *sleepers)
{
	keep_open(sleepers, sleepers->pids, 0);
	if (sleepers->folder >= 0)
		close(sleepers->folder);
}

static bool sleeps(int fd, bool *gone)
{
	struct stat_line stat;
	char line[256];
	ssize_t size = pread(fd, line, sizeof(line), 0);

	*gone = size <= 0 || !stat_parse(&stat, line, (size_t)size);
	return !*gone && stat.state == 'D';
}

int sleepers_look(struct sleepers *sleepers, int64_t now, int found[MOST_PROCESSES])
{
	int64_t began, spent;
	int count = 0;

	if (now < sleepers->next)
		return 0;
	began = now_ns();
	if (began >= sleepers->listed)
		sleepers->listed = began + (list_processes(sleepers) ? LIST_NS : 0);
	for (int i = 0; i < sleepers->count; i++) {
		bool gone;

		if (sleepers->fds[i] < 0)
			continue;
		if (sleeps(sleepers->fds[i], &gone))
			found[count++] = sleepers->pids[i];
		if (gone) {
			close(sleepers->fds[i]);
			sleepers->fds[i] = -1;
		}
	}
	spent = SHARE * (now_ns() - began);
	sleepers->next = now + (spent > SCAN_NS ? spent : SCAN_NS);
	return count;
}

struct named {
	const char *comm;
	int *pids;
	int count, most;
};

static bool add_named(void *data, int pid)
{
	struct named *named = data;
	size_t length = strlen(named->comm);
	char path[32], comm[COMM_BYTES];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	size = read(fd, comm, sizeof(comm) - 1);
	close(fd);
	comm[size > 0 ? size : 0] = 0;
	/* Digits behind the name, and the line's end. */
	if (!strncmp(comm, named->comm, length) && comm[length] != '\n' &&
	    !strcmp(comm + length + strspn(comm + length, "0123456789"), "\n"))
		named->pids[named->count++] = pid;
	return named->count < named->most;
}

int blocked_numbered(const char *comm, int *pids, int most)
{
	struct named named = { .comm = comm, .pids = pids, .most = most };
	int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return 0;
	numbers_in(folder, add_named, &named);
	close(folder);
	return named.count;
}
