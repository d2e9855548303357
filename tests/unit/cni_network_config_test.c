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
	{"no cniVersion is 0.1.0", CNI_ADD, "{'name':'n'}", 0, "0.1.0"},
	{"an empty cniVersion is 0.1.0", CNI_ADD, "{'cniVersion':'','name':'n'}", 0, "0.1.0"},
	{"a cniVersion of null is 0.1.0", CNI_ADD, "{'cniVersion':null,'name':'n'}", 0, "0.1.0"},
	{"keys in any case", CNI_ADD, "{'CNIVERSION':'0.4.0','Name':'n'}", 0, "0.4.0"},
	{"of two versions the later wins", CNI_ADD,
	 "{'cniVersion':'9.9.9','name':'n','CniVersion':'0.4.0'}", 0, "0.4.0"},
	{"unknown keys are ignored", CNI_ADD, "{'name':'n','args':5,'cni.dev/x':[],'x':{}}", 0,
	 "0.1.0"},
	{"DEL does not look at prevResult and runtimeConfig", CNI_DEL,
	 "{'name':'n','prevResult':5,'runtimeConfig':'x'}", 0, "0.1.0"},
	{"not JSON", CNI_ADD, "hello", 6, "the network configuration on stdin is not valid"},
	{"empty stdin", CNI_ADD, "", 6, "the network configuration on stdin is empty"},
	{"an array", CNI_ADD, "[]", 6, "must be a JSON object, found an array"},
	{"a string", CNI_ADD, "\"n\"", 6, "must be a JSON object"},
	{"text after the object", CNI_ADD, "{\"name\":\"n\"} x", 6, "not valid JSON"},
	{"a byte-order mark", CNI_ADD, "\xef\xbb\xbf{\"name\":\"n\"}", 6, "not valid JSON"},
	{"null has no name", CNI_ADD, "null", 7, "missing network name"},
	{"no name", CNI_ADD, "{}", 7, "missing network name"},
	{"an empty name", CNI_ADD, "{'name':''}", 7, "missing network name"},
	{"a bad name", CNI_ADD, "{'name':'a/b'}", 7, "network name \"a/b\""},
	{"a name of the wrong type", CNI_ADD, "{'name':5}", 6, "\"name\" must be a string"},
	{"a cniVersion that is a number", CNI_ADD, "{'cniVersion':1,'name':'n'}", 6,
	 "\"cniVersion\" must be a string, found the number 1"},
	{"an unknown version", CNI_ADD, "{'cniVersion':'1.0','name':'n'}", 1, "\"1.0\""},
	{"an unknown version at DEL", CNI_DEL, "{'cniVersion':'2.0.0','name':'n'}", 1, "\"2.0.0\""},
	{"DEL reports a bad name", CNI_DEL, "{'name':'-'}", 7, "network name"},
	{"DEL reports broken JSON", CNI_DEL, "{", 6, "not valid JSON"},
	{"CHECK needs 0.4.0", CNI_CHECK, "{'cniVersion':'0.3.1','name':'n'}", 1,
	 "CHECK needs cniVersion 0.4.0"},
	{"GC without cniVersion", CNI_GC, "{'name':'n'}", 1, "GC needs cniVersion 1.1.0"},
	{"STATUS of a version that is no number", CNI_STATUS, "{'cniVersion':'abc','name':'n'}", 6,
	 "\"abc\""},
	{"broken JSON comes before the unknown command", CNI_UNKNOWN_COMMAND, "{", 6,
	 "not valid JSON"},
	{"the name comes before the unknown command", CNI_UNKNOWN_COMMAND, "{'cniVersion':'9.9.9'}",
	 7, "missing network name"},
	{"the unknown command comes before the version", CNI_UNKNOWN_COMMAND,
	 "{'cniVersion':'9.9.9','name':'n'}", 4, "unknown CNI_COMMAND: add"},
	{"the name comes before the version", CNI_ADD, "{'cniVersion':9,'name':''}", 7,
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
	{"an error is printed in the configuration's version", "{'cniVersion':'0.3.1','name':''}",
	 "0.3.1"},
	{"an error before the version is known", "{", "1.1.0"},
	{"an error for an unknown version", "{'cniVersion':'7.0.0','name':'n'}", "1.1.0"},
	{"an error for a version of the wrong type", "{'cniVersion':7,'name':'n'}", "1.1.0"},
	{"an error for null", "null", "1.1.0"},
	{"an error without a version", "{'name':5}", "0.1.0"},
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
	{"prevResult {} is accepted", CNI_ADD, "{'prevResult':{}}", 0, NULL},
	{"PrevResult in another case", CNI_ADD, "{'PREVRESULT':{}}", 0, NULL},
	{"prevResult missing", CNI_ADD, "{}", 7, "prevResult is missing"},
	{"prevResult null", CNI_ADD, "{'prevResult':null}", 7, "prevResult is missing"},
	{"prevResult an array", CNI_ADD, "{'prevResult':[]}", 6,
	 "\"prevResult\" must be an object, found an array"},
	{"prevResult a string", CNI_ADD, "{'prevResult':'x'}", 6, "must be an object"},
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
	{"valid-attachments", "{\"cni.dev/valid-attachments\":[" C2 "," C1 "]}", 0, true, 2, true},
	{"attachments", "{\"cni.dev/attachments\":[" C1 "," C2 "]}", 0, true, 2, true},
	{"valid-attachments are preferred",
	 "{\"cni.dev/attachments\":[" C2 "],\"cni.dev/valid-attachments\":[" C1 "]}", 0, true, 1,
	 true},
	{"valid-attachments null, though attachments has one: nothing is valid",
	 "{\"cni.dev/attachments\":[" C1 "],\"cni.dev/valid-attachments\":null}", 0, true, 0,
	 false},
	{"another interface of the container",
	 "{\"cni.dev/valid-attachments\":[" C1_ETH1 "," C2 "]}", 0, true, 2, false},
	{"keys of entries in any case",
	 "{'cni.dev/valid-attachments':[{'ContainerID':'c1','IfName':'eth0'}]}", 0, true, 1, true},
	{"null is an empty list", "{'cni.dev/valid-attachments':null}", 0, true, 0, false},
	{"an empty list", "{'cni.dev/valid-attachments':[]}", 0, true, 0, false},
	{"no list at all", "{'name':'n'}", 0, false, 0, false},
	{"no array", "{'cni.dev/valid-attachments':{}}", 6, true, 0, false},
	{"null in the list", "{'cni.dev/valid-attachments':[null]}", 6, true, 0, false},
	{"an ID that is a number",
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
