/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* version.c - the supported versions of CNI, and what they allow. */
#include "cni/version.h"

#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define VERSION_PARTS 3
#define MAX_DIGITS 9
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

int cni_version_validate(const char *version, struct cni_error *err)
{
	const char *rest = version;

	for (int i = 0; i < VERSION_PARTS; i++) {
		size_t digits = strspn(rest, "0123456789");

		if (!digits || digits > MAX_DIGITS)
			break;
		rest += digits;
		if (!*rest)
			return 0;
		if (*rest++ != '.')
			break;
	}
	return cni_error_set(
		err, CNI_ERROR_DECODE,
		"invalid version \"%s\": must be up to three numbers separated by dots, "
		"such as \"" CNI_VERSION_NEWEST "\"",
		version);
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

	if (later[command].since && cni_version_validate(version, err))
		return -1;
	if (later[command].since && version_is_older(version, later[command].since))
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
