/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_policy_test.c - the options that become an entry of the map policies.
 */
#include "cni_testing.h"

#include <stdbool.h>
#include <stdio.h>

#include "lib/cleanup.h"
#include "conf/request.h"

#define TEXT_SIZE 4096

struct row {
	const char *name;
	const char *json;
	int code;
	/* On success: what the policy says, in the order of its fields, each followed by a
	 * blank, then the warnings as "! text". Else a part of the message. */
	const char *expected;
};

static const struct row rows[] = {
	{"no option", "{}", 0, ""},
	{"options that are null",
	 "{'masqPorts':null,'snatAddresses':null,'nonMasqueradeCIDRs':null,'snat':null,'"
	 "sourceRanges':null,'excludeCIDRs':null,'maxFlows':null,'masqAll':null}",
	 0, ""},
	{"lists that are empty",
	 "{'masqPorts':[],'snatAddresses':[],'nonMasqueradeCIDRs':[],'sourceRanges':[],'"
	 "excludeCIDRs':[]}",
	 0, ""},
	{"options that say the default", "{'snat':true,'masqAll':false}", 0, ""},
	{"keys in another case", "{'MAXFLOWS':7,'masqports':'5000'}", 0,
	 "maxFlows=7 masqPorts=5000-5000 "},
	{"all of them",
	 "{'masqPorts':'1024-32767','snatAddresses':['203.0.113.7','2001:db8::7'],'"
	 "nonMasqueradeCIDRs':['10.0.0.0/8','!10.1.0.0/"
	 "16'],'maxFlows':1000,'sourceRanges':['192.0.2.0/24'],'excludeCIDRs':['198.51.100.0/"
	 "24'],'masqAll':true}",
	 0,
	 "masqAll maxFlows=1000 masqPorts=1024-32767 source=203.0.113.7 source=2001:db8::7 "
	 "unmasqueraded=!10.1.0.0/16 unmasqueraded=10.0.0.0/8 from=192.0.2.0/24 "
	 "excluded=198.51.100.0/24 "},

	{"snat false", "{'snat':false}", 0, "keep_hairpin_source "},
	{"snat in another case", "{'SNAT':false}", 0, "keep_hairpin_source "},
	{"masqAll", "{'masqAll':true}", 0, "masqAll "},
	{"masqAll is nothing without snat, as with portmap", "{'masqAll':true,'snat':false}", 0,
	 "keep_hairpin_source ! \"masqAll\" has no effect where \"snat\" is false"},

	{"maxFlows the least", "{'maxFlows':1}", 0, "maxFlows=1 "},
	{"maxFlows the most", "{'maxFlows':4294967295}", 0, "maxFlows=4294967295 "},
	{"maxFlows 0", "{'maxFlows':0}", 7, "\"maxFlows\" is 0, must be 1 to 4294967295"},
	{"maxFlows negative", "{'maxFlows':-1}", 7, "\"maxFlows\" is -1, must be"},
	{"maxFlows beyond 32 bits", "{'maxFlows':4294967296}", 7, "\"maxFlows\" is 4294967296"},

	{"masqPorts of one range", "{'masqPorts':'1024-32767'}", 0, "masqPorts=1024-32767 "},
	{"masqPorts of one port", "{'masqPorts':'5000'}", 0, "masqPorts=5000-5000 "},
	{"masqPorts a number", "{'masqPorts':5000}", 0, "masqPorts=5000-5000 "},
	{"masqPorts of all ports", "{'masqPorts':'1-65535'}", 0, "masqPorts=1-65535 "},
	{"masqPorts of the last port", "{'masqPorts':'65535'}", 0, "masqPorts=65535-65535 "},
	{"masqPorts of several ranges", "{'masqPorts':'1024-2000,3000-4000'}", 0,
	 "masqPorts=1024-2000 masqPorts=3000-4000 "},
	{"masqPorts as an array", "{'masqPorts':['3000-4000',5000,'7,1024-2000']}", 0,
	 "masqPorts=7-7 masqPorts=1024-2000 masqPorts=3000-4000 masqPorts=5000-5000 "},
	{"masqPorts are sorted and united", "{'masqPorts':['20-30','5-9','10','25-40','22-23']}", 0,
	 "masqPorts=5-10 masqPorts=20-40 "},
	{"masqPorts that one port keeps apart", "{'masqPorts':'1-9,11-20'}", 0,
	 "masqPorts=1-9 masqPorts=11-20 "},
	{"masqPorts a range of one", "{'masqPorts':'7-7'}", 0, "masqPorts=7-7 "},
	{"masqPorts with leading zeros", "{'masqPorts':'00080'}", 0, "masqPorts=80-80 "},
	{"masqPorts of six digits", "{'masqPorts':'000080'}", 7, "\"000080\""},
	{"masqPorts of 16 ranges", "{'masqPorts':[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,65535]}",
	 0,
	 "masqPorts=1-1 masqPorts=3-3 masqPorts=5-5 masqPorts=7-7 masqPorts=9-9 masqPorts=11-11 "
	 "masqPorts=13-13 masqPorts=15-15 masqPorts=17-17 masqPorts=19-19 masqPorts=21-21 "
	 "masqPorts=23-23 masqPorts=25-25 masqPorts=27-27 masqPorts=29-29 masqPorts=65535-65535 "},
	{"masqPorts of 17 ranges", "{'masqPorts':[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33]}",
	 7, "\"masqPorts\" is more than 16 ranges, the limit"},
	{"masqPorts of 17 entries but 16 ranges",
	 "{'masqPorts':[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,32]}", 0,
	 "masqPorts=1-1 masqPorts=3-3 masqPorts=5-5 masqPorts=7-7 masqPorts=9-9 masqPorts=11-11 "
	 "masqPorts=13-13 masqPorts=15-15 masqPorts=17-17 masqPorts=19-19 masqPorts=21-21 "
	 "masqPorts=23-23 masqPorts=25-25 masqPorts=27-27 masqPorts=29-29 masqPorts=31-32 "},
	{"masqPorts port 0", "{'masqPorts':0}", 7,
	 "\"masqPorts\": the number 0 is not a list of ports: give 1 to 65535 as \"1024-32767\""},
	{"masqPorts that end before they begin", "{'masqPorts':'1-9,2000-1000'}", 7,
	 "\"masqPorts\": \"2000-1000\" ends before it begins"},
	{"masqPorts from port 0", "{'masqPorts':'0-1024'}", 7,
	 "\"masqPorts\": the string \"0-1024\" is not a list of ports"},
	{"masqPorts beyond the last", "{'masqPorts':'1024-65536'}", 7, "\"1024-65536\""},
	{"masqPorts a number beyond the last", "{'masqPorts':65536}", 7, "the number 65536"},
	{"masqPorts 2^32 + 80", "{'masqPorts':'4294967376'}", 7, "not a list of ports"},
	{"masqPorts a number of 2^32 + 80", "{'masqPorts':4294967376}", 7, "not a list"},
	{"masqPorts negative", "{'masqPorts':-5}", 7, "the number -5"},
	{"masqPorts the wrong way round", "{'masqPorts':'2000-1024'}", 7, "\"2000-1024\""},
	{"masqPorts without an end", "{'masqPorts':'1024-'}", 7, "\"1024-\""},
	{"masqPorts without a beginning", "{'masqPorts':'-1024'}", 7, "\"-1024\""},
	{"masqPorts of three ports", "{'masqPorts':'1-2-3'}", 7, "\"1-2-3\""},
	{"masqPorts with a comma at the end", "{'masqPorts':'1024,'}", 7, "\"1024,\""},
	{"masqPorts with two commas", "{'masqPorts':'1,,2'}", 7, "\"1,,2\""},
	{"masqPorts with a blank", "{'masqPorts':'1024-2000, 3000'}", 7, "not a list"},
	{"masqPorts with a colon", "{'masqPorts':'1024:2000'}", 7, "not a list"},
	{"masqPorts a word", "{'masqPorts':'all'}", 7, "\"all\""},
	{"masqPorts empty", "{'masqPorts':''}", 7, "the string \"\" is not"},
	{"masqPorts bad in an array", "{'masqPorts':[1,'2-1']}", 7, "\"2-1\""},

	{"snatAddresses keep their order",
	 "{'snatAddresses':['203.0.113.9','2001:db8::9','203.0.113.7','2001:db8::7']}", 0,
	 "source=203.0.113.9 source=203.0.113.7 source=2001:db8::9 source=2001:db8::7 "},
	{"snatAddresses given twice are kept once",
	 "{'snatAddresses':['203.0.113.7','2001:db8::7','203.0.113.7','2001:DB8:0::7']}", 0,
	 "source=203.0.113.7 source=2001:db8::7 "},
	{"snatAddresses private ones", "{'snatAddresses':['10.0.0.1','fd00::1']}", 0,
	 "source=10.0.0.1 source=fd00::1 "},
	{"snatAddresses beside those that are none",
	 "{'snatAddresses':['223.255.255.255','169.253.0.1','1.0.0.0','fec0::1']}", 0,
	 "source=223.255.255.255 source=169.253.0.1 source=1.0.0.0 source=fec0::1 "},
	{"snatAddresses 8 of each family",
	 "{'snatAddresses':['1.0.0.1','1.0.0.2','1.0.0.3','1.0.0.4','1.0.0.5','1.0.0.6','1.0.0.7','"
	 "1.0.0.8','fd00::1','fd00::2','fd00::3','fd00::4','fd00::5','fd00::6','fd00::7','fd00::8',"
	 "'1.0.0.8','fd00::1']}",
	 0,
	 "source=1.0.0.1 source=1.0.0.2 source=1.0.0.3 source=1.0.0.4 source=1.0.0.5 "
	 "source=1.0.0.6 source=1.0.0.7 source=1.0.0.8 source=fd00::1 source=fd00::2 "
	 "source=fd00::3 source=fd00::4 source=fd00::5 source=fd00::6 source=fd00::7 "
	 "source=fd00::8 "},
	{"snatAddresses 9 IPv4 ones",
	 "{'snatAddresses':['1.0.0.1','1.0.0.2','1.0.0.3','1.0.0.4','1.0.0.5','1.0.0.6','1.0.0.7','"
	 "1.0.0.8','1.0.0.9']}",
	 7, "\"snatAddresses\"[8] is \"1.0.0.9\", which is one more than the 8 that"},
	{"snatAddresses 9 IPv6 ones",
	 "{'snatAddresses':['fd00::1','fd00::2','fd00::3','fd00::4','fd00::5','fd00::6','fd00::7','"
	 "fd00::8','fd00::9']}",
	 7, "\"snatAddresses\"[8] is \"fd00::9\", which is one more than the 8 that"},
	{"snatAddresses a name", "{'snatAddresses':['example.org']}", 7,
	 "\"snatAddresses\"[0] is \"example.org\", which is no IP address: give an address of the "
	 "host"},
	{"snatAddresses with a prefix length", "{'snatAddresses':['203.0.113.7/32']}", 7,
	 "which is no IP address"},
	{"snatAddresses with a zone", "{'snatAddresses':['fe80::1%eth0']}", 7, "no IP address"},
	{"snatAddresses empty", "{'snatAddresses':['203.0.113.7','']}", 7,
	 "\"snatAddresses\"[1] is \"\", which is no"},
	{"snatAddresses IPv4 in IPv6", "{'snatAddresses':['::ffff:203.0.113.7']}", 7,
	 "which is an IPv4 address in IPv6 notation"},
	{"snatAddresses 127.0.0.1", "{'snatAddresses':['127.0.0.1']}", 7, "a loopback address"},
	{"snatAddresses ::1", "{'snatAddresses':['::1']}", 7, "a loopback address"},
	{"snatAddresses 0.0.0.0", "{'snatAddresses':['0.0.0.0']}", 7, "is an unspecified address"},
	{"snatAddresses 0.0.0.1", "{'snatAddresses':['0.0.0.1']}", 7, "is an unspecified address"},
	{"snatAddresses ::", "{'snatAddresses':['::']}", 7, "is an unspecified address"},
	{"snatAddresses a group", "{'snatAddresses':['224.0.0.1']}", 7, "of a group"},
	{"snatAddresses an IPv6 group", "{'snatAddresses':['ff02::1']}", 7, "of a group"},
	{"snatAddresses broadcast", "{'snatAddresses':['255.255.255.255']}", 7, "of a group"},
	{"snatAddresses link-local", "{'snatAddresses':['169.254.1.1']}", 7, "is link-local"},
	{"snatAddresses IPv6 link-local", "{'snatAddresses':['febf::1']}", 7, "is link-local"},

	{"sourceRanges with exceptions alone", "{'sourceRanges':['!10.0.0.0/8']}", 7,
	 "\"sourceRanges\" has nothing but exceptions: add what they are exceptions of"},
	{"sourceRanges everybody but", "{'sourceRanges':['!10.0.0.0/8','0.0.0.0/0']}", 0,
	 "from=!10.0.0.0/8 from=0.0.0.0/0 "},
	{"nonMasqueradeCIDRs with exceptions alone", "{'nonMasqueradeCIDRs':['!10.0.0.0/8']}", 0,
	 "unmasqueraded=!10.0.0.0/8 ! \"nonMasqueradeCIDRs\": \"!10.0.0.0/8\" has no effect: its "
	 "addresses are left out anyway"},
	{"excludeCIDRs that hold a hostIP",
	 "{'excludeCIDRs':['192.0.2.0/"
	 "24'],'runtimeConfig':{'portMappings':[{'hostPort':8080,'containerPort':80,'protocol':'"
	 "tcp','hostIP':'192.0.2.1'}]}}",
	 7,
	 "runtimeConfig.portMappings[0]: \"hostIP\" is \"192.0.2.1\", which \"excludeCIDRs\" keeps "
	 "from being mapped: give another address, or add it to \"excludeCIDRs\" as an exception"},
	{"excludeCIDRs that except a hostIP",
	 "{'excludeCIDRs':['192.0.2.0/"
	 "24','!192.0.2.1'],'runtimeConfig':{'portMappings':[{'hostPort':8080,'containerPort':80,'"
	 "protocol':'tcp','hostIP':'192.0.2.1'}]}}",
	 0, "excluded=!192.0.2.1/32 excluded=192.0.2.0/24 "},
	{"excludeCIDRs of all, and a mapping of any address",
	 "{'excludeCIDRs':['0.0.0.0/"
	 "0'],'runtimeConfig':{'portMappings':[{'hostPort':8080,'containerPort':80,'protocol':'tcp'"
	 ",'hostIP':'0.0.0.0'}]}}",
	 0, "excluded=0.0.0.0/0 "},
};

