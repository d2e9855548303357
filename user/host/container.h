/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container.h - what one container asks for, from its environment and configuration to
 * claims on the maps and a veth to attach to.
 */
#pragma once

#include "cni/environment.h"
#include "cni/network_config.h"
#include "conf/option_table.h"
#include "datapath/records/attachments.h"
#include "net/link.h"
#include "host/host.h"
#include "plan/plan.h"

/* Begins as {0}. */
struct container {
	const struct cni_environment *environment;
	const char *network; /* borrowed from the configuration */
	struct conf conf;
	struct attachment_claims claims;
	bool wants_nothing; /* it has neither ports nor masquerade, and "strict" is off */
	/* From container_find_veth() on. */
	struct host_veth veth;
};

/* CNI_ERROR_INVALID_NETNS where CNI_NETNS is the namespace that the plugin runs in, unless
 * CNI_NETNS_OVERRIDE is set. A path that leads nowhere is no error here: DEL comes after the
 * namespace has gone, and for ADD container_find_veth() reports it. */
int container_refuse_own_netns(const struct cni_environment *environment, struct cni_error *err);

/* For ADD and CHECK: reads prevResult and our options, and works out the claims. Prints the
 * warnings. Environment and configuration must outlive it. Release it also after a failure.
 * CNI_ERROR_INVALID_ENVIRONMENT, CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_UNSUPPORTED_FIELD. */
int container_read(struct container *container, const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err);
/* For DEL: returns the claims that runtime and configuration lead to now, which ADD may have read
 * differently: a hint where to look, which saves a sixth of DEL's time. Prints nothing. NULL where
 * they cannot be read. */
const struct attachment_claims *container_guess(struct container *container,
						const struct cni_environment *environment,
						const struct cni_network_config *config);
void container_release(struct container *container);

/* Opens the namespace and finds the host's end of the veth that CNI_IFNAME names there.
 * CNI_ERROR_INVALID_NETNS, CNI_ERROR_INVALID_CONFIGURATION. */
int container_find_veth(struct container *container, struct cni_error *err);

#define cleanup_container __attribute__((cleanup(container_release)))
