// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "keys.h"

#define START (60 * NS)	  /* within which a program has to echo its first letter */
#define SILENCE (100 * MS) /* after which a program that starts up has shown all that it shows */
#define LOOK (10 * MS)
#define FIRST "q" /* the letter that is typed to try it out */
#define TAKEN_BACK "\x7f"

bool terminal_open(struct terminal *terminal, struct text *error)
{
	static const struct winsize size = { .ws_row = 24, .ws_col = 80 };

	terminal->fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (terminal->fd < 0 || unlockpt(terminal->fd) ||
	    ptsname_r(terminal->fd, terminal->path, sizeof(terminal->path)) ||
	    ioctl(terminal->fd, TIOCSWINSZ, &size)) {
		text_format(error, "%s: no terminal: %s", terminal->name, strerror(errno));
		return false;
	}
	return true;
}

static int spawn(struct terminal *terminal)
{
	posix_spawn_file_actions_t files;
	int error;

	posix_spawn_file_actions_init(&files);
	/* What the leader of a session opens first is its controlling terminal. */
	posix_spawn_file_actions_addopen(&files, 0, terminal->path, O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_adddup2(&files, 0, 2);
	error = program_start(&terminal->pid, terminal->argv, terminal->env, &files);
	posix_spawn_file_actions_destroy(&files);
	if (error)
		terminal->pid = 0; /* of a child that could not become the program */
	return error;
}

/* Waits for its output: whether this byte of it came, with 0 whether any did. */
static bool shows(struct terminal *terminal, char byte, int64_t until)
{
	struct pollfd from = { .fd = terminal->fd, .events = POLLIN };
	char data[512];
	int64_t left;

	while (!channel.ended && (left = until - now_ns()) > 0) {
		struct timespec timeout = { left / NS, left % NS };
		ssize_t size;

		if (ppoll(&from, 1, &timeout, NULL) <= 0)
			continue;
		size = read(terminal->fd, data, sizeof(data));
		if (size <= 0)
			return false; /* it has ended */
		if (!byte || memchr(data, byte, size))
			return true;
	}
	return false;
}

static void let_show(struct terminal *terminal)
{
	while (shows(terminal, 0, now_ns() + SILENCE))
		;
}

/* What the kernel echoes by itself is no answer of the program's. */
static bool echoes_itself(const struct terminal *terminal)
{
	struct termios modes;

	return !tcgetattr(terminal->fd, &modes) && !(modes.c_lflag & (ECHO | ICANON));
}

static bool try_out(struct terminal *terminal)
{
	int64_t until = now_ns() + START;

	while (!echoes_itself(terminal)) {
		static const struct timespec pause = { .tv_nsec = LOOK };
		int status;

		if (channel.ended || now_ns() > until || terminal_reaped(terminal, &status))
			return false;
		nanosleep(&pause, NULL);
	}
	let_show(terminal);
	terminal_type(terminal, terminal->before, strlen(terminal->before));
	let_show(terminal);
	terminal_type(terminal, FIRST, 1);
	if (!shows(terminal, *FIRST, until))
		return false;
	terminal->last_due = now_ns();
	terminal_type(terminal, TAKEN_BACK, 1);
	let_show(terminal);
	return true;
}

bool terminal_start(struct terminal *terminal, struct text *error)
{
	int failed = spawn(terminal);

	if (!failed && try_out(terminal)) {
		terminal->ready = true;
		return true;
	}
	text_format(error, "%s: %s: %s", terminal->name, terminal->argv[0],
		    failed ? strerror(failed) : "it did not echo a letter");
	terminal_end(terminal);
	return false;
}

void terminal_type(struct terminal *terminal, const char *text, size_t size)
{
	if (size && write(terminal->fd, text, size) < 0) {
		/* It has ended, which reading says. */
	}
}

void terminal_end(struct terminal *terminal)
{
	terminal->ready = false;
	if (terminal->fd >= 0)
		close(terminal->fd);
	terminal->fd = -1;
	if (terminal->pid)
		kill(-terminal->pid, SIGKILL);
}

bool terminal_reaped(struct terminal *terminal, int *status)
{
	int how;

	if (!terminal->pid || waitpid(terminal->pid, &how, WNOHANG) != terminal->pid)
		return false;
	terminal->pid = 0;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
	return true;
}
