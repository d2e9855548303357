/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * version.c - the supported versions of CNI, and what they allow.
 */
#include "cni/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_PARTS 3
#define MAX_DIGITS 9       /* fits an int */
#define SUPPORTED_SIZE 128 /* all of cni_versions[] with commas */

const char *const cni_versions[] = {
	"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", CNI_VERSION_NEWEST, NULL,
};

bool cni_version_is_supported(const char *version)
{
	for (size_t i = 0; cni_versions[i]; i++) {
		if (!strcmp(cni_versions[i], version))
			return true;
	}
	return false;
}

enum cni_version_family cni_version_family(const char *version)
{
	if (version[0] != '0')
		return CNI_FAMILY_1_0;
	return version[2] < '3' ? CNI_FAMILY_0_1 : CNI_FAMILY_0_3;
}

static bool version_parse(const char *version, int parts[VERSION_PARTS])
{
	for (int i = 0; i < VERSION_PARTS; i++) {
		size_t digits = strspn(version, "0123456789");

		if (!digits || digits > MAX_DIGITS)
			return false;
		parts[i] = atoi(version);
		version += digits;
		if (!*version)
			return true;
		if (*version++ != '.')
			return false;
	}
	return false;
}

int cni_version_compare(const char *a, const char *b, int *order, struct cni_error *err)
{
	int a_parts[VERSION_PARTS] = {0};
	int b_parts[VERSION_PARTS] = {0};
	bool a_valid = version_parse(a, a_parts);

	if (!a_valid || !version_parse(b, b_parts))
		return cni_error_set(
			err, CNI_ERROR_DECODE,
			"invalid version \"%s\": must be up to three numbers separated "
			"by dots, such as \"" CNI_VERSION_NEWEST "\"",
			a_valid ? b : a);
	*order = 0;
	for (int i = 0; i < VERSION_PARTS && !*order; i++)
		*order = (a_parts[i] > b_parts[i]) - (a_parts[i] < b_parts[i]);
	return 0;
}

int cni_version_check(enum cni_command command, const char *version, struct cni_error *err)
{
	static const struct {
		const char *name;
		const char *since;
	} later[] = {
		[CNI_CHECK] = {"CHECK", "0.4.0"},
		[CNI_GC] = {"GC", "1.1.0"},
		[CNI_STATUS] = {"STATUS", "1.1.0"},
		[CNI_UNKNOWN_COMMAND] = {0},
	};
	char supported[SUPPORTED_SIZE];
	size_t length = 0;
	int order = 0;

	if (later[command].since && cni_version_compare(version, later[command].since, &order, err))
		return -1;
	if (order < 0)
		return cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
				     "%s needs cniVersion %s or later, the configuration has "
				     "\"%s\"",
				     later[command].name, later[command].since, version);
	if (cni_version_is_supported(version))
		return 0;
	for (size_t i = 0; cni_versions[i]; i++)
		length += snprintf(supported + length, sizeof(supported) - length, "%s%s",
				   i ? ", " : "", cni_versions[i]);
	cni_error_set(err, CNI_ERROR_INCOMPATIBLE_VERSION,
		      "incompatible CNI versions: cniVersion \"%s\" is none of %s", version,
		      supported);
	return cni_error_set_details(err, "config is \"%s\", plugin supports [%s]", version,
				     supported);
}
