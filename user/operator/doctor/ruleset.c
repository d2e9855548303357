/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ruleset.c - what the rules of a firewall do with one packet that is forwarded. */
#include "operator/doctor/ruleset.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16   /* as in the kernel */
#define MAX_VISITS 256 /* chains, for one packet */

enum match {
	MATCH_NO,
	MATCH_MAYBE,
	MATCH_YES,
};

/* What a packet has where a rule looks. */
struct operand {
	enum { OPERAND_UNKNOWN, OPERAND_TEXT, OPERAND_NUMBER, OPERAND_ADDRESS, OPERAND_NONE } kind;
	const char *text;
	json_int_t number;
	const uint8_t *address;
};

struct walk {
	const json_t *ruleset;
	const struct forwarded *packet;
	const char *family, *table;
	struct judgement judgement;
	bool may_accept; /* an earlier rule may have accepted it */
	int visits;
};

/* How a chain ends for the packet. */
enum outcome {
	OUTCOME_CONTINUE, /* the end of the chain, or return */
	OUTCOME_ACCEPT,
	OUTCOME_DROP,
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const char *protocol_text(enum protocol protocol)
{
	return protocol == PROTOCOL_TCP ? "tcp" : protocol == PROTOCOL_UDP ? "udp" : "sctp";
}

static struct operand operand_text(const char *text)
{
	return (struct operand){.kind = text ? OPERAND_TEXT : OPERAND_UNKNOWN, .text = text};
}

static struct operand operand_port(uint16_t port)
{
	return (struct operand){.kind = port ? OPERAND_NUMBER : OPERAND_UNKNOWN, .number = port};
}

static struct operand operand_address(const struct forwarded *packet, bool source)
{
	if (source ? !packet->source_known : !packet->destination_known)
		return (struct operand){.kind = OPERAND_UNKNOWN};
	return (struct operand){.kind = OPERAND_ADDRESS,
				.address = source ? packet->source : packet->destination};
}

static struct operand read_meta(const struct forwarded *packet, const char *key)
{
	if (!strcmp(key, "iifname") || !strcmp(key, "iif"))
		return operand_text(packet->in);
	if (!strcmp(key, "oifname") || !strcmp(key, "oif"))
		return operand_text(packet->out);
	if (!strcmp(key, "l4proto"))
		return operand_text(protocol_text(packet->protocol));
	if (!strcmp(key, "nfproto"))
		return operand_text(packet->ipv4 ? "ipv4" : "ipv6");
	if (!strcmp(key, "protocol"))
		return operand_text(packet->ipv4 ? "ip" : "ip6");
	return (struct operand){.kind = OPERAND_UNKNOWN};
}

static struct operand read_payload(const struct forwarded *packet, const json_t *payload)
{
	const char *protocol = text_of(payload, "protocol"), *field = text_of(payload, "field");

	if (!strcmp(protocol, "ip") || !strcmp(protocol, "ip6")) {
		if (packet->ipv4 != !strcmp(protocol, "ip"))
			return (struct operand){.kind = OPERAND_NONE};
		if (!strcmp(field, "protocol") || !strcmp(field, "nexthdr"))
			return operand_text(protocol_text(packet->protocol));
		if (!strcmp(field, "saddr") || !strcmp(field, "daddr"))
			return operand_address(packet, *field == 's');
		return (struct operand){.kind = OPERAND_UNKNOWN};
	}
	if (strncmp(protocol, "icmp", 4) == 0)
		return (struct operand){.kind = OPERAND_NONE};
	if (strcmp(protocol, "th") != 0 && strcmp(protocol, protocol_text(packet->protocol)) != 0)
		return (struct operand){.kind = OPERAND_NONE};
	if (!strcmp(field, "sport"))
		return operand_port(packet->source_port);
	if (!strcmp(field, "dport"))
		return operand_port(packet->destination_port);
	return (struct operand){.kind = OPERAND_UNKNOWN};
}

/* Conntrack sees our packets without NAT: what it calls original is what rules see, too. */
static struct operand read_conntrack(const struct forwarded *packet, const json_t *conntrack)
{
	const char *key = text_of(conntrack, "key");
	bool is_original = strcmp(text_of(conntrack, "dir"), "reply") != 0;

