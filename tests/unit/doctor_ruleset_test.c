/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor_ruleset_test.c - what rules do with a packet, and who takes it in the container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "operator/doctor/iptables_save.h"
#include "operator/doctor/listening.h"
#include "operator/doctor/remedy_word.h"
#include "operator/doctor/ruleset.h"
#include "operator/doctor/tc_modules.h"

static struct forwarded new_packet(void)
{
	struct forwarded packet = {.ipv4 = true,
				   .destination_known = true,
				   .in = "eth0",
				   .out = "cni0",
				   .protocol = PROTOCOL_TCP,
				   .destination_port = 80};

	cni_address_parse("10.88.0.2", packet.destination);
	return packet;
}

/* The fate of a new packet where iptables-save prints this. */
static enum fate fate_by_iptables(const char *rules)
{
	struct forwarded packet = new_packet();
	json_t *ruleset = json_array();
	char *text = strdup(rules);
	enum fate fate;

	iptables_save_parse(ruleset, text, "ip", "filter");
	fate = ruleset_judge(ruleset, &packet).fate;
	json_decref(ruleset);
	free(text);
	return fate;
}

#define DROPPING ":FORWARD DROP [0:0]\n:X - [0:0]\n"
#define ACCEPTING ":FORWARD ACCEPT [0:0]\n:X - [0:0]\n"

static void test_policy(void **state)
{
	assert_int_equal(FATE_ACCEPTED, fate_by_iptables(""));
	assert_int_equal(FATE_ACCEPTED, fate_by_iptables(ACCEPTING));
	assert_int_equal(FATE_DROPPED, fate_by_iptables(DROPPING));
	/* A name may have any bytes; what stands behind it counts all the same. */
	assert_int_equal(FATE_DROPPED, fate_by_iptables(":\xff - [0:0]\n" DROPPING));
}

static void test_conditions(void **state)
{
	static const struct {
		const char *rule;
		enum fate fate;
	} rows[] = {
		{"-A FORWARD -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -i eth0 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -i eth+ -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -i eth1 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD ! -i eth1 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD ! -i eth0 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -d 10.88.0.0/16 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -d 10.88.0.3/32 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -p tcp -m tcp --dport 81:90 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -p tcp -m multiport --dports 22,80:90 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -p udp -m udp --dport 80 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -m conntrack --ctstate NEW -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -m conntrack --ctstatus DNAT -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -m conntrack --ctorigdstport 8080 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -m comment --comment \"a -j DROP b\" -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -m mark --mark 0x7 -j ACCEPT", FATE_MAY_BE_DROPPED},
		{"-A FORWARD -s 192.0.2.0/24 -j ACCEPT", FATE_MAY_BE_DROPPED},
		{"-A FORWARD -m rt --rt-type 0 -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -j X\n-A X -i eth0 -j ACCEPT", FATE_ACCEPTED},
		{"-A FORWARD -j X\n-A X -j RETURN\n-A X -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -g X\n-A FORWARD -j ACCEPT", FATE_DROPPED},
		{"-A FORWARD -j X\n-A X -j X", FATE_DROPPED},
		{"-A FORWARD -j LOG --log-prefix \"-j ACCEPT\"", FATE_DROPPED},
		{"-A FORWARD", FATE_DROPPED},
		{"-A", FATE_DROPPED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), DROPPING "%s\n", rows[i].rule);
		if (fate_by_iptables(text) != rows[i].fate)
			fail_msg("%s: %d", rows[i].rule, fate_by_iptables(text));
	}
	assert_int_equal(FATE_DROPPED,
			 fate_by_iptables(ACCEPTING "-A FORWARD -o cni0 -j REJECT\n"));
	assert_int_equal(FATE_MAY_BE_DROPPED,
			 fate_by_iptables(ACCEPTING "-A FORWARD -m mark --mark 7 -j DROP\n"));
}

