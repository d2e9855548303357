/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - what CNI_COMMAND can ask of this plugin; one file for each.
 *
 * VERSION needs none, it is answered in main.c.
 */
#ifndef PLUGIN_COMMANDS_H
#define PLUGIN_COMMANDS_H

#include "cni/environment.h"
#include "cni/error.h"
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

#endif
