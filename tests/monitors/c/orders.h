/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TEST HELPER: a driver is told orders on stdin, a line each, bytes in hex (`-`: none), and answers
 * each by a line.
 */
#ifndef ORDERS_H
#define ORDERS_H

#include <stdlib.h>
#include <string.h>

#include "common.h"

#define WORDS 128

struct order {
	const char *name;
	void (*obey)(void);
};

static struct text out;
static char *words[WORDS];
static int count;

static int64_t number(int at)
{
	if (at >= count)
		abort();
	return strtoll(words[at], NULL, 10);
}

static double real(int at)
{
	if (at >= count)
		abort();
	return strtod(words[at], NULL);
}

static int64_t nanoseconds(int at)
{
	return (int64_t)(real(at) * NS);
}

/* The bytes of a word in exactly as much memory, so that no step beyond them goes unseen. */
static char *bytes(int at, size_t *size)
{
	const char *hex = words[at];
	char *data;

	if (at >= count)
		abort();
	*size = *hex == '-' ? 0 : strlen(hex) / 2;
	data = malloc(*size);
	for (size_t i = 0; i < *size; i++)
		sscanf(hex + 2 * i, "%2hhx", (unsigned char *)&data[i]);
	return data;
}

static __attribute__((unused)) void add_hex(const char *data, size_t size)
{
	if (!size)
		text_char(&out, '-');
	for (size_t i = 0; i < size; i++)
		text_format(&out, "%02x", (unsigned char)data[i]);
}

/* Until the end of stdin. */
static void obey_all(const struct order *orders, size_t known)
{
	size_t room = 0;
	char *line = NULL;

	while (getline(&line, &room, stdin) > 0) {
		char *rest = line;

		line[strcspn(line, "\n")] = '\0';
		for (count = 0; count < WORDS && (words[count] = strsep(&rest, " ")); count++)
			;
		text_clear(&out);
		for (size_t i = 0; i < known; i++)
			if (!strcmp(words[0], orders[i].name))
				orders[i].obey();
		text_char(&out, '\n');
		fwrite(out.data, 1, out.used, stdout);
		fflush(stdout);
	}
	free(line);
}

#endif
