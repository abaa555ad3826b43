// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "common.h"

void beacon_open(struct beacon *beacon, int memory, int event, int count, char **names)
{
	size_t size = (count ? count : 1) * BEACON_WORDS * sizeof(uint64_t);

	beacon->words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (beacon->words == MAP_FAILED)
		fail("the beacon cannot be mapped: %m");
	beacon->event = event;
	beacon->count = count;
	beacon->names = names;
}

int beacon_slot(const struct beacon *beacon, const char *name)
{
	for (int slot = 0; slot < beacon->count; slot++)
		if (!strcmp(beacon->names[slot], name))
			return slot;
	return -1;
}

static void set(struct beacon *beacon, int slot, int word, uint64_t value)
{
	__atomic_store_n(&beacon->words[BEACON_WORDS * slot + word], value, __ATOMIC_RELEASE);
}

/* The pid last, as it says that the others count. */
void beacon_began(struct beacon *beacon, int slot, int pid, int64_t now)
{
	set(beacon, slot, 1, (uint64_t)now);
	set(beacon, slot, 0, (uint64_t)pid);
}

void beacon_said(struct beacon *beacon, int slot, int64_t now, uint64_t lines)
{
	int64_t silent = now - (int64_t)beacon_word(beacon, slot, 1);

	set(beacon, slot, 2, lines);
	set(beacon, slot, 1, (uint64_t)now);
	if (silent >= BEACON_SILENCE_NS)
		eventfd_write(beacon->event, 1);
}

void beacon_ended(struct beacon *beacon, int slot)
{
	set(beacon, slot, 0, 0);
}

void beacon_heard(struct beacon *beacon)
{
	eventfd_t pokes;

	eventfd_read(beacon->event, &pokes);
}
