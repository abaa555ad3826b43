// SPDX-License-Identifier: GPL-2.0-or-later
/* A guest's way out for results: contract/results_memory.py describes the layout of a lane. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lane.h"

#define LINK ".results-memory"
#define LANE_BYTES (4 << 20)
#define NAMES 128 /* from here on the names of files */
#define NAME_BYTES 64
#define DATA 4096 /* from here on the ring */
#define RING_BYTES (LANE_BYTES - DATA)
#define PIECE (64 << 10)
#define PADDED(size) (((size) + 7) & ~(size_t)7)

struct counter {
	_Alignas(64) _Atomic uint64_t bytes;
};

struct lane {
	struct counter put, taken; /* by us; by the host */
};

struct record {
	uint64_t stamp_ns;
	uint32_t size, file;
};

int lane_number = 1;
static struct lane *lane;
static char *ring;
static uint64_t put;
static uint32_t files;

bool lane_open(const char *folder)
{
	struct text path = { 0 };
	int fd;

	if (lane)
		return true;
	text_format(&path, "%s/" LINK "%c", folder, '\0');
	fd = open(path.data, O_RDWR | O_CLOEXEC);
	free(path.data);
	if (fd < 0)
		return false;
	lane = mmap(NULL, LANE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    (off_t)lane_number * LANE_BYTES);
	if (lane == MAP_FAILED)
		fail("the memory for results cannot be mapped: %s", strerror(errno));
	/* A program that is started needs none of its page tables. */
	madvise(lane, LANE_BYTES, MADV_DONTFORK);
	close(fd);
	ring = (char *)lane + DATA;
	put = lane->put.bytes;
	return true;
}

size_t lane_waiting(void)
{
	return put - atomic_load_explicit(&lane->taken.bytes, memory_order_acquire);
}

static void copy_in(const void *data, size_t size)
{
	size_t at = put % RING_BYTES;
	size_t first = size < RING_BYTES - at ? size : RING_BYTES - at;

	memcpy(ring + at, data, first);
	memcpy(ring, (const char *)data + first, size - first);
	put += size;
}

static void put_record(uint32_t file, const char *data, size_t size)
{
	static const char zeros[8];
	struct record record = { (uint64_t)now_ns(), (uint32_t)size, file };

	copy_in(&record, sizeof(record));
	copy_in(data, size);
	copy_in(zeros, PADDED(size) - size);
	/* Last: the host sees all of a record, or nothing. */
	atomic_store_explicit(&lane->put.bytes, put, memory_order_release);
}

bool lane_put(uint32_t file, const char *data, size_t size)
{
	size_t records = (size + PIECE - 1) / PIECE;

	if (lane_waiting() + PADDED(size) + records * sizeof(struct record) > RING_BYTES)
		return false;
	for (size_t at = 0; at < size; at += PIECE)
		put_record(file, data + at, size - at < PIECE ? size - at : PIECE);
	return true;
}

uint32_t lane_file(const char *name)
{
	char *to = (char *)lane + NAMES + files * NAME_BYTES;

	if (to + NAME_BYTES > ring || strlen(name) >= NAME_BYTES)
		fail("%s: one file too many for the memory for results, or too long a name", name);
	memset(to, 0, NAME_BYTES);
	strcpy(to, name);
	return files++;
}
