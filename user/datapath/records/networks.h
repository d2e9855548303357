/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - what the conflist of each network says about interfaces, as long as the network has
 * a container.
 *
 * An entry names its reason: a container of the network, its witness. While that lives, nobody
 * looks for another one, so that a command does not read the records of all containers.
 */
#pragma once

#include "conf/option_table.h"
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

/* Begins as {0}. */
struct known_networks {
	struct known_network *list; /* malloc'ed */
	size_t count;
	bool has_news; /* the map does not have what the living ones say now */
	/* Of the container at hand: the entry that its network is to have, which says something
	 * else than that in the map where it `is_new`. */
	struct network_key key;
	struct network network;
	bool is_new;
};

/* Reads all, and whether each lives. Release them also after a failure. CNI_ERROR_KERNEL_REFUSED.
 */
int networks_read(struct known_networks *known, const struct datapath *datapath,
		  struct cni_error *err);
void networks_release(struct known_networks *known);

/* Makes the entry of what the conflist of the container behind the veth says. Its number is what
 * the network has as long as it lives; else, with "uplinks", one that no living network has; 0: it
 * needs none, or all are taken. Call it with the lock, if that is to stay free. With names that are
 * longer than an entry holds, of which half would mean something else, there is none, and a
 * warning. */
void networks_add(struct known_networks *known, const char *name, const struct conf *conf,
		  uint32_t veth);

/* Deletes the dead, writes the new witnesses and the new entry. Call it with the lock. A failure at
 * the first two does not matter: the next command finds the same. CNI_ERROR_KERNEL_REFUSED. */
int networks_settle(const struct known_networks *known, const struct objects *objects,
		    struct cni_error *err);

/* Reads what is written of the network. Returns false where there is nothing. */
bool network_read_by_name(const struct objects *objects, const char *name, struct network_key *key,
			  struct network *network);

/* --- the host's addresses: the map of what is local to routing, for programs that cannot ask it */

/* Returns whether the map holds the host's addresses and nothing else. `excluded`: for each
 * interface of the list, whether no port is mapped there; those addresses, and subnets' broadcast
 * addresses, are excluded in the map. */
bool host_addresses_are_written(const struct objects *objects, const struct address_list *addresses,
				const bool *excluded);

/* Makes it so. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int host_addresses_write(const struct objects *objects, const struct address_list *addresses,
			 const bool *excluded, struct cni_error *err);
