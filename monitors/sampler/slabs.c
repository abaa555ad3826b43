// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Objects of some slab caches, from /proc/slabinfo (root's alone): lines
 * `name <active_objs> <num_objs> <objsize> …`. Under SLUB those of a CPU's own slabs are active all.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sampler.h"

#define COUNTS 2 /* active_objs, num_objs */
/* Samples between two rows: the kernel prints some 200 caches, which costs more than all else. */
#define EVERY 4

static void slabs_header(const struct table *table, struct text *out)
{
	for (const char *name = table->sources->names.data; *name; name = next_line(name)) {
		text_char(out, '\t');
		text_add(out, name, word_size(name));
		text_string(out, "_active\t");
		text_add(out, name, word_size(name));
		text_string(out, "_objs");
	}
}

/* The line of this cache, looked for from `at` on, then from the beginning; NULL if it is gone. */
static const char *line_of(const char *name, const char *at, const char *all)
{
	size_t size = word_size(name);

	for (const char *line = at; *line; line = next_line(line))
		if (is_line_of(line, name, size))
			return line;
	for (const char *line = all; line < at; line = next_line(line))
		if (is_line_of(line, name, size))
			return line;
	return NULL;
}

/* The names stand in the kernel's own order, so one pass finds all. */
static void slabs_cells(const struct table *table, struct text *out)
{
	const char *all = source_read(table->sources), *at = all;

	for (const char *name = table->sources->names.data; *name; name = next_line(name)) {
		const char *line = line_of(name, at, all), *word = line ? line : "";

		at = line ? line : at;
		for (int i = 0; i < COUNTS; i++) {
			word = next_word(word + word_size(word));
			text_char(out, '\t');
			text_add(out, word, word_size(word));
		}
	}
}

/* Keeps of the names that the file begins its lines with those that are wanted, in their order. */
static void keep(struct source *source, char **wanted, int count, struct list *missing)
{
	bool *found = calloc((size_t)count, sizeof(*found));
	struct text kept = { 0 };

	if (!found)
		fail("out of memory");
	for (const char *line = source->names.data; *line; line = next_line(line)) {
		for (int i = 0; i < count; i++) {
			if (found[i] || !is_line_of(line, wanted[i], strlen(wanted[i])))
				continue;
			found[i] = true;
			text_format(&kept, "%s\n", wanted[i]);
		}
	}
	for (int i = 0; i < count; i++)
		if (!found[i])
			list_add(missing, "slab cache %s", wanted[i]);
	text_add(&kept, "", 1);
	source->names = kept;
	free(found);
}

void slabs_open(struct table *table, const char *root, char **wanted, int count,
		struct list *missing)
{
	char path[PATH_MAX];

	*table = (struct table){ "slabinfo.tsv", slabs_header, slabs_cells, NULL, 0, EVERY };
	if (!count)
		return;
	table->sources = calloc(1, sizeof(*table->sources));
	if (!table->sources)
		fail("out of memory");
	snprintf(path, sizeof(path), "%s/proc/slabinfo", root);
	if (!source_open(table->sources, path)) {
		list_add(missing, "%s", path + strlen(root));
		return;
	}
	/* A module that is loaded later has its caches before the others: all is read to its end. */
	table->sources->lines = INT_MAX;
	keep(table->sources, wanted, count, missing);
	table->count = 1;
}
