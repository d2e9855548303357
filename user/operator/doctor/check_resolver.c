/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_resolver.c - whom containers ask for names: a resolver at a loopback address is the
 * container's own, and mostly there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "operator/doctor/listening.h"
#include "operator/doctor/way.h"
#include "operator/kernel/namespaces.h"

#define NAMES_PORT 53

/* Docker's own resolver, which has another port there and a rule that leads to it. */
static const uint8_t of_docker[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 11};

/* The containers that are asked about, and by the same numbers their namespaces. */
struct askers {
	struct doctor *doctor;
	struct subject *subjects;
	ino_t *netns;
	size_t count;
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

static void look_at_file(void *context, size_t number, const char *text)
{
	const struct askers *askers = context;
	char address[CNI_ADDRESS_TEXT_SIZE];

	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (sscanf(line, "nameserver %45s", address) == 1)
			look_at_resolver(askers->doctor, &askers->subjects[number], address);
}

static bool is_new(const struct askers *askers, const struct subject *subject)
{
	for (size_t i = 0; i < askers->count; i++)
		if (owner_is(askers->subjects[i].mapping->portmap.owner,
			     subject->mapping->portmap.owner))
			return false;
	return true;
}

static void add_asker(struct askers *askers, size_t mapping)
{
	struct subject *subject = &askers->subjects[askers->count];
	const struct namespace *namespace;
	struct stat status;

	if (!doctor_subject(askers->doctor, mapping, subject) || !is_new(askers, subject))
		return;
	namespace = doctor_namespace(askers->doctor, subject);
	if (namespace && !fstat(namespace->fd, &status))
		askers->netns[askers->count++] = status.st_ino;
}

void check_resolver(struct doctor *doctor)
{
	size_t most = doctor->mappings.count + 1;
	cleanup_free struct subject *subjects = or_exit(calloc(most, sizeof(*subjects)));
	cleanup_free ino_t *netns = or_exit(calloc(most, sizeof(*netns)));
	struct askers askers = {doctor, subjects, netns, 0};

	for (size_t i = 0; i < doctor->mappings.count; i++)
		add_asker(&askers, i);
	container_files_read(netns, askers.count, "etc/resolv.conf", look_at_file, &askers);
}
