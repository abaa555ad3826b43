/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KEYS_H
#define KEYS_H

#include <sys/types.h>

#include "common.h"

#define MOST_WAITING 64 /* keys of one program whose echo has not come: no more are pressed */

struct key {
	uint64_t number;
	int64_t due;
	char letter;
};

/* A program behind a terminal of its own, which echoes each letter by itself. */
struct terminal {
	char *name;
	char *before; /* what is typed first, so that it echoes letters */
	char **argv, **env;
	int fd; /* the terminal's other side; -1: closed */
	char path[32];
	pid_t pid;	    /* 0: no program, or reaped */
	bool ready;	    /* it has echoed a letter, and has not ended */
	int64_t last_due;   /* of its last key */
	int burst;	    /* keys that are still to come of those that are pressed together */
	int typed;	    /* letters that are to be taken back */
	struct key waiting[MOST_WAITING]; /* the oldest first */
	int waits;
};

/* terminal.c */

bool terminal_open(struct terminal *, struct text *error);
/* Starts its program and has it echo a letter; else false, why, and it is ended. */
bool terminal_start(struct terminal *, struct text *error);
void terminal_type(struct terminal *, const char *text, size_t size);
void terminal_end(struct terminal *); /* kills its program, and does not wait for its end */
/* True once its program has ended: reaps it; *status negative: the signal. */
bool terminal_reaped(struct terminal *, int *status);

#endif
