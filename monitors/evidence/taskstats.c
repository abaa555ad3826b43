// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * struct taskstats over generic netlink, by hand: Documentation/accounting/taskstats.rst and
 * delay-accounting.rst. Needs CAP_NET_ADMIN.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>

#include "evidence.h"

#define TIMEOUT_S 2
#define REPLY_BYTES 4096

struct request {
	struct nlmsghdr netlink;
	struct genlmsghdr generic;
	struct nlattr attribute;
	uint32_t pid;
};

static const char *refused(void)
{
	return taskstats_wrong("taskstats: %s", errno == EAGAIN ? "timed out" : strerror(errno));
}

/* The value of the first attribute of this type between *begin and *end, which then enclose it. */
static const char *attribute(const char *data, int type, size_t *begin, size_t *end)
{
	size_t at = *begin;
	struct nlattr head;

	while (at + sizeof(head) <= *end) {
		memcpy(&head, data + at, sizeof(head));
		if (head.nla_len < sizeof(head) || at + head.nla_len > *end)
			return "taskstats: an answer with attributes that do not fit";
		if ((head.nla_type & NLA_TYPE_MASK) == type) {
			*begin = at + sizeof(head);
			*end = at + head.nla_len;
			return NULL;
		}
		at += NLA_ALIGN(head.nla_len);
	}
	return "taskstats: an answer without statistics";
}

const char *taskstats_find(const char *message, size_t size, size_t *begin, size_t *end)
{
	struct nlmsghdr head;
	const char *error;
	int number;

	*begin = sizeof(head) + sizeof(struct genlmsghdr);
	if (size < *begin)
		return "taskstats: an answer that was cut short";
	memcpy(&head, message, sizeof(head));
	if (head.nlmsg_type == NLMSG_ERROR) {
		memcpy(&number, message + sizeof(head), sizeof(number));
		return taskstats_wrong("taskstats: %s", strerror((int)labs(number)));
	}
	if (head.nlmsg_len < *begin || head.nlmsg_len > size)
		return "taskstats: an answer that was cut short";
	*end = head.nlmsg_len;
	error = attribute(message, TASKSTATS_TYPE_AGGR_PID, begin, end);
	return error ? error : attribute(message, TASKSTATS_TYPE_STATS, begin, end);
}

static const char *exchange(struct accounts *stats, const void *request, size_t length,
			    char *message, size_t room, size_t *size)
{
	ssize_t got;

	*size = 0;
	if (send(stats->socket, request, length, 0) < 0)
		return refused();
	got = recv(stats->socket, message, room, 0);
	if (got < 0)
		return refused();
	*size = (size_t)got;
	return NULL;
}

static struct request request_for(struct accounts *stats, int pid)
{
	return (struct request){
		.netlink = { .nlmsg_len = sizeof(struct request),
			     .nlmsg_type = (uint16_t)stats->family,
			     .nlmsg_flags = NLM_F_REQUEST,
			     .nlmsg_seq = ++stats->sequence },
		.generic = { .cmd = TASKSTATS_CMD_GET, .version = TASKSTATS_GENL_VERSION },
		.attribute = { sizeof(struct nlattr) + 4, TASKSTATS_CMD_ATTR_PID },
		.pid = (uint32_t)pid,
	};
}

const char *taskstats_ask(struct accounts *stats, int pid, char *message, size_t room,
			  size_t *size)
{
	struct request request = request_for(stats, pid);

	return exchange(stats, &request, sizeof(request), message, room, size);
}

static const char *find_family(struct accounts *stats)
{
	struct {
		struct nlmsghdr netlink;
		struct genlmsghdr generic;
		struct nlattr attribute;
		char name[12];
	} request = {
		.netlink = { sizeof(request), GENL_ID_CTRL, NLM_F_REQUEST, ++stats->sequence, 0 },
		.generic = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.attribute = { sizeof(struct nlattr) + sizeof(TASKSTATS_GENL_NAME),
			       CTRL_ATTR_FAMILY_NAME },
		.name = TASKSTATS_GENL_NAME,
	};
	char message[REPLY_BYTES];
	size_t end, begin = sizeof(request.netlink) + sizeof(request.generic);
	const char *error;
	struct nlmsghdr head;
	uint16_t family;

	error = exchange(stats, &request, sizeof(request), message, sizeof(message), &end);
	if (error)
		return error;
	memcpy(&head, message, sizeof(head));
	if (end < begin || head.nlmsg_type == NLMSG_ERROR ||
	    attribute(message, CTRL_ATTR_FAMILY_ID, &begin, &end) || end - begin < sizeof(family))
		return "taskstats: this kernel has none";
	memcpy(&family, message + begin, sizeof(family));
	stats->family = family;
	return NULL;
}

