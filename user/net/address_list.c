/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address_list.c - the interfaces of the host that have an address. */
#include "net/address_list.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "net/netlink.h"

/* IFA_F_SECONDARY and IFA_F_TEMPORARY are one bit. */
#define SECOND_CHOICE (IFA_F_SECONDARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED)

#define DUMP_TRIES 1000

struct collector {
	struct address_list *list;
	size_t capacity;
	size_t address_capacity;
	/* Which address was taken last and whether it was a second choice: the kernel
	 * dumps one family after the other, each interface's addresses together. */
	bool *second4;
	bool *second6;
};

static bool is_ipv6_link_local(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

static bool is_ipv4_link_local(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_is_ipv4(address) && address[12] == 169 && address[13] == 254;
}

static bool read_address(struct nl_msg *message, uint8_t address[CNI_ADDRESS_SIZE])
{
	struct ifaddrmsg *header = nlmsg_data(nlmsg_hdr(message));
	struct nlattr *local, *any;
	size_t size = header->ifa_family == AF_INET ? 4 : 16;

	if (header->ifa_family != AF_INET && header->ifa_family != AF_INET6)
		return false;
	/* IFA_ADDRESS of a point-to-point interface is the other side's. */
	local = nlmsg_find_attr(nlmsg_hdr(message), sizeof(*header), IFA_LOCAL);
	any = nlmsg_find_attr(nlmsg_hdr(message), sizeof(*header), IFA_ADDRESS);
	if (!local)
		local = any;
	if (!local || (size_t)nla_len(local) != size)
		return false;
	memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	memcpy(address + CNI_ADDRESS_SIZE - size, nla_data(local), size);
	return true;
}

static int grow(struct collector *collector)
{
	size_t capacity = collector->capacity ? 2 * collector->capacity : 16;
	struct address_list *list = collector->list;
	void *interfaces = realloc(list->interfaces, capacity * sizeof(*list->interfaces));
	bool *second4, *second6;

	if (interfaces)
		list->interfaces = interfaces;
	second4 = realloc(collector->second4, capacity * sizeof(*second4));
	if (second4)
		collector->second4 = second4;
	second6 = realloc(collector->second6, capacity * sizeof(*second6));
	if (second6)
		collector->second6 = second6;
	if (!interfaces || !second4 || !second6)
		return -1;
	collector->capacity = capacity;
	return 0;
}

/* The index in the list; SIZE_MAX: no memory. */
static size_t find_or_append(struct collector *collector, uint32_t ifindex)
{
	struct address_list *list = collector->list;
	size_t index = list->count;

	/* From the end: the dump goes by interface. */
	while (index-- > 0)
		if (list->interfaces[index].ifindex == ifindex)
			return index;
	if (list->count == collector->capacity && grow(collector))
		return SIZE_MAX;
	index = list->count++;
	list->interfaces[index] = (struct addressed_interface){.ifindex = ifindex};
	collector->second4[index] = collector->second6[index] = true;
	return index;
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

static int append_address(struct collector *collector, size_t interface,
			  const uint8_t address[CNI_ADDRESS_SIZE], bool is_broadcast)
{
	struct address_list *list = collector->list;
	size_t capacity = collector->address_capacity ? 2 * collector->address_capacity : 32;
	struct local_address *added;

	if (list->address_count == collector->address_capacity) {
		void *grown = realloc(list->addresses, capacity * sizeof(*list->addresses));

		if (!grown)
			return -1;
		list->addresses = grown;
		collector->address_capacity = capacity;
	}
	added = &list->addresses[list->address_count++];
	*added = (struct local_address){.interface = interface, .is_broadcast = is_broadcast};
	memcpy(added->address, address, CNI_ADDRESS_SIZE);
	return 0;
}

/* The kernel takes the last address of a subnet for its broadcast address, whatever else
 * has been set. */
static int append_broadcast(struct collector *collector, size_t interface,
			    unsigned int prefix_length, const uint8_t address[CNI_ADDRESS_SIZE])
{
	uint8_t broadcast[CNI_ADDRESS_SIZE];

	if (!cni_address_is_ipv4(address) || prefix_length >= 31)
		return 0;
	memcpy(broadcast, address, CNI_ADDRESS_SIZE);
	for (unsigned int bit = 96 + prefix_length; bit < 128; bit++)
		broadcast[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return append_address(collector, interface, broadcast, true);
}

static int parse_address(struct nl_msg *message, void *context)
{
	struct collector *collector = context;
	struct ifaddrmsg *header = nlmsg_data(nlmsg_hdr(message));
	struct nlattr *long_flags = nlmsg_find_attr(nlmsg_hdr(message), sizeof(*header), IFA_FLAGS);
	uint32_t flags = long_flags ? nla_get_u32(long_flags) : header->ifa_flags;
	bool second = flags & SECOND_CHOICE;
	uint8_t address[CNI_ADDRESS_SIZE];
	size_t index;

	if (!read_address(message, address) || is_ipv6_link_local(address) ||
	    cni_address_is_loopback(address))
		return NL_OK;
	index = find_or_append(collector, header->ifa_index);
	if (index == SIZE_MAX || append_address(collector, index, address, false) ||
	    append_broadcast(collector, index, header->ifa_prefixlen, address))
		return -NLE_NOMEM;
	if (is_ipv4_link_local(address))
		return NL_OK;
	collector->list->interfaces[index].is_reachable = true;
	if (cni_address_is_ipv4(address))
		keep_better(collector->list->interfaces[index].address4, &collector->second4[index],
			    address, second);
	else
		keep_better(collector->list->interfaces[index].address6, &collector->second6[index],
			    address, second);
	return NL_OK;
}

static int dump_addresses(struct address_list *list, struct nl_sock *socket)
{
	struct collector collector = {.list = list};
	struct ifaddrmsg header = {.ifa_family = AF_UNSPEC};
	int result = netlink_get(socket, RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header),
				 parse_address, &collector);

	free(collector.second4);
	free(collector.second6);
	return result;
}

int address_list_read(struct address_list *list, struct nl_sock *socket, struct cni_error *err)
{
	int result = -NLE_DUMP_INTR;

	/* Other containers come and go while we read: as often as it takes, but not for ever. */
	for (int i = 0; i < DUMP_TRIES && result == -NLE_DUMP_INTR; i++) {
		address_list_release(list);
		result = dump_addresses(list, socket);
	}
	if (!result)
		return 0;
	address_list_release(list);
	return cni_error_set(err, CNI_ERROR_IO, "cannot list the host's addresses: %s",
			     nl_geterror(result));
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
