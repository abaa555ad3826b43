/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `observers trace [PREFIX=DEVICE…]`: the sums of this kernel, by hand and for tests. Says what is
 * missing and the columns, then answers each line of stdin: `failures` and `reclaimers` with their
 * rows, `many` with 1 if failures wait to be taken at once, any other with the cells; an empty line
 * ends an answer. What the kernel's verifier has against a program goes to stderr.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

#define MOST_DEVICES 8

static void print_text(struct text *text)
{
	if (fwrite(text->data, 1, text->used, stdout) != text->used || fflush(stdout))
		exit(1);
	text_clear(text);
}

static void print_list(struct text *text, const char *what, const struct list *list)
{
	for (int i = 0; i < list->count; i++)
		text_format(text, "%s: %s\n", what, list->items[i]);
}

static void answer(const char *asked, struct text *text)
{
	if (!strcmp(asked, "failures\n")) {
		while (!trace_failures(text, 0))
			;
	} else if (!strcmp(asked, "many\n")) {
		text_format(text, "%d\n", trace_many_failures());
	} else if (!strcmp(asked, "reclaimers\n")) {
		trace_reclaimers(text);
	} else {
		trace_cells(text);
		text_char(text, '\n');
	}
	text_char(text, '\n');
}

int trace_main(int argc, char **argv)
{
	struct device devices[MOST_DEVICES];
	struct list missing = { 0 }, problems = { 0 };
	struct text text = { 0 };
	char line[64];
	int count = 0;

	for (int i = 1; i < argc && count < MOST_DEVICES; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			fail("usage: observers trace [PREFIX=DEVICE…]");
		*equals = 0;
		devices[count++] = (struct device){ argv[i], equals + 1 };
	}
	trace_loud = true;
	trace_open(devices, count, &missing, &problems);
	print_list(&text, "not available", &missing);
	text_string(&text, "columns:\t");
	trace_columns(&text);
	text_string(&text, "\n\n");
	print_text(&text);
	while (fgets(line, sizeof(line), stdin)) {
		answer(line, &text);
		print_text(&text);
	}
	trace_close();
	print_list(&text, "problem", &problems);
	print_text(&text);
	return 0;
}
