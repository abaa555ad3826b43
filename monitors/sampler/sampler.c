// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Samples the kernel's counters on absolute deadlines, and carries its log out, under any load.
 *
 * One process, started before the load by monitors/launch.py. It speaks JSON lines on stdout:
 *     {"ready": pid, "not_available": […], "problems": […], …}   once it is locked in memory
 *     {"observer": {…}, "samples": N, …}                         when it ends
 * and listens on stdin: `t0 SECONDS` (CLOCK_MONOTONIC) starts sampling at t0 + k/hz; end of file
 * or SIGTERM ends it with one last sample. kern.log is written from the start.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler.h"

/*
 * Of a flood: so many records between two looks at the clock (a fraction of a ms), and so long
 * before the log is looked at again.
 */
#define SLICE 64
#define PAUSE_NS (20 * NS / 1000)
#define PATIENCE_NS (10 * NS)
/*
 * A machine that spews out errors for hours must not fill the host's disk; <missed> is what a
 * reader of kern.log knows.
 */
#define LOG_MIB 64
#define LOG_BYTES ((int64_t)LOG_MIB << 20)
#define LAST_SLICES 1000
#define CELL_BYTES 21 /* the most: of 64 bits, and a tab */

static struct table tables[TABLES];
static int table_files[TABLES], log_file;
static struct kmsg kmsg;
static struct ticker ticker;
static struct text row, lines;
static int64_t log_bytes, log_at; /* taken from the kernel; not looked at before */

static void open_files(const char *folder, struct list *missing, const char *root)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/dev/kmsg", root);
	if (!kmsg_open(&kmsg, path))
		list_add(missing, "/dev/kmsg");
	for (int i = 0; i < TABLES; i++)
		if (tables[i].count)
			table_files[i] = outlet_open(folder, tables[i].file);
	log_file = outlet_open(folder, "kern.log");
}

/* last: a row of each table. */
static void take(int64_t now, int64_t late, bool last)
{
	for (int i = 0; i < TABLES; i++) {
		if (!tables[i].count || (!last && ticker.number % tables[i].every))
			continue;
		table_row(&tables[i], &row, now - ticker.t0, late);
		outlet_text(table_files[i], &row);
	}
}

static void put_log(void)
{
	log_bytes += (int64_t)lines.used;
	if (log_bytes > LOG_BYTES) {
		bool first = log_bytes - (int64_t)lines.used <= LOG_BYTES;

		text_clear(&lines);
		if (first)
			text_format(&lines,
				    "<missed> (cut: kern.log has its %d MiB; "
				    "what came later is counted, not kept)\n",
				    LOG_MIB);
		outlet_text(log_file, &lines);
		return;
	}
	/* The log may take up half of the queue: it must not crowd out the samples. */
	if (!outlet_put(log_file, lines.data, lines.used, OUTLET_BOUND / 2))
		outlet_put(log_file, "<missed>\n", 9, 0);
	text_clear(&lines);
}

/* True if the ring is now empty. */
static bool slice(void)
{
	bool empty = kmsg_read(&kmsg, &lines, SLICE);

	if (lines.used)
		put_log();
	return empty;
}

/* All that the ring holds, unless a sample falls due; then the rest after it. */
static void drain(void)
{
	while (!slice())
		if (now_ns() >= ticker_deadline(&ticker))
			return;
	log_at = now_ns() + PAUSE_NS;
}

/* Does all that is done under load once, without a trace: what was touched gets locked. */
static void rehearse(void)
{
	size_t largest = 0;

	for (int i = 0; i < TABLES; i++) {
		size_t size = CELL_BYTES;

		if (!tables[i].count)
			continue;
		table_row(&tables[i], &row, 0, 0);
		for (size_t at = 0; at < row.used; at++)
			size += row.data[at] == '\t' ? CELL_BYTES : 0;
		largest = size > largest ? size : largest;
		text_clear(&row);
	}
	text_reserve(&row, largest);
	if (kmsg.fd >= 0) {
		kmsg_rehearse(&lines);
		drain();
	}
	cost(&row);
	text_clear(&row);
}

