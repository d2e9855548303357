/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_rule.c - rules as nf_tables tells them. */
#include "nat/nft_rule.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "nat/legacy_table.h"
#include "nat/nat_rule.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The register file, in units of four bytes. */
#define REGISTERS NFT_REG32_COUNT
#define REGISTER_BYTES (REGISTERS * NFT_REG32_SIZE)

#define COMMENT_OF_RULE 0 /* the type of a comment in a rule's user data */

/* The name stays as it is, because the chain is asked for by it. */
static void copy_chain(char chain[NFT_NAME_MAXLEN], struct bytes name)
{
	if (!name.size || name.size >= NFT_NAME_MAXLEN)
		return;
	memcpy(chain, name.data, name.size);
	chain[name.size] = '\0';
}

static bool parse_element(struct bytes attributes, struct nft_element *element)
{
	struct bytes key = nft_value_at(attributes, NFTA_SET_ELEM_KEY);
	struct bytes end = nft_value_at(attributes, NFTA_SET_ELEM_KEY_END);

	if (!key.size || key.size > sizeof(element->key))
		return false;
	if (end.size != key.size)
		end = key;
	*element = (struct nft_element){.size = key.size};
	memcpy(element->key, key.data, key.size);
	memcpy(element->key_end, end.data, key.size);
	copy_chain(element->chain,
		   nft_find(nft_find(nft_find(attributes, NFTA_SET_ELEM_DATA), NFTA_DATA_VERDICT),
			    NFTA_VERDICT_CHAIN));
	element->ends_interval =
		nft_number_at(attributes, NFTA_SET_ELEM_FLAGS, 0) & NFT_SET_ELEM_INTERVAL_END;
	return true;
}

void nft_elements_parse(struct bytes attributes,
			void (*take)(void *context, const struct nft_element *element),
			void *context)
{
	struct bytes list = nft_find(attributes, NFTA_SET_ELEM_LIST_ELEMENTS);
	const struct nlattr *attribute;
	struct nft_element element;
	int rest;

	nla_for_each_attr(attribute, nft_first_of(list), (int)list.size,
			  rest) if (parse_element(nft_value_of(attribute), &element))
		take(context, &element);
}

static int compare_elements(const void *left, const void *right)
{
	const struct nft_element *a = left, *b = right;
	int keys = memcmp(a->key, b->key, sizeof(a->key));

	return keys ? keys : b->ends_interval - a->ends_interval;
}

/* A set of intervals of one field tells where each begins, and where none begins behind it the
 * first port that is not in it. */
size_t nft_elements_close(struct nft_element *elements, size_t count)
{
	bool has_intervals = false;
	size_t kept = 0;

	qsort(elements, count, sizeof(*elements), compare_elements);
	for (size_t i = 0; i < count; i++)
		has_intervals = has_intervals || elements[i].ends_interval;
	for (size_t i = 0; i < count; i++) {
		uint16_t end = i + 1 < count ? nft_port_in(elements[i + 1].key) : 0;

		if (elements[i].ends_interval)
			continue;
		elements[kept] = elements[i];
		elements[kept].is_interval = has_intervals;
		if (has_intervals && elements[i].size == 2) {
			end--;
			elements[kept].key_end[0] = (uint8_t)(end >> 8);
			elements[kept].key_end[1] = (uint8_t)end;
		}
		kept++;
	}
	return kept;
}

static bool has_bytes_at(const struct nft_element *element, int at, size_t size)
{
	return at >= 0 && (size_t)at + size <= element->size;
}

/* kube-proxy's chains have the service's name, and the rule no comment. */
static void take_chain_of_element(struct nat_rule *rule, const struct nft_element *element)
{
	snprintf(rule->target, sizeof(rule->target), "%s", element->chain);
	if (!*rule->comment)
		nat_text_copy(
			rule->comment, sizeof(rule->comment),
			(struct bytes){(const uint8_t *)element->chain, strlen(element->chain)});
}

