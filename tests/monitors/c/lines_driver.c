// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TEST HELPER: what lines.c makes of chunks. stdin, any number of times: a size and a moment (int64
 * each), and that many bytes. Size -1 begins a log, -2 ends it: then stdout gets the size of its
 * text and the number of its lines (int64 each), and the text.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"

int main(void)
{
	static struct line_log log;
	static struct text text;
	struct {
		int64_t size, now;
	} head;
	uint64_t done[2];
	char *chunk;

	while (fread(&head, sizeof(head), 1, stdin)) {
		if (head.size >= 0) {
			size_t before = text.used;

			/* of just that size, so that a reader beyond its end can be found */
			chunk = malloc(head.size);
			if (fread(chunk, 1, head.size, stdin) != (size_t)head.size)
				abort();
			lines_feed(&log, &text, chunk, head.size, head.now);
			free(chunk);
			if (text.used - before > LINES_ROOM((size_t)head.size))
				abort();
		} else if (head.size == -1) {
			memset(&log, 0, sizeof(log));
			log.start_ns = head.now;
			text_clear(&text);
		} else {
			lines_end(&log, &text, head.now);
			done[0] = text.used;
			done[1] = log.lines;
			fwrite(done, sizeof(done), 1, stdout);
			fwrite(text.data, 1, text.used, stdout);
			fflush(stdout);
		}
	}
	return 0;
}
