// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keys.h"

int program_spawn(struct program *program)
{
	posix_spawn_file_actions_t files;
	int error;

	posix_spawn_file_actions_init(&files);
	/* What the leader of a session opens first is its controlling terminal. */
	posix_spawn_file_actions_addopen(&files, 0, program->path, O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_adddup2(&files, 0, 2);
	error = program_start(&program->pid, program->argv, program->env, &files);
	posix_spawn_file_actions_destroy(&files);
	if (error)
		program->pid = 0; /* of a child that could not become the program */
	return error;
}

void program_end(struct program *program)
{
	program->ready = false;
	if (program->fd >= 0)
		close(program->fd);
	program->fd = -1;
	if (program->pid)
		kill(-program->pid, SIGKILL);
}

bool program_reaped(struct program *program, int *status)
{
	int how;

	if (!program->pid || waitpid(program->pid, &how, WNOHANG) != program->pid)
		return false;
	program->pid = 0;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
	return true;
}
