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
 * IO that began less than this ago is not dropped. The device mapper counts a bio only once dm-crypt
 * has encrypted it (5.18, kernel commit e5524e128f6f), and it may have to queue long for that.
 */
#define OLD_NS (NS / 5)
#define OLD_MAPPED_NS (30 * NS)
#define SAMPLES 8 /* in a row that must show an excess while the device has IO in flight */
#define FEW 2     /* the same while it has none */
#define MOST 1024 /* entries that one pass reads */

struct excess_sample {
	int64_t when;
	long long excess, there; /* how much was too much; how much there is by sysfs */
};

struct watched_device {
	const char *name;
	int map, inflight[DATA_DISKS], files, suspended;
	bool whole; /* each of its devices can be asked */
	volatile long long *begun, *dropped;
	struct excess_sample samples[SAMPLES]; /* in a row, each too much, the last one first */
	int count;
};

struct begun {
	uint64_t when, key;
};

static struct watched_device devices[3];
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
	struct watched_device *device = devices;

	while (device < devices + watched && device->map != map)
		device++;
	if (device == devices + watched) {
		*device = (struct watched_device){ .name = name, .map = map, .whole = true };
		device->suspended = open_in(folder, "dm/suspended");
		device->begun = sums + begun;
		device->dropped = sums + dropped;
		memset(entries, 1, sizeof(entries)); /* touched: it is needed when memory is short */
		watched++;
	}
	if (inflight < 0) {
		list_add(missing, "requests in flight: %s/inflight: %s", folder, strerror(errno));
		device->whole = false;
	} else if (device->files < DATA_DISKS) {
		device->inflight[device->files++] = inflight;
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
static long long there_are(const struct watched_device *device)
{
	long long sum = device->whole ? 0 : -1;

	for (int i = 0; i < device->files && sum >= 0; i++) {
		long long found = sum_of(device->inflight[i]);

		sum = found < 0 ? -1 : sum + found;
	}
	return sum;
}

/*
 * Only this process writes to what was dropped, and a program counts an end only if it was the one
 * to take the entry away: neither can be in the other's way.
 */
static void drop(struct watched_device *device, long long most, int64_t before)
{
	uint64_t key, *last = NULL;
	struct in_flight entry;
	int found = 0;

	for (int i = 0; i < MOST && !bpf_map_get_next_key(device->map, last, &key); i++) {
		last = &key;
		if (bpf_map_lookup_elem(device->map, &key, &entry))
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
		if (!bpf_map_delete_elem(device->map, &oldest.key))
			++*device->dropped;
	}
}

static void check(struct watched_device *device, int64_t now)
{
	long long excess = 0, there = 0, least, count = *device->begun - *device->dropped;
	int needed;

	if (count > 0 && (there = there_are(device)) >= 0 &&
	    (device->suspended < 0 || !sum_of(device->suspended))) {
		/* Once more: what has ended meanwhile is no excess. */
		long long again = *device->begun - *device->dropped;

		excess = (again < count ? again : count) - there;
	}
	if (excess <= 0) {
		device->count = 0;
		return;
	}
	memmove(device->samples + 1, device->samples, (SAMPLES - 1) * sizeof(*device->samples));
	device->samples[0] = (struct excess_sample){ now, excess, there };
	if (device->count < SAMPLES)
		device->count++;
	needed = there || (device->count > 1 && device->samples[1].there) ? SAMPLES : FEW;
	if (device->count < needed)
		return;
	least = excess;
	for (int i = 1; i < needed; i++)
		if (device->samples[i].excess < least)
			least = device->samples[i].excess;
	now -= device->suspended < 0 ? OLD_NS : OLD_MAPPED_NS;
	if (device->samples[needed - 1].when < now)
		now = device->samples[needed - 1].when;
	drop(device, least, now);
	device->count = 0;
}

void in_flight_check(int64_t now)
{
	for (int i = 0; i < watched; i++)
		check(&devices[i], now);
}

void in_flight_close(struct list *problems)
{
	for (int i = 0; i < watched; i++) {
		struct watched_device *device = &devices[i];

		if (*device->dropped)
			list_add(problems, "trace: %lld ends of %s were not seen", *device->dropped,
				 device->name);
		while (device->files)
			close(device->inflight[--device->files]);
		if (device->suspended >= 0)
			close(device->suspended);
	}
	watched = 0;
}
