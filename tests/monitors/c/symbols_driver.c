/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file of functions that it is told, then answers each address (hex) with a name. */
#include <stdlib.h>

#include "trace/parts.h"

int main(int argc, char **argv)
{
	struct text name = { 0 };
	char line[64];

	printf("%d\n", argc == 2 ? symbols_read(argv[1]) : -1);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		text_clear(&name);
		symbols_name(&name, strtoull(line, NULL, 16));
		printf("%.*s\n", (int)name.used, name.data);
		fflush(stdout);
	}
	return 0;
}