static void append(char text[TEXT_SIZE], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void append(char text[TEXT_SIZE], const char *format, ...)
{
	size_t length = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + length, TEXT_SIZE - length, format, arguments);
	va_end(arguments);
}

static void append_sources(char text[TEXT_SIZE], const __u8 (*sources)[CNI_ADDRESS_SIZE],
			   __u8 count)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count; i++)
		append(text, "source=%s ", cni_address_format(sources[i], address));
}

static void append_ranges(char text[TEXT_SIZE], const char *what,
			  const struct address_range *ranges, __u8 count)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count; i++)
		append(text, "%s%s%s/%u ", what, ranges[i].exception ? "!" : "",
		       cni_address_format(ranges[i].address, address), ranges[i].prefix_length);
}

static void describe(char text[TEXT_SIZE], const struct conf *conf)
{
	const struct policy *policy = &conf->policy;

	if (policy->masquerade_all)
		append(text, "masqAll ");
	if (policy->keep_hairpin_source)
		append(text, "keep_hairpin_source ");
	if (policy->max_flows)
		append(text, "maxFlows=%u ", policy->max_flows);
	for (size_t i = 0; i < MASQUERADE_RANGES && policy->masquerade_ports[i].last; i++)
		append(text, "masqPorts=%u-%u ", policy->masquerade_ports[i].first,
		       policy->masquerade_ports[i].last);
	append_sources(text, policy->sources4, policy->source4_count);
	append_sources(text, policy->sources6, policy->source6_count);
	append_ranges(text, "unmasqueraded=", policy->unmasqueraded, policy->unmasqueraded_count);
	append_ranges(text, "from=", policy->source_ranges, policy->source_range_count);
	append_ranges(text, "excluded=", policy->excluded, policy->excluded_count);
	for (size_t i = 0; i < json_array_size(conf->warnings); i++)
		append(text, "! %s", json_string_value(json_array_get(conf->warnings, i)));
}

