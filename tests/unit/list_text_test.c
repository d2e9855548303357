/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list_text_test.c - which plugins a conflist has, and the one word of it that changes.
 */
#include "cni_testing.h"

#include "lib/cleanup.h"
#include "operator/install/lists.h"

#define LIST(plugins) "{\"plugins\":[" plugins "]}"
#define BRIDGE "{\"type\":\"bridge\"},"
#define PORTMAP "{\"type\":\"portmap\"}"
#define OURS "{\"type\":\"bpf-portmap\"}"

struct row {
	const char *name;
	const char *text;
	enum list_verdict verdict;
	const char *changed; /* of LIST_HAS_REFERENCE; NULL: it cannot be changed */
};

static const struct row rows[] = {
	{"one word changes", LIST(BRIDGE PORTMAP), LIST_HAS_REFERENCE, LIST(BRIDGE OURS)},
	{"blanks stay", " {\n\"plugins\" :\t[ {\"type\" : \"portmap\" } ] }\n", LIST_HAS_REFERENCE,
	 " {\n\"plugins\" :\t[ {\"type\" : \"bpf-portmap\" } ] }\n"},
	{"a word elsewhere is none",
	 "{\"type\":\"portmap\",\"x\":{\"plugins\":[" PORTMAP
	 "]},\"plugins\":[{\"a\":\"\\\"]}\",\"b\":[" PORTMAP ",{}],\"type\":\"portmap\"}]}",
	 LIST_HAS_REFERENCE,
	 "{\"type\":\"portmap\",\"x\":{\"plugins\":[" PORTMAP
	 "]},\"plugins\":[{\"a\":\"\\\"]}\",\"b\":[" PORTMAP ",{}],\"type\":\"bpf-portmap\"}]}"},
	{"numbers that no type holds",
	 "{\"x\":123456789012345678901234567890,\"y\":1e-400,\"plugins\":[" PORTMAP "]}",
	 LIST_HAS_REFERENCE,
	 "{\"x\":123456789012345678901234567890,\"y\":1e-400,\"plugins\":[" OURS "]}"},
	{"of doubled keys the last counts",
	 "{\"plugins\":[],\"plugins\":[{\"type\":\"x\",\"type\":\"portmap\"}]}", LIST_HAS_REFERENCE,
	 "{\"plugins\":[],\"plugins\":[{\"type\":\"x\",\"type\":\"bpf-portmap\"}]}"},
	{"a doubled key that does not count", LIST("{\"type\":\"portmap\",\"type\":\"x\"}"),
	 LIST_HAS_NEITHER, NULL},
	{"escaped", LIST("{\"type\":\"\\u0070ortmap\"}"), LIST_HAS_REFERENCE, NULL},
	{"an escaped key", LIST("{\"\\u0074ype\":\"portmap\"}"), LIST_HAS_REFERENCE,
	 LIST("{\"\\u0074ype\":\"bpf-portmap\"}")},
	{"a key in another case", LIST("{\"Type\":\"portmap\"}"), LIST_HAS_REFERENCE, NULL},
	{"ours", LIST(BRIDGE OURS), LIST_HAS_OURS, NULL},
	{"both", LIST(BRIDGE OURS "," PORTMAP), LIST_IS_REFUSED, NULL},
	{"twice", LIST(BRIDGE PORTMAP "," PORTMAP), LIST_IS_REFUSED, NULL},
	{"Cilium", LIST("{\"type\":\"cilium-cni\"}," PORTMAP), LIST_IS_REFUSED, NULL},
	{"no plugins", "{}", LIST_IS_REFUSED, NULL},
	{"no list of plugins", "{\"plugins\":" PORTMAP "}", LIST_IS_REFUSED, NULL},
	{"not an object", "[" PORTMAP "]", LIST_IS_REFUSED, NULL},
	{"a plugin that is none", LIST("null,7,\"portmap\""), LIST_HAS_NEITHER, NULL},
	{"nothing", "", LIST_IS_NO_JSON, NULL},
	{"half", "{\"plugins\":[{\"type\":\"portmap\"}", LIST_IS_NO_JSON, NULL},
	{"and something behind it", LIST(PORTMAP) "}", LIST_IS_NO_JSON, NULL},
};

static void check_change(const struct row *row)
{
	cleanup_free char *changed =
		list_text_change(row->text, REFERENCE_TYPE, OUR_TYPE, "a.conflist", &fault);
	cleanup_free char *back = NULL;

	if (!row->changed) {
		assert_null(changed);
		assert_int_equal(fault.code, CNI_ERROR_INVALID_CONFIGURATION);
		cni_error_release(&fault);
		return;
	}
	assert_string_equal(changed, row->changed);
	back = list_text_change(changed, OUR_TYPE, REFERENCE_TYPE, "a.conflist", &fault);
	assert_string_equal(back, row->text);
}

TEST(test_rows, "rows")
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum list_verdict verdict =
			list_text_judge(rows[i].text, strlen(rows[i].text), "a.conflist", &fault);

		print_message("# %s\n", rows[i].name);
		assert_int_equal(verdict, rows[i].verdict);
		assert_int_equal(cni_error_is_set(&fault),
				 verdict != LIST_HAS_REFERENCE && verdict != LIST_HAS_OURS);
		cni_error_release(&fault);
		if (verdict == LIST_HAS_REFERENCE)
			check_change(&rows[i]);
	}
}

/* Every beginning of a list is no JSON, so that one that is being written is waited for. */
TEST(test_half_written, "half written")
{
	static const char text[] = "{\"a\":1.5,\"plugins\":[" BRIDGE PORTMAP "]}";

	for (size_t length = 0; length < strlen(text); length++) {
		cleanup_error struct cni_error err = {0};

		assert_int_equal(list_text_judge(text, length, "a.conflist", &err),
				 LIST_IS_NO_JSON);
	}
}

/* What is first by its name, and no .conflist, is the configuration of one plugin. */
TEST(test_single_plugin, "single plugin")
{
	cleanup_error struct cni_error err = {0};
	static const char text[] = LIST(BRIDGE PORTMAP);

	assert_int_equal(list_text_judge(text, strlen(text), "/etc/cni/net.d/a.conf", &err),
			 LIST_IS_REFUSED);
}
