/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lane.h"

struct locked become_ready(int priority, struct list *problems)
{
	struct locked locked = { 0 };

	if (priority)
		locked = become_observer(priority, problems);
	else
		list_add(problems, "not asked for");
	outlet_start(locked.fifo > 1 ? locked.fifo - 1 : locked.fifo);
	return locked;
}

void say_ready(struct text *line, const struct list *missing, int priority)
{
	static struct list problems;
	struct locked locked = become_ready(priority, &problems);

	text_format(line, "{\"ready\": %d, \"not_available\": ", getpid());
	list_json(line, missing, 0);
	text_string(line, ", \"problems\": ");
	list_json(line, &problems, 0);
	if (priority) {
		text_string(line, ", ");
		locked_facts(line, &locked);
	}
	text_char(line, '}');
	say(line);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*main)(int, char **);
	} observers[] = {
		/* the order of LANES, in contract/results_memory.py */
		{ "sampler", sampler_main },
		{ "recorder", recorder_main },
		{ "evidence", evidence_main },
		{ "keys", keys_main },
		{ "trace", trace_main },
	};

	/* By which kernel logs know it: executed from memory it would be a number. */
	prctl(PR_SET_NAME, "observers");
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(observers); i++)
		if (!strcmp(argv[1], observers[i].name)) {
			lane_number = (int)i + 1; /* the runner's is the first */
			return observers[i].main(argc - 1, argv + 1);
		}
	fprintf(stderr, "usage: observers sampler|recorder|evidence|keys|trace WORD…\n");
	return 2;
}
