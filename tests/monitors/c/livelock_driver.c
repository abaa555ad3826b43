// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: monitors/evidence/livelock.c, told what to do.
 *     livelock AFTER PAGES              a new one: for how many samples it has room
 *     feed AT LINES SCANNED TAKEN RECORDS   why, or nothing
 *     pages VMSTAT                      scanned and taken
 *     watch AFTER LOG                   a new one, of the beacon's `heartbeat` and `gitk-1`
 *     said SLOT LINES                   so far, of the heartbeat (0) or the gitk (1)
 *     watched SECONDS                   why, or nothing
 */
#define _GNU_SOURCE
#include "evidence/evidence.h"
#include "orders.h"

static struct livelock lock;
static struct watch watch;
static uint64_t shown[2 * BEACON_WORDS];

static void do_livelock(void)
{
	livelock_open(&lock, real(1), number(2));
	text_number(&out, lock.room);
}

static void do_feed(void)
{
	struct livelock_sample sample = { .at = real(1), .lines = number(2), .scanned = number(3),
					  .taken = number(4), .records = number(5) };

	livelock_feed(&lock, &sample, &out);
}

static void do_pages(void)
{
	int64_t scanned, taken;
	size_t size;
	char *data = bytes(1, &size);

	data = realloc(data, size + 1);
	data[size] = '\0';
	vmstat_pages(data, &scanned, &taken);
	text_format(&out, "%lld %lld", (long long)scanned, (long long)taken);
	free(data);
}

static void do_watch(void)
{
	static char *names[] = { "heartbeat", "gitk-1" };
	static const struct beacon beacon = { .words = shown, .count = 2, .names = names };

	watch_open(&watch, &beacon, "01", real(1), words[2]);
	watch_rehearse(&watch);
}

static void do_said(void)
{
	shown[BEACON_WORDS * number(1) + 2] = (uint64_t)number(2);
}

static void do_watched(void)
{
	watch_look(&watch, nanoseconds(1), &out);
}

int main(void)
{
	static const struct order orders[] = {
		{ "livelock", do_livelock }, { "feed", do_feed },	{ "pages", do_pages },
		{ "watch", do_watch },	     { "said", do_said },	{ "watched", do_watched },
	};

	obey_all(orders, ARRAY_SIZE(orders));
	return 0;
}
