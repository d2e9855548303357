/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_request_test.c - port mappings, and what they claim on the host.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "lib/cleanup.h"
#include "lib/ports.h"
#include "conf/request.h"

#define CONTAINER_IPV4 "10.0.0.2"
#define CONTAINER_IPV6 "fd00::2"
#define MANY 10000

struct claim_row {
	const char *name;
	const char *mappings; /* the value of runtimeConfig.portMappings */
	const char *families; /* the container's: "4", "6", "46", "" */
	int code;
	/* On success: every claim as "protocol hostIP hostPort>container:port " in the order
	 * of the map's key, then the warnings as "! text". Else a part of the message. */
	const char *expected;
};

#define ENTRY(fields) "[{" fields "}]"
#define TCP_80 "'hostPort':8080,'containerPort':80,'protocol':'tcp'"
#define TCP_80_AT(host_ip) ENTRY(TCP_80 ",'hostIP':'" host_ip "'")
#define HOST_PORT(value) ENTRY("'hostPort':" value ",'containerPort':80,'protocol':'tcp'")
#define CONTAINER_PORT(value) ENTRY("'hostPort':8080,'containerPort':" value ",'protocol':'tcp'")
#define PROTOCOL(value) ENTRY("'hostPort':8080,'containerPort':80,'protocol':" value)

