// SPDX-License-Identifier: GPL-2.0-or-later
/* When the streams' tasks are sampled, and blocked.tsv: where they wait. */
#include <unistd.h>

#include "evidence.h"

#define QUIET_NS (3 * NS / 10) /* silent for so long: sampled at every tick from here on */
#define STUCK_NS (NS / 2)      /* from here on its stacks are looked at */
#define STALL_NS NS	       /* a silence of so long has a sample at its end */
#define IDLE_NS NS	       /* between two samples of a stream that prints */
#define OTHERS "-"

/* One stream: its tasks, the last line that was seen of it, and when it was looked at. */
struct watched {
	const char *name;
	struct tasks tasks;
	int64_t heard, sampled, looked;
	bool ended; /* a long silence, since the last look at the beacon */
};

static const struct beacon *beacon;
static struct watched *streams;
static struct tasks kswapd;
static struct sleepers sleepers;
static int64_t kswapd_sampled;
static int to_blocked;
static long looks;

/* ---- samples */

static void sample_stream(struct batch *batch, const struct watched *stream)
{
	samples_add(batch, stream->name, &stream->tasks);
}

bool streams_seen(void)
{
	bool any = false;

	for (int slot = 0; slot < beacon->count; slot++) {
		struct watched *stream = &streams[slot];
		int pid = (int)beacon_word(beacon, slot, 0);
		int64_t last = (int64_t)beacon_word(beacon, slot, 1);

		stream->ended = pid == stream->tasks.pid && pid &&
				last - stream->heard >= STALL_NS;
		any |= stream->ended;
		if (pid != stream->tasks.pid) { /* another program has other tasks */
			tasks_follow(&stream->tasks, pid);
			stream->sampled = stream->looked = 0;
		}
		stream->heard = last;
	}
	return any;
}

void streams_ended(void)
{
	struct batch batch = { .count = 0 };

	for (int slot = 0; slot < beacon->count; slot++)
		if (streams[slot].ended)
			sample_stream(&batch, &streams[slot]);
	samples_take(&batch);
}

void streams_sample(void)
{
	struct batch batch = { .count = 0 };

	for (int slot = 0; slot < beacon->count; slot++)
		sample_stream(&batch, &streams[slot]);
	samples_add(&batch, OTHERS, &kswapd);
	samples_take(&batch);
}

bool streams_due(int64_t now)
{
	bool quiet = false, stuck = false;
	struct batch batch = { .count = 0 };

	for (int slot = 0; slot < beacon->count; slot++) {
		struct watched *stream = &streams[slot];
		int64_t silent = now - stream->heard;

		if (!stream->tasks.pid)
			continue;
		quiet |= silent >= QUIET_NS;
		stuck |= silent >= STUCK_NS;
		if (now - stream->sampled >= IDLE_NS - EARLY_NS) {
			stream->sampled = now;
			tasks_refresh(&stream->tasks);
		} else if (silent < QUIET_NS && !stream->ended) {
			continue;
		}
		sample_stream(&batch, stream);
	}
	if (quiet || now - kswapd_sampled >= IDLE_NS - EARLY_NS) {
		kswapd_sampled = now;
		samples_add(&batch, OTHERS, &kswapd);
	}
	samples_take(&batch);
	return stuck;
}

/* ---- looks */

void streams_header(void)
{
	text_string(&rows_text, "elapsed_s\tlate_s\tstream\tsilent_s\tpid\tcomm\tstate\twchan\t"
				"majflt\tminflt\tstack\n");
	rows_put(to_blocked);
}

static void look_at(const char *stream, const int64_t *silent, struct task *task)
{
	blocked_row(&rows_text, &rows_mark, stream, silent, task);
	rows_ended(to_blocked);
}

/* At a stream whose tasks have just been sampled. */
static void look(struct watched *stream, int64_t now)
{
	int64_t silent = now - stream->heard;

	stream->looked = now;
	looks++;
	for (int i = 0; i < stream->tasks.count; i++)
		if (stream->tasks.all[i]->there)
			look_at(stream->name, &silent, stream->tasks.all[i]);
}

static bool is_streams(int pid)
{
	for (int slot = 0; slot < beacon->count; slot++) {
		const struct tasks *tasks = &streams[slot].tasks;

		for (int i = 0; i < tasks->count; i++)
			if (tasks->all[i]->pid == pid)
				return true;
	}
	return false;
}

/* At everything else in state D. */
static void look_at_others(int64_t now)
{
	int found[MOST_PROCESSES];
	int count = sleepers_look(&sleepers, now, found);

	for (int i = 0; i < count; i++) {
		struct task *task = is_streams(found[i]) ? NULL : task_open(found[i], found[i]);

		if (!task)
			continue;
		if (task_look(task) && task->state == 'D')
			look_at(OTHERS, NULL, task);
		task_close(task);
	}
}

void streams_look(int64_t now)
{
	for (int slot = 0; slot < beacon->count; slot++) {
		struct watched *stream = &streams[slot];
		int64_t silent = now - stream->heard;

		if (stream->tasks.pid && silent >= STUCK_NS &&
		    now - stream->looked >= blocked_pace(silent) - EARLY_NS)
			look(stream, now);
	}
	look_at_others(now);
	rows_put(to_blocked);
}

long streams_looks(void)
{
	return looks;
}

static void open_kswapd(void)
{
	int pids[MOST_TASKS];
	int count = blocked_numbered("kswapd", pids, MOST_TASKS);

	for (int i = 0; i < count; i++) {
		struct task *task = task_open(pids[i], pids[i]);

		if (task)
			kswapd.all[kswapd.count++] = task;
	}
}

void streams_open(const char *folder, const struct beacon *shared)
{
	beacon = shared;
	tasks_room(beacon->count);
	streams = room_memory(sizeof(*streams) * (size_t)beacon->count);
	for (int slot = 0; slot < beacon->count; slot++)
		streams[slot].name = beacon->names[slot];
	sleepers_open(&sleepers, MOST_PROCESSES);
	open_kswapd();
	to_blocked = outlet_open(folder, "blocked.tsv");
}

void streams_rehearse(void)
{
	struct watched own = { .name = "rehearsal", .heard = now_ns() };

	tasks_follow(&own.tasks, getpid());
	/* Three times, as what is only made at the second look is touched, too. */
	for (int i = 0; i < 3; i++) {
		struct batch batch = { .count = 0 };
		int64_t now = now_ns();

		streams_seen();
		tasks_refresh(&own.tasks);
		sample_stream(&batch, &own);
		samples_add(&batch, OTHERS, &kswapd);
		samples_take(&batch);
		look(&own, now);
		look_at_others(now);
		rows_put(to_blocked);
	}
	tasks_follow(&own.tasks, 0);
	looks = 0;
	sleepers_close(&sleepers);
	sleepers_open(&sleepers, MOST_PROCESSES);
}
