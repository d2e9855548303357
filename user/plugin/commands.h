/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - what can be asked of this plugin; one file for each.
 *
 * VERSION needs none, it is answered in main.c.
 */
#ifndef PLUGIN_COMMANDS_H
#define PLUGIN_COMMANDS_H

#include "cni/environment.h"
#include "lib/error.h"
#include "cni/network_config.h"

int command_add(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err);
int command_del(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err);
int command_check(const struct cni_environment *environment,
		  const struct cni_network_config *config, struct cni_error *err);
int command_gc(const struct cni_environment *environment, const struct cni_network_config *config,
	       struct cni_error *err);
int command_status(const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err);

/* Not of CNI: `bpf-portmap attach [INTERFACE...]`, a list ended by NULL. Prints a line for
 * every interface that it changes. Codes 102, 5, 11, 7. */
int command_attach(char *const *interfaces, struct cni_error *err);

/* Not of CNI: `bpf-portmap drop-offload`. Prints what it did. Codes 102, 5, 11. */
int command_drop_offload(struct cni_error *err);

#endif
