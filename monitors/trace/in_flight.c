/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests and bios whose end was not seen: found with sysfs's help, and dropped. A program that
 * was interrupted by its own kind, or that found no room, may miss an end: what began would stay in
 * flight, and its device busy, for ever.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

/*
 * What began less than that ago is not dropped. The device mapper counts a bio only once dm-crypt
 * has encrypted it (5.18, kernel commit e5524e128f6f), and it may have to queue long for that.
 */
#define OLD_NS (NS / 5)
#define OLD_MAPPED_NS (30 * NS)
#define LOOKS 8   /* so many in a row must find too much where the device has something in flight */
#define FEW 2     /* the same where it has nothing */
#define MOST 1024 /* entries that one look goes through */

struct look {
	int64_t when;
	long long excess, there; /* how much was too much; how much there is by sysfs */
};

struct one {
	const char *name;
	int map, inflight[DATA_DISKS], files, suspended;
	bool whole; /* each of its devices can be asked */
	volatile long long *begun, *dropped;
	struct look looks[LOOKS]; /* those in a row that found too much, the last one first */
	int count;
};

struct begun {
	uint64_t when, key;
};

static struct one devices[3];
static int watched;
static struct begun entries[MOST];

static int open_in(const char *folder, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void in_flight_watch(const char *name, const char *folder, int map, volatile long long *sums,
		     enum sum begun, enum sum dropped, struct list *missing)
{
	int inflight = open_in(folder, "inflight");
	struct one *one = devices;

	while (one < devices + watched && one->map != map)
		one++;
	if (one == devices + watched) {
		*one = (struct one){ .name = name, .map = map, .whole = true };
		one->suspended = open_in(folder, "dm/suspended");
		one->begun = sums + begun;
		one->dropped = sums + dropped;
		memset(entries, 1, sizeof(entries)); /* touched: it is needed when memory is short */
		watched++;
	}
	if (inflight < 0) {
		list_add(missing, "requests in flight: %s/inflight: %s", folder, strerror(errno));
		one->whole = false;
	} else if (one->files < DATA_DISKS) {
		one->inflight[one->files++] = inflight;
	} else {
		close(inflight);
	}
}

/* The sum of the numbers of a small file; -1 if it cannot be read. */
static long long sum_of(int fd)
{
	char data[65], *at = data, *end;
	ssize_t got = pread(fd, data, sizeof(data) - 1, 0);
	long long sum = 0;

	if (got <= 0)
		return -1;
	data[got] = 0;
	for (;; at = end) {
		long long number = strtoll(at, &end, 10);

		if (end == at)
			return sum;
		sum += number;
	}
}

/* What its devices have in flight by sysfs; -1 if one cannot be read. */
static long long there_are(const struct one *one)
{
	long long sum = one->whole ? 0 : -1;

	for (int i = 0; i < one->files && sum >= 0; i++) {
		long long found = sum_of(one->inflight[i]);

		sum = found < 0 ? -1 : sum + found;
	}
	return sum;
}

/*
 * Only this process writes to what was dropped, and a program counts an end only if it was the one
 * to take the entry away: neither can be in the other's way.
 */
static void drop(struct one *one, long long most, int64_t before)
{
	uint64_t key, *last = NULL;
	struct in_flight entry;
	int found = 0;

	for (int i = 0; i < MOST && !bpf_map_get_next_key(one->map, last, &key); i++) {
		last = &key;
		if (bpf_map_lookup_elem(one->map, &key, &entry))
			continue;
		entries[found].when = entry.began;
		entries[found++].key = key;
	}
	/* Not qsort(), which may ask for memory. */
	for (int i = 0; i < found && i < most; i++) {
		struct begun oldest, *at = &entries[i];

		for (int j = i + 1; j < found; j++)
			if (entries[j].when < at->when)
				at = &entries[j];
		oldest = *at;
		*at = entries[i];
		if ((int64_t)oldest.when >= before)
			return;
		if (!bpf_map_delete_elem(one->map, &oldest.key))
			++*one->dropped;
	}
}

static void check(struct one *one, int64_t now)
{
	long long excess = 0, there = 0, least, count = *one->begun - *one->dropped;
	int needed;

	if (count > 0 && (there = there_are(one)) >= 0 &&
	    (one->suspended < 0 || !sum_of(one->suspended))) {
		/* Once more: what has ended meanwhile is no excess. */
		long long again = *one->begun - *one->dropped;

		excess = (again < count ? again : count) - there;
	}
	if (excess <= 0) {
		one->count = 0;
		return;
	}
	memmove(one->looks + 1, one->looks, (LOOKS - 1) * sizeof(*one->looks));
	one->looks[0] = (struct look){ now, excess, there };
	if (one->count < LOOKS)
		one->count++;
	needed = there || (one->count > 1 && one->looks[1].there) ? LOOKS : FEW;
	if (one->count < needed)
		return;
	least = excess;
	for (int i = 1; i < needed; i++)
		if (one->looks[i].excess < least)
			least = one->looks[i].excess;
	now -= one->suspended < 0 ? OLD_NS : OLD_MAPPED_NS;
	if (one->looks[needed - 1].when < now)
		now = one->looks[needed - 1].when;
	drop(one, least, now);
	one->count = 0;
}

void in_flight_check(int64_t now)
{
	for (int i = 0; i < watched; i++)
		check(&devices[i], now);
}

void in_flight_close(struct list *problems)
{
	for (int i = 0; i < watched; i++) {
		struct one *one = &devices[i];

		if (*one->dropped)
			list_add(problems, "trace: %lld ends of %s were not seen", *one->dropped,
				 one->name);
		while (one->files)
			close(one->inflight[--one->files]);
		if (one->suspended >= 0)
			close(one->suspended);
	}
	watched = 0;
}
