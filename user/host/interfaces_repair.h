/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interfaces_repair.h - whether the programs are still at the interfaces in the map, and whether
 * those interfaces are still what the map says.
 */
#ifndef HOST_INTERFACES_REPAIR_H
#define HOST_INTERFACES_REPAIR_H

#include "host/host.h"

/* Checks whether the programs are at all of the host's interfaces in the map.
 * CNI_ERROR_KERNEL_REFUSED naming one and what it lacks. */
int interfaces_verify(struct host *host, struct cni_error *err);

/* Attaches to every interface in the map that lacks its programs, containers' veths too.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN. */
int interfaces_repair(struct host *host, struct cni_error *err);

/* Deletes the entries of interfaces that are gone. Detaches from interfaces that were put into a
 * bridge or a bond and so are uplinks no more. */
void interfaces_sweep(struct host *host);

#endif
