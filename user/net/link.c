/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link.c - one network interface, as rtnetlink tells it. */
#include "net/link.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netlink.h"

/* A GRE tunnel with one other end has none; one with many ends writes the outer header as
 * if it were a link header. IFLA_BROADCAST is the other end's address. */
static bool has_one_end(struct nlmsghdr *message)
{
	static const uint8_t none[16];
	struct nlattr *remote = nlmsg_find_attr(message, sizeof(struct ifinfomsg), IFLA_BROADCAST);
	const uint8_t *bytes = remote ? nla_data(remote) : NULL;
	int length = remote ? nla_len(remote) : 0;

	if (length != 4 && length != 16)
		return false;
	if (!memcmp(bytes, none, (size_t)length))
		return false;
	return length == 4 ? (bytes[0] & 0xf0) != 0xe0 : bytes[0] != 0xff;
}

static enum link_header header_of(struct nlmsghdr *message)
{
	const struct ifinfomsg *header = nlmsg_data(message);

	switch (header->ifi_type) {
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
		return has_one_end(message) ? LINK_HEADER_NONE : LINK_HEADER_OTHER;
	default:
		return LINK_HEADER_OTHER;
	}
}

static void read_kind(struct link *link, struct nlattr *information)
{
	struct nlattr *kind = nla_find(nla_data(information), nla_len(information), IFLA_INFO_KIND);

	if (kind)
		nla_strlcpy(link->kind, kind, sizeof(link->kind));
}

/* The kernel has names for none, too; that of an interface which is down is "noop". */
static bool is_root_qdisc(struct nlattr *kind)
{
	return nla_strcmp(kind, "noqueue") != 0 && nla_strcmp(kind, "noop") != 0;
}

static void read_attribute(struct link *link, struct nlattr *attribute)
{
	switch (nla_type(attribute)) {
	case IFLA_IFNAME:
		nla_strlcpy(link->name, attribute, sizeof(link->name));
		break;
	case IFLA_ADDRESS:
		if (nla_len(attribute) == LINK_MAC_SIZE)
			memcpy(link->mac, nla_data(attribute), LINK_MAC_SIZE);
		break;
	case IFLA_MASTER:
		link->master = nla_get_u32(attribute);
		break;
	case IFLA_LINK:
		link->peer = nla_get_u32(attribute);
		break;
	case IFLA_LINK_NETNSID:
		link->peer_netns_id = (int)nla_get_u32(attribute);
		break;
	case IFLA_QDISC:
		link->queues = is_root_qdisc(attribute);
		break;
	case IFLA_LINKINFO:
		read_kind(link, attribute);
		break;
	}
}

static int parse_link(struct nl_msg *message, void *context)
{
	const struct ifinfomsg *header = nlmsg_data(nlmsg_hdr(message));
	struct link *link = context;
	struct nlattr *attribute;
	int rest;

	*link = (struct link){
		.ifindex = (uint32_t)header->ifi_index,
		.header = header_of(nlmsg_hdr(message)),
		.peer_netns_id = -1,
		.flags = header->ifi_flags,
	};
	nlmsg_for_each_attr(attribute, nlmsg_hdr(message), sizeof(*header), rest)
		read_attribute(link, attribute);
	return NL_OK;
}

/* Statistics are most of what the kernel would say, and nobody wants them. */
static struct nl_msg *make_request(uint32_t ifindex, const char *name)
{
	struct nl_msg *request = nlmsg_alloc_simple(RTM_GETLINK, NLM_F_REQUEST);
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};

	if (request && !nlmsg_append(request, &header, sizeof(header), NLMSG_ALIGNTO) &&
	    (!name || !nla_put_string(request, IFLA_IFNAME, name)) &&
	    !nla_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS))
		return request;
	nlmsg_free(request);
	return NULL;
}

int link_get(struct nl_sock *socket, uint32_t ifindex, const char *name, struct link *link,
	     struct cni_error *err)
{
	int result;

	memset(link, 0, sizeof(*link));
	/* A number that no interface can have. */
	if (!name && (ifindex == 0 || ifindex > INT_MAX))
		return 0;
	result = netlink_request(socket, make_request(ifindex, name), parse_link, link);
	if (result >= 0 || result == -NLE_NODEV || result == -NLE_OBJ_NOTFOUND)
		return 0;
	if (name)
		return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface %s: %s", name,
				     nl_geterror(result));
	return cni_error_set(err, CNI_ERROR_IO, "cannot look up interface number %u: %s", ifindex,
			     nl_geterror(result));
}

bool link_is_kind(const struct link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}
