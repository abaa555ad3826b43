// SPDX-License-Identifier: GPL-2.0-or-later
/* The io_urings that QEMU makes: what waits in them to be submitted, and how that is submitted. */
#ifndef RINGS_H
#define RINGS_H

#include <liburing.h>
#include <stdbool.h>

#define MOST_RINGS 16

extern struct io_uring *rings[MOST_RINGS];
extern int n_rings;
#define EACH_RING(ring) for (struct io_uring **ring = rings; ring < rings + n_rings; ring++)

/* Whether a request that a file answers waits in the ring, which may be another thread's. */
bool has_file_requests(const struct io_uring *ring);
/* Take those requests of files out of the ring that take() takes, in their order: how many. */
int take_out(struct io_uring *ring, bool (*take)(const struct io_uring_sqe *request));
/* liburing's io_uring_submit_and_wait, but for errors that only a bug of ours could cause. */
int submit_all(struct io_uring *ring, unsigned int wait_for);
/* Submit all that waits in the ring; all requests of files among it are done then. */
void submit_and_finish(struct io_uring *ring);
/* One more request that waits in the ring. */
void put_back(struct io_uring *ring, const struct io_uring_sqe *request);

#endif
