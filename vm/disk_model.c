// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Disks whose requests take the time that a model says, on the clock of the guest that waits.
 *
 * Preloaded into QEMU. Each modelled disk is a file, named by its inode: its requests are taken
 * out of the io_uring that QEMU submits, kept until a timer on QEMU_CLOCK_VIRTUAL says that the disk
 * would have done them, and submitted then. All other requests are submitted at once. Each
 * submission waits for its end, so that no time passes in the guest while the host's disk works:
 * with an instruction counter as clock, an idle guest's time would leap meanwhile.
 *
 * QEMU's main loop is kept back, too: it lets the clock of a halted CPU leap, and may look at the
 * CPU before its thread has added up what it has done. So the loop comes round while that thread
 * waits for it, or when it was kept for KEPT_NS.
 *
 * In the environment: DISK_MODEL, DEVICE INODE ROTATES PARALLEL ACCESS_NS BYTES_PER_S of each
 * modelled disk, joined by ';'; DISK_MODEL_OWN_CLOCK, if the guest's clock counts instructions.
 *
 * A request takes its access time, then its bytes at the rate of the interface. A disk that rotates
 * does one at a time: no access where the last one ended, no more than the way of the platter to a
 * little beyond it. Flash does PARALLEL accesses at a time; their bytes share the interface. Several
 * disks share nothing: each has its head, its interface and its queue.
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

#define MOST_DISKS 16
#define MOST_WAITING 4096
#define MOST_PARALLEL 256
#define MOST_ROUNDS 1000 /* of QEMU's events that come before ours */
#define KEPT_NS 100000000

struct request {
	struct io_uring_sqe sqe;
	int64_t bytes, done;
};

static struct disk {
	bool rotates;
	int parallel;
	int64_t access_ns;
	double bytes_per_ns;
	unsigned long device, inode;
	struct request waiting[MOST_WAITING], served[MOST_PARALLEL];
	int n_waiting, n_served;
	int64_t head, interface_free; /* where the last request ended; when its bytes were over */
} disks[MOST_DISKS];
static int n_disks;
#define EACH_DISK(disk) for (struct disk *disk = disks; disk < disks + n_disks; disk++)
static struct io_uring *uring;
static uint64_t timer[TIMER_BYTES / 8];
static bool ready, polling;
static bool own_clock; /* the guest's counts its instructions */
static atomic_uint cpu_waits; /* a futex: for the main loop */
static atomic_bool cpu_seen;

/* Of one disk, up to the next ';' or the end. */
static bool read_disk(const char *text)
{
	struct disk *disk = &disks[n_disks];
	double bytes_per_s;
	int rotates, length = 0;

	if (n_disks == MOST_DISKS ||
	    sscanf(text, "%lu %lu %d %d %ld %lf%n", &disk->device, &disk->inode, &rotates,
		   &disk->parallel, &disk->access_ns, &bytes_per_s, &length) != 6 ||
	    disk->parallel < 1 || disk->parallel > MOST_PARALLEL || bytes_per_s <= 0 ||
	    (text[length] && text[length] != ';'))
		return false;
	disk->rotates = rotates;
	if (rotates)
		disk->parallel = 1;
	disk->bytes_per_ns = bytes_per_s / 1e9;
	n_disks++;
	return true;
}

__attribute__((constructor)) static void read_model(void)
{
	const char *text = getenv("DISK_MODEL");

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
	for (const char *one = text; one; one = strchr(one, ';') ? strchr(one, ';') + 1 : NULL)
		if (!read_disk(one)) {
			fprintf(stderr, "disk model: cannot read DISK_MODEL=%s\n", text);
			exit(1);
		}
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

/* The disk that a request is of; NULL: of one without a model, or of none. */
static struct disk *disk_of(const struct io_uring_sqe *sqe)
{
	struct stat found;

	if (sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV &&
	    sqe->opcode != IORING_OP_READ && sqe->opcode != IORING_OP_WRITE)
		return NULL;
	if (fstat(sqe->fd, &found))
		return NULL;
	EACH_DISK(disk)
		if (found.st_dev == disk->device && found.st_ino == disk->inode)
			return disk;
	return NULL;
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
static struct request take_next(struct disk *disk)
{
	struct request found;
	int place = 0;

	if (disk->rotates)
		for (int i = 0; i < disk->n_waiting; i++)
			if ((int64_t)disk->waiting[i].sqe.off == disk->head) {
				place = i;
				break;
			}
	found = disk->waiting[place];
	disk->n_waiting--;
	memmove(&disk->waiting[place], &disk->waiting[place + 1],
		(disk->n_waiting - place) * sizeof(found));
	return found;
}

static int64_t access_ns(const struct disk *disk, const struct request *one)
{
	int64_t way = (int64_t)one->sqe.off - disk->head;

	if (disk->rotates && way >= 0 && way / disk->bytes_per_ns < disk->access_ns)
		return way / disk->bytes_per_ns;
	return disk->access_ns;
}

static void dispatch_on(struct disk *disk, int64_t now)
{
	while (disk->n_waiting && disk->n_served < disk->parallel) {
		struct request one = take_next(disk);
		int64_t from = now + access_ns(disk, &one);

		if (from < disk->interface_free)
			from = disk->interface_free;
		one.done = from + one.bytes / disk->bytes_per_ns;
		disk->interface_free = one.done;
		disk->head = one.sqe.off + one.bytes;
		disk->served[disk->n_served++] = one;
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

static bool any_served(void)
{
	EACH_DISK(disk)
		if (disk->n_served)
			return true;
	return false;
}

static bool any_waiting(void)
{
	EACH_DISK(disk)
		if (disk->n_waiting)
			return true;
	return false;
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

int io_uring_submit(struct io_uring *ring)
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
			disk->waiting[disk->n_waiting].bytes = bytes_of(sqe);
			disk->waiting[disk->n_waiting++].sqe = *sqe;
		}
		sq->sqe_tail = kept;
	}
	submit_and_wait(ring);
	if (any_waiting())
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
