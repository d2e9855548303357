/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_result_test.c - which results cnirun accepts.
 */
#include "cni_testing.h"

#include "lib/cleanup.h"
#include "cni/result.h"

#define IP4(keys) "{\"ip4\":{\"ip\":\"10.0.0.2/24\"" keys "}}"
#define IPS(keys) "{\"ips\":[{\"address\":\"10.0.0.2/24\"" keys "}]}"
#define ROUTES(route) "{\"routes\":[{" route "}]}"

static const struct {
	const char *name;
	const char *version;
	const char *json;
	const char *failure; /* NULL: valid */
} rows[] = {
	{"an empty result", "1.1.0", "{}", NULL},
	{"unknown keys, and keys of other versions", "1.1.0",
	 "{'x':1,'ip4':1,'ips':[{'address':'::1/128','version':4,'x':[]}]}", NULL},
	{"nulls", "1.1.0",
	 "{'interfaces':null,'ips':null,'routes':null,'dns':{'nameservers':null}}", NULL},
	{"all of 1.1.0", "1.1.0",
	 "{'interfaces':[{'name':'eth0','mac':'00:11:22:33:44:55','mtu':1500,'sandbox':'/run/netns/"
	 "a','socketPath':'/s','pciID':'0000:00:1f.6'}],'ips':[{'address':'10.0.0.2/"
	 "24','gateway':'10.0.0.1','interface':0},{'address':'fd00::2/"
	 "64','gateway':'fd00::1'}],'routes':[{'dst':'0.0.0.0/0'},{'dst':'fd01::/"
	 "16','gw':'fd00::1','mtu':1400,'advmss':1340,'priority':1,'table':100,'scope':253}],'dns':"
	 "{'nameservers':['10.0.0.1'],'domain':'d','search':['s'],'options':['o']}}",
	 NULL},
	{"all of 0.4.0", "0.4.0",
	 "{'interfaces':[{'name':'eth0','mac':'','sandbox':''}],'ips':[{'version':'4','address':'"
	 "10.0.0.2/24','gateway':'10.0.0.1','interface':7}],'routes':[]}",
	 NULL},
	{"all of 0.2.0", "0.2.0",
	 "{'ip4':{'ip':'10.0.0.2/24','gateway':'10.0.0.1','routes':[{'dst':'0.0.0.0/"
	 "0'}]},'ip6':{'ip':'fd00::2/64','routes':[{'dst':'::/0','gw':'fd00::1'}]},'dns':{}}",
	 NULL},
	{"keys in another case", "1.1.0", "{'IPs':[{'Address':'10.0.0.2'}]}", "ips[0]"},
	{"an IPv4 address in IPv6", "1.1.0", "{'ips':[{'address':'::ffff:10.0.0.2/120'}]}", NULL},
	{"the index of no interface", "1.1.0", IPS(",\"interface\":9"), NULL},
	{"ips is an object", "1.1.0", "{'ips':{}}", "\"ips\" must be an array"},
	{"ips holds a string", "1.1.0", "{'ips':['10.0.0.2/24']}", "ips[0] must be an object"},
	{"ips holds null", "1.1.0", "{'ips':[null]}", "ips[0] must be an object, found null"},
	{"an address out of range", "1.1.0", "{'ips':[{'address':'10.0.0.300/24'}]}",
	 "ips[0]: \"address\" is \"10.0.0.300/24\""},
	{"an address without prefix length", "0.3.1", "{'ips':[{'address':'10.0.0.2'}]}",
	 "ips[0]: \"address\" is \"10.0.0.2\""},
	{"an address with a netmask", "1.1.0", "{'ips':[{'address':'10.0.0.2/255.255.255.0'}]}",
	 "ips[0]: \"address\" is"},
	{"a prefix length of 33", "1.1.0", "{'ips':[{'address':'10.0.0.2/33'}]}",
	 "ips[0]: \"address\" is"},
	{"an empty address", "1.1.0", "{'ips':[{'address':''}]}", "\"address\" is \"\""},
	{"no address", "1.1.0", "{'ips':[{}]}", "ips[0]: \"address\" is missing"},
	{"an address that is a number", "1.1.0", "{'ips':[{'address':1}]}",
	 "ips[0]: \"address\" must be a string"},
	{"an index that is a string", "1.1.0", IPS(",\"interface\":\"0\""),
	 "ips[0]: \"interface\" must be an integer"},
	{"an index of 0.5", "0.4.0", IPS(",\"interface\":0.5"), "must be an integer"},
	{"ip4 is an array", "0.2.0", "{'ip4':[]}", "\"ip4\" must be an object"},
	{"ip4 without address", "0.1.0", "{'ip4':{}}", "ip4: \"ip\" is missing"},
	{"ip6 without prefix length", "0.1.0", "{'ip6':{'ip':'fd00::2'}}", "ip6: \"ip\" is"},
	{"the routes of ip4", "0.2.0", IP4(",\"routes\":[{\"dst\":\"10.0.0.0\"}]"),
	 "ip4: routes[0]: \"dst\" is"},
	{"interfaces is an object", "1.1.0", "{'interfaces':{}}", "\"interfaces\" must be an arr"},
	{"interfaces holds null", "0.3.0", "{'interfaces':[{},null]}", "interfaces[1] must be"},
	{"a name that is a number", "0.3.0", "{'interfaces':[{'name':1}]}",
	 "interfaces[0]: \"name\" must be a string"},
	{"a MAC address that is an array", "1.0.0", "{'interfaces':[{'mac':[]}]}",
	 "interfaces[0]: \"mac\" must be a string"},
	{"a sandbox that is true", "1.0.0", "{'interfaces':[{'sandbox':true}]}",
	 "interfaces[0]: \"sandbox\" must be a string"},
	{"a route without destination", "1.1.0", ROUTES("\"gw\":\"10.0.0.1\""),
	 "routes[0]: \"dst\" is missing"},
	{"a route to default", "1.1.0", ROUTES("\"dst\":\"default\""),
	 "routes[0]: \"dst\" is \"default\""},
	{"routes is a string", "1.1.0", "{'routes':''}", "\"routes\" must be an array"},
};

ROWS(rows, validated)
{
	json_t *result = json_of(row->json);
	int failed = cni_result_validate(result, row->version, &fault);

	if (!!failed != !!row->failure)
		print_error("%s\n", failed ? cni_error_message(&fault) : "valid");
	assert_int_equal(failed, row->failure ? -1 : 0);
	assert_error(fault.code == 7 ? 7 : row->failure ? 6 : 0, row->failure);
	json_decref(result);
}
