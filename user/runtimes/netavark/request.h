/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - what netavark asks of setup and teardown, as CNI says it.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/runtime_conf.h"
#include "runtimes/netavark/network.h"

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
