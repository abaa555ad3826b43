// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request takes its access time, plus its bytes divided by the interface's rate. A rotating disk
 * does one request at a time. A request that begins where the last one ended has no access time,
 * and one a little farther on only the time in which the platter gets there. Flash does `parallel`
 * accesses at a time; their bytes share the interface. Disks share nothing with each other: each
 * has its own head, interface and queue.
 */
#define _GNU_SOURCE
#include "disk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct disk disks[MOST_DISKS];
int n_disks;

bool read_disk(const char *text)
{
	struct disk *disk = &disks[n_disks];
	double bytes_per_s;
	int rotates, depth, length = 0;

	if (n_disks == MOST_DISKS ||
	    sscanf(text, "%lu %lu %d %d %d %ld %lf%n", &disk->device, &disk->inode, &rotates,
		   &disk->parallel, &depth, &disk->access_ns, &bytes_per_s, &length) != 7 ||
	    depth < 1 || disk->parallel < 1 || disk->parallel > MOST_PARALLEL || bytes_per_s <= 0 ||
	    (text[length] && text[length] != ';'))
		return false;
	disk->rotates = rotates;
	if (rotates)
		disk->parallel = 1;
	disk->patience_ns = depth * disk->access_ns;
	disk->bytes_per_ns = bytes_per_s / 1e9;
	n_disks++;
	return true;
}

struct disk *disk_of(const struct io_uring_sqe *sqe)
{
	struct stat status;

	if (sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV &&
	    sqe->opcode != IORING_OP_READ && sqe->opcode != IORING_OP_WRITE)
		return NULL;
	if (fstat(sqe->fd, &status))
		return NULL;
	EACH_DISK(disk)
		if (status.st_dev == disk->device && status.st_ino == disk->inode)
			return disk;
	return NULL;
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

void add_waiting(struct disk *disk, const struct io_uring_sqe *sqe, int64_t now)
{
	struct request *request = &disk->waiting[disk->n_waiting++];

	request->bytes = bytes_of(sqe);
	request->came = now;
	request->sqe = *sqe;
}

/*
 * Choose as a drive does: the request that begins where the head is, else the oldest. A request
 * that has waited for as long as a full queue of accesses takes has priority.
 */
static struct request take_next(struct disk *disk, int64_t now)
{
	struct request next;
	int place = 0;

	if (disk->rotates)
		while (place < disk->n_waiting &&
		       (int64_t)disk->waiting[place].sqe.off != disk->head)
			place++;
	if (place == disk->n_waiting)
		place = 0;
	for (int i = 0; i < place; i++)
		if (now - disk->waiting[i].came >= disk->patience_ns) {
			place = i;
			disk->n_old++;
		}
	next = disk->waiting[place];
	disk->n_waiting--;
	memmove(&disk->waiting[place], &disk->waiting[place + 1],
		(disk->n_waiting - place) * sizeof(next));
	return next;
}

static int64_t access_ns(const struct disk *disk, const struct request *request)
{
	int64_t way = (int64_t)request->sqe.off - disk->head;

	if (disk->rotates && way >= 0 && way / disk->bytes_per_ns < disk->access_ns)
		return way / disk->bytes_per_ns;
	return disk->access_ns;
}

void dispatch_on(struct disk *disk, int64_t now)
{
	while (disk->n_waiting && disk->n_served < disk->parallel) {
		struct request request = take_next(disk, now);
		int64_t from = now + access_ns(disk, &request);

		if (from < disk->interface_free)
			from = disk->interface_free;
		request.done = from + request.bytes / disk->bytes_per_ns;
		disk->interface_free = request.done;
		disk->head = request.sqe.off + request.bytes;
		disk->served[disk->n_served++] = request;
	}
}

bool any_served(void)
{
	EACH_DISK(disk)
		if (disk->n_served)
			return true;
	return false;
}

bool any_waiting(void)
{
	EACH_DISK(disk)
		if (disk->n_waiting)
			return true;
	return false;
}
