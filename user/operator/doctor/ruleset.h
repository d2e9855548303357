/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ruleset.h - what the rules of a firewall do with one packet that is forwarded. Without any I/O.
 *
 * Many conditions depend on what nobody knows beforehand (marks, limits, sets that change): they
 * may match, or not. So the answer is one of three.
 */
#ifndef OPERATOR_DOCTOR_RULESET_H
#define OPERATOR_DOCTOR_RULESET_H

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"

/* As rules in FORWARD see it: translated already. */
struct forwarded {
	bool ipv4;
	bool source_known, destination_known;
	bool is_reply;
	const char *state; /* of conntrack; NULL: "established" of a reply, else "new" */
	const char *in, *out;
	const char *container_side; /* one of them; rules do not see it */
	uint8_t source[CNI_ADDRESS_SIZE], destination[CNI_ADDRESS_SIZE];
	enum protocol protocol;
	uint16_t source_port, destination_port; /* 0: not known */
};

enum fate {
	FATE_ACCEPTED,
	FATE_MAY_BE_DROPPED,
	FATE_DROPPED,
};

#define RULE_PLACE_SIZE 256

struct judgement {
	enum fate fate;
	/* Of the chain that drops it: "" where none does. */
	const char *family, *table, *chain;
	bool by_policy; /* else by a rule */
	int handle;     /* of the rule */
};

/* What answers it. */
struct forwarded forwarded_reply(const struct forwarded *packet);

/* `ruleset`: the array that nft prints. The texts live as long as it does. */
struct judgement ruleset_judge(const json_t *ruleset, const struct forwarded *packet);

/* Whether there is a chain of this name. */
bool ruleset_has_chain(const json_t *ruleset, const char *table, const char *chain);

/* A rule that looks at what our translation does not leave in conntrack: ct status dnat, or the
 * original destination port. NULL: none. `port`: of the host. */
const json_t *ruleset_find_conntrack_rule(const json_t *ruleset, uint16_t port);

#endif