	if (!strcmp(key, "state") && packet->state)
		return operand_text(packet->state);
	if (!strcmp(key, "state"))
		return operand_text(packet->is_reply ? "established" : "new");
	if (!strcmp(key, "status"))
		return operand_text(packet->is_reply ? "seen-reply" : "");
	if (!strcmp(key, "direction"))
		return operand_text(packet->is_reply ? "reply" : "original");
	if (!strcmp(key, "proto-dst") && is_original)
		return operand_port(packet->is_reply ? packet->source_port
						     : packet->destination_port);
	return (struct operand){.kind = OPERAND_UNKNOWN};
}

static struct operand read_left(const struct forwarded *packet, const json_t *left)
{
	const json_t *part;

	if ((part = json_object_get(left, "meta")))
		return read_meta(packet, text_of(part, "key"));
	if ((part = json_object_get(left, "payload")))
		return read_payload(packet, part);
	if ((part = json_object_get(left, "ct")))
		return read_conntrack(packet, part);
	return (struct operand){.kind = OPERAND_UNKNOWN};
}

static enum match compare_prefix(const struct operand *operand, const json_t *prefix)
{
	json_int_t length = json_integer_value(json_object_get(prefix, "len"));
	uint8_t address[CNI_ADDRESS_SIZE];

	if (operand->kind != OPERAND_ADDRESS || cni_address_parse(text_of(prefix, "addr"), address))
		return MATCH_MAYBE;
	/* "::ffff:0.0.0.0/96" is one of IPv6, though it has addresses of IPv4. */
	if (!strchr(text_of(prefix, "addr"), ':'))
		length += 96;
	if (length < 0 || length > 128)
		return MATCH_MAYBE;
	return cni_address_bits_equal(address, operand->address, (unsigned int)length) ? MATCH_YES
										       : MATCH_NO;
}

static enum match compare_text(const struct operand *operand, const char *text)
{
	size_t length = strlen(text);
	uint8_t address[CNI_ADDRESS_SIZE];

	switch (operand->kind) {
	case OPERAND_TEXT:
		if (length && text[length - 1] == '*')
			return strncmp(operand->text, text, length - 1) ? MATCH_NO : MATCH_YES;
		return strcmp(operand->text, text) ? MATCH_NO : MATCH_YES;
	case OPERAND_ADDRESS:
		if (cni_address_parse(text, address))
			return MATCH_MAYBE;
		return memcmp(address, operand->address, sizeof(address)) ? MATCH_NO : MATCH_YES;
	default:
		return MATCH_MAYBE; /* a service's name */
	}
}

static enum match compare_range(const struct operand *operand, const json_t *range)
{
	const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);
	uint8_t low[CNI_ADDRESS_SIZE], high[CNI_ADDRESS_SIZE];

	if (operand->kind == OPERAND_NUMBER && json_is_integer(first) && json_is_integer(last))
		return operand->number >= json_integer_value(first) &&
				       operand->number <= json_integer_value(last)
			       ? MATCH_YES
			       : MATCH_NO;
	if (operand->kind != OPERAND_ADDRESS || !json_is_string(first) || !json_is_string(last) ||
	    cni_address_parse(json_string_value(first), low) ||
	    cni_address_parse(json_string_value(last), high))
		return MATCH_MAYBE;
	return memcmp(operand->address, low, sizeof(low)) >= 0 &&
			       memcmp(operand->address, high, sizeof(high)) <= 0
		       ? MATCH_YES
		       : MATCH_NO;
}

static enum match compare_one(const struct operand *operand, const json_t *right)
{
	const json_t *part;

