/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_conflist_test.c - lists: what is read, what is refused, which one is found.
 */
#include "cnirun_testing.h"

#include "lib/json.h"
#include "runtimes/cnirun/conflist.h"

#define PLUGINS "\"plugins\":[{\"type\":\"bridge\"}]"
#define NAMED "{\"name\":\"n\","

static const struct {
	const char *name;
	const char *text;
	const char *expected; /* a part of the message; NULL: accepted */
	int code;
} list_rows[] = {
	{"a list", NAMED PLUGINS "}", NULL, 0},
	{"unknown keys are ignored", NAMED "\"x\":[null]," PLUGINS "}", NULL, 0},
	{"no name", "{" PLUGINS "}", "name", 7},
	{"name is a number", "{\"name\":1," PLUGINS "}", "name", 7},
	{"name is empty", "{\"name\":\"\"," PLUGINS "}", "name", 7},
	{"name would leave the cache", "{\"name\":\"../n\"," PLUGINS "}", "name", 7},
	{"the list's keys are exact", "{\"Name\":\"n\"," PLUGINS "}", "name", 7},
	{"a plugin's are not", NAMED "\"plugins\":[{\"TYPE\":\"bridge\"}]}", NULL, 0},
	{"plugins empty", NAMED "\"plugins\":[]}", "empty", 7},
	{"plugins an object", NAMED "\"plugins\":{\"type\":\"a\"}}", "array", 7},
	{"plugins null", NAMED "\"plugins\":null}", "array", 7},
	{"a plugin is a string", NAMED "\"plugins\":[\"bridge\"]}", "object", 7},
	{"a plugin is null", NAMED "\"plugins\":[null]}", "object", 7},
	{"a plugin without type", NAMED "\"plugins\":[{}]}", "type", 7},
	{"a plugin's type is empty", NAMED "\"plugins\":[{\"type\":\"\"}]}", "type", 7},
	{"a plugin's type is a number", NAMED "\"plugins\":[{\"type\":1}]}", "type", 7},
	{"capabilities an array", NAMED "\"plugins\":[{\"type\":\"a\",\"capabilities\":[]}]}",
	 "capabilities", 7},
	{"a capability is a string",
	 NAMED "\"plugins\":[{\"type\":\"a\",\"capabilities\":{\"b\":\"true\"}}]}", "true or false",
	 7},
	{"no plugins anywhere", "{\"name\":\"n\"}", "no plugins", 7},
	{"loadOnlyInlinedPlugins without plugins", NAMED "\"loadOnlyInlinedPlugins\":true}",
	 "loadOnlyInlinedPlugins", 7},
	{"disableCheck is a number", NAMED "\"disableCheck\":1," PLUGINS "}", "disableCheck", 7},
	{"disableGC is another string", NAMED "\"disableGC\":\"yes\"," PLUGINS "}", "disableGC", 7},
	{"loadOnlyInlinedPlugins is null", NAMED "\"loadOnlyInlinedPlugins\":null," PLUGINS "}",
	 "loadOnlyInlinedPlugins", 7},
	{"cniVersion is a number", NAMED "\"cniVersion\":1," PLUGINS "}", "cniVersion", 7},
	{"cniVersion is no version", NAMED "\"cniVersion\":\"abc\"," PLUGINS "}", "abc", 6},
	{"cniVersions is a string", NAMED "\"cniVersions\":\"1.0.0\"," PLUGINS "}", "cniVersions",
	 7},
	{"cniVersions holds a number", NAMED "\"cniVersions\":[1]," PLUGINS "}", "cniVersions", 7},
	{"cniVersions holds no version", NAMED "\"cniVersions\":[\"x\"]," PLUGINS "}", "x", 6},
	{"no JSON", "plugins", "the list", 6},
	{"an array", "[]", "the list", 6},
	{"text after the list", NAMED PLUGINS "}x", "the list", 6},
	{"nothing", "", "the list", 6},
};

static int parse(struct conflist *list, const char *text, size_t length)
{
	json_t *root = cni_json_parse_object(text, length, "the list", &fault);
	int failed = root ? conflist_read(list, root, NULL, "the list", &fault) : -1;

	json_decref(root);
	return failed;
}

ROWS(list_rows, list_read)
{
	struct conflist list = {0};
	int failed = parse(&list, row->text, strlen(row->text));

	assert_int_equal(failed, row->code ? -1 : 0);
	assert_error(row->code, row->expected);
	conflist_release(&list);
}