bool nft_rule_of_element(const struct nat_rule *rule, const struct nat_lookup *lookup,
			 const struct nft_element *element, struct nat_rule *narrowed)
{
	size_t size = rule->ipv4 ? 4 : CNI_ADDRESS_SIZE;
	bool has_address = has_bytes_at(element, lookup->address_at, size);
	const uint8_t *address = element->key + lookup->address_at;
	bool has_port = has_bytes_at(element, lookup->port_at, 2);
	struct port_range range;

	if (lookup->is_verdict ? !*element->chain : !has_port && !has_address)
		return false;
	*narrowed = *rule;
	if (has_port) {
		range.first = nft_port_in(element->key + lookup->port_at);
		range.last = nft_port_in(element->key_end + lookup->port_at);
		nat_rule_limit_ports(narrowed, &range, 1);
	}
	if (lookup->is_verdict)
		take_chain_of_element(narrowed, element);
	if (has_bytes_at(element, lookup->protocol_at, 1))
		narrowed->protocol = element->key[lookup->protocol_at];
	if (!has_address)
		return true;
	/* An address of a family that is not known, or a range of them, is a condition that is not
	 * known. */
	if (rule->ipv4 != rule->ipv6 && !element->is_interval &&
	    !memcmp(address, element->key_end + lookup->address_at, size))
		nat_rule_limit_address(narrowed, rule->ipv4, address, NULL, size);
	else
		narrowed->restricted = true;
	return true;
}

static size_t put_field(uint8_t made[NFT_KEY_SIZE], int at, const void *bytes, size_t size)
{
	size_t whole = (size + NFT_REG32_SIZE - 1) / NFT_REG32_SIZE * NFT_REG32_SIZE;

	if (at < 0 || (size_t)at + whole > NFT_KEY_SIZE)
		return 0;
	memcpy(made + at, bytes, size);
	return whole;
}

size_t nft_key_make(const struct nat_lookup *lookup, const struct portmap_key *key, bool ipv4,
		    uint8_t made[NFT_KEY_SIZE])
{
	uint8_t port[2] = {(uint8_t)(key->host_port >> 8), (uint8_t)key->host_port};
	size_t begin = ipv4 ? 12 : 0, size = 0, one;

	memset(made, 0, NFT_KEY_SIZE);
	size += put_field(made, lookup->address_at, key->host_address + begin,
			  CNI_ADDRESS_SIZE - begin);
	size += put_field(made, lookup->protocol_at, &key->protocol, 1);
	one = size;
	size += put_field(made, lookup->port_at, port, sizeof(port));
	/* The fields stand side by side from 0 on, or there is another one between them. */
	if (!one || size == one || (size_t)lookup->port_at + NFT_REG32_SIZE > size)
		return 0;
	return size;
}

enum field_kind {
	FIELD_OTHER,
	FIELD_FAMILY,
	FIELD_PROTOCOL,
	FIELD_ADDRESS,
	FIELD_PORT,
	FIELD_INTERFACE, /* where the packet has come in */
	FIELD_LOCAL,     /* of which kind its destination is */
	FIELD_CHOICE,    /* a number that is nothing of the packet's */
};

/* A field of the packet that was loaded into registers from one on. */
struct field {
	enum field_kind kind;
	bool ipv4;         /* FIELD_ADDRESS */
	unsigned int skip; /* bytes of something else before it */
	unsigned int size;
	uint8_t mask[CNI_ADDRESS_SIZE];
	bool masked;
};

struct reader {
	struct nat_rule *rule;
	struct field fields[REGISTERS];
	uint8_t values[REGISTER_BYTES]; /* constants */
	bool known[REGISTERS];
};

