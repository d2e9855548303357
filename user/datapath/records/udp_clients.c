/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* udp_clients.c - UDP sockets of the host's processes that are connected to a mapped port. */
#include "datapath/records/udp_clients.h"

#include <errno.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/netlink.h"
#include "net/sockets.h"

struct peer {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint16_t port;
};

void udp_ports_add(struct port_set *ports, const struct portmap_key *key)
{
	if (key->protocol == PROTOCOL_UDP)
		port_set_add(ports, (struct port_range){key->host_port, key->host_port});
}

/* Whether the socket would be connected elsewhere now, if it asked again. The program at connect(2)
 * decides: where the two differ, a socket is ended without need, or is kept. *asked: the peer that
 * its process asked for. */
static bool is_astray(const struct objects *objects, const struct host_socket *socket,
		      struct peer *asked)
{
	struct socket_flow_key key = {
		.cookie = socket->cookie,
		.container_port = socket->peer_port,
		.protocol = PROTOCOL_UDP,
	};
	struct portmap_key port = {.protocol = PROTOCOL_UDP};
	struct host_address_key address;
	struct host_address known;
	struct socket_flow flow;
	struct portmap portmap;
	bool mapped = false;

	memcpy(key.container_address, socket->peer, CNI_ADDRESS_SIZE);
	/* Our programs have not changed its peer. */
	if (!map_read(objects, MAP_SOCKET_FLOWS, &key, &flow))
		return false;
	memcpy(asked->address, flow.address, CNI_ADDRESS_SIZE);
	asked->port = port.host_port = flow.port;
	memcpy(address.address, asked->address, CNI_ADDRESS_SIZE);
	memcpy(port.host_address, asked->address, CNI_ADDRESS_SIZE);
	if (cni_address_is_loopback(asked->address) ||
	    map_read(objects, MAP_HOST_ADDRESSES, &address, &known)) {
		mapped = portmap_read(objects, &port, &portmap);
		memcpy(port.host_address,
		       cni_address_is_ipv4(asked->address) ? cni_address_any_ipv4
							   : cni_address_any_ipv6,
		       CNI_ADDRESS_SIZE);
		mapped = (mapped || portmap_read(objects, &port, &portmap)) && portmap.localhost;
	}
	return socket->peer_port != (mapped ? portmap.container_port : asked->port) ||
	       memcmp(socket->peer, mapped ? portmap.container_address : asked->address,
		      CNI_ADDRESS_SIZE);
}

static void end_astray(const struct objects *objects, const struct socket_list *found,
		       struct netlink *socket)
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	struct port_set told = {0};
	struct peer asked;

	for (size_t i = 0; i < found->count; i++) {
		int failure;

		if (!is_astray(objects, &found->sockets[i], &asked) ||
		    !sockets_end(socket, &found->sockets[i]))
			continue;
		failure = errno;
		/* Once for each port. */
		if (port_set_next(&told, asked.port).first == asked.port)
			continue;
		port_set_add(&told, (struct port_range){asked.port, asked.port});
		warning("processes go on sending UDP to the container that had host port %u at %s,"
			" until they connect again: %s",
			asked.port, cni_address_format(asked.address, address),
			failure == EOPNOTSUPP || failure == EINVAL
				? "the kernel cannot end sockets (CONFIG_INET_DIAG_DESTROY)"
				: strerror(failure));
	}
}

void udp_clients_end(const struct objects *objects, const struct port_set *ports)
{
	cleanup_netlink struct netlink *socket = NULL;
	cleanup_sockets struct socket_list found = {0};
	cleanup_error struct cni_error why = {0};
	bool are_noticed = false;
	struct noticed noticed;

	if (!port_set_next(ports, 1).last || !noticed_read(objects, &noticed))
		return;
	for (size_t word = 0; word < PORT_WORDS; word++)
		are_noticed |= ports->words[word] & noticed.local_udp_ports[word];
	if (!are_noticed)
		return;
	socket = netlink_open(NETLINK_SOCK_DIAG, &why);
	if (socket && !sockets_find(&found, socket, PROTOCOL_UDP, SOCKET_CONNECTED, &why))
		end_astray(objects, &found, socket);
	else
		warning("connected UDP sockets of processes of this host may go on sending to a"
			" container that is gone: %s",
			cni_error_message(&why));
}