static const struct claim_row claim_rows[] = {
	{"no list", "null", "46", 0, ""},
	{"an empty list", "[]", "46", 0, ""},
	{"an empty list and no address", "[]", "", 0, ""},
	{"one mapping", ENTRY(TCP_80), "4", 0, "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"keys in any case",
	 ENTRY("'HostPort':8080,'CONTAINERPORT':80,'Protocol':'tcp','hostip':'1.2.3.4'"), "4", 0,
	 "tcp 1.2.3.4 8080>10.0.0.2:80 "},
	{"go-cni's keys", ENTRY("'HostPort':8080,'ContainerPort':80,'Protocol':'udp','HostIP':''"),
	 "4", 0, "udp 0.0.0.0 8080>10.0.0.2:80 "},
	{"of hostPort and HostPort the later wins",
	 ENTRY("'hostPort':1,'HostPort':2,'containerPort':80,'protocol':'tcp'"), "4", 0,
	 "tcp 0.0.0.0 2>10.0.0.2:80 "},
	{"unknown keys of an entry are ignored", ENTRY(TCP_80 ",'x':[1]"), "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"hostPort missing", ENTRY("'containerPort':80,'protocol':'tcp'"), "4", 7,
	 "runtimeConfig.portMappings[0]: \"hostPort\" is missing, must be 1 to 65535"},
	{"hostPort null", HOST_PORT("null"), "4", 7, "\"hostPort\" is missing"},
	{"hostPort 0", HOST_PORT("0"), "4", 7, "\"hostPort\" is 0, must be 1 to 65535"},
	{"hostPort negative", HOST_PORT("-1"), "4", 7, "\"hostPort\" is -1"},
	{"containerPort missing", ENTRY("'hostPort':80,'protocol':'tcp'"), "4", 7,
	 "\"containerPort\" is missing"},
	{"containerPort null", CONTAINER_PORT("null"), "4", 7, "\"containerPort\" is missing"},
	{"containerPort 0", CONTAINER_PORT("0"), "4", 7, "\"containerPort\" is 0"},
	{"containerPort negative", CONTAINER_PORT("-80"), "4", 7, "\"containerPort\" is -80"},
	{"hostPort 1", HOST_PORT("1"), "4", 0, "tcp 0.0.0.0 1>10.0.0.2:80 "},
	{"hostPort 65535", HOST_PORT("65535"), "4", 0, "tcp 0.0.0.0 65535>10.0.0.2:80 "},
	{"hostPort 65536", HOST_PORT("65536"), "4", 7, "\"hostPort\" is 65536"},
	{"hostPort 2^32 + 80", HOST_PORT("4294967376"), "4", 7, "\"hostPort\" is 4294967376"},
	{"containerPort 65535", CONTAINER_PORT("65535"), "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:65535 "},
	{"containerPort 65536", CONTAINER_PORT("65536"), "4", 7, "\"containerPort\" is 65536"},
	{"hostPort \"80\"", HOST_PORT("\"80\""), "4", 6,
	 "runtimeConfig.portMappings[0]: \"hostPort\" must be an integer, found the string \"80\""},
	{"hostPort an array", HOST_PORT("[80]"), "4", 6, "found an array"},
	{"hostPort an object", HOST_PORT("{}"), "4", 6, "found an object"},
	{"hostPort true", HOST_PORT("true"), "4", 6, "found true"},
	{"hostPort 1.5", HOST_PORT("1.5"), "4", 6, "\"hostPort\" must be an integer"},
	{"containerPort \"80\"", CONTAINER_PORT("\"80\""), "4", 6, "\"containerPort\" must be"},
	{"protocol missing", ENTRY("'hostPort':8080,'containerPort':80"), "4", 7,
	 "\"protocol\" is missing, must be \"tcp\", \"udp\" or \"sctp\""},
	{"protocol empty", PROTOCOL("\"\""), "4", 7, "\"protocol\" is missing"},
	{"protocol null", PROTOCOL("null"), "4", 7, "\"protocol\" is missing"},
	{"protocol TCP", PROTOCOL("\"TCP\""), "4", 0, "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"protocol Udp", PROTOCOL("\"Udp\""), "4", 0, "udp 0.0.0.0 8080>10.0.0.2:80 "},
	{"protocol sctp", PROTOCOL("\"sctp\""), "4", 0, "sctp 0.0.0.0 8080>10.0.0.2:80 "},
	{"protocol SCTP", PROTOCOL("\"SCTP\""), "4", 0, "sctp 0.0.0.0 8080>10.0.0.2:80 "},
	{"protocol \"6\"", PROTOCOL("\"6\""), "4", 7, "\"protocol\" is \"6\", must be"},
	{"protocol sctpx", PROTOCOL("\"sctpx\""), "4", 7, "\"sctpx\""},
	{"protocol icmp", PROTOCOL("\"icmp\""), "4", 7, "\"protocol\" is \"icmp\""},
	{"protocol tcp,udp", PROTOCOL("\"tcp,udp\""), "4", 7, "\"tcp,udp\""},
	{"protocol with a blank", PROTOCOL("\" tcp\""), "4", 7, "\" tcp\""},
	{"protocol 6", PROTOCOL("6"), "4", 6, "\"protocol\" must be a string"},
	{"hostIP missing: both families of the container", ENTRY(TCP_80), "46", 0,
	 "tcp :: 8080>fd00::2:80 tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"hostIP empty", TCP_80_AT(""), "46", 0,
	 "tcp :: 8080>fd00::2:80 tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"hostIP null", ENTRY(TCP_80 ",'hostIP':null"), "4", 0, "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"IPv6 only: only IPv6 is mapped", ENTRY(TCP_80), "6", 0, "tcp :: 8080>fd00::2:80 "},
	{"hostIP 0.0.0.0 is IPv4 only", TCP_80_AT("0.0.0.0"), "46", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"hostIP :: is IPv6 only", TCP_80_AT("::"), "46", 0, "tcp :: 8080>fd00::2:80 "},
	{"hostIP ::ffff:0.0.0.0 is any IPv4", TCP_80_AT("::ffff:0.0.0.0"), "46", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"one IPv4 address", TCP_80_AT("192.0.2.1"), "46", 0, "tcp 192.0.2.1 8080>10.0.0.2:80 "},
	{"one IPv6 address", TCP_80_AT("2001:db8::1"), "46", 0, "tcp 2001:db8::1 8080>fd00::2:80 "},
	{"hostIP 127.0.0.1", TCP_80_AT("127.0.0.1"), "46", 0, "tcp 127.0.0.1 8080>10.0.0.2:80 "},
	{"hostIP 127.1.2.3", TCP_80_AT("127.1.2.3"), "4", 0, "tcp 127.1.2.3 8080>10.0.0.2:80 "},
	{"hostIP ::1", TCP_80_AT("::1"), "46", 0, "tcp ::1 8080>fd00::2:80 "},
	{"hostIP ::ffff:127.0.0.1", TCP_80_AT("::ffff:127.0.0.1"), "4", 0,
	 "tcp 127.0.0.1 8080>10.0.0.2:80 "},
	{"hostIP 127.0.0.1 and SCTP",
	 ENTRY("'hostPort':8080,'containerPort':80,'protocol':'sctp','hostIP':'127.0.0.1'"), "4", 0,
	 "sctp 127.0.0.1 8080>10.0.0.2:80 "},
	{"hostIP ::ffff:1.2.3.4", TCP_80_AT("::ffff:1.2.3.4"), "46", 0,
	 "tcp 1.2.3.4 8080>10.0.0.2:80 "},
	{"hostIP junk", TCP_80_AT("junk"), "4", 7,
	 "runtimeConfig.portMappings[0]: \"hostIP\" is \"junk\", which is no IP address"},
	{"hostIP a name", TCP_80_AT("localhost"), "4", 7, "\"localhost\", which is no IP address"},
	{"hostIP a range", TCP_80_AT("1.2.3.0/24"), "4", 7, "which is no IP address"},
	{"hostIP with a blank", TCP_80_AT(" 1.2.3.4"), "4", 7, "which is no IP address"},
	{"hostIP in brackets", TCP_80_AT("[::1]"), "6", 7, "which is no IP address"},
	{"hostIP with a zone", TCP_80_AT("fe80::1%eth0"), "6", 7, "which is no IP address"},
	{"hostIP link-local never matches", TCP_80_AT("fe80::1"), "6", 7, "nothing can be mapped"},
	{"hostIP multicast never matches", TCP_80_AT("224.0.0.1"), "4", 7, "nothing can be mapped"},
	{"hostIP IPv6 multicast never matches", TCP_80_AT("ff02::1"), "6", 7, "nothing can be"},
	{"hostIP broadcast never matches", TCP_80_AT("255.255.255.255"), "4", 7, "nothing can be"},
	{"hostIP a number", ENTRY(TCP_80 ",'hostIP':1"), "4", 6, "\"hostIP\" must be a string"},
	{"hostIP 0.0.0.0 and the container has no IPv4", TCP_80_AT("0.0.0.0"), "6", 0,
	 "! 1 port mapping with hostIP 0.0.0.0 skipped: the container has no IPv4 address"},
	{"hostIP :: and the container has no IPv6, other mappings stay",
	 "[{" TCP_80 "},{" TCP_80
	 ",'hostIP':'::'},{'hostPort':81,'containerPort':81,'protocol':'tcp','hostIP':'::'}]",
	 "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "
	 "! 2 port mappings with hostIP :: skipped: the container has no IPv6 address"},
	{"one IPv4 address and the container has no IPv4", TCP_80_AT("192.0.2.1"), "6", 7,
	 "tcp port 8080 of hostIP 192.0.2.1 cannot be mapped: the container has no IPv4 address"},
	{"one IPv6 address and the container has no IPv6", TCP_80_AT("2001:db8::1"), "4", 7,
	 "hostIP 2001:db8::1 cannot be mapped: the container has no IPv6 address"},
	{"mappings but no address at all", ENTRY(TCP_80), "", 0,
	 "! no port is mapped: prevResult has no IP address on this interface for them to lead to;"
	 " give the network \"ipam\""},
	{"the same entry twice is one mapping", "[{" TCP_80 "},{" TCP_80 "}]", "46", 0,
	 "tcp :: 8080>fd00::2:80 tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"the same entry in other words is one mapping",
	 "[{" TCP_80 ",'hostIP':'1.2.3.4'},{'HostPort':8080,'containerPort':80,'protocol':'TCP','"
	 "hostIP':'::ffff:1.2.3.4'}]",
	 "4", 0, "tcp 1.2.3.4 8080>10.0.0.2:80 "},
	{"hostIP empty and 0.0.0.0 with one target overlap",
	 "[{" TCP_80 "},{" TCP_80 ",'hostIP':'0.0.0.0'}]", "46", 0,
	 "tcp :: 8080>fd00::2:80 tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"hostIP empty and :: with one target: what was written is missed",
	 "[{" TCP_80 "},{" TCP_80 ",'hostIP':'::'}]", "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "
	 "! 1 port mapping with hostIP :: skipped: the container has no IPv6 address"},
	{"one host port to two targets",
	 "[{" TCP_80 "},{'hostPort':8080,'containerPort':81,'protocol':'tcp'}]", "4", 7,
	 "runtimeConfig.portMappings[0] and [1] contradict each other: host port 8080/tcp is "
	 "mapped "
	 "to container port 80 and to 81"},
	{"one port of one address to two targets",
	 "[{" TCP_80 ",'hostIP':'1.2.3.4'},{'hostPort':8080,'containerPort':81,'protocol':'tcp','"
	 "hostIP':'1.2.3.4'}]",
	 "4", 7, "portMappings[0] and [1] contradict"},
	{"hostIP empty and :: to two targets, though the container has no IPv6",
	 "[{" TCP_80 "},{'hostPort':8080,'containerPort':81,'protocol':'tcp','hostIP':'::'}]", "4",
	 7, "portMappings[0] and [1] contradict"},
	{"a contradiction is told in the order in which it was written",
	 "[{'hostPort':8080,'containerPort':81,'protocol':'tcp','hostIP':'0.0.0.0'},{'hostPort':1,'"
	 "containerPort':1,'protocol':'tcp'},{" TCP_80 "}]",
	 "46", 7,
	 "portMappings[0] and [2] contradict each other: host port 8080/tcp is mapped to container "
	 "port 81 and to 80"},
	{"any and one address on one port coexist",
	 "[{" TCP_80 "},{'hostPort':8080,'containerPort':81,'protocol':'tcp','hostIP':'1.2.3.4'}]",
	 "4", 0, "tcp 0.0.0.0 8080>10.0.0.2:80 tcp 1.2.3.4 8080>10.0.0.2:81 "},
	{"tcp and udp are apart",
	 "[{" TCP_80 "},{'hostPort':8080,'containerPort':81,'protocol':'udp'}]", "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 udp 0.0.0.0 8080>10.0.0.2:81 "},
	{"IPv4 and IPv6 are apart",
	 "[{" TCP_80 ",'hostIP':'0.0.0.0'},{'hostPort':8080,'containerPort':81,'protocol':'tcp','"
	 "hostIP':'::'}]",
	 "46", 0, "tcp :: 8080>fd00::2:81 tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"Nomad: every port as tcp and udp",
	 "[{" TCP_80 "},{'HostPort':8080,'ContainerPort':80,'Protocol':'udp','HostIP':''}]", "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 udp 0.0.0.0 8080>10.0.0.2:80 "},
	{"two host ports to one target",
	 "[{" TCP_80 "},{'hostPort':8081,'containerPort':80,'protocol':'tcp'}]", "4", 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 tcp 0.0.0.0 8081>10.0.0.2:80 "},
	{"the list is an object", "{}", "4", 6,
	 "runtimeConfig: \"portMappings\" must be an array, found an object"},
	{"the list is a string", "\"8080:80\"", "4", 6, "must be an array"},
	{"an entry is null", "[{" TCP_80 "},null]", "4", 6,
	 "runtimeConfig.portMappings[1] must be an object, found null"},
	{"an entry is a string", "['8080:80/tcp']", "4", 6, "must be an object"},
	{"the wrong entry is named", "[{" TCP_80 "},{'hostPort':8081,'protocol':'tcp'}]", "4", 7,
	 "runtimeConfig.portMappings[1]: \"containerPort\""},
};

