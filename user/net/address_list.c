/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address_list.c - the addresses of the host, and the interfaces that have them. */
#include "net/address_list.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/memory.h"
#include "net/netlink.h"

/* IFA_F_SECONDARY and IFA_F_TEMPORARY are one bit. */
#define SECOND_CHOICE (IFA_F_SECONDARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED)

#define DUMP_TRIES 1000

static void keep_better(uint8_t kept[CNI_ADDRESS_SIZE], bool *kept_is_second,
			const uint8_t address[CNI_ADDRESS_SIZE], bool is_second)
{
	static const uint8_t none[CNI_ADDRESS_SIZE];

	if (memcmp(kept, none, CNI_ADDRESS_SIZE) && (is_second || !*kept_is_second))
		return;
	memcpy(kept, address, CNI_ADDRESS_SIZE);
	*kept_is_second = is_second;
}

static void append_address(struct address_list *list, size_t interface,
			   const uint8_t address[CNI_ADDRESS_SIZE], bool is_broadcast)
{
	struct local_address *added = ARRAY_ADD(list->addresses, list->address_count);

	*added = (struct local_address){.interface = interface, .is_broadcast = is_broadcast};
	memcpy(added->address, address, CNI_ADDRESS_SIZE);
}

/* False: it is no address that we know. */
static bool parse_address(struct nlmsghdr *message, uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct ifaddrmsg *header = nlmsg_data(message);
	/* IFA_ADDRESS of a point-to-point interface is the other side's. */
	struct nlattr *local = nlmsg_find_attr(message, sizeof(*header), IFA_LOCAL);
	bool ipv4 = header->ifa_family == AF_INET;
	int size = ipv4 ? 4 : CNI_ADDRESS_SIZE;

	if (!local)
		local = nlmsg_find_attr(message, sizeof(*header), IFA_ADDRESS);
	if (!local || nla_len(local) != size || (!ipv4 && header->ifa_family != AF_INET6))
		return false;
	cni_address_make(address, nla_data(local), (size_t)size);
	return true;
}

static void take_address(struct nlmsghdr *message, void *context)
{
	const struct ifaddrmsg *header = nlmsg_data(message);
	struct addressed_interface *interface;
	struct address_list *list = context;
	uint8_t address[CNI_ADDRESS_SIZE];
	uint32_t flags = header->ifa_flags;
	bool ipv4 = header->ifa_family == AF_INET;
	size_t index = list->count;

	if (!parse_address(message, address) || (!ipv4 && cni_address_is_link_local(address)) ||
	    cni_address_is_loopback(address))
		return;
	nla_memcpy(&flags, nlmsg_find_attr(message, sizeof(*header), IFA_FLAGS), sizeof(flags));
	/* From the end: the dump goes by interface. */
	while (index > 0 && list->interfaces[index - 1].ifindex != header->ifa_index)
		index--;
	if (!index) {
		*ARRAY_ADD(list->interfaces, list->count) =
			(struct addressed_interface){.ifindex = header->ifa_index};
		index = list->count;
	}
	interface = &list->interfaces[--index];
	append_address(list, index, address, false);
	if (!cni_address_is_link_local(address)) {
		interface->is_reachable = true;
		keep_better(ipv4 ? interface->address4 : interface->address6,
			    ipv4 ? &interface->second4 : &interface->second6, address,
			    flags & SECOND_CHOICE);
	}
	/* The kernel takes the last address of a subnet for its broadcast address, whatever else
	 * has been set. */
	if (!ipv4 || header->ifa_prefixlen >= 31)
		return;
	cni_address_fill(address, 96U + header->ifa_prefixlen, true);
	append_address(list, index, address, true);
}

int address_list_read(struct address_list *list, struct cni_error *err)
{
	struct ifaddrmsg header = {.ifa_family = AF_UNSPEC};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));
	struct address_list found = {0};
	int failed = EAGAIN;

	/* Other containers come and go while we read: as often as it takes, but not for ever. */
	for (int i = 0; i < DUMP_TRIES && failed == EAGAIN; i++) {
		address_list_release(&found);
		failed =
			netlink_ask(netlink_route(NULL), request, take_address, &found) ? errno : 0;
	}
	if (failed) {
		address_list_release(&found);
		cni_error_set(err, CNI_ERROR_IO, "cannot list the host's addresses: %s",
			      strerror(failed));
	}
	address_list_release(list);
	*list = found;
	return failed ? -1 : 0;
}

void address_list_release(struct address_list *list)
{
	free(list->interfaces);
	free(list->addresses);
	*list = (struct address_list){0};
}

static void take_route(struct nlmsghdr *message, void *context)
{
	const struct rtmsg *route = nlmsg_data(message);

	*(bool *)context = route->rtm_type == RTN_LOCAL;
}

bool local_address_exists(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address), local = false;
	int size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	struct rtmsg header = {
		.rtm_family = ipv4 ? AF_INET : AF_INET6,
		.rtm_dst_len = (unsigned char)(8 * size),
	};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETROUTE, 0, &header, sizeof(header));

	nla_put(request, RTA_DST, size, address + CNI_ADDRESS_SIZE - size);
	return !netlink_ask(socket, request, take_route, &local) && local;
}
