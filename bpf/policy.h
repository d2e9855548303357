/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy.h - an attachment's options about its connections. */
#pragma once

#include "address.h"
#include "owner.h"

/* A list of ranges of struct policy, in a type that can be passed to a global function. */
struct address_ranges {
	struct address_range entries[POLICY_RANGES];
};

/* Returns NULL where it has only defaults. */
INLINE const struct policy *policy_of(const struct owner *owner)
{
	__u32 number = owner->slot;
	const struct slot *slot = bpf_map_lookup_elem(&slots, &number);
	const struct policy *policy;

	if (!slot || !slot->has_policy)
		return NULL;
	policy = bpf_map_lookup_elem(&policies, &number);
	return policy && owner_equal(&policy->owner, owner) ? policy : NULL;
}

GLOBAL_FUNCTION bool policy_range_holds(const struct address_range *range,
					const struct address *address)
{
	return range && address &&
	       address_is_ipv4(range->address) == address_is_ipv4(address->bytes) &&
	       address_same_subnet(range->address, address->bytes, range->prefix_length);
}

/* Returns false for an exception, or where no range holds the address. */
GLOBAL_FUNCTION bool policy_find_range(const struct address_ranges *ranges, __u32 count,
				       const struct address *address)
{
	const struct address_range *range;

	if (!ranges || !address)
		return false;
	for (__u32 i = 0; i < POLICY_RANGES && i < count; i++) {
		range = &ranges->entries[i];
		if (policy_range_holds(range, address))
			return !range->exception;
	}
	return false;
}

INLINE bool policy_means(const struct address_range *ranges, __u32 count, const __u8 *address)
{
	return policy_find_range((const struct address_ranges *)ranges, count,
				 (const struct address *)address);
}

/* uplinks: returns whether the owner's network has others than this interface. One without the
 * option costs no look-up; what is not classified yet is nobody's. */
GLOBAL_FUNCTION bool network_refuses(const struct owner *owner, __u32 ifindex)
{
	const struct interface *interface;
	const struct slot *slot;

	if (!owner)
		return false;
	slot = owner_slot(owner);
	if (!slot || !slot->network)
		return false;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	return !interface || interface->refusing >> (slot->network % NETWORK_NUMBERS) & 1;
}

/* nonMasqueradeCIDRs */
INLINE bool policy_leaves_source(const struct owner *owner, const __u8 *destination)
{
	const struct policy *policy = policy_of(owner);

	return policy &&
	       policy_means(policy->unmasqueraded, policy->unmasqueraded_count, destination);
}

/* excludeCIDRs */
INLINE bool policy_excludes(const struct owner *owner, const __u8 *host_address)
{
	const struct policy *policy = policy_of(owner);

	return policy && policy_means(policy->excluded, policy->excluded_count, host_address);
}

/* sourceRanges */
INLINE bool policy_admits(const struct owner *owner, const __u8 *source)
{
	const struct policy *policy = policy_of(owner);

	return !policy || !policy->source_range_count ||
	       policy_means(policy->source_ranges, policy->source_range_count, source);
}

/* snat: false */
INLINE bool policy_keeps_hairpin_source(const struct owner *owner)
{
	const struct policy *policy = policy_of(owner);

	return policy && policy->keep_hairpin_source;
}

/* Returns whether the container would answer past us: it has another attachment in the client's
 * network. */
GLOBAL_FUNCTION bool container_is_near(const struct owner *owner, const struct address *client)
{
	const struct container_homes *container;
	const struct slot *slot;
	const struct home *home;
	__u64 key;

	if (!owner || !client || !SINGLE(meta)->several_networks)
		return false;
	slot = owner_slot(owner);
	if (!slot)
		return false;
	key = slot->container;
	container = bpf_map_lookup_elem(&containers, &key);
	for (int i = 0; container && i < MAX_HOMES; i++) {
		home = &container->homes[i];
		if (home->slot && home->slot != owner->slot &&
		    address_same_subnet(home->address, client->bytes, home->prefix_length))
			return true;
	}
	return false;
}

/* Returns whether this client of the owner's mapped ports is masqueraded: by masqAll, or because it
 * is near. As in portmap, snat: false disables it. */
INLINE bool policy_masquerades_client(const struct owner *owner, const __u8 *client)
{
	const struct policy *policy = policy_of(owner);

	if (policy && policy->keep_hairpin_source)
		return false;
	return (policy && policy->masquerade_all) ||
	       container_is_near(owner, (const struct address *)client);
}

/* snatAddresses: a container always gets the same one. False: there is none of its family. */
INLINE bool policy_source(const struct owner *owner, const __u8 *container, struct address *chosen)
{
	const struct policy *policy = policy_of(owner);
	bool ipv4 = address_is_ipv4(container);
	__u64 hash, nth, count;

	if (!policy)
		return false;
	count = ipv4 ? policy->source4_count : policy->source6_count;
	if (!count)
		return false;
	hash = address_halves(container)[0] ^ address_halves(container)[1];
	nth = (hash * 0x9e3779b97f4a7c15ULL >> 32) % count;
	barrier_var(nth); /* or the verifier learns the bounds of one half of the register */
	if (nth >= POLICY_ADDRESSES)
		return false;
	address_copy(chosen->bytes, ipv4 ? policy->sources4[nth] : policy->sources6[nth]);
	return true;
}
