/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * networks.h - what the conflist of each network says about interfaces, as long as the network has
 * a container.
 *
 * An entry names its reason: a container of the network, its witness. While that lives, nobody
 * looks for another one, so that a command does not read the records of all containers.
 */
#ifndef DATAPATH_RECORDS_NETWORKS_H
#define DATAPATH_RECORDS_NETWORKS_H

#include "conf/conf.h"
#include "datapath/load/datapath.h"

struct netlink;

struct known_network {
	struct network_key key;
	struct network network; /* with a witness that lives */
	bool is_dead;           /* no container of it lives */
	bool is_changed;        /* the entry in the map has another witness */
};

/* Begins as {0}. */
struct network_list {
	struct known_network *list;
	size_t count;
};

/* Reads all, and whether each lives. Release the list also after a failure.
 * CNI_ERROR_KERNEL_REFUSED. */
int networks_read(struct network_list *networks, const struct datapath *datapath,
		  struct netlink *socket, struct cni_error *err);
void networks_release(struct network_list *networks);

/* Deletes the dead, and writes the new witnesses. Call it with the lock. A failure does not matter:
 * the next command finds the same. */
void networks_settle(const struct network_list *networks, const struct objects *objects);

#define NETWORK_NAMES 64

/* The names and globs of an entry; they lie in it. */
struct network_names {
	char *patterns[NETWORK_NAMES];
	struct interface_names names;
};

void network_read_names(char text[INTERFACE_NAMES_SIZE], struct network_names *names);

/* Makes an entry of what a conflist says, for the container behind the veth. Returns false where
 * the names are longer than an entry holds: half of them would mean something else. */
bool network_make(struct network *network, struct network_key *key, const char *name,
		  const struct conf *conf);
/* Returns whether both say the same, whoever their witnesses are. */
bool network_says(const struct network *one, const struct network *other);

#endif
