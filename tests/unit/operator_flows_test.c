/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operator_flows_test.c - options of the verbs, which connections they leave, and the biggest. */
#include "cni_testing.h"

#include <stdio.h>

#include "operator/view/flow_select.h"
#include "operator/options.h"

#define WORDS 8

/* "--port 80/tcp": the index of the first operand, or -1 */
static int parse(const char *text, unsigned int set, struct options *options)
{
	struct command_line line = options_of(set);
	static char copy[128]; /* options point into it */
	char *words[WORDS + 1] = {"verb"};
	int count = 1, result;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok(copy, " "); word && count < WORDS; word = strtok(NULL, " "))
		words[count++] = word;
	*options = (struct options){0};
	result = command_line_read(&line, count, words, options, &fault);
	assert_int_equal(result < 0, cni_error_is_set(&fault));
	cni_error_release(&fault);
	return result;
}

TEST(test_bad_options, "bad options")
{
	static const char *const bad[] = {
		"--port 0",
		"--port 65536",
		"--port",
		"--port x",
		"--port 80/",
		"--port /tcp",
		"--port 80/quic",
		"--port 99999999999999",
		"--client 10.0.0.0/33",
		"--client ::/129",
		"--client host",
		"--protocol ip",
		"--state any",
		"--state SYN",
		"--state syn|syn-recv",
		"--state=",
		"--path slow",
		"--top 0",
		"--top -1",
		"--top 1k",
		"--by size",
		"--color blue",
		"--watch",
		"--json=1",
		"-x",
		"--wide",
	};
	struct options options;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i], OPTIONS_OUTPUT | OPTIONS_PORTS | OPTIONS_FLOWS, &options) >= 0)
			fail_msg("accepted: %s", bad[i]);
}

TEST(test_options, "options")
{
	struct options options;

	assert_int_equal(parse("--port 53/udp --json", OPTIONS_PORTS | OPTIONS_OUTPUT, &options),
			 4);
	assert_int_equal(options.port.port, 53);
	assert_int_equal(options.port.protocol, PROTOCOL_UDP);
	assert_true(options.json);
	assert_int_equal(parse("--watch", OPTIONS_INSTALL, &options), 2);
	assert_int_equal(options.watch, 60);
	assert_int_equal(parse("--watch=5 --alias", OPTIONS_INSTALL, &options), 3);
	assert_int_equal(options.watch, 5);
	assert_int_equal(parse("--prometheus=/run/x", OPTIONS_STATS, &options), 2);
	assert_true(options.prometheus);
	assert_string_equal(options.prometheus_file, "/run/x");
	assert_int_equal(parse("--top 5", OPTIONS_FLOWS, &options), 3);
	assert_int_equal(options.top, 5);
	assert_int_equal(parse("--by packets --top=7", OPTIONS_FLOWS, &options), 4);
	assert_int_equal(options.sort_by, SORT_PACKETS);
	assert_int_equal(options.top, 7);
	assert_int_equal(parse("--he", 0, &options), 2);
	assert_true(options.help);
}

/* The words of an option stand in the order of its numbers. */
TEST(test_choices, "choices")
{
	static const char *const colors[] = {"auto", "always", "never"};
	static const char *const sorts[] = {"packets", "bytes", "client", "container"};
	struct options options;
	char text[64];

	for (int i = FLOW_STATE_ANY + 1; i < FLOW_STATE_COUNT; i++) {
		snprintf(text, sizeof(text), "--state %s", flow_state_word((enum flow_state)i));
		assert_int_equal(parse(text, OPTIONS_FLOWS, &options), 3);
		assert_int_equal(options.state, i);
	}
	for (int i = WAY_PATH_ANY + 1; i < WAY_PATH_NONE; i++) {
		snprintf(text, sizeof(text), "--path %s",
			 flow_way_path_word((enum flow_way_path)i));
		assert_int_equal(parse(text, OPTIONS_FLOWS, &options), 3);
		assert_int_equal(options.path, i);
	}
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "--by %s", sorts[i]);
		assert_int_equal(parse(text, OPTIONS_FLOWS, &options), 3);
		assert_int_equal(options.sort_by, SORT_PACKETS + i);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "--color %s", colors[i]);
		assert_int_equal(parse(text, OPTIONS_OUTPUT, &options), 3);
		assert_int_equal(options.color, COLOR_AUTO + i);
	}
}

