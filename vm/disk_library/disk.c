// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request takes its access time, then its bytes at the rate of the interface. A disk that rotates
 * does one at a time: no access where the last one ended, no more than the way of the platter to a
 * little beyond it. Flash does `parallel` accesses at a time; their bytes share the interface.
 * Several disks share nothing: each has its head, its interface and its queue.
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

void put_into(struct disk *disk, const struct io_uring_sqe *sqe, int64_t now)
{
	struct request *one = &disk->waiting[disk->n_waiting++];

	one->bytes = bytes_of(sqe);
	one->came = now;
	one->sqe = *sqe;
}

/*
 * What the drive itself would choose: the request that goes on where it is, else the oldest. An
 * older one that has waited for as long as a full queue of accesses takes comes before it.
 */
static struct request take_next(struct disk *disk, int64_t now)
{
	struct request found;
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

void dispatch_on(struct disk *disk, int64_t now)
{
	while (disk->n_waiting && disk->n_served < disk->parallel) {
		struct request one = take_next(disk, now);
		int64_t from = now + access_ns(disk, &one);

		if (from < disk->interface_free)
			from = disk->interface_free;
		one.done = from + one.bytes / disk->bytes_per_ns;
		disk->interface_free = one.done;
		disk->head = one.sqe.off + one.bytes;
		disk->served[disk->n_served++] = one;
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
