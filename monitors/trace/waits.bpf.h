/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of trace.bpf.c that adds up waits, whose µs the kernel tells: of kswapd, by its name, and
 * of everybody else; of these apart what the page allocator's slow path waits.
 */
#ifndef WAITS_BPF_H
#define WAITS_BPF_H

static __always_inline bool is_kswapd(void)
{
	char comm[COMM];

	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] == 'k' && comm[1] == 's' && comm[2] == 'w' && comm[3] == 'a' &&
	       comm[4] == 'p' && comm[5] == 'd';
}

/* Whether the page allocator called, at whatever depth, for the current task. */
static __always_inline bool in_slow_path(void *ctx)
{
	__u64 stack[FRAMES] = {};

	bpf_get_stack(ctx, stack, sizeof(stack), 0);
	for (int i = 0; i < FRAMES; i++)
		for (int piece = 0; piece < SLOW_PATHS; piece++) {
			const volatile struct function *one = &watched.slow_paths[piece];

			if (stack[i] - one->start < one->bytes)
				return true;
		}
	return false;
}

static __always_inline void waited(void *ctx, __u32 wait, __u64 us)
{
	bool kswapd = is_kswapd();
	struct waits *waits;

	if (!kswapd && in_slow_path(ctx)) {
		add(SUM_SLOW_PATH_WAITS, 1);
		add(SUM_SLOW_PATH_US, us);
	}
	wait += kswapd;
	barrier_var(wait); /* or clang knows that it needs no mask, and the verifier does not */
	waits = &sums.waits[wait & (WAITS - 1)];
	ADD(&waits->count, 1);
	ADD(&waits->us, us);
}

SEC("tp_btf/mm_vmscan_throttled")
int BPF_PROG(throttled, int nid, int usec_timeout, int usec_delayed, int reason)
{
	if (reason >= 0 && reason < REASONS)
		waited(ctx, WAIT_THROTTLED + 2 * reason, usec_delayed);
	return 0;
}

SEC("tp_btf/writeback_congestion_wait")
int BPF_PROG(congestion_wait, unsigned int usec_timeout, unsigned int usec_delayed)
{
	waited(ctx, WAIT_CONGESTION, usec_delayed);
	return 0;
}

SEC("tp_btf/writeback_wait_iff_congested")
int BPF_PROG(wait_iff_cong, unsigned int usec_timeout, unsigned int usec_delayed)
{
	waited(ctx, WAIT_IFF_CONGESTED, usec_delayed);
	return 0;
}

#endif
