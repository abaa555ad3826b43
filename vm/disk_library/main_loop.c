// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's main loop is delayed if the guest's clock counts instructions: the loop makes the clock of
 * a halted CPU leap, and may read the CPU's state before its thread has added up its instructions.
 * So the loop only goes on while that thread waits for it, when the thread has needed a lock for
 * LOOK_NS (the loop may hold it), or after the thread has run for KEPT_NS of its own CPU time. Time
 * of the host would not do: on a busy host the thread may get none, or may wait for the host's disk.
 */
#define _GNU_SOURCE
#include "main_loop.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu.h"
#include "requests.h"

#define KEPT_NS 1000000000LL
#define LOOK_NS 20000000

bool own_clock;
static atomic_uint cpu_waits; /* a futex; the CPU's thread waits, and nothing has woken it yet */
static pthread_cond_t *_Atomic cpu_condition; /* what it waits for */
static atomic_bool cpu_seen;
static atomic_bool cpu_needs_lock;
static clockid_t cpu_clock;   /* of the CPU's thread */
static __thread bool is_cpu; /* this is the CPU's thread */

static void get_to_know_the_cpu(void)
{
	if (pthread_getcpuclockid(pthread_self(), &cpu_clock)) {
		fprintf(stderr, "disk model: the CPU's thread has no clock\n");
		abort();
	}
	is_cpu = cpu_seen = true;
}

/* Only the main thread and the CPU's thread wait without a time limit. */
IN_PLACE int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	bool cpu = own_clock && gettid() != getpid();
	int result;

	if (!wait)
		wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	submit_left_requests(mutex);
	if (cpu) {
		if (!is_cpu)
			get_to_know_the_cpu();
		cpu_condition = condition;
		cpu_waits = 1;
		syscall(SYS_futex, &cpu_waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	result = wait(condition, mutex);
	if (cpu)
		cpu_waits = 0;
	return result;
}

/* On a busy host the CPU's thread runs long after the main loop has woken it, which holds QEMU's
 * lock then: the thread cannot be about to wait. */
IN_PLACE int pthread_cond_broadcast(pthread_cond_t *condition)
{
	static int (*broadcast)(pthread_cond_t *);

	if (!broadcast)
		broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	if (condition == cpu_condition && gettid() == getpid())
		cpu_waits = 0;
	return broadcast(condition);
}

IN_PLACE int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*lock)(pthread_mutex_t *);
	int result;

	if (!lock)
		lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (!is_cpu)
		return lock(mutex);
	result = pthread_mutex_trylock(mutex);
	if (result != EBUSY)
		return result;
	cpu_needs_lock = true;
	result = lock(mutex);
	cpu_needs_lock = false;
	return result;
}

IN_PLACE int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*unlock)(pthread_mutex_t *);

	if (!unlock)
		unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	submit_left_requests(mutex);
	return unlock(mutex);
}

/* -1: the thread has ended. */
static int64_t cpu_time_ns(void)
{
	struct timespec now;

	if (clock_gettime(cpu_clock, &now))
		return -1;
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void wait_for_the_cpu(void)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	int64_t now = cpu_time_ns(), end = now + KEPT_NS;

	for (; !cpu_waits && runstate_is_running() && now >= 0 && now < end; now = cpu_time_ns())
		if (syscall(SYS_futex, &cpu_waits, FUTEX_WAIT_PRIVATE, 0, &look, NULL, 0) &&
		    errno == ETIMEDOUT && cpu_needs_lock)
			break;
}

IN_PLACE int ppoll(struct pollfd *files, nfds_t number, const struct timespec *limit,
		   const sigset_t *mask)
{
	static int (*poll_them)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int result;

	if (!poll_them)
		poll_them = dlsym(RTLD_NEXT, "ppoll");
	result = poll_them(files, number, limit, mask);
	if (own_clock && cpu_seen && !polling && gettid() == getpid())
		wait_for_the_cpu();
	return result;
}

IN_PLACE int __ppoll_chk(struct pollfd *files, nfds_t number, const struct timespec *limit,
			 const sigset_t *mask, size_t size)
{
	return ppoll(files, number, limit, mask);
}
