/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The third observer: what silent programs wait for. evidence.c is its loop; what is done at each
 * tick stands in these modules. Under load none of them takes memory: what they need they have
 * before that, and have written to all of it.
 */
#ifndef EVIDENCE_H
#define EVIDENCE_H

#include "common.h"

/* ---- room.c: room for what comes under load */

void *room_memory(size_t size); /* zeros, each page of which was written; never given back */
void room_files(int most); /* open at once */

/* ---- rows.c: rows of tables */

extern struct text rows_text; /* whole rows of one table, and the one that is being made */
extern struct text rows_mark; /* the first two cells of all those of one moment */

void rows_open(void);
void rows_rehearse(bool on); /* what is made meanwhile goes nowhere */
void rows_begin(int64_t elapsed, int64_t late); /* a moment */
void rows_ended(int file); /* one row more: they go there before they need more memory */
void rows_put(int file); /* all that there are */

/* ---- tasks.c: the tasks of a stream: its program's threads and those of all its descendants */

#define MOST_TASKS 64 /* of a stream: a fork bomb's other tasks are not sampled */
#define COMM_BYTES 64 /* a worker's name in /proc is longer than a task's 15 bytes */

/* What /proc/PID/stat (proc(5)) says; comm lies in the text that was parsed. */
struct stat_line {
	const char *comm;
	size_t comm_size;
	char state;
	uint64_t minflt, majflt;
};

enum task_file { TASK_STAT, TASK_STACK, TASK_WCHAN, TASK_CHILDREN, TASK_THREADS, TASK_FILES };

/* One thread. What is read again and again stays open: that halves the cost of a read. */
struct task {
	struct task *next; /* of those that are not used */
	int process, pid;
	int fds[TASK_FILES];
	bool there; /* at the last task_look(), which found what follows */
	char state;
	uint8_t comm_size;
	char comm[COMM_BYTES];
	uint64_t minflt, majflt;
	uint64_t children; /* a sum of them */
	uint64_t links; /* of a process's first thread: of /proc/PID/task */
};

struct tasks {
	int pid; /* the program's; 0: none */
	int count;
	struct task *all[MOST_TASKS];
};

bool stat_parse(struct stat_line *, const char *text, size_t size);
void tasks_room(int streams); /* for all that so many can have, and MOST_TASKS others */
struct task *task_open(int process, int pid); /* NULL if it is gone */
void task_close(struct task *);
bool task_look(struct task *); /* false if it is gone */
void task_name(struct text *, const struct task *); /* comm, as tables have it */
int task_read(struct task *, enum task_file, char *data, int size); /* bytes, or -errno */

void tasks_follow(struct tasks *, int pid); /* from now on those of this program, 0: none */
void tasks_refresh(struct tasks *); /* look for those that came and that went */

/*
 * The numbers among the names in a folder of /proc, in its order: calls each(), until that says
 * no. False if the folder cannot be read.
 */
bool numbers_in(int folder, bool (*each)(void *, int number), void *data);

/* ---- layout.c, taskstats.c: delay accounting of single tasks */

enum delay { CPU, RQ, BLKIO, SWAPIN, FREEPAGES, THRASHING, COMPACT, WPCOPY, IRQ, DELAYS };
#define TASKSTATS_BATCH 32 /* requests sent at once: their answers fit into the socket's buffer */

extern const char *const delay_names[DELAYS];

/* Where each value stands in a struct taskstats of this version and size. */
struct layout {
	int version;
	bool known;
	size_t comm, pid, ppid;
	size_t delay[DELAYS]; /* 0: it has none */
};

struct accounts {
	int socket; /* -1: there are none */
	int family;
	uint32_t sequence;
	struct layout layout;
	size_t length, begin; /* of a whole answer, and where struct taskstats begins in it */
};

/* What is wrong, in a line. */
const char *taskstats_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All of these return NULL, or what is wrong. */
const char *taskstats_layout(struct layout *, int version, size_t size);
const char *taskstats_find(const char *message, size_t size, size_t *begin, size_t *end);
const char *taskstats_open(struct accounts *);
/* The kernel's whole answer about one task. */
const char *taskstats_ask(struct accounts *, int pid, char *message, size_t room, size_t *size);

/* For each of up to TASKSTATS_BATCH tasks µs of each delay; found: whether it is still there. */
void taskstats_read(struct accounts *, const int *pids, int count, uint64_t us[][DELAYS],
		    bool *found);
bool delay_accounting(void); /* whether the kernel counts the delays of tasks that begin now */

/* ---- blocked.c: where tasks wait */

