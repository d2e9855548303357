/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_result_test.c - results of every version: reading, passing through, converting.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "lib/cleanup.h"
#include "cni/result.h"

static const struct {
	const char *name;
	const char *version; /* of the configuration */
	const char *json;
	int code;
	/* On success: every address as "address/length@interface ", then the interfaces
	 * as "name,mac,sandbox ". Else a part of the message. */
	const char *expected;
} read_rows[] = {
	{"{} has nothing", "1.0.0", "{}", 0, ""},
	{"0.2.0 dual stack", "0.2.0",
	 "{'cniVersion':'0.2.0','ip4':{'ip':'10.8.0.3/"
	 "24','gateway':'10.8.0.1','routes':[{'dst':'0.0.0.0/0'}]},'ip6':{'ip':'fd00:8::3/"
	 "64'},'dns':{}}",
	 0, "10.8.0.3/24@-1 fd00:8::3/64@-1 "},
	{"0.1.0 IPv6 only", "0.1.0", "{'ip6':{'ip':'fd00:8::3/64'}}", 0, "fd00:8::3/64@-1 "},
	{"0.3.1 dual stack", "0.3.1",
	 "{'cniVersion':'0.3.1','interfaces':[{'name':'eth0','mac':'02:00:00:00:00:01','sandbox':'/"
	 "run/netns/x'}],'ips':[{'version':'4','address':'10.8.0.4/"
	 "24','gateway':'10.8.0.1','interface':0},{'version':'6','address':'fd00:8::4/"
	 "64','interface':0}],'routes':[],'dns':{}}",
	 0, "10.8.0.4/24@0 fd00:8::4/64@0 eth0,02:00:00:00:00:01,/run/netns/x "},
	{"1.1.0 with its own keys", "1.1.0",
	 "{'cniVersion':'1.1.0','interfaces':[{'name':'br0'},{'name':'eth0','mtu':1400,'socketPath'"
	 ":'/x','pciID':'1','sandbox':'/n'}],'ips':[{'address':'10.8.0.4/24','interface':1}]}",
	 0, "10.8.0.4/24@1 br0,, eth0,,/n "},
	{"keys in any case", "1.0.0",
	 "{'IPs':[{'Address':'10.8.0.4/"
	 "24','Interface':0}],'Interfaces':[{'Name':'eth0','Sandbox':'/n'}]}",
	 0, "10.8.0.4/24@0 eth0,,/n "},
	{"version missing in 0.3.1", "0.3.1", "{'ips':[{'address':'10.8.0.4/24'}]}", 0,
	 "10.8.0.4/24@-1 "},
	{"version empty in 0.4.0", "0.4.0", "{'ips':[{'version':'','address':'fd00::4/64'}]}", 0,
	 "fd00::4/64@-1 "},
	{"the family comes from the address, not from version", "0.4.0",
	 "{'ips':[{'version':'6','address':'10.8.0.4/24'}]}", 0, "10.8.0.4/24@-1 "},
	{"IPv4 in IPv6", "1.0.0", "{'ips':[{'address':'::ffff:10.1.0.1/120'}]}", 0,
	 "10.1.0.1/24@-1 "},
	{"ip4 under 1.0.0 is ignored", "1.0.0", "{'ip4':{'ip':'10.8.0.3/24'}}", 0, ""},
	{"ips under 0.2.0 is ignored", "0.2.0", "{'ips':[{'address':'10.8.0.4/24'}]}", 0, ""},
	{"a broken ip4 under 1.0.0 is ignored", "1.0.0", "{'ip4':7}", 0, ""},
	{"interface -1 is none", "1.0.0", "{'ips':[{'address':'10.8.0.4/24','interface':-1}]}", 0,
	 "10.8.0.4/24@-1 "},
	{"interface out of range is none", "1.0.0",
	 "{'interfaces':[{'name':'a'}],'ips':[{'address':'10.8.0.4/24','interface':1}]}", 0,
	 "10.8.0.4/24@-1 a,, "},
	{"interface far out of range is none", "1.0.0",
	 "{'interfaces':[{'name':'a'}],'ips':[{'address':'10.8.0.4/24','interface':4294967296}]}",
	 0, "10.8.0.4/24@-1 a,, "},
	{"interface null is none", "1.0.0", "{'ips':[{'address':'10.8.0.4/24','interface':null}]}",
	 0, "10.8.0.4/24@-1 "},
	{"interface a string", "1.0.0", "{'ips':[{'address':'10.8.0.4/24','interface':'0'}]}", 6,
	 "ips[0]: \"interface\" must be an integer, found the string \"0\""},
	{"interface a fraction", "1.0.0", "{'ips':[{'address':'10.8.0.4/24','interface':0.5}]}", 6,
	 "found the number 0.5"},
	{"null inside ips", "1.0.0", "{'ips':[{'address':'10.8.0.4/24'},null]}", 6,
	 "ips[1] must be an object, found null"},
	{"null inside interfaces", "1.0.0", "{'interfaces':[null]}", 6,
	 "interfaces[0] must be an object, found null"},
	{"a string inside ips", "1.0.0", "{'ips':['10.8.0.4/24']}", 6, "ips[0] must be"},
	{"ips is an object", "1.0.0", "{'ips':{}}", 6, "\"ips\" must be an array"},
	{"interfaces is a string", "0.4.0", "{'interfaces':'x'}", 6,
	 "\"interfaces\" must be an array"},
	{"ip4 is an array", "0.2.0", "{'ip4':[]}", 6, "\"ip4\" must be an object"},
	{"an address that is a number", "1.0.0", "{'ips':[{'address':1}]}", 6,
	 "\"address\" must be a string"},
	{"a name that is a number", "1.0.0", "{'interfaces':[{'name':1}]}", 6,
	 "interfaces[0]: \"name\" must be a string"},
	{"a sandbox that is true", "1.0.0", "{'interfaces':[{'sandbox':true}]}", 6,
	 "\"sandbox\" must be a string, found true"},
	{"a cniVersion that is a number", "1.0.0", "{'cniVersion':1}", 6,
	 "\"cniVersion\" must be a string"},
	{"null for ips and interfaces is none", "1.0.0", "{'ips':null,'interfaces':null}", 0, ""},
	{"an address is missing", "1.0.0", "{'ips':[{}]}", 7, "ips[0]: \"address\" is missing"},
	{"an ip is missing", "0.2.0", "{'ip4':{}}", 7, "ip4: \"ip\" is missing"},
	{"an address that is none", "1.0.0", "{'ips':[{'address':'junk'}]}", 7, "\"junk\""},
	{"an address without prefix length", "1.0.0", "{'ips':[{'address':'10.8.0.4'}]}", 7,
	 "\"10.8.0.4\""},
	{"an address with a bad prefix length", "0.2.0", "{'ip4':{'ip':'10.8.0.4/33'}}", 7,
	 "\"10.8.0.4/33\""},
	{"no cniVersion takes the configuration's", "0.4.0", "{'ips':[{'address':'10.8.0.4/24'}]}",
	 0, "10.8.0.4/24@-1 "},
	{"another version of the family 0.3", "0.3.1",
	 "{'cniVersion':'0.4.0','ips':[{'address':'10.8.0.4/24'}]}", 0, "10.8.0.4/24@-1 "},
	{"another version of the family 1.0", "1.1.0", "{'cniVersion':'1.0.0'}", 0, ""},
	{"another version of the family 0.1", "0.1.0", "{'cniVersion':'0.2.0'}", 0, ""},
	{"a result of 1.0.0 under 0.4.0", "0.4.0", "{'cniVersion':'1.0.0'}", 7,
	 "a result of cniVersion \"1.0.0\" cannot be used with a configuration of cniVersion "
	 "\"0.4.0\""},
	{"a result of 0.2.0 under 0.3.0", "0.3.0", "{'cniVersion':'0.2.0'}", 7, "\"0.2.0\""},
	{"a result of 0.2.0 under 1.0.0", "1.0.0", "{'cniVersion':'0.2.0'}", 7, "\"0.2.0\""},
	{"a result of an unknown version", "1.0.0", "{'cniVersion':'1.2.0'}", 7, "\"1.2.0\""},
};

