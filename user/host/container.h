/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container.h - what one container asks for, from its environment and configuration to
 * claims on the maps and a veth to attach to.
 */
#ifndef HOST_CONTAINER_H
#define HOST_CONTAINER_H

#include <jansson.h>

#include "cni/environment.h"
#include "cni/network_config.h"
#include "cni/result.h"
#include "conf/conf.h"
#include "datapath/attach/attach.h"
#include "datapath/records/claims.h"
#include "net/veth.h"
#include "host/host.h"

struct container {
	struct conf conf;
	json_t *prev_result; /* borrowed from the configuration */
	struct cni_result result;
	struct endpoint_claim *endpoints;
	struct attachment_claims claims;
	int netns; /* begins as -1 */
	/* From container_find_veth() on. */
	struct host_veth veth;
	struct attach_target target;
};

/* As early as somebody wants to look at it; where it does not open, container_find_veth() says
 * so. */
void container_open_netns(struct container *container, const struct cni_environment *environment);

/* For ADD and CHECK: reads prevResult and our options, and works out the claims. Prints the
 * warnings. Release it also after a failure. Codes 4, 6, 7, 2. */
int container_read(struct container *container, const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err);
/* For DEL, which looks where it need not search, if runtime and configuration still say what ADD
 * was told; whether they do is no matter. Prints nothing. NULL: no idea. */
const struct attachment_claims *container_guess(struct container *container,
						const struct cni_environment *environment,
						const struct cni_network_config *config);
void container_release(struct container *container);

/* Neither ports nor masquerade. */
bool container_wants_nothing(const struct container *container);

/* Opens CNI_NETNS, finds the veth's end on the host, and fills what depends on it. Codes 8, 7. */
int container_find_veth(struct container *container, const struct cni_environment *environment,
			struct host *host, struct cni_error *err);

#define cleanup_container __attribute__((cleanup(container_release)))

#endif
