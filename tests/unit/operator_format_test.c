/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operator_format_test.c - addresses, times and numbers for people, and the words of connections.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "lib/ports.h"
#include "operator/flow_words.h"
#include "operator/print/format.h"

static const char *endpoint(const char *address, uint16_t port)
{
	static char text[ENDPOINT_TEXT_SIZE];
	uint8_t bytes[CNI_ADDRESS_SIZE];

	assert_int_equal(cni_address_parse(address, bytes), 0);
	return format_endpoint(bytes, port, text);
}

TEST(test_endpoints, "endpoints")
{
	char text[ENDPOINT_TEXT_SIZE];

	assert_string_equal(endpoint("192.0.2.1", 80), "192.0.2.1:80");
	assert_string_equal(endpoint("255.255.255.255", 65535), "255.255.255.255:65535");
	assert_string_equal(endpoint("0.0.0.0", 0), "0.0.0.0:0");
	assert_string_equal(endpoint("2001:db8::1", 443), "[2001:db8::1]:443");
	assert_string_equal(endpoint("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535),
			    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
	assert_string_equal(format_host_port(cni_address_any_ipv4, 80, text), "*:80");
	assert_string_equal(format_host_port(cni_address_any_ipv6, 80, text), "[::]:80");
}

TEST(test_numbers, "numbers")
{
	char text[NUMBER_TEXT_SIZE];

	assert_string_equal(format_number(0, text), "0");
	assert_string_equal(format_number(999, text), "999");
	assert_string_equal(format_number(1000, text), "1,000");
	assert_string_equal(format_number(48113, text), "48,113");
	assert_string_equal(format_number(123456789, text), "123,456,789");
	assert_string_equal(format_number(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

TEST(test_durations, "durations")
{
	static const struct {
		uint64_t seconds;
		const char *text;
	} rows[] = {{0, "0s"},     {59, "59s"},     {60, "1m"},
		    {3599, "59m"}, {3600, "1h"},    {86399, "23h"},
		    {86400, "1d"}, {864000, "10d"}, {UINT64_MAX, "999999d"}};
	char text[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(format_duration(rows[i].seconds, text), rows[i].text);
}

TEST(test_times, "times")
{
	char text[TIME_TEXT_SIZE];

	assert_string_equal(format_time(1763784067, text), "2025-11-22T04:01:07Z");
	assert_string_equal(format_time(0, text), "1970-01-01T00:00:00Z");
	/* No calendar has it; whatever it says ends. */
	assert_true(strlen(format_time(UINT64_MAX, text)) < TIME_TEXT_SIZE);
	assert_true(strlen(format_time(1ULL << 60, text)) < TIME_TEXT_SIZE);
}

#define BOTH_FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)
#define ASSURED (STATE_REPLIED | STATE_ASSURED)

TEST(test_states, "states")
{
	static const struct {
		enum protocol protocol;
		__u32 state;
		const char *word;
	} rows[] = {
		{PROTOCOL_TCP, 0, "syn"},
		{PROTOCOL_TCP, STATE_REPLIED, "syn-recv"},
		{PROTOCOL_TCP, ASSURED | STATE_DATA, "established"},
		{PROTOCOL_TCP, ASSURED | STATE_FIN_INSIDE, "fin-wait"},
		{PROTOCOL_TCP, ASSURED | STATE_FIN_OUTSIDE, "fin-wait"},
		{PROTOCOL_TCP, ASSURED | BOTH_FINS, "time-wait"},
		{PROTOCOL_TCP, ASSURED | STATE_AWAITED_INSIDE, "close"},
		{PROTOCOL_TCP, STATE_AWAITED_OUTSIDE, "close"},
		{PROTOCOL_UDP, 0, "unreplied"},
		{PROTOCOL_UDP, STATE_REPLIED, "replied"},
		{PROTOCOL_UDP, ASSURED, "established"},
		{PROTOCOL_SCTP, STATE_REPLIED, "replied"},
		{PROTOCOL_ICMP, 0, "unreplied"},
		{(enum protocol)200, ~0U, "established"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum flow_state found = flow_state_of(rows[i].protocol, rows[i].state);

		assert_string_equal(flow_state_word(found), rows[i].word);
		assert_true(flow_state_matches(found, rows[i].protocol, rows[i].state));
		assert_true(flow_state_matches(FLOW_STATE_ANY, rows[i].protocol, rows[i].state));
		assert_int_equal(
			flow_state_matches(FLOW_STATE_HALF_OPEN, rows[i].protocol, rows[i].state),
			!(rows[i].state & STATE_ASSURED));
	}
}

/* What no program writes is shown as what it is, and never looked up beyond a table. */
TEST(test_unknown_words, "unknown words")
{

	assert_string_equal(protocol_word(PROTOCOL_SCTP), "sctp");
	assert_string_equal(protocol_word(255), "255");
	assert_int_equal(protocol_parse("icmpv6"), PROTOCOL_ICMPV6);
	assert_int_equal(protocol_parse("udplite"), PROTOCOL_UDPLITE);
	assert_int_equal(protocol_parse("255"), 0);
	assert_string_equal(flow_kind_word(FLOW_FOREIGN), "foreign");
	assert_string_equal(flow_kind_word((enum flow_kind)0), "unknown");
	assert_string_equal(flow_kind_word((enum flow_kind)255), "unknown");
}

TEST(test_paths, "paths")
{
	static const struct {
		enum flow_path out, in;
		__u32 state;
		__u8 begun_inside;
		const char *out_word, *in_word;
	} rows[] = {
		{PATH_OUT, PATH_CONTAINER, ASSURED, 0, "fast", "fast"},
		{PATH_STACK, PATH_CONTAINER, ASSURED, 0, "stack", "fast"},
		{PATH_UNDECIDED, PATH_UNDECIDED, ASSURED, 0, "deciding", "deciding"},
		{(enum flow_path)77, (enum flow_path)255, ASSURED, 1, "deciding", "deciding"},
		{PATH_UNDECIDED, PATH_UNDECIDED, 0, 0, "-", "stack"},
		{PATH_UNDECIDED, PATH_UNDECIDED, 0, 1, "stack", "-"},
		{PATH_UNDECIDED, PATH_CONTAINER, 0, 0, "-", "fast"},
		{PATH_UNDECIDED, PATH_UNDECIDED, STATE_REPLIED, 0, "stack", "stack"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct connection connection = {.path = {rows[i].out, rows[i].in},
						.state = rows[i].state,
						.begun_inside = rows[i].begun_inside};

		assert_string_equal(flow_way_path_word(flow_way_path_of(&connection, OUTWARDS)),
				    rows[i].out_word);
		assert_string_equal(flow_way_path_word(flow_way_path_of(&connection, INWARDS)),
				    rows[i].in_word);
	}
}
