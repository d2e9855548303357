/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - what netavark asks of setup and teardown, as CNI says it.
 */
#ifndef NETAVARK_REQUEST_H
#define NETAVARK_REQUEST_H

#include <jansson.h>

#include "lib/error.h"
#include "cnirun/conflist.h"
#include "cnirun/runtime_conf.h"
#include "netavark/network.h"
#include "netavark/network_options.h"

/* What was set up. In /run, because neither containers nor their interfaces outlive a reboot. */
#define REQUEST_STATE_DIRECTORY "/run/bpf-portmap-netavark"

/* Begins as {0}. Borrows from the JSON that it is read from. */
struct request {
	struct network network;
	struct network_options options;
	struct conflist list;
	struct runtime_conf conf; /* owns its args and capability_args */
};

/* Reads all of it, for setup. CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_INVALID_ENVIRONMENT. Release it also after a failure. */
int request_read(struct request *request, const json_t *root, const char *netns,
		 struct cni_error *err);

/* Reads what teardown needs: warns of options that cannot be used, and does without addresses and
 * ports. The same errors. */
int request_read_for_teardown(struct request *request, const json_t *root, const char *netns,
			      struct cni_error *err);

void request_release(struct request *request);

#define cleanup_request __attribute__((cleanup(request_release)))

#endif
