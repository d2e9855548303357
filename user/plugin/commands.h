/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - the commands, a file for each; their table is in main.c.
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

/* The commands for administrators, which are not of CNI. Each prints what it does; `operands` ends
 * with NULL. */

/* `attach [INTERFACE...]`: a line for every interface that it changes. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN, CNI_ERROR_INVALID_CONFIGURATION. */
int command_attach(char *const *operands, struct cni_error *err);

/* `drop-offload`. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN. */
int command_drop_offload(char *const *operands, struct cni_error *err);

#endif
