// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Windows of an X server. A letter counts as shown when its pixels are there: what a window looks
 * like with so many letters in its line is learnt before the load, and a picture of that part is
 * taken whenever something was drawn in it. Two lines of other letters take turns, so that a letter
 * that a program has not taken back yet is none of the next ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <X11/Xauth.h>
#include <xcb/damage.h>
#include <xcb/shm.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>
#include <xcb/xtest.h>

#include "keys.h"

#define MOST_WINDOWS 4
#define PLACES 24		  /* of a line: letters that can be told apart */
#define PICTURES (PLACES + 2)	  /* of a line: the empty one, and one letter more than is timed */
#define MOST_PIXELS (32 << 10)	  /* of the part in which letters appear */
#define START (90 * NS)		  /* within which a program has to show its window and letters */
#define ANSWER (10 * NS)	  /* within which it has to draw something */
#define CHILD (100 * MS)	  /* after which we look whether it has ended */
#define TRIES 3			  /* of learning its letters */
#define SILENCE (150 * MS)	  /* after which a program has drawn all that it draws */
#define LETTER_SILENCE (60 * MS) /* after a letter */
#define COLOURS 0xffffff
#define BACKSPACE 0xff08

_Static_assert(PLACES % BURST == 0, "a line takes whole bursts");

/* The two lines never have the same letter at the same place. */
static const char letters[] = LETTERS;

struct pixel {
	uint32_t place; /* in a picture */
	uint32_t colour;
};

/* The pixels that have these colours as soon as a letter is shown, and whatever follows it. */
struct glyph {
	struct pixel *pixels;
	uint32_t count;
};

struct window {
	struct program *program;
	xcb_window_t id;
	xcb_damage_damage_t damage;
	int64_t until;		 /* it has to be ready */
	xcb_rectangle_t changed; /* by all that was drawn */
	xcb_rectangle_t part;	 /* in which letters appear; a picture has its pixels by rows */
	struct glyph glyphs[2][PLACES];
	int line;
	bool drawn; /* since the last request of a picture */
	bool requested; /* a picture that has not come */
	xcb_shm_get_image_cookie_t cookie;
	xcb_shm_seg_t segment; /* the server's name for the memory that it puts pictures in */
	uint32_t *memory;
};

static struct window windows[MOST_WINDOWS];
static int count;
static xcb_connection_t *server;
static xcb_window_t root, mapped;
static uint8_t damage_event, codes[128], backspace;

#define for_each_window(w) for (struct window *w = windows; w < windows + count; w++)

static const char *variable(const struct program *program, const char *name)
{
	size_t size = strlen(name);

	for (char **word = program->env; *word; word++)
		if (!strncmp(*word, name, size) && (*word)[size] == '=')
			return *word + size + 1;
	return "";
}

static int open_socket(const char *display)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/.X11-unix/X%s",
		 *display == ':' ? display + 1 : display);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* No xcb_connect(): it brings a resolver of names that a static program cannot use. */
static const char *connect_to(const char *display, const char *authority)
{
	FILE *file = fopen(authority, "re");
	Xauth *key = file ? XauReadAuth(file) : NULL;
	xcb_auth_info_t info;
	int fd;

	if (file)
		fclose(file);
	if (!key)
		return "its XAUTHORITY names no file with an entry";
	info = (xcb_auth_info_t){ key->name_length, key->name, key->data_length, key->data };
	fd = open_socket(display);
	if (fd < 0)
		return strerror(errno);
	server = xcb_connect_to_fd(fd, &info);
	XauDisposeAuth(key);
	return xcb_connection_has_error(server) ? "the X server took no connection" : NULL;
}

