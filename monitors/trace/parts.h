/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trace.c is made of. */
#ifndef PARTS_H
#define PARTS_H

#include "sums.h"
#include "trace.h"

/* ---- kernel_types.c: what this kernel offers, by its own type information */

enum tracepoint {
	TP_DIRECT_BEGIN,
	TP_DIRECT_END,
	TP_MEMCG_BEGIN,
	TP_MEMCG_END,
	TP_KSWAPD_SLEEP,
	TP_KSWAPD_WAKE,
	TP_THROTTLED,
	TP_CONGESTION_WAIT,
	TP_WAIT_IFF_CONGESTED,
	TP_COMPACTION_BEGIN,
	TP_COMPACTION_END,
	TP_RQ_ISSUE,
	TP_RQ_COMPLETE,
	TP_BIO_QUEUE,
	TP_BIO_COMPLETE,
	TP_RETRY,
	TRACEPOINTS,
};

struct kernel_types {
	bool has[TRACEPOINTS];
	bool request_second, bio_second; /* of the arguments of block_rq_issue, block_bio_queue */
	char reasons[REASONS][24]; /* enum vmscan_throttle_state in lower case, "" where there is none */
};

extern const char *const tracepoints[TRACEPOINTS]; /* `vmscan/mm_vmscan_throttled` */
int kernel_types(struct kernel_types *); /* 0, or -errno where the kernel has none */

/* ---- columns.c: trace.tsv's columns */

/* The spans that may be open when a row is made. */
enum open_span { SHUT, KSWAPD_AWAKE, DISK_BUSY, CRYPT_BUSY, CRYPT_ALONE, DATA_BUSY, OPEN };

/* Of struct sums as 64-bit numbers: `of`, then `waits`. */
#define NUMBERS (sizeof(struct sums) / sizeof(long long))
#define WAIT_NUMBER(wait) (SUMS + 2 * (wait))

struct column {
	char name[48];
	int number, divisor;
	enum open_span open;
};

/* Columns that are there together or not at all. */
struct group {
	const char *what;
	const enum tracepoint *needs; /* up to TRACEPOINTS */
	/* Up to NULL, in the order of attaching: what begins before its end is would stay open. */
	const char *const *programs;
	struct column *columns;
	int count;
	bool wanted;
};

enum {
	DIRECT,
	MEMCG,
	KSWAPD,
	THROTTLED,
	CONGESTION,
	IFF_CONGESTED,
	COMPACTION,
	/* In a row: those whose programs are there twice. */
	DISK,
	CRYPT,
	DATA,
	FAILURES,
	/* Behind those that they count by. */
	WITHOUT_PAGE,
	SLOW_PATH,
	GROUPS,
};

extern struct group groups[GROUPS];
void throttled_columns(const struct kernel_types *);

/* ---- probe_kernel.c: which groups are wanted, and what of them is missing */

#define OWN "data-" /* all of a workload's own disks, by goes_by() */

bool goes_by(const struct device *, const char *prefix);
void folder_of(char *folder, size_t room, const char *device);
void want(const struct device *, int count, const struct kernel_types *, struct watched *,
	  struct list *missing);

/* ---- symbols.c: names of the kernel's functions by address */

int symbols_read(const char *path); /* how many there are; 0: hidden, -errno */
void symbols_name(struct text *, uint64_t address); /* of a return address; hex without a name */
/* The pieces of a function (`name`, `name.cold` …), at most `room`: how many there are. */
int symbols_find(const char *name, struct function *pieces, int room);

/* ---- failures.c: rows of failed allocations and of who reclaimed */

void failures_open(int failures_map, int reclaimers_map, volatile long long *sums_of,
		   struct list *problems);

/* ---- in_flight.c: requests and bios whose end was not seen */

/* Of several devices with one map: one call of each. */
void in_flight_watch(const char *name, const char *folder, int map, volatile long long *sums,
		     enum sum begun, enum sum dropped, struct list *missing);
void in_flight_check(int64_t now);
void in_flight_close(struct list *problems);

#endif
