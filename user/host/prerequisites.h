/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prerequisites.h - what a host must have for mapped ports and masquerade to work.
 *
 * It forwards the families that the container has ports or masquerade in, from its gateway and from
 * an uplink; programs are at an interface that "uplinks" names; it has the addresses that
 * "snatAddresses" and "hostIP" name. All of that may change without us.
 */
#pragma once

#include "host/container.h"
#include "host/host.h"

/* For ADD: warns of each that the host lacks, and of a kernel that may promise less than the
 * programs need. After host_settle(). */
void prerequisites_warn(const struct host *host, const struct container *container);

/* For CHECK: fails with CNI_ERROR_KERNEL_REFUSED naming what the host lacks. Absent addresses,
 * which may come later, are warnings. */
int prerequisites_verify(const struct host *host, const struct container *container,
			 struct cni_error *err);

/* For STATUS: checks forwarding, of the families that any container has ports or masquerade in.
 * CNI_ERROR_KERNEL_REFUSED. */
int prerequisites_verify_host(const struct host *host, struct cni_error *err);
