/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of trace.bpf.c that times requests of disks and bios of the crypt device. */
#ifndef BLOCK_BPF_H
#define BLOCK_BPF_H

#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1

/* By the address of the request or the bio, which no split, merge or remapping changes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u64);
	__type(value, struct in_flight);
} disk_requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct in_flight);
} crypt_bios SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct in_flight);
} data_requests SEC(".maps");

/*
 * Busy: at each begin and end the time since the one before is added to disk_busy_ns if the disk
 * had a request in flight, to data_busy_ns if one of the workload's own disks had, to crypt_busy_ns
 * if the crypt device had a bio in flight, and to crypt_alone_ns if it had and the disk had nothing.
 * What is in flight is read before the stamp: so it was since the stamp, or the stamp is newer than
 * now. Before 5.12 there is no compare-and-exchange: two CPUs that come here within the same 100 ns
 * or so both add the time since the event before.
 */
static __always_inline __u64 account(bool exact)
{
	__u64 now = bpf_ktime_get_ns();
	__s64 disk = sum_now(SUM_DISK_IN_FLIGHT) - sum_now(SUM_DISK_DROPPED);
	__s64 crypt = sum_now(SUM_CRYPT_IN_FLIGHT) - sum_now(SUM_CRYPT_DROPPED);
	__s64 data = sum_now(SUM_DATA_IN_FLIGHT) - sum_now(SUM_DATA_DROPPED);
	__u64 stamp = sum_now(SUM_BLOCK_STAMP);
	__s64 since = now - stamp;

	if (since <= 0)
		return now;
	if (exact) {
		if (__sync_val_compare_and_swap((__u64 *)&sums.of[SUM_BLOCK_STAMP], stamp, now) !=
		    stamp)
			return now;
	} else {
		*(volatile __u64 *)&sums.of[SUM_BLOCK_STAMP] = now;
	}
	if (disk > 0)
		add(SUM_DISK_BUSY_NS, since);
	if (crypt > 0) {
		add(SUM_CRYPT_BUSY_NS, since);
		if (disk <= 0)
			add(SUM_CRYPT_ALONE_NS, since);
	}
	if (data > 0)
		add(SUM_DATA_BUSY_NS, since);
	return now;
}

/* again: the program that runs behind the other one, and sees what that has missed. */
static __always_inline void begin(void *map, __u64 key, __u32 operation, enum sum in_flight,
				  bool again, bool exact)
{
	struct in_flight entry = { .write = operation == REQ_OP_WRITE };
	long error;

	if (again && bpf_map_lookup_elem(map, &key))
		return;
	entry.began = account(exact);
	error = bpf_map_update_elem(map, &key, &entry, BPF_NOEXIST);
	if (!error)
		add(in_flight, 1);
	else if (again && error != -EEXIST)
		add(in_flight - SUM_DISK_IN_FLIGHT + SUM_NO_ROOM_DISK, 1);
	else if (!again && error == -EEXIST)
		/*
		 * One whose end was not seen, or that was issued twice: it is in flight once. If it
		 * has ended meanwhile it must not come back: nothing would count it.
		 */
		bpf_map_update_elem(map, &key, &entry, BPF_EXIST);
}

static __always_inline void end(void *map, __u64 key, enum sum in_flight, enum sum reads,
				bool exact)
{
	struct in_flight *found = bpf_map_lookup_elem(map, &key), entry;
	__u64 now;

	if (!found)
		return;
	entry = *found;
	if (bpf_map_delete_elem(map, &key))
		return;
	now = account(exact);
	add(in_flight, -1);
	if (entry.write)
		reads += SUM_DISK_WRITES - SUM_DISK_READS;
	ADD(&sums.of[reads], 1);
	ADD(&sums.of[reads + 1], now - entry.began);
}

/*
 * What begins is the tracepoint's last argument. In assembler, as clang makes one load of the two,
 * from a computed address, and 5.10's verifier then takes it for the first argument.
 */
