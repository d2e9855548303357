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
	const struct nlattr *source = nlmsg_find_attr(message, sizeof(*header), RTA_PREFSRC);
	struct route *route = context;

	route->exists = header->rtm_type == RTN_UNICAST || header->rtm_type == RTN_LOCAL;
	route->is_local = header->rtm_type == RTN_LOCAL;
	nla_memcpy(&route->ifindex, nlmsg_find_attr(message, sizeof(*header), RTA_OIF),
		   sizeof(route->ifindex));
	route->locked_mtu = locked_mtu_of(nlmsg_find_attr(message, sizeof(*header), RTA_METRICS));
	if (!source)
		return;
	route->has_source = true;
	if (header->rtm_family == AF_INET) {
		memcpy(route->source, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
		nla_memcpy(route->source + 12, source, 4);
	} else {
		nla_memcpy(route->source, source, CNI_ADDRESS_SIZE);
	}
}

struct route route_to(struct nl_sock *socket, const uint8_t address[CNI_ADDRESS_SIZE])
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

struct neighbour neighbour_of(struct nl_sock *socket, uint32_t ifindex,
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
