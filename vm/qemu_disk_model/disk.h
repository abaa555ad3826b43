// SPDX-License-Identifier: GPL-2.0-or-later
/* The model of disks: their waiting and served requests, and how long each takes. */
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
	int64_t bytes, came, done; /* came, done: ns of the guest's clock */
};

struct disk {
	bool rotates;
	int parallel;
	int64_t access_ns, patience_ns; /* patience: how long a request may wait for others */
	double bytes_per_ns;
	unsigned long device, inode;
	struct request waiting[MOST_WAITING], served[MOST_PARALLEL];
	int n_waiting, n_served;
	int64_t head, interface_free; /* where the last request ended; when its transfer ended */
	long n_old; /* requests that were chosen for their age alone */
};

extern struct disk disks[MOST_DISKS];
extern int n_disks;
#define EACH_DISK(disk) for (struct disk *disk = disks; disk < disks + n_disks; disk++)

/* Add the disk that the text describes, up to ';' or the end; false: invalid, or too many disks. */
bool read_disk(const char *text);
/* The modelled disk of a request; NULL if its file is not one. */
struct disk *disk_of(const struct io_uring_sqe *sqe);
/* Add a request that comes now to a disk; its queue must have room. */
void add_waiting(struct disk *disk, const struct io_uring_sqe *sqe, int64_t now);
/* Start as many waiting requests as the disk can serve now. */
void dispatch_on(struct disk *disk, int64_t now);
bool any_served(void);
bool any_waiting(void);

#endif