#define MOST_PROCESSES 400 /* held open, and looked at by one scan: more than these take turns */

int64_t blocked_pace(int64_t silent_ns); /* how long after a look at a stream the next one comes */
void blocked_fold(struct text *, const char *stack, size_t size);
/* blocked.tsv's row of a task that was just looked at; begin: its first cells. */
void blocked_row(struct text *, const struct text *begin, const char *stream,
		 const int64_t *silent_ns, struct task *);

/* Processes (their first threads) in state D: finding them is expensive, so it is done rarely. */
struct sleepers {
	int most;
	int count, pids[MOST_PROCESSES], fds[MOST_PROCESSES]; /* ascending */
	int turn; /* the pid with which the next list begins, if they take turns */
	int64_t listed, next;
	int folder; /* /proc */
};

void sleepers_open(struct sleepers *, int most);
void sleepers_close(struct sleepers *);
/* Their pids, or none if the last scan was too short ago. */
int sleepers_look(struct sleepers *, int64_t now, int found[MOST_PROCESSES]);
/* Pids of the processes of this name with a number behind it (a kswapd for each node). */
int blocked_numbered(const char *comm, int *pids, int most);

/* ---- samples.c: tasks.tsv, what tasks spend their time on */

/* Tasks whose accounts are asked for at once. */
struct batch {
	int count;
	const char *streams[TASKSTATS_BATCH];
	struct task *tasks[TASKSTATS_BATCH];
};

void samples_open(const char *folder, struct list *missing);
void samples_header(void);
void samples_add(struct batch *, const char *stream, const struct tasks *);
void samples_take(struct batch *); /* of those that were added and have no row yet */
void samples_facts(struct text *); /* "taskstats_version": 17, "delayacct": true */

/* ---- streams.c: when the streams' tasks are sampled, and blocked.tsv, where they wait */

#define EARLY_NS (NS / 10) /* what is due within that is done now: all is done at ticks */

void streams_open(const char *folder, const struct beacon *);
void streams_header(void);
void streams_rehearse(void);
bool streams_seen(void); /* takes what the beacon says; whether a long silence has ended since */
void streams_ended(void); /* samples those whose long silence has ended */
void streams_sample(void); /* all */
bool streams_due(int64_t now); /* those that are due; whether one is silent for long */
void streams_look(int64_t now); /* at those that are, and at everything in state D */
long streams_looks(void); /* at the stacks of a silent stream, so far */

/* ---- traced.c: trace.tsv, allocfail.tsv and reclaim.tsv: sums that trace/ has made */

/* words: PREFIX=DEVICE */
void traced_open(const char *folder, char **words, int count, struct list *missing,
		 struct list *problems);
void traced_rehearse(void);
void traced_begin(int64_t t0); /* what was until now is not the workload's; the headers */
void traced_row(void); /* of trace.tsv */
void traced_failures(int64_t now); /* once a second, or where there are many */
void traced_end(void); /* the last rows */
void traced_close(void); /* what did not come whole goes to problems */

/* ---- livelock.c: tells a live-lock from a stall */

struct livelock_sample {
	double at, busy; /* s; s that were busy, a sum */
	int64_t lines, scanned, taken, records; /* sums */
};

/* A sliding window of after_s seconds. */
struct livelock {
	double after_s, flat_out;
	double apart_s; /* all samples but the last are at least so far apart */
	int count, room;
	struct livelock_sample *window;
};

void livelock_open(struct livelock *, double after_s, int64_t pages);
/*
 * Whether this is a live-lock, and why, with figures. now: monotonic s; so far: lines of all that
 * count; pages that reclaim scanned, and took; warnings in the kernel's log.
 */
bool livelock_feed(struct livelock *, const struct livelock_sample *now, struct text *why);
/* Pages that reclaim has looked at and taken so far, by /proc/vmstat. */
void vmstat_pages(const char *vmstat, int64_t *scanned, int64_t *taken);

/* Feeds a live-lock from the beacon, /proc/vmstat and the kernel's log, once a second. */
struct watch {
	struct livelock lock;
	const struct beacon *beacon;
	const char *finite;
	int vmstat, log;
	int64_t records, looked;
	bool said;
};

/* finite: `1` for each stream of the beacon that ends by itself, and so whose lines count. */
void watch_open(struct watch *, const struct beacon *, const char *finite, double after_s,
		const char *log);
void watch_rehearse(struct watch *);
/* True, and why, the first time that it is one. */
bool watch_look(struct watch *, int64_t now, struct text *why);

#endif
