/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reference.h - the alias: bpf-portmap that is called by the name `portmap` serves lists that
 * agents write, and the reference plugin lies beside it as `portmap.reference`. What that one has
 * mapped, it also removes and checks.
 */
#ifndef PLUGIN_REFERENCE_H
#define PLUGIN_REFERENCE_H

#include "plugin/commands.h"

/* Runs our command, and hands to the reference plugin what is its own:
 *   ADD    if there are conditions of iptables in the list, which we refuse
 *   DEL    after ours, if there is a NAT rule for one of the ports
 *   CHECK  in place of ours, if the container asks for ports and we have no record of it
 *   GC     after ours
 * Under another name, or without portmap.reference, it is our command alone. Codes: those of the
 * command, those of the reference plugin, CNI_ERROR_IO. */
int command_with_reference(cni_command_function *ours, const struct cni_environment *environment,
			   const struct cni_network_config *config, struct cni_error *err);

#endif
