// SPDX-License-Identifier: GPL-2.0-or-later
/* The requests of modelled disks, between QEMU and the kernel. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <pthread.h>
#include <stdbool.h>

extern bool polling; /* QEMU hears of requests that are done, from a call of ours */

/* A thread gives up a lock: what QEMU has left in a ring for its main loop to submit, if this lock
 * is the one that all of QEMU has, is seen to before a guest's instruction goes on. */
void see_to_requests(const pthread_mutex_t *given_up);
/* Of all disks, in a line on stderr; nothing if nothing was held, or nobody asked for it. */
void say_counts(void);

#endif
