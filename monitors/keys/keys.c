// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Presses keys at programs that have waited, and times each from the moment at which it was due
 * until the program shows it. A shell, an editor and a pager wait behind terminals of their own:
 * each echoes a letter by itself, once it runs again. Others may wait in windows of an X server:
 * they show a letter when its pixels are there (window.c).
 *
 * Started before the load by monitors/launch.py. It speaks JSON lines on stdout:
 *     {"ready": pid, "not_available": […], "problems": […], …}   once it is locked in memory
 *     {"prepared": programs, "problems": […]}                    when these have echoed a letter
 *     {"observer": {…}, "keys": N, …}                            when it ends
 * and listens on stdin: `prepare` has the programs started, `t0 SECONDS` (CLOCK_MONOTONIC) lets the
 * schedule begin then; end of file or SIGTERM ends it, and them. Its stream is latency-keys.log:
 *     due N PROGRAM idle S     a key was due, and is typed; S s after the one before
 *     key N PROGRAM late S     its echo came, S s after it was due
 *     ended PROGRAM status N   no more keys for that program; negative: a signal
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "keys.h"

#define REAP (100 * MS)
#define PATIENCE (10 * NS)
#define MOST 8   /* programs */
#define USAGE                                              \
	"usage: keys OUT PRIORITY STEP GAP "               \
	"NAME terminal|window BEFORE WORDS WORD… "         \
	"VARIABLES [NAME=VALUE…] "                         \
	"[NAME …]…"
#define ROOM 512 /* of a line, and more */
static const char letters[] = LETTERS;

static struct program programs[MOST];
static int count;
static int64_t step, gap; /* between two bursts; between two keys of one */
static int64_t t0 = NEVER, worst_late;
static uint64_t burst; /* the one whose keys are due next, from 0 on, */
static int pressed;    /* and how many of them were */
static uint64_t number, echoed;
static struct line_log log_lines;
static struct text line, text;
static int file;

#define for_each_program(p) for (struct program *p = programs; p < programs + count; p++)

static void put_line(int64_t now)
{
	text_char(&line, '\n');
	lines_feed(&log_lines, &text, line.data, line.used, now);
	text_clear(&line);
	outlet_text(file, &text);
}

static int64_t next_due(void)
{
	return t0 == NEVER ? NEVER : t0 + (int64_t)(burst + 1) * step + pressed * gap;
}

static void press(struct program *program, int64_t due, int64_t now)
{
	struct key key = { ++number, due, letters[number % strlen(letters)] };

	program->waiting[program->waits++] = key;
	if (program->window)
		window_type(program);
	else
		terminal_type(program, &key.letter, 1);
	program->typed++;
	if (now - due > worst_late)
		worst_late = now - due;
	text_format(&line, "due %llu %s idle ", (unsigned long long)key.number, program->name);
	text_seconds(&line, due - program->last_due);
	put_line(now);
	program->last_due = due;
}

static bool accepts_key(const struct program *program)
{
	return program->ready && program->waits < MOST_WAITING &&
	       (!program->window || window_takes(program));
}

/* All that is due by now: each key is timed from its due time, however late we are. */
static void press_due(int64_t now)
{
	for (int64_t due; (due = next_due()) <= now;) {
		struct program *program = &programs[burst % count];

		program->burst = BURST - 1 - pressed;
		if (accepts_key(program))
			press(program, due, now);
		if (++pressed == BURST) {
			pressed = 0;
			burst++;
		}
	}
}

/* Programs take keys in order: who shows one has had those before it, too. */
static int shown(const struct program *program, char byte)
{
	for (int i = 0; i < program->waits; i++)
		if (program->waiting[i].letter == byte)
			return i + 1;
	return 0;
}

static void answer(struct program *program, int keys, int64_t now)
{
	for (int i = 0; i < keys; i++) {
		const struct key *key = &program->waiting[i];

		text_format(&line, "key %llu %s late ", (unsigned long long)key->number,
			    program->name);
		text_seconds(&line, now - key->due);
		put_line(now);
	}
	echoed += keys;
	program->waits -= keys;
	memmove(program->waiting, program->waiting + keys,
		program->waits * sizeof(*program->waiting));
}

/* So that a line stays as short as it is, whatever the run lasts. */
static void take_back(struct program *program)
{
	if (program->waits || program->burst)
		return;
	if (program->window)
		window_take_back(program);
	else
		for (int i = 0; i < program->typed; i++)
			terminal_type(program, "\x7f", 1);
	program->typed = 0;
}

static void hear(struct program *program)
{
	char data[1024];
	ssize_t size = read(program->fd, data, sizeof(data));
	int64_t now = now_ns();

	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size <= 0) {
		program_end(program);
		return;
	}
	for (ssize_t i = 0; i < size; i++)
		answer(program, shown(program, data[i]), now);
	take_back(program);
}

static void keys_shown(struct program *program, int keys, int64_t now)
{
	answer(program, keys, now);
	take_back(program);
}

/* Those that have ended, and that are not reaped yet. */
static bool look_for_ends(int64_t now)
{
	bool more = false;
	int status;

	if (now < t0)
		return false;
	for_each_program(program) {
		if (program->ready || !program->pid)
			continue;
		if (!program_reaped(program, &status)) {
			more = true;
			continue;
		}
		if (!program->last_due)
			continue; /* it was never ready, which was said */
		text_format(&line, "ended %s status %d", program->name, status);
		put_line(now);
	}
	return more;
}

