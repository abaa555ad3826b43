/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of a result that are on a guest's host, written to through memory that both share. */
#ifndef LANE_H
#define LANE_H

#include "common.h"

extern int lane_number; /* which part of the memory is ours: its place in LANES */
/* False: the results' folder has no such memory. */
bool lane_open(const char *folder);
uint32_t lane_file(const char *name); /* a new file's number */
/* All of it, or false: nothing of it, since the host has taken too little. */
bool lane_put(uint32_t file, const char *data, size_t size);
size_t lane_waiting(void); /* bytes that the host has not taken yet */

#endif
