/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rule_test.c - what is read from the rules of nftables and iptables, damaged ones among them.
 */
#include "cni_testing.h"

#include "nat/legacy_table.h"
#include "nat/nat_rule.h"
#include "nat/nft_rule.h"
#include "nat/engine_chains.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <linux/netfilter_ipv4/ip_tables.h>

#define DAMAGED_RUNS 20000

static uint8_t mapped[CNI_ADDRESS_SIZE], any[CNI_ADDRESS_SIZE];

static int set_up(void **state)
{
	cni_address_parse("192.0.2.1", mapped);
	cni_address_parse("0.0.0.0", any);
	return 0;
}

FIXTURE(set_up, NULL)

/* A message in the making. */
struct message {
	uint8_t bytes[2048];
	size_t size;
};

static void put(struct message *message, uint16_t type, const void *value, size_t size)
{
	uint16_t header[2] = {(uint16_t)(4 + size), type};

	assert_true(message->size + size + 8 < sizeof(message->bytes));
	memcpy(message->bytes + message->size, header, sizeof(header));
	if (size)
		memcpy(message->bytes + message->size + 4, value, size);
	message->size = (message->size + 4 + size + 3) & ~(size_t)3;
}

static void put_number(struct message *message, uint16_t type, uint32_t value)
{
	value = htonl(value);
	put(message, type, &value, sizeof(value));
}

static void put_nested(struct message *message, uint16_t type, const struct message *inner)
{
	put(message, type | 0x8000, inner->bytes, inner->size);
}

static void put_value(struct message *message, uint16_t type, const void *value, size_t size)
{
	struct message data = {0};

	put(&data, NFTA_DATA_VALUE, value, size);
	put_nested(message, type, &data);
}

static void put_expression(struct message *list, const char *name, const struct message *content)
{
	struct message element = {0};

	put(&element, NFTA_EXPR_NAME, name, strlen(name) + 1);
	put_nested(&element, NFTA_EXPR_DATA, content);
	put_nested(list, NFTA_LIST_ELEM, &element);
}

static void load(struct message *list, uint32_t base, uint32_t offset, uint32_t size, uint32_t to)
{
	struct message content = {0};

	put_number(&content, NFTA_PAYLOAD_DREG, to);
	put_number(&content, NFTA_PAYLOAD_BASE, base);
	put_number(&content, NFTA_PAYLOAD_OFFSET, offset);
	put_number(&content, NFTA_PAYLOAD_LEN, size);
	put_expression(list, "payload", &content);
}

static void compare(struct message *list, uint32_t from, uint32_t operation, const void *value,
		    size_t size)
{
	struct message content = {0};

	put_number(&content, NFTA_CMP_SREG, from);
	put_number(&content, NFTA_CMP_OP, operation);
	put_value(&content, NFTA_CMP_DATA, value, size);
	put_expression(list, "cmp", &content);
}

static void load_port(struct message *list)
{
	load(list, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, NFT_REG_1);
}

static void compare_port(struct message *list, uint32_t operation, uint16_t port)
{
	port = htons(port);
	compare(list, NFT_REG_1, operation, &port, sizeof(port));
}

static void immediate(struct message *list, uint32_t to, const void *value, size_t size)
{
	struct message content = {0};

	put_number(&content, NFTA_IMMEDIATE_DREG, to);
	put_value(&content, NFTA_IMMEDIATE_DATA, value, size);
	put_expression(list, "immediate", &content);
}