/* What is not said must be zero: entries are compared as a whole. */
static void assert_rest_is_zero(const struct policy *policy)
{
	static const struct policy zero;
	size_t ports = 0;

	while (ports < MASQUERADE_RANGES && policy->masquerade_ports[ports].last)
		ports++;
	assert_memory_equal(&policy->masquerade_ports[ports], zero.masquerade_ports,
			    (MASQUERADE_RANGES - ports) * sizeof(*policy->masquerade_ports));
	assert_memory_equal(policy->sources4[policy->source4_count], zero.sources4,
			    (POLICY_ADDRESSES - policy->source4_count) * CNI_ADDRESS_SIZE);
	assert_memory_equal(policy->sources6[policy->source6_count], zero.sources6,
			    (POLICY_ADDRESSES - policy->source6_count) * CNI_ADDRESS_SIZE);
	assert_memory_equal(&policy->unmasqueraded[policy->unmasqueraded_count], zero.unmasqueraded,
			    (POLICY_RANGES - policy->unmasqueraded_count) *
				    sizeof(struct address_range));
	assert_memory_equal(&policy->source_ranges[policy->source_range_count], zero.source_ranges,
			    (POLICY_RANGES - policy->source_range_count) *
				    sizeof(struct address_range));
	assert_memory_equal(&policy->excluded[policy->excluded_count], zero.excluded,
			    (POLICY_RANGES - policy->excluded_count) *
				    sizeof(struct address_range));
	assert_memory_equal(policy->reserved, zero.reserved, sizeof(zero.reserved));
	assert_memory_equal(&policy->owner, &zero.owner, sizeof(zero.owner));
}