static void learn_codes(void)
{
	const xcb_setup_t *setup = xcb_get_setup(server);
	int first = setup->min_keycode, size = setup->max_keycode - first + 1;
	xcb_get_keyboard_mapping_reply_t *mapping = xcb_get_keyboard_mapping_reply(
		server, xcb_get_keyboard_mapping(server, first, size), NULL);

	for (int i = 0; mapping && i < size; i++) {
		xcb_keysym_t symbol = xcb_get_keyboard_mapping_keysyms(
			mapping)[i * mapping->keysyms_per_keycode];

		if (symbol == BACKSPACE)
			backspace = first + i;
		else if (symbol < sizeof(codes))
			codes[symbol] = first + i;
	}
	free(mapping);
}

static const char *connect_to_server(const struct program *program)
{
	static const uint32_t events = XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY;
	const char *problem = connect_to(variable(program, "DISPLAY"),
					 variable(program, "XAUTHORITY"));
	const xcb_query_extension_reply_t *damage, *test, *shm;

	if (problem)
		return problem;
	damage = xcb_get_extension_data(server, &xcb_damage_id);
	test = xcb_get_extension_data(server, &xcb_test_id);
	shm = xcb_get_extension_data(server, &xcb_shm_id);
	if (!damage || !damage->present || !test || !test->present || !shm || !shm->present)
		return "the X server lacks DAMAGE, XTEST or MIT-SHM";
	damage_event = damage->first_event + XCB_DAMAGE_NOTIFY;
	/* Nothing else is answered before. */
	free(xcb_damage_query_version_reply(server, xcb_damage_query_version(server, 1, 1), NULL));
	root = xcb_setup_roots_iterator(xcb_get_setup(server)).data->root;
	xcb_change_window_attributes(server, root, XCB_CW_EVENT_MASK, &events);
	learn_codes();
	/* A key that a slow server thinks held would be typed again. */
	xcb_change_keyboard_control(server, XCB_KB_AUTO_REPEAT_MODE,
				    &(uint32_t){ XCB_AUTO_REPEAT_MODE_OFF });
	for (const char *letter = letters; *letter; letter++)
		if (!codes[(int)*letter] || !backspace)
			return "the X server's keyboard lacks letters";
	return NULL;
}

bool window_open(struct program *program, struct text *error)
{
	static const char *problem;
	static bool tried;

	if (!tried)
		problem = connect_to_server(program);
	tried = true;
	if (count == MOST_WINDOWS)
		problem = "too many windows";
	if (problem) {
		text_format(error, "%s: no window: %s", program->name, problem);
		return false;
	}
	strcpy(program->path, "/dev/null");
	program->window = &windows[count++];
	program->window->program = program;
	return true;
}

/* The smallest rectangle with both. */
static void extend(xcb_rectangle_t *part, const xcb_rectangle_t *by)
{
	int right = by->x + by->width, bottom = by->y + by->height;

	if (!part->width) {
		*part = *by;
		return;
	}
	if (part->x + part->width > right)
		right = part->x + part->width;
	if (part->y + part->height > bottom)
		bottom = part->y + part->height;
	if (by->x < part->x)
		part->x = by->x;
	if (by->y < part->y)
		part->y = by->y;
	part->width = right - part->x;
	part->height = bottom - part->y;
}

static void take_damage(const xcb_damage_notify_event_t *event)
{
	for_each_window(window) {
		if (!window->damage || window->damage != event->damage)
			continue;
		window->drawn = true;
		extend(&window->changed, &event->area);
		xcb_damage_subtract(server, window->damage, XCB_NONE, XCB_NONE);
	}
}

static bool take_events(void)
{
	xcb_generic_event_t *event;
	bool some = false;

	while ((event = xcb_poll_for_event(server))) {
		int type = event->response_type & 0x7f;

		some = true;
		if (type == damage_event)
			take_damage((void *)event);
		if (type == XCB_MAP_NOTIFY && !((xcb_map_notify_event_t *)event)->override_redirect)
			mapped = ((xcb_map_notify_event_t *)event)->window;
		if (type == XCB_DESTROY_NOTIFY)
			for_each_window(window)
				if (window->id == ((xcb_destroy_notify_event_t *)event)->window)
					window->program->ready = false;
		free(event);
	}
	xcb_flush(server);
	return some;
}

