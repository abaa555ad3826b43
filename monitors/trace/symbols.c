/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the kernel's functions by address, of /proc/kallsyms: some 30 bytes a function. Read
 * once, before the load: looking one up later would mean some 150,000 lines again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

#define CHUNK 65536
/* Text and modules of x86-64 lie in the upper 2 GiB, so that addresses fit into 32 bits. */
#define BASE 0xffffffff80000000ULL
#define TEXT_BYTES 0x80000000ULL

static uint32_t *starts, *names; /* by number: where it begins, and where in `text` its name */
static struct text text;
static int count, room;

struct module_symbol {
	uint32_t start;
	char *name;
};

/* Padding before a function (6.2, b341b20d648b) and CFI's are no functions. */
static bool is_function(const char *name)
{
	static const char *const others[] = { "__pfx_", "__cfi_", "__SCT__", "__SCK__" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	return true;
}

static void append(uint32_t start, const char *name)
{
	if (count && start <= starts[count - 1])
		return;
	if (count == room) {
		room = room ? 2 * room : 1 << 14;
		starts = realloc(starts, room * sizeof(*starts));
		names = realloc(names, room * sizeof(*names));
		if (!starts || !names)
			fail("no memory for the names of %d functions", room);
	}
	starts[count] = start;
	names[count++] = text.used;
	text_add(&text, name, strlen(name) + 1);
}

static int by_start(const void *a, const void *b)
{
	const struct module_symbol *one = a, *other = b;

	return (one->start > other->start) - (one->start < other->start);
}

/* `ffffffff81000000 T name[\t[module]]`; the kernel's own come first, and in order. */
static void take(char *line, struct module_symbol **modules, int *some)
{
	char *end, *name;
	uint64_t address = strtoull(line, &end, 16);

	if (end == line || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return;
	name = end + 3;
	end = strpbrk(name, " \t");
	if (end)
		*end = 0;
	if (address <= BASE || address - BASE >= TEXT_BYTES || !is_function(name))
		return;
	if (!end) {
		append(address - BASE, name);
		return;
	}
	if (!(*some & (*some - 1))) { /* 0, or a power of two */
		*modules = realloc(*modules, (*some ? 2 * *some : 1) * sizeof(**modules));
		if (!*modules)
			fail("no memory for the modules' functions");
	}
	(*modules)[*some].start = address - BASE;
	(*modules)[(*some)++].name = strdup(name);
}

int symbols_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), some = 0;
	struct module_symbol *modules = NULL;
	char *chunk = malloc(CHUNK + 1);
	size_t held = 0;
	ssize_t got;

	if (fd < 0 || !chunk) {
		free(chunk);
		return -errno;
	}
	while ((got = read(fd, chunk + held, CHUNK - held)) > 0) {
		char *line = chunk, *end;

		held += got;
		while ((end = memchr(line, '\n', chunk + held - line))) {
			*end = 0;
			take(line, &modules, &some);
			line = end + 1;
		}
		held -= line - chunk;
		memmove(chunk, line, held);
	}
	close(fd);
	free(chunk);
	if (some)
		qsort(modules, some, sizeof(*modules), by_start);
	for (int i = 0; i < some; i++) {
		append(modules[i].start, modules[i].name);
		free(modules[i].name);
	}
	free(modules);
	return count;
}

int symbols_find(const char *name, struct function *pieces, int room)
{
	size_t length = strlen(name);
	int found = 0;

	/* The last one has no end: it is none of the kernel's own. */
	for (int i = 0; i + 1 < count && found < room; i++) {
		const char *one = text.data + names[i];

		if (strncmp(one, name, length) || (one[length] && one[length] != '.'))
			continue;
		/* A return address may be that behind the function's last instruction, a call. */
		pieces[found].start = BASE + starts[i] + 1;
		pieces[found++].bytes = starts[i + 1] - starts[i];
	}
	return found;
}

void symbols_name(struct text *to, uint64_t address)
{
	/* It is the instruction behind a call, which may be the last one of its function. */
	uint64_t offset = address - 1 - BASE;
	int low = 0, high = count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (starts[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (offset >= TEXT_BYTES || !low)
		text_format(to, "0x%llx", (unsigned long long)address);
	else
		text_string(to, text.data + names[low - 1]);
}
