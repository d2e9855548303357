/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_masquerade.c - checks of what containers leave the host with, and of the tables. */
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"

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

static enum walk take_policy(const void *key, const void *value, void *context,
			     struct cni_error *err)
{
	struct doctor *doctor = context;
	const struct policy *policy = value;
	const struct container_info *container = view_container(&doctor->view, policy->owner);

	if (!container)
		return WALK_ON;
	check_source_list(doctor, container, policy->sources4, policy->source4_count);
	check_source_list(doctor, container, policy->sources6, policy->source6_count);
	return WALK_ON;
}

void check_source_addresses(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};

	if (map_walk(&doctor->host.datapath.objects, MAP_POLICIES, take_policy, doctor, &err))
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
			cni_format("bpf-portmap flows --top 10\n# or \"flowEntries\": %llu, for"
				   " the first container after a restart",
				   2ULL * most),
			"the table of connections has %u of %u", usage.assured, most);
}
