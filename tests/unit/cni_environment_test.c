/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_environment_test.c - which command needs which variable, and what is valid.
 */
#include "cni_testing.h"

#include "cni/environment.h"

#define BAD_ID "/bad"
#define BAD_IFNAME "eth:0"
#define ALL_THREE "c1", "/run/netns/c1", "eth0"

static const struct {
	const char *name;
	const char *command; /* NULL: unset */
	const char *container_id;
	const char *netns;
	const char *ifname;
	int code;
	const char *message; /* the whole of it */
} rows[] = {
	{"ADD with all it needs", "ADD", ALL_THREE, 0, NULL},
	{"CHECK with all it needs", "CHECK", ALL_THREE, 0, NULL},
	{"DEL with all it needs", "DEL", "c1", NULL, "eth0", 0, NULL},
	{"DEL with CNI_NETNS empty", "DEL", "c1", "", "eth0", 0, NULL},
	{"GC needs no attachment", "GC", NULL, NULL, NULL, 0, NULL},
	{"STATUS needs no attachment", "STATUS", NULL, NULL, NULL, 0, NULL},
	{"VERSION needs nothing", "VERSION", NULL, NULL, NULL, 0, NULL},
	{"ADD does not demand CNI_PATH", "ADD", ALL_THREE, 0, NULL},
	{"ADD with nothing names all in order", "ADD", NULL, NULL, NULL, 4,
	 "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing"},
	{"an empty variable is missing", "ADD", "", "", "", 4,
	 "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing"},
	{"CHECK needs CNI_NETNS", "CHECK", "c1", NULL, "eth0", 4,
	 "required env variables [CNI_NETNS] missing"},
	{"DEL names what it needs, not CNI_NETNS", "DEL", NULL, NULL, NULL, 4,
	 "required env variables [CNI_CONTAINERID,CNI_IFNAME] missing"},
	{"a bad ifname is reported before a missing ID", "ADD", NULL, NULL, BAD_IFNAME, 4,
	 "invalid interface name \"eth:0\": it contains a slash, a colon or white space"},
	{"a bad ID is reported before a bad ifname", "ADD", BAD_ID, NULL, BAD_IFNAME, 4,
	 "invalid characters in containerID \"/bad\": it must begin with a letter or digit, and "
	 "letters, digits, '_', '.', '-' may follow"},
	{"GC with bad ID and ifname passes", "GC", BAD_ID, NULL, BAD_IFNAME, 0, NULL},
	{"STATUS with bad ID and ifname passes", "STATUS", BAD_ID, "x", BAD_IFNAME, 0, NULL},
	{"VERSION with bad ID and ifname passes", "VERSION", BAD_ID, "x", BAD_IFNAME, 0, NULL},
	{"VERSION with dummies", "VERSION", "dummy", "dummy", "dummy", 0, NULL},
	{"an unknown command is left to the configuration", "add", NULL, NULL, NULL, 0, NULL},
	{"no command needs only a command", NULL, NULL, NULL, NULL, 4,
	 "required env variables [CNI_COMMAND] missing"},
};

