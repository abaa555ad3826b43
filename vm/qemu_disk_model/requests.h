// SPDX-License-Identifier: GPL-2.0-or-later
/* The requests of modelled disks, between QEMU and the kernel. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <pthread.h>
#include <stdbool.h>

extern __thread bool polling; /* this thread has QEMU handle completed requests */

/* Called when a thread gives up a lock. If it is QEMU's global lock: submit the requests that QEMU
 * left in a ring for its main loop, before the guest's next instruction. */
void submit_left_requests(const pthread_mutex_t *given_up);
/* Print the counts of all disks on stderr, if any request was held and DISK_MODEL_SAY is set. */
void print_counts(void);

#endif
