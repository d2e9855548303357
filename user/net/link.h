/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link.h - network interfaces, as the kernel tells them; the host's end of a container's veth.
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

static inline bool link_is_kind(const struct link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}

/* Reads the name, which is cheaper than the whole link. Returns false where it is gone. */
bool link_name(uint32_t ifindex, char name[IF_NAMESIZE]);

struct link_name {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
};

static inline struct link_name link_name_of(const struct link *link)
{
	struct link_name name = {.ifindex = link->ifindex};

	memcpy(name.name, link->name, sizeof(name.name));
	return name;
}

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
