// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "common.h"

#define EACH 0x0101010101010101ULL /* of eight bytes */

/* Gaps are differences of elapsed times in whole milliseconds, so they add up exactly. */
int64_t lines_ms(const struct line_log *log, int64_t now)
{
	return (now - log->start_ns + MS / 2) / MS;
}

static void stamp(struct line_log *log, struct text *out, int64_t ms)
{
	text_seconds(out, ms * MS);
	text_char(out, ' ');
	text_seconds(out, (ms - log->last_ms) * MS);
	text_char(out, ' ');
	log->last_ms = ms;
}

static void hold(struct line_log *log, const char *piece, size_t size)
{
	if (log->length < LINE_KEPT) {
		size_t room = LINE_KEPT - log->length;

		memcpy(log->held + log->length, piece, size < room ? size : room);
	}
	log->length += size;
}

/* A byte that is not printable ASCII, or a backslash. */
static bool odd(const char *eight)
{
	uint64_t bytes, other;

	memcpy(&bytes, eight, sizeof(bytes));
	other = bytes ^ EACH * '\\';
	return (bytes | (bytes + EACH) | (bytes - EACH * ' ') | ((other - EACH) & ~other)) &
	       EACH * 0x80;
}

/* What most lines are; short ones are not looked at. */
static bool plain(const char *data, size_t size)
{
	if (size < 8)
		return false;
	for (size_t at = 0; at < size - 8; at += 8)
		if (odd(data + at))
			return false;
	return !odd(data + size - 8);
}

static void escape(struct text *out, const char *data, size_t size)
{
	if (plain(data, size))
		text_add(out, data, size);
	else
		text_escape(out, data, size);
}

/* The line that these bytes end, which may have begun in an earlier chunk. */
static void finish(struct line_log *log, struct text *out, const char *data, size_t size)
{
	if (log->length) {
		hold(log, data, size);
		data = log->held;
		size = log->length;
		log->length = 0;
	}
	if (size <= LINE_KEPT) {
		escape(out, data, size);
	} else {
		escape(out, data, LINE_KEPT);
		text_format(out, "…[%zu bytes]", size);
	}
	text_char(out, '\n');
	log->lines++;
}

void lines_feed(struct line_log *log, struct text *out, const char *chunk, size_t size, int64_t now)
{
	static struct text again; /* the stamp of all lines of a chunk but its first */
	const char *end = chunk + size, *newline = memchr(chunk, '\n', size);
	int64_t ms = lines_ms(log, now);

	if (newline) {
		stamp(log, out, ms);
		finish(log, out, chunk, newline - chunk);
		chunk = newline + 1;
		newline = memchr(chunk, '\n', end - chunk);
	}
	if (newline) {
		text_clear(&again);
		stamp(log, &again, ms);
	}
	for (; newline; newline = memchr(chunk, '\n', end - chunk)) {
		text_add(out, again.data, again.used);
		finish(log, out, chunk, newline - chunk);
		chunk = newline + 1;
	}
	if (chunk < end) {
		hold(log, chunk, end - chunk);
		log->held_ms = ms;
	}
}

void lines_end(struct line_log *log, struct text *out, int64_t now)
{
	if (log->length) {
		stamp(log, out, log->held_ms);
		finish(log, out, "", 0);
	}
	stamp(log, out, lines_ms(log, now));
	text_string(out, "[end]\n");
}
