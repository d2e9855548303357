/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_ports.h - the map nat_ports, of the ports that the host's own NAT takes. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "datapath/load/objects.h"
#include "lib/error.h"

struct nat_port_entry {
	struct portmap_key key;
	struct nat_port taken;
};

/* Begins as {0}. */
struct nat_port_list {
	struct nat_port_entry *list;
	size_t count;
};

/* Adds one that is not there. */
void nat_ports_add(struct nat_port_list *ports, const struct portmap_key *key, uint32_t hooks);
void nat_ports_release(struct nat_port_list *ports);

/* Returns what of that which comes to this address and port the programs leave to the host's NAT:
 * bits of enum nat_hook. */
uint32_t nat_port_hooks(const struct objects *objects, const struct portmap_key *key);

struct nat_ports_change {
	/* Entries of these ports that are not wanted go, at whichever address; NULL: of all. */
	const struct portmap_key *keys;
	size_t key_count;
	bool keeps;   /* none goes */
	bool dry_run; /* nothing is written */
	/* Told of each change; may be NULL. */
	void (*report)(const struct portmap_key *key, bool is_taken, void *context);
	void *context;
};

/* Returns whether the map is so already. */
bool nat_ports_are_written(const struct objects *objects, struct nat_port_list *wanted,
			   const struct nat_ports_change *change);

/* Makes the map so. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int nat_ports_write(const struct objects *objects, struct nat_port_list *wanted,
		    const struct nat_ports_change *change, struct cni_error *err);
