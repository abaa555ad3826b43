// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From /proc/PID/task and /proc/PID/task/TID/children (3.5 on, CONFIG_PROC_CHILDREN).
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"

#define STAT_BYTES 1024
#define CHILDREN_BYTES 4096
#define QUEUE 512 /* processes that one search visits */
#define MORE_FILES 128 /* that this program has open, and that one look opens */

static const char *const files[TASK_FILES] = {
	[TASK_STAT] = "/proc/%d/task/%d/stat",
	[TASK_STACK] = "/proc/%d/task/%d/stack",
	[TASK_WCHAN] = "/proc/%d/task/%d/wchan",
	[TASK_CHILDREN] = "/proc/%d/task/%d/children",
	[TASK_THREADS] = "/proc/%d/task",
};

static struct task *unused;

/* The search for a stream's tasks. */
struct search {
	int queue[QUEUE]; /* processes */
	int queued;
	int pids[MOST_TASKS]; /* threads of the one that is looked at */
	int count, most;
};

bool numbers_in(int folder, bool (*each)(void *, int number), void *data)
{
	char names[4096] __attribute__((aligned(8)));
	ssize_t size;

	if (lseek(folder, 0, SEEK_SET) < 0)
		return false;
	while ((size = getdents64(folder, names, sizeof(names))) > 0) {
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const struct dirent64 *)(names + at);

			at += entry->d_reclen;
			if (isdigit((unsigned char)entry->d_name[0]) &&
			    !each(data, atoi(entry->d_name)))
				return true;
		}
	}
	return size == 0;
}

/* The digits at *at as a number; *at goes behind them. */
static bool parse_number(const char **at, const char *end, uint64_t *value)
{
	const char *p = *at;

	for (*value = 0; p < end && *p >= '0' && *p <= '9'; p++)
		*value = *value * 10 + (uint64_t)(*p - '0');
	if (p == *at)
		return false;
	*at = p;
	return true;
}

static bool skip_fields(const char **at, const char *end, int count)
{
	for (; count; count--) {
		const char *space = memchr(*at, ' ', (size_t)(end - *at));

		if (!space)
			return false;
		*at = space + 1;
	}
	return true;
}

bool stat_parse(struct stat_line *stat, const char *text, size_t size)
{
	const char *end = text + size;
	const char *begin = memchr(text, '(', size);
	const char *at = memrchr(text, ')', size); /* a comm may hold anything, `)` too */

	if (!begin || at <= begin || end - at < 3 || at[1] != ' ')
		return false;
	stat->comm = begin + 1;
	stat->comm_size = (size_t)(at - stat->comm);
	at += 2;
	stat->state = *at;
	return skip_fields(&at, end, 7) && parse_number(&at, end, &stat->minflt) &&
	       skip_fields(&at, end, 2) && parse_number(&at, end, &stat->majflt);
}

static int task_fd(struct task *task, enum task_file file)
{
	char path[64];

	if (task->fds[file] < 0) {
		snprintf(path, sizeof(path), files[file], task->process, task->pid);
		task->fds[file] = open(path, O_RDONLY | O_CLOEXEC);
	}
	return task->fds[file];
}

int task_read(struct task *task, enum task_file file, char *data, int size)
{
	int fd = task_fd(task, file);
	ssize_t got = fd < 0 ? -1 : pread(fd, data, (size_t)size, 0);

	return got < 0 ? -errno : (int)got;
}

/* MOST_TASKS of each, of the others, and in hand: a search opens some before it closes others. */
void tasks_room(int streams)
{
	int most = MOST_TASKS * (streams + 2);
	struct task *tasks = room_memory(sizeof(*tasks) * (size_t)most);

	for (int i = 0; i < most; i++) {
		tasks[i].next = unused;
		unused = &tasks[i];
	}
	room_files(most * TASK_FILES + MOST_PROCESSES + MORE_FILES);
}

struct task *task_open(int process, int pid)
{
	struct task *task = unused;

	if (!task)
		return NULL;
	unused = task->next;
	*task = (struct task){ .process = process, .pid = pid };
	memset(task->fds, 0xff, sizeof(task->fds)); /* -1 */
	if (task_fd(task, TASK_STAT) >= 0)
		return task;
	task_close(task);
	return NULL;
}

void task_close(struct task *task)
{
	for (int file = 0; file < TASK_FILES; file++)
		if (task->fds[file] >= 0)
			close(task->fds[file]);
	task->next = unused;
	unused = task;
}

