// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows on their way into a table's file. A tick can make any number of them: they are handed over
 * as they come, so that they never need more memory than there was before the load.
 */
#include "evidence.h"

#define ROOM (32 << 10)
#define FULL (12 << 10) /* handed over then: what is added at once, and to a header, has the rest */

struct text rows_text, rows_mark;
static bool rehearsing;

void rows_open(void)
{
	text_reserve(&rows_text, ROOM);
	text_reserve(&rows_mark, 64);
}

void rows_rehearse(bool on)
{
	rehearsing = on;
}

void rows_begin(int64_t elapsed, int64_t late)
{
	text_clear(&rows_mark);
	text_seconds(&rows_mark, elapsed);
	text_char(&rows_mark, '\t');
	text_seconds(&rows_mark, late);
	text_char(&rows_mark, '\t');
}

void rows_ended(int file)
{
	if (rows_text.used >= FULL)
		rows_put(file);
}

void rows_put(int file)
{
	if (rehearsing)
		text_clear(&rows_text);
	else if (rows_text.used)
		outlet_text(file, &rows_text);
}
