/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interface_names.c - interfaces that the configuration names. */
#include "conf/interface_names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

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

static const char *add_pattern(void *field, const char *pattern)
{
	struct interface_names *names = field;
	const char *fault = find_fault(pattern);

	if (fault)
		return fault;
	names->patterns[names->count] = strdup(pattern);
	if (!names->patterns[names->count])
		return "does not fit into memory";
	names->count++;
	return NULL;
}

int conf_read_interface_names(struct interface_names *names, const struct given *given,
			      struct cni_error *err)
{
	static const struct string_list list = {
		.most = MAX_PATTERNS,
		.advice = "give the name of an interface (\"eth0\") or a glob (\"eth*\")",
		.add = add_pattern,
	};

	names->patterns = calloc(MAX_PATTERNS, sizeof(*names->patterns));
	return names->patterns ? option_read_strings(given, &list, names, err)
			       : cni_error_no_memory(err);
}

void conf_release_interface_names(struct interface_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->patterns[i]);
	free(names->patterns);
}
