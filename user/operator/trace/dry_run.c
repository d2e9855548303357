/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dry_run.c - `bpf-portmap trace`: what would become of a packet.
 *
 * The programs are run on copies of the maps (replica.h), by the kernel, at the interfaces that the
 * packet would meet, so they ask the real routing table. What stands between them is told, not run.
 */
#include <linux/neighbour.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/maps.h"
#include "operator/kernel/route.h"
#include "operator/print/format.h"
#include "operator/trace/frame.h"
#include "operator/kernel/replica.h"
#include "operator/trace/story.h"
#include "operator/trace/trace.h"

struct dry_run {
	const struct options *options;
	struct view *view; /* of the host, but for the connections, which are the replica's */
	struct replica replica;
	struct story story;
	struct trace_packet packet; /* as it is by now */
	struct link entry;          /* where it arrives */
	struct interface entry_kind;
	uint32_t in_ifindex; /* where the IP stack gets it: of a bridge's port, the bridge */
	bool is_switched;    /* a container sends it to a neighbour on its bridge */
};

static bool find_endpoint(const struct dry_run *run, const uint8_t *address,
			  struct endpoint *endpoint, struct slot *slot)
{
	const struct objects *objects = &run->view->datapath.objects;
	struct endpoint_key key;

	memcpy(key.address, address, CNI_ADDRESS_SIZE);
	return endpoint_read(objects, &key, endpoint) &&
	       slot_read(objects, endpoint->owner.slot, slot) && slot->live &&
	       slot->generation == endpoint->owner.generation;
}

/* Where packets of the source come from. 0 and an error: none come from there. */
static uint32_t find_entry(const struct dry_run *run, struct cni_error *err)
{
	const uint8_t *source = run->packet.source;
	char text[CNI_ADDRESS_TEXT_SIZE];
	struct endpoint endpoint;
	struct route route;
	struct slot slot;

	if (find_endpoint(run, source, &endpoint, &slot))
		return slot.ifindex;
	route = route_to(run->view->socket, source);
	if (route.is_local)
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "%s is an address of this host: its processes reach mapped ports by"
			      " their sockets, not through these programs",
			      cni_address_format(source, text));
	else if (!route.exists || !route.ifindex)
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "there is no route to %s, so none of its packets are expected: --in"
			      " INTERFACE says where one arrives",
			      cni_address_format(source, text));
	return route.is_local || !route.exists ? 0 : route.ifindex;
}

static int choose_entry(struct dry_run *run, struct cni_error *err)
{
	const char *name = run->options->interface;
	uint32_t ifindex = name ? 0 : find_entry(run, err);

	if ((!name && !ifindex) || link_get(run->view->socket, ifindex, name, &run->entry, err))
		return -1;
	if (!run->entry.ifindex)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "there is no interface %.60s",
				     name ? name : "with that number");
	if (interface_read(&run->view->datapath.objects, run->entry.ifindex, &run->entry_kind) &&
	    program_at(&run->entry_kind, HOOK_INGRESS) != PROGRAM_COUNT)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the programs are not at %s: packets that arrive there are not looked"
			     " at; `bpf-portmap attach %s` makes it an uplink",
			     run->entry.name, run->entry.name);
}

/* A container sends to its gateway, unless the destination is another one on its bridge. */
static void containers_destination(struct dry_run *run, uint8_t mac[LINK_MAC_SIZE])
{
	struct endpoint endpoint, peer;
	struct slot slot, peer_slot;
	struct interface peer_kind;
	struct neighbour neighbour;

	memcpy(mac, run->entry_kind.role == ROLE_PORT ? run->entry_kind.bridge_mac : run->entry.mac,
	       LINK_MAC_SIZE);
	if (run->entry_kind.role != ROLE_PORT ||
	    !find_endpoint(run, run->packet.source, &endpoint, &slot) ||
	    !find_endpoint(run, run->packet.destination, &peer, &peer_slot) ||
	    !interface_read(&run->view->datapath.objects, peer_slot.ifindex, &peer_kind) ||
	    peer_kind.bridge_ifindex != run->entry_kind.bridge_ifindex ||
	    !cni_address_has_prefix(run->packet.destination, run->packet.source,
				    endpoint.prefix_length))
		return;
	run->is_switched = true;
	neighbour = neighbour_of(run->view->socket, run->entry_kind.bridge_ifindex,
				 run->packet.destination);
	memset(mac, 2, LINK_MAC_SIZE);
	if (neighbour.exists)
		memcpy(mac, neighbour.mac, LINK_MAC_SIZE);
}

