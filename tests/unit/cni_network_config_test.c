/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_network_config_test.c - the configuration on stdin, and the order of its errors.
 */
#include "cni_testing.h"

#include "lib/cleanup.h"
#include "cni/network_config.h"

struct config_row {
	const char *name;
	enum cni_command command;
	const char *text;
	int code;
	const char *expected; /* version on success, else a part of the message */
};

static const struct config_row config_rows[] = {
	{"a configuration", CNI_ADD, "{'cniVersion':'1.0.0','name':'n'}", 0, "1.0.0"},
	{"[s19] no cniVersion is 0.1.0", CNI_ADD, "{'name':'n'}", 0, "0.1.0"},
	{"[s19] an empty cniVersion is 0.1.0", CNI_ADD, "{'cniVersion':'','name':'n'}", 0, "0.1.0"},
	{"[s19] a cniVersion of null is 0.1.0", CNI_ADD, "{'cniVersion':null,'name':'n'}", 0,
	 "0.1.0"},
	{"[s23] keys in any case", CNI_ADD, "{'CNIVERSION':'0.4.0','Name':'n'}", 0, "0.4.0"},
	{"[s23] of two versions the later wins", CNI_ADD,
	 "{'cniVersion':'9.9.9','name':'n','CniVersion':'0.4.0'}", 0, "0.4.0"},
	{"[s36] unknown keys are ignored", CNI_ADD, "{'name':'n','args':5,'cni.dev/x':[],'x':{}}",
	 0, "0.1.0"},
	{"[s49] DEL does not look at prevResult and runtimeConfig", CNI_DEL,
	 "{'name':'n','prevResult':5,'runtimeConfig':'x'}", 0, "0.1.0"},
	{"[s6] not JSON", CNI_ADD, "hello", 6, "the network configuration on stdin is not valid"},
	{"[s24] empty stdin", CNI_ADD, "", 6, "the network configuration on stdin is empty"},
	{"[s24] an array", CNI_ADD, "[]", 6, "must be a JSON object, found an array"},
	{"[s24] a string", CNI_ADD, "\"n\"", 6, "must be a JSON object"},
	{"[s24] text after the object", CNI_ADD, "{\"name\":\"n\"} x", 6, "not valid JSON"},
	{"[s24] a byte-order mark", CNI_ADD, "\xef\xbb\xbf{\"name\":\"n\"}", 6, "not valid JSON"},
	{"[s24] null has no name", CNI_ADD, "null", 7, "missing network name"},
	{"[s9] no name", CNI_ADD, "{}", 7, "missing network name"},
	{"[s9] an empty name", CNI_ADD, "{'name':''}", 7, "missing network name"},
	{"[s9] a bad name", CNI_ADD, "{'name':'a/b'}", 7, "network name \"a/b\""},
	{"[s17] a name of the wrong type", CNI_ADD, "{'name':5}", 6, "\"name\" must be a string"},
	{"[s19] a cniVersion that is a number", CNI_ADD, "{'cniVersion':1,'name':'n'}", 6,
	 "\"cniVersion\" must be a string, found the number 1"},
	{"[s18] an unknown version", CNI_ADD, "{'cniVersion':'1.0','name':'n'}", 1, "\"1.0\""},
	{"[s18] an unknown version at DEL", CNI_DEL, "{'cniVersion':'2.0.0','name':'n'}", 1,
	 "\"2.0.0\""},
	{"[s47] DEL reports a bad name", CNI_DEL, "{'name':'-'}", 7, "network name"},
	{"[s47] DEL reports broken JSON", CNI_DEL, "{", 6, "not valid JSON"},
	{"[s20] CHECK needs 0.4.0", CNI_CHECK, "{'cniVersion':'0.3.1','name':'n'}", 1,
	 "CHECK needs cniVersion 0.4.0"},
	{"[s20] GC without cniVersion", CNI_GC, "{'name':'n'}", 1, "GC needs cniVersion 1.1.0"},
	{"[s20] STATUS of a version that is no number", CNI_STATUS,
	 "{'cniVersion':'abc','name':'n'}", 6, "\"abc\""},
	{"[s6] broken JSON comes before the unknown command", CNI_UNKNOWN_COMMAND, "{", 6,
	 "not valid JSON"},
	{"[s6] the name comes before the unknown command", CNI_UNKNOWN_COMMAND,
	 "{'cniVersion':'9.9.9'}", 7, "missing network name"},
	{"[s6] the unknown command comes before the version", CNI_UNKNOWN_COMMAND,
	 "{'cniVersion':'9.9.9','name':'n'}", 4, "unknown CNI_COMMAND: add"},
	{"[s6] the name comes before the version", CNI_ADD, "{'cniVersion':9,'name':''}", 7,
	 "missing network name"},
};

static int parse(struct cni_network_config *config, const char *text,
		 const struct cni_environment *environment)
{
	cleanup_free char *json = unquoted(text);

	return cni_network_config_parse(config, json, strlen(json), environment, &fault);
}

ROWS(config_rows, parses_in_the_order_of_libcni)
{
	const struct cni_environment environment = {
		.command = row->command,
		.command_name = "add",
	};
	struct cni_network_config config = {0};

	assert_int_equal(parse(&config, row->text, &environment), row->code ? -1 : 0);
	if (!row->code) {
		assert_string_equal(config.version, row->expected);
		assert_string_equal(config.name, "n");
	}
	assert_error(row->code, row->expected);
	cni_network_config_release(&config);
}

