// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

struct spec spec;

static const char *next, *end;

static void read_all(void *to, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t piece = read(0, (char *)to + got, size - got);

		if (piece <= 0)
			fail("the recorder was not told what to record");
		got += piece;
	}
}

static void *room(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		fail("no memory");
	return memory;
}

static char *word(void)
{
	const char *found = next;

	if (next >= end)
		fail("the recorder's specification is truncated");
	next += strlen(next) + 1;
	return (char *)found;
}

static int next_number(void)
{
	return atoi(word());
}

/* Not the programs', though it is ours. */
static int descriptor(void)
{
	int fd = next_number();

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static char **words(int *count)
{
	char **list;

	*count = next_number();
	list = room(*count + 1, sizeof(*list));
	for (int i = 0; i < *count; i++)
		list[i] = word();
	return list;
}

static void read_stream(struct stream *stream)
{
	int count;

	stream->name = word();
	stream->waits = next_number();
	stream->awaited = next_number();
	stream->argv = words(&count);
	stream->env = words(&count);
}

void spec_read(void)
{
	uint32_t size;
	char *text;
	int memory, event, count;
	char **names;

	read_all(&size, sizeof(size));
	text = room(size + 1, 1);
	read_all(text, size);
	next = text;
	end = text + size;
	spec.folder = word();
	spec.timeout_s = atof(word());
	spec.ready_s = atof(word());
	memory = descriptor();
	event = descriptor();
	names = words(&count);
	if (count)
		beacon_open(&spec.beacon, memory, event, count, names);
	spec.count = next_number();
	spec.streams = room(spec.count, sizeof(*spec.streams));
	for (int i = 0; i < spec.count; i++)
		read_stream(&spec.streams[i]);
}
