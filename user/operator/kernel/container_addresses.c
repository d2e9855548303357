/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* container_addresses.c - the addresses of the namespaces that interfaces of this one lead to. */
#include "operator/kernel/container_addresses.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "net/netlink.h"

#define TRIES 10

struct reading {
	struct container_addresses *addresses;
	int *namespaces;
	size_t namespace_count;
	int asked;  /* the namespace that is read */
	bool other; /* the kernel told of another one */
};

static void take_link(struct nlmsghdr *message, void *context)
{
	const struct nlattr *attribute =
		nlmsg_find_attr(message, sizeof(struct ifinfomsg), IFLA_LINK_NETNSID);
	struct reading *reading = context;
	int namespace;

	if (!attribute)
		return;
	namespace = nla_get_s32(attribute);
	for (size_t i = 0; i < reading->namespace_count; i++)
		if (reading->namespaces[i] == namespace)
			return;
	*ARRAY_ADD(reading->namespaces, reading->namespace_count) = namespace;
}

static void take_address(struct nlmsghdr *message, void *context)
{
	const struct ifaddrmsg *header = nlmsg_data(message);
	struct nlattr *attributes[IFA_MAX + 1], *address;
	bool ipv4 = header->ifa_family == AF_INET;
	struct container_address *added;
	struct reading *reading = context;
	int size = ipv4 ? 4 : CNI_ADDRESS_SIZE;

	if (nlmsg_parse(message, sizeof(*header), attributes, IFA_MAX, NULL))
		return;
	if (!attributes[IFA_TARGET_NETNSID] ||
	    nla_get_s32(attributes[IFA_TARGET_NETNSID]) != reading->asked)
		reading->other = true;
	address = attributes[attributes[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS];
	if (!address || nla_len(address) != size)
		return;
	added = ARRAY_ADD(reading->addresses->list, reading->addresses->count);
	added->namespace = reading->asked;
	memcpy(added->address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	nla_memcpy(added->address + CNI_ADDRESS_SIZE - size, address, size);
}

/* Asks once more where the list changed meanwhile. */
static int ask(struct netlink *socket, struct nl_msg *request, netlink_take take,
	       struct reading *reading)
{
	size_t count = reading->addresses->count;
	int result = -1;

	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		reading->addresses->count = count;
		result = netlink_ask(socket, request, take, reading);
	}
	return result;
}

static int read_family(struct netlink *socket, struct reading *reading, uint8_t family)
{
	struct ifaddrmsg header = {.ifa_family = family};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));

	nla_put_s32(request, IFA_TARGET_NETNSID, reading->asked);
	if (ask(socket, request, take_address, reading))
		return -1;
	errno = EOPNOTSUPP;
	return reading->other ? -1 : 0;
}

/* Whether there is one behind that number of addresses, besides loopback. */
static bool has_ipv4(const struct container_addresses *addresses, size_t before)
{
	for (size_t i = before; i < addresses->count; i++)
		if (addresses->list[i].address[12] != 127)
			return true;
	return false;
}

static int read_all(struct netlink *socket, struct reading *reading)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETLINK, NLM_F_DUMP, &header, sizeof(header));
	int on = 1;
	size_t before;

	/* Without it the kernel does not look at what a dump is asked for. */
	if (setsockopt(socket->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) ||
	    ask(socket, request, take_link, reading))
		return -1;
	for (size_t i = 0; i < reading->namespace_count; i++) {
		reading->asked = reading->namespaces[i];
		before = reading->addresses->count;
		/* One that is just being removed has no number any more. */
		if (reading->asked < 0)
			continue;
		if (read_family(socket, reading, AF_INET))
			return -1;
		reading->addresses->hidden |= !has_ipv4(reading->addresses, before);
		if (read_family(socket, reading, AF_INET6))
			return -1;
	}
	return 0;
}

int container_addresses_read(struct container_addresses *addresses, struct cni_error *err)
{
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_ROUTE, err);
	struct reading reading = {.addresses = addresses};
	int result;

	if (!socket)
		return -1;
	result = read_all(socket, &reading);
	if (result)
		cni_error_set(err, CNI_ERROR_IO, "cannot read the addresses of containers: %s",
			      strerror(errno));
	free(reading.namespaces);
	return result;
}

void container_addresses_release(struct container_addresses *addresses)
{
	free(addresses->list);
	*addresses = (struct container_addresses){0};
}

size_t container_addresses_count(const struct container_addresses *addresses,
				 const uint8_t address[CNI_ADDRESS_SIZE])
{
	size_t count = 0;
	int last = -1;

	for (size_t i = 0; i < addresses->count; i++) {
		const struct container_address *one = &addresses->list[i];

		if (one->namespace == last || memcmp(one->address, address, CNI_ADDRESS_SIZE) != 0)
			continue;
		last = one->namespace;
		count++;
	}
	return count;
}
