/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* contest.c - who gets what comes to a port that several claim. */
#include "operator/view/contest.h"

#include <string.h>

#include "conf/addresses.h"
#include "operator/view/claimants.h"

/* Smaller is first; those of the same rank share what comes. */
enum rank {
	RANK_MAPPING_EXACT,
	RANK_MAPPING_ANY,
	RANK_RULE, /* and one more for each rule before it */
	RANK_SOCKET_EXACT = 1 << 20,
	RANK_SOCKET_ANY,
	RANK_NONE,
};

static bool mapping_claims(const struct contestant *contestant, const struct portmap_key *asked,
			   const struct contest_place *place, enum origin origin)
{
	const struct portmap_key *key = contestant->key;
	const struct policy *policy = contestant->policy;

	if (!contestant->alive || !place->is_mapped || key->protocol != asked->protocol ||
	    key->host_port != asked->host_port ||
	    (origin == ORIGIN_HOST && !contestant->serves_host) ||
	    (policy && conf_ranges_hold(policy->excluded, policy->excluded_count, place->address)))
		return false;
	if (cni_address_is_any(key->host_address))
		return cni_address_is_ipv4(key->host_address) ==
		       cni_address_is_ipv4(place->address);
	return !memcmp(key->host_address, place->address, CNI_ADDRESS_SIZE);
}

static unsigned int rank_of(const struct contestant *contestant, const struct portmap_key *asked,
			    const struct contest_place *place, enum origin origin)
{
	switch (contestant->kind) {
	case CONTESTANT_MAPPING:
		if (!mapping_claims(contestant, asked, place, origin))
			return RANK_NONE;
		return cni_address_is_any(contestant->key->host_address) ? RANK_MAPPING_ANY
									 : RANK_MAPPING_EXACT;
	case CONTESTANT_RULE:
		return origin == ORIGIN_OUTSIDE &&
				       nat_rule_may_match(contestant->rule, asked->protocol,
							  place->address, asked->host_port) &&
				       nat_rule_holds_address(contestant->rule, place->address)
			       ? RANK_RULE
			       : RANK_NONE;
	default:
		if (!claimant_socket_has(contestant->socket, asked))
			return RANK_NONE;
		return cni_address_is_any(contestant->socket->address) ? RANK_SOCKET_ANY
								       : RANK_SOCKET_EXACT;
	}
}

static void judge_origin(struct contestant *contestants, size_t count,
			 const struct contest_place *place, const struct portmap_key *asked,
			 enum origin origin)
{
	const struct contestant *winner = NULL;
	unsigned int best = RANK_NONE;

	for (size_t i = 0; i < count; i++) {
		unsigned int rank = rank_of(&contestants[i], asked, place, origin);

		if (rank < best) {
			best = rank;
			winner = &contestants[i];
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct contest_score *score = &contestants[i].scores[origin];
		unsigned int rank = rank_of(&contestants[i], asked, place, origin);

		if (rank == RANK_NONE)
			continue;
		/* Of several rules the first one translates, and no other is asked. */
		if (rank == best && (rank != RANK_RULE || &contestants[i] == winner)) {
			score->won++;
		} else if (score->claimed == score->won) {
			memcpy(score->lost_at, place->address, CNI_ADDRESS_SIZE);
		}
		score->claimed++;
	}
}

void contest_judge(struct contestant *contestants, size_t count, const struct contest_place *place,
		   enum protocol protocol, uint16_t port)
{
	struct portmap_key asked = {.protocol = protocol, .host_port = port};

	memcpy(asked.host_address, place->address, CNI_ADDRESS_SIZE);
	/* Nothing comes to a loopback address from outside. */
	if (!cni_address_is_loopback(place->address))
		judge_origin(contestants, count, place, &asked, ORIGIN_OUTSIDE);
	judge_origin(contestants, count, place, &asked, ORIGIN_HOST);
}
