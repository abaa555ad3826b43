// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In a guest, files are on its host: a write is a copy into shared memory (lane.c). On a real
 * machine a write to a file allocates memory: under pressure it can take hundreds of ms in direct
 * reclaim. So a thread writes: it wakes on its own, a few times a second, and writes what has come
 * for each file at once. A wake-up for each line would cost more than all the rest of an observer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lane.h"
#include "queue.h"

#define BATCH_NS (400 * NS / 1000)
#define RETRY_NS (250 * NS / 1000)
#define CLOSE_NS (2 * NS) /* how long an output that takes nothing is still tried at the end */
#define FAIL_NS (5 * NS)	 /* how long fail() waits for what is queued */
#define URGENT_BYTES (1 << 20)
#define EARLY_BYTES (32 << 10) /* may wait before there is a thread */
#define STACK_BYTES (64 << 10)

/* The thread takes from the queue and writes; all else is the observer's. */
struct file {
	_Atomic(struct file *) next;
	char *name;
	int fd;		    /* the thread's; -1: its reader went away */
	uint32_t lane_file; /* its number, if files are in shared memory */
	atomic_int error;
	struct queue queue;
	uint64_t lost_lines, lost_bytes;
};

static _Atomic(struct file *) first;
static struct file **files; /* the same ones by their numbers, for the observer */
static int file_count;

static sem_t wake, ended;
static int thread_priority;
static bool started, in_memory;
static atomic_bool urged; /* the thread was woken, and has not come yet */
static atomic_bool ending, failing;
static _Atomic int64_t slowest;

