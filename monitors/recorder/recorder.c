// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

#define TICK (1 * NS)	     /* between two looks for programs that left their output open */
#define EXIT_POLL (10 * MS)  /* the same while one has closed its output and has not ended yet */
#define GRACE (5 * NS)	     /* between SIGTERM and SIGKILL */
#define KILL (30 * NS)	     /* how long a killed program may take: it may wait for a disk */
#define DRAIN (5 * NS)	     /* how long output may still come after its program has ended */
#define PATIENCE (1 * NS)    /* how long reading waits for an output that is slow but takes data */
#define EVENTS "events.jsonl"
#define PIECE 512	     /* bytes whose lines are made at once: up to 24 times as much */
#define LAST_KEPT 1024	     /* bytes kept of a stream's last line */

static int epoll, events;
static int64_t now, next_tick;
static int awaited, running;
static struct text text; /* of the log that is written now: one piece's */
static char chunk[16384];

void event(const char *name, struct text *facts)
{
	static struct text line;

	text_string(&line, "{\"t\": ");
	text_seconds(&line, now_ns());
	text_format(&line, ", \"event\": \"%s\", ", name);
	text_add(&line, facts->data, facts->used);
	text_string(&line, "}\n");
	outlet_text(events, &line);
	text_clear(facts);
}

/* An output that is slow, but takes data, gets some time to. */
static void leave_room(void)
{
	static const struct timespec pause = { .tv_nsec = 2 * MS };
	int64_t give_up = now_ns() + PATIENCE;

	while (outlet_waiting() > OUTLET_BOUND / 2 && !outlet_failing() && now_ns() < give_up)
		nanosleep(&pause, NULL);
}

static void end_log(struct stream *stream, int64_t moment)
{
	if (stream->closed_ms >= 0)
		return;
	stream->closed_ms = lines_ms(&stream->log, moment);
	if (stream->slot >= 0)
		beacon_ended(&spec.beacon, stream->slot);
	lines_end(&stream->log, &text, moment);
	leave_room();
	outlet_text(stream->file, &text);
}

static void close_stream(struct stream *stream)
{
	end_log(stream, now);
	if (stream->fd >= 0)
		close(stream->fd); /* which takes it out of epoll, too */
	stream->fd = -1;
}

static void keep_last_line(struct stream *stream)
{
	const char *end = text.data + text.used - 1;
	const char *newline = memrchr(text.data, '\n', end - text.data);
	const char *line = newline ? newline + 1 : text.data;

	text_clear(&stream->last);
	text_add(&stream->last, line, end - line < LAST_KEPT ? end - line : LAST_KEPT);
}

/* The lines that are whole now. */
static void feed(struct stream *stream, const char *piece, size_t size, bool *roomy)
{
	lines_feed(&stream->log, &text, piece, size, now);
	if (!text.used)
		return;
	if (stream->slot >= 0)
		beacon_said(&spec.beacon, stream->slot, now, stream->log.lines);
	keep_last_line(stream);
	if (!*roomy)
		leave_room();
	*roomy = true;
	outlet_text(stream->file, &text);
}

static void read_stream(struct stream *stream)
{
	ssize_t size = read(stream->fd, chunk, sizeof(chunk));
	bool roomy = false;

	now = now_ns();
	if (size <= 0) {
		close_stream(stream);
		next_tick = now;
		return;
	}
	if (stream->closed_ms >= 0)
		return;
	for (ssize_t at = 0; at < size; at += PIECE)
		feed(stream, chunk + at, size - at < PIECE ? size - at : PIECE, &roomy);
}

static void end_stream(struct stream *stream)
{
	static struct text facts;

	close_stream(stream);
	stream->ended = true;
	running--;
	awaited -= stream->awaited;
	text_string(&facts, "\"stream\": ");
	text_json(&facts, stream->name);
	text_string(&facts, ", \"elapsed\": ");
	text_seconds(&facts, stream->closed_ms * MS);
	text_string(&facts, ", \"status\": ");
	if (stream->reaped)
		text_number(&facts, stream->status);
	else
		text_string(&facts, "null");
	text_format(&facts, ", \"lines\": %llu", (unsigned long long)stream->log.lines);
	event("stream-end", &facts);
}