static void dnat(struct message *list)
{
	struct message content = {0};

	immediate(list, NFT_REG_1, "\x0a\x00\x00\x05", 4);
	immediate(list, NFT_REG_2, "\x00\x50", 2);
	put_number(&content, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	put_number(&content, NFTA_NAT_FAMILY, NFPROTO_IPV4);
	put_number(&content, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	put_number(&content, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	put_expression(list, "nat", &content);
}

static void lookup(struct message *list, uint32_t from)
{
	struct message content = {0};

	put(&content, NFTA_LOOKUP_SET, "ports", 6);
	put_number(&content, NFTA_LOOKUP_SREG, from);
	put_expression(list, "lookup", &content);
}

static struct message whole(const struct message *list)
{
	static const char comment[] = "\0\007my\033name";
	struct message message = {0};

	put(&message, NFTA_RULE_TABLE, "nat", 4);
	put(&message, NFTA_RULE_CHAIN, "prerouting", 11);
	put_nested(&message, NFTA_RULE_EXPRESSIONS, list);
	put(&message, NFTA_RULE_USERDATA, comment, sizeof(comment) - 1);
	return message;
}

static struct nat_rule parse(uint8_t family, const struct message *list)
{
	struct message message = whole(list);
	struct nat_rule rule;

	nft_rule_parse(family, (struct bytes){message.bytes, message.size}, &rule);
	return rule;
}

static bool meant(const struct nat_rule *rule, uint16_t port)
{
	return nat_rule_may_match(rule, PROTOCOL_TCP, mapped, port);
}

TEST(test_port, "port")
{
	struct message list = {0};
	struct nat_rule rule;
	char address[CNI_ADDRESS_TEXT_SIZE];

	load_port(&list);
	compare_port(&list, NFT_CMP_EQ, 8080);
	dnat(&list);
	rule = parse(NFPROTO_IPV4, &list);
	assert_true(rule.verdict && rule.names_port && !rule.ipv6);
	assert_true(meant(&rule, 8080));
	assert_false(meant(&rule, 8081));
	assert_string_equal(cni_address_format(rule.new_address, address), "10.0.0.5");
	assert_int_equal(rule.new_port, 80);
	assert_string_equal(rule.chain_name, "prerouting");
	assert_string_equal(rule.comment, "my?name");
	/* In a table of both families it translates one alone. */
	rule = parse(NFPROTO_INET, &list);
	assert_true(rule.ipv4 && !rule.ipv6);
}

TEST(test_range, "range")
{
	struct message list = {0};
	struct nat_rule rule;

	load_port(&list);
	compare_port(&list, NFT_CMP_GTE, 8000);
	compare_port(&list, NFT_CMP_LT, 8100);
	compare_port(&list, NFT_CMP_NEQ, 8080);
	rule = parse(NFPROTO_IPV4, &list);
	assert_true(meant(&rule, 8000) && meant(&rule, 8079) && meant(&rule, 8081) &&
		    meant(&rule, 8099));
	assert_false(meant(&rule, 7999) || meant(&rule, 8080) || meant(&rule, 8100));
}

TEST(test_address, "address")
{
	struct message list = {0}, other = {0};
	struct nat_rule rule;

	/* Two addresses in one load, and the first three bytes of one. */
	load(&list, NFT_PAYLOAD_NETWORK_HEADER, 12, 8, NFT_REG_1);
	compare(&list, NFT_REG_1, NFT_CMP_EQ, "\xc0\x00\x02\x09\xc0\x00\x02\x01", 8);
	rule = parse(NFPROTO_IPV4, &list);
	assert_true(nat_rule_holds_address(&rule, mapped));
	load(&other, NFT_PAYLOAD_NETWORK_HEADER, 16, 3, NFT_REG_1);
	compare(&other, NFT_REG_1, NFT_CMP_EQ, "\xc0\x00\x03", 3);
	rule = parse(NFPROTO_IPV4, &other);
	assert_false(nat_rule_holds_address(&rule, mapped));
	assert_false(nat_rule_has_any_address(&rule));
	/* In `inet` the same bytes may be another family's, until a rule says which. */
	rule = parse(NFPROTO_INET, &other);
	assert_true(nat_rule_has_any_address(&rule));
}

static void put_element(struct message *list, uint16_t port, bool ends)
{
	struct message element = {0};

	port = htons(port);
	put_value(&element, NFTA_SET_ELEM_KEY, &port, sizeof(port));
	if (ends)
		put_number(&element, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	put_nested(list, NFTA_LIST_ELEM, &element);
}

struct elements {
	struct nft_element list[16];
	size_t count;
};

static void keep(void *context, const struct nft_element *element)
{
	struct elements *elements = context;

	if (elements->count < 16)
		elements->list[elements->count++] = *element;
}

static bool in_set(const struct nat_rule *rule, const struct elements *elements, uint16_t port)
{
	struct nat_rule narrowed;

	for (size_t i = 0; i < elements->count; i++)
		if (nft_rule_of_element(rule, &rule->lookup, &elements->list[i], &narrowed) &&
		    meant(&narrowed, port))
			return true;
	return false;
}

TEST(test_set, "set")
{
	struct message list = {0}, set = {0}, message = {0};
	struct elements elements = {0};
	struct nat_rule rule;

	load_port(&list);
	lookup(&list, NFT_REG_1);
	rule = parse(NFPROTO_IPV4, &list);
	assert_string_equal(rule.lookup.set, "ports");
	assert_int_equal(rule.lookup.port_at, 0);
	put_element(&set, 9000, false); /* to the last port */
	put_element(&set, 8081, true);
	put_element(&set, 8000, false);
	put_element(&set, 0, true);
	put_nested(&message, NFTA_SET_ELEM_LIST_ELEMENTS, &set);
	nft_elements_parse((struct bytes){message.bytes, message.size}, keep, &elements);
	elements.count = nft_elements_close(elements.list, elements.count);
	assert_int_equal(elements.count, 2);
	assert_true(in_set(&rule, &elements, 8000) && in_set(&rule, &elements, 8080) &&
		    in_set(&rule, &elements, 9000) && in_set(&rule, &elements, 65535));
	assert_false(in_set(&rule, &elements, 8081) || in_set(&rule, &elements, 7999));
}

TEST(test_iptables_matches, "iptables matches")
{
	struct xt_multiport_v1 ports = {XT_MULTIPORT_DESTINATION, 3, {80, 90, 100}, {0, 1, 0}, 0};
	struct xt_tcp tcp = {.spts = {0, 65535}, .dpts = {90, 95}, .invflags = XT_TCP_INV_DSTPT};
	struct nat_rule rule;

	nat_rule_begin(&rule, true, false);
	xt_rule_take_match(&rule, "multiport", 1, (struct bytes){(uint8_t *)&ports, sizeof(ports)});
	xt_rule_take_match(&rule, "tcp", 0, (struct bytes){(uint8_t *)&tcp, sizeof(tcp)});
	assert_true(meant(&rule, 80) && meant(&rule, 96) && meant(&rule, 100));
	assert_false(meant(&rule, 90) || meant(&rule, 95) || meant(&rule, 81));
	nat_rule_begin(&rule, true, false);
	xt_rule_take_match(&rule, "multiport", 1,
			   (struct bytes){(uint8_t *)&ports, sizeof(ports) - 1});
	assert_false(rule.names_port);
}

/* A table of iptables-legacy: PREROUTING with a jump, a chain with one rule, each with its end. */
struct legacy {
	struct {
		struct ipt_entry entry;
		struct xt_standard_target target;
	} jump, policy;
	struct {
		struct ipt_entry entry;
		struct xt_error_target target;
	} head;
	struct {
		struct ipt_entry entry;
		struct xt_entry_match match;
		struct xt_tcp tcp;
		struct xt_entry_target target;
		struct nf_nat_ipv4_multi_range_compat range;
	} dnat;
	struct {
		struct ipt_entry entry;
		struct xt_standard_target target;
	} end;
};

static void legacy_make(struct legacy *table)
{
	*table = (struct legacy){0};
	table->jump.entry.target_offset = sizeof(struct ipt_entry);
	table->jump.entry.next_offset = sizeof(table->jump);
	table->jump.target.target.u.user.target_size = sizeof(table->jump.target);
	table->jump.target.verdict = offsetof(struct legacy, dnat);
	table->policy = table->jump;
	table->policy.target.verdict = -NF_ACCEPT - 1;
	table->head.entry.target_offset = sizeof(struct ipt_entry);
	table->head.entry.next_offset = sizeof(table->head);
	table->head.target.target.u.user.target_size = sizeof(table->head.target);
	memcpy(table->head.target.target.u.user.name, "ERROR", 6);
	memcpy(table->head.target.errorname, "DOCKER", 7);
	table->dnat.entry.ip.proto = PROTOCOL_TCP;
	table->dnat.entry.target_offset = offsetof(__typeof__(table->dnat), target);
	table->dnat.entry.next_offset = sizeof(table->dnat);
	table->dnat.match.u.user.match_size = sizeof(table->dnat.match) + sizeof(table->dnat.tcp);
	memcpy(table->dnat.match.u.user.name, "tcp", 4);
	table->dnat.tcp = (struct xt_tcp){.spts = {0, 65535}, .dpts = {8080, 8080}};
	table->dnat.target.u.user.target_size =
		sizeof(table->dnat.target) + sizeof(table->dnat.range);
	memcpy(table->dnat.target.u.user.name, "DNAT", 5);
	table->dnat.range.range[0].min_ip = htonl(0xac110002);
	table->dnat.range.range[0].min.all = htons(80);
	memcpy(&table->end, &table->policy, sizeof(table->end));
}

struct rules {
	struct nat_rule list[8];
	size_t count;
};

static void keep_rule(void *context, const struct nat_rule *rule)
{
	struct rules *rules = context;

	if (rules->count < 8)
		rules->list[rules->count++] = *rule;
}

static struct rules parse_chain(const void *bytes, size_t offset)
{
	const struct legacy_table table = {
		.name = "nat",
		.ipv4 = true,
		.valid_hooks = 1U << NF_INET_PRE_ROUTING,
		.entries = bytes,
		.size = sizeof(struct legacy),
	};
	struct rules rules = {0};

	legacy_chain_parse(&table, offset, keep_rule, &rules);
	return rules;
}

TEST(test_legacy, "legacy")
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	struct legacy table;
	struct rules rules;

	legacy_make(&table);
	rules = parse_chain(&table, 0);
	assert_int_equal(rules.count, 1);
	assert_string_equal(rules.list[0].chain_name, "PREROUTING");
	assert_true(rules.list[0].jumps && !rules.list[0].verdict);
	assert_string_equal(rules.list[0].target, "DOCKER");
	rules = parse_chain(&table, rules.list[0].target_offset);
	assert_int_equal(rules.count, 1);
	assert_true(rules.list[0].verdict && meant(&rules.list[0], 8080));
	assert_false(meant(&rules.list[0], 80) ||
		     nat_rule_may_match(&rules.list[0], PROTOCOL_UDP, mapped, 8080));
	assert_string_equal(rules.list[0].chain_name, "DOCKER");
	assert_string_equal(cni_address_format(rules.list[0].new_address, address), "172.17.0.2");
	assert_int_equal(rules.list[0].new_port, 80);
}

/* The same every time. */
static uint32_t next_random(void)
{
	static uint32_t random = 1;

	random ^= random << 13;
	random ^= random >> 17;
	return random ^= random << 5;
}

/* A copy in memory of just its size, so that the sanitizer sees what is read behind it. */
static uint8_t *damage(const void *bytes, size_t size)
{
	uint8_t *copy = malloc(size);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	for (uint32_t i = next_random() % 4; i < 4; i++)
		copy[next_random() % size] = (uint8_t)next_random();
	return copy;
}

static struct nat_rule rule_in(const char *table, const char *chain)
{
	struct nat_rule rule;

	nat_rule_begin(&rule, true, true);
	snprintf(rule.table, sizeof(rule.table), "%s", table);
	snprintf(rule.chain_name, sizeof(rule.chain_name), "%s", chain);
	return rule;
}

TEST(test_engines, "whose a chain is")
{
	static const struct {
		const char *table, *chain, *engine;
	} rows[] = {
		{"nat", "CNI-HOSTPORT-DNAT", "portmap"},
		{"nat", "CNI-DN-0123456789ab", "portmap"},
		{"cni_hostport", "hostports", "portmap"},
		{"nat", "DOCKER", "docker"},
		{"docker-bridges", "nat-prerouting-and-output", "docker"},
		{"netavark", "nv_2f259bab_10_88_0_0_nm16_dnat", "netavark"},
		{"nat", "NETAVARK-DN-1D8721804F16F", "netavark"},
		{"nat", "KUBE-NODEPORTS", "kube-proxy"},
		{"kube-proxy", "services", "kube-proxy"},
		{"nat", "PREROUTING", "nat"},
		{"foreign", "hostports", "nat"},
		{"foreign", "nat-prerouting-and-output", "nat"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nat_rule rule = rule_in(rows[i].table, rows[i].chain);

		assert_string_equal(nat_engine_of(&rule), rows[i].engine);
	}
	/* Each chain at which a search begins has an owner, or is a hook. */
	for (const struct nat_chain *chain = nat_chains; chain->name; chain++) {
		struct nat_rule rule = rule_in(chain->table ? chain->table : "any", chain->name);

		assert_string_equal(nat_engine_of(&rule), chain->engine ? chain->engine : "nat");
	}
}

TEST(test_may_take, "which ports a rule takes")
{
	static const uint8_t loopback[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct portmap_key key = {.protocol = PROTOCOL_TCP, .host_port = 8080};
	const struct nat_asked nobody = {&key, 1, NULL, 0},
			       asked = {&key, 1, (const uint8_t(*)[CNI_ADDRESS_SIZE]) & mapped, 1};
	const struct port_range port = {8080, 8080};
	struct nat_rule rule, outer;

	memcpy(key.host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	nat_rule_begin(&rule, true, false);
	nat_rule_limit_ports(&rule, &port, 1);
	assert_true(nat_rule_is_asked_for(&rule, &nobody));
	/* The address may be that of the rule that leads to it. */
	nat_rule_begin(&outer, true, false);
	nat_rule_limit_address(&outer, true, mapped + 12, NULL, 4);
	outer.not_loopback = true;
	outer.protocol = PROTOCOL_TCP;
	assert_true(nat_rule_limit_to(&rule, &outer));
	assert_true(nat_rule_is_asked_for(&rule, &asked));
	assert_false(nat_rule_is_asked_for(&rule, &nobody));
	outer.protocol = PROTOCOL_UDP;
	assert_false(nat_rule_limit_to(&rule, &outer));
	/* Loopback addresses: of the host's own processes alone, where the rule does not say no. */
	memcpy(key.host_address, loopback, CNI_ADDRESS_SIZE);
	nat_rule_begin(&rule, true, false);
	rule.hooks = NAT_FROM_HOST;
	assert_true(nat_rule_may_take(&rule, &key, &nobody));
	rule.not_loopback = true;
	assert_false(nat_rule_may_take(&rule, &key, &nobody));
	rule.not_loopback = false;
	rule.hooks = NAT_FROM_OUTSIDE;
	assert_false(nat_rule_may_take(&rule, &key, &nobody));
}

TEST(test_damaged, "damaged")
{
	struct message list = {0}, message;
	struct legacy table;

	legacy_make(&table);
	load(&list, NFT_PAYLOAD_NETWORK_HEADER, 16, 4, NFT_REG_1);
	compare(&list, NFT_REG_1, NFT_CMP_EQ, "\xc0\x00\x02\x01", 4);
	load_port(&list);
	lookup(&list, NFT_REG_1);
	compare_port(&list, NFT_CMP_EQ, 8080);
	dnat(&list);
	message = whole(&list);
	for (int i = 0; i < DAMAGED_RUNS; i++) {
		size_t size = message.size - next_random() % 2 * (next_random() % message.size);
		uint8_t *rule_bytes = damage(message.bytes, size);
		uint8_t *table_bytes = damage(&table, sizeof(table));
		struct nat_rule rule;

		nft_rule_parse(NFPROTO_IPV4, (struct bytes){rule_bytes, size}, &rule);
		parse_chain(table_bytes, 0);
		parse_chain(table_bytes, offsetof(struct legacy, dnat));
		parse_chain(table_bytes, next_random() % (2 * sizeof(table)));
		free(rule_bytes);
		free(table_bytes);
	}
}
