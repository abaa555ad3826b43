/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adds up, in the kernel, reclaim, throttling, compaction, block IO and failed allocations.
 *
 * All programs but one sit on the bare tracepoints (tp_btf, 5.5): they get the tracepoint's own
 * arguments, and are not left out when they interrupt another program on their CPU
 * (bpf_prog_active), as those on a perf event are. The structures are those parts of the kernel's
 * that are read; libbpf moves each access to where the running kernel's BTF has the field.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel.bpf.h"
#include "sums.h"

char LICENSE[] SEC("license") = "GPL";

struct sums sums;
const volatile struct watched watched SEC(".rodata.watched") = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u64); /* enum span << 32 | pid or node */
	__type(value, __u64);
} begun SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct reclaimer);
} reclaimers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_FAILURES);
	__type(key, struct failure_key);
	__type(value, struct failure);
} failures SEC(".maps");

/* What a program's own stack has no room for. */
struct room {
	struct failure failure;
	__u64 frames[FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct room);
} scratch SEC(".maps");

enum span { SPAN_DIRECT = 1, SPAN_MEMCG, SPAN_COMPACTION, SPAN_KSWAPD };

/*
 * Without the value that was there, or newer compilers make an instruction of it that kernels before
 * 5.12 do not have.
 */
#define ADD(to, value) ((void)__atomic_fetch_add(to, value, __ATOMIC_RELAXED))

static __always_inline void add(enum sum sum, __s64 value)
{
	ADD(&sums.of[sum], value);
}

/* volatile: sums are read in the order in which it is written here. */
static __always_inline __s64 sum_now(enum sum sum)
{
	return *(volatile __s64 *)&sums.of[sum];
}

static __always_inline __u32 current_pid(void)
{
	return bpf_get_current_pid_tgid();
}

/* Reclaim and compaction: a span of one task, added up when it ends. */

static __always_inline void span_begin(enum span span)
{
	__u64 key = (__u64)span << 32 | current_pid(), now = bpf_ktime_get_ns();

	if (bpf_map_update_elem(&begun, &key, &now, BPF_ANY))
		add(SUM_NO_ROOM_SPAN, 1);
}

/* Counts it, and its ns behind that: those, or -1 if its begin was not seen. */
static __always_inline __s64 span_end(enum span span, enum sum count)
{
	__u64 key = (__u64)span << 32 | current_pid(), began;
	__u64 *found = bpf_map_lookup_elem(&begun, &key);
	__s64 ns;

	if (!found)
		return -1;
	began = *found;
	bpf_map_delete_elem(&begun, &key);
	ns = bpf_ktime_get_ns() - began;
	add(count, 1);
	add(count + 1, ns);
	return ns;
}

static __always_inline struct reclaimer *current_reclaimer(void)
{
	__u32 pid = current_pid();

	return bpf_map_lookup_elem(&reclaimers, &pid);
}