static void set_or_unset(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

ROWS(rows, validates_as_libcni)
{
	struct cni_environment environment;
	int result;

	set_or_unset("CNI_COMMAND", row->command);
	set_or_unset("CNI_CONTAINERID", row->container_id);
	set_or_unset("CNI_NETNS", row->netns);
	set_or_unset("CNI_IFNAME", row->ifname);
	unsetenv("CNI_PATH");
	cni_environment_read(&environment);
	result = cni_environment_validate(&environment, &fault);
	assert_int_equal(result, row->code ? -1 : 0);
	assert_int_equal(fault.code, row->code);
	if (row->code)
		assert_string_equal(cni_error_message(&fault), row->message);
	cni_error_release(&fault);
}

static const struct {
	const char *name;
	const char *text;
	enum cni_command command;
} command_rows[] = {
	{"CNI_COMMAND unset is no command", NULL, CNI_NO_COMMAND},
	{"CNI_COMMAND empty is no command", "", CNI_NO_COMMAND},
	{"command ADD", "ADD", CNI_ADD},
	{"command DEL", "DEL", CNI_DEL},
	{"command CHECK", "CHECK", CNI_CHECK},
	{"command GC", "GC", CNI_GC},
	{"command STATUS", "STATUS", CNI_STATUS},
	{"command VERSION", "VERSION", CNI_VERSION},
	{"add is not ADD", "add", CNI_UNKNOWN_COMMAND},
	{"a blank after ADD", "ADD ", CNI_UNKNOWN_COMMAND},
	{"UPDATE is unknown", "UPDATE", CNI_UNKNOWN_COMMAND},
};

ROWS(command_rows, reads_the_command)
{
	struct cni_environment environment;

	set_or_unset("CNI_COMMAND", row->text);
	cni_environment_read(&environment);
	assert_int_equal(environment.command, row->command);
	assert_string_equal(environment.command_name, row->text ? row->text : "");
}

static const struct {
	const char *name;
	const char *text;
	bool override;
} override_rows[] = {
	{"CNI_NETNS_OVERRIDE unset", NULL, false}, {"CNI_NETNS_OVERRIDE=1", "1", true},
	{"CNI_NETNS_OVERRIDE=true", "true", true}, {"CNI_NETNS_OVERRIDE=TRUE", "TRUE", true},
	{"CNI_NETNS_OVERRIDE=0", "0", false},      {"CNI_NETNS_OVERRIDE=yes", "yes", false},
	{"CNI_NETNS_OVERRIDE=11", "11", false},
};

ROWS(override_rows, reads_the_override)
{
	struct cni_environment environment;

	set_or_unset("CNI_NETNS_OVERRIDE", row->text);
	cni_environment_read(&environment);
	assert_int_equal(environment.netns_override, row->override);
}

TEST(unset_variables_are_empty_strings, "unset variables are empty strings")
{
	struct cni_environment environment;

	unsetenv("CNI_CONTAINERID");
	unsetenv("CNI_NETNS");
	unsetenv("CNI_IFNAME");
	unsetenv("CNI_ARGS");
	unsetenv("CNI_PATH");
	cni_environment_read(&environment);
	assert_string_equal(environment.container_id, "");
	assert_string_equal(environment.netns, "");
	assert_string_equal(environment.ifname, "");
	assert_string_equal(environment.args, "");
}

struct text_row {
	const char *name;
	const char *text;
	bool valid;
};

static const struct text_row identifier_rows[] = {
	{"letters and digits", "Az09", true},
	{"one digit", "0", true},
	{"dot, dash, underscore inside", "a.b-c_d", true},
	{"empty", "", false},
	{"begins with a dot", ".a", false},
	{"begins with a dash", "-a", false},
	{"begins with an underscore", "_a", false},
	{"slash", "a/b", false},
	{".. up a directory", "a/../b", false},
	{"blank", "a b", false},
	{"newline at the end", "a\n", false},
	{"a letter beyond ASCII", "caf\xc3\xa9", false},
	{"a byte that is not UTF-8", "a\xff", false},
};

ROWS(identifier_rows, container_id_and_network_name_follow_the_pattern)
{
	assert_int_equal(cni_validate_container_id(row->text, &fault), row->valid ? 0 : -1);
	assert_error(row->valid ? 0 : 4, row->text);
	assert_int_equal(cni_validate_network_name(row->text, &fault), row->valid ? 0 : -1);
	if (!row->valid && *row->text)
		assert_string_equal(cni_error_details(&fault), row->text);
	assert_error(row->valid ? 0 : 7, row->text);
}

TEST(a_container_id_may_be_long, "a container ID has no length limit")
{
	char text[5000];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(cni_validate_container_id(text, &fault), 0);
}

static const struct text_row ifname_rows[] = {
	{"eth0", "eth0", true},
	{"1 byte", "e", true},
	{"15 bytes", "abcdefghijklmno", true},
	{"16 bytes", "abcdefghijklmnop", false},
	{"8 two-byte characters are 16 bytes",
	 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", false},
	{"empty", "", false},
	{"dot", ".", false},
	{"two dots", "..", false},
	{"three dots", "...", true},
	{"slash", "a/b", false},
	{"colon", "eth0:1", false},
	{"blank", "eth 0", false},
	{"tab", "eth\t0", false},
	{"newline", "eth0\n", false},
	{"vertical tab", "e\v", false},
};

ROWS(ifname_rows, ifname_is_what_the_kernel_takes)
{
	assert_int_equal(cni_validate_ifname(row->text, &fault), row->valid ? 0 : -1);
	assert_error(row->valid ? 0 : 4, row->text);
}

static const struct text_row args_rows[] = {
	{"the only pair", "K8S_POD_NAME=web", true},
	{"in the middle", "IgnoreUnknown=1;K8S_POD_NAME=web;K8S_POD_UID=7", true},
	{"an empty value counts", "A=1;K8S_POD_NAME=", true},
	{"no CNI_ARGS", "", false},
	{"a longer key", "XK8S_POD_NAME=web;K8S_POD_NAMESPACE=x", false},
	{"without an equals sign", "K8S_POD_NAME", false},
	{"as a value", "A=K8S_POD_NAME=1", false},
	{"garbage passes", "garbage;;=", false},
	{"after garbage", ";;=;garbage;K8S_POD_NAME=web", true},
};

ROWS(args_rows, finds_a_key_of_cni_args)
{
	assert_int_equal(cni_args_have_key(row->text, "K8S_POD_NAME"), row->valid);
}
