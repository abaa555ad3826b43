// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The third observer: what each stream's tasks spend their time on, and where they wait.
 *
 * One process, started before the load by monitors/launch.py; it speaks and listens as the sampler
 * does, and says {"live_lock": why} when one is found (livelock.c). tasks.tsv: delay accounting of
 * each task of a stream, at every tick while the stream is silent, else once a second, and once
 * more when a silence of 1 s has ended, which the recorder tells through the beacon. blocked.tsv:
 * stacks of streams that are silent for 0.5 s, and of everything else in state D. trace.tsv,
 * allocfail.tsv, reclaim.tsv: sums that trace/ has made in the kernel.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence.h"

#define PATIENCE_NS (10 * NS)
#define LINE_BYTES 4096
#define WHY_BYTES 512

static struct list missing, problems;
static struct text line, why; /* what is said; why it is a live-lock */
static struct beacon beacon;
static struct watch watch;
static struct ticker ticker;
static bool watching;

/* ---- the loop */

static void check_live_lock(int64_t now)
{
	if (!watch_look(&watch, now, &why))
		return;
	text_char(&why, '\0');
	text_string(&line, "{\"live_lock\": ");
	text_json(&line, why.data);
	text_char(&line, '}');
	say(&line);
}

static void tick(int64_t now, int64_t late)
{
	rows_begin(now - ticker.t0, late);
	traced_row();
	streams_seen();
	if (streams_due(now))
		streams_look(now);
	traced_failures(now);
	if (watching)
		check_live_lock(now);
}

static void silences_ended(void)
{
	beacon_heard(&beacon);
	if (!streams_seen() || ticker.number < 0)
		return;
	rows_begin(now_ns() - ticker.t0, 0);
	streams_ended();
}

static void take_order(void)
{
	int64_t t0;

	if (!channel_read(&t0))
		return;
	ticker_start(&ticker, t0);
	cost_begin();
	traced_begin(t0);
	samples_header();
	streams_header();
}

/* Until end of file on stdin, or SIGTERM. */
static void run(void)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = beacon.event, .events = POLLIN },
		{ .fd = channel.wake, .events = POLLIN },
	};

	while (!channel.ended) {
		int64_t deadline = ticker_deadline(&ticker), now = now_ns();
		int64_t left = deadline > now ? deadline - now : 0;
		struct timespec timeout = { left / NS, left % NS };
		int ready = ppoll(fds, ARRAY_SIZE(fds), deadline == NEVER ? NULL : &timeout, NULL);

		if (ready > 0 && fds[0].revents)
			take_order();
		if (ready > 0 && fds[1].revents)
			silences_ended();
		now = now_ns(); /* not before: no row is older than the one above it */
		if (now >= ticker_deadline(&ticker)) {
			tick(now, ticker_late(&ticker, now));
			ticker_taken(&ticker);
		}
	}
}

/* ---- the begin */

/* Does all that is done under load once: what was touched gets locked. */
static void rehearse(void)
{
	rows_open();
	rows_rehearse(true);
	rows_begin(0, 0);
	streams_rehearse();
	traced_rehearse();
	rows_rehearse(false);
	text_reserve(&why, WHY_BYTES);
	text_reserve(&line, LINE_BYTES);
	if (watching)
		watch_rehearse(&watch);
	cost(&line);
	text_clear(&line);
}

static void note_missing(void)
{
	int fd = open("/proc/self/stack", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0 || read(fd, &byte, 1) < 0)
		list_add(&missing, "/proc/PID/stack");
	if (fd >= 0)
		close(fd);
}

static void say_evidence_ready(int priority)
{
	struct locked locked = become_ready(priority, &problems);

	text_format(&line, "{\"ready\": %d, \"problems\": ", getpid());
	list_json(&line, &problems, 0);
	text_string(&line, ", ");
	samples_facts(&line);
	text_string(&line, ", \"not_available\": ");
	list_json(&line, &missing, 0);
	if (priority) {
		text_string(&line, ", ");
		locked_facts(&line, &locked);
	}
	text_char(&line, '}');
	say(&line);
}

/* ---- the end */

static void last_sample(int64_t now)
{
	rows_begin(now - ticker.t0, 0);
	streams_sample();
	traced_end();
}

static void say_end(int told)
{
	size_t unwritten = outlet_finish(PATIENCE_NS);

	text_string(&line, "{\"observer\": {\"name\": \"evidence\", ");
	cost(&line);
	text_format(&line, ", \"worst_late_s\": %.4f}, ", (double)ticker.worst_late / NS);
	ticker_facts(&line, &ticker);
	text_format(&line, ", \"looks\": %ld, ", streams_looks());
	outlet_facts(&line);
	traced_close();
	text_format(&line, ", \"unwritten_bytes\": %zu, \"problems\": ", unwritten);
	list_json(&line, &problems, told);
	text_char(&line, '}');
	say(&line);
}

/* OUT HZ PRIORITY TRACE LIVE_LOCK_S FINITE MEMORY_FD EVENT_FD STREAMS NAME… [PREFIX=DEVICE…] */
int evidence_main(int argc, char **argv)
{
	int count = argc > 9 ? atoi(argv[9]) : -1, told;
	int64_t now;

	if (count < 0 || argc < 10 + count || strlen(argv[6]) != (size_t)count)
		fail("usage: evidence OUT HZ PRIORITY TRACE LIVE_LOCK_S FINITE MEMORY_FD EVENT_FD "
		     "STREAMS NAME… [PREFIX=DEVICE…]");
	channel_open();
	beacon_open(&beacon, atoi(argv[7]), atoi(argv[8]), count, argv + 10);
	streams_open(argv[1], &beacon);
	samples_open(argv[1], &missing);
	if (atoi(argv[4]))
		traced_open(argv[1], argv + 10 + count, argc - 10 - count, &missing, &problems);
	ticker_init(&ticker, atof(argv[2]));
	watching = atof(argv[5]) > 0;
	if (watching)
		watch_open(&watch, &beacon, argv[6], atof(argv[5]), "/dev/kmsg");
	rehearse();
	note_missing();
	say_evidence_ready(atoi(argv[3]));
	told = problems.count;
	run();
	now = now_ns();
	if (ticker.number >= 0 && now >= ticker.t0)
		last_sample(now);
	say_end(told);
	return 0;
}
