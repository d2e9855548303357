/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * own_netns.h - refusing to work on the namespace that the plugin itself is in.
 */
#ifndef HOST_OWN_NETNS_H
#define HOST_OWN_NETNS_H

#include "cni/environment.h"
#include "lib/error.h"

/* Code 8 if CNI_NETNS opens and is our own, unless CNI_NETNS_OVERRIDE is set. A path that
 * does not open is no error here: DEL comes when the namespace has gone. */
int own_netns_refuse(const struct cni_environment *environment, struct cni_error *err);

/* The same of a namespace that is open. */
int own_netns_refuse_open(const struct cni_environment *environment, int netns,
			  struct cni_error *err);

#endif