TEST(deep_list, "a list of 100,000 brackets")
{
	enum { DEPTH = 100000 };
	static char text[DEPTH + 1];
	struct conflist list = {0};

	memset(text, '[', DEPTH);
	assert_int_equal(parse(&list, text, DEPTH), -1);
	assert_error(6, "the list");
	conflist_release(&list);
}

static const struct {
	const char *name;
	const char *keys;
	const char *version;
} version_rows[] = {
	{"no version", "", ""},
	{"a lone cniVersion", "\"cniVersion\":\"0.4.0\",", "0.4.0"},
	{"a lone cniVersion that is too new is sent", "\"cniVersion\":\"2.0.0\",", "2.0.0"},
	{"the highest of cniVersions", "\"cniVersions\":[\"0.4.0\",\"1.0.0\",\"0.3.1\"],", "1.0.0"},
	{"too new ones are left out", "\"cniVersions\":[\"1.1.0\",\"1.2.0\",\"2.0.0\"],", "1.1.0"},
	{"cniVersion counts with the others",
	 "\"cniVersion\":\"1.0.0\",\"cniVersions\":[\"0.4.0\"],", "1.0.0"},
	{"cniVersions may beat cniVersion", "\"cniVersion\":\"0.4.0\",\"cniVersions\":[\"1.1.0\"],",
	 "1.1.0"},
	{"all of cniVersions too new", "\"cniVersion\":\"0.4.0\",\"cniVersions\":[\"3.0.0\"],",
	 "0.4.0"},
	{"everything too new", "\"cniVersion\":\"2.0.0\",\"cniVersions\":[\"3.0.0\"],", "2.0.0"},
	{"10 is more than 9", "\"cniVersions\":[\"0.10.0\",\"0.9.0\"],", "0.10.0"},
};

ROWS(version_rows, version_chosen)
{
	struct conflist list = {0};
	char text[512];

	snprintf(text, sizeof(text), "{%s\"name\":\"n\"," PLUGINS "}", row->keys);
	assert_int_equal(parse(&list, text, strlen(text)), 0);
	assert_string_equal(list.version, row->version);
	conflist_release(&list);
}

static const struct {
	const char *name;
	const char *value;
	bool expected;
} switch_rows[] = {
	{"true", "true", true},
	{"false", "false", false},
	{"\"true\"", "\"true\"", true},
	{"\"TRUE\"", "\"TRUE\"", true},
	{"\"False\"", "\"False\"", false},
};

ROWS(switch_rows, switch_read)
{
	struct conflist list = {0};
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"name\":\"n\",\"disableCheck\":%s,\"disableGC\":%s," PLUGINS "}", row->value,
		 row->value);
	assert_int_equal(parse(&list, text, strlen(text)), 0);
	assert_true(list.disable_check == row->expected);
	assert_true(list.disable_gc == row->expected);
	conflist_release(&list);
}

static void write_list(const char *file, const char *name, const char *type)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"name\":\"%s\",\"plugins\":[{\"type\":\"%s\"}]}", name,
		 type);
	sandbox_write(file, text);
}

static void write_single(const char *file, const char *name, const char *type)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"name\":\"%s\",\"type\":\"%s\"}", name, type);
	sandbox_write(file, text);
}

static int find_in(const char *directory, const char *name, struct conflist *list)
{
	int failed;

	setenv("NETCONFPATH", directory, 1);
	failed = conflist_find(list, name, &fault);
	unsetenv("NETCONFPATH");
	return failed;
}

static void assert_found(const char *name, const char *types)
{
	struct conflist list = {0};
	char found[128] = "";
	json_t *plugin;
	size_t index;

	if (find_in(sandbox, name, &list))
		print_error("%s\n", cni_error_message(&fault));
	assert_error(0, NULL);
	json_array_foreach (list.plugins, index, plugin) {
		strncat(found, index ? " " : "", 1);
		strncat(found, plugin_type(plugin), 32);
	}
	assert_string_equal(found, types);
	conflist_release(&list);
}

static void assert_not_found(const char *name, int code, const char *message)
{
	struct conflist list = {0};

	assert_int_equal(find_in(sandbox, name, &list), -1);
	assert_error(code, message);
	conflist_release(&list);
}

FIXTURE(sandbox_setup, sandbox_teardown)

TEST(first_by_name, "the first of the name, by file name")
{
	write_list("20.conflist", "n", "second");
	write_list("10.conflist", "n", "first");
	write_list("05.conflist", "other", "third");
	assert_found("n", "first");
}