/* The kernel takes a test frame's ethertype from where Ethernet has it: at an interface without a
 * link header the same program for Ethernet is run. */
static enum program_number runnable(enum program_number program)
{
	if (program == PROGRAM_FROM_UPLINK_RAW)
		return PROGRAM_FROM_UPLINK;
	return program == PROGRAM_TO_UPLINK_RAW ? PROGRAM_TO_UPLINK : program;
}

/* Also moves the packet on: it is what the program made of it. */
static int run_program(struct dry_run *run, struct replica_run *where,
		       const uint8_t mac[LINK_MAC_SIZE], enum trace_outcome *outcome,
		       struct cni_error *err)
{
	const struct trace_event *event = &where->event;
	struct trace_words words;
	uint8_t frame[FRAME_MAX];

	where->frame = frame;
	where->length = frame_make(frame, &run->packet, mac);
	*outcome = OUTCOME_PASSED;
	if (replica_run(&run->replica, where, err))
		return -1;
	if (!where->happened) {
		story_say(&run->story, program_name(where->program), NULL,
			  "an address that is never translated: left alone");
		return 0;
	}
	trace_words_of(run->view, event, &words);
	story_event(&run->story, event, &words);
	*outcome = words.outcome;
	memcpy(run->packet.source, event->after.source, CNI_ADDRESS_SIZE);
	memcpy(run->packet.destination, event->after.destination, CNI_ADDRESS_SIZE);
	if (event->after.source_port)
		run->packet.source_port = event->after.source_port;
	run->packet.destination_port = event->after.destination_port;
	return 0;
}

static const char *neighbour_word(const struct neighbour *neighbour)
{
	if (!neighbour->exists)
		return "not known yet";
	if (neighbour->state & NUD_FAILED)
		return "failed: nobody answers";
	if (neighbour->state & NUD_INCOMPLETE)
		return "being asked for";
	if (neighbour->state & NUD_PERMANENT)
		return "permanent";
	return neighbour->state & NUD_REACHABLE ? "reachable" : "known";
}

/* False: the packet goes nowhere from here. */
static bool tell_route(struct dry_run *run, struct route *route)
{
	char name[IF_NAMESIZE], address[CNI_ADDRESS_TEXT_SIZE];
	const uint8_t *destination = run->packet.destination;
	struct neighbour neighbour;

	*route = route_to(run->view->socket, destination);
	cni_address_format(destination, address);
	if (route->is_local) {
		story_say(&run->story, "route", json_pack("{s:b}", "local", 1),
			  "%s is this host's: a process here gets it, if one listens", address);
		return false;
	}
	if (!route->exists) {
		story_say(&run->story, "route", json_pack("{s:b, s:n}", "local", 0, "interface"),
			  "there is none to %s: the kernel refuses the packet", address);
		return false;
	}
	view_interface(run->view, route->ifindex, name);
	neighbour = neighbour_of(run->view->socket, route->ifindex, destination);
	story_say(&run->story, "route",
		  json_pack("{s:b, s:s, s:s}", "local", 0, "interface", name, "neighbour",
			    neighbour_word(&neighbour)),
		  "dev %s, neighbour %s %s", name, address, neighbour_word(&neighbour));
	return true;
}

static void tell_delivery(struct dry_run *run, const char *interface)
{
	struct endpoint endpoint;
	struct slot slot;
	char veth[IF_NAMESIZE] = "";
	const struct container_info *container = NULL;
	const char *name;

	if (find_endpoint(run, run->packet.destination, &endpoint, &slot)) {
		container = view_container(run->view, endpoint.owner);
		view_interface(run->view, slot.ifindex, veth);
	}
	name = *veth ? veth : interface;
	if (container)
		story_say(&run->story, "delivery",
			  json_pack("{s:s, s:s}", "interface", name, "container", container->text),
			  "would be delivered to %s, %s", name, container->text);
	else
		story_say(&run->story, "delivery",
			  json_pack("{s:s, s:n}", "interface", name, "container"),
			  "would leave by %s", name);
}