/* Which of the registers; REGISTERS: none that holds data. */
static unsigned int register_at(struct bytes expression, int type)
{
	uint32_t number = nft_number_at(expression, type, NFT_REG_VERDICT);

	if (number >= NFT_REG_1 && number <= NFT_REG_4)
		return (number - NFT_REG_1) * (NFT_REG_SIZE / NFT_REG32_SIZE);
	if (number >= NFT_REG32_00 && number <= NFT_REG32_15)
		return number - NFT_REG32_00;
	return REGISTERS;
}

static void forget_registers(struct reader *reader, unsigned int first, unsigned int bytes)
{
	for (unsigned int i = first; i < REGISTERS && (i == first || bytes > (i - first) * 4);
	     i++) {
		reader->fields[i] = (struct field){.kind = FIELD_OTHER};
		reader->known[i] = false;
	}
}

static void load_field(struct reader *reader, unsigned int first, enum field_kind kind,
		       unsigned int size)
{
	if (first == REGISTERS)
		return;
	forget_registers(reader, first, size);
	reader->fields[first] = (struct field){.kind = kind, .size = size};
}

/* Where the fields are that matter here. */
struct place {
	uint32_t base, offset, size;
	enum field_kind kind;
	bool ipv4, ipv6;
};

static const struct place places[] = {
	{NFT_PAYLOAD_NETWORK_HEADER, 9, 1, FIELD_PROTOCOL, .ipv4 = true},
	{NFT_PAYLOAD_NETWORK_HEADER, 16, 4, FIELD_ADDRESS, .ipv4 = true},
	{NFT_PAYLOAD_NETWORK_HEADER, 6, 1, FIELD_PROTOCOL, .ipv6 = true},
	{NFT_PAYLOAD_NETWORK_HEADER, 24, 16, FIELD_ADDRESS, .ipv6 = true},
	{NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, FIELD_PORT, .ipv4 = true, .ipv6 = true},
};

/* Several fields may be loaded at once: of those that matter here two never stand side by side. The
 * end of an address may be missing. */
