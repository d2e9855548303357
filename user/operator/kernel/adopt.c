/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* adopt.c - connections that conntrack translates when their ports become ours. */
#include "operator/kernel/adopt.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"

/* The program reads it behind an Ethernet header. */
int adopt_connection(int program, const struct adoption *adoption, enum adopted *adopted,
		     struct cni_error *err)
{
	uint8_t frame[ADOPTION_OFFSET + sizeof(*adoption)] = {0};
	struct bpf_test_run_opts options = {
		.sz = sizeof(options), .data_in = frame, .data_size_in = sizeof(frame)};

	memcpy(frame + ADOPTION_OFFSET, adoption, sizeof(*adoption));
	if (bpf_prog_test_run_opts(program, &options))
		return bpf_error_set(
			err, errno, "the kernel does not run the program that records connections");
	*adopted = (enum adopted)options.retval;
	return 0;
}

bool adopt_is_recorded(const struct objects *objects, const struct connection_key *key)
{
	struct connection connection;

	return connection_read(objects, key, &connection) && connection.kind == FLOW_FOREIGN;
}

/* The broadcast address, which no client has, so that no conflist has it in "sourceRanges". */
static const struct address_range nobody = {
	.address = {[10] = 0xff, [11] = 0xff, [12] = 0xff, [13] = 0xff, [14] = 0xff, [15] = 0xff},
	.prefix_length = 32,
};

void adopt_close_policy(struct policy *policy)
{
	memset(policy->source_ranges, 0, sizeof(policy->source_ranges));
	policy->source_ranges[0] = nobody;
	policy->source_range_count = 1;
}

bool adopt_is_closed(const struct objects *objects, struct owner owner)
{
	struct policy policy;

	return policy_read(objects, owner, &policy) && policy.source_range_count == 1 &&
	       !memcmp(&policy.source_ranges[0], &nobody, sizeof(nobody));
}

int adopt_open_policy(const struct objects *objects, struct owner owner,
		      const struct policy *policy, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct slot slot;

	if (lock < 0)
		return -1;
	if (!owner_read(objects, owner, &slot))
		return 0; /* its DEL has come */
	/* Programs read the entry only where the slot says that there is one. */
	if (policy_says_nothing(policy) && slot.has_policy) {
		slot.has_policy = 0;
		if (slot_write(objects, owner.slot, &slot, err))
			return -1;
	}
	return policy_write(objects, owner, policy, err);
}
