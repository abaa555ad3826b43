# SPDX-License-Identifier: GPL-2.0-or-later
"""Derives a cause from a kernel stack, by the names of functions of Linux 5.10 to 7.3.

The innermost function that shows what a task is doing decides: an allocation that reclaims during a
swap-in is reclaim. Functions that only show how it waits (schedule, folio_wait_bit_common, a
request's tag) do not show for what, and are skipped.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

# Kinds that are no causes: what else a stack can show.
FOLLOW = "follow"  # waits for another program: its child, or the writer of its pipe
BACKPRESSURE = "backpressure"  # waits for its reader: the pipe is full
THROTTLED = "throttled"  # reclaim_throttle(): the kernel's trace has the reason
ON_WRITEBACK = "throttled on writeback"  # by the caller, for runs without a trace
SOME_IO = "io"  # waits for a block device, with an unknown purpose
NOTHING = ""

WAITS = re.compile(
    r"_*(schedule|io_schedule|preempt_schedule|cond_resched|bit_wait|wait_on_bit|out_of_line_wait|"
    r"(folio|page)_wait_bit|wait_on_page_bit|folio_put_wait|wait_for_common|wait_for_completion|"
    r"switch_to|context_switch|finish_task_switch|blk_io_schedule|submit_bio_wait|"
    r"lock_page|folio_lock|wait_on_page_locked|folio_wait_locked|wait_on_buffer)\w*"
)
IO_WAITS = re.compile(
    r"_*(io_schedule|blk_io_schedule|bit_wait_io|(folio|page)_wait_bit|wait_on_page_bit|"
    r"lock_page|folio_lock|wait_on_page_locked|folio_wait_locked|wait_on_buffer|submit_bio_wait|"
    r"balance_dirty_pages|ext4_block_write_begin|ext4_wait_block_bitmap|migration_entry_wait|"
    r"mempool_alloc|blk_mq_get_tag|rq_qos_wait|wbt_wait|(wait_on_page|folio_wait)_writeback)\w*"
)
WRITEBACK_WAITS = re.compile(
    r"congestion_wait|wait_iff_congested|(wait_on_page|folio_wait)_writeback\w*"
)
# A task that submits a page to the disk waits for a bio of a pool or a free request, or, in a
# semaphore that the stack does not show, for a part of the 8 MiB of swap-out that device-mapper
# allows in flight (dm: fix deadlock when swapping to encrypted device, a666e5c05e7c).
SUBMISSION_WAITS = re.compile(r"mempool_alloc\w*|blk_mq_get_tag|rq_qos_wait|wbt_wait")
SWAP_BIOS = re.compile(r"_*map_bio|_*clone_and_map_\w+|(dm|_*)_split_and_process_bio|dm_submit_bio")
RECLAIMS = re.compile(
    r"shrink_\w+|\w*lru_gen\w*|evict_folios|try_to_shrink_lruvec|isolate_lru_(pages|folios)|"
    r"_*(do_)?try_to_free_pages|try_to_free_mem_cgroup_pages|_*alloc_pages_direct_reclaim|"
    r"_*perform_reclaim|reclaim_pages|reclaim_clean_pages_from_list|node_reclaim|do_shrink_slab|"
    r"pageout|swap_writepage\w*|try_to_unmap\w*|folio_referenced|page_referenced|"
    r"try_to_inc_max_seq|inc_max_seq|reclaim_high|try_charge\w*|mem_cgroup_oom\w*"
)
RULES = tuple(
    (cause, re.compile(names))
    for cause, names in (
        (
            "stopped",
            r"do_signal_stop|ptrace_stop|do_jobctl_trap|do_freezer_trap|_*refrigerator|ptrace_notify",
        ),
        (BACKPRESSURE, r"(anon_)?pipe_write|unix_stream_sendmsg|sk_stream_wait_memory|n_tty_write"),
        (
            FOLLOW,
            r"(anon_|fifo_)?pipe_read|wait_for_partner|do_wait|kernel_wait4|do_wait_intr\w*|"
            r"ep_poll|do_epoll_wait|do_sys_poll|do_poll|do_select|poll_schedule_timeout|"
            r"unix_stream_\w*read\w*|unix_stream_data_wait|sk_wait_data|tty_read|n_tty_read",
        ),
        (
            "lock",
            r"rwsem_down_\w+|_*mutex_lock\w*|_*down(_read|_write)?(_killable|_interruptible)?|"
            r"_*down_common|_*futex_(wait|lock)\w*|do_futex|rt_mutex_slowlock\w*|rwbase_\w+|"
            r"_*percpu_(down|rwsem)_\w*|_*vma_(start|enter)_\w+|vma_lock_\w+|mmap_read_lock\w*|"
            r"mmap_write_lock\w*|lock_mm_and_find_vma|queued_(read|write)_lock_slowpath",
        ),
        ("dm_crypt", r"kcryptd_\w+|crypt_(?!o)\w+|dmcrypt_\w+|_*dm_submit_bio|dm_make_request"),
        (
            "compaction",
            r"compact_(zone|node|finished)\w*|compaction_\w+|isolate_(migratepages|freepages)\w*|"
            r"_*try_to_compact_pages|sysctl_compaction_handler|_*alloc_pages_direct_compact|migrate_(pages|folios)\w*|"
            r"migration_entry_wait\w*|migrate_(folio|page)_\w+",
        ),
        ("reclaim_kswapd", r"throttle_direct_reclaim|allow_direct_reclaim|pfmemalloc_watermark_ok"),
        (THROTTLED, r"reclaim_throttle|consider_reclaim_throttle"),
        ("reclaim_noprogress", r"_*mem_cgroup_handle_over_high|should_reclaim_retry|out_of_memory"),
        ("reclaim_scan", RECLAIMS.pattern),
        ("reclaim_noprogress", r"_*alloc_pages_slowpath"),
        (
            "swap_in",
            r"do_swap_page|swap_(readpage|read_folio|read_page)\w*|swapin_\w+|swap_cluster_readahead|"
            r"swap_vma_readahead|_*read_swap_cache_async|shmem_swapin\w*|shmem_get_folio_swapin|"
            r"unuse_\w+|swap_(cache|slot)_\w+",
        ),
        (
            "file_write",
            r"balance_dirty_pages\w*|generic_perform_write|jbd2_\w+|\w*_fsync\w*|\w*fdatasync\w*|"
            r"start_this_handle|wait_transaction_\w+|add_transaction_credits|do_get_write_access|"
            r"ext4_\w*(write|journal|dirty|sync)\w*|iomap_\w*write\w*|xfs_\w*(write|log)\w*|"
            r"btrfs_\w*(write|sync|commit)\w*|f2fs_\w*(write|sync)\w*|write_cache_pages|do_writepages|"
            r"_*filemap_fdatawa\w+|file_write_and_wait\w*|sync_inode\w*|do_fsync|"
            r"(wait_on_page|folio_wait)_writeback\w*|__sync_dirty_buffer|sync_dirty_buffer",
        ),
        (
            "file_read",
            r"filemap_\w+|generic_file_(buffered_)?read\w*|read_pages|page_cache_\w*ra\w*|"
            r"_*do_page_cache_readahead|ondemand_readahead|force_page_cache_\w+|read_cache_\w+|"
            r"do_read_cache_\w+|ext4_\w*(read|bread|lookup|find_entry|get_inode|iget|getblk)\w*|"
            r"mpage_read\w*|iomap_\w*read\w*|xfs_\w*(read|lookup)\w*|btrfs_\w*(read|lookup)\w*|"
            r"_*bread\w*|_*bh_read\w*|ext4_\w*map_blocks|ext4_ext_\w+|ext4_readdir|"
            r"kernel_read|_*do_fault|do_read_fault|do_shared_fault|do_cow_fault",
        ),
    )
)
# What takes a lock -> a function that all its holders are in. zram: each CPU has one stream to
# compress with, since 6.15 a mutex (zram: permit preemption with active compression stream).
HELD_WITHIN = {"zcomp_stream_get": "zram_submit_bio"}
# /proc/PID/stack omits __sched functions: schedule() and all slow paths of locks (see
# stack_trace_consume_entry_nosched()). A task that sleeps directly in these waits for a lock.
LOCKERS = re.compile(
    r"do_user_addr_fault|lock_mm_and_find_vma|vm_mmap_pgoff|_*vm_munmap|do_madvise|do_mprotect_pkey|"
    r"_*(x64|arm64|do)_sys_(brk|mmap|munmap|mremap)|ksys_mmap_pgoff|exit_mmap|dup_mm(ap)?|mm_\w+|"
    r"\w+_(buffered|file|dio)_write_iter|generic_file_write_iter|ext4_map_blocks|ext4_da_map_blocks|"
    r"path_openat|open_last_lookups|do_last|lookup_slow|walk_component|filename_create|do_unlinkat|"
    r"iterate_dir|(page|folio)_lock_anon_vma_read|rmap_walk_\w+|unlink_(anon|file)_vmas?|"
    r"anon_vma_\w+|_*anon_vma_prepare|proc_pid_\w+|_*access_remote_vm|unmap_vmas|free_pgtables|"
    + "|".join(HELD_WITHIN)
)
# A task that sleeps in these sleeps in io_schedule(), which /proc/PID/stack also omits.
ALWAYS_IO = frozenset(("swap_in", "file_read", "dm_crypt", "reclaim_writeback", "io"))
# Small functions of reclaim that compilers inline into these functions.
INLINED = (
    ("reclaim_kswapd", re.compile(r"try_to_free_pages")),
    (THROTTLED, re.compile(r"do_try_to_free_pages|shrink_(node|zones|inactive_list)\w*")),
)
# Functions whose time freepages_us counts, asleep or not; and those that compact_us omits.
IN_FREEPAGES = re.compile(r"_*do_try_to_free_pages|shrink_\w+")
COMPACTION_ASKED = re.compile(r"sysctl_compaction_handler|compact_(store|node)")
MIGRATION_WAITS = re.compile(r"migration_entry_wait\w*")
POOLED = re.compile(r"_*(dm_(submit|make)|clone_|alloc_(io|tio))\w*")
RECLAIM = frozenset(
    (
        "reclaim_scan",
        "reclaim_swapout",
        "reclaim_writeback",
        "reclaim_noprogress",
        "reclaim_kswapd",
        THROTTLED,
        ON_WRITEBACK,
    )
)


@dataclass(frozen=True)
class StackClass:
    """What a stack shows: `kind` is a cause's key, or one of the kinds above.

    `io`: waits in io_schedule(), which the blkio clock counts. `swapping`: in do_swap_page().
    `reclaiming`: in functions that freepages_us counts. `compacts`: works in compaction, "asked"
    for through /proc or sysfs, which no clock counts, or "direct", which compact_us counts.
    """

    kind: str
    io: bool = False
    swapping: bool = False
    reclaiming: bool = False
    compacts: str = ""


@lru_cache(maxsize=65536)
def classify_stack(stack: tuple[str, ...], wchan: str = "", state: str = "D") -> StackClass:
    """Classify a stack; if there is none, the wait channel is used instead."""
    if not stack and wchan not in ("", "0", "-"):
        stack = (wchan,)
    kind = _kind(stack) if state == "R" else _asleep_in(stack) or _kind(stack)
    io = kind in ALWAYS_IO or (
        kind not in ("lock", FOLLOW, BACKPRESSURE) and any(map(IO_WAITS.fullmatch, stack))
    )
    compacts = ""
    if kind == "compaction" and not any(map(MIGRATION_WAITS.fullmatch, stack)):
        compacts = "asked" if any(map(COMPACTION_ASKED.fullmatch, stack)) else "direct"
    reclaiming = any(map(IN_FREEPAGES.fullmatch, stack))
    return StackClass(kind, io, "do_swap_page" in stack, reclaiming, compacts)


def may_hold(other: tuple[str, ...], waiting: tuple[str, ...]) -> bool:
    """Whether a task with the stack `other` may hold the lock that `waiting` waits for."""
    within = HELD_WITHIN.get(waiting[0]) if waiting else None
    return within is None or within in other


def _asleep_in(stack: tuple[str, ...]) -> str:
    """The kind of a sleeping task by its innermost function only; "" if that does not decide."""
    names = [name for name in stack[:4] if not re.fullmatch(r"_*(io_)?schedule\w*", name)]
    if not names:
        return ""
    if LOCKERS.fullmatch(names[0]):
        return "lock"
    if names[0] == "msleep":  # too_many_isolated(), before 5.16
        names = names[1:] or [""]
    bare = names[1:] if names[0] == "down" else names  # before 5.13 the stack shows it
    if bare and SWAP_BIOS.fullmatch(bare[0]) and any(map(RECLAIMS.fullmatch, stack)):
        return "reclaim_swapout"
    return next((kind for kind, name in INLINED if name.fullmatch(names[0])), "")


def _kind(stack: tuple[str, ...]) -> str:
    waits_for_writeback = waits_for_memory_pool = in_dm_pool = False
    for place, name in enumerate(stack):
        if WRITEBACK_WAITS.fullmatch(name):
            outer = stack[place + 1 :]
            waits_for_writeback = _is_congestion(name) or any(map(RECLAIMS.fullmatch, outer))
            if waits_for_writeback and not any("compact" in function for function in outer[:6]):
                return "reclaim_writeback"
        if name.startswith("mempool_alloc"):
            waits_for_memory_pool = True
        if WAITS.fullmatch(name):
            continue
        cause = next((cause for cause, names in RULES if names.fullmatch(name)), None)
        if POOLED.fullmatch(name):
            # Every bio passes here, and bios that the disk completes refill the pool. The outer
            # functions show the purpose of the wait, crypt_alone_us the share of dm-crypt in it.
            in_dm_pool = in_dm_pool or waits_for_memory_pool
            continue
        if cause == "reclaim_scan" and any(map(IO_WAITS.fullmatch, stack[:place])):
            submits = any(map(SUBMISSION_WAITS.fullmatch, stack[:place]))
            return "reclaim_swapout" if submits else "reclaim_writeback"
        if cause == THROTTLED:
            return _throttled(stack[place + 1 :])
        if cause is not None:
            return cause
    if in_dm_pool:
        return "dm_crypt"
    if not any(map(IO_WAITS.fullmatch, stack)):
        return NOTHING
    # An unknown file system.
    system_calls = {"vfs_write": "file_write", "vfs_read": "file_read"}
    return next((system_calls[name] for name in stack if name in system_calls), SOME_IO)


def _throttled(callers: tuple[str, ...]) -> str:
    """The kind by the caller of reclaim_throttle().

    shrink_node() calls it on congestion, shrink_inactive_list() (often inlined into
    shrink_lruvec()) in a cgroup of version 1 on writeback, all others for other reasons.
    """
    caller = callers[0] if callers else ""
    in_group = "try_to_free_mem_cgroup_pages" in callers
    lists = ("shrink_inactive_list", "shrink_lruvec")
    return ON_WRITEBACK if caller == "shrink_node" or (in_group and caller in lists) else THROTTLED


def _is_congestion(name: str) -> bool:
    return name in ("congestion_wait", "wait_iff_congested")


def shown(stack: tuple[str, ...]) -> tuple[str, ...]:
    """The stack without the functions of the scheduler at its inner end."""
    place = 0
    while place < len(stack) - 1 and re.fullmatch(r"_*(io_)?schedule\w*", stack[place]):
        place += 1
    return stack[place:]
