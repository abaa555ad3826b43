// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A disk whose requests take the time that a model says, on the clock of the guest that waits.
 *
 * Preloaded into QEMU. One file, named by its inode, is the modelled disk: its requests are taken
 * out of the io_uring that QEMU submits, kept until a timer on QEMU_CLOCK_VIRTUAL says that the disk
 * would have done them, and submitted then. All other requests are submitted at once. Each
 * submission waits for its end, so that no time passes in the guest while the host's disk works:
 * with an instruction counter as clock, an idle guest's time would leap meanwhile.
 *
 * QEMU's main loop is kept back, too: it lets the clock of a halted CPU leap, and may look at the
 * CPU before its thread has added up what it has done. So the loop comes round while that thread
 * waits for it, or when it was kept for KEPT_NS.
 *
 * In the environment: DISK_MODEL, DEVICE INODE ROTATES PARALLEL ACCESS_NS BYTES_PER_S of the
 * modelled disk, if there is one; DISK_MODEL_OWN_CLOCK, if the guest's clock counts instructions.
 *
 * A request takes its access time, then its bytes at the rate of the interface. A disk that rotates
 * does one at a time: no access where the last one ended, no more than the way of the platter to a
 * little beyond it. Flash does PARALLEL accesses at a time; their bytes share the interface.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* QEMU's own, exported for its modules; include/qemu/timer.h, block/aio.h, sysemu/runstate.h. */
#define QEMU_CLOCK_VIRTUAL 1
#define TIMER_BYTES 256 /* a QEMUTimer has less than 64 */
typedef void callback(void *opaque);
extern int64_t qemu_clock_get_ns(int clock) __attribute__((weak));
extern void timer_init_full(void *timer, void *group, int clock, int scale, int attributes,
			    callback *call, void *opaque) __attribute__((weak));
extern void timer_mod_ns(void *timer, int64_t at) __attribute__((weak));
extern bool runstate_is_running(void) __attribute__((weak));
extern void *qemu_add_vm_change_state_handler(void (*call)(void *opaque, bool running, int state),
					      void *opaque) __attribute__((weak));
extern void *qemu_get_aio_context(void) __attribute__((weak));
extern bool aio_poll(void *context, bool blocking) __attribute__((weak));
extern void aio_bh_schedule_oneshot_full(void *context, callback *call, void *opaque,
					 const char *name) __attribute__((weak));

#define MOST_WAITING 4096
#define MOST_PARALLEL 256
#define MOST_ROUNDS 1000 /* of QEMU's events that come before ours */
#define KEPT_NS 100000000

struct request {
	struct io_uring_sqe sqe;
	int64_t bytes, done;
};

static struct {
	bool on, rotates;
	int parallel;
	int64_t access_ns;
	double bytes_per_ns;
	unsigned long device, inode;
} model;
static struct io_uring *uring;
static struct request waiting[MOST_WAITING], served[MOST_PARALLEL];
static int n_waiting, n_served;
static int64_t head, interface_free; /* where the last request ended; when its bytes were over */
static uint64_t timer[TIMER_BYTES / 8];
static bool ready, polling;
static bool own_clock; /* the guest's counts its instructions */
static atomic_uint cpu_waits; /* a futex: for the main loop */
static atomic_bool cpu_seen;

__attribute__((constructor)) static void read_model(void)
{
	const char *text = getenv("DISK_MODEL");
	double bytes_per_s;
	int rotates;

	/* Whoever starts QEMU has this library, too. */
	if (strncmp(program_invocation_short_name, "qemu", 4))
		return;
	own_clock = getenv("DISK_MODEL_OWN_CLOCK") && runstate_is_running;
	if (!text)
		return;
	if (!timer_init_full || !timer_mod_ns || !qemu_clock_get_ns || !runstate_is_running ||
	    !qemu_add_vm_change_state_handler || !qemu_get_aio_context || !aio_poll ||
	    !aio_bh_schedule_oneshot_full) {
		fprintf(stderr, "disk model: this QEMU exports no timers\n");
		exit(1);
	}
	if (sscanf(text, "%lu %lu %d %d %ld %lf", &model.device, &model.inode, &rotates,
		   &model.parallel, &model.access_ns, &bytes_per_s) != 6 ||
	    model.parallel < 1 || model.parallel > MOST_PARALLEL || bytes_per_s <= 0) {
		fprintf(stderr, "disk model: cannot read DISK_MODEL=%s\n", text);
		exit(1);
	}
	model.rotates = rotates;
	if (rotates)
		model.parallel = 1;
	model.bytes_per_ns = bytes_per_s / 1e9;
	model.on = true;
	if (getenv("DISK_MODEL_SAY"))
		fprintf(stderr, "disk model: on\n");
}