static void tell_forwarding(struct dry_run *run, uint16_t port)
{
	if (port)
		story_say(&run->story, "forward", NULL,
			  "not simulated: bpf-portmap doctor %u tells whether a rule drops it",
			  port);
	else
		story_say(&run->story, "forward", NULL,
			  "not simulated: bpf-portmap doctor tells whether a rule drops it");
}

/* What comes behind the program at the entry. */
static int follow(struct dry_run *run, uint16_t mapped_port, struct cni_error *err)
{
	static const uint8_t any_mac[LINK_MAC_SIZE] = {2};
	struct replica_run where = {.in_ifindex = run->in_ifindex,
				    .verified = interface_is_containers(&run->entry_kind)};
	char name[IF_NAMESIZE];
	enum trace_outcome outcome;
	struct interface kind;
	struct route route;

	if (!tell_route(run, &route))
		return 0;
	tell_forwarding(run, mapped_port);
	view_interface(run->view, route.ifindex, name);
	where.ifindex = route.ifindex;
	where.program = interface_read(&run->view->datapath.objects, route.ifindex, &kind)
				? program_at(&kind, HOOK_EGRESS)
				: PROGRAM_COUNT;
	if (where.program == PROGRAM_COUNT) {
		story_say(&run->story, name, NULL, "no program is at %s: it leaves as it is", name);
		return 0;
	}
	where.program = runnable(where.program);
	if (run_program(run, &where, any_mac, &outcome, err))
		return -1;
	if (outcome != OUTCOME_DROPPED)
		tell_delivery(run, name);
	return 0;
}

static int begin(struct dry_run *run, struct cni_error *err)
{
	uint16_t port = run->packet.destination_port;
	struct replica_run where = {.ifindex = run->entry.ifindex};
	uint8_t mac[LINK_MAC_SIZE];
	enum trace_outcome outcome;

	where.program = runnable(program_at(&run->entry_kind, HOOK_INGRESS));
	run->in_ifindex = run->entry_kind.role == ROLE_PORT ? run->entry_kind.bridge_ifindex
							    : run->entry.ifindex;
	memcpy(mac, run->entry.mac, LINK_MAC_SIZE);
	if (where.program == PROGRAM_FROM_CONTAINER) {
		where.in_ifindex = run->entry.ifindex;
		containers_destination(run, mac);
	}
	if (run_program(run, &where, mac, &outcome, err))
		return -1;
	switch (outcome) {
	case OUTCOME_DROPPED:
		return 0;
	case OUTCOME_FAST_PATH:
		tell_delivery(run, run->entry.name);
		return 0;
	default:
		if (!run->is_switched || outcome == OUTCOME_LIFTED)
			return follow(run, outcome == OUTCOME_TRANSLATED ? port : 0, err);
		tell_delivery(run, run->entry.name);
		return 0;
	}
}

static int tell(struct dry_run *run, struct cni_error *err)
{
	int map = run->view->datapath.objects.maps[MAP_CONNECTIONS], result;

	if (choose_entry(run, err) ||
	    replica_make(&run->replica, &run->view->datapath.objects, err))
		return -1;
	/* The words about a connection are about the one that the replica has begun. */
	run->view->datapath.objects.maps[MAP_CONNECTIONS] =
		run->replica.objects.maps[MAP_CONNECTIONS];
	result = begin(run, err);
	run->view->datapath.objects.maps[MAP_CONNECTIONS] = map;
	return result ? -1 : story_end(&run->story, run->replica.is_same, run->replica.incomplete);
}

int trace_dry_run(const struct options *options, const struct trace_packet *packet,
		  struct view *view, struct cni_error *err)
{
	struct dry_run run = {
		.options = options,
		.view = view,
		.packet = *packet,
		.story = {.json = options->json,
			  .color = options->color,
			  .view = view,
			  .items = {.file = stdout},
			  .err = err},
	};
	int result;

	replica_clear(&run.replica);
	result = tell(&run, err);
	replica_release(&run.replica);
	return result;
}
