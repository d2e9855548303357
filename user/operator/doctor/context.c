/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* context.c - reads once what the checks look at. */
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "net/netlink.h"
#include "lib/io.h"
#include "operator/doctor/probe.h"
#include "operator/kernel/route.h"

#define FINDINGS_PER_CHECK 8

/* Other ports than the one that is asked about are nobody's question, and neither are those of the
 * family that the client does not speak. Of a workload's containers it is who gets connections. */
static void choose_mappings(struct doctor *doctor)
{
	const struct range_option *from = &doctor->options->from;
	struct mappings *mappings = &doctor->mappings;
	size_t kept = 0;

	for (size_t i = 0; i < mappings->count; i++)
		if (mapping_matches(&mappings->list[i], NULL, doctor->options) &&
		    mapping_gets_new(&mappings->list[i]) &&
		    (!from->is_set ||
		     cni_address_is_ipv4(from->address) ==
			     cni_address_is_ipv4(mappings->list[i].key.host_address)))
			mappings->list[kept++] = mappings->list[i];
	mappings->count = kept;
	mappings_join_ranges(mappings);
	doctor->was_probed = or_exit(calloc(mappings->count + 1, sizeof(*doctor->was_probed)));
	doctor->was_tried = or_exit(calloc(mappings->count + 1, sizeof(*doctor->was_tried)));
}

static int read_all(struct doctor *doctor, struct cni_error *err)
{
	const struct look_at at = {.entries = true, .veths = true, .veth_hooks = true};

	if (host_open(&doctor->host, DATAPATH_READ, err))
		return -1;
	view_of_host(&doctor->view, &doctor->host);
	if (!datapath_is_usable(&doctor->host.datapath))
		return 0;
	if (mappings_read(&doctor->mappings, &doctor->view, err) ||
	    mappings_add_replaced(&doctor->mappings, &doctor->view, err) ||
	    host_plan(&doctor->look, &doctor->plan, &doctor->host, &at, err))
		return -1;
	choose_mappings(doctor);
	doctor->insides = or_exit(calloc(doctor->look.found.count + 1, sizeof(*doctor->insides)));
	return 0;
}

/* By which somebody far away is reached. */
static void find_default_uplinks(struct doctor *doctor)
{
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		struct route route = route_to(doctor->host.socket, probe_far_address(ipv4));

		if (route.exists && !route.is_local)
			link_name(route.ifindex, doctor->default_uplink[ipv4]);
	}
}

#define NEEDED_CAPABILITIES (1ULL << CAP_NET_ADMIN | 1ULL << CAP_SYS_ADMIN)

static bool has_capabilities(void)
{
	unsigned long long effective = 0;
	char text[4096];
	const char *line;

	text_file_read("/proc/self/status", text, sizeof(text));
	line = strstr(text, "\nCapEff:");
	return line && sscanf(line, "\nCapEff: %llx", &effective) == 1 &&
	       (effective & NEEDED_CAPABILITIES) == NEEDED_CAPABILITIES;
}

static const struct interface_look *uplink_by_name(const struct doctor *doctor, const char *name)
{
	for_each (interface, doctor->look.found.interfaces, doctor->look.found.count)
		if (interface_has_role(interface, ROLE_UPLINK) &&
		    !strcmp(interface->link.name, name))
			return interface;
	return NULL;
}

void doctor_read(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	const char *obstacle = bpf_error_obstacle();

	if (!doctor->options->quick)
		doctor_read_conflists(doctor);
	if (!obstacle && !has_capabilities())
		obstacle = "CAP_NET_ADMIN and CAP_SYS_ADMIN are needed to see them";
	/* Some of what is asked would seem to be missing. */
	if (obstacle || read_all(doctor, &err)) {
		doctor->blind = cni_format("%s", obstacle ? obstacle : cni_error_message(&err));
		return;
	}
	if (doctor->options->quick)
		return;
	link_drops_read(doctor->host.socket, &doctor->drops);
	if (doctor->mappings.count)
		namespaces_read(&doctor->namespaces, doctor->host.socket);
	find_default_uplinks(doctor);
	doctor->in = doctor->options->in ? uplink_by_name(doctor, doctor->options->in) : NULL;
}

