/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this kernel and this machine can be asked for. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

/* A block device's folder in sysfs: of a partition that of its disk. */
void folder_of(char *folder, size_t room, const char *device)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/block/%s/partition", device);
	/* A link to …/vda/vda1: the kernel follows it before it goes up. */
	snprintf(folder, room, "/sys/class/block/%s%s", device, access(path, F_OK) ? "" : "/..");
}

static bool has(const char *folder, const char *name)
{
	char path[320];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static bool number_of(const char *folder, struct dev_number *number)
{
	char path[320];
	FILE *file;
	bool found;

	snprintf(path, sizeof(path), "%s/dev", folder);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fscanf(file, "%d:%d", &number->major, &number->minor) == 2;
	fclose(file);
	return found;
}

/*
 * Disks have requests, LVs and other dm devices, md and the common device of NVMe paths only pass
 * bios on: they have no hardware queues. Disks have them since 5.0, loop devices too.
 */
static void watch_device(struct group *group, const struct device *device,
			 struct dev_number *number, struct list *missing)
{
	char folder[256];

	folder_of(folder, sizeof(folder), device->name);
	if (!number_of(folder, number)) {
		list_add(missing, "%s %s: %s", group->what, device->name, strerror(errno));
		group->wanted = false;
	} else if (group != &groups[CRYPT] && !has(folder, "mq")) {
		list_add(missing, "%s %s: it has no requests of its own", group->what,
			 device->name);
		group->wanted = false;
	}
}

/* Whether it is the device of that prefix, or one of those (`data-`: data-1 …). */
bool goes_by(const struct device *device, const char *prefix)
{
	size_t length = strlen(prefix);

	return !strncmp(device->prefix, prefix, length) &&
	       (prefix[length - 1] == '-' || !device->prefix[length]);
}

/* How many there are. */
static int watch_devices(const char *prefix, struct group *group, const struct device *devices,
			 int count, struct dev_number *numbers, int room, struct list *missing)
{
	int found = 0;

	for (; count; devices++, count--) {
		if (!goes_by(devices, prefix))
			continue;
		if (found == room) {
			list_add(missing, "%s %s: more than %d are not watched", group->what,
				 devices->name, room);
			break;
		}
		watch_device(group, devices, &numbers[found++], missing);
	}
	if (!found)
		group->wanted = false;
	return found;
}

/* Groups share tracepoints. */
static void add_once(struct list *list, const char *name)
{
	for (int i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], name))
			return;
	list_add(list, "%s", name);
}

void want(const struct device *devices, int count, const struct kernel_types *types,
	  struct watched *watched, struct list *missing)
{
	for (struct group *group = groups; group < groups + GROUPS; group++) {
		group->wanted = true;
		for (const enum tracepoint *one = group->needs; *one != TRACEPOINTS; one++)
			if (!types->has[*one]) {
				add_once(missing, tracepoints[*one]);
				group->wanted = false;
			}
	}
	throttled_columns(types);
	if (groups[THROTTLED].wanted && !groups[THROTTLED].count) {
		list_add(missing, "%s: no names of its reasons", groups[THROTTLED].what);
		groups[THROTTLED].wanted = false;
	}
	watched->request_second = types->request_second;
	watched->bio_second = types->bio_second;
	if (!watch_devices("disk", &groups[DISK], devices, count, &watched->disk, 1, missing))
		list_add(missing, "%s: no such device here", groups[DISK].what);
	if (!watch_devices("crypt", &groups[CRYPT], devices, count, &watched->crypt, 1, missing))
		list_add(missing, "%s: no such device here", groups[CRYPT].what);
	/* Most workloads have none. */
	watch_devices(OWN, &groups[DATA], devices, count, watched->data, DATA_DISKS, missing);
#ifdef __x86_64__
	if (!has("/sys/bus/event_source/devices/kprobe", "type")) {
		list_add(missing, "alloc_failures: no PMU kprobe");
		groups[FAILURES].wanted = false;
	}
#else
	list_add(missing, "alloc_failures: only on x86-64");
	groups[FAILURES].wanted = false;
#endif
}
