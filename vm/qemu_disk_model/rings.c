// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU has a ring for each event loop, and up to 10.1 another one for its disks' requests. Since
 * 10.2 these are in the main loop's ring, beside requests that wait for an event, perhaps forever.
 */
#define _GNU_SOURCE
#include "rings.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "qemu.h"

#define MOST_RESULTS 8192 /* completions that QEMU has not handled yet; QEMU's own limit is 256 */

struct io_uring *rings[MOST_RINGS];
int n_rings;

IN_PLACE int io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	struct io_uring_params how = {
		.flags = flags | IORING_SETUP_CQSIZE,
		.cq_entries = MOST_RESULTS,
	};
	int result = io_uring_queue_init_params(entries, ring, &how);

	if (!result && n_rings < MOST_RINGS)
		rings[n_rings++] = ring;
	return result;
}

IN_PLACE void io_uring_queue_exit(struct io_uring *ring)
{
	static void (*exit_it)(struct io_uring *);

	if (!exit_it)
		exit_it = dlsym(RTLD_NEXT, "io_uring_queue_exit");
	EACH_RING(known)
		if (*known == ring) {
			*known = rings[--n_rings];
			break;
		}
	exit_it(ring);
}

int submit_all(struct io_uring *ring, unsigned int wait_for)
{
	static int (*submit)(struct io_uring *, unsigned int);
	int result;

	if (!submit)
		submit = dlsym(RTLD_NEXT, "io_uring_submit_and_wait");
	result = submit(ring, wait_for);
	if (result < 0 && result != -EAGAIN && result != -EBUSY && result != -EINTR) {
		fprintf(stderr, "disk model: io_uring: %s\n", strerror(-result));
		abort();
	}
	return result;
}

/* The entry with this number in the ring; entries of some rings are twice as long. */
static struct io_uring_sqe *entry(const struct io_uring *ring, unsigned int number)
{
	int twice = !!(ring->flags & IORING_SETUP_SQE128);

	return &ring->sq.sqes[(number & ring->sq.ring_mask) << twice];
}

static bool is_of_a_file(const struct io_uring_sqe *request)
{
	return request->opcode == IORING_OP_READV || request->opcode == IORING_OP_WRITEV ||
	       request->opcode == IORING_OP_READ || request->opcode == IORING_OP_WRITE ||
	       request->opcode == IORING_OP_FSYNC;
}

bool has_file_requests(const struct io_uring *ring)
{
	for (unsigned int i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
		if (is_of_a_file(entry(ring, i)))
			return true;
	return false;
}

int take_out(struct io_uring *ring, bool (*take)(const struct io_uring_sqe *request))
{
	size_t bytes = (char *)entry(ring, 1) - (char *)entry(ring, 0);
	unsigned int kept = ring->sq.sqe_head, all = ring->sq.sqe_tail;

	for (unsigned int i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
		if (is_of_a_file(entry(ring, i)) && take(entry(ring, i)))
			continue;
		if (kept != i)
			memcpy(entry(ring, kept), entry(ring, i), bytes);
		kept++;
	}
	ring->sq.sqe_tail = kept;
	return all - kept;
}

static struct io_uring_cqe *result_of(const struct io_uring *ring, uint64_t request)
{
	struct io_uring_cqe *result;
	unsigned int head;

	io_uring_for_each_cqe(ring, head, result)
		if (result->user_data == request)
			return result;
	return NULL;
}

void do_the_rest(const struct io_uring_sqe *request, struct io_uring_cqe *result)
{
	bool reads = request->opcode == IORING_OP_READ || request->opcode == IORING_OP_READV;
	bool is_vector = request->opcode == IORING_OP_READV || request->opcode == IORING_OP_WRITEV;
	struct iovec all = {(void *)(uintptr_t)request->addr, request->len};
	const struct iovec *parts = is_vector ? (void *)(uintptr_t)request->addr : &all;
	unsigned int n_parts = is_vector ? request->len : 1;
	size_t done = result->res > 0 ? result->res : 0, before = 0;

	if (request->opcode == IORING_OP_FSYNC || request->flags & IOSQE_FIXED_FILE ||
	    (result->res <= 0 && result->res != -EAGAIN && result->res != -EINTR))
		return;
	for (unsigned int i = 0; i < n_parts; before += parts[i++].iov_len)
		while (done < before + parts[i].iov_len) {
			char *place = (char *)parts[i].iov_base + (done - before);
			size_t bytes = before + parts[i].iov_len - done;
			off_t at = request->off + done;
			ssize_t more = reads ? pread(request->fd, place, bytes, at) :
					       pwrite(request->fd, place, bytes, at);

			if (more < 0 && errno == EINTR)
				continue;
			if (more <= 0)
				return; /* the end of the file, or an error that QEMU is to see */
			done += more;
			result->res = done;
		}
}

/* Submit the first request in the ring; wait for its end if it is of a file. */
static void finish_first(struct io_uring *ring)
{
	const struct io_uring_sqe request = *entry(ring, ring->sq.sqe_head);
	const bool awaited = is_of_a_file(&request);
	struct io_uring_cqe *result = NULL;

	do {
		submit_all(ring, awaited ? io_uring_cq_ready(ring) + 1 : 0);
		if (awaited)
			result = result_of(ring, request.user_data);
	} while (io_uring_sq_ready(ring) || (awaited && !result));
	if (result)
		do_the_rest(&request, result);
}

/* One after the other: the host may finish them in any order, and the guest would see it. */
void submit_and_finish(struct io_uring *ring)
{
	unsigned int all = ring->sq.sqe_tail;

	while (ring->sq.sqe_head != all) {
		ring->sq.sqe_tail = ring->sq.sqe_head + 1;
		finish_first(ring);
	}
}

void queue_again(struct io_uring *ring, const struct io_uring_sqe *request)
{
	struct io_uring_sqe *place = io_uring_get_sqe(ring);

	if (!place) {
		submit_and_finish(ring);
		place = io_uring_get_sqe(ring);
	}
	*place = *request;
}