/* The answer about ourselves says where everything is in all others. */
static const char *prove(struct accounts *stats)
{
	char message[REPLY_BYTES], comm[33] = "", own[16] = "";
	struct layout *layout = &stats->layout;
	size_t size, end, begin;
	uint32_t pid, ppid;
	uint16_t version;
	uint64_t cpu;
	const char *error;

	/* What a task has run is counted when it leaves the CPU, and we have only just begun. */
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	error = taskstats_ask(stats, getpid(), message, sizeof(message), &size);
	if (!error)
		error = taskstats_find(message, size, &begin, &end);
	if (error)
		return error;
	if (end - begin < 16)
		return "taskstats: a structure that was cut short";
	memcpy(&version, message + begin, sizeof(version));
	error = taskstats_layout(layout, version, end - begin);
	if (error)
		return error;
	memcpy(comm, message + begin + layout->comm, 32);
	memcpy(&pid, message + begin + layout->pid, sizeof(pid));
	memcpy(&ppid, message + begin + layout->ppid, sizeof(ppid));
	memcpy(&cpu, message + begin + layout->delay[CPU], sizeof(cpu));
	prctl(PR_GET_NAME, own);
	if (pid != (uint32_t)getpid() || ppid != (uint32_t)getppid() || strcmp(comm, own))
		return taskstats_wrong("taskstats: version %d cannot be told", version);
	if (!cpu)
		return "taskstats: this kernel counts no delays (CONFIG_TASK_DELAY_ACCT)";
	stats->length = size;
	stats->begin = begin;
	return NULL;
}

const char *taskstats_open(struct accounts *stats)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct timeval timeout = { .tv_sec = TIMEOUT_S };
	const char *error;

	stats->sequence = 0;
	stats->socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (stats->socket < 0)
		return refused();
	if (bind(stats->socket, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(stats->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		error = refused();
	else
		error = find_family(stats);
	if (!error)
		error = prove(stats);
	if (error) {
		close(stats->socket);
		stats->socket = -1;
	}
	return error;
}

static void decode(const struct accounts *stats, const char *message, uint64_t us[DELAYS])
{
	for (int i = 0; i < DELAYS; i++) {
		uint64_t ns = 0;

		if (stats->layout.delay[i])
			memcpy(&ns, message + stats->begin + stats->layout.delay[i], sizeof(ns));
		us[i] = ns / 1000;
	}
}

void taskstats_read(struct accounts *stats, const int *pids, int count, uint64_t us[][DELAYS],
		    bool *found)
{
	struct request requests[TASKSTATS_BATCH] = { 0 };
	uint32_t first = stats->sequence + 1;
	char message[REPLY_BYTES];

	for (int i = 0; i < count; i++) {
		requests[i] = request_for(stats, pids[i]);
		found[i] = false;
	}
	if (send(stats->socket, requests, sizeof(requests[0]) * (size_t)count, 0) < 0)
		return;
	for (int left = count; left;) {
		ssize_t size = recv(stats->socket, message, sizeof(message), 0);
		struct nlmsghdr head;

		if (size < (ssize_t)sizeof(head))
			return;
		memcpy(&head, message, sizeof(head));
		if (head.nlmsg_seq - first >= (uint32_t)count)
			continue; /* the answer to something that we no longer wait for */
		left--;
		if ((size_t)size != stats->length)
			continue; /* it is gone */
		found[head.nlmsg_seq - first] = true;
		decode(stats, message, us[head.nlmsg_seq - first]);
	}
}

/* A small file as a string; -1 if it cannot be read. */
static ssize_t read_file(const char *path, char *data, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, data, room - 1);

	if (fd >= 0)
		close(fd);
	if (size >= 0)
		data[size] = 0;
	return size;
}

/*
 * kernel.task_delayacct (5.14 on), always on before that: kernel commits e4042ad49235 (off by
 * default) and 0cd7c741f01d (the sysctl).
 */
bool delay_accounting(void)
{
	char data[4096], *rest = data, *word;

	if (read_file("/proc/sys/kernel/task_delayacct", data, sizeof(data)) >= 0)
		return data[0] == '1' && data[1] == '\n';
	if (read_file("/proc/cmdline", data, sizeof(data)) < 0)
		return true;
	while ((word = strsep(&rest, " \t\n")))
		if (!strcmp(word, "nodelayacct"))
			return false;
	return true;
}
