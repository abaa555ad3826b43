/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "parts.h"

#define TYPE "btf_trace_" /* a typedef of what is called at a tracepoint */
#define REASON_ENUM "vmscan_throttle_state"
#define REASON "VMSCAN_THROTTLE_"

const char *const tracepoints[TRACEPOINTS] = {
	[TP_DIRECT_BEGIN] = "vmscan/mm_vmscan_direct_reclaim_begin",
	[TP_DIRECT_END] = "vmscan/mm_vmscan_direct_reclaim_end",
	[TP_MEMCG_BEGIN] = "vmscan/mm_vmscan_memcg_reclaim_begin",
	[TP_MEMCG_END] = "vmscan/mm_vmscan_memcg_reclaim_end",
	[TP_KSWAPD_SLEEP] = "vmscan/mm_vmscan_kswapd_sleep",
	[TP_KSWAPD_WAKE] = "vmscan/mm_vmscan_kswapd_wake",
	[TP_THROTTLED] = "vmscan/mm_vmscan_throttled",
	[TP_CONGESTION_WAIT] = "writeback/writeback_congestion_wait",
	[TP_WAIT_IFF_CONGESTED] = "writeback/writeback_wait_iff_congested",
	[TP_COMPACTION_BEGIN] = "compaction/mm_compaction_begin",
	[TP_COMPACTION_END] = "compaction/mm_compaction_end",
	[TP_RQ_ISSUE] = "block/block_rq_issue",
	[TP_RQ_COMPLETE] = "block/block_rq_complete",
	[TP_BIO_QUEUE] = "block/block_bio_queue",
	[TP_BIO_COMPLETE] = "block/block_bio_complete",
	[TP_RETRY] = "oom/reclaim_retry_zone",
};

/* How many arguments a tracepoint has: its typedef leads to a pointer, that to a prototype. */
static int arguments(const struct btf *btf, const struct btf_type *type)
{
	type = btf__type_by_id(btf, type->type);
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	if (!type || !btf_is_func_proto(type))
		return 0;
	return btf_vlen(type) - 1; /* the first one says who is called */
}

static void take_tracepoint(const struct btf *btf, const struct btf_type *type, const char *name,
			    struct kernel_types *found)
{
	for (int i = 0; i < TRACEPOINTS; i++) {
		if (strcmp(strchr(tracepoints[i], '/') + 1, name))
			continue;
		found->has[i] = true;
		if (i == TP_RQ_ISSUE)
			found->request_second = arguments(btf, type) == 2;
		if (i == TP_BIO_QUEUE)
			found->bio_second = arguments(btf, type) == 2;
		return;
	}
}

static void take_reasons(const struct btf *btf, const struct btf_type *type,
			 struct kernel_types *found)
{
	const struct btf_enum *reason = btf_enum(type);

	for (int i = 0; i < btf_vlen(type); i++, reason++) {
		const char *name = btf__name_by_offset(btf, reason->name_off);
		char *to;

		if (reason->val < 0 || reason->val >= REASONS ||
		    strncmp(name, REASON, strlen(REASON)))
			continue;
		to = found->reasons[reason->val];
		snprintf(to, sizeof(found->reasons[0]), "%s", name + strlen(REASON));
		for (; *to; to++)
			*to = tolower((unsigned char)*to);
	}
}

int kernel_types(struct kernel_types *found)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int types;

	if (!btf)
		return -errno;
	types = btf__type_cnt(btf);
	memset(found, 0, sizeof(*found));
	/* One look at all types: some 150,000, and a search for each name would begin anew. */
	for (int id = 1; id < types; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *name;

		if (!btf_is_typedef(type) && !btf_is_enum(type))
			continue;
		name = btf__name_by_offset(btf, type->name_off);
		if (btf_is_enum(type)) {
			if (!strcmp(name, REASON_ENUM))
				take_reasons(btf, type, found);
		} else if (!strncmp(name, TYPE, strlen(TYPE))) {
			take_tracepoint(btf, type, name + strlen(TYPE), found);
		}
	}
	btf__free(btf);
	return 0;
}
