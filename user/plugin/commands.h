/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - the commands, a file for each; their table is in main.c.
 */
#pragma once

#include "cni/environment.h"
#include "lib/error.h"
#include "cni/network_config.h"

/* CNI's commands. Codes: those that the specification gives the command, and our own. */
typedef int cni_command_function(const struct cni_environment *environment,
				 const struct cni_network_config *config, struct cni_error *err);

cni_command_function command_add, command_del, command_check, command_gc, command_status;
