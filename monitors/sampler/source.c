// SPDX-License-Identifier: GPL-2.0-or-later
/* Each file is opened once and read from 0 for each sample: no path look-up under load. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sampler.h"

#define PIECE 16384

static struct text buffer; /* what was read last, terminated */

/* Adds the next piece of a file; its size, 0 at the end, -1 if it cannot be read. */
static ssize_t read_piece(int fd)
{
	ssize_t size;

	do {
		if (buffer.room < buffer.used + PIECE + 1)
			text_reserve(&buffer, buffer.used + PIECE + 1);
		size = pread(fd, buffer.data + buffer.used, PIECE, (off_t)buffer.used);
	} while (size < 0 && errno == EINTR);
	if (size > 0)
		buffer.used += (size_t)size;
	buffer.data[buffer.used] = '\0';
	return size;
}

static int count_lines(const char *text)
{
	int lines = 0;

	while ((text = strchr(text, '\n'))) {
		lines++;
		text++;
	}
	return lines;
}

/*
 * A seq_file hands out a page a call, so a short read is not the end; and asking once more at the
 * end would cost as much as a page: /proc/vmstat adds up all its counters anew for each call.
 */
const char *source_read(const struct source *source)
{
	int lines = 0;

	text_clear(&buffer);
	do {
		size_t before = buffer.used;
		ssize_t size = read_piece(source->fd);

		if (size < 0)
			buffer.data[0] = '\0';
		if (size <= 0)
			break;
		lines += count_lines(buffer.data + before);
	} while (lines < source->lines);
	return buffer.data;
}

bool source_open(struct source *source, const char *path)
{
	ssize_t size;

	*source = (struct source){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (source->fd < 0)
		return false;
	text_clear(&buffer);
	/* PSI that is built in but off opens, and fails only when read. */
	while ((size = read_piece(source->fd)) > 0)
		;
	if (size < 0) {
		close(source->fd);
		return false;
	}
	source->lines = count_lines(buffer.data);
	text_add(&source->names, buffer.data, buffer.used + 1);
	return true;
}
