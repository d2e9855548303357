/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_port.c - checks of mapped ports: whose they are, and at which addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/option_types.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "host/foreign_nat.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "lib/io.h"
#include "operator/doctor/doctor.h"
#include "operator/kernel/inject.h"
#include "operator/print/format.h"

#define LOOKS 10 /* an ADD takes a few milliseconds for what is looked at */
#define LOOK_PAUSE_US 20000

/* Not where maps are of another layout, damaged, or out of sight, of which other checks tell. */
static bool knows_all_ports(const struct doctor *doctor)
{
	for_each (finding, doctor->findings, doctor->finding_count)
		if (finding->verdict != VERDICT_OK &&
		    (finding->check->run == check_bpffs || finding->check->run == check_pins))
			return false;
	return datapath_is_usable(&doctor->host.datapath) ||
	       doctor->host.datapath.state == DATAPATH_ABSENT;
}

/* Not where DEL has come since the maps were read. ADD and DEL that are under way are waited for,
 * while there are any looks left. */
static bool stays_dead(const struct doctor *doctor, const struct subject *subject, int *looks)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	const struct mapping *mapping = subject->mapping;
	const struct container_info *container = subject->container;
	bool was_ready = container && container->has_record && container->live;
	struct portmap portmap;
	struct slot slot;

	for (;; (*looks)--) {
		if (!portmap_read(objects, &mapping->key, &portmap) ||
		    !owner_is(portmap.owner, mapping->portmap.owner) ||
		    (!was_ready && owner_is_live_with_veth(objects, portmap.owner, &slot)))
			return false;
		if (!*looks)
			return true;
		usleep(LOOK_PAUSE_US);
	}
}

/* Of that check_bridge() tells, and repair does not bring it back. */
static bool lacks_bridge(const struct subject *subject)
{
	return subject->veth && !subject->veth->is_gone && !subject->veth->link.master;
}

void check_owner(struct doctor *doctor)
{
	const struct port_option *port = &doctor->options->port;
	struct subject subject;
	int looks = LOOKS;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (!doctor_subject(doctor, i, &subject) && !lacks_bridge(&subject) &&
		    stays_dead(doctor, &subject, &looks))
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
				     "%s: its container is gone, or its ADD did not finish",
				     subject.port);
	if (port->port && !doctor->mappings.count && knows_all_ports(doctor))
		doctor_found(
			doctor, VERDICT_FAIL, cni_format("# add the container again with the port"),
			"no container has port %u%s%s%s", port->port, port->protocol ? "/" : "",
			port->protocol ? protocol_word(port->protocol) : "",
			doctor->options->from.is_set ? " for this client's family" : "");
}

/* Asks the network of the uplink whether somebody else has the address. */
static bool is_of_others(const struct doctor *doctor, const uint8_t *address)
{
	const struct interface_look *uplink =
		doctor_usual_uplink(doctor, cni_address_is_ipv4(address));
	uint8_t mac[LINK_MAC_SIZE];
	cleanup_close int question =
		uplink && !doctor->options->no_probe ? neighbour_ask(&uplink->link, address) : -1;

	return question >= 0 && neighbour_answer(question, address, NEIGHBOUR_ANSWER_MS, mac);
}

void check_host_ip(struct doctor *doctor, const struct subject *subject)
{
	const uint8_t *address = subject->mapping->key.host_address;
	const char *uplink = doctor->default_uplink[cni_address_is_ipv4(address)];
	char text[CNI_ADDRESS_TEXT_SIZE];
	bool is_taken;

	if (cni_address_is_any(address) || cni_address_is_loopback(address) ||
	    local_address_exists(doctor->host.socket, address))
		return;
	cni_address_format(address, text);
	is_taken = is_of_others(doctor, address);
	doctor_found(doctor, VERDICT_FAIL,
		     is_taken ? NULL
			      : cni_format("ip address add %s/%d dev %s", text,
					   cni_address_is_ipv4(address) ? 32 : 128,
					   remedy_word(*uplink ? uplink : "lo").text),
		     "%s: the host does not have the address %s%s", subject->port, text,
		     is_taken ? ", which somebody else has" : "");
}

/* The kernel takes a list in any order. Each remedy has the ports of those before it, so that
 * whichever is pasted last keeps them. */