ROWS(rows, reads_policy)
{
	cleanup_json json_t *json = json_of(row->json);
	char text[TEXT_SIZE] = "";
	struct conf conf = {0};

	assert_int_equal(conf_parse(&conf, json, "", &fault), row->code ? -1 : 0);
	if (!row->code) {
		describe(text, &conf);
		assert_string_equal(text, row->expected);
		assert_rest_is_zero(&conf.policy);
	}
	assert_error(row->code, row->expected);
	conf_release(&conf);
}

/* Of nonMasqueradeCIDRs, sourceRanges and excludeCIDRs alike. */
static const struct row range_rows[] = {
	{"a range", "['10.0.0.0/8']", 0, "10.0.0.0/8 "},
	{"everything", "['0.0.0.0/0','::/0']", 0, "0.0.0.0/0 ::/0 "},
	{"addresses", "['192.0.2.1','2001:db8::1']", 0, "192.0.2.1/32 2001:db8::1/128 "},
	{"the longest prefix first", "['10.0.0.0/8','10.1.2.0/24','10.1.0.0/16']", 0,
	 "10.1.2.0/24 10.1.0.0/16 10.0.0.0/8 "},
	{"an exception and its range", "['10.0.0.0/8','!10.1.0.0/16']", 0,
	 "!10.1.0.0/16 10.0.0.0/8 "},
	{"an exception of an exception", "['!10.1.0.0/16','10.0.0.0/8','10.1.2.0/24']", 0,
	 "10.1.2.0/24 !10.1.0.0/16 10.0.0.0/8 "},
	{"an exception of everything of one family", "['::/0','!fd00::/8']", 0, "!fd00::/8 ::/0 "},
	{"an exception of one address", "['10.0.0.0/8','!10.0.0.1']", 0,
	 "!10.0.0.1/32 10.0.0.0/8 "},
	{"a range given twice is kept once", "['10.0.0.0/8','fd00::/8','10.0.0.0/8']", 0,
	 "10.0.0.0/8 fd00::/8 "},
	{"an exception given twice is kept once", "['!10.1.0.0/16','10.0.0.0/8','!10.1.0.0/16']", 0,
	 "!10.1.0.0/16 10.0.0.0/8 "},
	{"bits behind the prefix are cleared, with a warning", "['10.1.2.3/12']", 0,
	 "10.0.0.0/12 ! \"KEY\"[0] is \"10.1.2.3/12\", which is taken as \"10.0.0.0/12\""},
	{"bits behind an exception's prefix", "['10.0.0.0/8','!10.1.2.3/16']", 0,
	 "!10.1.0.0/16 10.0.0.0/8 ! \"KEY\"[1] is \"!10.1.2.3/16\", which is taken as "
	 "\"!10.1.0.0/16\""},
	{"bits behind a prefix within a byte", "['10.255.255.255/9']", 0,
	 "10.128.0.0/9 ! \"KEY\"[0] is \"10.255.255.255/9\", which is taken as \"10.128.0.0/9\""},
	{"the last bit of a byte behind a prefix", "['10.3.0.0/15']", 0,
	 "10.2.0.0/15 ! \"KEY\"[0] is \"10.3.0.0/15\", which is taken as \"10.2.0.0/15\""},
	{"bits behind an IPv6 prefix", "['2001:db8:ffff::1/33']", 0,
	 "2001:db8:8000::/33 ! \"KEY\"[0] is \"2001:db8:ffff::1/33\", which is taken as "
	 "\"2001:db8:8000::/33\""},
	{"bits behind /0", "['1.2.3.4/0']", 0,
	 "0.0.0.0/0 ! \"KEY\"[0] is \"1.2.3.4/0\", which is taken as \"0.0.0.0/0\""},
	{"two ranges that become one", "['10.1.0.0/16','10.1.2.0/16']", 0,
	 "10.1.0.0/16 ! \"KEY\"[1] is \"10.1.2.0/16\", which is taken as \"10.1.0.0/16\""},
	{"IPv4 in IPv6 notation is IPv4", "['::ffff:10.0.0.0/104']", 0, "10.0.0.0/8 "},
	{"an exception of another family's range has no effect", "['::/0','!10.0.0.0/8']", 0,
	 "!10.0.0.0/8 ::/0 ! \"KEY\": \"!10.0.0.0/8\" has no effect: its addresses are left out "
	 "anyway"},
	{"an exception within an exception has no effect",
	 "['10.0.0.0/8','!10.1.0.0/16','!10.1.2.0/24']", 0,
	 "!10.1.2.0/24 !10.1.0.0/16 10.0.0.0/8 ! \"KEY\": \"!10.1.2.0/24\" has no effect: its "
	 "addresses are left out anyway"},
	{"an exception larger than its range has no effect", "['10.1.0.0/16','!10.0.0.0/8']", 0,
	 "10.1.0.0/16 !10.0.0.0/8 ! \"KEY\": \"!10.0.0.0/8\" has no effect: its addresses are left "
	 "out anyway"},
	{"a range that is an exception too", "['10.0.0.0/8','!10.0.0.0/8']", 7,
	 "\"KEY\" has \"10.0.0.0/8\" and, as an exception, \"!10.0.0.0/8\": remove one"},
	{"an exception that is a range too", "['!fd00::/8','::/0','fd00::/8']", 7,
	 "\"KEY\" has \"fd00::/8\" and, as an exception, \"!fd00::/8\": remove one"},
	{"a name", "['example.org']", 7,
	 "\"KEY\"[0] is \"example.org\", which is no range of addresses: give it as "
	 "\"10.0.0.0/8\", \"fd00::/8\" or \"192.0.2.1\", an exception as \"!10.1.0.0/16\""},
	{"nothing in the list", "['']", 7, "\"KEY\"[0] is \"\", which is no range"},
	{"an exclamation mark alone", "['!']", 7, "\"KEY\"[0] is \"!\""},
	{"two exclamation marks", "['!!10.0.0.0/8']", 7, "\"!!10.0.0.0/8\""},
	{"a blank behind the mark", "['! 10.0.0.0/8']", 7, "no range of addresses"},
	{"a prefix too long", "['10.0.0.0/33']", 7, "\"KEY\"[0] is \"10.0.0.0/33\""},
	{"an IPv6 prefix too long", "['fd00::/129']", 7, "\"fd00::/129\""},
	{"a prefix negative", "['10.0.0.0/-1']", 7, "\"10.0.0.0/-1\""},
	{"no prefix behind the slash", "['10.0.0.0/']", 7, "\"10.0.0.0/\""},
	{"a netmask", "['10.0.0.0/255.0.0.0']", 7, "\"10.0.0.0/255.0.0.0\""},
	{"two slashes", "['10.0.0.0/8/8']", 7, "\"10.0.0.0/8/8\""},
	{"a shortened address", "['10/8']", 7, "\"10/8\""},
	{"part of IPv6 and all of IPv4", "['::ffff:0:0/95']", 7, "\"::ffff:0:0/95\""},
	{"a range from to", "['10.0.0.0-10.0.0.9']", 7, "\"10.0.0.0-10.0.0.9\""},
	{"the second is bad", "['10.0.0.0/8','x']", 7, "\"KEY\"[1] is \"x\""},
};

