// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU's main loop is delayed if the guest's clock counts instructions: the loop makes the clock of
 * a halted CPU leap, and may read the CPU's state before its thread has added up its instructions.
 * So the loop only goes on while that thread waits for it, while the thread sleeps for another
 * reason (it may need a lock that the loop holds), or after the thread has run for KEPT_NS of its
 * own CPU time. Time of the host would not do: on a busy host the thread may get none of it.
 */
#define _GNU_SOURCE
#include "main_loop.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu.h"
#include "requests.h"

#define KEPT_NS 1000000000LL
#define LOOK_NS 20000000

bool own_clock;
static atomic_uint cpu_waits; /* a futex; the CPU's thread waits for the main loop */
static atomic_bool cpu_seen;
static clockid_t cpu_clock; /* of the CPU's thread */
static int cpu_stat;        /* its /proc/self/task/TID/stat */

static void get_to_know_the_cpu(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", gettid());
	cpu_stat = open(path, O_RDONLY | O_CLOEXEC);
	if (cpu_stat < 0 || pthread_getcpuclockid(pthread_self(), &cpu_clock)) {
		perror("disk model: the CPU's thread");
		abort();
	}
	cpu_seen = true;
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
		if (!cpu_seen)
			get_to_know_the_cpu();
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

static int64_t cpu_time_ns(void)
{
	struct timespec now = {0};

	clock_gettime(cpu_clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static bool cpu_sleeps_or_ended(void)
{
	char stat[128], *name_end;
	ssize_t length = pread(cpu_stat, stat, sizeof(stat) - 1, 0);

	stat[length > 0 ? length : 0] = 0;
	name_end = strrchr(stat, ')');
	return !name_end || !strncmp(name_end, ") S", 3);
}

static void wait_for_the_cpu(void)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	int64_t end = cpu_time_ns() + KEPT_NS;

	while (!cpu_waits && runstate_is_running() && cpu_time_ns() < end)
		if (syscall(SYS_futex, &cpu_waits, FUTEX_WAIT_PRIVATE, 0, &look, NULL, 0) &&
		    errno == ETIMEDOUT && cpu_sleeps_or_ended())
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
