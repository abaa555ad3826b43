/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the observers share: sampler, recorder, evidence and keys, which watch a run, and `trace`,
 * which is for use by hand. One program, `observers NAME …`, linked statically: its text is in memory,
 * and locked there, once.
 *
 * All that an observer does under load was done once before (rehearsed), then locked: its buffers
 * had then the size of the largest that they will have to hold, and nothing here is given back to
 * the kernel.
 */
#ifndef COMMON_H
#define COMMON_H

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NS 1000000000LL
#define MS 1000000LL
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

int sampler_main(int argc, char **argv);
int recorder_main(int argc, char **argv);
int evidence_main(int argc, char **argv);
int keys_main(int argc, char **argv);
int trace_main(int argc, char **argv);

/* ---- text.c: text that grows */

struct text {
	char *data; /* not terminated */
	size_t used, room;
};

void text_reserve(struct text *, size_t room); /* at least so many bytes, touched */
void text_add(struct text *, const void *data, size_t size);
void text_string(struct text *, const char *);
void text_char(struct text *, char);
void text_number(struct text *, int64_t); /* decimal */
void text_seconds(struct text *, int64_t ns); /* %.3f, rounded to the nearest millisecond */
void text_format(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line's bytes as printable ASCII: backslash doubled, else \xNN; `[end]` as \x5bend]. */
void text_escape(struct text *, const char *data, size_t size);
/* A JSON string with its quotes; bytes that are no UTF-8 as U+FFFD. */
void text_json(struct text *, const char *);
static inline void text_clear(struct text *t)
{
	t->used = 0;
}

/* What is missing, or went wrong: a list of strings, which say() writes as a JSON list. */
struct list {
	char **items;
	int count;
};

void list_add(struct list *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void list_json(struct text *, const struct list *, int first); /* from the item `first` on */

/* Ends the program with one line on stderr, status 3, when it has done what at_fail() was told. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void at_fail(void (*)(void)); /* the latest first */

/* ---- clock.c: absolute deadlines t0 + k/hz of CLOCK_MONOTONIC, and how well they were kept */

int64_t now_ns(void);

struct ticker {
	double hz;
	int64_t t0;
	int64_t number; /* k of the next deadline, -1 before ticker_start() */
	int64_t samples, missed, worst_late, sum_late;
};

#define NEVER INT64_MAX
void ticker_init(struct ticker *, double hz);
void ticker_start(struct ticker *, int64_t t0); /* may lie ahead */
int64_t ticker_deadline(const struct ticker *); /* NEVER before ticker_start() */
int64_t ticker_late(struct ticker *, int64_t now); /* begins the sample that is due */
void ticker_taken(struct ticker *); /* it is taken: what passed meanwhile is missed */
/* "samples": N, "missed": N, "mean_late_s": F */
void ticker_facts(struct text *, const struct ticker *);

/* ---- channel.c: the talk with the runner: orders on stdin, JSON lines on stdout */

struct channel {
	volatile sig_atomic_t ended; /* stdin's end, or SIGTERM; never taken back */
	int wake;		     /* readable from SIGTERM on (an eventfd) */
	bool prepare;		     /* `prepare` was told: the recorder may start its programs */
};

extern struct channel channel;
/*
 * Catches SIGTERM; ignores SIGINT (which goes to the whole group), SIGPIPE, and SIGXFSZ (a file
 * that may not grow fails with EFBIG): who starts programs gives these back to them.
 */
void channel_open(void);
/* Takes what has come on stdin; true, and *t0 in ns, if `t0 SECONDS` was told. */
bool channel_read(int64_t *t0);
void say(struct text *); /* one line; clears it. A parent that is gone does not matter. */

/* ---- lock.c: not to become a victim of what is observed, and what that costs */

struct locked {
	const char *locked; /* "onfault", "all", or "" */
	bool oom_score_adj; /* whether it is -1000 */
	int fifo;           /* the priority, or 0 */
};

/*
 * Locks this process in memory and gives it SCHED_FIFO `priority` (with SCHED_RESET_ON_FORK); call
 * it when all that is done under load was done once, before outlet_start(). What is not permitted
 * goes to problems, and the rest is done all the same.
 */
struct locked become_observer(int priority, struct list *problems);
/* "locked": "onfault", "oom_score_adj": -1000 (left out if refused), "fifo": 22 */
void locked_facts(struct text *, const struct locked *);
/* The calling thread; problems may be NULL. */
bool raise_thread(int priority, struct list *problems);
void cost_begin(void); /* the zero of cost(); called again when the workload begins */
/* "cpu_s": F, "elapsed_s": F, "locked_kib": N, "vmlck_kib": N, "major_faults": N */
void cost(struct text *);

/* ---- outlet.c: writing that never makes an observer wait: bounded queues and one thread */

#define OUTLET_BOUND (4 << 20)	 /* bytes kept for outputs that take nothing */
#define OUTLET_READY (192 << 10) /* so many, some seconds of them, without a page fault */

/* For appending; returns its number. Files may be added while the thread runs. */
int outlet_open(const char *folder, const char *name);
int outlet_add(int fd, const char *name);
void outlet_call(int file, const char *name); /* in what is said of it; before outlet_start() */
void outlet_start(int priority); /* SCHED_FIFO's; 0: an ordinary thread */
/*
 * Queue whole lines for a file. False, and counted as dropped, if more than `limit` bytes would
 * wait (0: OUTLET_BOUND). Belongs to one thread, the observer's.
 */
bool outlet_put(int file, const char *data, size_t size, size_t limit);
bool outlet_text(int file, struct text *); /* outlet_put() of it all without limit, and clear */
size_t outlet_waiting(void); /* bytes not written yet */
bool outlet_failing(void);   /* an output took nothing at the last attempt */
/* Writes what is queued, with patience for an output that takes nothing; bytes left over. */
size_t outlet_finish(int64_t patience_ns);
/* "slowest_write_s": F, "dropped": {name: [lines, bytes]}, "write_errors": {name: reason} */
void outlet_facts(struct text *);
void outlet_dropped_json(struct text *); /* {name: [lines, bytes]} */

/* ---- observers.c */

/*
 * become_observer() unless priority is 0, and the outlet's thread behind it: all that is done under
 * load was done once before.
 */
struct locked become_ready(int priority, struct list *problems);
/* become_ready(), and says so with what is missing; the line is made in that text. */
void say_ready(struct text *, const struct list *missing, int priority);

/* ---- program.c: a program that an observer starts, and that is none itself */

/*
 * In a session of its own, an ordinary task that the kernel may kill; files: its descriptors. An
 * errno, or 0.
 */
int program_start(pid_t *, char **argv, char **env, const posix_spawn_file_actions_t *files);

/* ---- beacon.c: which stream printed when, shared with the recorder; see monitors/beacon.py */

#define BEACON_WORDS 3
#define BEACON_SILENCE_NS 500000000LL

struct beacon {
	/* Per stream: pid, CLOCK_MONOTONIC ns of its last line, lines; told from right to left. */
	volatile uint64_t *words;
	int event;
	int count;
	char **names;
};

/* Maps the memory of the descriptor `memory`; names are kept, not copied. */
void beacon_open(struct beacon *, int memory, int event, int count, char **names);
int beacon_slot(const struct beacon *, const char *name); /* -1: none */
void beacon_began(struct beacon *, int slot, int pid, int64_t now);
void beacon_said(struct beacon *, int slot, int64_t now, uint64_t lines);
void beacon_ended(struct beacon *, int slot);
void beacon_heard(struct beacon *); /* take the pokes that have come */
/* One of the words; those to the right of it, if read later, are at least as new. */
static inline uint64_t beacon_word(const struct beacon *beacon, int slot, int word)
{
	return __atomic_load_n(&beacon->words[BEACON_WORDS * slot + word], __ATOMIC_ACQUIRE);
}

/* ---- lines.c: one stream's bytes as the lines of its log (docs/reference/results-format.md) */

#define LINE_KEPT 4096 /* bytes kept of a line */

struct line_log {
	uint64_t lines;
	int64_t start_ns, last_ms, held_ms;
	size_t length; /* of the unfinished line */
	char held[LINE_KEPT];
};

/*
 * The most that one chunk's text can be: a line held from before, all of it escaped, and a stamp
 * for each byte.
 */
#define LINES_ROOM(size) (4 * LINE_KEPT + 96 + 24 * (size))

/* Appends the log's text of the lines that this chunk, read at now, brought to their end. */
void lines_feed(struct line_log *, struct text *, const char *chunk, size_t size, int64_t now);
/* The unfinished line, stamped when its last bytes came, and the open gap's `[end]`. */
void lines_end(struct line_log *, struct text *, int64_t now);
int64_t lines_ms(const struct line_log *, int64_t now);

#endif
