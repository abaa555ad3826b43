// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's main loop is delayed if the guest's clock counts instructions: the loop makes the clock of
 * a halted CPU leap, and may read the CPU's state before its thread has added up its instructions.
 * So the loop only goes on while that thread waits, or after a delay of KEPT_NS.
 */
#define _GNU_SOURCE
#include "main_loop.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu.h"
#include "requests.h"

#define KEPT_NS 100000000

bool own_clock;
static atomic_uint cpu_waits; /* a futex; the CPU's thread waits for the main loop */
static atomic_bool cpu_seen;

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
		cpu_seen = true;
		cpu_waits = 1;
		syscall(SYS_futex, &cpu_waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	result = wait(condition, mutex);
	if (cpu)
		cpu_waits = 0;
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

static void wait_for_the_cpu(void)
{
	struct timespec now, left = {0};
	int64_t end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000000000LL + now.tv_nsec + KEPT_NS;
	while (!cpu_waits && runstate_is_running()) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left.tv_nsec = end - now.tv_sec * 1000000000LL - now.tv_nsec;
		if (left.tv_nsec <= 0)
			break;
		syscall(SYS_futex, &cpu_waits, FUTEX_WAIT_PRIVATE, 0, &left, NULL, 0);
	}
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
