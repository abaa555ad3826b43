/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the file of functions that it is told, then answers each address (hex) with a name, and
 * each `=NAME` with the pieces of that function: `START+BYTES …`.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/parts.h"

#define PIECES 2

static void find(struct text *to, char *name)
{
	struct function pieces[PIECES];
	int count;

	name[strcspn(name, "\n")] = 0;
	count = symbols_find(name, pieces, PIECES);
	for (int i = 0; i < count; i++)
		text_format(to, "%s%llx+%llu", i ? " " : "", pieces[i].start, pieces[i].bytes);
}

int main(int argc, char **argv)
{
	struct text name = { 0 };
	char line[64];

	printf("%d\n", argc == 2 ? symbols_read(argv[1]) : -1);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		text_clear(&name);
		if (*line == '=')
			find(&name, line + 1);
		else
			symbols_name(&name, strtoull(line, NULL, 16));
		printf("%.*s\n", (int)name.used, name.data);
		fflush(stdout);
	}
	return 0;
}