static void press_and_release(uint8_t code)
{
	xcb_test_fake_input(server, XCB_KEY_PRESS, code, 0, root, 0, 0, 0);
	xcb_test_fake_input(server, XCB_KEY_RELEASE, code, 0, root, 0, 0, 0);
}

static void type_at(const struct window *window, const uint8_t *keys, int size)
{
	xcb_set_input_focus(server, XCB_INPUT_FOCUS_POINTER_ROOT, window->id, XCB_CURRENT_TIME);
	for (int i = 0; i < size; i++)
		press_and_release(keys[i]);
	xcb_flush(server);
}

static void take_back(const struct window *window, int size)
{
	uint8_t keys[PICTURES];

	memset(keys, backspace, sizeof(keys));
	type_at(window, keys, size);
}

static uint8_t code_at(int line, int place)
{
	return codes[(int)letters[(2 * place + line) % (sizeof(letters) - 1)]];
}

/* Waits a little for an event; false: it is too late, or we are ended. */
static bool wait_for_event(int64_t until)
{
	struct pollfd from = { .fd = xcb_get_file_descriptor(server), .events = POLLIN };
	int64_t left = until - now_ns();
	struct timespec timeout;

	if (channel.ended || left <= 0 || xcb_connection_has_error(server))
		return false;
	if (left > CHILD)
		left = CHILD;
	timeout = (struct timespec){ left / NS, left % NS };
	ppoll(&from, 1, &timeout, NULL);
	return true;
}

static void let_draw(struct window *window, int64_t silence)
{
	int64_t until = now_ns() + ANSWER;

	if (until > window->until)
		until = window->until;
	while (!window->drawn && (take_events() || wait_for_event(until)))
		;
	while (window->drawn && now_ns() < window->until) {
		window->drawn = false;
		until = now_ns() + silence;
		while (!window->drawn && (take_events() || wait_for_event(until)))
			;
	}
}

static bool show_window(struct window *window)
{
	int status;

	while (!mapped && (take_events() || wait_for_event(window->until)))
		if (program_reaped(window->program, &status))
			return false;
	if (!mapped)
		return false;
	window->id = mapped;
	window->damage = xcb_generate_id(server);
	xcb_damage_create(server, window->damage, window->id,
			  XCB_DAMAGE_REPORT_LEVEL_BOUNDING_BOX);
	window->drawn = true;
	let_draw(window, SILENCE);
	return true;
}

static uint32_t pixels(const struct window *window)
{
	return (uint32_t)window->part.width * window->part.height;
}

/*
 * Memory for its pictures, four bytes a pixel. They are no replies: a server sends the head of one
 * before it reads the pixels, and xcb waits for the rest, while the server waits for a page.
 */
static bool share_memory(struct window *window)
{
	size_t bytes = pixels(window) * sizeof(*window->memory);
	int id = shmget(IPC_PRIVATE, bytes, 0600);
	void *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	xcb_generic_error_t *error = NULL;

	/* It lasts as long as somebody has it. */
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	if (memory != (void *)-1) {
		memset(memory, 0, bytes);
		window->memory = memory;
		window->segment = xcb_generate_id(server);
		error = xcb_request_check(
			server, xcb_shm_attach_checked(server, window->segment, id, false));
	}
	free(error);
	return memory != (void *)-1 && !error;
}

static xcb_shm_get_image_cookie_t request_picture(const struct window *window)
{
	const xcb_rectangle_t *part = &window->part;

	return xcb_shm_get_image(server, window->id, part->x, part->y, part->width, part->height,
				 ~0, XCB_IMAGE_FORMAT_Z_PIXMAP, window->segment, 0);
}

static bool take_picture(struct window *window, uint32_t *picture)
{
	xcb_shm_get_image_reply_t *reply = xcb_shm_get_image_reply(server, request_picture(window), NULL);
	bool taken = reply;

	memcpy(picture, window->memory, pixels(window) * sizeof(*picture));
	free(reply);
	return taken;
}