static void take_payload(struct reader *reader, struct bytes expression)
{
	unsigned int to = register_at(expression, NFTA_PAYLOAD_DREG);
	uint32_t base = nft_number_at(expression, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t offset = nft_number_at(expression, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	uint32_t size = nft_number_at(expression, NFTA_PAYLOAD_LEN, 0);

	if (to == REGISTERS || size > REGISTER_BYTES)
		return;
	forget_registers(reader, to, size);
	for_each (place, places, COUNT(places)) {
		struct field *field = &reader->fields[to];

		if (place->base != base || (reader->rule->ipv4 && !place->ipv4) ||
		    (reader->rule->ipv6 && !place->ipv6) || offset > place->offset ||
		    place->offset - offset >= size)
			continue;
		*field = (struct field){
			.kind = place->kind,
			.ipv4 = place->ipv4,
			.skip = place->offset - offset,
			.size = size - (place->offset - offset),
		};
		if (field->size > place->size)
			field->size = place->size;
		if (field->kind == FIELD_PORT && field->size < place->size)
			field->kind = FIELD_OTHER;
	}
}

static void take_meta(struct reader *reader, struct bytes expression)
{
	uint32_t key = nft_number_at(expression, NFTA_META_KEY, UINT32_MAX);
	unsigned int to = register_at(expression, NFTA_META_DREG);

	if (key == NFT_META_NFPROTO)
		load_field(reader, to, FIELD_FAMILY, 1);
	else if (key == NFT_META_L4PROTO)
		load_field(reader, to, FIELD_PROTOCOL, 1);
	else if (key == NFT_META_IIFNAME)
		load_field(reader, to, FIELD_INTERFACE, IFNAMSIZ);
	else
		load_field(reader, to, FIELD_OTHER, REGISTER_BYTES);
}

static void take_fib(struct reader *reader, struct bytes expression)
{
	bool is_kind = nft_number_at(expression, NFTA_FIB_RESULT, 0) == NFT_FIB_RESULT_ADDRTYPE &&
		       nft_number_at(expression, NFTA_FIB_FLAGS, 0) == NFTA_FIB_F_DADDR;

	load_field(reader, register_at(expression, NFTA_FIB_DREG),
		   is_kind ? FIELD_LOCAL : FIELD_OTHER, sizeof(uint32_t));
}

/* By which a Service chooses one of its Pods. */
static void take_choice(struct reader *reader, struct bytes expression)
{
	load_field(reader, register_at(expression, NFTA_NG_DREG), FIELD_CHOICE, sizeof(uint32_t));
}

static void take_bitwise(struct reader *reader, struct bytes expression)
{
	unsigned int from = register_at(expression, NFTA_BITWISE_SREG);
	unsigned int to = register_at(expression, NFTA_BITWISE_DREG);
	struct bytes mask = nft_value_at(expression, NFTA_BITWISE_MASK);
	struct field field;

	if (from == REGISTERS || to == REGISTERS)
		return;
	field = reader->fields[from];
	forget_registers(reader, to, nft_number_at(expression, NFTA_BITWISE_LEN, NFT_REG_SIZE));
	if (field.kind != FIELD_ADDRESS || mask.size < (size_t)field.skip + field.size ||
	    nft_number_at(expression, NFTA_BITWISE_OP, 0))
		return;
	memcpy(field.mask, mask.data + field.skip, field.size);
	field.masked = true;
	reader->fields[to] = field;
}

static void compare_port(struct nat_rule *rule, uint32_t operation, uint16_t port)
{
	struct port_range range = {port, port};

	if (operation == NFT_CMP_NEQ) {
		nat_rule_exclude_ports(rule, &range);
		return;
	}
	if (operation == NFT_CMP_LT || operation == NFT_CMP_LTE)
		range.first = 0;
	else if (operation != NFT_CMP_EQ)
		range.last = UINT16_MAX;
	nat_rule_limit_ports(rule, &range, 1);
	range = (struct port_range){port, port};
	if (operation == NFT_CMP_LT || operation == NFT_CMP_GT)
		nat_rule_exclude_ports(rule, &range);
}

static void except_interface(struct nat_rule *rule, struct bytes name)
{
	rule->excepts = true;
	nat_text_copy(rule->except_interface, sizeof(rule->except_interface), name);
}

static bool is_loopback(const struct field *field, const uint8_t *value)
{
	static const uint8_t loopback6[CNI_ADDRESS_SIZE] = {[15] = 1};

	return field->ipv4 ? *value == IN_LOOPBACKNET
			   : field->size == sizeof(loopback6) &&
				     !memcmp(value, loopback6, sizeof(loopback6));
}

static bool is_local(const uint8_t *value)
{
	uint32_t type;

	memcpy(&type, value, sizeof(type));
	return type == RTN_LOCAL;
}

static void compare_field(struct nat_rule *rule, const struct field *field, uint32_t operation,
			  const uint8_t *value)
{
	if (field->kind == FIELD_PORT)
		compare_port(rule, operation, nft_port_in(value));
	else if (operation == NFT_CMP_NEQ && field->kind == FIELD_ADDRESS &&
		 is_loopback(field, value))
		rule->excepts = rule->not_loopback = true;
	else if (operation != NFT_CMP_EQ)
		rule->restricted = true;
	else if (field->kind == FIELD_LOCAL && is_local(value))
		rule->excepts = true;
	else if (field->kind == FIELD_PROTOCOL)
		rule->protocol = *value;
	else if (field->kind == FIELD_ADDRESS)
		nat_rule_limit_address(rule, field->ipv4, value, field->masked ? field->mask : NULL,
				       field->size);
	else if (field->kind == FIELD_FAMILY && *value == NFPROTO_IPV4)
		rule->ipv6 = false;
	else if (field->kind == FIELD_FAMILY && *value == NFPROTO_IPV6)
		rule->ipv4 = false;
	else if (field->kind != FIELD_FAMILY)
		rule->restricted = true;
}

/* A field that the expression reads, and enough bytes to compare it with; else NULL. */
static const struct field *field_at(const struct reader *reader, struct bytes expression, int type,
				    struct bytes value)
{
	unsigned int from = register_at(expression, type);

	if (from == REGISTERS || reader->fields[from].kind == FIELD_OTHER ||
	    value.size < (size_t)reader->fields[from].skip + reader->fields[from].size)
		return NULL;
	return &reader->fields[from];
}

static void take_cmp(struct reader *reader, struct bytes expression)
{
	struct bytes value = nft_value_at(expression, NFTA_CMP_DATA);
	const struct field *field = field_at(reader, expression, NFTA_CMP_SREG, value);
	uint32_t operation = nft_number_at(expression, NFTA_CMP_OP, NFT_CMP_NEQ);
	unsigned int from = register_at(expression, NFTA_CMP_SREG);

	/* The name that is compared may be the front of one. */
	if (operation == NFT_CMP_NEQ && from < REGISTERS &&
	    reader->fields[from].kind == FIELD_INTERFACE)
		except_interface(reader->rule, value);
	else if (field)
		compare_field(reader->rule, field, operation, value.data + field->skip);
	else
		reader->rule->restricted = true;
}

static void take_range(struct reader *reader, struct bytes expression)
{
	struct bytes from = nft_value_at(expression, NFTA_RANGE_FROM_DATA);
	struct bytes to = nft_value_at(expression, NFTA_RANGE_TO_DATA);
	const struct field *field = field_at(reader, expression, NFTA_RANGE_SREG, from);
	struct port_range range;

	if (!field || field->kind != FIELD_PORT || to.size < (size_t)field->skip + field->size) {
		reader->rule->restricted = true;
		return;
	}
	range = (struct port_range){nft_port_in(from.data + field->skip),
				    nft_port_in(to.data + field->skip)};
	if (nft_number_at(expression, NFTA_RANGE_OP, NFT_RANGE_NEQ) == NFT_RANGE_EQ)
		nat_rule_limit_ports(reader->rule, &range, 1);
	else
		nat_rule_exclude_ports(reader->rule, &range);
}

static int place_in_key(const struct reader *reader, unsigned int first, enum field_kind kind)
{
	for (unsigned int i = first; i < REGISTERS; i++)
		if (reader->fields[i].kind == kind)
			return (int)((i - first) * NFT_REG32_SIZE + reader->fields[i].skip);
	return -1;
}

static void read_lookup(const struct reader *reader, unsigned int first, struct bytes set,
			struct nat_lookup *lookup)
{
	/* As it is, for it is asked for again. */
	memcpy(lookup->set, set.data, set.size);
	lookup->set[set.size] = '\0';
	lookup->port_at = place_in_key(reader, first, FIELD_PORT);
	lookup->protocol_at = place_in_key(reader, first, FIELD_PROTOCOL);
	lookup->address_at = place_in_key(reader, first, FIELD_ADDRESS);
}

/* A port or an address in a set, or a verdict map; a protocol in a set is no condition here. */
static void take_lookup(struct reader *reader, struct bytes expression)
{
	unsigned int first = register_at(expression, NFTA_LOOKUP_SREG);
	unsigned int to = register_at(expression, NFTA_LOOKUP_DREG);
	struct bytes set = nft_find(expression, NFTA_LOOKUP_SET);
	struct nat_rule *rule = reader->rule;
	bool is_verdict =
		nft_number_at(expression, NFTA_LOOKUP_DREG, NFT_REG32_15) == NFT_REG_VERDICT;
	bool is_readable = first < REGISTERS && set.size && set.size < sizeof(rule->lookup.set) &&
			   !(nft_number_at(expression, NFTA_LOOKUP_FLAGS, 0) & NFT_LOOKUP_F_INV);

	if (is_readable && (is_verdict || place_in_key(reader, first, FIELD_PORT) >= 0)) {
		read_lookup(reader, first, set, &rule->lookup);
		rule->lookup.is_verdict = is_verdict;
		rule->jumps |= is_verdict;
		/* What else may be in the key is a condition that is not known. */
		rule->restricted |= reader->fields[first].kind == FIELD_OTHER ||
				    reader->fields[first].kind == FIELD_INTERFACE;
	} else if (is_readable && to == REGISTERS && reader->fields[first].kind == FIELD_ADDRESS) {
		read_lookup(reader, first, set, &rule->address_lookup);
	} else {
		rule->restricted = true;
	}
	if (to < REGISTERS)
		forget_registers(reader, to, REGISTER_BYTES);
}

static void take_immediate(struct reader *reader, struct bytes expression)
{
	struct bytes data = nft_find(expression, NFTA_IMMEDIATE_DATA);
	struct bytes verdict = nft_find(data, NFTA_DATA_VERDICT);
	struct bytes value = nft_find(data, NFTA_DATA_VALUE);
	struct bytes chain = nft_find(verdict, NFTA_VERDICT_CHAIN);
	unsigned int to = register_at(expression, NFTA_IMMEDIATE_DREG);
	struct nat_rule *rule = reader->rule;

	if (to == REGISTERS && chain.size && chain.size < sizeof(rule->target)) {
		rule->jumps = true;
		/* The name stays as it is, because the chain is asked for by it. */
		memcpy(rule->target, chain.data, chain.size);
		rule->target[chain.size] = '\0';
	}
	if (to == REGISTERS)
		return;
	forget_registers(reader, to, (unsigned int)value.size);
	if (!value.size || value.size > NFT_REG_SIZE || value.size > (REGISTERS - to) * 4)
		return;
	memcpy(reader->values + (size_t)to * 4, value.data, value.size);
	for (unsigned int i = to; i < to + (value.size + 3) / 4; i++)
		reader->known[i] = true;
}

static void take_new_port(struct reader *reader, struct bytes expression, int type)
{
	unsigned int port = register_at(expression, type);

	if (port < REGISTERS && reader->known[port])
		reader->rule->new_port = nft_port_in(reader->values + (size_t)port * 4);
}

static void take_new_address(struct reader *reader, struct bytes expression, int type, bool ipv4)
{
	unsigned int address = register_at(expression, type);
	size_t size = ipv4 ? 4 : CNI_ADDRESS_SIZE;

	if (address + (size - 1) / 4 < REGISTERS && reader->known[address] &&
	    reader->known[address + (size - 1) / 4])
		cni_address_make(reader->rule->new_address, reader->values + (size_t)address * 4,
				 size);
}

/* Whether a range has an end of its own; the kernel may name its beginning twice. */
static bool is_range(struct bytes expression, int first, int last)
{
	unsigned int end = register_at(expression, last);

	return end != REGISTERS && end != register_at(expression, first);
}

static void take_nat(struct reader *reader, struct bytes expression)
{
	uint32_t family = nft_number_at(expression, NFTA_NAT_FAMILY, NFPROTO_UNSPEC);

	if (nft_number_at(expression, NFTA_NAT_TYPE, NFT_NAT_SNAT) != NFT_NAT_DNAT)
		return;
	reader->rule->verdict = "dnat";
	/* In a table of both families it leaves the other's packets alone. */
	reader->rule->ipv4 &= family != NFPROTO_IPV6;
	reader->rule->ipv6 &= family != NFPROTO_IPV4;
	take_new_address(reader, expression, NFTA_NAT_REG_ADDR_MIN, family == NFPROTO_IPV4);
	take_new_port(reader, expression, NFTA_NAT_REG_PROTO_MIN);
	reader->rule->is_one_of_several =
		is_range(expression, NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX) ||
		is_range(expression, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX);
}

static void take_redirect(struct reader *reader, struct bytes expression)
{
	reader->rule->verdict = "redirect";
	take_new_port(reader, expression, NFTA_REDIR_REG_PROTO_MIN);
}

static void take_tproxy(struct reader *reader, struct bytes expression)
{
	bool ipv4 = nft_number_at(expression, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC) == NFPROTO_IPV4;

	reader->rule->verdict = "tproxy";
	take_new_address(reader, expression, NFTA_TPROXY_REG_ADDR, ipv4);
	take_new_port(reader, expression, NFTA_TPROXY_REG_PORT);
}

static void take_compat(struct reader *reader, struct bytes expression, bool is_match)
{
	struct bytes info = nft_find(expression, is_match ? NFTA_MATCH_INFO : NFTA_TARGET_INFO);
	struct bytes named = nft_find(expression, is_match ? NFTA_MATCH_NAME : NFTA_TARGET_NAME);
	uint32_t revision =
		nft_number_at(expression, is_match ? NFTA_MATCH_REV : NFTA_TARGET_REV, 0);
	char name[NAT_NAME_SIZE];

	nat_text_copy(name, sizeof(name), named);
	if (is_match)
		xt_rule_take_match(reader->rule, name, revision, info);
	else
		xt_rule_take_target(reader->rule, name, revision, info);
}

static void take_expression(struct reader *reader, struct bytes element)
{
	static const struct {
		const char *name;
		void (*take)(struct reader *reader, struct bytes expression);
	} kinds[] = {
		{"payload", take_payload}, {"meta", take_meta},
		{"cmp", take_cmp},         {"bitwise", take_bitwise},
		{"range", take_range},     {"lookup", take_lookup},
		{"nat", take_nat},         {"immediate", take_immediate},
		{"redir", take_redirect},  {"tproxy", take_tproxy},
		{"fib", take_fib},         {"numgen", take_choice},
	};
	struct bytes name = nft_find(element, NFTA_EXPR_NAME);
	struct bytes expression = nft_find(element, NFTA_EXPR_DATA);

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (nft_is(name, kinds[i].name)) {
			kinds[i].take(reader, expression);
			return;
		}
	if (nft_is(name, "match") || nft_is(name, "target")) {
		take_compat(reader, expression, nft_is(name, "match"));
	} else if (!nft_is(name, "counter")) {
		reader->rule->restricted = true;
		forget_registers(reader, 0, REGISTER_BYTES); /* it may write registers */
	}
}

void nft_rule_parse(uint8_t family, struct bytes attributes, struct nat_rule *rule)
{
	struct bytes expressions = nft_find(attributes, NFTA_RULE_EXPRESSIONS);
	struct bytes data = nft_find(attributes, NFTA_RULE_USERDATA);
	struct reader reader = {.rule = rule};
	const struct nlattr *element;
	uint64_t handle;
	int rest;

	nat_rule_begin(rule, family != NFPROTO_IPV6, family != NFPROTO_IPV4);
	rule->family = family;
	if (bytes_copy_front(&handle, sizeof(handle), nft_find(attributes, NFTA_RULE_HANDLE)))
		rule->handle = be64toh(handle);
	nat_text_copy(rule->table, sizeof(rule->table), nft_find(attributes, NFTA_RULE_TABLE));
	nat_text_copy(rule->chain_name, sizeof(rule->chain_name),
		      nft_find(attributes, NFTA_RULE_CHAIN));
	nla_for_each_attr(element, nft_first_of(expressions), (int)expressions.size, rest)
		take_expression(&reader, nft_value_of(element));
	/* Type, length, value; a byte each but the last. */
	while (data.size >= 2 && data.data[1] <= data.size - 2) {
		if (data.data[0] == COMMENT_OF_RULE)
			nat_text_copy(rule->comment, sizeof(rule->comment),
				      (struct bytes){data.data + 2, data.data[1]});
		data.size -= 2U + data.data[1];
		data.data += 2U + data.data[1];
	}
}
