/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link.c - network interfaces, as the kernel tells them. */
#include "net/link.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/ioctl.h>

#include "lib/array.h"
#include "net/netlink.h"

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

/* The kernel has names for none, too; that of an interface which is down is "noop". */
static bool is_root_qdisc(const struct nlattr *kind)
{
	return kind && !netlink_is(kind, "noqueue") && !netlink_is(kind, "noop");
}

static int take_link(struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = nlmsg_data(message);
	struct nlattr *attributes[IFLA_MAX + 1], *kind;
	struct link *link = context;

	if (nlmsg_parse(message, sizeof(*header), attributes, IFLA_MAX, NULL))
		return 0;
	*link = (struct link){
		.ifindex = (uint32_t)header->ifi_index,
		.header = header_of(header->ifi_type, attributes[IFLA_BROADCAST]),
		.flags = header->ifi_flags,
		.peer_netns_id = -1,
		.queues = is_root_qdisc(attributes[IFLA_QDISC]),
	};
	nla_memcpy(&link->master, attributes[IFLA_MASTER], sizeof(link->master));
	nla_memcpy(&link->peer, attributes[IFLA_LINK], sizeof(link->peer));
	nla_memcpy(&link->peer_netns_id, attributes[IFLA_LINK_NETNSID], sizeof(int));
	if (attributes[IFLA_ADDRESS] && nla_len(attributes[IFLA_ADDRESS]) == LINK_MAC_SIZE)
		nla_memcpy(link->mac, attributes[IFLA_ADDRESS], LINK_MAC_SIZE);
	if (attributes[IFLA_IFNAME])
		nla_strlcpy(link->name, attributes[IFLA_IFNAME], sizeof(link->name));
	kind = netlink_find(attributes[IFLA_LINKINFO], IFLA_INFO_KIND);
	if (kind)
		nla_strlcpy(link->kind, kind, sizeof(link->kind));
	return 0;
}

/* Statistics are most of what the kernel would say, and nobody wants them. */
static struct nl_msg *begin(int flags, uint32_t ifindex, const char *name)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
	struct nl_msg *request = netlink_begin(RTM_GETLINK, flags, &header, sizeof(header));

	if (request)
		nla_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (request && name)
		nla_put_string(request, IFLA_IFNAME, name);
	return request;
}

int link_get(struct nl_sock *socket, uint32_t ifindex, const char *name, struct link *link,
	     struct cni_error *err)
{
	cleanup_request struct nl_msg *request = NULL;

	memset(link, 0, sizeof(*link));
	/* A number that no interface can have. */
	if (!name && (ifindex == 0 || ifindex > INT_MAX))
		return 0;
	request = begin(0, ifindex, name);
	if (!netlink_ask(socket, request, take_link, link) || errno == ENODEV)
		return 0;
	if (name)
		return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface %s: %s", name,
				     strerror(errno));
	return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface number %u: %s", ifindex,
			     strerror(errno));
}

bool link_is_kind(const struct link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}

/* Any socket serves, and rtnetlink would wait for whoever changes interfaces just now. */
bool link_name(struct nl_sock *socket, uint32_t ifindex, char name[IF_NAMESIZE])
{
	struct ifreq request = {.ifr_ifindex = (int)ifindex};

	if (ioctl(nl_socket_get_fd(socket), SIOCGIFNAME, &request))
		return false;
	memcpy(name, request.ifr_name, IF_NAMESIZE);
	name[IF_NAMESIZE - 1] = '\0';
	return true;
}

uint32_t link_index(const char *name)
{
	return if_nametoindex(name);
}

struct listing {
	struct link_name *names;
	size_t count;
};

static int take_name(struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = nlmsg_data(message);
	const struct nlattr *name = nlmsg_find_attr(message, sizeof(*header), IFLA_IFNAME);
	struct listing *listing = context;
	struct link_name *added = ARRAY_ADD(listing->names, listing->count);

	if (!added)
		return -1;
	*added = (struct link_name){.ifindex = (uint32_t)header->ifi_index};
	if (name)
		nla_strlcpy(added->name, name, sizeof(added->name));
	return 0;
}

int link_names_read(struct nl_sock *socket, struct link_name **names, size_t *count,
		    struct cni_error *err)
{
	cleanup_request struct nl_msg *request = begin(NLM_F_DUMP, 0, NULL);
	struct listing listing = {0};

	/* What comes or goes meanwhile is somebody's next look. */
	if (netlink_ask(socket, request, take_name, &listing) && errno != EAGAIN) {
		free(listing.names);
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the host's interfaces: %s",
				     strerror(errno));
	}
	*names = listing.names;
	*count = listing.count;
	return 0;
}
