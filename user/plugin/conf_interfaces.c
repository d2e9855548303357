/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_interfaces.c - interfaces that the configuration names, one by one or by globs.
 */
#include "plugin/conf_interfaces.h"

#include <ctype.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "cni/json.h"

#define MAX_PATTERNS 64
/* Enough for a few bracket expressions; fnmatch takes its time with more. */
#define MAX_PATTERN_LENGTH 64

bool conf_names_interface(const struct interface_names *names, const char *interface)
{
	for (size_t i = 0; i < names->count; i++)
		if (!fnmatch(names->patterns[i], interface, 0))
			return true;
	return false;
}

/* Interfaces of Kubernetes that hold services' addresses, which are nobody's on this host. */
const struct interface_names *conf_excluded_interfaces(const struct conf *conf)
{
	static char *patterns[] = {"kube-ipvs0", "nodelocaldns"};
	static const struct interface_names by_default = {patterns, 2};

	return conf->excluded_interfaces_given ? &conf->excluded_interfaces : &by_default;
}

bool conf_is_glob(const char *pattern)
{
	return strpbrk(pattern, "*?[\\") != NULL;
}

/* NULL, or what keeps every interface from having such a name. */
static const char *find_fault(const char *pattern)
{
	if (!*pattern)
		return "is empty";
	if (strchr(pattern, '/'))
		return "has a slash";
	for (const char *byte = pattern; *byte; byte++)
		if (isspace((unsigned char)*byte) || iscntrl((unsigned char)*byte))
			return "has a blank or control character";
	if (conf_is_glob(pattern))
		return strlen(pattern) > MAX_PATTERN_LENGTH ? "is longer than 64 bytes" : NULL;
	if (strchr(pattern, ':'))
		return "has a colon";
	if (strlen(pattern) >= IF_NAMESIZE)
		return "is longer than 15 bytes";
	return strcmp(pattern, ".") && strcmp(pattern, "..") ? NULL : "is a directory";
}

static int read_pattern(struct interface_names *names, const json_t *element, const char *key,
			size_t index, struct cni_error *err)
{
	const char *pattern, *fault;

	if (cni_json_get_string_element(element, key, index, &pattern, err))
		return -1;
	fault = find_fault(pattern);
	if (fault)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\"[%zu] is \"%s\", which %s: give the name of an "
				     "interface (\"eth0\") or a glob (\"eth*\")",
				     key, index, pattern, fault);
	names->patterns[names->count] = strdup(pattern);
	if (!names->patterns[names->count])
		return cni_error_no_memory(err);
	names->count++;
	return 0;
}

static int read_names(struct interface_names *names, const json_t *config, const char *key,
		      struct cni_error *err)
{
	json_t *array = NULL;
	json_t *element;
	size_t index;

	if (cni_json_get_array(config, key, &array, err))
		return -1;
	if (json_array_size(array) > MAX_PATTERNS)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" has %zu entries, at most %d are possible: use globs "
				     "(\"eth*\")",
				     key, json_array_size(array), MAX_PATTERNS);
	if (!json_array_size(array))
		return 0;
	names->patterns = calloc(json_array_size(array), sizeof(*names->patterns));
	if (!names->patterns)
		return cni_error_no_memory(err);
	json_array_foreach (array, index, element)
		if (read_pattern(names, element, key, index, err))
			return -1;
	return 0;
}

int conf_read_interfaces(struct conf *conf, const json_t *config, struct cni_error *err)
{
	if (read_names(&conf->uplinks, config, "uplinks", err))
		return -1;
	conf->excluded_interfaces_given = json_is_array(cni_json_get(config, "excludeInterfaces"));
	return read_names(&conf->excluded_interfaces, config, "excludeInterfaces", err);
}

static void release_names(struct interface_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->patterns[i]);
	free(names->patterns);
}

void conf_release_interfaces(struct conf *conf)
{
	release_names(&conf->uplinks);
	release_names(&conf->excluded_interfaces);
}
