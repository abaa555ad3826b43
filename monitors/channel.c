// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common.h"

struct channel channel = { .wake = -1 };

static char held[128]; /* of the order that has not come whole yet */
static size_t held_size;

static void stop(int number)
{
	int kept = errno;
	uint64_t one = 1;

	(void)number;
	channel.ended = true;
	if (write(channel.wake, &one, sizeof(one)) < 0)
		errno = kept;
}

void channel_open(void)
{
	struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };

	channel.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel.wake < 0)
		fail("eventfd: %s", strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL);
}

static bool order(const char *line, int64_t *t0)
{
	char *end;
	double seconds;

	channel.prepare |= !strcmp(line, "prepare");
	if (strncmp(line, "t0 ", 3))
		return false;
	seconds = strtod(line + 3, &end);
	if (end == line + 3 || *end)
		return false;
	*t0 = (int64_t)(seconds * NS + 0.5);
	return true;
}

bool channel_read(int64_t *t0)
{
	char data[256];
	ssize_t size = read(STDIN_FILENO, data, sizeof(data));
	bool told = false;

	if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
		channel.ended = true;
	for (ssize_t i = 0; i < size; i++) {
		if (data[i] == '\n') {
			held[held_size] = '\0';
			told |= order(held, t0);
			held_size = 0;
		} else if (held_size < sizeof(held) - 1) {
			held[held_size++] = data[i];
		}
	}
	return told;
}

void say(struct text *line)
{
	size_t sent = 0;

	text_char(line, '\n');
	while (sent < line->used) {
		ssize_t size = write(STDOUT_FILENO, line->data + sent, line->used - sent);

		if (size > 0)
			sent += (size_t)size;
		else if (errno != EINTR)
			break;
	}
	text_clear(line);
}
