/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "trace.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parts.h"

/* The compiled trace.bpf.c lies within this program. */
__asm__(".section .rodata\n"
	".balign 8\n"
	"trace_object: .incbin \"" TRACE_OBJECT "\"\n"
	"trace_object_end:\n"
	".previous\n");
extern const char object[] __asm__("trace_object"), object_end[] __asm__("trace_object_end");

#define TRIES 8 /* to read all sums of one moment */
#define MOST_CELLS 96
#define MOST_PROGRAMS 4 /* of a group */
#define PLAIN "_plain" /* the block programs without compare-and-exchange (before 5.12) */

static const struct column *cells[MOST_CELLS];
static long long told[MOST_CELLS];
static int cell_count;
static volatile long long *sums; /* the kernel's struct sums, mapped here */
static struct bpf_object *loaded;
static struct list *problems_to;
static char refused[64]; /* the program that did not load, as libbpf says */
bool trace_loud;

/* libbpf's warnings: which program it was that the kernel did not take, and why. */
static int said(enum libbpf_print_level level, const char *format, va_list words)
{
	char line[256], *name, *end;
	va_list again;

	if (level != LIBBPF_WARN)
		return 0;
	if (trace_loud) {
		va_copy(again, words);
		vfprintf(stderr, format, again);
		va_end(again);
	}
	vsnprintf(line, sizeof(line), format, words);
	name = strstr(line, "prog '");
	end = strstr(line, "': failed to load:");
	if (name && end && !*refused)
		snprintf(refused, sizeof(refused), "%.*s", (int)(end - name - 6), name + 6);
	return 0;
}

/* ---- loading */

static struct bpf_program *program(const char *name, bool plain)
{
	struct bpf_program *found;
	char text[64];

	snprintf(text, sizeof(text), "%s%s", name, plain ? PLAIN : "");
	found = bpf_object__find_program_by_name(loaded, text);
	return found ? found : bpf_object__find_program_by_name(loaded, name);
}

/* The group that has the program which the kernel did not take. */
static struct group *refusing(void)
{
	for (struct group *group = groups; group < groups + GROUPS; group++)
		for (const char *const *name = group->programs; *name; name++)
			if (group->wanted && !strncmp(refused, *name, strlen(*name)))
				return group;
	return NULL;
}

static int try_to_load(const struct watched *watched, bool plain)
{
	struct bpf_program *one;
	struct bpf_map *map;
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "trace");

	*refused = 0;
	loaded = bpf_object__open_mem(object, object_end - object, &options);
	if (!loaded)
		return -errno;
	bpf_object__for_each_program(one, loaded)
		bpf_program__set_autoload(one, false);
	for (struct group *group = groups; group < groups + GROUPS; group++)
		for (const char *const *name = group->programs; group->wanted && *name; name++)
			bpf_program__set_autoload(program(*name, plain), true);
	/* Memory is the experiment: nothing is taken for disks that are not there. */
	map = bpf_object__find_map_by_name(loaded, "data_requests");
	bpf_map__set_autocreate(map, groups[DATA].wanted);
	map = bpf_object__find_map_by_name(loaded, ".rodata.watched");
	if (bpf_map__set_initial_value(map, watched, sizeof(*watched)))
		return -errno;
	return bpf_object__load(loaded);
}

/* Leaves out, and names, what this kernel does not take. False: it takes nothing. */
static bool load(const struct watched *watched, bool *plain, struct list *missing)
{
	int error;

	while ((error = try_to_load(watched, *plain))) {
		struct group *group = refusing();

		bpf_object__close(loaded);
		loaded = NULL;
		if (group >= &groups[DISK] && group <= &groups[DATA] && !*plain) {
			*plain = true;
			continue;
		}
		list_add(missing, "%s: %s", group ? group->what : "BPF", strerror(-error));
		if (!group)
			return false;
		group->wanted = false;
	}
	return true;
}

