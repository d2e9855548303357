/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * own_hooks.h - the hooks of interfaces, brought to what the interfaces' entries say.
 */
#pragma once

#include "datapath/load/datapath.h"
#include "net/link.h"

/* At one interface. CNI_ERROR_KERNEL_REFUSED. */
int hooks_settle(const struct datapath *datapath, const struct link_name *at,
		 const struct interface *entry, struct cni_error *err);

/* At all interfaces in the map, for programs that were loaded anew: older ones are replaced in
 * place. One that cannot be replaced does not keep the others from it. -1: CNI_ERROR_KERNEL_REFUSED
 * naming one. */
int hooks_settle_all(const struct datapath *datapath, struct cni_error *err);
