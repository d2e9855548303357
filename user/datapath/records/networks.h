/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - what the conflist of each network says about interfaces, as long as the network has
 * a container.
 *
 * An entry names its reason: a container of the network, its witness. While that lives, nobody
 * looks for another one, so that a command does not read the records of all containers.
 */
#pragma once

#include "conf/conf.h"
#include "datapath/load/datapath.h"
#include "lib/error.h"
#include "datapath/load/objects.h"
#include "net/address_list.h"

struct known_network {
	struct network_key key;
	struct network network; /* with a witness that lives */
	bool is_dead;           /* no container of it lives */
	bool is_changed;        /* the entry in the map has another witness */
};

/* Reads all, and whether each lives; *networks, which begins as NULL, is malloc'ed, also after a
 * failure. CNI_ERROR_KERNEL_REFUSED. */
int networks_read(struct known_network **networks, size_t *count, const struct datapath *datapath,
		  struct cni_error *err);

/* Deletes the dead, and writes the new witnesses. Call it with the lock. A failure does not matter:
 * the next command finds the same. */
void networks_settle(const struct known_network *networks, size_t count,
		     const struct objects *objects);

/* Makes an entry of what a conflist says, for the container behind the veth. Returns false where
 * the names are longer than an entry holds: half of them would mean something else. */
bool network_make(struct network *network, struct network_key *key, const char *name,
		  const struct conf *conf);
/* Returns a network's number: what it has as long as it lives; else, with "uplinks", one that no
 * living network has. 0: it needs none, or all are taken. Call it with the lock, if it is to stay
 * free. */
uint8_t network_number(const struct network *network, const char *name,
		       const struct known_network *networks, size_t count);
/* Reads what is written of the network. Returns false where there is nothing. */
bool network_read_by_name(const struct objects *objects, const char *name, struct network_key *key,
			  struct network *network);
/* Returns whether both say the same, whoever their witnesses are. */
bool network_says(const struct network *one, const struct network *other);

/* --- the host's addresses: the map of what is local to routing, for programs that cannot ask it */

/* Returns whether the map holds the host's addresses and nothing else. `excluded`: for each
 * interface of the list, whether no port is mapped there; those addresses, and subnets' broadcast
 * addresses, are excluded in the map. */
bool host_addresses_are_written(const struct objects *objects, const struct address_list *addresses,
				const bool *excluded);

/* Makes it so. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int host_addresses_write(const struct objects *objects, const struct address_list *addresses,
			 const bool *excluded, struct cni_error *err);
