/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* version.h - the supported versions of CNI, and what they allow. */
#pragma once

#include <stdbool.h>

#include "cni/environment.h"
#include "lib/error.h"

#define CNI_VERSION_OLDEST "0.1.0" /* also what a missing or empty cniVersion means */
#define CNI_VERSION_NEWEST "1.1.0"

/* Oldest first, ends with NULL. */
extern const char *const cni_versions[];

/* Results of one family differ in their label only, or in keys that may be absent. */
enum cni_version_family {
	CNI_FAMILY_0_1, /* 0.1.0, 0.2.0: ip4, ip6 */
	CNI_FAMILY_0_3, /* 0.3.0 to 0.4.0: interfaces, ips with version */
	CNI_FAMILY_1_0, /* 1.0.0, 1.1.0: interfaces, ips */
};

/* Compares the whole text: "1.0" is not supported. */
bool cni_version_is_supported(const char *version);

/* Returns the family of a supported version. */
enum cni_version_family cni_version_family(const char *version);

/* Checks for up to three numbers separated by dots, which version_is_older() compares.
 * CNI_ERROR_DECODE. */
int cni_version_validate(const char *version, struct cni_error *err);

/* Checks whether a plugin supports the version of the configuration, and the version has the
 * command (ADD, DEL, CHECK, GC or STATUS). CNI_ERROR_INCOMPATIBLE_VERSION, CNI_ERROR_DECODE. */
int cni_version_check(enum cni_command command, const char *version, struct cni_error *err);