int outlet_open(const char *folder, const char *name)
{
	struct text path = { 0 };
	int fd;

	if (lane_open(folder)) {
		in_memory = true;
		fd = outlet_add(-1, name);
		files[fd]->lane_file = lane_file(name);
		return fd;
	}
	text_format(&path, "%s/%s%c", folder, name, '\0');
	fd = open(path.data, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		fail("%s: %s", path.data, strerror(errno));
	free(path.data);
	return outlet_add(fd, name);
}

void outlet_call(int number, const char *name)
{
	free(files[number]->name);
	files[number]->name = strdup(name);
}

static void prepare(void)
{
	static bool prepared;

	if (prepared)
		return;
	prepared = true;
	sem_init(&wake, 0, 0);
	sem_init(&ended, 0, 0);
	queues_open();
}

int outlet_add(int fd, const char *name)
{
	struct file *file = calloc(1, sizeof(*file));

	prepare();
	files = realloc(files, sizeof(*files) * (size_t)(file_count + 1));
	if (!file || !files)
		fail("out of memory");
	file->name = strdup(name);
	file->fd = fd;
	files[file_count] = file;
	/* From here on the thread may see it. */
	if (file_count)
		files[file_count - 1]->next = file;
	else
		first = file;
	return file_count++;
}

/* Writes what waits now; what comes meanwhile is the next round's. False: it takes nothing. */
static bool write_file(struct file *file)
{
	size_t end = queue_end(&file->queue), size;
	const char *data;

	while ((size = queue_piece(&file->queue, end, &data))) {
		ssize_t done = file->fd < 0 ? (ssize_t)size : write(file->fd, data, size);

		if (done > 0) {
			queue_forget(&file->queue, (size_t)done);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		file->error = done ? errno : EIO;
		if (file->error != EPIPE)
			return false;
		file->fd = -1;
	}
	return true;
}

static void write_round(void)
{
	bool failed = false;

	urged = false;
	for (struct file *file = first; file; file = file->next) {
		int64_t began = now_ns(), took;

		failed |= !write_file(file);
		took = now_ns() - began;
		if (took > slowest)
			slowest = took;
	}
	failing = failed;
}

/* False: not within this time. */
static bool wait_for(sem_t *semaphore, int64_t ns)
{
	int64_t until = now_ns() + ns;
	struct timespec time = { until / NS, until % NS };
	int result;

	do
		result = sem_clockwait(semaphore, CLOCK_MONOTONIC, &time);
	while (result && errno == EINTR);
	return !result;
}

static void *work(void *unused_argument)
{
	int64_t give_up;

	(void)unused_argument;
	if (thread_priority)
		raise_thread(thread_priority, NULL);
	while (!ending) {
		wait_for(&wake, failing ? RETRY_NS : BATCH_NS);
		write_round();
	}
	write_round();
	give_up = now_ns() + CLOSE_NS;
	while (failing && now_ns() < give_up) {
		wait_for(&wake, RETRY_NS);
		write_round();
	}
	sem_post(&ended);
	return NULL;
}

/* What was queued before must not be lost. */
static void finish_failed(void)
{
	if (!ending)
		outlet_finish(FAIL_NS);
}

void outlet_start(int priority)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	if (in_memory)
		return;
	prepare();
	queues_touch(OUTLET_READY);
	thread_priority = priority;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* signals are the observer's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		fail("thread: %s", strerror(error));
	started = true;
	at_fail(finish_failed);
}

size_t outlet_waiting(void)
{
	return in_memory ? lane_waiting() : queues_size();
}

static bool queue_put(struct file *file, const char *data, size_t size)
{
	bool fits = queue_append(&file->queue, data, size);

	if (queues_size() > URGENT_BYTES && !failing && !atomic_exchange(&urged, true))
		sem_post(&wake);
	return fits;
}

bool outlet_put(int number, const char *data, size_t size, size_t limit)
{
	struct file *file = files[number];
	bool fits;

	if (!limit || limit > OUTLET_BOUND)
		limit = OUTLET_BOUND;
	if (!started && !in_memory && queues_size() + size > EARLY_BYTES)
		write_round();
	fits = outlet_waiting() + size <= limit &&
	       (in_memory ? lane_put(file->lane_file, data, size) : queue_put(file, data, size));
	if (!fits) {
		file->lost_lines += lines_of(data, size);
		file->lost_bytes += size;
	}
	return fits;
}

bool outlet_text(int number, struct text *text)
{
	bool fits = outlet_put(number, text->data, text->used, 0);

	text_clear(text);
	return fits;
}

bool outlet_failing(void)
{
	return failing;
}

size_t outlet_finish(int64_t patience_ns)
{
	size_t left = 0, bytes;
	uint64_t lines;

	if (in_memory)
		return 0;
	prepare();
	ending = true;
	sem_post(&wake);
	if (started)
		wait_for(&ended, patience_ns);
	else
		write_round();
	/* The thread may still wait in a write: what is queued behind that is lost, too. */
	for (int i = 0; i < file_count; i++) {
		queue_rest(&files[i]->queue, &lines, &bytes);
		files[i]->lost_lines += lines;
		files[i]->lost_bytes += bytes;
		left += bytes;
	}
	return left;
}

void outlet_dropped_json(struct text *out)
{
	const char *before = "";

	text_char(out, '{');
	for (int i = 0; i < file_count; i++) {
		if (!files[i]->lost_bytes)
			continue;
		text_string(out, before);
		text_json(out, files[i]->name);
		text_format(out, ": [%llu, %llu]", (unsigned long long)files[i]->lost_lines,
			    (unsigned long long)files[i]->lost_bytes);
		before = ", ";
	}
	text_char(out, '}');
}

void outlet_facts(struct text *out)
{
	const char *before = "";

	text_format(out, "\"slowest_write_s\": %.4f, \"dropped\": ", (double)slowest / NS);
	outlet_dropped_json(out);
	text_string(out, ", \"write_errors\": {");
	for (int i = 0; i < file_count; i++) {
		if (!files[i]->error)
			continue;
		text_string(out, before);
		text_json(out, files[i]->name);
		text_string(out, ": ");
		text_json(out, strerror(files[i]->error));
		before = ", ";
	}
	text_char(out, '}');
}
