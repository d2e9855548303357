/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link.h - network interfaces, as the kernel tells them; the host's end of a container's veth, and
 * the entry of its MAC in the bridge.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/error.h"

struct netlink;

/* What frames begin with where tc programs see them. */
enum link_header {
	LINK_HEADER_ETHERNET,
	LINK_HEADER_NONE, /* the IP header: tun, WireGuard, PPP, ipip, sit, GRE from end to end */
	LINK_HEADER_OTHER,
};

#define LINK_KIND_SIZE 32
#define LINK_MAC_SIZE 6

struct link {
	uint32_t ifindex; /* 0: there is no such interface */
	char name[IF_NAMESIZE];
	char kind[LINK_KIND_SIZE];  /* "veth", "bridge", ...; "" for hardware */
	uint8_t mac[LINK_MAC_SIZE]; /* zero where it has no Ethernet address */
	enum link_header header;
	uint32_t master;   /* ifindex of the bridge, bond or VRF it belongs to, or 0 */
	uint32_t peer;     /* IFLA_LINK: of a veth the other end's ifindex, or 0 */
	int peer_netns_id; /* of the other end's namespace in ours; -1: ours */
	uint32_t flags;    /* IFF_ */
	uint32_t mtu;
	bool queues; /* has a qdisc at its root: a virtual one has none by itself */
};

/* Reads it by ifindex, or by name where that is not NULL. An interface that does not exist is no
 * error: link->ifindex is 0 then. CNI_ERROR_IO. */
int link_get(struct netlink *socket, uint32_t ifindex, const char *name, struct link *link,
	     struct cni_error *err);

/* Reads one of this namespace by its ifindex; 0: there is none. The same errors. */
int link_read(uint32_t ifindex, struct link *link, struct cni_error *err);

/* Returns the ifindex of the bridge of a gateway that is no bridge itself, but by which a bridge's
 * frames reach the IP stack: a VLAN of the bridge, or the other end of a veth that is a port of it,
 * as the bridge plugin makes for "vlan". 0: there is none. */
uint32_t link_bridge_behind(const struct link *link);

bool link_is_kind(const struct link *link, const char *kind);

/* Reads the name, which is cheaper than the whole link. Returns false where it is gone. */
bool link_name(uint32_t ifindex, char name[IF_NAMESIZE]);

struct link_name {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
};

/* Begins as {0}; `list` is malloc'ed. */
struct link_names {
	struct link_name *list;
	size_t count;
};

/* Lists all interfaces. CNI_ERROR_IO. */
int link_names_read(struct link_names *names, struct cni_error *err);

struct host_veth {
	struct link link;
	struct link bridge; /* ifindex 0: it is no bridge's port, so it routes (ptp) */
	uint8_t container_mac[LINK_MAC_SIZE]; /* of the other end */
};

/* Follows the interface of that name in the namespace to its other end here, and back
 * again: names in results are hints. CNI_ERROR_INVALID_CONFIGURATION when there is no such
 * veth, naming what there is instead; CNI_ERROR_INVALID_NETNS when the namespace cannot be entered.
 */
int veth_find_host_end(int netns, const char *ifname, struct host_veth *veth,
		       struct cni_error *err);

/* --- a container's MAC in its bridge's forwarding database ------------------------------------
 *
 * The bridge learns it from frames that the container sends, and the fast path's never come to it:
 * after its ageing time it would send to all of its ports what is for that container. A static
 * entry does not age. It goes with the port.
 *
 * With a MAC of zeros, as of a veth that is no bridge's port, nothing is done.
 */

/* Makes it, in each VLAN of the port, or makes it static, whoever had it: only for the MAC that a
 * container had when it was added. 0, or -1 and errno. */
int bridge_entry_add(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* The same for a MAC that a running container may have chosen, the bridge's own, for example: only
 * where there is no entry with it. */
int bridge_entry_add_new(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* Returns whether a port of a bridge lacks its static entry. */
bool bridge_entry_is_missing(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
/* Deletes it. An entry that does not exist, or is another port's by now, is no error. */
void bridge_entry_delete(uint32_t port, const uint8_t mac[LINK_MAC_SIZE]);