static bool is_visible(const struct glyph *glyph, const uint32_t *picture)
{
	for (uint32_t i = 0; i < glyph->count; i++)
		if ((picture[glyph->pixels[i].place] & COLOURS) != glyph->pixels[i].colour)
			return false;
	return glyph->count;
}

/* Its colour at a place once a letter is shown, from the pictures of its line; -1: it changes. */
static int64_t lasting_colour(int letter, const uint32_t *pictures, uint32_t size, uint32_t place)
{
	uint32_t colour = pictures[(letter + 1) * size + place] & COLOURS;
	bool differs = false;

	for (int with = letter + 2; with < PICTURES; with++)
		if ((pictures[with * size + place] & COLOURS) != colour)
			return -1;
	/* Where a cursor is before it, some pixels have its colour by then. */
	for (int with = letter ? letter - 1 : 0; with <= letter; with++)
		differs |= (pictures[with * size + place] & COLOURS) != colour;
	return differs ? (int64_t)colour : -1;
}

static bool learn_glyph(struct glyph *glyph, int letter, const uint32_t *pictures, uint32_t size)
{
	struct pixel *learnt = malloc(size * sizeof(*learnt));

	if (!learnt)
		return false;
	glyph->count = 0;
	for (uint32_t place = 0; place < size; place++) {
		int64_t colour = lasting_colour(letter, pictures, size, place);

		if (colour >= 0)
			learnt[glyph->count++] = (struct pixel){ place, colour };
	}
	free(glyph->pixels);
	glyph->pixels = realloc(learnt, (glyph->count + 1) * sizeof(*learnt));
	return glyph->pixels;
}

/* Each glyph is in the pictures that have its letter, and in no others. */
static bool tells_apart(const struct window *window, const uint32_t *pictures)
{
	for (int line = 0; line < 2; line++)
		for (int letter = 0; letter < PLACES; letter++)
			for (int of = 0; of < 2 * PICTURES; of++) {
				const struct glyph *glyph = &window->glyphs[line][letter];
				bool shown = of / PICTURES == line && of % PICTURES > letter;

				if (is_visible(glyph, pictures + of * pixels(window)) != shown)
					return false;
			}
	return true;
}

static bool take_pictures(struct window *window, uint32_t *pictures)
{
	for (int of = 0; of < 2 * PICTURES; of++) {
		int letters_shown = of % PICTURES;

		if (letters_shown) {
			uint8_t code = code_at(of / PICTURES, letters_shown - 1);

			type_at(window, &code, 1);
			let_draw(window, LETTER_SILENCE);
		}
		if (!take_picture(window, pictures + of * pixels(window)))
			return false;
		if (letters_shown == PICTURES - 1) {
			take_back(window, letters_shown);
			let_draw(window, SILENCE);
		}
	}
	return true;
}

/* The part in which letters appear: the first typing may also draw what is drawn only once. */
static void find_part(struct window *window)
{
	uint8_t keys[PICTURES];
	const char *before = window->program->before;

	for (int place = 0; place < PICTURES - 1; place++)
		keys[place] = code_at(0, place);
	for (; *before; before++)
		type_at(window, &codes[(int)*before], 1);
	for (int i = 0; i < 2; i++) {
		let_draw(window, SILENCE);
		window->changed.width = 0;
		type_at(window, keys, PICTURES - 1);
		let_draw(window, SILENCE);
		if (!window->changed.width)
			break;
		take_back(window, PICTURES - 1);
	}
	if (window->changed.width)
		let_draw(window, SILENCE);
	window->part = window->changed;
}

static bool learn_glyphs(struct window *window, const uint32_t *pictures)
{
	uint32_t size = pixels(window);

	for (int line = 0; line < 2; line++)
		for (int letter = 0; letter < PLACES; letter++)
			if (!learn_glyph(&window->glyphs[line][letter], letter,
					 pictures + line * PICTURES * size, size))
				return false;
	return tells_apart(window, pictures);
}

