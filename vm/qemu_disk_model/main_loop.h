// SPDX-License-Identifier: GPL-2.0-or-later
/* Delays QEMU's main loop for a guest whose clock counts instructions. */
#ifndef MAIN_LOOP_H
#define MAIN_LOOP_H

#include <stdbool.h>

extern bool own_clock;             /* the guest's clock counts its instructions */
extern __thread bool is_cpu_thread; /* this thread runs the guest's CPU, on such a clock */

#endif
