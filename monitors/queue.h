/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes that wait to be written, of several files, in pages of one region. One thread appends,
 * another one takes, and neither ever waits for the other: no lock, no futex, which allocates in
 * the kernel when it is contended. A page that was written goes back to who appends, so in normal
 * operation the same few are used again and again, and only those are ever touched, and so locked.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include <stdatomic.h>

#include "common.h"

struct queue {
	_Atomic(struct chunk *) first; /* the chunk whose bytes are taken next; NULL before it */
	struct chunk *last;	       /* the producer's */
	atomic_size_t put, taken;      /* bytes so far; a producer stores `put` last */
};

void queues_open(void);
/* So many bytes can then wait without a page fault. Call it before a taker runs. */
void queues_touch(size_t bytes);

/* Producer side. */
size_t queues_size(void); /* bytes that wait in all of them */
/* All or nothing: false if there is no room left. */
bool queue_append(struct queue *, const char *data, size_t size);
/* What waits; as much as waited at one moment while it is being taken. */
void queue_rest(const struct queue *, uint64_t *lines, size_t *bytes);
uint64_t lines_of(const char *data, size_t size);

/* Consumer side. */
size_t queue_end(const struct queue *); /* put so far */
/* The next piece before this end, as large as one write should be: its size, 0 if there is none. */
size_t queue_piece(struct queue *, size_t end, const char **data);
void queue_forget(struct queue *, size_t size); /* of the piece's bytes */

#endif
