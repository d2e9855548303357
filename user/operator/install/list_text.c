/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list_text.c - the text of a conflist, of which one word changes. */
#include "operator/install/lists.h"

#include <jansson.h>
#include <string.h>

#include "lib/json.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/conflists.h"

#define MULTUS "multus"
#define MULTUS_RUNS_OTHERS \
	"is Multus', which runs the plugins of other lists: name the one of the node's network" \
	" (--list), or change " REFERENCE_TYPE " among its delegates by hand"

/* Integers of any size are no error: they are only compared, and never written. */
static json_t *parse(const char *text, size_t length, json_error_t *error)
{
	return json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL,
			  error);
}

/* NULL: *err says where it is none. */
static json_t *parse_or_say(const char *text, size_t length, const char *path,
			    struct cni_error *err)
{
	json_error_t error;
	json_t *json = parse(text, length, &error);

	if (!json)
		cni_error_set(err, CNI_ERROR_DECODE, "%s is not valid JSON: line %d, column %d: %s",
			      path, error.line, error.column, error.text);
	return json;
}

static size_t count_type(const json_t *plugins, const char *type)
{
	const json_t *plugin;
	size_t i, count = 0;

	json_array_foreach (plugins, i, plugin)
		count += !strcmp(plugin_type(plugin), type);
	return count;
}

/* Cilium maps host ports itself, unless it only follows the plugins of others. */
static bool is_ciliums(const json_t *plugins)
{
	const json_t *first = json_array_get(plugins, 0);
	const char *mode = json_string_value(cni_json_get(first, "chaining-mode"));

	return !strcmp(plugin_type(first), "cilium-cni") && (!mode || !strcmp(mode, "none"));
}

static enum list_verdict refuse(struct cni_error *err, const char *path, const char *why)
{
	cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "%s %s", path, why);
	return LIST_IS_REFUSED;
}

enum list_verdict list_text_judge(const char *text, size_t length, const char *path,
				  struct cni_error *err)
{
	cleanup_json json_t *list = parse_or_say(text, length, path, err);
	const json_t *plugins = json_object_get(list, "plugins");
	size_t ours = count_type(plugins, OUR_TYPE), theirs = count_type(plugins, REFERENCE_TYPE);

	if (!list)
		return LIST_IS_NO_JSON;
	if (!strcmp(plugin_type(list), MULTUS))
		return refuse(err, path, MULTUS_RUNS_OTHERS);
	if (!text_ends_with(path, ".conflist"))
		return refuse(err, path,
			      "is what runtimes read first, and the configuration of one plugin:"
			      " " OUR_TYPE
			      " needs a .conflist, in which it follows another plugin");
	if (!json_array_size(plugins))
		return refuse(err, path, "is no conflist: it has no \"plugins\"");
	if (is_ciliums(plugins))
		return refuse(err, path, "is Cilium's, which maps host ports itself");
	if (ours && theirs)
		return refuse(err, path,
			      "has " REFERENCE_TYPE " and " OUR_TYPE ", which map the same ports:"
			      " remove one of them");
	if (ours > 1 || theirs > 1)
		return refuse(err, path,
			      "has the same plugin twice, which maps the same ports: remove one");
	if (ours || theirs)
		return ours ? LIST_HAS_OURS : LIST_HAS_REFERENCE;
	if (count_type(plugins, MULTUS))
		return refuse(err, path, MULTUS_RUNS_OTHERS);
	refuse(err, path,
	       "has no plugin " REFERENCE_TYPE ", whose place " OUR_TYPE " takes: add " OUR_TYPE
	       " to it by hand");
	return LIST_HAS_NEITHER;
}

enum list_verdict list_text_judge_plugin(const char *text, size_t length, const char *path,
					 struct cni_error *err)
{
	cleanup_json json_t *plugin = parse_or_say(text, length, path, err);

	if (!plugin)
		return LIST_IS_NO_JSON;
	if (!strcmp(plugin_type(plugin), OUR_TYPE))
		return LIST_HAS_OURS;
	if (!strcmp(plugin_type(plugin), REFERENCE_TYPE))
		return LIST_HAS_REFERENCE;
	refuse(err, path, "is another plugin");
	return LIST_HAS_NEITHER;
}

bool list_text_has_ports(const char *text)
{
	json_error_t error;
	cleanup_json json_t *list = parse(text, strlen(text), &error);
	const json_t *plugin = conflist_plugin(list, REFERENCE_TYPE);

	plugin = plugin ? plugin : list;
	return plugin_has_capability(plugin, "portMappings");
}

/* A file of the network's folder has one plugin alone. */
static void set_type(json_t *list, const char *from, const char *to)
{
	json_t *plugins = json_object_get(list, "plugins"), *plugin;
	size_t i;

	json_array_foreach (plugins, i, plugin)
		if (!strcmp(plugin_type(plugin), from))
			json_object_set_new(plugin, "type", json_string(to));
	if (!plugins && !strcmp(plugin_type(list), from))
		json_object_set_new(list, "type", json_string(to));
}

/* What was meant, and nothing else. */
static bool is_same_but_type(const char *text, const char *changed, const char *from,
			     const char *to)
{
	json_error_t error;
	cleanup_json json_t *before = parse(text, strlen(text), &error);
	cleanup_json json_t *after = parse(changed, strlen(changed), &error);

	set_type(before, from, to);
	return before && after && json_equal(before, after);
}

/* The word may stand elsewhere, too. */
char *list_text_change(const char *text, const char *from, const char *to, const char *path,
		       struct cni_error *err)
{
	cleanup_free char *quoted = cni_format("\"%s\"", from);

	for (const char *at = text; (at = strstr(at, quoted)); at++) {
		cleanup_free char *changed =
			cni_format("%.*s\"%s\"%s", (int)(at - text), text, to, at + strlen(quoted));

		if (is_same_but_type(text, changed, from, to))
			return TAKE(changed);
	}
	return cni_error_null(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"%s names %s in a way that cannot be changed without the rest of the file:"
		" change the type to %s by hand",
		path, from, to);
}
