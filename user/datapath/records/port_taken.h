/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_taken.h - what is said of a host port that another container has. */
#pragma once

#include "datapath/records/attachments.h"

#define LAST_RESORT_SIZE 64

/* Writes the command that frees all that the owner has, where its engine has forgotten it: "`ip
 * link delete veth0`". Empty where a process lives in it, or its veth is gone: then the next ADD
 * frees it. */
void describe_last_resort(const struct slot *owner, char text[LAST_RESORT_SIZE]);

/* Sets CNI_ERROR_PORT_TAKEN: which port, whose it is, since when, and what to do. -1. */
int refuse_taken_port(const struct objects *objects, const struct portmap_key *key,
		      const struct slot *owner, struct cni_error *err);