static void attach(struct group *group, bool plain, struct list *missing)
{
	/* What is attached stays so as long as this process lives. */
	struct bpf_link *links[MOST_PROGRAMS];
	int count = 0;

	for (const char *const *name = group->programs; *name; name++) {
		links[count] = bpf_program__attach(program(*name, plain));
		if (links[count]) {
			count++;
			continue;
		}
		list_add(missing, "%s: %s", group->what, strerror(errno));
		group->wanted = false;
		while (count--)
			bpf_link__destroy(links[count]);
		return;
	}
	for (int i = 0; i < group->count; i++)
		/* Alone is who has something in flight while the disk has not. */
		if (group->columns[i].open != CRYPT_ALONE || groups[DISK].wanted)
			cells[cell_count++] = &group->columns[i];
}

/* Whether what a group counts by is counted itself. */
static bool counted(struct group *group, struct list *missing)
{
	if (group == &groups[WITHOUT_PAGE])
		group->wanted = groups[DIRECT].wanted && groups[FAILURES].wanted;
	if (group == &groups[SLOW_PATH])
		group->wanted = groups[THROTTLED].wanted || groups[CONGESTION].wanted ||
				groups[IFF_CONGESTED].wanted;
	if (!group->wanted)
		list_add(missing, "%s: what they are counted by is missing", group->what);
	return group->wanted;
}

static int map_of(const char *name)
{
	return bpf_object__find_map_fd_by_name(loaded, name);
}

static void watch_in_flight(const struct device *devices, int count, struct list *missing)
{
	char folder[256];

	for (; count; devices++, count--) {
		folder_of(folder, sizeof(folder), devices->name);
		if (groups[DISK].wanted && goes_by(devices, "disk"))
			in_flight_watch("disk", folder, map_of("disk_requests"), sums,
					SUM_DISK_IN_FLIGHT, SUM_DISK_DROPPED, missing);
		if (groups[CRYPT].wanted && goes_by(devices, "crypt"))
			in_flight_watch("crypt", folder, map_of("crypt_bios"), sums,
					SUM_CRYPT_IN_FLIGHT, SUM_CRYPT_DROPPED, missing);
		if (groups[DATA].wanted && goes_by(devices, OWN))
			in_flight_watch("the workload's disks", folder, map_of("data_requests"), sums,
					SUM_DATA_IN_FLIGHT, SUM_DATA_DROPPED, missing);
	}
}

/* Where the page allocator waits: in its slow path, or in what that is a part of. */
static void name_functions(struct watched *watched, struct list *missing)
{
	static const char *const allocator[] = {
		"__alloc_pages_slowpath",	"__alloc_pages_nodemask", /* up to 5.12 */
		"__alloc_pages",		"__alloc_pages_noprof", /* from 6.10 on */
		"__alloc_frozen_pages_noprof", /* from 6.14 on */
	};
	int read = symbols_read("/proc/kallsyms"), found = 0;

	if (read <= 0)
		list_add(missing, "function names: %s",
			 read ? strerror(-read) : "hidden (kernel.kptr_restrict)");
	for (size_t i = 0; i < ARRAY_SIZE(allocator); i++)
		found += symbols_find(allocator[i], watched->slow_paths + found,
				      SLOW_PATHS - found);
	if (!found) {
		list_add(missing, "%s: no name of it", groups[SLOW_PATH].what);
		groups[SLOW_PATH].wanted = false;
	}
}

void trace_open(const struct device *devices, int count, struct list *missing,
		struct list *problems)
{
	struct watched watched = { 0 };
	struct kernel_types types;
	bool plain = false;
	int error;

