/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The entries of a map, here: `begin KEY WHEN` puts one in, `check NOW` looks, and each command is
 * answered with the keys that are there and how many were dropped. Arguments: the devices' folders.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "trace/parts.h"

#define MOST 64

static struct {
	uint64_t key, began;
	bool there;
} entries[MOST];
static int count;
static long long sums[SUMS];

static int place(const void *key)
{
	for (int i = 0; i < count; i++)
		if (entries[i].there && !memcmp(&entries[i].key, key, sizeof(uint64_t)))
			return i;
	return -1;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	(void)fd;
	for (int i = key ? place(key) + 1 : 0; i < count; i++)
		if (entries[i].there) {
			memcpy(next, &entries[i].key, sizeof(uint64_t));
			return 0;
		}
	return -ENOENT;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct in_flight *entry = value;

	(void)fd;
	if (place(key) < 0)
		return -ENOENT;
	entry->began = entries[place(key)].began;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)fd;
	if (place(key) < 0)
		return -ENOENT;
	entries[place(key)].there = false;
	return 0;
}

int main(int argc, char **argv)
{
	struct list problems = { 0 };
	unsigned long long one, other;
	char line[128];

	for (int i = 1; i < argc; i++)
		in_flight_watch("crypt", argv[i], 3, sums, SUM_CRYPT_IN_FLIGHT, SUM_CRYPT_DROPPED,
				&problems);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "begin %llu %llu", &one, &other) == 2) {
			entries[count].key = one;
			entries[count].began = other;
			entries[count++].there = true;
			sums[SUM_CRYPT_IN_FLIGHT]++;
		} else if (sscanf(line, "check %llu", &one) == 1) {
			in_flight_check(one);
		}
		printf("%lld", sums[SUM_CRYPT_DROPPED]);
		for (int i = 0; i < count; i++)
			if (entries[i].there)
				printf(" %llu", (unsigned long long)entries[i].key);
		printf("\n");
		fflush(stdout);
	}
	in_flight_close(&problems);
	for (int i = 0; i < problems.count; i++)
		printf("%s\n", problems.items[i]);
	return 0;
}
