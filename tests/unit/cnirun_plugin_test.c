/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_plugin_test.c - what plugins find on stdin.
 */
#include "cni_testing.h"

#include "cni/execute.h"
#include "runtimes/cnirun/plugin.h"

#define ENDS "\"name\":\"n\",\"cniVersion\":\"1.0.0\""

static const struct {
	const char *name;
	const char *plugin;
	const char *prev_result;     /* NULL: none */
	const char *capability_args; /* NULL: none */
	const char *expected;
} rows[] = {
	{"name and version are set", "{'type':'a'}", NULL, NULL, "{\"type\":\"a\"," ENDS "}"},
	{"name and version are overwritten, in every spelling",
	 "{'Name':'x','cniversion':'9','type':'a'}", NULL, NULL, "{\"type\":\"a\"," ENDS "}"},
	{"prevResult", "{'type':'a'}", "{'ips':[]}", NULL,
	 "{\"type\":\"a\"," ENDS ",\"prevResult\":{\"ips\":[]}}"},
	{"declared arguments only", "{'type':'a','capabilities':{'mac':true,'ips':false}}", NULL,
	 "{'mac':'00:11','ips':[1],'portMappings':[]}",
	 "{\"type\":\"a\",\"capabilities\":{\"mac\":true,\"ips\":false}," ENDS
	 ",\"runtimeConfig\":{\"mac\":\"00:11\"}}"},
	{"capabilities in another spelling", "{'type':'a','Capabilities':{'mac':true}}", NULL,
	 "{'mac':'00:11'}",
	 "{\"type\":\"a\",\"Capabilities\":{\"mac\":true}," ENDS
	 ",\"runtimeConfig\":{\"mac\":\"00:11\"}}"},
	{"a declared capability without arguments", "{'type':'a','capabilities':{'mac':true}}",
	 NULL, "{'ips':[]}", "{\"type\":\"a\",\"capabilities\":{\"mac\":true}," ENDS "}"},
	{"without arguments runtimeConfig is left as it was",
	 "{'type':'a','runtimeConfig':{'x':1}}", NULL, "{'mac':'00:11'}",
	 "{\"type\":\"a\",\"runtimeConfig\":{\"x\":1}," ENDS "}"},
	{"with arguments it is replaced",
	 "{'runtimeConfig':{'x':1},'type':'a','capabilities':{'mac':true}}", NULL,
	 "{'mac':'00:11'}",
	 "{\"runtimeConfig\":{\"mac\":\"00:11\"},\"type\":\"a\",\"capabilities\":{\"mac\":true}"
	 "," ENDS "}"},
	{"64-bit integers and the order of keys are kept",
	 "{'z':9007199254740993,'type':'a','b':-9223372036854775808}", NULL, NULL,
	 "{\"z\":9007199254740993,\"type\":\"a\",\"b\":-9223372036854775808," ENDS "}"},
};

ROWS(rows, request_composed)
{
	const struct conflist list = {.name = (char *)"n", .version = (char *)"1.0.0"};
	json_t *plugin = json_of(row->plugin);
	json_t *before = json_deep_copy(plugin);
	json_t *prev_result = row->prev_result ? json_of(row->prev_result) : NULL;
	json_t *args = row->capability_args ? json_of(row->capability_args) : NULL;
	const struct runtime_conf conf = {.capability_args = args};
	json_t *request = plugin_compose_request(
		&(struct operation){.command = "ADD", .list = &list, .conf = &conf}, plugin,
		prev_result);

	assert_json_text(request, row->expected);
	/* The list serves the next operation, too. */
	assert_true(json_equal(plugin, before));
	json_decref(request);
	json_decref(args);
	json_decref(prev_result);
	json_decref(before);
	json_decref(plugin);
}

TEST(environment_of_a_plugin, "a plugin's variables are not set in our own environment")
{
	static const char *const variables[][2] = {{"CNI_COMMAND", "DEL"}, {0}};
	const struct execution execution = {.variables = variables, .input = ""};
	cleanup_execute_output struct execute_output output = {0};

	setenv("CNI_COMMAND", "ADD", 1);
	assert_int_equal(execute_run("/usr/bin/env", &execution, &output, &fault), 0);
	assert_non_null(strstr(output.text, "CNI_COMMAND=DEL\n"));
	assert_null(strstr(output.text, "CNI_COMMAND=ADD\n"));
	assert_non_null(strstr(output.text, "PATH="));
	assert_string_equal(getenv("CNI_COMMAND"), "ADD");
}

TEST(version_missing, "a list without version sends an empty one")
{
	const struct conflist list = {.name = (char *)"n", .version = (char *)""};
	json_t *plugin = json_of("{'type':'a'}");
	const struct runtime_conf conf = {0};
	json_t *request = plugin_compose_request(
		&(struct operation){.command = "ADD", .list = &list, .conf = &conf}, plugin, NULL);

	assert_json_text(request, "{'type':'a','name':'n','cniVersion':''}");
	json_decref(request);
	json_decref(plugin);
}

TEST(gc_has_both_keys, "GC has both keys")
{
	const struct conflist list = {.name = (char *)"n", .version = (char *)"1.1.0"};
	json_t *plugin = json_of("{'type':'a'}");
	json_t *valid = json_of("[{'containerID':'c','ifname':'eth0'}]");
	const struct runtime_conf conf = {0};
	json_t *request = plugin_compose_request(
		&(struct operation){
			.command = "GC", .list = &list, .conf = &conf, .valid_attachments = valid},
		plugin, NULL);

	assert_json_text(request, "{'type':'a','name':'n','cniVersion':'1.1.0','cni.dev/"
				  "valid-attachments':[{'containerID':'c','ifname':'eth0'}],'cni."
				  "dev/attachments':[{'containerID':'c','ifname':'eth0'}]}");
	json_decref(request);
	json_decref(valid);
	json_decref(plugin);
}
