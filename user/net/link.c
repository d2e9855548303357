/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link.c - one network interface, as rtnetlink tells it. */
#include "net/link.h"

#include <limits.h>
#include <linux/if_arp.h>
#include <netlink/addr.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

/* A GRE tunnel with one other end has none; one with many ends writes the outer header as
 * if it were a link header. IFLA_BROADCAST is the other end's address. */
static bool has_one_end(struct rtnl_link *link)
{
	static const uint8_t none[16];
	struct nl_addr *remote = rtnl_link_get_broadcast(link);
	const uint8_t *bytes = remote ? nl_addr_get_binary_addr(remote) : NULL;
	size_t length = remote ? nl_addr_get_len(remote) : 0;

	if (length != 4 && length != 16)
		return false;
	if (!memcmp(bytes, none, length))
		return false;
	return length == 4 ? (bytes[0] & 0xf0) != 0xe0 : bytes[0] != 0xff;
}

static enum link_header header_of(struct rtnl_link *link)
{
	switch (rtnl_link_get_arptype(link)) {
	case ARPHRD_ETHER:
		return LINK_HEADER_ETHERNET;
	case ARPHRD_NONE: /* tun, WireGuard, xfrm */
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:  /* modems */
	case ARPHRD_TUNNEL: /* ipip, vti */
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
		return LINK_HEADER_NONE;
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return has_one_end(link) ? LINK_HEADER_NONE : LINK_HEADER_OTHER;
	default:
		return LINK_HEADER_OTHER;
	}
}

/* The kernel has names for none, too; that of an interface which is down is "noop". */
static bool has_root_qdisc(struct rtnl_link *link)
{
	const char *kind = rtnl_link_get_qdisc(link);

	return kind && strcmp(kind, "noqueue") != 0 && strcmp(kind, "noop") != 0;
}

static void fill_link(struct link *link, struct rtnl_link *from)
{
	struct nl_addr *mac = rtnl_link_get_addr(from);
	int32_t netns_id;

	link->ifindex = (uint32_t)rtnl_link_get_ifindex(from);
	copy_text(link->name, sizeof(link->name), rtnl_link_get_name(from));
	copy_text(link->kind, sizeof(link->kind), rtnl_link_get_type(from));
	if (mac && nl_addr_get_len(mac) == LINK_MAC_SIZE)
		memcpy(link->mac, nl_addr_get_binary_addr(mac), LINK_MAC_SIZE);
	link->header = header_of(from);
	link->master = (uint32_t)rtnl_link_get_master(from);
	link->peer = (uint32_t)rtnl_link_get_link(from);
	link->peer_netns_id = -1;
	if (!rtnl_link_get_link_netnsid(from, &netns_id))
		link->peer_netns_id = netns_id;
	link->flags = rtnl_link_get_flags(from);
	link->queues = has_root_qdisc(from);
}

int link_get(struct nl_sock *socket, uint32_t ifindex, const char *name, struct link *link,
	     struct cni_error *err)
{
	struct rtnl_link *found = NULL;
	int result;

	memset(link, 0, sizeof(*link));
	/* libnl takes a number that no interface can have for a mistake to abort at. */
	if (!name && (ifindex == 0 || ifindex > INT_MAX))
		return 0;
	result = rtnl_link_get_kernel(socket, (int)ifindex, name, &found);
	if (result == -NLE_NODEV || result == -NLE_OBJ_NOTFOUND)
		return 0;
	if (result < 0) {
		if (name)
			return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface %s: %s",
					     name, nl_geterror(result));
		return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface number %u: %s",
				     ifindex, nl_geterror(result));
	}
	fill_link(link, found);
	rtnl_link_put(found);
	return 0;
}

bool link_is_kind(const struct link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}
