// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's main loop is delayed if the guest's clock counts instructions: the loop makes the clock of
 * a halted CPU leap, and may read the CPU's state before its thread has added up its instructions.
 * So the loop only goes on while that thread waits, or after the thread has run for LONGEST_NS of
 * its own CPU time (AGAIN_NS, if it has not waited since). Host time is no measure: on a busy host
 * the thread may get no CPU, or may wait for the host's disk.
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

#define LONGEST_NS 1000000000LL
#define AGAIN_NS 50000000LL
#define RECHECK_NS 20000000

bool own_clock;
__thread bool is_cpu_thread;
static atomic_uint cpu_waits; /* a futex; the CPU's thread waits, and the loop has not woken it */
static pthread_cond_t *_Atomic cpu_condition; /* what it waits for */
static atomic_bool cpu_runs_long; /* the loop went on while it ran, and it has not waited since */
static atomic_bool cpu_seen;
static clockid_t cpu_clock;

static void register_cpu_thread(void)
{
	if (is_cpu_thread)
		return;
	if (cpu_seen || pthread_getcpuclockid(pthread_self(), &cpu_clock)) {
		fprintf(stderr, "disk model: a second CPU thread, or one without a clock\n");
		abort();
	}
	is_cpu_thread = cpu_seen = true;
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
		register_cpu_thread();
		cpu_runs_long = false;
		cpu_condition = condition;
		cpu_waits = 1;
		syscall(SYS_futex, &cpu_waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	result = wait(condition, mutex);
	if (cpu)
		cpu_waits = 0;
	return result;
}

/* The main thread wakes the CPU's thread with QEMU's lock held. On a busy host that thread may not
 * run for long, but it cannot wait again before it has run. */
IN_PLACE int pthread_cond_broadcast(pthread_cond_t *condition)
{
	static int (*broadcast)(pthread_cond_t *);

	if (!broadcast)
		broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	if (condition == cpu_condition && gettid() == getpid())
		cpu_waits = 0;
	return broadcast(condition);
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
	const struct timespec recheck = {.tv_nsec = RECHECK_NS};
	int64_t now = cpu_time_ns(), end = now + (cpu_runs_long ? AGAIN_NS : LONGEST_NS);

	while (!cpu_waits && runstate_is_running() && now >= 0) {
		if (now >= end) {
			cpu_runs_long = true;
			break;
		}
		syscall(SYS_futex, &cpu_waits, FUTEX_WAIT_PRIVATE, 0, &recheck, NULL, 0);
		now = cpu_time_ns();
	}
}

/* If this thread polls with QEMU's lock held, the CPU's thread may need that lock to go on. */
static bool holds_qemus_lock(void)
{
	if (bql_locked)
		return bql_locked();
	return !qemu_mutex_iothread_locked || qemu_mutex_iothread_locked();
}

IN_PLACE int ppoll(struct pollfd *files, nfds_t number, const struct timespec *limit,
		   const sigset_t *mask)
{
	static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int result;

	if (!real_ppoll)
		real_ppoll = dlsym(RTLD_NEXT, "ppoll");
	result = real_ppoll(files, number, limit, mask);
	if (own_clock && cpu_seen && !polling && gettid() == getpid() && !holds_qemus_lock()) {
		int error = errno;

		wait_for_the_cpu();
		errno = error;
	}
	return result;
}

IN_PLACE int __ppoll_chk(struct pollfd *files, nfds_t number, const struct timespec *limit,
			 const sigset_t *mask, size_t size)
{
	return ppoll(files, number, limit, mask);
}
