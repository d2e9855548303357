/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* taken_ports_test.c - which listeners of the host are in the way, and how that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/taken_ports.h"

static struct port_claim claim(enum protocol protocol, const char *address, uint16_t port)
{
	struct port_claim made = {.key = {.protocol = protocol, .host_port = port}};

	assert_int_equal(cni_address_parse(address, made.key.host_address), 0);
	return made;
}

static struct host_socket listener(enum protocol protocol, const char *address, uint16_t port)
{
	struct host_socket made = {.protocol = protocol, .port = port};

	assert_int_equal(cni_address_parse(address, made.address), 0);
	return made;
}

/* Whether a listener there is in the way of a mapping here. */
static bool meets(const char *mapped, const char *listens, bool both_families, bool localhost)
{
	struct port_claim one = claim(PROTOCOL_TCP, mapped, 80);
	struct host_socket other = listener(PROTOCOL_TCP, listens, 80);

	one.localhost = localhost;
	other.both_families = both_families;
	return claims_take_from(&one, 1, &other);
}

static void test_addresses(void **state)
{
	assert_true(meets("0.0.0.0", "0.0.0.0", false, false));
	assert_true(meets("0.0.0.0", "192.0.2.1", false, false));
	assert_true(meets("192.0.2.1", "0.0.0.0", false, false));
	assert_true(meets("192.0.2.1", "192.0.2.1", false, false));
	assert_true(meets("::", "2001:db8::1", false, false));
	assert_true(meets("2001:db8::1", "::", false, false));
	assert_false(meets("192.0.2.1", "192.0.2.2", false, true));
	assert_false(meets("0.0.0.0", "::", false, true));
	assert_false(meets("192.0.2.1", "::", false, true));
	assert_false(meets("::", "0.0.0.0", false, true));
	assert_true(meets("0.0.0.0", "::", true, false));
	assert_true(meets("192.0.2.1", "::", true, false));
}

static void test_loopback(void **state)
{
	assert_true(meets("0.0.0.0", "127.0.0.53", false, true));
	assert_false(meets("0.0.0.0", "127.0.0.53", false, false));
	assert_true(meets("::", "::1", false, true));
	assert_false(meets("::", "::1", false, false));
	assert_true(meets("127.0.0.1", "127.0.0.1", false, true));
	assert_true(meets("127.0.0.1", "0.0.0.0", false, true));
}

static int compare_claims(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct portmap_key));
}

/* Found among many, by protocol and port, whatever the bytes of the port say about order. */
static void test_among_many(void **state)
{
	struct port_claim claims[2000];
	struct host_socket other;

	for (uint16_t i = 0; i < 2000; i++)
		claims[i] = claim(i % 2 ? PROTOCOL_TCP : PROTOCOL_UDP,
				  i % 4 < 2 ? "192.0.2.1" : "0.0.0.0", 100 + 2 * (i / 4));
	qsort(claims, 2000, sizeof(claims[0]), compare_claims);
	for (uint16_t port = 0; port < 1200; port++) {
		bool wanted = port >= 100 && port < 1100 && port % 2 == 0;

		other = listener(PROTOCOL_TCP, "198.51.100.1", port);
		assert_int_equal(claims_take_from(claims, 2000, &other), wanted);
		other = listener(PROTOCOL_SCTP, "198.51.100.1", port);
		assert_false(claims_take_from(claims, 2000, &other));
	}
	assert_false(claims_take_from(NULL, 0, &other));
}

static struct taken_port taken(int pid, enum protocol protocol, const char *address, uint16_t port)
{
	struct taken_port made = {
		.socket = listener(protocol, address, port),
		.holder = {.pid = pid, .name = "nginx"},
	};

	return made;
}

/* What is said of the first process. */
static const char *describe(struct taken_port *ports, size_t count)
{
	static char text[TAKEN_PORTS_TEXT_SIZE];

	count = taken_ports_sort(ports, count);
	taken_ports_describe(ports, taken_ports_of_first(ports, count), text);
	return text;
}

static void test_one_port(void **state)
{
	struct taken_port ports[] = {taken(77, PROTOCOL_TCP, "0.0.0.0", 80)};

	assert_string_equal(describe(ports, 1),
			    "nginx (pid 77) already holds host port 80/tcp at 0.0.0.0");
}

static void test_nobody(void **state)
{
	struct taken_port ports[] = {taken(0, PROTOCOL_UDP, "::", 53)};

	assert_string_equal(describe(ports, 1),
			    "a process that /proc does not show, or the kernel, already holds host"
			    " port 53/udp at ::");
}

/* Ranges, each address once, the same port of several sockets once, other processes apart. */
static void test_several_ports(void **state)
{
	struct taken_port ports[] = {
		taken(77, PROTOCOL_TCP, "0.0.0.0", 8001), taken(78, PROTOCOL_TCP, "0.0.0.0", 8003),
		taken(77, PROTOCOL_TCP, "0.0.0.0", 8000), taken(77, PROTOCOL_UDP, "0.0.0.0", 8002),
		taken(77, PROTOCOL_TCP, "0.0.0.0", 8001), taken(77, PROTOCOL_TCP, "::1", 80),
		taken(77, PROTOCOL_TCP, "0.0.0.0", 8002), taken(77, PROTOCOL_TCP, "0.0.0.0", 443),
	};

	assert_string_equal(describe(ports, 8),
			    "nginx (pid 77) already holds host ports 80/tcp at ::1, 443/tcp,"
			    " 8000-8002/tcp, 8002/udp at 0.0.0.0");
}

/* However many there are, the text has its limit, and an end. */
static void test_very_many_ports(void **state)
{
	struct taken_port ports[1000];
	const char *text;

	for (uint16_t i = 0; i < 1000; i++) {
		ports[i] = taken(77, PROTOCOL_TCP, "2001:db8:1111:2222:3333:4444:5555:6666",
				 1000 + 2 * i);
		ports[i].socket.address[15] = (uint8_t)i;
		memset(ports[i].holder.name, 'n', sizeof(ports[i].holder.name) - 1);
	}
	text = describe(ports, 1000);
	assert_non_null(strstr(text, ", and 992 more"));
}

static void test_loopback_alone(void **state)
{
	struct taken_port ports[] = {taken(77, PROTOCOL_TCP, "127.0.0.1", 80),
				     taken(77, PROTOCOL_TCP, "::1", 80),
				     taken(77, PROTOCOL_TCP, "0.0.0.0", 81)};

	assert_true(taken_ports_are_loopback(ports, 2));
	assert_false(taken_ports_are_loopback(ports, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),       cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_among_many),      cmocka_unit_test(test_one_port),
		cmocka_unit_test(test_nobody),          cmocka_unit_test(test_several_ports),
		cmocka_unit_test(test_very_many_ports), cmocka_unit_test(test_loopback_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
