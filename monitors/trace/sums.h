/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs in the kernel and their reader share: the sums, and the entries of the maps. */
#ifndef SUMS_H
#define SUMS_H

#define REASONS 8 /* of mm_vmscan_throttled */
#define FRAMES 24 /* return addresses that are kept of a failed allocation */
#define MOST_FAILURES 384 /* kinds of failed allocations between two looks */
#define COMM 16
#define SLOW_PATHS 8 /* pieces of the page allocator in which it waits */
#define DATA_DISKS 4 /* of a workload's own that are watched */

/*
 * Signed 64-bit numbers, added to atomically. Times in ns, but what the kernel tells in µs. In
 * this order: those before SUM_OF_MOMENT are what open spans are computed from.
 * *_dropped: of those in flight, written by in_flight.c alone.
 */
enum sum {
	SUM_BLOCK_STAMP,
	SUM_DISK_IN_FLIGHT,
	SUM_CRYPT_IN_FLIGHT,
	SUM_DATA_IN_FLIGHT,
	SUM_DISK_DROPPED,
	SUM_CRYPT_DROPPED,
	SUM_DATA_DROPPED,
	SUM_KSWAPD_AWAKE_NOW,
	SUM_KSWAPD_AWAKE_NS,
	SUM_DISK_BUSY_NS,
	SUM_CRYPT_BUSY_NS,
	SUM_CRYPT_ALONE_NS,
	SUM_DATA_BUSY_NS,
	SUM_OF_MOMENT,
	/* What found no room in a map. */
	SUM_NO_ROOM_SPAN = SUM_OF_MOMENT,
	SUM_NO_ROOM_RECLAIMER,
	SUM_NO_ROOM_FAILURE,
	SUM_NO_ROOM_DISK,
	SUM_NO_ROOM_CRYPT,
	SUM_NO_ROOM_DATA,
	/* Of what lasts: how many, and right behind it how long. */
	SUM_DIRECT_RECLAIMS,
	SUM_DIRECT_RECLAIM_NS,
	SUM_DIRECT_RECLAIM_PAGES,
	SUM_DIRECT_RECLAIM_NONE,
	SUM_WITHOUT_PAGE,
	SUM_PROGRESS_WITHOUT_PAGE,
	SUM_MEMCG_RECLAIMS,
	SUM_MEMCG_RECLAIM_NS,
	SUM_MEMCG_RECLAIM_PAGES,
	SUM_KSWAPD_WAKES,
	SUM_COMPACTIONS,
	SUM_COMPACTION_NS,
	SUM_DISK_READS,
	SUM_DISK_READ_NS,
	SUM_DISK_WRITES,
	SUM_DISK_WRITE_NS,
	SUM_CRYPT_READS,
	SUM_CRYPT_READ_NS,
	SUM_CRYPT_WRITES,
	SUM_CRYPT_WRITE_NS,
	SUM_DATA_READS,
	SUM_DATA_READ_NS,
	SUM_DATA_WRITES,
	SUM_DATA_WRITE_NS,
	SUM_ALLOC_FAILURES,
	SUM_FAILURE_ROWS, /* ever made in the map of failed allocations */
	SUM_SLOW_PATH_WAITS,
	SUM_SLOW_PATH_US,
	SUMS,
};

/* block.bpf.h finds a device's sums by their distance from the disk's. */
_Static_assert(SUM_CRYPT_IN_FLIGHT - SUM_DISK_IN_FLIGHT == SUM_NO_ROOM_CRYPT - SUM_NO_ROOM_DISK &&
		       SUM_DATA_IN_FLIGHT - SUM_DISK_IN_FLIGHT == SUM_NO_ROOM_DATA - SUM_NO_ROOM_DISK,
	       "of what found no room");
_Static_assert(SUM_CRYPT_WRITES - SUM_CRYPT_READS == SUM_DISK_WRITES - SUM_DISK_READS &&
		       SUM_DATA_WRITES - SUM_DATA_READS == SUM_DISK_WRITES - SUM_DISK_READS,
	       "of writes");

/* Waits whose µs the kernel tells: of everybody else, then of kswapd. */
enum kernel_wait {
	WAIT_CONGESTION,
	WAIT_IFF_CONGESTED = WAIT_CONGESTION + 2,
	WAIT_THROTTLED = WAIT_IFF_CONGESTED + 2, /* by reason, two each */
	WAITS = 32, /* a power of two, which the verifier sees in a mask */
};

struct sums {
	long long of[SUMS];
	struct waits {
		long long count, us;
	} waits[WAITS];
};

struct dev_number {
	int major, minor;
};

/* What the loader found out: the kernel's numbers of the devices, 0:0 if there is none. */
struct watched {
	struct dev_number disk, crypt, data[DATA_DISKS];
	/*
	 * Whether what begins comes behind its queue: before 5.11 (a54895fa057c, which 5.10.262 has
	 * too, and e8a676d61c07).
	 */
	int request_second, bio_second;
	struct function {
		unsigned long long start, bytes;
	} slow_paths[SLOW_PATHS]; /* of no bytes: none */
};

struct in_flight {
	unsigned long long began; /* CLOCK_MONOTONIC ns */
	unsigned long long write;
};

/* What a task's last direct reclaim came to, as long as its allocation has not got a page. */
enum came_to { CAME_TO_AN_END, FREED_NONE, FREED_SOME };

struct reclaimer {
	unsigned long long count, ns, pages, came_to;
	char comm[COMM];
};

/* The upper half of each address of the kernel's code, modules and BPF programs (x86-64). */
#define KERNEL_CODE 0xffffffff00000000ULL

struct failure_key {
	unsigned int pid, order, gfp, zero;
	unsigned long long stack; /* a hash of it */
};

struct failure {
	unsigned long long count, first; /* CLOCK_MONOTONIC ns of the first */
	char comm[COMM];
	unsigned int stack[FRAMES]; /* without the upper half, KERNEL_CODE; 0: no frame */
};

#endif
