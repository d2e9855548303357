/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policies.c - what an attachment's configuration says about its flows. */
#include "datapath/records/policies.h"

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

	if (!policy_read(objects, owner, &found))
		memset(&found, 0, sizeof(found));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (memcmp((const char *)&found + fields[i].offset,
			   (const char *)wanted + fields[i].offset, fields[i].size))
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "\"%s\" is not what the map policies says of this "
					     "container: the container must be added again",
					     fields[i].option);
	return 0;
}
