// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

static void grow(struct text *t, size_t room)
{
	if (room <= t->room)
		return;
	if (room < 2 * t->room)
		room = 2 * t->room;
	if (room < 64)
		room = 64;
	t->data = realloc(t->data, room);
	if (!t->data)
		fail("out of memory");
	t->room = room;
}

void text_reserve(struct text *t, size_t room)
{
	grow(t, room);
	memset(t->data + t->used, 0, t->room - t->used);
}

void text_add(struct text *t, const void *data, size_t size)
{
	if (!size)
		return;
	grow(t, t->used + size);
	memcpy(t->data + t->used, data, size);
	t->used += size;
}

void text_string(struct text *t, const char *string)
{
	text_add(t, string, strlen(string));
}

void text_char(struct text *t, char c)
{
	if (t->used == t->room)
		grow(t, t->used + 1);
	t->data[t->used++] = c;
}

static void digits(struct text *t, uint64_t value, int width)
{
	char buffer[20];
	char *at = buffer + sizeof(buffer);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value || buffer + sizeof(buffer) - at < width);
	text_add(t, at, (size_t)(buffer + sizeof(buffer) - at));
}

static uint64_t sign(struct text *t, int64_t value)
{
	if (value >= 0)
		return (uint64_t)value;
	text_char(t, '-');
	return -(uint64_t)value;
}

void text_number(struct text *t, int64_t value)
{
	digits(t, sign(t, value), 1);
}

void text_seconds(struct text *t, int64_t ns)
{
	int64_t rounded = (ns + (ns < 0 ? -500000 : 500000)) / 1000000;
	uint64_t ms = sign(t, rounded);

	digits(t, ms / 1000, 1);
	text_char(t, '.');
	digits(t, ms % 1000, 3);
}

void text_format(struct text *t, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0)
		return;
	grow(t, t->used + (size_t)size + 1);
	va_start(args, format);
	vsnprintf(t->data + t->used, (size_t)size + 1, format, args);
	va_end(args);
	t->used += (size_t)size;
}

void text_escape(struct text *t, const char *data, size_t size)
{
	static const char hex[] = "0123456789abcdef";

	if (size == 5 && !memcmp(data, "[end]", 5)) {
		text_string(t, "\\x5bend]");
		return;
	}
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\\') {
			text_add(t, "\\\\", 2);
		} else if (c >= ' ' && c <= '~') {
			text_char(t, (char)c);
		} else {
			char escaped[4] = { '\\', 'x', hex[c >> 4], hex[c & 15] };

			text_add(t, escaped, sizeof(escaped));
		}
	}
}

/* One character of UTF-8; a byte that belongs to none is U+FFFD. */
static uint32_t decode(const unsigned char **at)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = *at;
	int more = *s >= 0xf0 && *s < 0xf8 ? 3 : *s >= 0xe0 ? 2 : 1;
	uint32_t code = *s & (0x3fu >> more);

	*at = s + 1;
	if (*s < 0x80)
		return *s;
	if (*s < 0xc0 || *s >= 0xf8)
		return 0xfffd;
	for (int i = 1; i <= more; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0xfffd;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0xfffd;
	*at = s + 1 + more;
	return code;
}

void text_json(struct text *t, const char *string)
{
	const unsigned char *at = (const unsigned char *)string;

	text_char(t, '"');
	while (*at) {
		uint32_t code = decode(&at);

		if (code == '"' || code == '\\')
			text_char(t, '\\');
		if (code >= ' ' && code <= '~')
			text_char(t, (char)code);
		else if (code < 0x10000)
			text_format(t, "\\u%04x", code);
		else
			text_format(t, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				    0xdc00 + (code & 0x3ff));
	}
	text_char(t, '"');
}

void list_add(struct list *list, const char *format, ...)
{
	size_t size = sizeof(*list->items) * (size_t)(list->count + 1);
	va_list args;
	int done;

	list->items = realloc(list->items, size);
	if (!list->items)
		fail("out of memory");
	va_start(args, format);
	done = vasprintf(&list->items[list->count], format, args);
	va_end(args);
	if (done < 0)
		fail("out of memory");
	list->count++;
}

void list_json(struct text *t, const struct list *list, int first)
{
	text_char(t, '[');
	for (int i = first; i < list->count; i++) {
		if (i > first)
			text_string(t, ", ");
		text_json(t, list->items[i]);
	}
	text_char(t, ']');
}

static void (*last_acts[4])(void);
static size_t last_count;

void at_fail(void (*act)(void))
{
	if (last_count < ARRAY_SIZE(last_acts))
		last_acts[last_count++] = act;
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(STDERR_FILENO, format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "\n");
	while (last_count) /* each once, even if it fails itself */
		last_acts[--last_count]();
	_exit(3);
}