/* KEY becomes the key, in a copy. */
static void with_key(char copy[TEXT_SIZE], const char *text, const char *key)
{
	const char *hit;

	for (*copy = '\0'; (hit = strstr(text, "KEY")) != NULL; text = hit + 3)
		append(copy, "%.*s%s", (int)(hit - text), text, key);
	append(copy, "%s", text);
}

static void read_ranges(const struct row *row, const char *key, size_t ranges, size_t count)
{
	cleanup_json json_t *config = json_pack("{s:o}", key, json_of(row->json));
	char expected[TEXT_SIZE], text[TEXT_SIZE] = "";
	struct conf conf = {0};
	const char *policy = (const char *)&conf.policy;

	with_key(expected, row->expected, key);
	assert_int_equal(conf_parse(&conf, config, "", &fault), row->code ? -1 : 0);
	if (!row->code) {
		append_ranges(text, "", (const void *)(policy + ranges),
			      *(const __u8 *)(policy + count));
		for (size_t i = 0; i < json_array_size(conf.warnings); i++)
			append(text, "! %s", json_string_value(json_array_get(conf.warnings, i)));
		assert_string_equal(text, expected);
		assert_rest_is_zero(&conf.policy);
	}
	assert_error(row->code, expected);
	conf_release(&conf);
}

