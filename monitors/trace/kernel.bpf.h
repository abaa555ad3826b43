/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Those parts of the kernel's structures that are read; where they are libbpf takes from its BTF. */
#ifndef KERNEL_BPF_H
#define KERNEL_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	__u32 bd_dev;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev; /* from 5.12 on (309dca309fc3) */
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
};

struct bio___before_5_12 {
	struct gendisk *bi_disk;
};

struct request_queue {
	struct gendisk *disk; /* from 5.15 on (d152c682f03c) */
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
};

struct request___before_5_17 {
	struct gendisk *rq_disk; /* gone with f3fa33acca9f */
};

/* x86-64's, at a function's entry: its arguments 1, 3 and 4. */
struct pt_regs {
	unsigned long cx, dx, di;
};

#pragma clang attribute pop

#endif
