/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SAMPLER_H
#define SAMPLER_H

#include "common.h"

/* ---- source.c: files of counters */

/* Opened once, and read from 0 for each sample. */
struct source {
	int fd;
	int lines; /* that it has; this never changes */
	struct text names; /* its text as it was found, terminated */
	const char *label; /* where it stands in column names; NULL: it does not */
	unsigned int kinds; /* of a pressure: bits, some and full */
};

bool source_open(struct source *, const char *path);
/* Its whole text, until the next call; an empty one if it cannot be read. */
const char *source_read(const struct source *);

/* ---- counters.c: the kernel's counters as rows of tables */

/* A result file; one without sources is not written. */
struct table {
	const char *file;
	void (*header)(const struct table *, struct text *);
	void (*cells)(const struct table *, struct text *);
	struct source *sources;
	int count;
	int every; /* a row in every Nth sample */
};

/* Words between blanks, lines; both of terminated text. */
size_t word_size(const char *at);
const char *next_word(const char *at);
const char *next_line(const char *line);
/* Whether a line begins with this name and a blank. */
bool is_line_of(const char *line, const char *name, size_t size);

#define TABLES 5
/*
 * Opens what is there below root; devices: words `PREFIX=NAME`, kernel's names. What this kernel
 * lacks has no column and is named in `missing`.
 */
void counters_open(struct table *tables, const char *root, char **devices, int count,
		   struct list *missing);
/*
 * slabs.c: the same of these slab caches, less often; no table if none is wanted.
 */
void slabs_open(struct table *table, const char *root, char **wanted, int count,
		struct list *missing);
/* The table's first line, and a row: a cell that could not be read is empty. */
void table_header(const struct table *, struct text *);
void table_row(const struct table *, struct text *, int64_t elapsed, int64_t late);

/* ---- kmsg.c: the kernel's log, as kern.log's lines */

struct kmsg {
	int fd; /* -1: none */
	int64_t records, missed;
};

bool kmsg_open(struct kmsg *, const char *path);
void kmsg_rehearse(struct text *); /* touches what any records need, if there are no lines in it */
/*
 * Adds the lines of some records; true if the ring is now empty. Never waits, and takes a flood in
 * slices of at most `limit` records: what is not read now stays in the kernel's ring.
 */
bool kmsg_read(struct kmsg *, struct text *, int limit);

#endif
