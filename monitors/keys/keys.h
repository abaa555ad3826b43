/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KEYS_H
#define KEYS_H

#include <sys/types.h>

#include "common.h"

/* In no escape sequence that a program sends, and not in a prompt. */
#define LETTERS "qwzvkyxj"
#define BURST 3		/* keys that are pressed together: a user who returns types several */
#define MOST_WAITING 64 /* keys of one program whose echo has not come: no more are pressed */

struct key {
	uint64_t number;
	int64_t due;
	char letter; /* that a terminal gets */
};

struct window;

/* A program behind a terminal or a window of its own, which shows each letter by itself. */
struct program {
	char *name;
	char *before; /* what is typed first, so that it shows letters */
	char **argv, **env;
	int fd; /* the terminal's other side; -1: closed, or there is none */
	char path[32]; /* of the terminal; with a window /dev/null */
	struct window *window; /* NULL: it is behind a terminal */
	pid_t pid;	       /* 0: no program, or reaped */
	bool ready;	       /* it has shown a letter, and has not ended */
	int64_t last_due;      /* of its last key */
	int burst;	       /* keys that are still to come of those that are pressed together */
	int typed;	       /* letters that are to be taken back */
	struct key waiting[MOST_WAITING]; /* the oldest first */
	int waits;
};

/* programs.c */

int program_spawn(struct program *); /* with `path` as its input and outputs; an errno, or 0 */
void program_end(struct program *);  /* kills it, and does not wait for its end */
/* True once the program has ended: reaps it; *status negative: the signal. */
bool program_reaped(struct program *, int *status);

/* terminal.c */

bool terminal_open(struct program *, struct text *error);
/* Starts its program and has it echo a letter; else false, why, and it is ended. */
bool terminal_start(struct program *, struct text *error);
void terminal_type(struct program *, const char *text, size_t size);

/* window.c */

bool window_open(struct program *, struct text *error); /* connects to its X server */
/* Starts its program and learns how its window shows letters; else false, why, and it is ended. */
bool window_start(struct program *, struct text *error);
bool window_takes(const struct program *); /* whether it can tell one more letter apart */
void window_type(struct program *);	   /* the next letter */
void window_take_back(struct program *);   /* all that were typed */
int window_fd(void);			   /* of the X server; -1: none */
/* Has `shown` called with the number of waiting keys that a window shows by now. */
void window_hear(void (*shown)(struct program *, int keys, int64_t now));

#endif
