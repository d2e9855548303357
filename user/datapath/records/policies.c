/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policies.c - what an attachment's configuration says about its flows. */
#include "datapath/records/policies.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "datapath/load/maps.h"

bool policy_says_nothing(const struct policy *policy)
{
	static const struct policy defaults;

	return !memcmp(policy, &defaults, sizeof(defaults));
}

int policy_write(const struct objects *objects, struct owner owner, const struct policy *wanted,
		 struct cni_error *err)
{
	struct policy policy = *wanted;

	/* There may be one of the slot's previous owner. */
	if (policy_says_nothing(wanted))
		return map_delete(objects, MAP_POLICIES, &owner.slot, err);
	policy.owner = owner;
	return map_write(objects, MAP_POLICIES, &owner.slot, &policy, err);
}

/* Zero where the owner has none. */
static int read_policy(const struct objects *objects, struct owner owner, struct policy *policy,
		       struct cni_error *err)
{
	bool found = !bpf_map_lookup_elem(objects->maps[MAP_POLICIES], &owner.slot, policy);

	if (!found && errno != ENOENT)
		return map_refuse_read(MAP_POLICIES, err);
	if (!found || !owner_is(policy->owner, owner))
		memset(policy, 0, sizeof(*policy));
	return 0;
}

int policy_delete(const struct objects *objects, struct owner owner, struct cni_error *err)
{
	struct policy policy;

	if (read_policy(objects, owner, &policy, err))
		return -1;
	return policy_says_nothing(&policy) ? 0
					    : map_delete(objects, MAP_POLICIES, &owner.slot, err);
}

#define FIELD(option, name) \
	{ \
		option, offsetof(struct policy, name), sizeof(((struct policy *)NULL)->name) \
	}

int policy_verify(const struct objects *objects, struct owner owner, const struct policy *wanted,
		  struct cni_error *err)
{
	static const struct {
		const char *option;
		size_t offset, size;
	} fields[] = {
		FIELD("maxFlows", max_flows),
		FIELD("masqAll", masquerade_all),
		FIELD("snat", keep_hairpin_source),
		FIELD("masqPorts", masquerade_ports),
		FIELD("snatAddresses", source4_count),
		FIELD("snatAddresses", sources4),
		FIELD("snatAddresses", source6_count),
		FIELD("snatAddresses", sources6),
		FIELD("nonMasqueradeCIDRs", unmasqueraded_count),
		FIELD("nonMasqueradeCIDRs", unmasqueraded),
		FIELD("sourceRanges", source_range_count),
		FIELD("sourceRanges", source_ranges),
		FIELD("excludeCIDRs", excluded_count),
		FIELD("excludeCIDRs", excluded),
	};
	struct policy found;
	struct slot slot;

	if (read_policy(objects, owner, &found, err))
		return -1;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (memcmp((const char *)&found + fields[i].offset,
			   (const char *)wanted + fields[i].offset, fields[i].size))
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "\"%s\" is not what the map policies says of this "
					     "container: it must be added again",
					     fields[i].option);
	if (!slot_read(objects, owner.slot, &slot) ||
	    slot.has_policy != !policy_says_nothing(wanted))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the maps slots and policies contradict each other about this"
				     " container: it must be added again");
	return 0;
}
