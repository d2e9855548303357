/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_records.c - checks of the records of containers, and of the tables. */
#include <string.h>
#include <time.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"

/* An ADD or DEL that takes longer was killed. */
#define UNFINISHED_SECONDS 60
#define PLACES_LOOKED_AT 256

static void visit(struct doctor *doctor,
		  void (*look)(struct doctor *doctor, const struct attachment_entry *entry,
			       const char *name))
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error err = {0};
	size_t count = 0;

	if (attachment_list(&doctor->host.datapath, &entries, &count, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct attachment_name name;

		look(doctor, &entries[i],
		     attachment_name_split(entries[i].key.name, &name) ? name.container_id
								       : "a damaged record");
	}
}

static void look_for_veth(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	if (!attachment_has_veth(&doctor->host.datapath.objects, &entry->attachment))
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "container %s has gone without DEL: its ports are still recorded",
			     name);
}

void check_abandoned(struct doctor *doctor)
{
	visit(doctor, look_for_veth);
}

static void look_at_state(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	uint64_t now = (uint64_t)time(NULL);

	if (entry->attachment.state == ATTACHMENT_READY ||
	    now < entry->attachment.since + UNFINISHED_SECONDS)
		return;
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# remove the container and add it again: cnirun del CONFLIST %s",
				remedy_word(name).text),
		     "ADD or DEL of container %s was cut short", name);
}

void check_unfinished(struct doctor *doctor)
{
	visit(doctor, look_at_state);
}

static void check_source_list(struct doctor *doctor, const struct container_info *container,
			      const __u8 (*addresses)[CNI_ADDRESS_SIZE], __u8 count)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count && i < POLICY_ADDRESSES; i++) {
		if (local_address_exists(doctor->host.socket, addresses[i]))
			continue;
		cni_address_format(addresses[i], text);
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("ip address add %s/%d dev lo", text,
					cni_address_is_ipv4(addresses[i]) ? 32 : 128),
			     "%s: the host does not have %s of \"snatAddresses\": what leaves with"
			     " it gets no answer",
			     container->text, text);
	}
}

void check_source_addresses(struct doctor *doctor)
{
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_POLICIES};
	cleanup_error struct cni_error err = {0};

	while (map_next(&walk, &err)) {
		const struct policy *policy = walk.value;
		const struct container_info *container =
			view_container(&doctor->view, policy->owner);

		if (!container)
			continue;
		check_source_list(doctor, container, policy->sources4, policy->source4_count);
		check_source_list(doctor, container, policy->sources6, policy->source6_count);
	}
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
}

/* Of a few places, spread over all: a connection that has ended keeps its place until another one
 * needs it. Returns how many of PLACES_LOOKED_AT have one that lives. */
static uint32_t half_open_taken(struct doctor *doctor, uint32_t places)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	struct connection connection;
	struct half_open place;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < PLACES_LOOKED_AT; i++) {
		uint32_t number = 1 + (uint32_t)((uint64_t)places * i / PLACES_LOOKED_AT);

		taken += map_read(objects, MAP_HALF_OPEN, &number, &place) && place.id > 1 &&
			 connection_read(objects, &place.key, &connection) &&
			 !(connection.state & STATE_ASSURED) &&
			 view_is_alive(&doctor->view, &place.key, &connection);
	}
	return taken;
}

static void check_half_open(struct doctor *doctor)
{
	uint32_t places = map_capacity(&doctor->host.datapath.objects, MAP_HALF_OPEN) - 1;
	uint32_t taken = places < PLACES_LOOKED_AT ? 0 : half_open_taken(doctor, places);

	if (taken * 5 > PLACES_LOOKED_AT * 4)
		doctor_found(
			doctor, VERDICT_WARN, NULL,
			"%u %% of the %u places for connections that nobody has answered yet are"
			" taken, as in a flood: the oldest give way; `bpf-portmap flows --top 10`"
			" shows whose",
			taken * 100 / PLACES_LOOKED_AT, places);
}

void check_tables(struct doctor *doctor)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	uint32_t most = map_capacity(objects, MAP_ASSURED) - 1; /* place 0 is none */
	struct usage usage;

	check_half_open(doctor);
	if (!usage_read(objects, &usage) || !most)
		return;
	if ((uint64_t)usage.assured * 5 > (uint64_t)most * 4)
		doctor_found(
			doctor, VERDICT_WARN,
			cni_format("# \"flowEntries\": %llu for the first container after a"
				   " restart",
				   2ULL * most),
			"the table of connections has %u of %u; `bpf-portmap flows --top 10` shows"
			" whose",
			usage.assured, most);
}