void check_ephemeral(struct doctor *doctor)
{
	struct port_set reserved = {0};
	char range[32], list[4096];
	unsigned int first = 0, last = 0;
	size_t length;
	struct subject subject;

	text_file_read("/proc/sys/net/ipv4/ip_local_port_range", range, sizeof(range));
	text_file_read("/proc/sys/net/ipv4/ip_local_reserved_ports", list, sizeof(list));
	length = strcspn(list, "\n");
	port_set_change_by_list(&reserved, list, port_set_add);
	if (sscanf(range, "%u %u", &first, &last) != 2)
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct mapping *mapping = &doctor->mappings.list[i];
		const struct port_range ports = {mapping->key.host_port, mapping->last_port};
		struct port_range found = port_set_next(&reserved, ports.first);

		if (ports.last < first || ports.first > last ||
		    (found.first == ports.first && found.last >= ports.last))
			continue;
		doctor_subject(doctor, i, &subject);
		port_set_add(&reserved, ports);
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%u-%u",
					   length ? "," : "", ports.first, ports.last);
		/* A list that did not fit would lose its end by the remedy. */
		if (length > sizeof(list) - sizeof(",65535-65535"))
			return;
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("sysctl -w net.ipv4.ip_local_reserved_ports=%s", list),
			     "%s is among the ports that connections of the host get (%u to %u):"
			     " answers to such a connection go to the container",
			     subject.port, first, last);
	}
}

/* --- the host's own NAT --------------------------------------------------------------------- */

/* What the next `repair` would write down, or take back. It mends the latter alone: whoever reaches
 * the container now would not any more. */
static void take_change(const struct portmap_key *key, bool is_taken, void *context)
{
	const char *protocol = protocol_word(key->protocol);
	char port[ENDPOINT_TEXT_SIZE];

	format_host_port(key->host_address, key->host_port, port);
	if (is_taken)
		doctor_found(context, VERDICT_WARN, NULL,
			     "%s/%s: a rule of the host's NAT has come since the last ADD or"
			     " repair; it gets nothing until the next one, which leaves the port to"
			     " it (`bpf-portmap who %u/%s` shows the rule)",
			     port, protocol, key->host_port, protocol);
	else
		doctor_found(context, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "%s/%s: a rule of the host's NAT that took it is gone, and its"
			     " container gets nothing before repair",
			     port, protocol);
}

static void note_left_ports(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_NAT_PORTS};
	char host_port[ENDPOINT_TEXT_SIZE];
	struct portmap mapping;

	while (map_next(&walk, &err)) {
		const struct portmap_key *key = walk.key;
		struct portmap_key any = *key;

		memcpy(any.host_address,
		       cni_address_is_ipv4(key->host_address) ? cni_address_any_ipv4
							      : cni_address_any_ipv6,
		       CNI_ADDRESS_SIZE);
		if (!((const struct nat_port *)walk.value)->hooks ||
		    (!portmap_read(walk.objects, key, &mapping) &&
		     !portmap_read(walk.objects, &any, &mapping)))
			continue;
		format_host_port(key->host_address, key->host_port, host_port);
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "%s/%s is mapped, and left to the host's NAT, of which a rule took it"
			     " at the last ADD or repair: no client reaches the container there;"
			     " `bpf-portmap who %u/%s` shows the rule",
			     host_port, protocol_word(key->protocol), key->host_port,
			     protocol_word(key->protocol));
	}
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
}

void check_nat(struct doctor *doctor)
{
	const struct nat_ports_change change = {
		.dry_run = true, .report = take_change, .context = doctor};
	cleanup_error struct cni_error err = {0};

	if (foreign_nat_settle(&doctor->host, &change, &err))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	note_left_ports(doctor);
}

/* --- ports that masqueraded connections may leave with -------------------------------------- */

#define FULL_PERCENT 80

/* A connection's place in the count. Ordered by its bytes, those of one server follow one another,
 * and among them those of one container. */
struct use {
	uint8_t external[CNI_ADDRESS_SIZE], server[CNI_ADDRESS_SIZE];
	uint32_t ports; /* how many its container may have */
	uint16_t port;
	uint8_t protocol, reserved;
	struct owner owner;
};

#define SAME_SERVER offsetof(struct use, owner)

struct uses {
	struct use *list;
	size_t count;
};

static uint32_t count_ports(const struct port_range ranges[MASQUERADE_RANGES])
{
	uint32_t count = 0;

	for (int i = 0; i < MASQUERADE_RANGES; i++)
		count += ranges[i].last ? ranges[i].last - ranges[i].first + 1U : 0;
	return count;
}

