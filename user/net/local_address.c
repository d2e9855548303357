/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* local_address.c - whether an address is one of this host's. */
#include "net/local_address.h"

#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netlink.h"

struct route_request {
	struct rtmsg header;
	struct rtattr attribute;
	uint8_t destination[CNI_ADDRESS_SIZE];
};

static int parse_route(struct nl_msg *message, void *context)
{
	const struct rtmsg *route = nlmsg_data(nlmsg_hdr(message));

	*(bool *)context = route->rtm_type == RTN_LOCAL;
	return NL_OK;
}

bool local_address_exists(struct nl_sock *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address), local = false;
	size_t size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	struct route_request request = {
		.header = {.rtm_family = ipv4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (unsigned char)(8 * size)},
		.attribute = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = RTA_DST},
	};

	memcpy(request.destination, address + CNI_ADDRESS_SIZE - size, size);
	return !netlink_get(socket, RTM_GETROUTE, 0, &request,
			    offsetof(struct route_request, destination) + size, parse_route,
			    &local) &&
	       local;
}
