/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* listening.c - whether a socket takes what comes to a container's port. */
#include "operator/doctor/listening.h"

#include <string.h>

static enum listening judge(const struct host_socket *socket,
			    const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool same_family = cni_address_is_ipv4(socket->address) == cni_address_is_ipv4(address);

	if (cni_address_is_any(socket->address))
		return same_family || socket->both_families ? LISTENING : LISTENING_ELSEWHERE;
	if (!memcmp(socket->address, address, CNI_ADDRESS_SIZE))
		return LISTENING;
	return cni_address_is_loopback(socket->address) ? LISTENING_AT_LOOPBACK
							: LISTENING_ELSEWHERE;
}

enum listening listening_at(const struct socket_list *sockets, enum protocol protocol,
			    const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    const uint8_t **where)
{
	enum listening best = LISTENING_NOT;

	*where = NULL;
	for (size_t i = 0; i < sockets->count; i++) {
		const struct host_socket *socket = &sockets->sockets[i];
		enum listening one;

		if (socket->protocol != protocol || socket->port != port)
			continue;
		one = judge(socket, address);
		if (one < best) {
			best = one;
			*where = socket->address;
		}
	}
	return best;
}
