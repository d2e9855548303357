/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link.c - network interfaces, as the kernel tells them; the host's end of a container's veth. */
#include "net/link.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/memory.h"
#include "net/netlink.h"
#include "net/netns.h"

/* A GRE tunnel with one other end has none; one with many ends writes the outer header as
 * if it were a link header. IFLA_BROADCAST is the other end's address. */
static bool has_one_end(const struct nlattr *broadcast)
{
	static const uint8_t none[16];
	uint8_t remote[16];
	int size = nla_memcpy(remote, broadcast, sizeof(remote));

	if ((size != 4 && size != 16) || !memcmp(remote, none, (size_t)size))
		return false;
	return size == 4 ? (remote[0] & 0xf0) != 0xe0 : remote[0] != 0xff;
}

static enum link_header header_of(unsigned int type, const struct nlattr *broadcast)
{
	switch (type) {
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
		return has_one_end(broadcast) ? LINK_HEADER_NONE : LINK_HEADER_OTHER;
	default:
		return LINK_HEADER_OTHER;
	}
}

static void take_link(struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = nlmsg_data(message);
	struct nlattr *attributes[IFLA_MAX + 1], *kind;
	struct link *link = context;

	if (nlmsg_parse(message, sizeof(*header), attributes, IFLA_MAX, NULL))
		return;
	*link = (struct link){
		.ifindex = (uint32_t)header->ifi_index,
		.header = header_of(header->ifi_type, attributes[IFLA_BROADCAST]),
		.flags = header->ifi_flags,
		.peer_netns_id = -1,
	};
	/* The kernel has names for none, too; that of an interface which is down is "noop". */
	link->queues = attributes[IFLA_QDISC] && !netlink_is(attributes[IFLA_QDISC], "noqueue") &&
		       !netlink_is(attributes[IFLA_QDISC], "noop");
	nla_memcpy(&link->master, attributes[IFLA_MASTER], sizeof(link->master));
	nla_memcpy(&link->peer, attributes[IFLA_LINK], sizeof(link->peer));
	nla_memcpy(&link->mtu, attributes[IFLA_MTU], sizeof(link->mtu));
	nla_memcpy(&link->peer_netns_id, attributes[IFLA_LINK_NETNSID], sizeof(int));
	if (attributes[IFLA_ADDRESS] && nla_len(attributes[IFLA_ADDRESS]) == LINK_MAC_SIZE)
		nla_memcpy(link->mac, attributes[IFLA_ADDRESS], LINK_MAC_SIZE);
	if (attributes[IFLA_IFNAME])
		nla_strlcpy(link->name, attributes[IFLA_IFNAME], sizeof(link->name));
	kind = netlink_find(attributes[IFLA_LINKINFO], IFLA_INFO_KIND);
	if (kind)
		nla_strlcpy(link->kind, kind, sizeof(link->kind));
}

/* Statistics are most of what the kernel would say, and nobody wants them. */
static struct nl_msg *begin_get_link(int flags, uint32_t ifindex, const char *name)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
	struct nl_msg *request = netlink_begin(RTM_GETLINK, flags, &header, sizeof(header));

	nla_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (name)
		nla_put_string(request, IFLA_IFNAME, name);
	return request;
}

int link_get(struct netlink *socket, uint32_t ifindex, const char *name, struct link *link,
	     struct cni_error *err)
{
	cleanup_request struct nl_msg *request = NULL;

	memset(link, 0, sizeof(*link));
	/* A number that no interface can have. */
	if (!name && (ifindex == 0 || ifindex > INT_MAX))
		return 0;
	request = begin_get_link(0, ifindex, name);
	if (!netlink_ask(socket, request, take_link, link) || errno == ENODEV)
		return 0;
	if (name)
		return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface %s: %s", name,
				     strerror(errno));
	return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface number %u: %s", ifindex,
			     strerror(errno));
}

int link_read(uint32_t ifindex, struct link *link, struct cni_error *err)
{
	struct link found;
	int result = link_get(netlink_route(NULL), ifindex, NULL, &found, err);

	*link = found;
	return result;
}

uint32_t link_bridge_behind(const struct link *link)
{
	struct link peer, master;

	if (!link->peer || link->peer_netns_id >= 0 || link_read(link->peer, &peer, NULL))
		return 0;
	if (link_is_kind(&peer, "bridge"))
		return peer.ifindex;
	if (link_read(peer.master, &master, NULL) || !link_is_kind(&master, "bridge"))
		return 0;
	return master.ifindex;
}

bool link_is_kind(const struct link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}

/* Any socket serves; rtnetlink would wait for whoever changes interfaces just now. */
bool link_name(uint32_t ifindex, char name[IF_NAMESIZE])
{
	struct ifreq request = {.ifr_ifindex = (int)ifindex};
	const struct netlink *socket = netlink_route(NULL);

	if (!socket || ioctl(socket->fd, SIOCGIFNAME, &request))
		return false;
	memcpy(name, request.ifr_name, IF_NAMESIZE);
	name[IF_NAMESIZE - 1] = '\0';
	return true;
}

static void take_name(struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = nlmsg_data(message);
	const struct nlattr *name = nlmsg_find_attr(message, sizeof(*header), IFLA_IFNAME);
	struct link_names *names = context;
	struct link_name *added = ARRAY_ADD(names->list, names->count);

	*added = (struct link_name){.ifindex = (uint32_t)header->ifi_index};
	if (name)
		nla_strlcpy(added->name, name, sizeof(added->name));
}

