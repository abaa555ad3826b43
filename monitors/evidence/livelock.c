// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tells a live-lock from a stall: nothing moves any more, and yet the kernel works flat out.
 *
 * The original of this test left a machine "spewing out error messages" for eight hours: such a
 * run ends here, with its evidence. Flat out is reclaim that scans much and gets next to nothing
 * for it, or a flood of the kernel's warnings. A machine that waits (for a frozen or a slow disk,
 * for a program that was stopped) is none, nor one that was itself stopped for a while: what waits
 * for swap-in gets its pages from reclaim, if few. Failed allocations count as far as the kernel
 * logs them: hundreds a second are usual that have something to fall back to (mempool_alloc).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence.h"

#define LINES_PER_S (1 / 60.0) /* of all that count: not more than this is (nearly) nothing */
#define BUSY 0.8 /* share of the time in which reclaim runs flat out, or warnings pour in */
#define GAP_S 10 /* between two feeds: then we, and so the machine, did not run */
#define SCANNED 0.25 /* of all memory: a second, is flat out */
#define SCANNED_AT_MOST 50000 /* pages, likewise */
#define TAKEN 0.1 /* of the pages scanned: reclaim that gets so many makes progress */
#define FLOOD 5 /* warnings or worse in the kernel's log, a second */
#define WARNING 4 /* KERN_WARNING */

#define PERIOD_NS (9 * NS / 10) /* between two looks: a second, at ticks that come a little early */
#define PERIOD_S 0.9
#define MOST_SAMPLES 1024 /* in the window: in one of more than 15 minutes they are further apart */
#define MOST_RECORDS 64 /* of the log that one look counts */

/* Holds all of /proc/vmstat, or a record of /dev/kmsg. */
static char data[16384];

void livelock_open(struct livelock *lock, double after_s, int64_t pages)
{
	memset(lock, 0, sizeof(*lock));
	lock->after_s = after_s;
	lock->flat_out = SCANNED * (double)pages;
	if (lock->flat_out > SCANNED_AT_MOST)
		lock->flat_out = SCANNED_AT_MOST;
	lock->room = MOST_SAMPLES;
	if (after_s < (MOST_SAMPLES - 4) * PERIOD_S)
		lock->room = 4 + (int)(after_s / PERIOD_S);
	/* Of all that come once a second, if there is room for them. */
	lock->apart_s = after_s / (lock->room - 3);
	lock->window = room_memory(sizeof(*lock->window) * (size_t)lock->room);
}

/* Seconds that were busy since the last sample; below 0: everything begins anew. */
static double busy_since(const struct livelock *lock, const struct livelock_sample *now)
{
	const struct livelock_sample *last = &lock->window[lock->count - 1];
	double spent = now->at - last->at;
	double scanned = (double)(now->scanned - last->scanned);
	double taken = (double)(now->taken - last->taken);

	if (!(spent > 0 && spent <= GAP_S) || now->lines < last->lines)
		return -1;
	if (scanned >= lock->flat_out * spent && taken < TAKEN * scanned)
		return spent;
	return (double)(now->records - last->records) >= FLOOD * spent ? spent : 0;
}

/* Whether the last sample may be replaced, as what it says is a sum. */
static bool too_close(const struct livelock *lock)
{
	const struct livelock_sample *last = &lock->window[lock->count - 1];

	return lock->count > 1 &&
	       (last->at - last[-1].at < lock->apart_s || lock->count == lock->room);
}

/* Adds the sample, and drops those that a full window before it does not need. */
static void slide(struct livelock *lock, const struct livelock_sample *now, double busy)
{
	int drop = 0;

	if (too_close(lock))
		lock->count--;
	lock->window[lock->count] = *now;
	lock->window[lock->count++].busy = busy;
	while (lock->count - drop > 2 && lock->window[drop + 1].at <= now->at - lock->after_s)
		drop++;
	lock->count -= drop;
	memmove(lock->window, lock->window + drop, sizeof(*now) * (size_t)lock->count);
}