static json_t *config_with(json_t *mappings)
{
	json_t *config = json_pack("{s:{s:o}}", "runtimeConfig", "portMappings", mappings);

	assert_non_null(config);
	return config;
}

/* The container's address of a family, or NULL if it has none. */
static const uint8_t *container_address(const char *families, char family,
					uint8_t address[CNI_ADDRESS_SIZE])
{
	if (!strchr(families, family))
		return NULL;
	assert_int_equal(
		cni_address_parse(family == '4' ? CONTAINER_IPV4 : CONTAINER_IPV6, address), 0);
	return address;
}

static int parse_and_claim(struct conf *conf, const json_t *config, const char *families)
{
	uint8_t ipv4[CNI_ADDRESS_SIZE];
	uint8_t ipv6[CNI_ADDRESS_SIZE];

	if (conf_parse(conf, config, "", &fault))
		return -1;
	return conf_claim_ports(conf, container_address(families, '4', ipv4),
				container_address(families, '6', ipv6), &fault);
}

static void describe(const struct conf *conf, char *text, size_t size)
{
	const struct port_claim *claims = conf->ports;
	char host[CNI_ADDRESS_TEXT_SIZE];
	char container[CNI_ADDRESS_TEXT_SIZE];
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < conf->port_count; i++)
		length +=
			snprintf(text + length, size - length, "%s %s %u>%s:%u ",
				 protocol_word(claims[i].key.protocol),
				 cni_address_format(claims[i].key.host_address, host),
				 claims[i].key.host_port,
				 cni_address_format(claims[i].portmap.container_address, container),
				 claims[i].portmap.container_port);
	for (size_t i = 0; i < json_array_size(conf->warnings); i++)
		length += snprintf(text + length, size - length, "! %s",
				   json_string_value(json_array_get(conf->warnings, i)));
}