bool task_look(struct task *task)
{
	char line[STAT_BYTES];
	int size = task_read(task, TASK_STAT, line, sizeof(line));
	struct stat_line stat;

	task->there = size > 0 && stat_parse(&stat, line, (size_t)size);
	if (!task->there)
		return false;
	task->state = stat.state;
	task->minflt = stat.minflt;
	task->majflt = stat.majflt;
	if (stat.comm_size > COMM_BYTES)
		stat.comm_size = COMM_BYTES;
	task->comm_size = (uint8_t)stat.comm_size;
	memcpy(task->comm, stat.comm, stat.comm_size);
	return true;
}

void task_name(struct text *text, const struct task *task)
{
	text_escape(text, task->comm, task->comm_size);
}

/* Reads a task's children: whether they changed; queues them if there is a search. */
static bool new_children(struct task *task, struct search *search)
{
	char list[CHILDREN_BYTES];
	int size = task_read(task, TASK_CHILDREN, list, sizeof(list));
	const char *at = list;
	uint64_t before = task->children, sum = 14695981039346656037u; /* FNV-1a */
	uint64_t pid;

	if (size == -ENOENT)
		return false; /* no CONFIG_PROC_CHILDREN */
	if (size < 0)
		return true;
	for (int i = 0; i < size; i++)
		sum = (sum ^ (unsigned char)list[i]) * 1099511628211u;
	task->children = sum;
	/* A number that was cut has no blank behind it. */
	while (search && search->queued < QUEUE && parse_number(&at, list + size, &pid) &&
	       at++ < list + size)
		search->queue[search->queued++] = (int)pid;
	return sum != before;
}

/* Changes with the number of a process's threads: two more than that (proc_task_getattr). */
static uint64_t thread_links(struct task *task)
{
	int fd = task_fd(task, TASK_THREADS);
	struct stat found;

	return fd >= 0 && !fstat(fd, &found) ? found.st_nlink : 0;
}

static bool add_thread(void *data, int pid)
{
	struct search *search = data;

	search->pids[search->count++] = pid;
	return search->count < search->most;
}

static bool visited(const struct search *search, int at)
{
	for (int i = 0; i < at; i++)
		if (search->queue[i] == search->queue[at])
			return true;
	return false;
}

/* The task of this number, taken out of those that were there before, or a new one. */
static struct task *found_again(struct tasks *before, int process, int pid)
{
	for (int i = 0; i < before->count; i++) {
		struct task *task = before->all[i];

		if (task && task->pid == pid) {
			before->all[i] = NULL;
			return task;
		}
	}
	return task_open(process, pid);
}

static void visit(struct tasks *tasks, struct tasks *before, struct search *search, int process)
{
	char path[32];
	int folder;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return;
	search->count = 0;
	search->most = MOST_TASKS - tasks->count;
	numbers_in(folder, add_thread, search);
	close(folder);
	for (int i = 0; i < search->count; i++) {
		struct task *task = found_again(before, process, search->pids[i]);

		if (!task)
			continue;
		tasks->all[tasks->count++] = task;
		if (task->pid == process)
			task->links = thread_links(task);
		new_children(task, search);
	}
}

static void find(struct tasks *tasks)
{
	struct tasks before = *tasks;
	struct search search = { .queue = { tasks->pid }, .queued = 1 };

	/* A task whose parent has ended is not found from above, and still is the stream's. */
	for (int i = 0; i < before.count; i++)
		search.queue[search.queued++] = before.all[i]->process;
	tasks->count = 0;
	for (int i = 0; i < search.queued && tasks->count < MOST_TASKS; i++)
		if (!visited(&search, i))
			visit(tasks, &before, &search, search.queue[i]);
	for (int i = 0; i < before.count; i++)
		if (before.all[i])
			task_close(before.all[i]);
}

void tasks_refresh(struct tasks *tasks)
{
	bool changed = false;

	for (int i = 0; i < tasks->count; i++) {
		struct task *task = tasks->all[i];

		changed |= new_children(task, NULL);
		if (task->pid == task->process)
			changed |= thread_links(task) != task->links;
	}
	if (changed)
		find(tasks);
}

void tasks_follow(struct tasks *tasks, int pid)
{
	for (int i = 0; i < tasks->count; i++)
		task_close(tasks->all[i]);
	tasks->count = 0;
	tasks->pid = pid;
	if (pid)
		find(tasks);
}
