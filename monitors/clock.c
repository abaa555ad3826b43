// SPDX-License-Identifier: GPL-2.0-or-later
#include <time.h>

#include "common.h"

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

void ticker_init(struct ticker *ticker, double hz)
{
	*ticker = (struct ticker){ .hz = hz, .number = -1 };
}

void ticker_start(struct ticker *ticker, int64_t t0)
{
	ticker->t0 = t0;
	ticker->number = 0;
}

int64_t ticker_deadline(const struct ticker *ticker)
{
	if (ticker->number < 0)
		return NEVER;
	return ticker->t0 + (int64_t)((double)ticker->number * NS / ticker->hz + 0.5);
}

int64_t ticker_late(struct ticker *ticker, int64_t now)
{
	int64_t late = now - ticker_deadline(ticker);

	if (late > ticker->worst_late)
		ticker->worst_late = late;
	ticker->sum_late += late;
	ticker->samples++;
	return late;
}

void ticker_taken(struct ticker *ticker)
{
	int64_t passed = (int64_t)((double)(now_ns() - ticker->t0) * ticker->hz / NS);

	if (passed > ticker->number) {
		ticker->missed += passed - ticker->number;
		ticker->number = passed;
	}
	ticker->number++;
}

void ticker_facts(struct text *out, const struct ticker *ticker)
{
	int64_t samples = ticker->samples ? ticker->samples : 1;

	text_format(out, "\"samples\": %lld, \"missed\": %lld, \"mean_late_s\": %.5f",
		    (long long)ticker->samples, (long long)ticker->missed,
		    (double)ticker->sum_late / NS / (double)samples);
}
