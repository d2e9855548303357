/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflist.h - what the JSON of conflists and of plugins says, for whoever reads or runs them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Returns the plugin's type, or "". The case of the key does not matter, as in libcni. */
const char *plugin_type(const json_t *plugin);
/* Returns the plugin of this type, borrowed; NULL: the list has none. */
json_t *conflist_plugin(const json_t *list, const char *type);
/* Returns whether the plugin wants this capability's arguments. */
bool plugin_has_capability(const json_t *plugin, const char *capability);