static void describe_result(const struct cni_result *result, char *text, size_t size)
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < result->address_count; i++)
		length += snprintf(text + length, size - length, "%s/%d@%d ",
				   cni_address_format(result->addresses[i].address, address),
				   result->addresses[i].prefix_length,
				   result->addresses[i].interface);
	for (size_t i = 0; i < result->interface_count; i++)
		length += snprintf(text + length, size - length, "%s,%s,%s ",
				   result->interfaces[i].name, result->interfaces[i].mac,
				   result->interfaces[i].sandbox);
}

ROWS(read_rows, reads_result)
{
	cleanup_json json_t *json = json_of(row->json);
	struct cni_result result = {0};
	char text[512];

	assert_int_equal(cni_result_read(&result, json, row->version, &fault), row->code ? -1 : 0);
	describe_result(&result, text, sizeof(text));
	assert_string_equal(text, row->code ? "" : row->expected);
	assert_error(row->code, row->expected);
	cni_result_release(&result);
}

/* interfaces: 0 the bridge, 1 the host's veth, 2 eth0, 3 eth1; 4 eth0 without sandbox */
static const struct {
	const char *name;
	const char *ips;
	const char *ipv4; /* NULL: none */
	const char *ipv6;
} first_rows[] = {
	{"eth0 of bridge's result", "[{'address':'10.0.0.2/24','interface':2}]", "10.0.0.2", NULL},
	{"an address of another interface is skipped",
	 "[{'address':'10.0.0.3/24','interface':3},{'address':'10.0.0.2/24','interface':2}]",
	 "10.0.0.2", NULL},
	{"an address on the host is skipped",
	 "[{'address':'10.0.0.1/24','interface':0},{'address':'10.0.0.3/24','interface':4}]", NULL,
	 NULL},
	{"an address without index is taken", "[{'address':'10.0.0.2/24'}]", "10.0.0.2", NULL},
	{"an index out of range is taken", "[{'address':'10.0.0.2/24','interface':9}]", "10.0.0.2",
	 NULL},
	{"of several the first is taken",
	 "[{'address':'10.0.0.2/24','interface':2},{'address':'10.0.0.9/24','interface':2}]",
	 "10.0.0.2", NULL},
	{"IPv6 only", "[{'address':'fd00::2/64','interface':2}]", NULL, "fd00::2"},
	{"the first of each family",
	 "[{'address':'fd00::2/64','interface':2},{'address':'10.0.0.2/"
	 "24','interface':2},{'address':'fd00::3/64','interface':2}]",
	 "10.0.0.2", "fd00::2"},
};