TEST(lists_before_singles, "*.conflist before *.conf")
{
	write_single("00.conf", "n", "single");
	write_list("99.conflist", "n", "list");
	assert_found("n", "list");
}

TEST(singles_together, "15.json beats 20.conf")
{
	write_single("20.conf", "n", "conf");
	write_single("15.json", "n", "json");
	assert_found("n", "json");
}

TEST(single_is_wrapped, "a single plugin is wrapped")
{
	struct conflist list = {0};

	sandbox_write("1.conf", "{\"cniVersion\":\"0.4.0\",\"Name\":\"n\",\"Type\":\"a\",\"x\":1}");
	assert_int_equal(find_in(sandbox, "n", &list), 0);
	assert_string_equal(list.name, "n");
	assert_string_equal(list.version, "0.4.0");
	assert_json_text(list.plugins,
			 "[{\"cniVersion\":\"0.4.0\",\"Name\":\"n\",\"Type\":\"a\",\"x\":1}]");
	assert_non_null(strstr(list.text, "\"plugins\":[{"));
	conflist_release(&list);
}

TEST(other_files_ignored, "other files are ignored")
{
	write_list("1.conflist.bak", "n", "backup");
	write_list("1.txt", "n", "text");
	sandbox_make_directory("2.conflist");
	write_list("3.conflist", "n", "right");
	assert_found("n", "right");
}

TEST(not_found, "no such network")
{
	write_list("1.conflist", "other", "a");
	assert_not_found("n", 7, "no network named \"n\"");
}

TEST(no_directory, "no such directory")
{
	struct conflist list = {0};

	assert_int_equal(find_in(sandbox_path("none"), "n", &list), -1);
	assert_error(7, "no network named");
}

TEST(broken_before, "a broken file before the match")
{
	sandbox_write("1.conflist", "{");
	write_list("2.conflist", "n", "a");
	assert_not_found("n", 6, "1.conflist");
}

TEST(broken_after, "a broken file after the match")
{
	sandbox_write("2.conflist", "{");
	write_list("1.conflist", "n", "a");
	assert_found("n", "a");
}

TEST(broken_single_before, "a list named .json before the match")
{
	write_list("1.json", "n", "a");
	assert_not_found("n", 7, ".conflist");
}

TEST(folder_appended, "the network's folder is appended")
{
	write_list("1.conflist", "n", "inlined");
	sandbox_make_directory("n");
	sandbox_write("n/20.conf", "{\"type\":\"later\"}");
	sandbox_write("n/10.conf", "{\"type\":\"sooner\"}");
	sandbox_write("n/30.json", "{\"type\":\"other\"}");
	assert_found("n", "inlined sooner later");
}

TEST(folder_alone, "the network's folder alone")
{
	sandbox_write("1.conflist", "{\"name\":\"n\"}");
	sandbox_make_directory("n");
	sandbox_write("n/1.conf", "{\"type\":\"only\"}");
	assert_found("n", "only");
}

TEST(folder_unwanted, "loadOnlyInlinedPlugins")
{
	sandbox_write("1.conflist",
		      "{\"name\":\"n\",\"loadOnlyInlinedPlugins\":\"true\"," PLUGINS "}");
	sandbox_make_directory("n");
	sandbox_write("n/1.conf", "{\"type\":\"unwanted\"}");
	assert_found("n", "bridge");
}

TEST(folder_broken, "a broken file in the folder")
{
	write_list("1.conflist", "n", "a");
	sandbox_make_directory("n");
	sandbox_write("n/1.conf", "{\"name\":\"n\"}");
	assert_not_found("n", 7, "n/1.conf");
}

static void assert_path_type(const char *file, const char *type)
{
	struct conflist list = {0};

	assert_int_equal(conflist_find(&list, sandbox_path(file), &fault), 0);
	assert_string_equal(plugin_type(json_array_get(list.plugins, 0)), type);
	conflist_release(&list);
}

TEST(found_by_path, "a list by its path")
{
	write_list("a.conflist", "n", "list");
	write_list("b.json", "n", "list-as-json");
	write_single("c.conf", "n", "single");
	assert_path_type("a.conflist", "list");
	assert_path_type("b.json", "list-as-json");
	assert_path_type("c.conf", "single");
}

TEST(path_missing, "a path that does not exist")
{
	struct conflist list = {0};

	assert_int_equal(conflist_find(&list, "none.conflist", &fault), -1);
	assert_error(5, "none.conflist");
}
