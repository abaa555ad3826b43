// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each modelled disk is a file, identified by its inode. Its requests are taken out of the io_uring
 * that QEMU submits, held until a timer on QEMU_CLOCK_VIRTUAL fires at the time at which the disk
 * would have done them, and then submitted. All other requests are submitted at once. Each
 * submission waits for its end, so that no time passes in the guest while the host's disk works:
 * with an instruction counter as clock, an idle guest's time would leap meanwhile.
 */
#define _GNU_SOURCE
#include "requests.h"

#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "disk.h"
#include "qemu.h"
#include "rings.h"

#define MOST_ROUNDS 1000 /* limit for handling QEMU's events that come before ours */

static struct io_uring *uring;
static uint64_t timer[TIMER_BYTES / 8];
static bool ready;
static long n_held, n_in_time;
__thread bool polling;

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

static bool hold(const struct io_uring_sqe *request)
{
	struct disk *disk = disk_of(request);

	if (!disk || disk->n_waiting == MOST_WAITING)
		return false;
	add_waiting(disk, request, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
	n_held++;
	return true;
}

static void get_ready(struct io_uring *ring);

/* Hold the requests in a ring that are for modelled disks; submit all others of files and wait for
 * their end. If the ring has requests for modelled disks, the caller holds QEMU's lock. */
static void submit_others(struct io_uring *ring)
{
	int held = 0;

	if (n_disks && runstate_is_running())
		held = take_out(ring, hold);
	if (held && !ready)
		get_ready(ring);
	submit_and_finish(ring);
	if (held)
		dispatch();
}

/* Let QEMU handle completed requests now: if its main loop did it later, the guest would go on. */
static void handle_completions(struct io_uring *ring)
{
	polling = true;
	for (int rounds = 0; io_uring_cq_ready(ring) && rounds < MOST_ROUNDS; rounds++)
		aio_poll(qemu_get_aio_context(), true);
	polling = false;
	/* The request that wakes the main loop may be in this ring, and must be submitted again. */
	submit_others(ring);
}

static void finish_those_done(void *unused)
{
	int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

	submit_others(uring);
	EACH_DISK(disk) {
		int kept = 0;

		for (int i = 0; i < disk->n_served; i++)
			if (disk->served[i].done <= now) {
				queue_again(uring, &disk->served[i].sqe);
				n_in_time++;
			} else {
				disk->served[kept++] = disk->served[i];
			}
		disk->n_served = kept;
	}
	submit_and_finish(uring);
	/* First, because QEMU's clock leaps to the timer of dispatch() if the guest has nothing to do. */
	handle_completions(uring);
	dispatch();
}

/* The VM is stopped, or is draining its requests: complete all of them at once. */
static void release_all(void)
{
	EACH_DISK(disk) {
		for (int i = 0; i < disk->n_served; i++)
			queue_again(uring, &disk->served[i].sqe);
		for (int i = 0; i < disk->n_waiting; i++)
			queue_again(uring, &disk->waiting[i].sqe);
		disk->n_served = disk->n_waiting = 0;
	}
	submit_and_finish(uring);
}

static void state_changed(void *unused, bool running, int state)
{
	if (!running && any_served())
		release_all();
}

static void detect_drain(void *unused)
{
	/* A guest that resets its disk waits in its own thread, and blocks all timers. */
	if (any_served() && !polling && gettid() != getpid())
		release_all();
}

static void *watch(void *unused)
{
	for (;;) {
		usleep(100000);
		if (any_served())
			aio_bh_schedule_oneshot_full(qemu_get_aio_context(), detect_drain, NULL,
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
	int all = io_uring_sq_ready(ring);

	submit_others(ring);
	return all;
}

IN_PLACE int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait_for)
{
	int all = io_uring_sq_ready(ring), result;

	submit_others(ring);
	result = submit_all(ring, wait_for);
	return result < 0 ? result : all;
}

void submit_left_requests(const pthread_mutex_t *given_up)
{
	bool known;

	if (polling || gettid() == getpid() || !mutex_is_bql || !bql_locked || !bql_update_status)
		return;
	EACH_RING(ring) {
		if (!has_file_requests(*ring) || !mutex_is_bql(given_up))
			continue;
		/* QEMU has already recorded that this thread lacks the lock, but it still holds it. */
		known = bql_locked();
		if (!known)
			bql_update_status(true);
		submit_others(*ring);
		handle_completions(*ring);
		/* This thread may have handled the event that was to wake the main loop. */
		qemu_notify_event();
		if (!known)
			bql_update_status(false);
	}
}

void print_counts(void)
{
	long n_old = 0;

	EACH_DISK(disk)
		n_old += disk->n_old;
	if (n_held && getenv("DISK_MODEL_SAY"))
		fprintf(stderr, "disk model: held %ld, done in their time %ld, taken for their age %ld\n",
			n_held, n_in_time, n_old);
}