static void assert_address(const struct cni_result_address *address, const char *expected)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	assert_int_equal(address != NULL, expected != NULL);
	if (address)
		assert_string_equal(cni_address_format(address->address, text), expected);
}

ROWS(first_rows, finds_the_first_address)
{
	cleanup_json json_t *json =
		json_of("{'interfaces':[{'name':'cni0'},{'name':'veth1'},{'name':'eth0','sandbox':'"
			"/n'},{'name':'eth1','sandbox':'/n'},{'name':'eth0'}]}");
	struct cni_result result = {0};

	json_object_set_new(json, "ips", json_of(row->ips));
	assert_int_equal(cni_result_read(&result, json, "1.0.0", &fault), 0);
	assert_address(cni_result_first_address(&result, true, "eth0"), row->ipv4);
	assert_address(cni_result_first_address(&result, false, "eth0"), row->ipv6);
	cni_result_release(&result);
}

static const struct {
	const char *name;
	const char *from;
	const char *to;
	const char *before;
	int code;
	const char *expected; /* JSON, or a part of the message */
} relabel_rows[] = {
	{"unknown keys and order survive", NULL, "0.3.1",
	 "{'z':1,'cniVersion':'0.4.0','ips':[{'x':[null,1.5],'address':'10.0.0.1/"
	 "24'}],'a':{'k':9007199254740993}}",
	 0,
	 "{'z':1,'cniVersion':'0.3.1','ips':[{'x':[null,1.5],'address':'10.0.0.1/"
	 "24'}],'a':{'k':9007199254740993}}"},
	{"cniVersion is added where missing", NULL, "1.0.0", "{'dns':{}}", 0,
	 "{'dns':{},'cniVersion':'1.0.0'}"},
	{"another spelling does not contradict", NULL, "1.0.0", "{'CNIVersion':'1.1.0'}", 0,
	 "{'cniVersion':'1.0.0'}"},
};

ROWS(relabel_rows, relabels)
{
	cleanup_json json_t *before = json_of(row->before);
	cleanup_json json_t *relabelled = cni_result_relabel(before, row->to);

	assert_json_text(relabelled, row->expected);
	assert_json_text(before, row->before);
}
