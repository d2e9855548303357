/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_text_test.c - what cnirun makes of text: CNI_ARGS, -p, NETNS.
 */
#include "cni_testing.h"

#include <unistd.h>

#include "cni/cache.h"
#include "runtimes/cnirun/runtime_conf.h"

struct pair_row {
	const char *name;
	const char *plain;
	const char *other; /* NULL: refused */
};

TEST(id_as_cnitool, "container ID as cnitool makes it")
{
	char *id = netns_default_container_id("/run/netns/c1");

	assert_string_equal(id, "cnitool-20b4ff582526573bbe7d");
	free(id);
}

static const struct pair_row netns_rows[] = {
	{"a name of ip netns", "c1", "/run/netns/c1"},
	{"an absolute path", "/proc/1/ns/net", "/proc/1/ns/net"},
	{"a relative path becomes absolute", "ns/a", "/tmp/ns/a"},
	{"no netns stays none", "", ""},
	{"netns .. is refused", "..", NULL},
	{"netns . is refused", ".", NULL},
};

ROWS(netns_rows, netns_resolved)
{
	char *path;

	assert_int_equal(chdir("/tmp"), 0);
	path = netns_resolve(row->plain, &fault);
	if (row->other)
		assert_string_equal(path, row->other);
	else
		assert_null(path);
	assert_error(row->other ? 0 : 4, "ip netns");
	free(path);
}

static const struct pair_row args_rows[] = {
	{"CNI_ARGS empty", "", "[]"},
	{"CNI_ARGS of one pair", "A=1", "[[\"A\",\"1\"]]"},
	{"CNI_ARGS of two, order kept", "B=1;A=2", "[[\"B\",\"1\"],[\"A\",\"2\"]]"},
	{"CNI_ARGS pair without =", "A", NULL},
	{"CNI_ARGS pair with two =", "A=b=c", NULL},
	{"CNI_ARGS pair that ends in =", "B=1;A=b=", NULL},
	{"CNI_ARGS pair without key", "=1", NULL},
	{"CNI_ARGS pair without value", "A=", NULL},
	{"CNI_ARGS with an empty pair", "A=1;;B=2", NULL},
	{"CNI_ARGS with an empty last pair", "A=1;", NULL},
	{"CNI_ARGS that is only ;", ";", NULL},
	{"CNI_ARGS that is no UTF-8", "A=\xff", NULL},
};

ROWS(args_rows, args_parsed)
{
	json_t *pairs = args_parse(row->plain, &fault);
	char *text;

	assert_error(row->other ? 0 : 4, "CNI_ARGS pair");
	if (!row->other) {
		assert_null(pairs);
		return;
	}
	assert_json_text(pairs, row->other);
	text = cni_cache_format_args(pairs);
	assert_string_equal(text, row->plain);
	free(text);
	json_decref(pairs);
}

static const struct pair_row port_rows[] = {
	{"-p 8080:80", "8080:80",
	 "[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}]"},
	{"-p 1:65535/udp", "1:65535/udp",
	 "[{\"hostPort\":1,\"containerPort\":65535,\"protocol\":\"udp\"}]"},
	{"-p with a protocol in capitals", "53:53/SCTP",
	 "[{\"hostPort\":53,\"containerPort\":53,\"protocol\":\"sctp\"}]"},
	{"-p with an IPv4 address", "127.0.0.1:8080:80",
	 "[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\",\"hostIP\":\"127.0.0.1\"}"
	 "]"},
	{"-p with an IPv6 address", "[::1]:80:80",
	 "[{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"tcp\",\"hostIP\":\"::1\"}]"},
	{"-p with any IPv6 address", "[::]:80:80/tcp",
	 "[{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"tcp\",\"hostIP\":\"::\"}]"},
	{"-p with ranges", "8000-8002:80-82",
	 "[{\"hostPort\":8000,\"containerPort\":80,\"protocol\":\"tcp\"},"
	 "{\"hostPort\":8001,\"containerPort\":81,\"protocol\":\"tcp\"},"
	 "{\"hostPort\":8002,\"containerPort\":82,\"protocol\":\"tcp\"}]"},
	{"-p with a range of one", "80-80:80",
	 "[{\"hostPort\":80,\"containerPort\":80,\"protocol\":\"tcp\"}]"},
	{"-p of nothing", "", NULL},
	{"-p of one port", "80", NULL},
	{"-p of :", ":", NULL},
	{"-p without host port", ":80", NULL},
	{"-p without container port", "80:", NULL},
	{"-p with host port 0", "0:80", NULL},
	{"-p with container port 0", "80:0", NULL},
	{"-p with host port 65536", "65536:80", NULL},
	{"-p with container port 65536", "80:65536", NULL},
	{"-p with 20 digits", "99999999999999999999:80", NULL},
	{"-p with port -1", "-1:80", NULL},
	{"-p with port +1", "+1:80", NULL},
	{"-p with a blank", " 80:80", NULL},
	{"-p with port 80.5", "80.5:80", NULL},
	{"-p with a name of a port", "http:80", NULL},
	{"-p with protocol icmp", "80:80/icmp", NULL},
	{"-p with an empty protocol", "80:80/", NULL},
	{"-p with two protocols", "80:80/tcp/udp", NULL},
	{"-p with an empty address", ":80:80", NULL},
	{"-p with an empty bracket", "[]:80:80", NULL},
	{"-p with an open bracket", "[::1:80:80", NULL},
	{"-p with a bracket and no port", "[::1]:80", NULL},
	{"-p with an IPv6 address without brackets", "::1:80:80", NULL},
	{"-p with a host name, never resolved", "localhost:80:80", NULL},
	{"-p with an address and prefix", "10.0.0.0/8:80:80", NULL},
	{"-p with ranges of two lengths", "80-82:80-81", NULL},
	{"-p with a range backwards", "82-80:82-80", NULL},
	{"-p with an open range", "80-:80-", NULL},
};

ROWS(port_rows, port_parsed)
{
	json_t *mappings = json_array();
	int failed = portmapping_parse(row->plain, mappings, &fault);

	assert_int_equal(failed, row->other ? 0 : -1);
	assert_json_text(mappings, row->other ? row->other : "[]");
	assert_error(row->other ? 0 : 4, "HOSTPORT:CONTAINERPORT");
	json_decref(mappings);
}

TEST(all_ports, "-p with all ports")
{
	json_t *mappings = json_array();

	assert_int_equal(portmapping_parse("1-65535:1-65535/udp", mappings, &fault), 0);
	assert_int_equal(json_array_size(mappings), 65535);
	assert_int_equal(json_integer_value(
				 json_object_get(json_array_get(mappings, 65534), "containerPort")),
			 65535);
	json_decref(mappings);
}
