// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

#include "common.h"

/* Let the kernel kill this program for lack of memory, as it may any other. */
static void become_ordinary(pid_t pid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0) {
		/* It has ended already, which its output says. */
	}
	close(fd);
}

/* Nothing is copied of us, who are locked in memory: posix_spawn() is a vfork(). */
int program_start(pid_t *pid, char **argv, char **env, const posix_spawn_file_actions_t *files)
{
	static const struct sched_param ordinary;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int error;

	/* What we ignore, a program that is executed would ignore, too. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGXFSZ);
	sigaddset(&signals, SIGINT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setschedpolicy(&attributes, SCHED_OTHER);
	posix_spawnattr_setschedparam(&attributes, &ordinary);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETSCHEDULER);
	error = posix_spawnp(pid, argv[0], files, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
	if (!error)
		become_ordinary(*pid);
	return error;
}