	problems_to = problems;
	libbpf_set_print(said);
	error = kernel_types(&types);
	if (error) {
		if (error == -ESRCH) /* libbpf found none, anywhere */
			list_add(missing, "trace: no BTF (CONFIG_DEBUG_INFO_BTF)");
		else
			list_add(missing, "trace: BTF: %s", strerror(-error));
		return;
	}
	want(devices, count, &types, &watched, missing);
	if (groups[FAILURES].wanted || groups[SLOW_PATH].wanted)
		name_functions(&watched, missing);
	if (!load(&watched, &plain, missing))
		return;
	sums = mmap(NULL, sizeof(struct sums), PROT_READ | PROT_WRITE, MAP_SHARED, map_of(".bss"),
		    0);
	if (sums == MAP_FAILED) {
		list_add(missing, "BPF: %s", strerror(errno));
		return;
	}
	for (struct group *group = groups; group < groups + GROUPS; group++)
		if (group->wanted && counted(group, missing))
			attach(group, plain, missing);
	watch_in_flight(devices, count, missing);
	failures_open(map_of("failures"), map_of("reclaimers"), sums, problems);
}

/* ---- reading */

bool trace_any(void)
{
	return cell_count > 0;
}

void trace_columns(struct text *to)
{
	for (int i = 0; i < cell_count; i++) {
		if (i)
			text_char(to, '\t');
		text_string(to, cells[i]->name);
	}
}

static bool same_moment(const long long *before)
{
	for (int i = 0; i < SUM_OF_MOMENT; i++)
		if (sums[i] != before[i])
			return false;
	return true;
}

/*
 * All numbers, and what is to be added to them for the spans that are open. Of one moment (a
 * program that stands between two of them then makes it too little); where there is no such moment
 * open spans wait for the next row.
 */
static void moment(long long *numbers, long long *open)
{
	long long now, since, disk, crypt, data;
	int tries = 0;

	memset(open, 0, OPEN * sizeof(*open));
	do {
		for (size_t i = 0; i < NUMBERS; i++)
			numbers[i] = sums[i];
		if (tries++ == TRIES)
			return;
		now = now_ns();
	} while (!same_moment(numbers));
	disk = numbers[SUM_DISK_IN_FLIGHT] - numbers[SUM_DISK_DROPPED];
	crypt = numbers[SUM_CRYPT_IN_FLIGHT] - numbers[SUM_CRYPT_DROPPED];
	data = numbers[SUM_DATA_IN_FLIGHT] - numbers[SUM_DATA_DROPPED];
	since = now > numbers[SUM_BLOCK_STAMP] ? now - numbers[SUM_BLOCK_STAMP] : 0;
	open[KSWAPD_AWAKE] = numbers[SUM_KSWAPD_AWAKE_NOW] * now;
	open[DISK_BUSY] = disk > 0 ? since : 0;
	open[CRYPT_BUSY] = crypt > 0 ? since : 0;
	open[CRYPT_ALONE] = crypt > 0 && disk <= 0 ? since : 0;
	open[DATA_BUSY] = data > 0 ? since : 0;
}

void trace_cells(struct text *to)
{
	long long numbers[NUMBERS], open[OPEN];

	if (!cell_count)
		return;
	in_flight_check(now_ns());
	moment(numbers, open);
	for (int i = 0; i < cell_count; i++) {
		const struct column *column = cells[i];
		long long value = (numbers[column->number] + open[column->open]) / column->divisor;

		/* A program may be at work between two numbers: never let one seem to go back. */
		if (value > told[i])
			told[i] = value;
		if (i)
			text_char(to, '\t');
		text_number(to, told[i]);
	}
}

void trace_close(void)
{
	static const char *const maps[] = { "spans of reclaim", "tasks in direct reclaim",
					    "failed allocations", "requests of the disk",
					    "bios of the crypt device",
					    "requests of the workload's disks" };

	for (size_t i = 0; cell_count && i < ARRAY_SIZE(maps); i++)
		if (sums[SUM_NO_ROOM_SPAN + i])
			list_add(problems_to, "trace: %lld %s found no room in their map",
				 sums[SUM_NO_ROOM_SPAN + i], maps[i]);
	in_flight_close(problems_to);
}
