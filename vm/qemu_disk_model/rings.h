// SPDX-License-Identifier: GPL-2.0-or-later
/* The io_urings that QEMU makes: looks at their waiting requests and submits them. */
#ifndef RINGS_H
#define RINGS_H

#include <liburing.h>
#include <stdbool.h>

#define MOST_RINGS 16

extern struct io_uring *rings[MOST_RINGS];
extern int n_rings;
#define EACH_RING(ring) for (struct io_uring **ring = rings; ring < rings + n_rings; ring++)

/* Whether a request of a file waits in the ring, which may belong to another thread. */
bool has_file_requests(const struct io_uring *ring);
/* Remove the requests of files for which take() returns true, in order; returns their number. */
int take_out(struct io_uring *ring, bool (*take)(const struct io_uring_sqe *request));
/* liburing's io_uring_submit_and_wait; aborts on errors that only a bug of ours can cause. */
int submit_all(struct io_uring *ring, unsigned int wait_for);
/* Submit all waiting requests of the ring; on return all those of files are done, as a whole. */
void submit_and_finish(struct io_uring *ring);
/* Do the rest of a request that the kernel did in part or not at all, and correct its result. QEMU
 * would submit it again, but at a time of the host. */
void do_the_rest(const struct io_uring_sqe *request, struct io_uring_cqe *result);
/* Add a request to those that wait in the ring. */
void queue_again(struct io_uring *ring, const struct io_uring_sqe *request);

#endif