bool livelock_feed(struct livelock *lock, const struct livelock_sample *now, struct text *why)
{
	double busy = lock->count ? busy_since(lock, now) : 0, span;
	const struct livelock_sample *first;
	int64_t lines;

	if (busy < 0)
		lock->count = 0;
	slide(lock, now, lock->count ? lock->window[lock->count - 1].busy + busy : 0);
	first = &lock->window[0];
	busy = lock->window[lock->count - 1].busy - first->busy;
	span = now->at - first->at;
	lines = now->lines - first->lines;
	if (span < lock->after_s || (double)lines > LINES_PER_S * span || busy < BUSY * span)
		return false;
	text_format(why,
		    "live-lock: %lld lines of what should end in %.0f s, while the kernel "
		    "scanned %.0f pages a second, took %.0f of them, and its log got %lld warnings",
		    (long long)lines, span, (double)(now->scanned - first->scanned) / span,
		    (double)(now->taken - first->taken) / span,
		    (long long)(now->records - first->records));
	return true;
}

/*
 * Up to 4.7 (e1a556374abc) a counter for each zone, `pgscan_direct_normal`; pgscan_direct_throttle
 * counts something else. pgscan_anon and pgscan_file (5.8) are the same pages once more.
 */
static bool is_counter(const char *line, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(line, prefix, length))
		return false;
	line += length;
	return !strncmp(line, "_kswapd", 7) ||
	       (!strncmp(line, "_direct", 7) && strncmp(line, "_direct_throttle ", 17));
}

static int64_t value(const char *line)
{
	const char *blank = strchr(line, ' ');

	return blank ? strtoll(blank, NULL, 10) : 0;
}

void vmstat_pages(const char *vmstat, int64_t *scanned, int64_t *taken)
{
	*scanned = *taken = 0;
	for (const char *line = vmstat; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_counter(line, "pgscan"))
			*scanned += value(line);
		else if (is_counter(line, "pgsteal"))
			*taken += value(line);
	}
}

static void read_vmstat(int fd, int64_t *scanned, int64_t *taken)
{
	size_t used = 0;
	ssize_t size;

	while (used < sizeof(data) - 1 &&
	       (size = pread(fd, data + used, sizeof(data) - 1 - used, (off_t)used)) > 0)
		used += (size_t)size;
	data[used] = 0;
	vmstat_pages(data, scanned, taken);
}

void watch_open(struct watch *watch, const struct beacon *beacon, const char *finite,
		double after_s, const char *log)
{
	memset(watch, 0, sizeof(*watch));
	livelock_open(&watch->lock, after_s, sysconf(_SC_PHYS_PAGES));
	watch->beacon = beacon;
	watch->finite = finite;
	watch->vmstat = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	watch->log = open(log, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (watch->log >= 0)
		lseek(watch->log, 0, SEEK_END);
}

/* Warnings since the last look, as far as FLOOD asks: of a flood the rest is left. */
static void count_records(struct watch *watch)
{
	for (int i = 0; i < MOST_RECORDS && watch->log >= 0; i++) {
		ssize_t size = read(watch->log, data, sizeof(data) - 1);
		char *end;

		if (size < 0 && errno == EAGAIN)
			return;
		if (size < 0 && errno == EPIPE)
			continue; /* what came next is overwritten: on with what is there */
		if (size < 0)
			break;
		data[size] = 0;
		watch->records += (strtoul(data, &end, 10) & 7) <= WARNING && *end == ',';
	}
	if (watch->log >= 0)
		lseek(watch->log, 0, SEEK_END);
}

void watch_rehearse(struct watch *watch)
{
	int64_t scanned, taken;

	memset(data, 0, sizeof(data));
	read_vmstat(watch->vmstat, &scanned, &taken);
	count_records(watch);
}

bool watch_look(struct watch *watch, int64_t now, struct text *why)
{
	const struct beacon *beacon = watch->beacon;
	struct livelock_sample sample = { .at = (double)now / NS };

	if (watch->said || now - watch->looked < PERIOD_NS)
		return false;
	watch->looked = now;
	count_records(watch);
	sample.records = watch->records;
	for (int slot = 0; slot < beacon->count; slot++)
		if (watch->finite[slot] == '1')
			sample.lines += (int64_t)beacon_word(beacon, slot, 2);
	read_vmstat(watch->vmstat, &sample.scanned, &sample.taken);
	watch->said = livelock_feed(&watch->lock, &sample, why);
	return watch->said;
}
