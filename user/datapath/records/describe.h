/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * describe.h - what stands in the maps, in words for messages.
 */
#pragma once

#include "lib/error.h"
#include "datapath/load/objects.h"

#define DESCRIBED_PORT_SIZE 128
#define DESCRIBED_ATTACHMENT_SIZE (ATTACHMENT_KEY_SIZE + sizeof(struct workload) + 64)

/* Writes "host port 8080/tcp of any IPv4 address" */
void describe_port(const struct portmap_key *key, char text[DESCRIBED_PORT_SIZE]);

/* Writes "container x, interface eth0, network y" from "y/x/eth0"; where its record names a pod,
 * "pod default/web-0 (sandbox x), interface eth0, network y"; Podman's: "container web (x),
 * ...". */
void describe_attachment(const struct objects *objects, const char key[ATTACHMENT_KEY_SIZE],
			 char text[DESCRIBED_ATTACHMENT_SIZE]);

/* The same for a caller that knows its workload; NULL: it has none. */
void describe_attachment_of(const struct workload *workload, const char key[ATTACHMENT_KEY_SIZE],
			    char text[DESCRIBED_ATTACHMENT_SIZE]);

/* Returns whether the container ID in the key is a UUID, as those of Nomad's allocations are. */
bool attachment_has_uuid(const char key[ATTACHMENT_KEY_SIZE]);

/* Returns whether an engine made the owner, and no script: its workload or its ID says so. */
bool slot_is_engines(const struct slot *slot, const struct attachment *record);

#define LAST_RESORT_SIZE 64

/* Writes the command that frees all that the owner has, where its engine has forgotten it: "`ip
 * link delete veth0`". Empty where a process lives in it, or its veth is gone: then the next ADD
 * frees it. */
void describe_last_resort(const struct slot *owner, char text[LAST_RESORT_SIZE]);

/* Sets CNI_ERROR_PORT_TAKEN: which port, whose it is, since when, and what to do. -1. */
int refuse_taken_port(const struct objects *objects, const struct portmap_key *key,
		      const struct slot *owner, struct cni_error *err);
