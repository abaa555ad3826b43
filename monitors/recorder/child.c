// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"

#define READY "\nready\n"
#define SAID 4096 /* bytes kept of what a program says before it is ready */

static int spawn(struct stream *stream, int input, int output)
{
	posix_spawn_file_actions_t files;
	int error;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, input, 0);
	posix_spawn_file_actions_adddup2(&files, output, 1);
	posix_spawn_file_actions_adddup2(&files, output, 2);
	error = program_start(&stream->pid, stream->argv, stream->env, &files);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

bool child_start(struct stream *stream, struct text *error)
{
	int input[2], output[2], failed;

	if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC)) {
		text_format(error, "cannot start %s: pipe: %m", stream->name);
		return false;
	}
	stream->fd = output[0];
	stream->input = input[1];
	failed = spawn(stream, input[0], output[1]);
	close(input[0]);
	close(output[1]);
	if (failed) {
		stream->pid = 0; /* of a child that could not become the program */
		text_format(error, "cannot start %s: %s", stream->name, strerror(failed));
		return false;
	}
	if (!stream->waits)
		close(stream->input);
	return true;
}

static void add_last_line(struct text *error, const char *said, size_t size)
{
	const char *newline;

	while (size && isspace((unsigned char)said[size - 1]))
		size--;
	newline = memrchr(said, '\n', size);
	if (newline) {
		size -= newline + 1 - said;
		said = newline + 1;
	}
	if (size)
		text_string(error, ": ");
	text_add(error, said, size);
}

static bool ends_in_ready(const char *said, size_t size)
{
	size_t length = strlen(READY);

	return size >= length && !memcmp(said + size - length, READY, length);
}

/* 1: it said something, or ended; 0: not in time; -1: we are asked to end. */
static int wait_for_word(const struct stream *stream, int64_t until)
{
	/* The runner has nothing to say yet, but it may go away. */
	struct pollfd from[] = { { .fd = stream->fd, .events = POLLIN },
				 { .fd = channel.wake, .events = POLLIN },
				 { .fd = STDIN_FILENO } };
	int64_t left;

	while (!channel.ended && (left = until - now_ns()) > 0) {
		if (poll(from, ARRAY_SIZE(from), left * 1000 / NS + 1) <= 0)
			continue;
		if (from[0].revents)
			return 1;
		channel.ended = true;
	}
	return channel.ended ? -1 : 0;
}

bool child_ready(struct stream *stream, double patience_s, struct text *error)
{
	int64_t until = now_ns() + (int64_t)(patience_s * NS);
	char said[2 * SAID] = "\n";
	size_t size = 1;

	while (!ends_in_ready(said, size)) {
		int came = wait_for_word(stream, until);
		ssize_t got = came > 0 ? read(stream->fd, said + size, SAID) : 0;

		if (got <= 0) {
			if (came > 0)
				text_format(error, "%s ended before it was ready", stream->name);
			else if (came < 0)
				text_format(error, "the recorder was asked to end while %s "
						   "started up", stream->name);
			else
				text_format(error, "%s did not start up within %.0f s",
					    stream->name, patience_s);
			add_last_line(error, said, size);
			return false;
		}
		size += got;
		if (size > SAID) {
			memmove(said, said + size - SAID, SAID);
			size = SAID;
		}
	}
	return true;
}

void child_go(struct stream *stream)
{
	if (!stream->waits)
		return;
	if (write(stream->input, "go\n", 3) < 0) {
		/* It has ended already, which its output says. */
	}
	close(stream->input);
}

void child_signal(const struct stream *stream, int number)
{
	kill(-stream->pid, number);
}

void child_kill(struct stream *stream)
{
	if (!stream->pid)
		return;
	child_signal(stream, SIGKILL);
	waitpid(stream->pid, NULL, 0);
}

void child_look(struct stream *stream, int64_t now)
{
	siginfo_t info = { .si_pid = 0 };
	int status;

	/* Left unreaped at first: until then nobody can have its number, nor its group's. */
	if (waitid(P_PID, stream->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	child_signal(stream, SIGKILL);
	waitpid(stream->pid, &status, 0);
	stream->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	stream->reaped = true;
	stream->exited = now;
}