	if (json_is_integer(right))
		return operand->kind != OPERAND_NUMBER                ? MATCH_MAYBE
		       : operand->number == json_integer_value(right) ? MATCH_YES
								      : MATCH_NO;
	if (json_is_string(right))
		return compare_text(operand, json_string_value(right));
	if ((part = json_object_get(right, "prefix")))
		return compare_prefix(operand, part);
	if ((part = json_object_get(right, "range")))
		return compare_range(operand, part);
	/* An element with a timeout, a counter or a comment. */
	if ((part = json_object_get(right, "elem")))
		return compare_one(operand, json_object_get(part, "val"));
	return MATCH_MAYBE;
}

static enum match compare_any(const struct operand *operand, const json_t *list)
{
	enum match best = MATCH_NO;
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		enum match match = compare_one(operand, one);

		best = match > best ? match : best;
	}
	return best;
}

static enum match compare_set(const struct walk *walk, const struct operand *operand,
			      const char *name)
{
	const json_t *entry, *set;
	size_t i;

	json_array_foreach (walk->ruleset, i, entry) {
		set = json_object_get(entry, "set");
		if (set && !strcmp(text_of(set, "name"), name) &&
		    !strcmp(text_of(set, "table"), walk->table) &&
		    !strcmp(text_of(set, "family"), walk->family))
			return compare_any(operand, json_object_get(set, "elem"));
	}
	return MATCH_MAYBE;
}

static enum match compare(const struct walk *walk, const struct operand *operand,
			  const json_t *right)
{
	const json_t *set = json_object_get(right, "set");
	const char *text = json_string_value(right);

	if (operand->kind == OPERAND_NONE)
		return MATCH_NO;
	if (operand->kind == OPERAND_UNKNOWN)
		return MATCH_MAYBE;
	if (text && *text == '@')
		return compare_set(walk, operand, text + 1);
	if (json_is_array(right))
		return compare_any(operand, right);
	return set ? compare_any(operand, set) : compare_one(operand, right);
}

static enum match match_condition(const struct walk *walk, const json_t *condition)
{
	struct operand operand = read_left(walk->packet, json_object_get(condition, "left"));
	const char *op = text_of(condition, "op");
	enum match match = compare(walk, &operand, json_object_get(condition, "right"));

	if (!strcmp(op, "==") || !strcmp(op, "in"))
		return match;
	/* A packet that has no such field does not match, whatever is asked of it. */
	if (strcmp(op, "!=") != 0 || operand.kind == OPERAND_NONE)
		return operand.kind == OPERAND_NONE ? MATCH_NO : MATCH_MAYBE;
	return match == MATCH_YES ? MATCH_NO : match == MATCH_NO ? MATCH_YES : MATCH_MAYBE;
}

static enum outcome visit_chain(struct walk *walk, const char *chain, int depth);

static enum outcome note_drop(struct walk *walk, enum match match, const json_t *rule)
{
	struct judgement *judgement = &walk->judgement;
	enum fate fate =
		match == MATCH_YES && !walk->may_accept ? FATE_DROPPED : FATE_MAY_BE_DROPPED;

	if (fate > judgement->fate)
		*judgement = (struct judgement){
			.fate = fate,
			.family = walk->family,
			.table = walk->table,
			.chain = text_of(rule, "chain"),
			.handle = (int)json_integer_value(json_object_get(rule, "handle")),
		};
	return match == MATCH_YES ? OUTCOME_DROP : OUTCOME_CONTINUE;
}

/* One verdict, which the packet meets for sure or perhaps. */
static enum outcome apply(struct walk *walk, const json_t *statement, const json_t *rule,
			  enum match match, int depth)
{
	const json_t *jump = json_object_get(statement, "jump");
	const json_t *jump_or_goto = jump ? jump : json_object_get(statement, "goto");
	struct walk before = *walk;
	enum outcome outcome;