static bool learn(struct window *window)
{
	size_t bytes;
	uint32_t *pictures;
	bool learnt = false;

	find_part(window);
	if (!pixels(window) || pixels(window) > MOST_PIXELS || !share_memory(window))
		return false;
	bytes = 2UL * PICTURES * pixels(window) * sizeof(*pictures);
	/* Not of the heap, which is never given back. */
	pictures = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pictures == MAP_FAILED)
		return false;
	/* A letter that is drawn slowly may be taken for half of one. */
	for (int try = 0; try < TRIES && !learnt && now_ns() < window->until; try++)
		learnt = take_pictures(window, pictures) && learn_glyphs(window, pictures);
	munmap(pictures, bytes);
	return learnt;
}

static void drop_shown(struct program *program, int keys, int64_t now)
{
	(void)now;
	program->waits -= keys;
}

/* A letter of each line, as under load: what that touches gets locked. */
static bool try_out(struct program *program)
{
	program->ready = true;
	for (int i = 0; i < 2; i++) {
		int64_t until = now_ns() + ANSWER;

		window_type(program);
		program->typed = program->waits = 1;
		do
			window_hear(drop_shown);
		while (program->waits && wait_for_event(until));
		if (program->waits)
			return false;
		window_take_back(program);
		program->typed = 0;
		let_draw(program->window, SILENCE);
	}
	return true;
}

bool window_start(struct program *program, struct text *error)
{
	const char *problem = NULL;
	int failed;

	/* A window that comes too late is none of the next program's. */
	take_events();
	mapped = XCB_NONE;
	program->window->until = now_ns() + START;
	failed = program_spawn(program);
	if (failed)
		problem = strerror(failed);
	else if (!show_window(program->window))
		problem = "it did not show a window";
	else if (!learn(program->window) || !try_out(program))
		problem = "its window does not show letters that can be told apart";
	if (problem) {
		text_format(error, "%s: %s", program->name, problem);
		program_end(program);
		return false;
	}
	program->last_due = now_ns();
	return true;
}

bool window_takes(const struct program *program)
{
	return program->typed < PLACES;
}

void window_type(struct program *program)
{
	uint8_t code = code_at(program->window->line, program->typed);

	type_at(program->window, &code, 1);
}

void window_take_back(struct program *program)
{
	take_back(program->window, program->typed);
	program->window->line ^= 1;
}

int window_fd(void)
{
	return server && !xcb_connection_has_error(server) ? xcb_get_file_descriptor(server) : -1;
}

/* How many of its waiting keys its picture shows: a letter is visible only if all before it are. */
static int shown_keys(const struct window *window)
{
	const struct program *program = window->program;
	const struct glyph *glyph = window->glyphs[window->line] + program->typed - program->waits;

	for (int keys = program->waits; keys; keys--)
		if (is_visible(&glyph[keys - 1], window->memory))
			return keys;
	return 0;
}

/* True if its picture has come. */
static bool poll_picture(struct window *window, void (*shown)(struct program *, int keys, int64_t now))
{
	void *reply = NULL;
	int keys;

	if (!window->requested || !xcb_poll_for_reply(server, window->cookie.sequence, &reply, NULL))
		return false;
	window->requested = false;
	keys = reply ? shown_keys(window) : 0;
	if (keys)
		shown(window->program, keys, now_ns());
	free(reply);
	return true;
}

void window_hear(void (*shown)(struct program *, int keys, int64_t now))
{
	bool more = server;

	while (more) {
		more = take_events();
		for_each_window(window) {
			if (!window->program->ready)
				continue;
			more |= poll_picture(window, shown);
			if (window->drawn && !window->requested && window->program->waits) {
				window->cookie = request_picture(window);
				window->drawn = false;
				window->requested = true;
			}
		}
		xcb_flush(server);
	}
	if (server && xcb_connection_has_error(server))
		for_each_window(window)
			window->program->ready = false;
}
