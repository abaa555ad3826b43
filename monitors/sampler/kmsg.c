// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg) is `prio,seq,usec,flags[,…];text` and
 * ` KEY=value` lines. The kernel escapes whatever is not printable ASCII, and the backslash, as
 * \xNN; that stays, but an escaped newline starts a continuation line, which begins with a blank.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sampler.h"

#define MISSED "<missed>\n"
#define RECORD_BYTES 8192 /* the kernel makes none that is longer (CONSOLE_EXT_LOG_MAX) */
#define SLICE_BYTES 16384 /* of lines: kept small, as it stays locked */
/* A slice and the lines of one more record, which a newline makes longer by a blank. */
#define ROOM (SLICE_BYTES + 2 * RECORD_BYTES + 64)
#define DIGITS 18

static char raw[RECORD_BYTES]; /* a record */

/* The number that ends with a comma at *at, which is then behind it; -1 if there is none. */
static int64_t parse_number(const char **at, const char *end)
{
	const char *start = *at;
	int64_t value = 0;

	while (*at < end && **at >= '0' && **at <= '9' && *at - start < DIGITS)
		value = value * 10 + (*(*at)++ - '0');
	if (*at == start || *at == end || **at != ',')
		return -1;
	++*at;
	return value;
}

static void add_body(struct text *out, const char *at, const char *end)
{
	const char *plain = at;

	while (at < end) {
		size_t size = *at == '\n' ? 1 : end - at >= 4 && !memcmp(at, "\\x0a", 4) ? 4 : 0;

		if (!size) {
			at++;
			continue;
		}
		text_add(out, plain, (size_t)(at - plain));
		text_add(out, "\n ", 2);
		at += size;
		if (size == 1 && at < end && *at == ' ')
			at++;
		plain = at;
	}
	text_add(out, plain, (size_t)(at - plain));
	text_char(out, '\n');
}

/* Adds a record's lines `[seconds.micros] <level> text`; nothing if it is none. */
static void add_record(struct text *out, const char *record, size_t size)
{
	const char *at = record, *body = memchr(record, ';', size), *end = record + size;
	int64_t prio, usec;

	if (!body)
		return;
	prio = parse_number(&at, body);
	at = prio < 0 ? NULL : memchr(at, ',', (size_t)(body - at));
	if (!at++)
		return;
	usec = parse_number(&at, body);
	if (usec < 0)
		return;
	while (end > body + 1 && end[-1] == '\n')
		end--;
	text_format(out, "[%lld.%06lld] <%lld> ", (long long)(usec / 1000000),
		    (long long)(usec % 1000000), (long long)(prio & 7));
	add_body(out, body + 1, end);
}

bool kmsg_open(struct kmsg *kmsg, const char *path)
{
	*kmsg = (struct kmsg){ .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) };
	return kmsg->fd >= 0;
}

void kmsg_rehearse(struct text *lines)
{
	memset(raw, 0, sizeof(raw));
	text_reserve(lines, ROOM);
}

bool kmsg_read(struct kmsg *kmsg, struct text *lines, int limit)
{
	size_t full = lines->used + SLICE_BYTES;

	for (int i = 0; i < limit && lines->used < full; i++) {
		ssize_t size = read(kmsg->fd, raw, sizeof(raw));

		if (size > 0) {
			kmsg->records++;
			add_record(lines, raw, (size_t)size);
		} else if (size < 0 && errno == EPIPE) {
			/* the ring has overwritten it before it was read */
			kmsg->missed++;
			text_string(lines, MISSED);
		} else if (size == 0 || errno != EINTR) {
			return true;
		}
	}
	return false;
}