/* What a container sends to anybody, and what answers. */
static void test_outgoing(void **state)
{
	static const struct {
		const char *rule;
		enum fate fate, reply;
	} rows[] = {
		{"-A FORWARD -i cni0 -j ACCEPT", FATE_ACCEPTED, FATE_DROPPED},
		{"-A FORWARD -s 10.88.0.0/16 -j ACCEPT", FATE_ACCEPTED, FATE_MAY_BE_DROPPED},
		{"-A FORWARD -i cni0 -p tcp -m tcp --dport 443 -j ACCEPT", FATE_MAY_BE_DROPPED,
		 FATE_DROPPED},
		{"-A FORWARD -d 192.0.2.0/24 -j ACCEPT", FATE_MAY_BE_DROPPED, FATE_DROPPED},
		{"-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT", FATE_DROPPED,
		 FATE_ACCEPTED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct forwarded packet = {.ipv4 = true,
					   .source_known = true,
					   .in = "cni0",
					   .out = "eth0",
					   .protocol = PROTOCOL_TCP};
		struct forwarded reply;
		json_t *ruleset = json_array();
		char text[256];

		cni_address_parse("10.88.0.2", packet.source);
		reply = forwarded_reply(&packet);
		snprintf(text, sizeof(text), DROPPING "%s\n", rows[i].rule);
		iptables_save_parse(ruleset, text, "ip", "filter");
		assert_int_equal(rows[i].fate, ruleset_judge(ruleset, &packet).fate);
		assert_int_equal(rows[i].reply, ruleset_judge(ruleset, &reply).fate);
		json_decref(ruleset);
	}
}

/* Values that are not what they should be. */
static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"[]",
		"[1, null, {\"rule\": 1}, {\"chain\": []}]",
		"[{\"chain\": {\"family\": \"ip\", \"hook\": \"forward\"}}]",
		"[{\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"f\", \"hook\":"
		" \"forward\"}}, {\"rule\": {\"family\": \"ip\", \"table\": \"t\", \"chain\": "
		"\"f\","
		" \"expr\": [{\"match\": 1}, {\"vmap\": {\"data\": {\"set\": [1, [2]]}}}]}}]",
	};
	struct forwarded packet = new_packet();

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *ruleset = json_loads(texts[i], 0, NULL);

		assert_non_null(ruleset);
		assert_int_equal(FATE_ACCEPTED, ruleset_judge(ruleset, &packet).fate);
		assert_null(ruleset_find_conntrack_rule(ruleset, 80));
		json_decref(ruleset);
	}
}

static enum listening listening_with(const char *address, bool both)
{
	struct host_socket one = {.protocol = PROTOCOL_TCP, .port = 80, .both_families = both};
	struct socket_list list = {&one, 1};
	uint8_t container[CNI_ADDRESS_SIZE];
	const uint8_t *where;

	cni_address_parse("10.88.0.2", container);
	cni_address_parse(address, one.address);
	return listening_at(&list, PROTOCOL_TCP, container, 80, &where);
}

static void test_listening(void **state)
{
	struct socket_list none = {NULL, 0};
	const uint8_t *where;

	assert_int_equal(LISTENING, listening_with("0.0.0.0", false));
	assert_int_equal(LISTENING, listening_with("::", true));
	assert_int_equal(LISTENING, listening_with("10.88.0.2", false));
	assert_int_equal(LISTENING_ELSEWHERE, listening_with("::", false));
	assert_int_equal(LISTENING_ELSEWHERE, listening_with("10.88.0.3", false));
	assert_int_equal(LISTENING_AT_LOOPBACK, listening_with("127.0.0.1", false));
	assert_int_equal(LISTENING_NOT,
			 listening_at(&none, PROTOCOL_TCP, cni_address_any_ipv4, 80, &where));
	assert_null(where);
}

/* The kernel of this machine has what is asked for, so only the decision is tested. */
static void test_modules(void **state)
{
	assert_null(tc_module_missing(""));
	assert_null(tc_module_missing("kernel/net/sched/sch_ingress.ko\ncls_bpf 24576 0\n"));
	assert_string_equal("cls_bpf", tc_module_missing("kernel/net/sched/sch_ingress.ko:\n"));
	assert_string_equal("sch_ingress", tc_module_missing("ext4 24576 0 - Live\n"));
}

static void test_remedy_words(void **state)
{
	char longest[REMEDY_WORD_SIZE];

	assert_string_equal("eth0.5@x", remedy_word("eth0.5@x").text);
	assert_string_equal("/run/netns/a+b_c-d:1", remedy_word("/run/netns/a+b_c-d:1").text);
	assert_string_equal("''", remedy_word("").text);
	assert_string_equal("';reboot;'", remedy_word(";reboot;").text);
	assert_string_equal("'$(a)`b` *'", remedy_word("$(a)`b` *").text);
	assert_string_equal("''\\'';a;'\\'''", remedy_word("';a;'").text);
	assert_string_equal("'a?reboot?'", remedy_word("a\nreboot\x7f").text);
	memset(longest, '\'', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal("''", remedy_word(longest).text);
	longest[REMEDY_WORD_SIZE / 4 - 1] = '\0';
	assert_int_equal(4 * (REMEDY_WORD_SIZE / 4 - 1) + 2, strlen(remedy_word(longest).text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),       cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_outgoing),     cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_listening),    cmocka_unit_test(test_modules),
		cmocka_unit_test(test_remedy_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