ROWS(claim_rows, claims_what_the_mappings_say)
{
	cleanup_json json_t *config = config_with(json_of(row->mappings));
	struct conf conf = {0};
	char text[512];

	assert_int_equal(parse_and_claim(&conf, config, row->families), row->code ? -1 : 0);
	describe(&conf, text, sizeof(text));
	if (!row->code)
		assert_string_equal(text, row->expected);
	assert_error(row->code, row->expected);
	conf_release(&conf);
}

/* What is reserved, and that SCTP cannot be. */
TEST(reserved_ports_are_marked, "reserved ports are marked")
{
	cleanup_json json_t *config = config_with(
		json_of("[{" TCP_80 "},{'hostPort':9,'containerPort':9,'protocol':'sctp'}]"));
	struct conf conf = {0};

	json_object_set_new(config, "reserveHostPorts", json_true());
	assert_int_equal(parse_and_claim(&conf, config, "4"), 0);
	assert_int_equal(conf.port_count, 2);
	assert_true(conf.ports[0].portmap.reserved_on_host);
	assert_int_equal(json_array_size(conf.warnings), 1);
	assert_non_null(
		strstr(json_string_value(json_array_get(conf.warnings, 0)), "no effect on SCTP"));
	conf_release(&conf);
}

#define MAPS(port, protocol) \
	ENTRY("'hostPort':" #port ",'containerPort':80,'protocol':'" protocol "'")

static const struct {
	const char *name;
	const char *never; /* the value of neverPorts; NULL: not given */
	const char *mappings;
	int code;
	const char *expected; /* as of struct claim_row */
} never_rows[] = {
	{"neverPorts empty", "[]", MAPS(10250, "tcp"), 0, "tcp 0.0.0.0 10250>10.0.0.2:80 "},
	{"neverPorts of others", "\"22,6443,10250-10260\"", MAPS(8080, "tcp"), 0,
	 "tcp 0.0.0.0 8080>10.0.0.2:80 "},
	{"neverPorts in place of the kubelet's", "22", MAPS(10250, "tcp"), 0,
	 "tcp 0.0.0.0 10250>10.0.0.2:80 "},
	{"neverPorts a number", "22", MAPS(22, "tcp"), 7,
	 "runtimeConfig.portMappings[0]: \"hostPort\" is 22, one of \"neverPorts\""},
	{"neverPorts of any protocol", "\"22,6443,10250-10260\"", MAPS(10260, "udp"), 7,
	 "runtimeConfig.portMappings[0]: \"hostPort\" is 10260, one of \"neverPorts\""},
	{"neverPorts in the second mapping", "[22]",
	 "[{'hostPort':23,'containerPort':80,'protocol':'tcp'},{'hostPort':22,'containerPort':80,'"
	 "protocol':'tcp'}]",
	 7, "runtimeConfig.portMappings[1]: \"hostPort\" is 22"},
	{"neverPorts without a port", "\"x\"", MAPS(80, "tcp"), 7,
	 "\"neverPorts\": the string \"x\" is not a list of ports"},
	{"the kubelet's port", NULL, MAPS(10250, "tcp"), 0,
	 "tcp 0.0.0.0 10250>10.0.0.2:80 ! hostPort 10250 is the kubelet's API"},
	{"the kubelet's port of another protocol", NULL, MAPS(10250, "udp"), 0,
	 "udp 0.0.0.0 10250>10.0.0.2:80 "},
};

ROWS(never_rows, ports_are_never_mapped)
{
	cleanup_json json_t *config = config_with(json_of(row->mappings));
	struct conf conf = {0};
	char text[512];

	if (row->never)
		json_object_set_new(config, "neverPorts", json_of(row->never));
	assert_int_equal(parse_and_claim(&conf, config, "4"), row->code ? -1 : 0);
	describe(&conf, text, sizeof(text));
	if (!row->code && strchr(row->expected, '!'))
		assert_non_null(strstr(text, row->expected));
	else if (!row->code)
		assert_string_equal(text, row->expected);
	assert_error(row->code, row->expected);
	conf_release(&conf);
}

/* The key is compared byte by byte in the kernel: what is not named must be zero. */
TEST(unnamed_bytes_of_the_key_are_zero, "unnamed bytes of a claim's key are zero")
{
	cleanup_json json_t *config = config_with(json_of(TCP_80_AT("192.0.2.1")));
	struct portmap_key expected;
	struct conf conf = {0};

	memset(&expected, 0, sizeof(expected));
	expected.protocol = PROTOCOL_TCP;
	expected.host_port = 8080;
	assert_int_equal(cni_address_parse("192.0.2.1", expected.host_address), 0);
	assert_int_equal(parse_and_claim(&conf, config, "4"), 0);
	assert_int_equal(conf.port_count, 1);
	assert_memory_equal(&conf.ports[0].key, &expected, sizeof(expected));
	conf_release(&conf);
}

/* Shuffled, so that the order given is not the order of the keys. */
static json_t *many_mappings(void)
{
	json_t *mappings = json_array();

	for (int i = 0; i < MANY; i++) {
		int port = 1 + (i * 7919) % MANY;

		json_array_append_new(mappings, json_pack("{s:i,s:i,s:s,s:s}", "hostPort", port,
							  "containerPort", port, "protocol",
							  i & 1 ? "tcp" : "udp", "hostIP", ""));
	}
	return mappings;
}

TEST(many_mappings_are_all_claimed, "10,000 mappings are all claimed")
{
	cleanup_json json_t *config = config_with(many_mappings());
	struct conf conf = {0};

	assert_int_equal(parse_and_claim(&conf, config, "46"), 0);
	assert_int_equal(conf.port_count, 2 * MANY);
	for (size_t i = 1; i < conf.port_count; i++)
		assert_true(memcmp(&conf.ports[i - 1].key, &conf.ports[i].key,
				   sizeof(conf.ports[i].key)) < 0);
	for (size_t i = 0; i < conf.port_count; i++)
		assert_int_equal(conf.ports[i].portmap.container_port, conf.ports[i].key.host_port);
	conf_release(&conf);
}

TEST(a_contradiction_among_many_is_found, "a contradiction among 10,000 mappings is found")
{
	json_t *mappings = many_mappings();
	cleanup_json json_t *config = config_with(mappings);
	struct conf conf = {0};

	json_array_append_new(mappings, json_pack("{s:i,s:i,s:s}", "hostPort", 1, "containerPort",
						  2, "protocol", "udp"));
	assert_int_equal(conf_parse(&conf, config, "", &fault), -1);
	assert_error(7, "and [10000] contradict each other: host port 1/udp");
	conf_release(&conf);
}