static void listen_to_runner(void)
{
	int64_t t0;

	if (!channel_read(&t0))
		return;
	ticker_start(&ticker, t0);
	cost_begin();
	for (int i = 0; i < TABLES; i++) {
		if (!tables[i].count)
			continue;
		table_header(&tables[i], &row);
		outlet_text(table_files[i], &row);
	}
}

static int64_t until(int64_t now, bool log_rests)
{
	int64_t deadline = ticker_deadline(&ticker);

	if (log_rests && log_at < deadline)
		deadline = log_at;
	if (deadline > now + 60 * NS)
		deadline = now + 60 * NS;
	return deadline > now ? deadline - now : 0;
}

static void run(void)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = channel.wake, .events = POLLIN },
		{ .fd = kmsg.fd, .events = POLLIN },
	};

	while (!channel.ended) {
		int64_t now = now_ns();
		bool log_rests = kmsg.fd >= 0 && now < log_at;
		int64_t left = until(now, log_rests);
		struct timespec timeout = { left / NS, left % NS };
		int ready;

		fds[2].fd = log_rests ? -1 : kmsg.fd;
		ready = ppoll(fds, ARRAY_SIZE(fds), &timeout, NULL);
		now = now_ns();
		if (now >= ticker_deadline(&ticker)) {
			take(now, ticker_late(&ticker, now), false);
			ticker_taken(&ticker);
		}
		if (ready > 0 && fds[0].revents)
			listen_to_runner();
		if (ready > 0 && fds[1].revents)
			channel.ended = true;
		if (ready > 0 && fds[2].revents)
			drain();
	}
}

/* One last sample, the rest of the log, everything written out; says the facts. */
static void end(void)
{
	int64_t now = now_ns(), cut;
	size_t unwritten;

	if (ticker.number >= 0 && now >= ticker.t0) {
		take(now, 0, true);
		ticker.samples++;
	}
	for (int i = 0; kmsg.fd >= 0 && i < LAST_SLICES; i++)
		if (slice())
			break;
	unwritten = outlet_finish(PATIENCE_NS);
	cut = log_bytes > LOG_BYTES ? log_bytes - LOG_BYTES : 0;
	text_string(&row, "{\"observer\": {\"name\": \"sampler\", ");
	cost(&row);
	text_format(&row, ", \"worst_late_s\": %.4f}, ", (double)ticker.worst_late / NS);
	ticker_facts(&row, &ticker);
	text_string(&row, ", ");
	outlet_facts(&row);
	text_format(&row,
		    ", \"unwritten_bytes\": %zu, \"log_records\": %lld, \"log_missed\": %lld, "
		    "\"log_cut_bytes\": %lld}",
		    unwritten, (long long)kmsg.records, (long long)kmsg.missed, (long long)cut);
	say(&row);
}

/* sampler OUT HZ PRIORITY ROOT SLABS [SLAB…] [PREFIX=DEVICE…]: see monitors/launch.py */
int sampler_main(int argc, char **argv)
{
	static struct list missing;
	int slabs = argc > 5 ? atoi(argv[5]) : -1;
	char **devices = argv + 6 + slabs;

	if (slabs < 0 || devices > argv + argc)
		fail("usage: sampler OUT HZ PRIORITY ROOT SLABS [SLAB…] [PREFIX=DEVICE…]");
	channel_open();
	ticker_init(&ticker, strtod(argv[2], NULL));
	counters_open(tables, argv[4], devices, (int)(argv + argc - devices), &missing);
	slabs_open(tables + 4, argv[4], argv + 6, slabs, &missing);
	open_files(argv[1], &missing, argv[4]);
	rehearse();
	say_ready(&row, &missing, atoi(argv[3]));
	run();
	end();
	return 0;
}
