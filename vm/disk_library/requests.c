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

#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "disk.h"
#include "qemu.h"
#include "rings.h"

#define MOST_ROUNDS 1000 /* of QEMU's events that come before ours */

static struct io_uring *uring;
static uint64_t timer[TIMER_BYTES / 8];
static bool ready;
static long n_held, n_in_time;
bool polling;

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
	put_into(disk, request, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
	n_held++;
	return true;
}

static void get_ready(struct io_uring *ring);

/* Of the requests that wait in a ring, those of modelled disks are held, all others of files are
 * done. Of a ring without such requests any thread may ask this; else it has QEMU's lock. */
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

/* QEMU hears of what is done now, and not when its main loop comes to it: the guest would go on. */
static void let_qemu_hear(struct io_uring *ring)
{
	polling = true;
	for (int rounds = 0; io_uring_cq_ready(ring) && rounds < MOST_ROUNDS; rounds++)
		aio_poll(qemu_get_aio_context(), true);
	polling = false;
	/* What wakes the main loop may be a request of this ring, and have to be made anew. */
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
				put_back(uring, &disk->served[i].sqe);
				n_in_time++;
			} else {
				disk->served[kept++] = disk->served[i];
			}
		disk->n_served = kept;
	}
	submit_and_finish(uring);
	dispatch();
	let_qemu_hear(uring);
}

/* Nobody's clock goes on, or somebody waits for the end of all requests: all are done now. */
static void release_all(void)
{
	EACH_DISK(disk) {
		for (int i = 0; i < disk->n_served; i++)
			put_back(uring, &disk->served[i].sqe);
		for (int i = 0; i < disk->n_waiting; i++)
			put_back(uring, &disk->waiting[i].sqe);
		disk->n_served = disk->n_waiting = 0;
	}
	submit_and_finish(uring);
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

void see_to_requests(const pthread_mutex_t *given_up)
{
	bool known;

	if (polling || gettid() == getpid() || !mutex_is_bql || !bql_locked || !bql_update_status)
		return;
	EACH_RING(ring) {
		if (!has_file_requests(*ring) || !mutex_is_bql(given_up))
			continue;
		/* QEMU has already noted that this thread is without the lock, and it still has it. */
		known = bql_locked();
		if (!known)
			bql_update_status(true);
		submit_others(*ring);
		let_qemu_hear(*ring);
		/* What was to wake the main loop may have been heard by this thread. */
		qemu_notify_event();
		if (!known)
			bql_update_status(false);
	}
}

void say_counts(void)
{
	long n_old = 0;

	EACH_DISK(disk)
		n_old += disk->n_old;
	if (n_held && getenv("DISK_MODEL_SAY"))
		fprintf(stderr, "disk model: held %ld, done in their time %ld, taken for their age %ld\n",
			n_held, n_in_time, n_old);
}
