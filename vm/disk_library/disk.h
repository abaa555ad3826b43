// SPDX-License-Identifier: GPL-2.0-or-later
/* Disks as a model: what waits for them, what they are at, and how long that takes. */
#ifndef DISK_H
#define DISK_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#define MOST_DISKS 16
#define MOST_WAITING 4096
#define MOST_PARALLEL 256

struct request {
	struct io_uring_sqe sqe;
	int64_t bytes, came, done;
};

struct disk {
	bool rotates;
	int parallel;
	int64_t access_ns, patience_ns; /* patience: how long it lets a request wait for others */
	double bytes_per_ns;
	unsigned long device, inode;
	struct request waiting[MOST_WAITING], served[MOST_PARALLEL];
	int n_waiting, n_served;
	int64_t head, interface_free; /* where the last request ended; when its bytes were over */
	long n_old; /* requests that were next for their age alone */
};

extern struct disk disks[MOST_DISKS];
extern int n_disks;
#define EACH_DISK(disk) for (struct disk *disk = disks; disk < disks + n_disks; disk++)

/* One more disk, of a text up to the next ';' or the end; false: it is none, or one too many. */
bool read_disk(const char *text);
/* The disk that a request is of; NULL: of one without a model, or of none. */
struct disk *disk_of(const struct io_uring_sqe *sqe);
/* A request that comes now, to a disk which has room for one that waits. */
void put_into(struct disk *disk, const struct io_uring_sqe *sqe, int64_t now);
/* Begin what the disk can begin now. */
void dispatch_on(struct disk *disk, int64_t now);
bool any_served(void);
bool any_waiting(void);

#endif
