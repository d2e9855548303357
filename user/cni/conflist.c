/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflist.c - what the JSON of conflists and of plugins says. */
#include "cni/conflist.h"

#include <string.h>

#include "lib/json.h"

const char *plugin_type(const json_t *plugin)
{
	const char *type = json_string_value(cni_json_get(plugin, "type"));

	return type ? type : "";
}

json_t *conflist_plugin(const json_t *list, const char *type)
{
	json_t *plugin;
	size_t i;

	json_array_foreach (json_object_get(list, "plugins"), i, plugin)
		if (!strcmp(plugin_type(plugin), type))
			return plugin;
	return NULL;
}

bool plugin_has_capability(const json_t *plugin, const char *capability)
{
	return json_is_true(json_object_get(cni_json_get(plugin, "capabilities"), capability));
}
