/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network_options.h - what `podman network create -o name=value` says: options of the plugin
 * bpf-portmap, and those that Podman's own bridge networks have.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

/* Begins as {0}. */
struct network_options {
	uint32_t mtu; /* 0: not given */
	bool isolate;
	bool no_default_route;
	json_t *portmap; /* the plugin bpf-portmap's, as they stand in its configuration */
};

/* Reads them; `given` is an object of strings, or NULL. Warns on stderr of what the plugin would
 * warn of. Goes on after one that is refused. CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_UNSUPPORTED_FIELD; release it also after a failure. */
int network_options_read(struct network_options *options, const json_t *given,
			 struct cni_error *err);
void network_options_release(struct network_options *options);

/* Prints them to stdout, with a line of help each. */
void network_options_print_help(void);

/* Returns the directories of CNI plugins: the option's, if it has a value that can be used, else
 * CNI_PATH, else the usual ones. `given` as above. */
const char *network_options_cni_path(const json_t *given);

#define cleanup_network_options __attribute__((cleanup(network_options_release)))
