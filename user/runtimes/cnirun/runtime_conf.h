/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_conf.h - what an operation is about: the container's interface, its network namespace,
 * arguments for the plugins. libcni calls it RuntimeConf.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"

/* Everything is borrowed. */
struct runtime_conf {
	const char *container_id; /* NULL: none was given, and none can be made of the netns */
	const char *ifname;
	const char *netns;       /* absolute path; "": none was given */
	json_t *args;            /* CNI_ARGS as libcni caches them, [["K","V"],...]; NULL: none */
	json_t *capability_args; /* an object: what may go into runtimeConfig; NULL: none */
	const char *plugin_path; /* directories of plugins, separated by colons */
	unsigned int timeout;    /* seconds for each plugin; 0: no limit */
	const char *longer;      /* how the user gives plugins more time; NULL: cannot */
	const char *cache_directory;
};

/* Checks the names, as CNI restricts them. CNI_ERROR_INVALID_ENVIRONMENT. */
int runtime_conf_validate(const struct runtime_conf *conf, struct cni_error *err);

/* Parses CNI_ARGS ("K=V;K=V"): a new array, or NULL and CNI_ERROR_INVALID_ENVIRONMENT. */
json_t *args_parse(const char *text, struct cni_error *err);

/* Reads -p [HOSTIP:]HOSTPORT:CONTAINERPORT[/PROTO]: appends one mapping to the array, or one for
 * each port of two ranges of the same length ("8000-8010:80-90"), since CNI has no ranges. An IPv6
 * host address is in brackets. CNI_ERROR_INVALID_ENVIRONMENT. */
int portmapping_parse(const char *text, json_t *mappings, struct cni_error *err);

/* Makes a path absolute, or finds that of an `ip netns` name; it need not exist, and "" stays "".
 * malloc'ed, or NULL and CNI_ERROR_INVALID_ENVIRONMENT or CNI_ERROR_IO. */
char *netns_resolve(const char *path_or_name, struct cni_error *err);

/* Returns whether there is certainly no namespace: no such path, or, as after `umount`, a file that
 * is none. A namespace that only another mount namespace sees there is gone, too. */
bool netns_is_gone(const char *path);

/* Returns the container ID that cnitool makes of a namespace's path. malloc'ed. */
char *netns_default_container_id(const char *path);
