/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RECORDER_H
#define RECORDER_H

#include <sys/types.h>

#include "common.h"

struct stream {
	/* What is asked for. */
	char *name;
	char **argv, **env;
	bool waits;   /* it says `ready` when it has started up, and begins when it reads a line */
	bool awaited; /* its end is (with others') the end of the recording */
	/* Its program. */
	pid_t pid;
	int fd;	   /* where its output comes from; -1: closed */
	int input; /* where `go` goes */
	bool reaped;
	int status; /* negative: the signal */
	int64_t exited;
	/* Its log. */
	struct line_log log;
	int file;	  /* the outlet's */
	int slot;	  /* the beacon's, or -1 */
	struct text last; /* the log's last whole line, or what is kept of it */
	int64_t closed_ms; /* elapsed at its end, or -1 */
	bool ended;	   /* closed and reaped: nothing more will be heard of it */
};

struct spec {
	char *folder;
	double timeout_s, ready_s;
	int count;
	struct stream *streams;
	struct beacon beacon;
};

#define for_each_stream(s) \
	for (struct stream *s = spec.streams; s < spec.streams + spec.count; s++)

/* spec.c: what to record, from stdin: the length in four bytes, then words that end in NUL. */
extern struct spec spec;
void spec_read(void);

/* child.c: a program that writes to a pipe: a line is read as soon as it is written */

/* False if not, and why not in *error. */
bool child_start(struct stream *, struct text *error);
bool child_ready(struct stream *, double patience_s, struct text *error);
void child_go(struct stream *);
void child_signal(const struct stream *, int number); /* it, and all that it started */
void child_kill(struct stream *);		      /* and reap it */
void child_look(struct stream *, int64_t now);	      /* whether it has ended: then reap it */

/* recorder.c: stamps the lines of all programs */

void recorder_open(void); /* the logs */
void recorder_rehearse(void);
void recorder_start(int64_t t0); /* lets all streams begin then; elapsed counts from there */
/* Until all awaited streams have ended: "done", or "stopped" (we are asked to), or "deadline". */
const char *recorder_run(int64_t deadline);
void recorder_stop(void); /* ends what still runs, and the logs */
void event(const char *name, struct text *facts); /* and clears them */

#endif