static void say_prepared(void)
{
	static struct list problems;
	static struct text error;
	int prepared = 0;

	for_each_program(program) {
		if (program->window ? window_start(program, &error) :
				      program->fd >= 0 && terminal_start(program, &error))
			prepared++;
		if (error.used)
			list_add(&problems, "%.*s", (int)error.used, error.data);
		text_clear(&error);
	}
	text_format(&line, "{\"prepared\": %d, \"problems\": ", prepared);
	list_json(&line, &problems, 0);
	text_char(&line, '}');
	say(&line);
}

static void listen_to_runner(void)
{
	bool told = channel_read(&t0);

	if (channel.prepare)
		say_prepared();
	channel.prepare = false;
	if (!told)
		return;
	/* None that was due while a program took its time to start. */
	while (next_due() < now_ns())
		burst++;
	log_lines.start_ns = t0;
	cost_begin();
}

static void run(void)
{
	struct pollfd fds[MOST + 3] = { { .fd = STDIN_FILENO, .events = POLLIN },
					{ .fd = channel.wake, .events = POLLIN } };

	while (!channel.ended) {
		int64_t now = now_ns(), until = next_due(), left;
		struct timespec timeout;

		/* libxcb may hold events that poll() does not show. */
		window_hear(keys_shown);
		if (look_for_ends(now) && until > now + REAP)
			until = now + REAP;
		if (until > now + 60 * NS)
			until = now + 60 * NS;
		left = until > now ? until - now : 0;
		timeout = (struct timespec){ left / NS, left % NS };
		for (int i = 0; i < count; i++) {
			fds[i + 2].fd = programs[i].ready ? programs[i].fd : -1;
			fds[i + 2].events = POLLIN;
		}
		fds[count + 2] = (struct pollfd){ .fd = window_fd(), .events = POLLIN };
		if (ppoll(fds, count + 3, &timeout, NULL) > 0) {
			for (int i = 0; i < count; i++)
				if (fds[i + 2].fd >= 0 && fds[i + 2].revents)
					hear(&programs[i]);
			if (fds[0].revents)
				listen_to_runner();
			channel.ended |= fds[1].revents != 0;
		}
		press_due(now_ns());
	}
}

static void end(void)
{
	size_t unwritten;

	if (t0 != NEVER) {
		lines_end(&log_lines, &text, now_ns());
		outlet_text(file, &text);
	}
	for_each_program(program)
		program_end(program);
	unwritten = outlet_finish(PATIENCE);
	text_string(&line, "{\"observer\": {\"name\": \"keys\", ");
	cost(&line);
	text_format(&line, ", \"worst_late_s\": %.4f}, \"keys\": %llu, \"echoed\": %llu, ",
		    (double)worst_late / NS, (unsigned long long)number,
		    (unsigned long long)echoed);
	outlet_facts(&line);
	text_format(&line, ", \"unwritten_bytes\": %zu}", unwritten);
	say(&line);
}

static char **words(char ***next, char **last)
{
	int size = *next < last ? atoi(*(*next)++) : -1;
	char **list = calloc((size > 0 ? size : 0) + 1, sizeof(*list));

	if (size < 0 || last - *next < size || !list)
		fail(USAGE);
	memcpy(list, *next, size * sizeof(*list));
	*next += size;
	return list;
}

static void open_programs(char **next, char **last, struct list *missing)
{
	static struct text error;

	while (last - next > 3) {
		struct program *program = &programs[count++];
		bool in_window;

		if (count > MOST)
			fail("more than %d programs", MOST);
		program->name = *next++;
		in_window = !strcmp(*next++, "window");
		program->before = *next++;
		program->argv = words(&next, last);
		program->env = words(&next, last);
		program->fd = -1;
		if (!(in_window ? window_open : terminal_open)(program, &error)) {
			list_add(missing, "%.*s", (int)error.used, error.data);
			program_end(program);
		}
		text_clear(&error);
	}
}

/* Does all that is done for a key, to no effect: what was touched gets locked. */
static void rehearse(void)
{
	struct line_log kept = log_lines;

	text_reserve(&text, ROOM);
	text_reserve(&line, ROOM);
	for_each_program(program)
		memset(program->waiting, 0, sizeof(program->waiting));
	text_string(&line, "key\n");
	lines_feed(&log_lines, &text, line.data, line.used, now_ns());
	text_clear(&line);
	text_clear(&text);
	cost(&line);
	text_clear(&line);
	log_lines = kept;
}

/* See monitors/launch.py. */
int keys_main(int argc, char **argv)
{
	static struct list missing;

	if (argc < 11)
		fail(USAGE);
	channel_open();
	step = (int64_t)(strtod(argv[3], NULL) * NS);
	gap = (int64_t)(strtod(argv[4], NULL) * NS);
	open_programs(argv + 5, argv + argc, &missing);
	file = outlet_open(argv[1], "latency-keys.log");
	rehearse();
	say_ready(&line, &missing, atoi(argv[2]));
	run();
	end();
	return 0;
}
