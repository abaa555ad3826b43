// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each modelled disk is a file, named by its inode: its requests are taken out of the io_uring that
 * QEMU submits, kept until a timer on QEMU_CLOCK_VIRTUAL says that the disk would have done them,
 * and submitted then. All other requests are submitted at once. Each submission waits for its end,
 * so that no time passes in the guest while the host's disk works: with an instruction counter as
 * clock, an idle guest's time would leap meanwhile.
 */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "qemu.h"

#define MOST_ROUNDS 1000 /* of QEMU's events that come before ours */

static struct io_uring *uring;
static uint64_t timer[TIMER_BYTES / 8];
static bool ready;
bool polling;

/* Until all of it is done: what would be left, QEMU would take for submitted, and the guest hang. */
static void submit_and_wait(struct io_uring *ring)
{
	while (io_uring_sq_ready(ring)) {
		int found = io_uring_submit_and_wait(
			ring, io_uring_cq_ready(ring) + io_uring_sq_ready(ring));

		if (found < 0 && found != -EAGAIN && found != -EINTR) {
			fprintf(stderr, "disk model: io_uring: %s\n", strerror(-found));
			abort();
		}
	}
}

static void dispatch(void)
{
	int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), first = INT64_MAX;

	EACH_DISK(disk) {
		dispatch_on(disk, now);
		for (int i = 0; i < disk->n_served; i++)
			if (disk->served[i].done < first)
				first = disk->served[i].done;
	}
	if (first < INT64_MAX)
		timer_mod_ns(timer, first);
}

static void put_back(const struct request *one)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(uring);

	if (!sqe) {
		submit_and_wait(uring);
		sqe = io_uring_get_sqe(uring);
	}
	*sqe = one->sqe;
}

static void finish_those_done(void *unused)
{
	int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

	EACH_DISK(disk) {
		int kept = 0;

		for (int i = 0; i < disk->n_served; i++)
			if (disk->served[i].done <= now)
				put_back(&disk->served[i]);
			else
				disk->served[kept++] = disk->served[i];
		disk->n_served = kept;
	}
	submit_and_wait(uring);
	dispatch();
	/* QEMU hears of it now, and not when its main loop comes to it: the guest would have gone on. */
	polling = true;
	for (int rounds = 0; io_uring_cq_ready(uring) && rounds < MOST_ROUNDS; rounds++)
		aio_poll(qemu_get_aio_context(), true);
	polling = false;
}

/* Nobody's clock goes on, or somebody waits for the end of all requests: all are done now. */
static void release_all(void)
{
	EACH_DISK(disk) {
		for (int i = 0; i < disk->n_served; i++)
			put_back(&disk->served[i]);
		for (int i = 0; i < disk->n_waiting; i++)
			put_back(&disk->waiting[i]);
		disk->n_served = disk->n_waiting = 0;
	}
	submit_and_wait(uring);
}

static void state_changed(void *unused, bool running, int state)
{
	if (!running && any_served())
		release_all();
}

static void look_for_a_drain(void *unused)
{
	/* A guest that resets its disk waits in its own thread, and holds up all timers. */
	if (any_served() && !polling && gettid() != getpid())
		release_all();
}

static void *watch(void *unused)
{
	for (;;) {
		usleep(100000);
		if (any_served())
			aio_bh_schedule_oneshot_full(qemu_get_aio_context(), look_for_a_drain, NULL,
						     "disk-model");
	}
	return NULL;
}

static void get_ready(struct io_uring *ring)
{
	pthread_t thread;

	uring = ring;
	timer_init_full(timer, NULL, QEMU_CLOCK_VIRTUAL, 1, 0, finish_those_done, NULL);
	qemu_add_vm_change_state_handler(state_changed, NULL);
	if (pthread_create(&thread, NULL, watch, NULL)) {
		perror("disk model: pthread_create");
		abort();
	}
	ready = true;
}

IN_PLACE int io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	unsigned int mask = *sq->kring_mask, kept = sq->sqe_head, all = sq->sqe_tail - sq->sqe_head;

	if (n_disks && runstate_is_running()) {
		for (unsigned int i = sq->sqe_head; i != sq->sqe_tail; i++) {
			struct io_uring_sqe *sqe = &sq->sqes[i & mask];

			struct disk *disk = disk_of(sqe);

			if (!disk || disk->n_waiting == MOST_WAITING) {
				if (kept != i)
					sq->sqes[kept & mask] = *sqe;
				kept++;
				continue;
			}
			if (!ready)
				get_ready(ring);
			put_into(disk, sqe);
		}
		sq->sqe_tail = kept;
	}
	submit_and_wait(ring);
	if (any_waiting())
		dispatch();
	return all;
}