static int64_t bytes_of(const struct io_uring_sqe *sqe)
{
	const struct iovec *vector = (const void *)(uintptr_t)sqe->addr;
	int64_t sum = 0;

	if (sqe->opcode == IORING_OP_READ || sqe->opcode == IORING_OP_WRITE)
		return sqe->len;
	for (unsigned int i = 0; i < sqe->len; i++)
		sum += vector[i].iov_len;
	return sum;
}

static bool is_modelled(const struct io_uring_sqe *sqe)
{
	struct stat found;

	if (sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV &&
	    sqe->opcode != IORING_OP_READ && sqe->opcode != IORING_OP_WRITE)
		return false;
	return !fstat(sqe->fd, &found) && found.st_dev == model.device &&
	       found.st_ino == model.inode;
}

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

/* What the drive itself would choose: the request that goes on where it is, else the oldest. */
static struct request take_next(void)
{
	struct request found;
	int place = 0;

	if (model.rotates)
		for (int i = 0; i < n_waiting; i++)
			if ((int64_t)waiting[i].sqe.off == head) {
				place = i;
				break;
			}
	found = waiting[place];
	n_waiting--;
	memmove(&waiting[place], &waiting[place + 1], (n_waiting - place) * sizeof(found));
	return found;
}

static int64_t access_ns(const struct request *one)
{
	int64_t way = (int64_t)one->sqe.off - head;

	if (model.rotates && way >= 0 && way / model.bytes_per_ns < model.access_ns)
		return way / model.bytes_per_ns;
	return model.access_ns;
}

static void dispatch(void)
{
	int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), first = INT64_MAX;

	while (n_waiting && n_served < model.parallel) {
		struct request one = take_next();
		int64_t from = now + access_ns(&one);

		if (from < interface_free)
			from = interface_free;
		one.done = from + one.bytes / model.bytes_per_ns;
		interface_free = one.done;
		head = one.sqe.off + one.bytes;
		served[n_served++] = one;
	}
	for (int i = 0; i < n_served; i++)
		if (served[i].done < first)
			first = served[i].done;
	if (n_served)
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
	int kept = 0;

	for (int i = 0; i < n_served; i++)
		if (served[i].done <= now)
			put_back(&served[i]);
		else
			served[kept++] = served[i];
	n_served = kept;
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
	for (int i = 0; i < n_served; i++)
		put_back(&served[i]);
	for (int i = 0; i < n_waiting; i++)
		put_back(&waiting[i]);
	n_served = n_waiting = 0;
	submit_and_wait(uring);
}

static void state_changed(void *unused, bool running, int state)
{
	if (!running && n_served)
		release_all();
}

static void look_for_a_drain(void *unused)
{
	/* A guest that resets its disk waits in its own thread, and holds up all timers. */
	if (n_served && !polling && gettid() != getpid())
		release_all();
}

static void *watch(void *unused)
{
	for (;;) {
		usleep(100000);
		if (n_served)
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

int io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	unsigned int mask = *sq->kring_mask, kept = sq->sqe_head, all = sq->sqe_tail - sq->sqe_head;

	if (model.on && runstate_is_running()) {
		for (unsigned int i = sq->sqe_head; i != sq->sqe_tail; i++) {
			struct io_uring_sqe *sqe = &sq->sqes[i & mask];

			if (!is_modelled(sqe) || n_waiting == MOST_WAITING) {
				if (kept != i)
					sq->sqes[kept & mask] = *sqe;
				kept++;
				continue;
			}
			if (!ready)
				get_ready(ring);
			waiting[n_waiting].bytes = bytes_of(sqe);
			waiting[n_waiting++].sqe = *sqe;
		}
		sq->sqe_tail = kept;
	}
	submit_and_wait(ring);
	if (n_waiting)
		dispatch();
	return all;
}

/* The CPU's thread is the only one beside the main one that waits without a limit. */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	bool cpu = own_clock && gettid() != getpid();
	int result;

	if (!wait)
		wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
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

int ppoll(struct pollfd *files, nfds_t number, const struct timespec *limit, const sigset_t *mask)
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

int __ppoll_chk(struct pollfd *files, nfds_t number, const struct timespec *limit,
		const sigset_t *mask, size_t size)
{
	return ppoll(files, number, limit, mask);
}