ROWS(range_rows, reads_ranges)
{
	read_ranges(row, "nonMasqueradeCIDRs", offsetof(struct policy, unmasqueraded),
		    offsetof(struct policy, unmasqueraded_count));
	read_ranges(row, "sourceRanges", offsetof(struct policy, source_ranges),
		    offsetof(struct policy, source_range_count));
	read_ranges(row, "excludeCIDRs", offsetof(struct policy, excluded),
		    offsetof(struct policy, excluded_count));
}

/* 10.0.0.0/32, 10.0.0.1/32 ... */
static json_t *addresses(size_t count)
{
	json_t *array = json_array();
	char text[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "10.%zu.%zu.%zu", i >> 16 & 255, i >> 8 & 255,
			 i & 255);
		json_array_append_new(array, json_string(text));
	}
	return array;
}

TEST(takes_32_ranges, "32 ranges")
{
	cleanup_json json_t *config = json_pack("{s:o}", "excludeCIDRs", addresses(32));
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, config, &fault), 0);
	assert_int_equal(conf.policy.excluded_count, 32);
	assert_int_equal(conf.policy.excluded[31].address[15], 31);
	conf_release(&conf);
}

static const struct {
	const char *name;
	const char *key;
	size_t count;
	const char *message;
} huge_rows[] = {
	{"33 ranges", "sourceRanges", 33, "\"sourceRanges\" has 33 entries, at most 32"},
	{"a million ranges", "nonMasqueradeCIDRs", 1000000, "has 1000000 entries, at most 32"},
	{"a million source addresses", "snatAddresses", 1000000,
	 "one more than the 8 that are possible"},
	{"a million lists of ports", "masqPorts", 1000000, "is not a list of ports"},
};

