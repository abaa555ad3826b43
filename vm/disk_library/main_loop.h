// SPDX-License-Identifier: GPL-2.0-or-later
/* QEMU's main loop, kept back for a guest whose clock counts its own instructions. */
#ifndef MAIN_LOOP_H
#define MAIN_LOOP_H

#include <stdbool.h>

extern bool own_clock; /* the guest's counts its instructions */

#endif
