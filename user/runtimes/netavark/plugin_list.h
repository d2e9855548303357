/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plugin_list.h - the CNI plugins that make a network of Podman's, as a conflist.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/netavark/network.h"
#include "runtimes/netavark/network_options.h"

/* Makes the list: bridge with the addresses that Podman has chosen (`addresses`, strings; NULL:
 * none, which is enough for DEL), bpf-portmap unless the network is internal, firewall where it is
 * isolated. CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
int plugin_list_make(struct conflist *list, const struct network *network,
		     const struct network_options *options, const json_t *addresses,
		     struct cni_error *err);

/* Returns the bridge of a list that was made so, also of one that was written down. */
const char *plugin_list_bridge(const struct conflist *list);
bool plugin_list_is_isolated(const struct conflist *list);
/* Returns what ADD will answer, as far as it is known before: the addresses. A new reference. */
json_t *plugin_list_foresee(const struct conflist *list);

/* Checks whether every plugin has a file. CNI_ERROR_INVALID_CONFIGURATION. */
int plugin_list_find(const struct network *network, const struct network_options *options,
		     struct cni_error *err);
