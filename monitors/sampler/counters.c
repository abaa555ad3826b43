// SPDX-License-Identifier: GPL-2.0-or-later
/* Values are copied as the kernel printed them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sampler.h"

#define TOTAL "total="

static const struct {
	const char *name;
	int word;
} stat_fields[] = {
	{ "reads", 0 },	   { "read_sectors", 2 },  { "read_ms", 3 },
	{ "writes", 4 },   { "write_sectors", 6 }, { "write_ms", 7 },
	{ "in_flight", 8 }, { "io_ms", 9 },	   { "queue_ms", 10 },
};
#define STAT_WORDS 11

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

size_t word_size(const char *at)
{
	size_t size = 0;

	while (at[size] && !is_blank(at[size]))
		size++;
	return size;
}

const char *next_word(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* ---- `name value` lines: /proc/vmstat, and /proc/meminfo with its colons and units */

static void named_header(const struct table *table, struct text *out)
{
	for (const char *line = table->sources->names.data; *line; line = next_line(line)) {
		size_t size = word_size(line);

		while (size && line[size - 1] == ':')
			size--;
		text_char(out, '\t');
		text_add(out, line, size);
	}
}

bool is_line_of(const char *line, const char *name, size_t size)
{
	return !strncmp(line, name, size) && is_blank(line[size]);
}

/*
 * The names are those of the start, in their order, so each line's is only compared; but a counter
 * that went away leaves its cell empty.
 */
static void named_cells(const struct table *table, struct text *out)
{
	const char *all = source_read(table->sources), *line = all;

	for (const char *name = table->sources->names.data; *name; name = next_line(name)) {
		size_t size = word_size(name);

		text_char(out, '\t');
		if (!is_line_of(line, name, size)) {
			const char *found = all;

			while (*found && !is_line_of(found, name, size))
				found = next_line(found);
			if (!*found)
				continue;
			line = found;
		}
		line = next_word(line + size);
		text_add(out, line, word_size(line));
		line = next_line(line);
	}
}

/* ---- `total=` of /proc/pressure/…, in microseconds: some, then full, always in this order */

static const char *const kinds[] = { "some", "full" };

static const struct {
	const char *name;
	unsigned int kinds; /* bits: of the kinds */
} pressures[] = { { "memory", 3 }, { "io", 3 }, { "cpu", 1 } };

static void pressure_header(const struct table *table, struct text *out)
{
	for (int i = 0; i < table->count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			if (table->sources[i].kinds & 1u << k)
				text_format(out, "\t%s_%s_us", table->sources[i].label, kinds[k]);
}

static void pressure_cells(const struct table *table, struct text *out)
{
	for (int i = 0; i < table->count; i++) {
		const char *at = source_read(&table->sources[i]);

		for (unsigned int left = table->sources[i].kinds; left; left &= left - 1) {
			text_char(out, '\t');
			at = strstr(at, TOTAL) ?: "";
			at += *at ? strlen(TOTAL) : 0;
			text_add(out, at, word_size(at));
		}
	}
}

/* Which of the kinds it has; the others are missing. */
static unsigned int find_kinds(const struct source *source, unsigned int wanted,
			       struct list *missing)
{
	unsigned int found = 0;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (!(wanted & 1u << k))
			continue;
		if (strstr(source->names.data, kinds[k]))
			found |= 1u << k;
		else
			list_add(missing, "/proc/pressure/%s %s", source->label, kinds[k]);
	}
	return found;
}

/* ---- /sys/class/block/NAME/stat of each watched device */

static void devices_header(const struct table *table, struct text *out)
{
	for (int i = 0; i < table->count; i++)
		for (size_t f = 0; f < ARRAY_SIZE(stat_fields); f++)
			text_format(out, "\t%s_%s", table->sources[i].label, stat_fields[f].name);
}

static void devices_cells(const struct table *table, struct text *out)
{
	for (int i = 0; i < table->count; i++) {
		const char *at = next_word(source_read(&table->sources[i]));
		const char *words[STAT_WORDS];
		int count = 0;

		while (*at && count < STAT_WORDS) {
			words[count++] = at;
			at = next_word(at + word_size(at));
		}
		for (size_t f = 0; f < ARRAY_SIZE(stat_fields); f++) {
			const char *word = count == STAT_WORDS ? words[stat_fields[f].word] : "";

			text_char(out, '\t');
			text_add(out, word, word_size(word));
		}
	}
}

/* ---- all tables */

static struct source *add_source(struct table *table, const char *path, const char *called,
				 struct list *missing)
{
	size_t size = sizeof(*table->sources) * (size_t)(table->count + 1);

	table->sources = realloc(table->sources, size);
	if (!table->sources)
		fail("out of memory");
	if (!source_open(&table->sources[table->count], path)) {
		list_add(missing, "%s", called);
		return NULL;
	}
	return &table->sources[table->count++];
}

static void open_named(struct table *table, const char *root, const char *name,
		       struct list *missing)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/%s", root, name);
	add_source(table, path, path + strlen(root), missing);
}

static void open_pressures(struct table *table, const char *root, struct list *missing)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(pressures); i++) {
		struct source *source;

		snprintf(path, sizeof(path), "%s/proc/pressure/%s", root, pressures[i].name);
		source = add_source(table, path, path + strlen(root), missing);
		if (!source)
			continue;
		source->label = pressures[i].name;
		source->kinds = find_kinds(source, pressures[i].kinds, missing);
	}
}

static void open_devices(struct table *table, const char *root, char **devices, int count,
			 struct list *missing)
{
	char path[PATH_MAX], called[NAME_MAX];

	for (int i = 0; i < count; i++) {
		char *device = strchr(devices[i], '=');
		struct source *source;

		if (!device)
			fail("%s is not PREFIX=DEVICE", devices[i]);
		*device++ = '\0';
		snprintf(path, sizeof(path), "%s/sys/class/block/%s/stat", root, device);
		snprintf(called, sizeof(called), "block device %s", device);
		source = add_source(table, path, called, missing);
		if (source)
			source->label = devices[i];
	}
}

void counters_open(struct table *tables, const char *root, char **devices, int count,
		   struct list *missing)
{
	struct table *vmstat = tables, *meminfo = tables + 1, *psi = tables + 2,
		     *diskstats = tables + 3;

	*vmstat = (struct table){ "vmstat.tsv", named_header, named_cells, NULL, 0, 1 };
	open_named(vmstat, root, "vmstat", missing);
	*meminfo = (struct table){ "meminfo.tsv", named_header, named_cells, NULL, 0, 1 };
	open_named(meminfo, root, "meminfo", missing);
	*psi = (struct table){ "psi.tsv", pressure_header, pressure_cells, NULL, 0, 1 };
	open_pressures(psi, root, missing);
	*diskstats = (struct table){ "diskstats.tsv", devices_header, devices_cells, NULL, 0, 1 };
	open_devices(diskstats, root, devices, count, missing);
}

void table_header(const struct table *table, struct text *out)
{
	text_string(out, "elapsed_s\tlate_s");
	table->header(table, out);
	text_char(out, '\n');
}

void table_row(const struct table *table, struct text *out, int64_t elapsed, int64_t late)
{
	text_seconds(out, elapsed);
	text_char(out, '\t');
	text_seconds(out, late);
	table->cells(table, out);
	text_char(out, '\n');
}
