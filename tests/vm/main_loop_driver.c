// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: vm/qemu_disk_model/main_loop.c with a CPU's thread that waits once, so that the library
 * knows it, and then does what the argument says, while the main thread calls ppoll():
 *     stopped        spin, then wait for the main loop; the process stops as ppoll() begins to
 *                    delay the main thread
 *     spins          never wait
 *     spins-on       never wait, while the main thread has called ppoll() before
 *     not-running    never wait, and the VM does not run
 *     disk           sleep, as if for the host's disk, then wait for the main loop
 *     woken          wait, and be woken by the main thread; it needs a lock to go on, and then
 *                    waits again
 *     holds          never wait, and the main thread holds QEMU's lock
 *     ended          end
 * Prints, as of ppoll's return: whether the thread waits for the main loop, and the nanoseconds that
 * it has run since the call.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "main_loop.h"
#include "qemu.h"
#include "requests.h"

#define SPIN_NS 300000000

__thread bool polling;
static const char *scenario;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrival = PTHREAD_COND_INITIALIZER, wake = PTHREAD_COND_INITIALIZER;
static bool arrived, woken; /* under the lock */
static atomic_bool goes_on, delayed, waits;

static bool is(const char *name)
{
	return !strcmp(scenario, name);
}

void submit_left_requests(const pthread_mutex_t *given_up)
{
	(void)given_up;
}

/* The library asks this first when it has begun to delay the main thread. */
bool runstate_is_running(void)
{
	if (is("stopped") && !atomic_exchange(&delayed, true))
		raise(SIGSTOP);
	return !is("not-running");
}

bool bql_locked(void)
{
	return is("holds");
}

static long long time_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *cpu_thread(void *unused)
{
	pthread_mutex_lock(&lock);
	arrived = true;
	pthread_cond_signal(&arrival);
	while (!woken)
		pthread_cond_wait(&wake, &lock);
	if (is("woken")) {
		goes_on = true;
		pthread_cond_wait(&wake, &lock);
		waits = true;
		pthread_cond_wait(&wake, &lock);
	}
	goes_on = true;
	if (is("ended")) {
		pthread_mutex_unlock(&lock);
		return unused;
	}
	if (is("disk"))
		usleep(300000);
	while (!delayed && !is("disk"))
		;
	for (long long end = time_ns(CLOCK_THREAD_CPUTIME_ID) + SPIN_NS;
	     time_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
		;
	waits = true;
	for (;;)
		pthread_cond_wait(&wake, &lock);
}

static void *unlock_later(void *unused)
{
	usleep(100000);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	const struct timespec at_once = {0};
	clockid_t cpu_clock;
	long long before;
	pthread_t cpu, helper;

	alarm(100);
	if (argc != 2)
		return 2;
	scenario = argv[1];
	own_clock = true;
	pthread_mutex_lock(&lock);
	if (pthread_create(&cpu, NULL, cpu_thread, NULL) || pthread_getcpuclockid(cpu, &cpu_clock))
		return 2;
	while (!arrived)
		pthread_cond_wait(&arrival, &lock);
	woken = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	while (!goes_on)
		sched_yield();
	if (is("ended"))
		pthread_join(cpu, NULL);
	if (is("woken")) {
		pthread_mutex_lock(&lock); /* the thread has given it up: it waits */
		pthread_cond_broadcast(&wake);
		if (pthread_create(&helper, NULL, unlock_later, NULL))
			return 2;
	}
	if (is("spins-on"))
		ppoll(NULL, 0, &at_once, NULL);
	before = time_ns(cpu_clock);
	ppoll(NULL, 0, &at_once, NULL);
	printf("%d ", waits);
	printf("%lld\n", time_ns(cpu_clock) - before);
	fflush(stdout);
	_exit(0); /* the CPU's thread may be spinning or asleep for good */
}
