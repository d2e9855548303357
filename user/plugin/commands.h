/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - the commands, a file for each, their table is in main.c; and the alias: bpf-portmap
 * that is called by the name `portmap` serves lists that agents write, and the reference plugin
 * lies beside it as `portmap.reference`. What that one has mapped, it also removes and checks.
 */
#pragma once

#include "cni/environment.h"
#include "lib/error.h"
#include "cni/network_config.h"

/* CNI's commands. Codes: those that the specification gives the command, and our own. */
typedef int cni_command_function(const struct cni_environment *environment,
				 const struct cni_network_config *config, struct cni_error *err);

cni_command_function command_add, command_del, command_check, command_gc, command_status;

/* Runs our command, and hands to the reference plugin what is its own:
 *   ADD    if there are conditions of iptables in the list, which we refuse
 *   DEL    after ours, if there is a rule of portmap for the container
 *   CHECK  in place of ours, if the container asks for ports and we have no record of it
 *   GC     after ours
 * Under another name, or without portmap.reference, it is our command alone, and after DEL nothing
 * of portmap's is left of the container, whose list may have named that one before. Codes: those of
 * the command, those of the reference plugin, CNI_ERROR_IO. */
int command_with_reference(cni_command_function *ours, const struct cni_environment *environment,
			   const struct cni_network_config *config, struct cni_error *err);

/* Removes the rules by which portmap sends packets to this container, in iptables-legacy by running
 * the reference plugin's DEL. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int reference_remove_rules(const char *network, const char *id, struct cni_error *err);