int link_names_read(struct link_names *names, struct cni_error *err)
{
	cleanup_request struct nl_msg *request = begin_get_link(NLM_F_DUMP, 0, NULL);

	/* The next command sees what comes or goes meanwhile. */
	if (netlink_ask(netlink_route(NULL), request, take_name, names) && errno != EAGAIN)
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the host's interfaces: %s",
				     strerror(errno));
	return 0;
}

/* By our own socket, where the namespace has a number here. False: it could not be asked. */
static bool get_by_number(int number, const char *ifname, struct link *link)
{
	cleanup_request struct nl_msg *request = begin_get_link(0, 0, ifname);

	memset(link, 0, sizeof(*link));
	nla_put_s32(request, IFLA_TARGET_NETNSID, number);
	return number >= 0 &&
	       (!netlink_ask(netlink_route(NULL), request, take_link, link) || errno == ENODEV);
}

/* `number` is the namespace's, or -1. */
static int get_container_end(int netns, int number, const char *ifname, struct link *link,
			     struct cni_error *err)
{
	cleanup_netlink struct netlink *there = NULL;

	if (!get_by_number(number, ifname, link)) {
		there = netlink_open_in(netns, err);
		if (!there || link_get(there, 0, ifname, link, err))
			return -1;
	}
	if (!link->ifindex)
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"there is no interface %s in the container's network namespace;"
			" a plugin earlier in the list must make it",
			ifname);
	if (!link_is_kind(link, "veth"))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "interface %s of the container is of kind %s, but only a veth"
				     " (plugins bridge, ptp) has an end on the host to attach to;"
				     " remove the port mappings from this network, or use bridge",
				     ifname, link->kind[0] ? link->kind : "hardware");
	return 0;
}

/* Whether the other end is in that namespace, which has this number. Our own may have one, too, but
 * no other end that is in it. */
static bool leads_into(const struct link *link, int netns, int number)
{
	char path[32];

	if (link->peer_netns_id >= 0)
		return link->peer_netns_id == number;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", netns);
	return netns_is_own(path);
}

int veth_find_host_end(int netns, const char *ifname, struct host_veth *veth, struct cni_error *err)
{
	struct link container, *link;
	struct host_veth found = {0};
	int number = netlink_netns_id(netlink_route(NULL), netns);

	link = &found.link;
	if (get_container_end(netns, number, ifname, &container, err) ||
	    link_read(container.peer, link, err))
		return -1;
	memcpy(found.container_mac, container.mac, sizeof(found.container_mac));
	/* An ifindex counts within its namespace only, so a veth of another container may well
	 * carry the number; its peer's number and namespace must be right too. */
	if (!link->ifindex || !link_is_kind(link, "veth") || link->peer != container.ifindex ||
	    !leads_into(link, netns, number))
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"the other end of the container's veth %s is not in the network"
			" namespace that bpf-portmap runs in; run it on the host",
			ifname);
	if (link_read(link->master, &found.bridge, err))
		return -1;
	/* A VRF's member routes as ptp's veth does. */
	if (!link_is_kind(&found.bridge, "bridge"))
		memset(&found.bridge, 0, sizeof(found.bridge));
	*veth = found;
	return 0;
}

/* --- a container's MAC in its bridge's forwarding database ---------------------------------- */

#ifndef NTF_STICKY /* Linux 4.20 */
#define NTF_STICKY (1 << 6)
#endif

static bool is_known(const uint8_t mac[LINK_MAC_SIZE])
{
	static const uint8_t none[LINK_MAC_SIZE];

	return memcmp(mac, none, sizeof(none)) != 0;
}

/* Sticky: another container that sends with this MAC does not take the entry to its own port. */
static int change_entry(int type, int flags, uint32_t port, const uint8_t mac[LINK_MAC_SIZE])
{
	struct ndmsg header = {
		.ndm_family = AF_BRIDGE,
		.ndm_ifindex = (int)port,
		.ndm_state = NUD_NOARP,
		.ndm_flags = NTF_MASTER | NTF_STICKY,
	};
	cleanup_request struct nl_msg *request =
		netlink_begin(type, flags | NLM_F_ACK, &header, sizeof(header));

	if (!is_known(mac))
		return 0;
	nla_put(request, NDA_LLADDR, LINK_MAC_SIZE, mac);
	return netlink_ask(netlink_route(NULL), request, NULL, NULL);
}

int bridge_entry_add(uint32_t port, const uint8_t mac[LINK_MAC_SIZE])
{
	return change_entry(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, port, mac);
}

int bridge_entry_add_new(uint32_t port, const uint8_t mac[LINK_MAC_SIZE])
{
	return change_entry(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, port, mac);
}

struct wanted {
	uint32_t port;
	bool found;
};

static void take_entry(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);
	struct wanted *wanted = context;

	wanted->found = (uint32_t)header->ndm_ifindex == wanted->port &&
			header->ndm_state & (NUD_NOARP | NUD_PERMANENT);
}

/* What is no bridge's port has none, and needs none: the kernel refuses the question then. */
bool bridge_entry_is_missing(uint32_t port, const uint8_t mac[LINK_MAC_SIZE])
{
	struct ndmsg header = {
		.ndm_family = AF_BRIDGE, .ndm_ifindex = (int)port, .ndm_flags = NTF_MASTER};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNEIGH, 0, &header, sizeof(header));
	struct wanted wanted = {.port = port};

	if (!is_known(mac))
		return false;
	nla_put(request, NDA_LLADDR, LINK_MAC_SIZE, mac);
	if (netlink_ask(netlink_route(NULL), request, take_entry, &wanted))
		return errno == ENOENT;
	return !wanted.found;
}

void bridge_entry_delete(uint32_t port, const uint8_t mac[LINK_MAC_SIZE])
{
	change_entry(RTM_DELNEIGH, 0, port, mac);
}
