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

void check_tables(struct doctor *doctor)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	uint32_t most = map_capacity(objects, MAP_ASSURED) - 1; /* place 0 is none */
	struct usage usage;

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