void doctor_release(struct doctor *doctor)
{
	probe_end(doctor);
	neighbours_release(doctor);
	view_close(&doctor->view);
	plan_release(&doctor->plan);
	for (size_t i = 0; doctor->insides && i < doctor->look.found.count; i++)
		sockets_release(&doctor->insides[i].sockets);
	host_look_release(&doctor->look);
	host_close(&doctor->host);
	mappings_release(&doctor->mappings);
	namespaces_release(&doctor->namespaces);
	link_drops_release(&doctor->drops);
	for (size_t i = 0; i < doctor->conflist_count; i++) {
		free(doctor->conflists[i].path);
		json_decref(doctor->conflists[i].json);
	}
	free(doctor->conflists);
	free(doctor->was_probed);
	free(doctor->was_tried);
	free(doctor->insides);
	free(doctor->blind);
	for (size_t i = 0; i < doctor->finding_count; i++) {
		free(doctor->findings[i].text);
		free(doctor->findings[i].remedy);
	}
	free(doctor->findings);
	*doctor = (struct doctor){0};
}

/* The findings of this check, which follow one another. *said: one of them has this text. */
static size_t count_of_check(const struct doctor *doctor, const char *text, bool *said)
{
	size_t count = 0, i = doctor->finding_count;

	*said = false;
	for (; i-- > 0 && doctor->findings[i].check == doctor->check; count++)
		*said |= !strcmp(doctor->findings[i].text, text);
	return count;
}

void doctor_found(struct doctor *doctor, enum verdict verdict, char *remedy, const char *format,
		  ...)
{
	struct finding *finding = NULL;
	va_list arguments;
	size_t count;
	char *text;
	bool said;

	va_start(arguments, format);
	text = cni_format_list(format, arguments);
	va_end(arguments);
	cni_printable(text, "");
	count = count_of_check(doctor, text, &said);
	if (said || (!doctor->options->all && count == FINDINGS_PER_CHECK)) {
		doctor->suppressed[verdict] += !said;
		doctor->findings[doctor->finding_count - 1].more += !said;
		free(text);
		free(remedy);
		return;
	}
	finding = ARRAY_ADD(doctor->findings, doctor->finding_count);
	*finding = (struct finding){doctor->check,
				    doctor->code ? doctor->code : doctor->check->name,
				    verdict,
				    text,
				    remedy,
				    0,
				    0};
	if (finding->remedy)
		cni_printable(finding->remedy, "\n");
}

/* The finding of this check with this cause, at whatever place. */
static struct finding *find_cause(const struct doctor *doctor, enum verdict verdict,
				  const char *cause)
{
	size_t length = strlen(cause);

	for (size_t i = doctor->finding_count;
	     i-- > 0 && doctor->findings[i].check == doctor->check;)
		if (doctor->findings[i].verdict == verdict &&
		    !strncmp(doctor->findings[i].text, cause, length) &&
		    !strncmp(doctor->findings[i].text + length, " [", 2))
			return &doctor->findings[i];
	return NULL;
}

static bool has_line(const char *text, const char *line, size_t length)
{
	for (; text; text = strchr(text, '\n'), text += text ? 1 : 0)
		if (!strncmp(text, line, length) && strchr("\n", text[length]))
			return true;
	return false;
}

static void append_line(char **text, const char *line, size_t length)
{
	cleanup_free char *before = *text;

	*text = cni_format("%s%s%.*s", before ? before : "", before ? "\n" : "", (int)length, line);
}

/* Each command once: what a second remedy shares with the first stays where it is, but for the last
 * command, which has all before it take effect. */
