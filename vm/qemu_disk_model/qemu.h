// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that QEMU exports: include/qemu/timer.h, block/aio.h, system/runstate.h. */
#ifndef QEMU_H
#define QEMU_H

#include <stdbool.h>
#include <stdint.h>

#define QEMU_CLOCK_VIRTUAL 1
#define TIMER_BYTES 256 /* a QEMUTimer has less than 64 */
typedef void callback(void *opaque);
extern int64_t qemu_clock_get_ns(int clock) __attribute__((weak));
extern void timer_init_full(void *timer, void *group, int clock, int scale, int attributes,
			    callback *call, void *opaque) __attribute__((weak));
extern void timer_mod_ns(void *timer, int64_t at) __attribute__((weak));
extern bool runstate_is_running(void) __attribute__((weak));
extern void *qemu_add_vm_change_state_handler(void (*call)(void *opaque, bool running, int state),
					      void *opaque) __attribute__((weak));
extern void *qemu_get_aio_context(void) __attribute__((weak));
extern void qemu_notify_event(void) __attribute__((weak));
extern bool aio_poll(void *context, bool blocking) __attribute__((weak));
extern void aio_bh_schedule_oneshot_full(void *context, callback *call, void *opaque,
					 const char *name) __attribute__((weak));

/* QEMU's global lock, include/qemu/main-loop.h: whether this thread holds it, before and since 9.0;
 * and two functions that are NULL before about QEMU 10.1. */
extern bool qemu_mutex_iothread_locked(void) __attribute__((weak));
extern bool bql_locked(void) __attribute__((weak));
extern bool mutex_is_bql(const void *mutex) __attribute__((weak));
extern void bql_update_status(bool locked) __attribute__((weak));

/* For functions that replace those of libraries; all others are compiled as hidden. */
#define IN_PLACE __attribute__((visibility("default")))

#endif
