/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_test.c - our options and what runtimeConfig says, save port mappings.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "lib/cleanup.h"
#include "conf/request.h"

static const struct {
	const char *name;
	const char *json;
	int code;
	const char *message; /* a part of the error, or of the one warning; NULL: no warning */
} option_rows[] = {
	{"nothing at all", "{}", 0, NULL},
	{"unknown keys are ignored, with a warning", "{'type':'x','args':5,'mtu':1500}", 0,
	 "unknown key \"mtu\" is ignored"},
	{"a portMappings outside runtimeConfig is ignored", "{'portMappings':7}", 0,
	 "unknown key \"portMappings\" is ignored"},
	{"a misspelt option", "{'sourceRange':['192.0.2.0/24']}", 0,
	 "unknown key \"sourceRange\" is ignored"},
	{"an option in another case", "{'IPMASQ':true}", 0, NULL},
	{"keys of CNI, of runtimes and of portmap",
	 "{'name':'x','cniVersion':'1.0.0','ipam':{},'dns':{},'prevResult':{},'cni.dev/"
	 "attachments':[],'capabilities':{},'conditionsV4':[],'args':{},'runtimeConfig':{}}",
	 0, NULL},
	{"a key of nothing", "{'':1}", 0, "unknown key \"\" is ignored"},
	{"markMasqBit is accepted with a warning", "{'markMasqBit':13}", 0, "markMasqBit"},
	{"externalSetMarkChain is accepted with a warning",
	 "{'externalSetMarkChain':'KUBE-MARK-MASQ'}", 0, "externalSetMarkChain"},
	{"backend iptables is accepted with a warning", "{'backend':'iptables'}", 0, "backend"},
	{"any backend is accepted with a warning", "{'backend':'x'}", 0, "backend"},
	{"markMasqBit null", "{'markMasqBit':null}", 0, NULL},
	{"conditionsV4 null", "{'conditionsV4':null}", 0, NULL},
	{"conditionsV4 and V6 empty", "{'conditionsV4':[],'conditionsV6':[]}", 0, NULL},
	{"conditionsV4", "{'conditionsV4':['-s','10.0.0.0/8']}", 2,
	 "unsupported field \"conditionsV4\": [\"-s\",\"10.0.0.0/8\"]"},
	{"conditions whose destination is excluded, as real lists have them",
	 "{'conditionsV4':['!','-d','192.0.2.1/32']}", 2,
	 "nftables, which bpf-portmap does not use; put in its place: \"excludeCIDRs\":"
	 " [\"192.0.2.1/32\"]"},
	{"a destination alone", "{'conditionsV4':['-d','192.0.2.1']}", 2,
	 "put in its place: \"excludeCIDRs\": [\"0.0.0.0/0\", \"!192.0.2.1\"]"},
	{"clients of both families, and an interface",
	 "{'conditionsV4':['-s','10.0.0.0/8,192.0.2.1','-i','eth0'],"
	 "'conditionsV6':['!','--source','fd00::/8','-i','eth0']}",
	 2,
	 "put in its place: \"sourceRanges\": [\"10.0.0.0/8\", \"192.0.2.1\", \"::/0\","
	 " \"!fd00::/8\"], \"uplinks\": [\"eth0\"]"},
	{"clients of one family", "{'conditionsV6':['-s','fd00::/8']}", 2,
	 "put in its place: \"sourceRanges\": [\"fd00::/8\", \"0.0.0.0/0\"]"},
	{"conditions that we have no option for", "{'conditionsV4':['-m','mark','--mark','1']}", 2,
	 "remove the key: the options \"sourceRanges\" (clients), \"excludeCIDRs\" (addresses of"
	 " the host) and \"uplinks\" (interfaces) say who"},
	{"iptables' wildcard for interfaces", "{'conditionsV4':['-i','eth+']}", 2,
	 "put in its place: \"uplinks\": [\"eth*\"]"},
	{"an interface whose name would be a wildcard of ours", "{'conditionsV4':['-i','eth*']}", 2,
	 "remove the key"},
	{"two of a kind", "{'conditionsV4':['-s','10.0.0.0/8','!','-s','10.0.0.1']}", 2,
	 "remove the key"},
	{"interfaces that differ by family, which one option cannot say",
	 "{'conditionsV4':['-i','eth0'],'conditionsV6':['-i','eth1']}", 2, "remove the key"},
	{"interfaces of which one family names those that shall not",
	 "{'conditionsV4':['-i','eth0'],'conditionsV6':['!','-i','eth0']}", 2, "remove the key"},
	{"an interface's name is one, whatever it looks like",
	 "{'conditionsV4':['-i','eth0,eth1']}", 2, "\"uplinks\": [\"eth0,eth1\"]"},
	{"iptables' short words", "{'conditionsV4':['--src','10.0.0.0/8','!','--dst','10.0.0.1']}",
	 2, "\"sourceRanges\": [\"10.0.0.0/8\", \"::/0\"], \"excludeCIDRs\": [\"10.0.0.1\"]"},
	{"a mask, which our ranges do not have", "{'conditionsV4':['-s','10.0.0.0/255.0.0.0']}", 2,
	 "remove the key"},
	{"a host's name", "{'conditionsV4':['-s','example.org']}", 2, "remove the key"},
	{"conditionsV6 with an empty text", "{'conditionsV6':['']}", 2,
	 "unsupported field \"conditionsV6\": [\"\"]"},
	{"fastPath of an unknown value", "{'fastPath':'on'}", 7,
	 "\"fastPath\" is \"on\", must be \"off\", \"established\" or \"always\""},
	{"strict false", "{'strict':false}", 0, NULL},
	{"strict true", "{'Strict':true}", 0, NULL},
	{"localhost false", "{'localhost':false}", 0, NULL},
	{"localhost true", "{'localhost':true}", 0, NULL},
	{"reserveHostPorts false", "{'reserveHostPorts':false}", 0, NULL},
	{"reserveHostPorts true", "{'reserveHostPorts':true}", 0, NULL},
	{"refuseForeign true", "{'refuseForeign':true}", 0, NULL},
	{"attach of an unknown value", "{'attach':'xdp'}", 7, "\"attach\" is \"xdp\", must be"},
	{"flowEntries too few", "{'flowEntries':16383}", 7,
	 "\"flowEntries\" is 16383, must be 16384 to 524288"},
	{"flowEntries too many", "{'flowEntries':524289}", 7, "\"flowEntries\" is 524289"},
	{"flowEntries beyond 32 bits", "{'flowEntries':4294983680}", 7, "\"flowEntries\""},
	{"flowEntries 0", "{'flowEntries':0}", 7, "\"flowEntries\" is 0"},
	{"flowEntries negative", "{'flowEntries':-1}", 7, "\"flowEntries\" is -1"},
	{"capabilities of the wrong type", "{'capabilities':[]}", 6, "\"capabilities\""},
	{"capabilities.bandwidth of the wrong type", "{'capabilities':{'bandwidth':1}}", 6,
	 "capabilities: \"bandwidth\""},
	{"runtimeConfig of the wrong type", "{'runtimeConfig':[]}", 6, "\"runtimeConfig\""},
	{"runtimeConfig null", "{'runtimeConfig':null}", 0, NULL},
	{"runtimeConfig.bandwidth of the wrong type", "{'runtimeConfig':{'bandwidth':5}}", 6,
	 "runtimeConfig: \"bandwidth\""},
	{"a rate of the wrong type", "{'runtimeConfig':{'bandwidth':{'egressRate':'1M'}}}", 6,
	 "runtimeConfig.bandwidth: \"egressRate\" must be an integer, found the string \"1M\""},
};

