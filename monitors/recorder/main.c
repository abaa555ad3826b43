// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lines of all streams of a test, each stamped with CLOCK_MONOTONIC right after the read
 * returned, whatever becomes of the machine. Started before the load by monitors/launch.py; the end
 * of stdin, or SIGTERM, ends the recording. It speaks JSON lines on stdout:
 *
 *	{"locked": true}			no program yet; `prepare` has them started
 *	{"prepared": streams, "problems": […]}	all are there; `t0 SECONDS` lets them begin then
 *	{"t0": seconds}				the workload has begun
 *	{"outcome": "done|deadline|stopped", "elapsed": s, "observer": {…}, "early": {stream: last
 *	 line}, "ends": {stream: status}, "dropped": {stream: [lines, bytes]}}
 *
 * or {"error": "one line"}. `early` are the streams that had ended by themselves though the test
 * does not end with them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

/* All programs, in order, and those that wait ready to begin; else none, and why. */
static bool prepare(struct text *error)
{
	for_each_stream(stream)
		if (!child_start(stream, error))
			return false;
	for_each_stream(stream)
		if (stream->waits && !child_ready(stream, spec.ready_s, error))
			return false;
	return true;
}

static int abandon(struct text *error)
{
	struct text line = { 0 };

	for_each_stream(stream)
		child_kill(stream);
	text_char(error, '\0');
	text_string(&line, "{\"error\": ");
	text_json(&line, error->data);
	text_char(&line, '}');
	say(&line);
	return 0;
}

static int end_early(struct text *error)
{
	text_string(error, "the recorder was asked to end");
	return abandon(error);
}

/* fail() does not wait for them: who is killed may wait for a disk. */
static void kill_programs(void)
{
	for_each_stream(stream)
		if (stream->pid && !stream->reaped)
			child_signal(stream, SIGKILL);
}

/* Waits for orders; false: to end. */
static bool hear(int64_t *t0)
{
	struct pollfd from[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = channel.wake, .events = POLLIN } };
	bool told = false;

	while (!channel.ended && !told) {
		if (poll(from, ARRAY_SIZE(from), -1) < 0)
			continue;
		if (from[1].revents)
			channel.ended = true;
		else
			told = channel_read(t0) || channel.prepare;
	}
	channel.prepare = false;
	return told;
}

static void add_last_line(struct text *out, struct stream *stream)
{
	char *line;

	text_char(&stream->last, '\0');
	line = strchr(stream->last.data, ' '); /* after elapsed, and then after the gap */
	text_json(out, line ? strchr(line + 1, ' ') + 1 : "");
}

static void add_early(struct text *out)
{
	const char *before = "";

	for_each_stream(stream) {
		if (!stream->ended || stream->awaited)
			continue;
		text_string(out, before);
		text_json(out, stream->name);
		text_string(out, ": ");
		add_last_line(out, stream);
		before = ", ";
	}
}

static void add_ends(struct text *out)
{
	const char *before = "";

	for_each_stream(stream) {
		text_string(out, before);
		text_json(out, stream->name);
		if (stream->reaped)
			text_format(out, ": %d", stream->status);
		else
			text_string(out, ": null");
		before = ", ";
	}
}

static void finish(int64_t t0, const char *outcome)
{
	int64_t elapsed = now_ns() - t0;
	struct text line = { 0 };

	text_string(&line, "\"elapsed\": ");
	text_seconds(&line, elapsed);
	event("end", &line);
	text_format(&line, "{\"outcome\": \"%s\", \"elapsed\": ", outcome);
	text_seconds(&line, elapsed);
	text_string(&line, ", \"observer\": {\"name\": \"recorder\", ");
	cost(&line);
	text_string(&line, "}, \"early\": {");
	add_early(&line);
	recorder_stop();
	text_string(&line, "}, \"ends\": {");
	add_ends(&line);
	text_string(&line, "}, \"dropped\": ");
	outlet_dropped_json(&line);
	text_char(&line, '}');
	say(&line);
}

int recorder_main(int argc, char **argv)
{
	int priority = argc > 1 ? atoi(argv[1]) : 0;
	struct list problems = { 0 };
	struct text line = { 0 };
	int64_t t0;

	channel_open();
	spec_read();
	recorder_open();
	recorder_rehearse();
	become_ready(priority, &problems);
	at_fail(kill_programs);
	text_string(&line, "{\"locked\": true}");
	say(&line);
	if (!hear(&t0))
		return end_early(&line);
	if (!prepare(&line))
		return abandon(&line);
	text_format(&line, "{\"prepared\": %d, \"problems\": ", spec.count);
	list_json(&line, &problems, 0);
	text_char(&line, '}');
	say(&line);
	if (!hear(&t0))
		return end_early(&line);
	recorder_start(t0);
	finish(t0, recorder_run(t0 + (int64_t)(spec.timeout_s * NS)));
	return 0;
}
