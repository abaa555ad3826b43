// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "queue.h"

/* One write: a port copies each into one allocation, and large ones run out first. */
#define PIECE (4096 - 3 * sizeof(void *))
struct chunk {
	struct chunk *next;  /* of the same file; stays as it is until the chunk is used anew */
	struct chunk *below; /* of those that are unused */
	size_t at;	     /* place in its file of its first byte */
	char data[PIECE];
};

/*
 * A file may hold two chunks more than its bytes fill: the first is given back only when there is
 * a next one, the last is not full. So 64 files have room for OUTLET_BOUND, more for less.
 */
#define CHUNKS (OUTLET_BOUND / PIECE + 2 * 64)

/* Producer side. */
static struct chunk *region, *unused;
static size_t fresh; /* the first chunk that was never used */
static size_t used, appended;

/* Consumer side. */
static _Atomic(struct chunk *) returned;
static atomic_size_t given, written;

#define load_relaxed(what) atomic_load_explicit(what, memory_order_relaxed)
#define load_acquire(what) atomic_load_explicit(what, memory_order_acquire)
#define store_release(what, value) atomic_store_explicit(what, value, memory_order_release)

void queues_open(void)
{
	if (region)
		return;
	region = mmap(NULL, CHUNKS * sizeof(*region), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		fail("out of memory");
	/* One page touched must not be 2 MiB that are locked. */
	madvise(region, CHUNKS * sizeof(*region), MADV_NOHUGEPAGE);
}

void queues_touch(size_t bytes)
{
	for (; fresh < bytes / sizeof(*region); fresh++) {
		memset(&region[fresh], 0, sizeof(*region));
		region[fresh].below = unused;
		unused = &region[fresh];
	}
}

static size_t free_chunks(void)
{
	return CHUNKS - (used - load_acquire(&given));
}

static struct chunk *take_chunk(void)
{
	struct chunk *chunk;

	if (!unused)
		unused = atomic_exchange_explicit(&returned, NULL, memory_order_acquire);
	chunk = unused;
	if (chunk)
		unused = chunk->below;
	else
		chunk = &region[fresh++];
	used++;
	return chunk;
}

static void give_chunk(struct chunk *chunk)
{
	chunk->below = load_relaxed(&returned);
	while (!atomic_compare_exchange_weak_explicit(&returned, &chunk->below, chunk,
						      memory_order_release, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&given, 1, memory_order_release);
}

size_t queues_size(void)
{
	return appended - load_acquire(&written);
}

static void add_chunk(struct queue *queue, size_t at)
{
	struct chunk *chunk = take_chunk();

	chunk->next = NULL;
	chunk->at = at;
	if (queue->last)
		queue->last->next = chunk;
	else
		atomic_store_explicit(&queue->first, chunk, memory_order_relaxed);
	queue->last = chunk;
}

bool queue_append(struct queue *queue, const char *data, size_t size)
{
	size_t put = load_relaxed(&queue->put), end = put + size;

	if (size > free_chunks() * PIECE)
		return false;
	while (put < end) {
		size_t filled = put % PIECE;
		size_t part = end - put < PIECE - filled ? end - put : PIECE - filled;

		if (!filled)
			add_chunk(queue, put);
		memcpy(queue->last->data + filled, data, part);
		data += part;
		put += part;
	}
	appended += size;
	store_release(&queue->put, end);
	return true;
}

/* A chunk that is released meanwhile is not used again before this has returned. */
void queue_rest(const struct queue *queue, uint64_t *lines, size_t *bytes)
{
	const struct chunk *chunk = load_acquire(&queue->first);
	size_t put = load_relaxed(&queue->put);
	size_t taken = load_acquire(&queue->taken); /* not before `first` */

	*lines = 0;
	*bytes = put - taken;
	for (; chunk && taken < put; chunk = chunk->next) {
		size_t end = chunk->at + PIECE < put ? chunk->at + PIECE : put;

		if (taken >= end)
			continue;
		*lines += lines_of(chunk->data + (taken - chunk->at), end - taken);
		taken = end;
	}
}

uint64_t lines_of(const char *data, size_t size)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

size_t queue_end(const struct queue *queue)
{
	return load_acquire(&queue->put);
}

size_t queue_piece(struct queue *queue, size_t end, const char **data)
{
	struct chunk *first = load_relaxed(&queue->first);
	size_t taken = load_relaxed(&queue->taken), size;

	if (taken == end)
		return 0;
	if (taken == first->at + PIECE) {
		struct chunk *next = first->next;

		store_release(&queue->first, next);
		give_chunk(first);
		first = next;
	}
	*data = first->data + (taken - first->at);
	size = first->at + PIECE - taken;
	return size < end - taken ? size : end - taken;
}

void queue_forget(struct queue *queue, size_t size)
{
	store_release(&queue->taken, load_relaxed(&queue->taken) + size);
	atomic_fetch_add_explicit(&written, size, memory_order_release);
}
