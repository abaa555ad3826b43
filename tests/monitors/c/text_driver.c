// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: text.c by itself. stdin: an int32, that many bytes, and a letter: what is made of
 * the bytes; stdout: an int32 and that many bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"

static void answer(struct text *out, char *data, size_t size, int letter)
{
	switch (letter) {
	case 'e':
		text_escape(out, data, size);
		break;
	case 'j':
		text_json(out, data);
		break;
	case 's':
		text_seconds(out, strtoll(data, NULL, 10));
		break;
	case 'n':
		text_number(out, strtoll(data, NULL, 10));
		break;
	default:
		abort();
	}
}

int main(void)
{
	struct text out = { 0 };
	int32_t size;

	while (fread(&size, sizeof(size), 1, stdin) == 1) {
		char *data = calloc(1, (size_t)size + 1);

		if (!data || fread(data, 1, (size_t)size, stdin) != (size_t)size)
			abort();
		text_reserve(&out, 1);
		text_clear(&out);
		answer(&out, data, (size_t)size, getchar());
		free(data);
		size = (int32_t)out.used;
		fwrite(&size, sizeof(size), 1, stdout);
		fwrite(out.data, 1, out.used, stdout);
		fflush(stdout);
	}
	free(out.data);
	return 0;
}