static void add_remedy(struct finding *finding, const char *remedy)
{
	cleanup_free char *before = finding->remedy;
	const char *last = strrchr(remedy, '\n');
	const char *last_before = before ? strrchr(before, '\n') : NULL;

	finding->remedy = NULL;
	if (last && last_before && !strcmp(last, last_before))
		*strrchr(before, '\n') = '\0';
	if (before)
		append_line(&finding->remedy, before, strlen(before));
	for (size_t length; *remedy; remedy += length + (remedy[length] == '\n')) {
		length = strcspn(remedy, "\n");
		if (!has_line(finding->remedy, remedy, length))
			append_line(&finding->remedy, remedy, length);
	}
	cni_printable(finding->remedy, "\n");
}

void doctor_found_at(struct doctor *doctor, enum verdict verdict, char **remedy, const char *cause,
		     const char *place)
{
	struct finding *finding = find_cause(doctor, verdict, cause);
	cleanup_free char *before = NULL;

	if (!finding) {
		doctor_found(doctor, verdict, TAKE(*remedy), "%s [%s]", cause, place);
		return;
	}
	if (!doctor->options->all && finding->more_places == FINDINGS_PER_CHECK - 1) {
		finding->more++;
		return;
	}
	finding->more_places++;
	before = finding->text;
	finding->text = cni_format("%.*s; %s]", (int)strlen(before) - 1, before, place);
	cni_printable(finding->text, "");
	if (*remedy)
		add_remedy(finding, *remedy);
}

const struct interface_look *doctor_usual_uplink(const struct doctor *doctor, bool ipv4)
{
	const struct look *look = &doctor->look.found;
	const struct interface_look *first = NULL;

	for_each (interface, look->interfaces, look->count) {
		if (!interface_has_role(interface, ROLE_UPLINK))
			continue;
		if (!strcmp(interface->link.name, doctor->default_uplink[ipv4]))
			return interface;
		first = first ? first : interface;
	}
	return first;
}

const struct interface_look *doctor_interface(const struct doctor *doctor, uint32_t ifindex)
{
	const struct interface_look *found = look_find(&doctor->look.found, ifindex);

	return found && found->is_known ? found : NULL;
}

bool doctor_locate(const struct doctor *doctor, struct subject *subject)
{
	if (!subject->container || !subject->container->has_record || !subject->container->live)
		return false;
	subject->veth = doctor_interface(doctor, subject->container->record.ifindex);
	if (!subject->veth || subject->veth->is_gone)
		return false;
	subject->gateway = subject->veth;
	if (subject->veth->entry.role == ROLE_PORT)
		subject->gateway = doctor_interface(doctor, subject->veth->entry.bridge_ifindex);
	return subject->gateway && !subject->gateway->is_gone;
}

bool doctor_subject(struct doctor *doctor, size_t mapping, struct subject *subject)
{
	const struct mapping *mapped = &doctor->mappings.list[mapping];
	char host[RANGE_TEXT_SIZE];

	*subject = (struct subject){
		.mapping = mapped,
		.container = view_container(&doctor->view, mapped->portmap.owner),
		.ipv4 = cni_address_is_ipv4(mapped->portmap.container_address),
	};
	snprintf(subject->port, sizeof(subject->port), "%s/%s", mapping_format_host(mapped, host),
		 protocol_word(mapped->key.protocol));
	return doctor_locate(doctor, subject);
}

const struct namespace *doctor_namespace(const struct doctor *doctor, const struct subject *subject)
{
	return namespaces_find(&doctor->namespaces, subject->veth->link.peer_netns_id);
}

struct netlink *doctor_enter(struct doctor *doctor, const struct subject *subject)
{
	const struct namespace *namespace = doctor_namespace(doctor, subject);
	cleanup_error struct cni_error ignored = {0};

	return namespace ? netlink_open_in(namespace->fd, &ignored) : NULL;
}

struct inside *doctor_inside(struct doctor *doctor, const struct subject *subject)
{
	struct inside *inside = &doctor->insides[subject->veth - doctor->look.found.interfaces];
	cleanup_error struct cni_error ignored = {0};
	cleanup_netlink struct netlink *socket = NULL;

	if (!inside->is_read)
		socket = doctor_enter(doctor, subject);
	inside->is_read = true;
	if (socket)
		link_get(socket, subject->veth->link.peer, NULL, &inside->link, &ignored);
	return inside;
}