static void tick(void)
{
	next_tick = now + TICK;
	for_each_stream(stream) {
		if (stream->ended)
			continue;
		if (!stream->reaped)
			child_look(stream, now);
		if (stream->reaped && now > stream->exited + DRAIN)
			close_stream(stream);
		if (stream->closed_ms < 0)
			continue;
		if (stream->reaped)
			end_stream(stream);
		else
			next_tick = now + EXIT_POLL;
	}
}

/* A line costs one wake-up and as little else as can be: the rest is looked at by the clock. */
static void turn(int64_t until)
{
	int64_t wait = (until < next_tick ? until : next_tick) - now, ignored;
	struct epoll_event found[16];
	int count = epoll_wait(epoll, found, ARRAY_SIZE(found), wait > 0 ? wait / MS + 1 : 0);

	for (int i = 0; i < count; i++) {
		if (found[i].data.ptr == &channel)
			channel_read(&ignored);
		else if (found[i].data.ptr)
			read_stream(found[i].data.ptr);
		else
			channel.ended = true;
	}
	if (count <= 0)
		now = now_ns();
	if (now >= next_tick)
		tick();
}

static void watch(int fd, void *what)
{
	struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted))
		fail("epoll: %s", strerror(errno));
}

void recorder_open(void)
{
	struct text name = { 0 };

	for_each_stream(stream) {
		text_clear(&name);
		text_format(&name, "latency-%s.log%c", stream->name, '\0');
		stream->file = outlet_open(spec.folder, name.data);
		outlet_call(stream->file, stream->name);
		stream->slot = beacon_slot(&spec.beacon, stream->name);
		stream->closed_ms = -1;
	}
	free(name.data);
	events = outlet_open(spec.folder, EVENTS);
}

/* Does all that is done for a line, to no effect: what was touched gets locked. */
void recorder_rehearse(void)
{
	memset(chunk, '\n', sizeof(chunk));
	text_reserve(&text, LINES_ROOM(PIECE));
	for_each_stream(stream) {
		lines_feed(&stream->log, &text, chunk, PIECE, now_ns());
		keep_last_line(stream);
		text_clear(&stream->last);
		text_reserve(&stream->last, LAST_KEPT + 1);
		text_clear(&text);
		memset(&stream->log, 0, sizeof(stream->log));
	}
}

void recorder_start(int64_t t0)
{
	static struct text line;
	struct timespec until = { t0 / NS, t0 % NS };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	now = t0;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for_each_stream(stream) {
		stream->log.start_ns = t0;
		child_go(stream);
		watch(stream->fd, stream);
		if (stream->slot >= 0)
			beacon_began(&spec.beacon, stream->slot, stream->pid, t0);
		running++;
		awaited += stream->awaited;
	}
	for_each_stream(stream) {
		text_string(&line, "\"stream\": ");
		text_json(&line, stream->name);
		text_format(&line, ", \"pid\": %d", stream->pid);
		event("stream-start", &line);
	}
	cost_begin();
	text_format(&line, "{\"t0\": %lld.%09lld}", (long long)(t0 / NS), (long long)(t0 % NS));
	say(&line);
	text_format(&line, "\"t0\": %lld.%09lld", (long long)(t0 / NS), (long long)(t0 % NS));
	event("start", &line);
}

/* Until the streams that are waited for have ended, or the time is over, or we are asked to end. */
const char *recorder_run(int64_t deadline)
{
	watch(STDIN_FILENO, &channel);
	watch(channel.wake, NULL);
	while (awaited && !channel.ended && now < deadline)
		turn(deadline);
	epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
	epoll_ctl(epoll, EPOLL_CTL_DEL, channel.wake, NULL);
	return !awaited ? "done" : channel.ended ? "stopped" : "deadline";
}

static void end_programs(int number, int64_t patience)
{
	int64_t give_up;

	now = now_ns();
	give_up = now + patience;
	for_each_stream(stream) {
		if (stream->reaped)
			continue;
		child_signal(stream, number);
		child_signal(stream, SIGCONT);
	}
	while (running && now < give_up)
		turn(now + EXIT_POLL);
}

/*
 * The open gaps are of this moment: what a program says because it was asked to end is no longer a
 * part of its stream.
 */
void recorder_stop(void)
{
	int64_t moment = now_ns();

	for_each_stream(stream)
		end_log(stream, moment);
	end_programs(SIGTERM, GRACE);
	end_programs(SIGKILL, KILL);
	for_each_stream(stream)
		if (!stream->ended)
			end_stream(stream);
	outlet_finish(GRACE);
}