static uint32_t ports_of(const struct objects *objects, struct owner owner)
{
	struct policy policy;
	struct meta meta;

	if (policy_read(objects, owner, &policy) && policy.masquerade_ports[0].last)
		return count_ports(policy.masquerade_ports);
	return meta_read(objects, &meta) ? count_ports(meta.masquerade_ports) : 0;
}

/* The fewest ports that a container may have. */
static uint32_t fewest_ports(const struct objects *objects)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_POLICIES};
	uint32_t fewest = ports_of(objects, (struct owner){0}), ports;

	while (map_next(&walk, NULL)) {
		ports = count_ports(((const struct policy *)walk.value)->masquerade_ports);
		fewest = ports && ports < fewest ? ports : fewest;
	}
	return fewest;
}

static bool is_full(uint64_t used, uint32_t ports)
{
	return ports && used * 100 >= (uint64_t)ports * FULL_PERCENT;
}

/* The programs' own counters say whether it can be, which saves reading the connections. */
static bool may_be_full(const struct objects *objects)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORT_SHARES};
	uint32_t fewest = fewest_ports(objects);

	while (map_next(&walk, NULL))
		if (is_full(((const struct port_share *)walk.value)->ports, fewest))
			return true;
	return false;
}

/* Others give way to whoever needs a port. */
static void add_use(struct doctor *doctor, struct uses *uses, const struct connection_key *key,
		    const struct connection *connection)
{
	struct use *use;

	if (connection->kind != FLOW_MASQUERADE || !(connection->state & STATE_ASSURED) ||
	    (key->protocol != PROTOCOL_TCP && key->protocol != PROTOCOL_UDP) ||
	    !view_is_alive(&doctor->view, key, connection))
		return;
	use = ARRAY_ADD(uses->list, uses->count);
	*use = (struct use){.ports = ports_of(&doctor->host.datapath.objects, connection->owner),
			    .port = connection->peer_port,
			    .protocol = (uint8_t)key->protocol,
			    .owner = connection->owner};
	memcpy(use->external, connection->external_address, CNI_ADDRESS_SIZE);
	memcpy(use->server, key->outside, CNI_ADDRESS_SIZE);
}

static int compare(const void *one, const void *other)
{
	return memcmp(one, other, sizeof(struct use));
}

/* The container that has most of them. */
static const char *fullest_container(struct doctor *doctor, const struct use *uses, size_t count)
{
	size_t most = 0, best = 0;
	const struct container_info *container;

	for (size_t i = 0, begin = 0; i < count; i++) {
		begin = owner_is(uses[i].owner, uses[begin].owner) ? begin : i;
		if (i - begin >= most) {
			most = i - begin;
			best = i;
		}
	}
	container = view_container(&doctor->view, uses[best].owner);
	return container ? container->text : "a container that is gone";
}

static void judge_server(struct doctor *doctor, const struct use *uses, size_t count)
{
	char server[ENDPOINT_TEXT_SIZE], external[CNI_ADDRESS_TEXT_SIZE];

	if (!is_full(count, uses->ports))
		return;
	format_endpoint(uses->server, uses->port, server);
	doctor_found(
		doctor, VERDICT_WARN, NULL,
		"%zu of %u ports (\"masqPorts\") of %s are in use towards %s/%s, most of them by"
		" %s: when all are, no more connections to it are made",
		count, uses->ports, cni_address_format(uses->external, external), server,
		protocol_word(uses->protocol), fullest_container(doctor, uses, count));
}

void check_ports_left(struct doctor *doctor)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_CONNECTIONS};
	cleanup_error struct cni_error err = {0};
	struct uses uses = {0};

	if (!may_be_full(objects))
		return;
	while (map_next(&walk, &err))
		add_use(doctor, &uses, walk.key, walk.value);
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	if (uses.count)
		qsort(uses.list, uses.count, sizeof(*uses.list), compare);
	for (size_t i = 0, begin = 0; i < uses.count; i++)
		if (i + 1 == uses.count ||
		    memcmp(&uses.list[i + 1], &uses.list[begin], SAME_SERVER) != 0) {
			judge_server(doctor, &uses.list[begin], i + 1 - begin);
			begin = i + 1;
		}
	free(uses.list);
}