/* From 192.0.2.10:40000 to the host's 192.0.2.1:8080, which is 10.88.0.2:80 */
static struct flow_record make(void)
{
	struct flow_record flow = {
		.key = {.inside_port = 80, .outside_port = 40000, .protocol = PROTOCOL_TCP},
		.connection = {.external_port = 8080,
			       .peer_port = 40000,
			       .kind = FLOW_MAPPING,
			       .state = STATE_REPLIED | STATE_ASSURED,
			       .path = {PATH_STACK, PATH_OUT}},
	};

	cni_address_parse("192.0.2.10", flow.key.outside);
	cni_address_parse("10.88.0.2", flow.key.inside);
	cni_address_parse("192.0.2.1", flow.connection.external_address);
	return flow;
}

TEST(test_filters, "filters")
{
	static const struct {
		const char *options;
		bool matches;
	} rows[] = {
		{"", true},
		{"--port 8080", true},
		{"--port 8080/tcp", true},
		{"--port 8080/udp", false},
		{"--port 80", false},
		{"--port 40000", false},
		{"--client 192.0.2.10", true},
		{"--client 192.0.2.11", false},
		{"--client 192.0.2.8/29", true},
		{"--client 192.0.2.0/29", false},
		{"--client 0.0.0.0/0", true},
		{"--client ::/0", false},
		{"--client 192.0.2.1", false},
		{"--protocol tcp", true},
		{"--protocol icmp", false},
		{"--state established", true},
		{"--state half-open", false},
		{"--path stack", true},
		{"--path fast", true},
		{"--path deciding", false},
		{"--port 8080 --client 192.0.2.10 --path fast", true},
		{"--port 8080 --client 192.0.2.11 --path fast", false},
	};
	struct flow_record flow = make();
	struct options options;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(parse(rows[i].options, OPTIONS_PORTS | OPTIONS_FLOWS, &options) > 0);
		if (flow_filter_matches(&options, &flow.key, &flow.connection) != rows[i].matches)
			fail_msg("wrong: %s", rows[i].options);
	}
}

TEST(test_ranges, "ranges")
{
	static const struct {
		const char *range, *address;
		bool holds;
	} rows[] = {
		{"2001:db8::/32", "2001:db8:ffff::1", true},
		{"2001:db8::/33", "2001:db8:8000::", false},
		{"2001:db8::1/128", "2001:db8::1", true},
		{"2001:db8::1/128", "2001:db8::2", false},
		{"10.1.2.3/31", "10.1.2.2", true},
		{"10.1.2.3/31", "10.1.2.4", false},
		{"255.255.255.255/32", "255.255.255.255", true},
		{"128.0.0.0/1", "255.0.0.0", true},
		{"128.0.0.0/1", "127.0.0.0", false},
		{"::/0", "fd00::1", true},
		{"::/0", "10.0.0.1", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct range_option range = {.is_set = true};
		uint8_t address[CNI_ADDRESS_SIZE];

		assert_int_equal(
			cni_address_parse_cidr(rows[i].range, range.address, &range.prefix_length),
			0);
		assert_int_equal(cni_address_parse(rows[i].address, address), 0);
		if (cni_address_has_prefix(address, range.address, range.prefix_length) !=
		    rows[i].holds)
			fail_msg("%s %s", rows[i].range, rows[i].address);
	}
}

/* Against sorting them all. */
TEST(test_top, "top")
{
	uint32_t sizes[500];

	srand(1);
	for (uint32_t limit = 1; limit < 600; limit += 37) {
		struct flow_top top = {.limit = limit, .sort_by = SORT_PACKETS};
		size_t bigger;

		for (size_t i = 0; i < 500; i++) {
			struct flow_record flow = make();

			sizes[i] = (uint32_t)(rand() % 1000);
			flow.connection.packets[INWARDS] = sizes[i] / 2;
			flow.connection.packets[OUTWARDS] = sizes[i] - sizes[i] / 2;
			flow_top_add(&top, &flow.key, &flow.connection);
		}
		flow_top_sort(&top);
		assert_int_equal(top.count, limit < 500 ? limit : 500);
		for (size_t i = 0; i < top.count; i++) {
			uint32_t size = top.list[i].connection.packets[INWARDS] +
					top.list[i].connection.packets[OUTWARDS];

			bigger = 0;
			for (size_t j = 0; j < 500; j++)
				bigger += sizes[j] > size;
			assert_true(bigger <= i);
			assert_true(!i ||
				    size <= top.list[i - 1].connection.packets[INWARDS] +
						    top.list[i - 1].connection.packets[OUTWARDS]);
		}
		flow_top_release(&top);
	}
}
