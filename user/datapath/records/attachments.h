/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachments.h - which attachments there are, and what they are called in the maps:
 * "network/containerID/ifname"; which attachment an owner {slot, generation} is; and what stands in
 * the maps, in words for messages.
 *
 * A slot is free if the attachment that it names has no record that points back. So what a killed
 * run left is free without being cleaned up.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/error.h"
#include "datapath/load/datapath.h"
#include "datapath/load/maps.h"
#include "datapath/load/objects.h"
#include "conf/option_table.h"

/* Makes the key. CNI_ERROR_INVALID_ENVIRONMENT if that is too long. */
int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err);

struct attachment_name {
	char text[ATTACHMENT_KEY_SIZE + 1]; /* where they lie */
	const char *network, *container_id, *ifname;
};

/* Splits a key as it stands in a map. Returns false where it is none. */
bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name);

struct attachment_entry {
	struct attachment_key key; /* as it stands in the map: a damaged one may lack its NUL */
	struct attachment attachment;
};

/* Lists all attachments; *entries is malloc'ed. CNI_ERROR_KERNEL_REFUSED. */
int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err);

/* Returns whether the veth of an attachment is there. Its ifindex may have been given to another
 * interface, so it is recognised by its MAC, or, as udev and administrators change those, by its
 * entry in interfaces and our program on it. True where rtnetlink cannot say: nothing is taken from
 * an attachment that may be alive. */
bool attachment_has_veth(const struct objects *objects, const struct attachment *record);

/* Returns whether the owner is an attachment that was completed, is not deleted and whose veth is
 * there. Fills the slot where it has the generation, else with zeros. Call it with the lock. */
bool owner_is_live_with_veth(const struct objects *objects, struct owner owner, struct slot *slot);

/* Gives out a new owner: the next generation, in a free slot. Moves the counter in meta on, which
 * the caller writes before anything else. *had_policy: the slot's last user may have left a policy.
 * Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int owner_allocate(const struct objects *objects, struct meta *meta, struct owner *owner,
		   bool *had_policy, struct cni_error *err);

/* Writes where the container's packets enter the IP stack, as ADD does. Call it with the lock.
 * Returns 0 also where the owner does not exist any more. CNI_ERROR_KERNEL_REFUSED. */
int owner_set_gateway(const struct objects *objects, struct owner owner, uint32_t ifindex,
		      const uint8_t mac[6], struct cni_error *err);

/* Reads the record of a key as it stands in a map. Its names are terminated, also where it is
 * damaged. False: there is none. */
bool attachment_read_text(const struct objects *objects, const char key[ATTACHMENT_KEY_SIZE],
			  struct attachment *record);

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

/* --- what an attachment asks for, as entries of the maps that nobody owns yet -----------------
 *
 * ADD writes them, CHECK compares them. The first half is filled by container_read(), the second by
 * container_prepare(), when the plan is made.
 */

struct endpoint_claim {
	struct endpoint_key key;
	struct endpoint endpoint;
};

struct attachment_claims {
	struct attachment_key key;
	uint64_t container; /* as slots have it */
	struct workload workload;
	const struct port_claim *ports; /* sorted by key, each key once */
	size_t port_count;
	struct endpoint_claim *endpoints;
	size_t endpoint_count;
	const struct policy *policy; /* with {0, 0} as owner */

	uint32_t ifindex;           /* of the veth's end on the host */
	struct interface interface; /* the veth's entry; the owner is filled in */
	enum fast_path fast_path;
	int netns_id; /* as slots have it, and the next one */
	uint8_t host_mac[6], container_mac[6];
	uint8_t bridge_entry_mac[6]; /* zeros: the veth is no bridge's port (net/bridge_entry.h) */
};
