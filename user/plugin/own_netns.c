/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_netns.c - refusing to work on the namespace that the plugin itself is in. */
#include "plugin/own_netns.h"

#include <stdbool.h>

#include "cni/cleanup.h"
#include "net/netns.h"

int own_netns_refuse(const struct cni_environment *environment, struct cni_error *err)
{
	cleanup_close int netns = -1;
	struct cni_error ignored = {0};
	bool own = false;

	if (environment->netns_override || !*environment->netns)
		return 0;
	netns = netns_open(environment->netns, &ignored);
	if (netns < 0 || netns_is_own(netns, &own, &ignored)) {
		cni_error_release(&ignored);
		return 0;
	}
	if (!own)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
			     "CNI_NETNS \"%s\" is the network namespace that the plugin runs in;"
			     " it must be the container's",
			     environment->netns);
}