ROWS(option_rows, judges_options)
{
	cleanup_json json_t *json = json_of(row->json);
	struct conf conf = {0};

	assert_int_equal(conf_parse(&conf, json, "", &fault), row->code ? -1 : 0);
	if (!row->code) {
		assert_int_equal(json_array_size(conf.warnings), row->message ? 1 : 0);
		if (row->message)
			assert_non_null(strstr(json_string_value(json_array_get(conf.warnings, 0)),
					       row->message));
	}
	assert_error(row->code, row->message);
	conf_release(&conf);
	assert_null(conf.warnings);
}

/* What is not said has its default: no masquerade, fastPath established, attach auto. */
static const struct {
	const char *name;
	const char *json;
	const char *expected;
} value_rows[] = {
	{"no ipMasq, no option", "{}", ""},
	{"ipMasq is for both families", "{'ipMasq':true}", "4 6 "},
	{"ipMasq6 off", "{'ipMasq':true,'ipMasq6':false}", "4 "},
	{"ipMasq4 off", "{'ipMasq4':false,'ipMasq':true}", "6 "},
	{"only ipMasq4", "{'ipMasq4':true}", "4 "},
	{"only ipMasq6", "{'ipMasq6':true}", "6 "},
	{"ipMasq4 null is as ipMasq", "{'ipMasq':true,'ipMasq4':null}", "4 6 "},
	{"ipMasq null is off", "{'ipMasq':null}", ""},
	{"IPMASQ in another case", "{'IPMASQ':true}", "4 6 "},
	{"flowEntries the least", "{'flowEntries':16384}", "flows=16384 "},
	{"flowEntries rounded up", "{'flowEntries':16385}", "flows=32768 "},
	{"flowEntries 262144", "{'flowEntries':262144}", "flows=262144 "},
	{"flowEntries the most that may be asked for", "{'flowEntries':524288}", "flows=262144 "},
	{"flowEntries rounded up to the most", "{'flowEntries':131073}", "flows=262144 "},
	{"flowEntries beyond what is used", "{'flowEntries':262145}", "flows=262144 "},
	{"attach auto", "{'attach':'auto'}", ""},
	{"attach clsact", "{'attach':'clsact'}", "clsact "},
	{"attach tcx", "{'attach':'tcx'}", "tcx "},
	{"fastPath null", "{'fastPath':null}", ""},
	{"fastPath \"off\"", "{'fastPath':'off'}", "off "},
	{"fastPath \"established\"", "{'fastPath':'established'}", ""},
	{"fastPath \"always\"", "{'fastPath':'always'}", "always "},
};

