/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_resolver.c - whom containers ask for names: a resolver at a loopback address is the
 * container's own, and mostly there is none. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/memory.h"
#include "operator/doctor/listening.h"
#include "operator/doctor/way.h"

#define NAMES_PORT 53
#define FILE_SIZE 4096
#define READ_MS 300
#define TRIES_MOST 3

/* Docker's own resolver, which has another port there and a rule that leads to it. */
static const uint8_t of_docker[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 11};

/* A container, and how many processes of it are still asked: one that has the file is enough. */
struct asker {
	struct subject subject;
	ino_t netns;
	int tries;
};

static bool serves_names(struct doctor *doctor, const struct subject *subject,
			 const uint8_t *address)
{
	const struct socket_list *sockets = way_sockets(doctor, subject);
	const uint8_t *where;

	return !sockets ||
	       listening_at(sockets, PROTOCOL_UDP, address, NAMES_PORT, &where) == LISTENING;
}

static void look_at_resolver(struct doctor *doctor, const struct subject *subject,
			     const char *address)
{
	uint8_t parsed[CNI_ADDRESS_SIZE];

	if (cni_address_parse(address, parsed) || !cni_address_is_loopback(parsed) ||
	    !memcmp(parsed, of_docker, CNI_ADDRESS_SIZE) || serves_names(doctor, subject, parsed))
		return;
	doctor_found(doctor, VERDICT_WARN, NULL,
		     "%s asks for names at %s (/etc/resolv.conf), where nobody listens inside: a"
		     " resolver of the host's is reached at the host's addresses alone",
		     subject->container->text, address);
}

/* Runs in a child, as the container chooses what stands at this path, and on what file system. */
static void __attribute__((noreturn)) copy_file(const char *root, int out)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int directory = open(root, O_PATH | O_DIRECTORY);
	int file = (int)syscall(SYS_openat2, directory, "etc/resolv.conf", &how, sizeof(how));
	char text[FILE_SIZE];
	ssize_t length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	_exit(length > 0 && write(out, text, (size_t)length) == length ? 0 : 1);
}

/* Reads what there is after READ_MS. Returns the length. */
static size_t read_file(const char *root, char text[FILE_SIZE])
{
	struct pollfd copied = {.events = POLLIN};
	ssize_t length = 0;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	child = fork();
	if (!child)
		copy_file(root, ends[1]);
	close(ends[1]);
	copied.fd = ends[0];
	if (child > 0 && poll(&copied, 1, READ_MS) == 1)
		length = read(ends[0], text, FILE_SIZE - 1);
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* False: the process has no such file, and another one may. */
static bool look_at_file(struct doctor *doctor, const struct subject *subject, const char *root)
{
	char text[FILE_SIZE], address[CNI_ADDRESS_TEXT_SIZE];
	const char *line = text;

	if (!read_file(root, text))
		return false;
	for (; line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (sscanf(line, "nameserver %45s", address) == 1)
			look_at_resolver(doctor, subject, address);
	return true;
}

static void look_at_process(struct doctor *doctor, struct asker *askers, size_t count,
			    const char *pid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.16s/ns/net", pid);
	if (stat(path, &status))
		return;
	snprintf(path, sizeof(path), "/proc/%.16s/root", pid);
	for (size_t i = 0; i < count; i++)
		if (askers[i].tries && askers[i].netns == status.st_ino)
			askers[i].tries = look_at_file(doctor, &askers[i].subject, path)
						  ? 0
						  : askers[i].tries - 1;
}

static bool is_asker(struct doctor *doctor, size_t mapping, struct asker *asker)
{
	const struct namespace *namespace;
	struct stat status;

	if (!doctor_subject(doctor, mapping, &asker->subject))
		return false;
	namespace = doctor_namespace(doctor, &asker->subject);
	if (!namespace || fstat(namespace->fd, &status))
		return false;
	asker->netns = status.st_ino;
	asker->tries = TRIES_MOST;
	return true;
}

void check_resolver(struct doctor *doctor)
{
	struct asker *askers = or_exit(calloc(doctor->mappings.count + 1, sizeof(*askers)));
	const struct dirent *entry;
	DIR *processes = opendir("/proc");
	size_t count = 0;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		bool is_first = true;

		for (size_t j = 0; j < count; j++)
			is_first &= !owner_is(askers[j].subject.mapping->portmap.owner,
					      doctor->mappings.list[i].portmap.owner);
		count += is_first && is_asker(doctor, i, &askers[count]);
	}
	while (count && processes && (entry = readdir(processes)))
		if (isdigit((unsigned char)*entry->d_name))
			look_at_process(doctor, askers, count, entry->d_name);
	if (processes)
		closedir(processes);
	free(askers);
}
