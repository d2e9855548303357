/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address_list.c - the addresses of the host, and the interfaces that have them. */
#include "net/address_list.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "net/netlink.h"

/* IFA_F_SECONDARY and IFA_F_TEMPORARY are one bit. */
#define SECOND_CHOICE (IFA_F_SECONDARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED)

#define DUMP_TRIES 1000

static bool is_ipv6_link_local(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

static bool is_ipv4_link_local(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_is_ipv4(address) && address[12] == 169 && address[13] == 254;
}

/* IFA_ADDRESS of a point-to-point interface is the other side's. */
static bool read_address(int family, struct nlattr *const attributes[IFA_MAX + 1],
			 uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct nlattr *local = attributes[attributes[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS];
	int size = family == AF_INET ? 4 : 16;

	memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	return (family == AF_INET || family == AF_INET6) && local && nla_len(local) == size &&
	       nla_memcpy(address + CNI_ADDRESS_SIZE - size, local, size);
}

/* NULL: no memory. */
static struct addressed_interface *find_or_append(struct address_list *list, uint32_t ifindex)
{
	struct addressed_interface *added;

	/* From the end: the dump goes by interface. */
	for (size_t index = list->count; index-- > 0;)
		if (list->interfaces[index].ifindex == ifindex)
			return &list->interfaces[index];
	added = ARRAY_ADD(list->interfaces, list->count);
	if (added)
		*added = (struct addressed_interface){.ifindex = ifindex};
	return added;
}

static void keep_better(uint8_t kept[CNI_ADDRESS_SIZE], bool *kept_is_second,
			const uint8_t address[CNI_ADDRESS_SIZE], bool is_second)
{
	static const uint8_t none[CNI_ADDRESS_SIZE];

	if (memcmp(kept, none, CNI_ADDRESS_SIZE) && (is_second || !*kept_is_second))
		return;
	memcpy(kept, address, CNI_ADDRESS_SIZE);
	*kept_is_second = is_second;
}

static int append_address(struct address_list *list, size_t interface,
			  const uint8_t address[CNI_ADDRESS_SIZE], bool is_broadcast)
{
	struct local_address *added = ARRAY_ADD(list->addresses, list->address_count);

	if (!added)
		return -1;
	*added = (struct local_address){.interface = interface, .is_broadcast = is_broadcast};
	memcpy(added->address, address, CNI_ADDRESS_SIZE);
	return 0;
}

/* The kernel takes the last address of a subnet for its broadcast address, whatever else
 * has been set. */
static int append_broadcast(struct address_list *list, size_t interface, unsigned int prefix_length,
			    const uint8_t address[CNI_ADDRESS_SIZE])
{
	uint8_t broadcast[CNI_ADDRESS_SIZE];

	if (!cni_address_is_ipv4(address) || prefix_length >= 31)
		return 0;
	memcpy(broadcast, address, CNI_ADDRESS_SIZE);
	for (unsigned int bit = 96 + prefix_length; bit < 128; bit++)
		broadcast[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return append_address(list, interface, broadcast, true);
}

static int take_address(struct nlmsghdr *message, void *context)
{
	const struct ifaddrmsg *header = nlmsg_data(message);
	struct nlattr *attributes[IFA_MAX + 1];
	struct addressed_interface *interface;
	struct address_list *list = context;
	uint8_t address[CNI_ADDRESS_SIZE];
	uint32_t flags = header->ifa_flags;
	size_t index;

	if (nlmsg_parse(message, sizeof(*header), attributes, IFA_MAX, NULL) ||
	    !read_address(header->ifa_family, attributes, address) || is_ipv6_link_local(address) ||
	    cni_address_is_loopback(address))
		return 0;
	nla_memcpy(&flags, attributes[IFA_FLAGS], sizeof(flags));
	interface = find_or_append(list, header->ifa_index);
	if (!interface)
		return -1;
	index = (size_t)(interface - list->interfaces);
	if (append_address(list, index, address, false) ||
	    append_broadcast(list, index, header->ifa_prefixlen, address))
		return -1;
	if (is_ipv4_link_local(address))
		return 0;
	interface->is_reachable = true;
	if (cni_address_is_ipv4(address))
		keep_better(interface->address4, &interface->second4, address,
			    flags & SECOND_CHOICE);
	else
		keep_better(interface->address6, &interface->second6, address,
			    flags & SECOND_CHOICE);
	return 0;
}

int address_list_read(struct address_list *list, struct nl_sock *socket, struct cni_error *err)
{
	struct ifaddrmsg header = {.ifa_family = AF_UNSPEC};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));

	/* Other containers come and go while we read: as often as it takes, but not for ever. */
	for (int i = 0; i < DUMP_TRIES; i++) {
		address_list_release(list);
		if (!netlink_ask(socket, request, take_address, list))
			return 0;
		if (errno != EAGAIN)
			break;
	}
	cni_error_set(err, CNI_ERROR_IO, "cannot list the host's addresses: %s", strerror(errno));
	address_list_release(list);
	return -1;
}

void address_list_release(struct address_list *list)
{
	free(list->interfaces);
	free(list->addresses);
	*list = (struct address_list){0};
}

const struct addressed_interface *address_list_find(const struct address_list *list,
						    uint32_t ifindex)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->interfaces[i].ifindex == ifindex)
			return &list->interfaces[i];
	return NULL;
}

static int take_route(struct nlmsghdr *message, void *context)
{
	const struct rtmsg *route = nlmsg_data(message);

	*(bool *)context = route->rtm_type == RTN_LOCAL;
	return 0;
}

bool local_address_exists(struct nl_sock *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address), local = false;
	int size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	struct rtmsg header = {
		.rtm_family = ipv4 ? AF_INET : AF_INET6,
		.rtm_dst_len = (unsigned char)(8 * size),
	};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETROUTE, 0, &header, sizeof(header));

	if (request)
		nla_put(request, RTA_DST, size, address + CNI_ADDRESS_SIZE - size);
	return !netlink_ask(socket, request, take_route, &local) && local;
}