ROWS(value_rows, reads_values)
{
	static const char *const attached[] = {
		[ATTACH_AUTO] = "", [ATTACH_CLSACT] = "clsact ", [ATTACH_TCX] = "tcx "};
	static const char *const paths[] = {[FAST_PATH_OFF] = "off ",
					    [FAST_PATH_ESTABLISHED] = "",
					    [FAST_PATH_ALWAYS] = "always "};
	cleanup_json json_t *json = json_of(row->json);
	char text[64], flows[32] = "";
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, json, &fault), 0);
	assert_int_equal(json_array_size(conf.warnings), 0);
	if (conf.flow_entries)
		snprintf(flows, sizeof(flows), "flows=%u ", conf.flow_entries);
	snprintf(text, sizeof(text), "%s%s%s%s%s", conf.masquerade4 ? "4 " : "",
		 conf.masquerade6 ? "6 " : "", flows, attached[conf.attach], paths[conf.fast_path]);
	assert_string_equal(text, row->expected);
	conf_release(&conf);
}

static const struct {
	const char *name;
	const char *json;
	const char *args;
	bool may_limit;
	bool egress_limited;
} bandwidth_rows[] = {
	{"no bandwidth", "{}", "", false, false},
	{"the capability is declared", "{'capabilities':{'bandwidth':true}}", "", false, false},
	{"the capability is declared false", "{'capabilities':{'bandwidth':false}}", "", false,
	 false},
	{"egress limits", "{'runtimeConfig':{'bandwidth':{'egressRate':1000,'egressBurst':1000}}}",
	 "", true, true},
	{"ingress limits",
	 "{'runtimeConfig':{'bandwidth':{'ingressRate':1000,'ingressBurst':1000}}}", "", true,
	 false},
	{"limits of 0 are none",
	 "{'runtimeConfig':{'bandwidth':{'ingressRate':0,'ingressBurst':0,'egressRate':0,'"
	 "egressBurst':0}}}",
	 "", false, false},
	{"a Kubernetes pod", "{}", "IgnoreUnknown=1;K8S_POD_NAME=web", true, false},
	{"a Kubernetes pod whose limits we would be told", "{'capabilities':{'bandwidth':true}}",
	 "IgnoreUnknown=1;K8S_POD_NAME=web", false, false},
	{"a Kubernetes pod whose limits we are told",
	 "{'capabilities':{'bandwidth':true},'runtimeConfig':{'bandwidth':{'egressRate':1}}}",
	 "IgnoreUnknown=1;K8S_POD_NAME=web", true, true},
	{"CNI_ARGS that are garbage", "{}", "garbage;;=", false, false},
};

ROWS(bandwidth_rows, knows_of_bandwidth)
{
	cleanup_json json_t *json = json_of(row->json);
	struct conf conf = {0};

	assert_int_equal(conf_parse(&conf, json, row->args, &fault), 0);
	assert_int_equal(conf.may_limit_bandwidth, row->may_limit);
	assert_int_equal(conf.egress_limited, row->egress_limited);
	conf_release(&conf);
}

TEST(status_does_not_look_at_runtime_config, "STATUS does not look at runtimeConfig")
{
	cleanup_json json_t *json = json_of("{'runtimeConfig':7,'ipMasq':true}");
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, json, &fault), 0);
	assert_true(conf.masquerade4);
	conf_release(&conf);
}

TEST(all_warnings_are_kept, "all warnings are kept, one line each")
{
	cleanup_json json_t *json =
		json_of("{'markMasqBit':13,'externalSetMarkChain':'X','backend':'nftables'}");
	struct conf conf = {0};

	assert_int_equal(conf_parse_options(&conf, json, &fault), 0);
	assert_int_equal(json_array_size(conf.warnings), 3);
	for (size_t i = 0; i < json_array_size(conf.warnings); i++)
		assert_null(strchr(json_string_value(json_array_get(conf.warnings, i)), '\n'));
	conf_release(&conf);
}
