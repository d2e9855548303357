/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interface_names.h - interfaces that the configuration names, one by one or by globs.
 */
#ifndef CONF_INTERFACE_NAMES_H
#define CONF_INTERFACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/option.h"

/* Names of interfaces and globs, as in fnmatch(3). */
struct interface_names {
	char **patterns;
	size_t count;
};

bool conf_is_glob(const char *pattern);

/* Returns whether a name or glob of the list is that of the interface. */
bool conf_names_interface(const struct interface_names *names, const char *interface);

/* Reads an array of names. Release the names also after a failure. */
int conf_read_interface_names(struct interface_names *names, const struct given *given,
			      struct cni_error *err);
void conf_release_interface_names(struct interface_names *names);

#endif
