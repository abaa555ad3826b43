// SPDX-License-Identifier: GPL-2.0-or-later
/* The requests of modelled disks, between QEMU and the kernel. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdbool.h>

extern bool polling; /* QEMU hears of requests that are done, from a timer's call */

#endif