	if (json_object_get(statement, "accept") || json_object_get(statement, "queue")) {
		walk->may_accept |= match == MATCH_MAYBE;
		return match == MATCH_YES ? OUTCOME_ACCEPT : OUTCOME_CONTINUE;
	}
	if (json_object_get(statement, "drop") || json_object_get(statement, "reject"))
		return note_drop(walk, match, rule);
	if (!jump_or_goto)
		return OUTCOME_CONTINUE;
	outcome = visit_chain(walk, text_of(jump_or_goto, "target"), depth + 1);
	if (match == MATCH_YES || outcome == OUTCOME_CONTINUE)
		return outcome;
	/* Perhaps it never got there. */
	walk->may_accept = before.may_accept || outcome == OUTCOME_ACCEPT;
	if (walk->judgement.fate == FATE_DROPPED && before.judgement.fate != FATE_DROPPED)
		walk->judgement.fate = FATE_MAY_BE_DROPPED;
	return OUTCOME_CONTINUE;
}

/* Verdicts by a key: the first element that matches. */
static enum outcome apply_map(struct walk *walk, const json_t *map, const json_t *rule,
			      enum match match, int depth)
{
	struct operand operand = read_left(walk->packet, json_object_get(map, "key"));
	const json_t *element, *set = json_object_get(json_object_get(map, "data"), "set");
	size_t i;

	json_array_foreach (set, i, element) {
		enum match found = compare(walk, &operand, json_array_get(element, 0));
		enum outcome outcome = OUTCOME_CONTINUE;

		found = found < match ? found : match;
		if (found != MATCH_NO)
			outcome = apply(walk, json_array_get(element, 1), rule, found, depth);
		if (found == MATCH_YES)
			return outcome;
	}
	return OUTCOME_CONTINUE;
}

static bool is_return(const json_t *statement)
{
	return json_object_get(statement, "return") || json_object_get(statement, "goto");
}

/* *returns: the rest of the chain is not for this packet. */
static enum outcome visit_rule(struct walk *walk, const json_t *rule, int depth, bool *returns)
{
	enum match match = MATCH_YES;
	const json_t *statement, *part;
	size_t i;

	json_array_foreach (json_object_get(rule, "expr"), i, statement) {
		enum match one = MATCH_YES;
		enum outcome outcome = OUTCOME_CONTINUE;

		if ((part = json_object_get(statement, "match")))
			one = match_condition(walk, part);
		else if ((part = json_object_get(statement, "xt")))
			one = strcmp(text_of(part, "name"), "comment") ? MATCH_MAYBE : MATCH_YES;
		else if (json_object_get(statement, "limit"))
			one = MATCH_MAYBE;
		else if ((part = json_object_get(statement, "vmap")))
			outcome = apply_map(walk, part, rule, match, depth);
		else
			outcome = apply(walk, statement, rule, match, depth);
		match = one < match ? one : match;
		if (match == MATCH_NO)
			return OUTCOME_CONTINUE;
		if (outcome != OUTCOME_CONTINUE)
			return outcome;
		if (match == MATCH_YES && is_return(statement))
			*returns = true;
	}
	return OUTCOME_CONTINUE;
}

static bool is_of_chain(const struct walk *walk, const json_t *rule, const char *chain)
{
	return !strcmp(text_of(rule, "chain"), chain) &&
	       !strcmp(text_of(rule, "table"), walk->table) &&
	       !strcmp(text_of(rule, "family"), walk->family);
}

static enum outcome visit_chain(struct walk *walk, const char *chain, int depth)
{
	const json_t *entry, *rule;
	bool returns = false;
	size_t i;

	if (depth > MAX_DEPTH || walk->visits++ > MAX_VISITS)
		return OUTCOME_CONTINUE;
	json_array_foreach (walk->ruleset, i, entry) {
		enum outcome outcome;

		rule = json_object_get(entry, "rule");
		if (!rule || !is_of_chain(walk, rule, chain))
			continue;
		outcome = visit_rule(walk, rule, depth, &returns);
		if (outcome != OUTCOME_CONTINUE || returns)
			return outcome;
	}
	return OUTCOME_CONTINUE;
}

