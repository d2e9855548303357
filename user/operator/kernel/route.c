/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* route.c - where packets go from here: routing and neighbours. */
#include "operator/kernel/route.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netlink.h"

static const uint8_t *bytes_of(const uint8_t address[CNI_ADDRESS_SIZE], int *size)
{
	bool ipv4 = cni_address_is_ipv4(address);

	*size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	return address + CNI_ADDRESS_SIZE - *size;
}

static uint32_t locked_mtu_of(const struct nlattr *metrics)
{
	const struct nlattr *lock = netlink_find(metrics, RTAX_LOCK);
	const struct nlattr *mtu = netlink_find(metrics, RTAX_MTU);

	return lock && mtu && nla_get_u32(lock) & (1 << RTAX_MTU) ? nla_get_u32(mtu) : 0;
}

static void take_route(struct nlmsghdr *message, void *context)
{
	const struct rtmsg *header = nlmsg_data(message);
	struct route *route = context;

	route->exists = header->rtm_type == RTN_UNICAST || header->rtm_type == RTN_LOCAL;
	route->is_local = header->rtm_type == RTN_LOCAL;
	route->has_gateway = nlmsg_find_attr(message, sizeof(*header), RTA_GATEWAY) ||
			     nlmsg_find_attr(message, sizeof(*header), RTA_VIA);
	nla_memcpy(&route->ifindex, nlmsg_find_attr(message, sizeof(*header), RTA_OIF),
		   sizeof(route->ifindex));
	route->locked_mtu = locked_mtu_of(nlmsg_find_attr(message, sizeof(*header), RTA_METRICS));
}

struct route route_to(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct rtmsg header = {0};
	cleanup_request struct nl_msg *request = NULL;
	struct route route = {0};
	int size;
	const uint8_t *bytes = bytes_of(address, &size);

	header.rtm_family = size == 4 ? AF_INET : AF_INET6;
	header.rtm_dst_len = (unsigned char)(8 * size);
	request = netlink_begin(RTM_GETROUTE, 0, &header, sizeof(header));
	nla_put(request, RTA_DST, size, bytes);
	if (netlink_ask(socket, request, take_route, &route))
		route.exists = false;
	return route;
}

static void take_neighbour(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);
	struct neighbour *neighbour = context;

	neighbour->exists = true;
	neighbour->state = header->ndm_state;
	nla_memcpy(neighbour->mac, nlmsg_find_attr(message, sizeof(*header), NDA_LLADDR),
		   LINK_MAC_SIZE);
}

struct neighbour neighbour_of(struct netlink *socket, uint32_t ifindex,
			      const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct ndmsg header = {.ndm_ifindex = (int)ifindex};
	cleanup_request struct nl_msg *request = NULL;
	struct neighbour neighbour = {0};
	int size;
	const uint8_t *bytes = bytes_of(address, &size);

	header.ndm_family = size == 4 ? AF_INET : AF_INET6;
	request = netlink_begin(RTM_GETNEIGH, 0, &header, sizeof(header));
	nla_put(request, NDA_DST, size, bytes);
	if (netlink_ask(socket, request, take_neighbour, &neighbour))
		neighbour.exists = false;
	return neighbour;
}

struct neighbour_search {
	uint32_t ifindex;
	const uint8_t *prefix;
	unsigned int prefix_length;
	bool found;
	uint8_t *address;
};

#define NUD_THERE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)

static void take_first(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);
	const struct nlattr *address = nlmsg_find_attr(message, sizeof(*header), NDA_DST);
	struct neighbour_search *search = context;
	bool ipv4 = header->ndm_family == AF_INET;
	uint8_t read[CNI_ADDRESS_SIZE];

	if (search->found || !address || (uint32_t)header->ndm_ifindex != search->ifindex ||
	    !(header->ndm_state & NUD_THERE))
		return;
	memcpy(read, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	nla_memcpy(read + (ipv4 ? 12 : 0), address, ipv4 ? 4 : CNI_ADDRESS_SIZE);
	if (cni_address_is_link_local(read) ||
	    !cni_address_has_prefix(read, search->prefix, search->prefix_length))
		return;
	search->found = true;
	memcpy(search->address, read, CNI_ADDRESS_SIZE);
}

bool neighbour_first(struct netlink *socket, uint32_t ifindex,
		     const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int prefix_length,
		     uint8_t address[CNI_ADDRESS_SIZE])
{
	struct ndmsg header = {.ndm_family = cni_address_is_ipv4(prefix) ? AF_INET : AF_INET6};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNEIGH, NLM_F_DUMP, &header, sizeof(header));
	struct neighbour_search search = {ifindex, prefix, prefix_length, false, address};

	netlink_ask(socket, request, take_first, &search);
	return search.found;
}