static const struct {
	const char *name;
	const char *text;
	const char *version;
} reply_rows[] = {
	{"[s14] an error is printed in the configuration's version",
	 "{'cniVersion':'0.3.1','name':''}", "0.3.1"},
	{"[s14] an error before the version is known", "{", "1.1.0"},
	{"[s14] an error for an unknown version", "{'cniVersion':'7.0.0','name':'n'}", "1.1.0"},
	{"[s14] an error for a version of the wrong type", "{'cniVersion':7,'name':'n'}", "1.1.0"},
	{"[s14] an error for null", "null", "1.1.0"},
	{"[s14] an error without a version", "{'name':5}", "0.1.0"},
};

ROWS(reply_rows, error_is_printed_in_version)
{
	const struct cni_environment environment = {.command = CNI_ADD, .command_name = "ADD"};
	struct cni_network_config config = {0};

	assert_int_equal(parse(&config, row->text, &environment), -1);
	assert_string_equal(cni_network_config_reply_version(&config), row->version);
	cni_error_release(&fault);
	cni_network_config_release(&config);
}

static const struct config_row prev_result_rows[] = {
	{"[s32] prevResult {} is accepted", CNI_ADD, "{'prevResult':{}}", 0, NULL},
	{"[s23] PrevResult in another case", CNI_ADD, "{'PREVRESULT':{}}", 0, NULL},
	{"[s32] prevResult missing", CNI_ADD, "{}", 7, "prevResult is missing"},
	{"[s32] prevResult null", CNI_ADD, "{'prevResult':null}", 7, "prevResult is missing"},
	{"[s32] prevResult an array", CNI_ADD, "{'prevResult':[]}", 6,
	 "\"prevResult\" must be an object, found an array"},
	{"[s32] prevResult a string", CNI_ADD, "{'prevResult':'x'}", 6, "must be an object"},
};

ROWS(prev_result_rows, prev_result_is_needed)
{
	struct cni_network_config config = {.root = json_of(row->text)};
	json_t *prev_result = NULL;

	assert_int_equal(cni_network_config_get_prev_result(&config, &prev_result, &fault),
			 row->code ? -1 : 0);
	assert_int_equal(prev_result != NULL, !row->code);
	assert_error(row->code, row->expected);
	cni_network_config_release(&config);
}

#define C1 "{'containerID':'c1','ifname':'eth0'}"
#define C2 "{'containerID':'c2','ifname':'eth0'}"
#define C1_ETH1 "{'containerID':'c1','ifname':'eth1'}"

static const struct {
	const char *name;
	const char *text;
	int code; /* or 0: */
	bool given;
	size_t count;
	bool has; /* c1, eth0 */
} list_rows[] = {
	{"[s54] valid-attachments", "{\"cni.dev/valid-attachments\":[" C2 "," C1 "]}", 0, true, 2,
	 true},
	{"[s54] attachments", "{\"cni.dev/attachments\":[" C1 "," C2 "]}", 0, true, 2, true},
	{"[s54] valid-attachments are preferred",
	 "{\"cni.dev/attachments\":[" C2 "],\"cni.dev/valid-attachments\":[" C1 "]}", 0, true, 1,
	 true},
	{"[s55] valid-attachments null, though attachments has one: nothing is valid",
	 "{\"cni.dev/attachments\":[" C1 "],\"cni.dev/valid-attachments\":null}", 0, true, 0,
	 false},
	{"[s54] another interface of the container",
	 "{\"cni.dev/valid-attachments\":[" C1_ETH1 "," C2 "]}", 0, true, 2, false},
	{"[s23] keys of entries in any case",
	 "{'cni.dev/valid-attachments':[{'ContainerID':'c1','IfName':'eth0'}]}", 0, true, 1, true},
	{"[s55] null is an empty list", "{'cni.dev/valid-attachments':null}", 0, true, 0, false},
	{"[s55] an empty list", "{'cni.dev/valid-attachments':[]}", 0, true, 0, false},
	{"[s56] no list at all", "{'name':'n'}", 0, false, 0, false},
	{"[s17] no array", "{'cni.dev/valid-attachments':{}}", 6, true, 0, false},
	{"[s17] null in the list", "{'cni.dev/valid-attachments':[null]}", 6, true, 0, false},
	{"[s17] an ID that is a number",
	 "{'cni.dev/valid-attachments':[{'containerID':1,'ifname':'eth0'}]}", 6, true, 0, false},
	{"an entry without ifname is refused, lest GC deletes what it stands for",
	 "{'cni.dev/valid-attachments':[{'containerID':'c1'}]}", 7, true, 0, false},
};

ROWS(list_rows, reads_valid_attachments)
{
	cleanup_json json_t *config = json_of(row->text);
	cleanup_json json_t *valid = NULL;

	assert_int_equal(cni_attachments_read(&valid, config, &fault), row->code ? -1 : 0);
	assert_int_equal(valid != NULL, row->given);
	if (!row->code) {
		assert_int_equal(json_object_size(valid), row->count);
		assert_int_equal(cni_attachments_have(valid, "c1", "eth0"), row->has);
		assert_false(cni_attachments_have(valid, "c", "eth0"));
	}
	assert_error(row->code, "cni.dev/valid-attachments");
}
