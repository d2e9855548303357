/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_address.c - addresses as sockets have them. */
#include "lib/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

socklen_t socket_address_make(struct sockaddr_storage *made,
			      const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)made;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)made;

	memset(made, 0, sizeof(*made));
	if (cni_address_is_ipv4(address)) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(port);
		memcpy(&ipv4->sin_addr, address + 12, sizeof(ipv4->sin_addr));
		return sizeof(*ipv4);
	}
	ipv6->sin6_family = AF_INET6;
	ipv6->sin6_port = htons(port);
	memcpy(&ipv6->sin6_addr, address, sizeof(ipv6->sin6_addr));
	return sizeof(*ipv6);
}

bool socket_address_read(const struct sockaddr *from, uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct sockaddr_in *ipv4 = (const void *)from;
	const struct sockaddr_in6 *ipv6 = (const void *)from;

	if (from->sa_family == AF_INET)
		cni_address_make(address, &ipv4->sin_addr, sizeof(ipv4->sin_addr));
	else if (from->sa_family == AF_INET6)
		cni_address_make(address, &ipv6->sin6_addr, sizeof(ipv6->sin6_addr));
	return from->sa_family == AF_INET || from->sa_family == AF_INET6;
}