static __always_inline void *beginning(__u64 *ctx, bool queue_first)
{
	void *found;

	if (queue_first)
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(found) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 0)" : "=r"(found) : "r"(ctx));
	return found;
}

static __always_inline bool is(struct gendisk *disk, const volatile struct dev_number *number)
{
	return disk->major == number->major && disk->first_minor == number->minor;
}

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	struct request___before_5_17 *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return old->rq_disk;
	return rq->q->disk;
}

/* Of `count` disks. */
static __always_inline void request_begin(__u64 *ctx, void *map,
					  const volatile struct dev_number *disks, int count,
					  enum sum in_flight, bool again, bool exact)
{
	struct request *rq = beginning(ctx, watched.request_second);
	__u32 operation = rq->cmd_flags & REQ_OP_MASK;
	struct gendisk *disk = disk_of(rq);
	bool found = false;

	for (int i = 0; i < count; i++)
		found |= is(disk, &disks[i]);
	if (found && operation <= REQ_OP_WRITE)
		begin(map, (__u64)rq, operation, in_flight, again, exact);
}

static __always_inline void bio_begin(__u64 *ctx, bool again, bool exact)
{
	struct bio *bio = beginning(ctx, watched.bio_second);
	struct bio___before_5_12 *old = (void *)bio;
	__u32 operation = bio->bi_opf & REQ_OP_MASK;

	if (bpf_core_field_exists(bio->bi_bdev)) {
		if (bio->bi_bdev->bd_dev != ((__u32)watched.crypt.major << 20 | (__u32)watched.crypt.minor))
			return;
	} else if (!is(old->bi_disk, &watched.crypt)) {
		return;
	}
	if (operation <= REQ_OP_WRITE && bio->bi_iter.bi_size)
		begin(&crypt_bios, (__u64)bio, operation, SUM_CRYPT_IN_FLIGHT, again, exact);
}

#define PROGRAM(name, tracepoint, call) \
	SEC("tp_btf/" tracepoint) \
	int name(__u64 *ctx) \
	{ \
		call; \
		return 0; \
	}

/* Each twice: what one of them misses, since it is at work on this CPU already, the other sees. */
#define REQUEST_PROGRAMS(name, NAME, disks, count, suffix, exact) \
	PROGRAM(name##_begin##suffix, "block_rq_issue", \
		request_begin(ctx, &name##_requests, disks, count, SUM_##NAME##_IN_FLIGHT, false, exact)) \
	PROGRAM(name##_again##suffix, "block_rq_issue", \
		request_begin(ctx, &name##_requests, disks, count, SUM_##NAME##_IN_FLIGHT, true, exact)) \
	PROGRAM(name##_end##suffix, "block_rq_complete", \
		end(&name##_requests, ctx[0], SUM_##NAME##_IN_FLIGHT, SUM_##NAME##_READS, exact)) \
	PROGRAM(name##_missed##suffix, "block_rq_complete", \
		end(&name##_requests, ctx[0], SUM_##NAME##_IN_FLIGHT, SUM_##NAME##_READS, exact))

#define BLOCK_PROGRAMS(suffix, exact) \
	REQUEST_PROGRAMS(disk, DISK, &watched.disk, 1, suffix, exact) \
	REQUEST_PROGRAMS(data, DATA, watched.data, DATA_DISKS, suffix, exact) \
	PROGRAM(crypt_begin##suffix, "block_bio_queue", bio_begin(ctx, false, exact)) \
	PROGRAM(crypt_again##suffix, "block_bio_queue", bio_begin(ctx, true, exact)) \
	PROGRAM(crypt_end##suffix, "block_bio_complete", \
		end(&crypt_bios, ctx[1], SUM_CRYPT_IN_FLIGHT, SUM_CRYPT_READS, exact)) \
	PROGRAM(crypt_missed##suffix, "block_bio_complete", \
		end(&crypt_bios, ctx[1], SUM_CRYPT_IN_FLIGHT, SUM_CRYPT_READS, exact))

BLOCK_PROGRAMS(, true)
BLOCK_PROGRAMS(_plain, false)

#endif
