/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of trace.tsv: which sum each is, and what of the kernel it needs. */
#include <stdio.h>

#include "parts.h"

#define LIST(type, ...) ((const type[]){ __VA_ARGS__ })
#define NEEDS(...) LIST(enum tracepoint, __VA_ARGS__, TRACEPOINTS)
#define PROGRAMS(...) LIST(char *const, __VA_ARGS__, NULL)
#define COLUMNS(columns) columns, ARRAY_SIZE(columns)

/* A wait's, of everybody else and of kswapd. */
#define WAITED(name, wait) \
	{ name "_n", WAIT_NUMBER(wait), 1, SHUT }, \
	{ name "_us", WAIT_NUMBER(wait) + 1, 1, SHUT }, \
	{ "kswapd_" name "_n", WAIT_NUMBER(wait + 1), 1, SHUT }, \
	{ "kswapd_" name "_us", WAIT_NUMBER(wait + 1) + 1, 1, SHUT }

#define DEVICE(name, NAME) \
	{ name "_reads", SUM_##NAME##_READS, 1, SHUT }, \
	{ name "_read_us", SUM_##NAME##_READ_NS, 1000, SHUT }, \
	{ name "_writes", SUM_##NAME##_WRITES, 1, SHUT }, \
	{ name "_write_us", SUM_##NAME##_WRITE_NS, 1000, SHUT }, \
	{ name "_busy_us", SUM_##NAME##_BUSY_NS, 1000, NAME##_BUSY }

static struct column direct[] = {
	{ "direct_reclaims", SUM_DIRECT_RECLAIMS, 1, SHUT },
	{ "direct_reclaim_us", SUM_DIRECT_RECLAIM_NS, 1000, SHUT },
	{ "direct_reclaim_pages", SUM_DIRECT_RECLAIM_PAGES, 1, SHUT },
	{ "direct_reclaim_none", SUM_DIRECT_RECLAIM_NONE, 1, SHUT },
};
static struct column without_page[] = {
	{ "reclaims_without_page", SUM_WITHOUT_PAGE, 1, SHUT },
	{ "reclaims_progress_without_page", SUM_PROGRESS_WITHOUT_PAGE, 1, SHUT },
};
static struct column slow_path[] = {
	{ "slow_path_waits_n", SUM_SLOW_PATH_WAITS, 1, SHUT },
	{ "slow_path_waits_us", SUM_SLOW_PATH_US, 1, SHUT },
};
static struct column memcg[] = {
	{ "memcg_reclaims", SUM_MEMCG_RECLAIMS, 1, SHUT },
	{ "memcg_reclaim_us", SUM_MEMCG_RECLAIM_NS, 1000, SHUT },
	{ "memcg_reclaim_pages", SUM_MEMCG_RECLAIM_PAGES, 1, SHUT },
};
static struct column kswapd[] = {
	{ "kswapd_wakes", SUM_KSWAPD_WAKES, 1, SHUT },
	{ "kswapd_awake_us", SUM_KSWAPD_AWAKE_NS, 1000, KSWAPD_AWAKE },
};
static struct column throttled[4 * REASONS]; /* by throttled_columns() */
static struct column congestion[] = { WAITED("congestion_wait", WAIT_CONGESTION) };
static struct column iff_congested[] = { WAITED("wait_iff_congested", WAIT_IFF_CONGESTED) };
static struct column compaction[] = {
	{ "compactions", SUM_COMPACTIONS, 1, SHUT },
	{ "compaction_us", SUM_COMPACTION_NS, 1000, SHUT },
};
static struct column disk[] = { DEVICE("disk", DISK) };
static struct column crypt[] = {
	DEVICE("crypt", CRYPT),
	{ "crypt_alone_us", SUM_CRYPT_ALONE_NS, 1000, CRYPT_ALONE },
};
static struct column data[] = { DEVICE("data", DATA) };
static struct column failures[] = { { "alloc_failures", SUM_ALLOC_FAILURES, 1, SHUT } };

struct group groups[GROUPS] = {
	[DIRECT] = { "vmscan/mm_vmscan_direct_reclaim", NEEDS(TP_DIRECT_BEGIN, TP_DIRECT_END),
		     PROGRAMS("direct_end", "direct_begin"), COLUMNS(direct), false },
	[MEMCG] = { "vmscan/mm_vmscan_memcg_reclaim", NEEDS(TP_MEMCG_BEGIN, TP_MEMCG_END),
		    PROGRAMS("memcg_end", "memcg_begin"), COLUMNS(memcg), false },
	[KSWAPD] = { "mm_vmscan_kswapd", NEEDS(TP_KSWAPD_SLEEP, TP_KSWAPD_WAKE),
		     PROGRAMS("kswapd_sleep", "kswapd_wake"), COLUMNS(kswapd), false },
	[THROTTLED] = { "vmscan/mm_vmscan_throttled", NEEDS(TP_THROTTLED), PROGRAMS("throttled"),
			throttled, 0, false },
	[CONGESTION] = { "writeback/writeback_congestion_wait", NEEDS(TP_CONGESTION_WAIT),
			 PROGRAMS("congestion_wait"), COLUMNS(congestion), false },
	[IFF_CONGESTED] = { "writeback/writeback_wait_iff_congested",
			    NEEDS(TP_WAIT_IFF_CONGESTED), PROGRAMS("wait_iff_cong"),
			    COLUMNS(iff_congested), false },
	[COMPACTION] = { "compaction/mm_compaction", NEEDS(TP_COMPACTION_BEGIN, TP_COMPACTION_END),
			 PROGRAMS("compact_end", "compact_begin"), COLUMNS(compaction), false },
	[DISK] = { "trace of disk", NEEDS(TP_RQ_ISSUE, TP_RQ_COMPLETE),
		   PROGRAMS("disk_end", "disk_missed", "disk_begin", "disk_again"), COLUMNS(disk),
		   false },
	[CRYPT] = { "trace of crypt", NEEDS(TP_BIO_QUEUE, TP_BIO_COMPLETE),
		    PROGRAMS("crypt_end", "crypt_missed", "crypt_begin", "crypt_again"),
		    COLUMNS(crypt), false },
	[DATA] = { "trace of data", NEEDS(TP_RQ_ISSUE, TP_RQ_COMPLETE),
		   PROGRAMS("data_end", "data_missed", "data_begin", "data_again"), COLUMNS(data),
		   false },
	[FAILURES] = { "alloc_failures", NEEDS(TRACEPOINTS), PROGRAMS("alloc_failed"),
		       COLUMNS(failures), false },
	[WITHOUT_PAGE] = { "reclaims without a page", NEEDS(TP_RETRY), PROGRAMS("retried"),
			   COLUMNS(without_page), false },
	[SLOW_PATH] = { "waits in the allocator's slow path", NEEDS(TRACEPOINTS), PROGRAMS(NULL),
			COLUMNS(slow_path), false },
};

void throttled_columns(const struct kernel_types *types)
{
	struct column *next = throttled;

	for (int of_kswapd = 0; of_kswapd < 2; of_kswapd++)
		for (int reason = 0; reason < REASONS; reason++) {
			int number = WAIT_NUMBER(WAIT_THROTTLED + 2 * reason + of_kswapd);

			if (!*types->reasons[reason])
				continue;
			for (int us = 0; us < 2; us++, next++) {
				snprintf(next->name, sizeof(next->name), "%sthrottled_%s_%s",
					 of_kswapd ? "kswapd_" : "", types->reasons[reason],
					 us ? "us" : "n");
				next->number = number + us;
				next->divisor = 1;
			}
		}
	groups[THROTTLED].count = next - throttled;
}