ROWS(huge_rows, refuses_huge_lists)
{
	cleanup_json json_t *config = json_pack("{s:o}", row->key, addresses(row->count));
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, config, &fault), -1);
	assert_error(7, row->message);
	conf_release(&conf);
}

/* A million times the same port is one range. */
TEST(unites_many_ports, "a million ports that are one range")
{
	json_t *array = json_array();
	cleanup_json json_t *config = json_pack("{s:o}", "masqPorts", array);
	struct conf conf = {0};

	for (int i = 0; i < 1000000; i++)
		json_array_append_new(array, json_integer(65535 - i % 60000));
	assert_int_equal(conf_parse_options(&conf, config, &fault), 0);
	assert_int_equal(conf.policy.masquerade_ports[0].first, 5536);
	assert_int_equal(conf.policy.masquerade_ports[0].last, 65535);
	assert_int_equal(conf.policy.masquerade_ports[1].last, 0);
	conf_release(&conf);
}

static const char *const every_key[] = {"masqPorts",    "snatAddresses", "nonMasqueradeCIDRs",
					"sourceRanges", "excludeCIDRs",  "uplinks",
					"maxFlows",     "masqAll",       "excludeInterfaces"};

/* Arrays in arrays, as deep as the parser lets through, and a string of a megabyte. */
TEST(survives_junk, "junk in place of every option")
{
	cleanup_json json_t *deep = json_array();
	cleanup_free char *text = malloc(1 << 20);
	cleanup_json json_t *junk = json_array();

	assert_non_null(text);
	memset(text, '!', (1 << 20) - 1);
	text[(1 << 20) - 1] = '\0';
	for (int i = 0; i < 2000; i++) {
		json_t *outer = json_array();

		json_array_append_new(outer, deep);
		deep = outer;
	}
	json_array_append(junk, deep);
	json_array_append_new(junk, json_string(text));
	json_array_append_new(junk, json_pack("[s]", text));
	json_array_append_new(junk, json_pack("[[]]"));
	json_array_append_new(junk, json_pack("[{}]"));
	for (size_t i = 0; i < COUNT(every_key) * json_array_size(junk); i++) {
		cleanup_json json_t *config = json_pack("{s:O}", every_key[i % COUNT(every_key)],
							json_array_get(junk, i / COUNT(every_key)));
		struct conf conf = {0};

		assert_int_equal(conf_parse_options(&conf, config, &fault), -1);
		assert_true(fault.code == 6 || fault.code == 7);
		cni_error_release(&fault);
		conf_release(&conf);
	}
}
