// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "keys.h"

#define START (60 * NS)	  /* within which a program has to echo its first letter */
#define SILENCE (100 * MS) /* after which a program that starts up has shown all that it shows */
#define LOOK (10 * MS)
#define FIRST "q" /* the letter that is typed to try it out */
#define TAKEN_BACK "\x7f"

bool terminal_open(struct program *program, struct text *error)
{
	static const struct winsize size = { .ws_row = 24, .ws_col = 80 };

	program->fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (program->fd < 0 || unlockpt(program->fd) ||
	    ptsname_r(program->fd, program->path, sizeof(program->path)) ||
	    ioctl(program->fd, TIOCSWINSZ, &size)) {
		text_format(error, "%s: no terminal: %s", program->name, strerror(errno));
		return false;
	}
	return true;
}

/* Waits for its output: whether this byte of it came, with 0 whether any did. */
static bool shows(struct program *program, char byte, int64_t until)
{
	struct pollfd from = { .fd = program->fd, .events = POLLIN };
	char data[512];
	int64_t left;

	while (!channel.ended && (left = until - now_ns()) > 0) {
		struct timespec timeout = { left / NS, left % NS };
		ssize_t size;

		if (ppoll(&from, 1, &timeout, NULL) <= 0)
			continue;
		size = read(program->fd, data, sizeof(data));
		if (size <= 0)
			return false; /* it has ended */
		if (!byte || memchr(data, byte, size))
			return true;
	}
	return false;
}

static void let_show(struct program *program)
{
	while (shows(program, 0, now_ns() + SILENCE))
		;
}

/* What the kernel echoes by itself is no answer of the program's. */
static bool echoes_itself(const struct program *program)
{
	struct termios modes;

	return !tcgetattr(program->fd, &modes) && !(modes.c_lflag & (ECHO | ICANON));
}

static bool try_out(struct program *program)
{
	int64_t until = now_ns() + START;

	while (!echoes_itself(program)) {
		static const struct timespec pause = { .tv_nsec = LOOK };
		int status;

		if (channel.ended || now_ns() > until || program_reaped(program, &status))
			return false;
		nanosleep(&pause, NULL);
	}
	let_show(program);
	terminal_type(program, program->before, strlen(program->before));
	let_show(program);
	terminal_type(program, FIRST, 1);
	if (!shows(program, *FIRST, until))
		return false;
	program->last_due = now_ns();
	terminal_type(program, TAKEN_BACK, 1);
	let_show(program);
	return true;
}

bool terminal_start(struct program *program, struct text *error)
{
	int failed = program_spawn(program);

	if (!failed && try_out(program)) {
		program->ready = true;
		return true;
	}
	text_format(error, "%s: %s: %s", program->name, program->argv[0],
		    failed ? strerror(failed) : "it did not echo a letter");
	program_end(program);
	return false;
}

void terminal_type(struct program *program, const char *text, size_t size)
{
	if (size && write(program->fd, text, size) < 0) {
		/* It has ended, which reading says. */
	}
}
