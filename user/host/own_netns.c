/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_netns.c - refusing to work on the namespace that the plugin itself is in. */
#include "host/own_netns.h"

#include <stdbool.h>

#include "lib/cleanup.h"
#include "net/netns.h"

int own_netns_refuse_open(const struct cni_environment *environment, int netns,
			  struct cni_error *err)
{
	struct cni_error ignored = {0};
	bool own = false;

	if (environment->netns_override || netns < 0)
		return 0;
	if (netns_is_own(netns, &own, &ignored))
		cni_error_release(&ignored);
	if (!own)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
			     "CNI_NETNS \"%s\" is the network namespace that the plugin runs in;"
			     " it must be the container's",
			     environment->netns);
}

int own_netns_refuse(const struct cni_environment *environment, struct cni_error *err)
{
	cleanup_close int netns = -1;
	struct cni_error ignored = {0};

	if (environment->netns_override || !*environment->netns)
		return 0;
	netns = netns_open(environment->netns, &ignored);
	cni_error_release(&ignored);
	return own_netns_refuse_open(environment, netns, err);
}
