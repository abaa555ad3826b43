// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where everything stands in struct taskstats: include/uapi/linux/taskstats.h, which grew at its
 * end (version 10 in 5.10, 13 in 6.1, 14 in 6.12, 17 in 7.2), but for version 15 of 6.14, which put
 * a maximum and a minimum behind each total (kernel commits 658eb5ab916d and f65c64f311ee); 16
 * moved them to the end. A version whose layout is not known here, or whose size is not what it
 * should be, is decoded as far as the kernel's answer about ourselves proves it.
 */
#include <stdarg.h>

#include "evidence.h"

#define COMM_OFFSET 80 /* of every known version but 15, as what follows */
#define PID_OFFSET 128
#define PPID_OFFSET 132
#define PAIR 16 /* bytes of a (max, min) of version 15 */
#define HEAD_PAIRS_15 3 /* before ac_comm and what follows it */

const char *const delay_names[DELAYS] = {
	"cpu", "rq", "blkio", "swapin", "freepages", "thrashing", "compact", "wpcopy", "irq",
};

/* Where the total begins, the version that it came with, pairs before it in version 15. */
static const struct {
	size_t offset;
	int since;
	size_t pairs;
} totals[DELAYS] = {
	[CPU] = { 72, 1, 3 },	    [RQ] = { 24, 1, 0 },	 [BLKIO] = { 40, 1, 1 },
	[SWAPIN] = { 56, 1, 2 },    [FREEPAGES] = { 320, 7, 3 }, [THRASHING] = { 336, 9, 4 },
	[COMPACT] = { 360, 11, 5 }, [WPCOPY] = { 408, 13, 6 },	 [IRQ] = { 424, 14, 7 },
};

#define FIRST_KNOWN 10
static const size_t sizes[] = { 352, 368, 400, 416, 432, 560, 560, 688 };

const char *taskstats_wrong(const char *format, ...)
{
	static char text[96];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	return text;
}

const char *taskstats_layout(struct layout *layout, int version, size_t size)
{
	size_t head = version == 15 ? PAIR * HEAD_PAIRS_15 : 0;
	size_t number = (size_t)(version - FIRST_KNOWN);

	layout->version = version;
	layout->known = version >= FIRST_KNOWN && number < ARRAY_SIZE(sizes) &&
			sizes[number] == size;
	layout->comm = COMM_OFFSET + head;
	layout->pid = PID_OFFSET + head;
	layout->ppid = PPID_OFFSET + head;
	if (size < layout->ppid + 4)
		return taskstats_wrong("taskstats: version %d with %zu bytes only", version, size);
	for (int i = 0; i < DELAYS; i++) {
		/* An unknown version has those of its head. */
		bool has = layout->known ? totals[i].since <= version : totals[i].since == 1;

		layout->delay[i] = totals[i].offset + (version == 15 ? PAIR * totals[i].pairs : 0);
		if (!has)
			layout->delay[i] = 0;
	}
	return NULL;
}