/* A packet that the chain neither accepts nor drops meets its policy. */
static void visit_base(struct walk *walk, const json_t *chain)
{
	const char *name = text_of(chain, "name");
	struct judgement *judgement = &walk->judgement;
	enum fate fate;

	walk->family = text_of(chain, "family");
	walk->table = text_of(chain, "table");
	walk->may_accept = false;
	if (visit_chain(walk, name, 0) != OUTCOME_CONTINUE ||
	    strcmp(text_of(chain, "policy"), "drop") != 0)
		return;
	fate = walk->may_accept ? FATE_MAY_BE_DROPPED : FATE_DROPPED;
	if (fate > judgement->fate)
		*judgement = (struct judgement){fate, walk->family, walk->table, name, true, 0};
}

static bool is_of_family(const json_t *chain, bool ipv4)
{
	const char *family = text_of(chain, "family");

	return !strcmp(family, "inet") || !strcmp(family, ipv4 ? "ip" : "ip6");
}

struct forwarded forwarded_reply(const struct forwarded *packet)
{
	struct forwarded reply = *packet;

	reply.is_reply = true;
	reply.in = packet->out;
	reply.out = packet->in;
	reply.source_known = packet->destination_known;
	reply.destination_known = packet->source_known;
	memcpy(reply.source, packet->destination, CNI_ADDRESS_SIZE);
	memcpy(reply.destination, packet->source, CNI_ADDRESS_SIZE);
	reply.source_port = packet->destination_port;
	reply.destination_port = packet->source_port;
	return reply;
}

struct judgement ruleset_judge(const json_t *ruleset, const struct forwarded *packet)
{
	struct walk walk = {.ruleset = ruleset, .packet = packet};
	const json_t *entry, *chain;
	size_t i;

	walk.judgement = (struct judgement){FATE_ACCEPTED, "", "", "", false, 0};
	/* Every base chain must let it through, in whichever order. */
	json_array_foreach (ruleset, i, entry) {
		chain = json_object_get(entry, "chain");
		if (chain && !strcmp(text_of(chain, "hook"), "forward") &&
		    is_of_family(chain, packet->ipv4))
			visit_base(&walk, chain);
	}
	return walk.judgement;
}

bool ruleset_has_chain(const json_t *ruleset, const char *table, const char *chain)
{
	const json_t *entry, *one;
	size_t i;

	json_array_foreach (ruleset, i, entry) {
		one = json_object_get(entry, "chain");
		if (one && !strcmp(text_of(one, "name"), chain) &&
		    !strcmp(text_of(one, "table"), table))
			return true;
	}
	return false;
}

static bool asks_for_nat(const json_t *condition, uint16_t port)
{
	const json_t *conntrack = json_object_get(json_object_get(condition, "left"), "ct");
	const json_t *right = json_object_get(condition, "right");
	const char *key = text_of(conntrack, "key");
	struct operand wanted = operand_port(port), nat = operand_text("dnat");
	struct walk none = {.ruleset = NULL, .family = "", .table = ""};

	if (!conntrack || !strcmp(text_of(condition, "op"), "!="))
		return false;
	if (!strcmp(key, "status"))
		return compare(&none, &nat, right) == MATCH_YES;
	return !strcmp(key, "proto-dst") && compare(&none, &wanted, right) == MATCH_YES;
}

const json_t *ruleset_find_conntrack_rule(const json_t *ruleset, uint16_t port)
{
	const json_t *entry, *rule, *statement, *condition;
	size_t i, j;

	json_array_foreach (ruleset, i, entry) {
		rule = json_object_get(entry, "rule");
		/* It accepts what others translate, on every host, and nobody relies on it. */
		if (!strcmp(text_of(rule, "table"), "firewalld"))
			continue;
		json_array_foreach (json_object_get(rule, "expr"), j, statement) {
			condition = json_object_get(statement, "match");
			if (condition && asks_for_nat(condition, port))
				return rule;
		}
	}
	return NULL;
}
