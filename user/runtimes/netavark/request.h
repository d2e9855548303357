/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.h - what netavark asks of setup and teardown, as CNI says it. */
#pragma once

#include <jansson.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/runtime_conf.h"
#include "runtimes/netavark/network.h"
#include "runtimes/netavark/network_options.h"

/* What was set up. In /run, because neither containers nor their interfaces outlive a reboot. */
#define REQUEST_STATE_DIRECTORY "/run/bpf-portmap-netavark"

/* Where the container's names are among its capability arguments. CNI's conventions have such a
 * capability, which no plugin of ours declares: they are for names.h. */
#define REQUEST_NAMES "aliases"

/* Begins as {0}. Borrows from the JSON that it is read from. */
struct request {
	const json_t *root;
	const char *network_name; /* valid */
	struct runtime_conf conf; /* owns its args and capability_args */
	/* Only request_read() fills these in. */
	struct network network;
	struct conflist list;
};

/* Reads whose interface it is, and in which network. CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_ENVIRONMENT. Release it also after a failure. */
int request_read_names(struct request *request, const json_t *root, const char *netns,
		       struct cni_error *err);

/* Reads all of it, for setup. The same errors, and CNI_ERROR_INVALID_CONFIGURATION. */
int request_read(struct request *request, const json_t *root, const char *netns,
		 struct cni_error *err);

/* Makes the list of the network as it is now, without addresses, which is enough for DEL. Warns of
 * options that cannot be used. The same errors. */
int request_make_list_for_del(struct conflist *list, const json_t *root, struct cni_error *err);

void request_release(struct request *request);

#define cleanup_request __attribute__((cleanup(request_release)))

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
