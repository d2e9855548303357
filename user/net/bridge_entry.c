/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bridge_entry.c - a container's MAC in its bridge's forwarding database. */
#include "net/bridge_entry.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "net/netlink.h"

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