static __always_inline void add_to_task(__u64 ns, __u64 pages)
{
	struct reclaimer none = {}, *task = current_reclaimer();
	__u32 pid = current_pid();

	if (!task) {
		bpf_map_update_elem(&reclaimers, &pid, &none, BPF_NOEXIST);
		task = bpf_map_lookup_elem(&reclaimers, &pid);
		if (!task) {
			add(SUM_NO_ROOM_RECLAIMER, 1);
			return;
		}
	}
	ADD(&task->count, 1);
	ADD(&task->ns, ns);
	ADD(&task->pages, pages);
	task->came_to = pages ? FREED_SOME : FREED_NONE;
	bpf_get_current_comm(task->comm, sizeof(task->comm));
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int direct_begin(void *ctx)
{
	struct reclaimer *task = current_reclaimer();

	if (task)
		task->came_to = CAME_TO_AN_END;
	span_begin(SPAN_DIRECT);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(direct_end, unsigned long nr_reclaimed)
{
	__s64 ns = span_end(SPAN_DIRECT, SUM_DIRECT_RECLAIMS);

	if (ns < 0)
		return 0;
	add(SUM_DIRECT_RECLAIM_PAGES, nr_reclaimed);
	if (!nr_reclaimed)
		add(SUM_DIRECT_RECLAIM_NONE, 1);
	add_to_task(ns, nr_reclaimed);
	return 0;
}

/*
 * The allocation that the task reclaimed for has no page yet. It is seen where the allocator asks
 * whether to reclaim again (once for each zone), and where it gives up.
 */
static __always_inline void without_page(void)
{
	struct reclaimer *task = current_reclaimer();

	if (!task || task->came_to == CAME_TO_AN_END)
		return;
	add(SUM_WITHOUT_PAGE, 1);
	if (task->came_to == FREED_SOME)
		add(SUM_PROGRESS_WITHOUT_PAGE, 1);
	task->came_to = CAME_TO_AN_END;
}

SEC("tp_btf/reclaim_retry_zone")
int retried(void *ctx)
{
	without_page();
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int memcg_begin(void *ctx)
{
	struct reclaimer *task = current_reclaimer();

	/* Memory is charged once there is a page: the allocation before has got it. */
	if (task)
		task->came_to = CAME_TO_AN_END;
	span_begin(SPAN_MEMCG);
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(memcg_end, unsigned long nr_reclaimed)
{
	if (span_end(SPAN_MEMCG, SUM_MEMCG_RECLAIMS) >= 0)
		add(SUM_MEMCG_RECLAIM_PAGES, nr_reclaimed);
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int compact_begin(void *ctx)
{
	span_begin(SPAN_COMPACTION);
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int compact_end(void *ctx)
{
	span_end(SPAN_COMPACTION, SUM_COMPACTIONS);
	return 0;
}

/*
 * A kswapd is awake from the first wake (it comes again and again meanwhile) to the sleep. The open
 * span needs no look-up by who reads: awake_ns holds minus its begin, and awake_now how many are
 * open. In this order: who reads in between sees too little, never too much.
 */
SEC("tp_btf/mm_vmscan_kswapd_wake")
int BPF_PROG(kswapd_wake, int nid)
{
	__u64 key = (__u64)SPAN_KSWAPD << 32 | (__u32)nid, zero = 0;

	if (bpf_map_update_elem(&begun, &key, &zero, BPF_NOEXIST))
		return 0;
	add(SUM_KSWAPD_WAKES, 1);
	add(SUM_KSWAPD_AWAKE_NS, -bpf_ktime_get_ns());
	add(SUM_KSWAPD_AWAKE_NOW, 1);
	return 0;
}

SEC("tp_btf/mm_vmscan_kswapd_sleep")
int BPF_PROG(kswapd_sleep, int nid)
{
	__u64 key = (__u64)SPAN_KSWAPD << 32 | (__u32)nid, now;

	if (bpf_map_delete_elem(&begun, &key))
		return 0;
	now = bpf_ktime_get_ns();
	add(SUM_KSWAPD_AWAKE_NOW, -1);
	add(SUM_KSWAPD_AWAKE_NS, now);
	return 0;
}

#include "waits.bpf.h"
#include "block.bpf.h"

/*
 * A call of warn_alloc(gfp_mask, nodemask, fmt, order) for a failed page allocation: it is called
 * for each, and looks itself whether it shall be silent (__GFP_NOWARN).
 */
#define FAILED "page allocation failure:"
/* __GFP_DIRECT_RECLAIM, as 5.10 to 7.3 have it: who may not reclaim fails for other reasons. */
#define MAY_RECLAIM 0x400
/*
 * __GFP_NORETRY, as 5.10 to 7.3 have it: of an order beyond PAGE_ALLOC_COSTLY_ORDER it fails
 * where compaction is deferred, without a reclaim of its own. Whether it had one is not told.
 */
#define NO_RETRY 0x10000
#define COSTLY_ORDER 3

SEC("kprobe/warn_alloc")
int alloc_failed(struct pt_regs *ctx)
{
	char format[sizeof(FAILED) - 1];
	struct failure_key key = {};
	struct failure *failure;
	struct room *room;
	__u32 zero = 0;

	if (bpf_probe_read_kernel(format, sizeof(format), (void *)ctx->dx))
		return 0;
	for (int i = 0; i < (int)sizeof(format); i++)
		if (format[i] != FAILED[i])
			return 0;
	add(SUM_ALLOC_FAILURES, 1);
	if ((ctx->di & MAY_RECLAIM) && !((ctx->di & NO_RETRY) && (__u32)ctx->cx > COSTLY_ORDER))
		without_page();
	room = bpf_map_lookup_elem(&scratch, &zero);
	if (!room)
		return 0;
	failure = &room->failure;
	/* Without warn_alloc itself; the rest of the buffer is set to 0. */
	bpf_get_stack(ctx, room->frames, sizeof(room->frames), 1);
	for (int i = 0; i < FRAMES; i++) {
		key.stack = 31 * key.stack + room->frames[i];
		failure->stack[i] = room->frames[i];
	}
	key.pid = current_pid();
	key.order = ctx->cx;
	key.gfp = ctx->di;
	struct failure *known = bpf_map_lookup_elem(&failures, &key);

	if (known) {
		ADD(&known->count, 1);
		return 0;
	}
	failure->count = 1;
	failure->first = bpf_ktime_get_ns();
	bpf_get_current_comm(failure->comm, sizeof(failure->comm));
	if (bpf_map_update_elem(&failures, &key, failure, BPF_NOEXIST))
		add(SUM_NO_ROOM_FAILURE, 1);
	else
		add(SUM_FAILURE_ROWS, 1);
	return 0;
}
