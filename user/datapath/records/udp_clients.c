/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* udp_clients.c - UDP sockets of the host's processes that are connected to a mapped port. */
#include "datapath/records/udp_clients.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/netlink.h"
#include "net/sockets.h"

struct peer {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint16_t port;
};

void udp_ports_add(struct udp_ports *ports, const struct portmap_key *key)
{
	if (key->protocol != PROTOCOL_UDP)
		return;
	ports->any = true;
	ports->bits[key->host_port / 64] |= 1ULL << (key->host_port % 64);
}

static bool peer_equal(const struct peer *a, const struct peer *b)
{
	return a->port == b->port && !memcmp(a->address, b->address, CNI_ADDRESS_SIZE);
}

/* The peer that the process asked for. False: our programs have not changed it. */
static bool read_asked(const struct objects *objects, const struct host_socket *socket,
		       struct peer *asked)
{
	struct socket_flow_key key = {
		.cookie = socket->cookie,
		.container_port = socket->peer_port,
		.protocol = PROTOCOL_UDP,
	};
	struct socket_flow flow;

	memcpy(key.container_address, socket->peer, CNI_ADDRESS_SIZE);
	if (bpf_map_lookup_elem(objects->maps[MAP_SOCKET_FLOWS], &key, &flow))
		return false;
	memcpy(asked->address, flow.address, CNI_ADDRESS_SIZE);
	asked->port = flow.port;
	return true;
}

static bool is_of_host(const struct objects *objects, const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct host_address_key key;
	struct host_address known;

	memcpy(key.address, address, CNI_ADDRESS_SIZE);
	return cni_address_is_loopback(address) ||
	       !bpf_map_lookup_elem(objects->maps[MAP_HOST_ADDRESSES], &key, &known);
}

static bool find_portmap(const struct objects *objects, const struct peer *asked,
			 struct portmap *portmap)
{
	struct portmap_key key = {.protocol = PROTOCOL_UDP, .host_port = asked->port};

	memcpy(key.host_address, asked->address, CNI_ADDRESS_SIZE);
	if (portmap_read(objects, &key, portmap))
		return true;
	memcpy(key.host_address,
	       cni_address_is_ipv4(asked->address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	return portmap_read(objects, &key, portmap);
}

/* The peer that connect(2) would probably give it now. The program at connect(2) decides: where the
 * two differ, a socket is ended without need, or is kept. */
static void expect_peer(const struct objects *objects, const struct peer *asked, struct peer *peer)
{
	struct portmap portmap;

	*peer = *asked;
	if (!is_of_host(objects, asked->address) || !find_portmap(objects, asked, &portmap) ||
	    !portmap.localhost)
		return;
	memcpy(peer->address, portmap.container_address, CNI_ADDRESS_SIZE);
	peer->port = portmap.container_port;
}

static bool is_astray(const struct objects *objects, const struct host_socket *socket,
		      struct peer *asked)
{
	struct peer now = {.port = socket->peer_port}, wanted;

	memcpy(now.address, socket->peer, CNI_ADDRESS_SIZE);
	if (!read_asked(objects, socket, asked))
		return false;
	expect_peer(objects, asked, &wanted);
	return !peer_equal(&now, &wanted);
}

/* Once for each port. */
static void complain(const struct peer *asked, struct udp_ports *told, const char *why)
{
	const struct portmap_key key = {.protocol = PROTOCOL_UDP, .host_port = asked->port};
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (told->bits[asked->port / 64] >> (asked->port % 64) & 1)
		return;
	udp_ports_add(told, &key);
	warning("processes go on sending UDP to the container that had host port %u at %s, until"
		" they connect again: %s",
		asked->port, cni_address_format(asked->address, address), why);
}

static void end_astray(const struct objects *objects, const struct socket_list *found,
		       struct nl_sock *socket)
{
	struct udp_ports told = {0};
	struct peer asked;

	for (size_t i = 0; i < found->count; i++)
		if (is_astray(objects, &found->sockets[i], &asked) &&
		    sockets_end(socket, &found->sockets[i]))
			complain(
				&asked, &told,
				errno == EOPNOTSUPP || errno == EINVAL
					? "the kernel cannot end sockets (CONFIG_INET_DIAG_DESTROY)"
					: strerror(errno));
}

static int find_and_end(const struct objects *objects, struct cni_error *err)
{
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_SOCK_DIAG, err);
	cleanup_sockets struct socket_list found = {0};

	if (!socket || sockets_find(&found, socket, PROTOCOL_UDP, SOCKET_CONNECTED, err))
		return -1;
	end_astray(objects, &found, socket);
	return 0;
}

static bool are_noticed(const struct objects *objects, const struct udp_ports *ports)
{
	struct noticed noticed;

	noticed_read(objects, &noticed);
	for (size_t word = 0; word < PORT_WORDS; word++)
		if (ports->bits[word] & noticed.local_udp_ports[word])
			return true;
	return false;
}

void udp_clients_end(const struct objects *objects, const struct udp_ports *ports)
{
	struct cni_error why = {0};

	if (!ports->any || !are_noticed(objects, ports) || !find_and_end(objects, &why))
		return;
	warning("connected UDP sockets of processes of this host may go on sending to a container"
		" that is gone: %s",
		cni_error_message(&why));
	cni_error_release(&why);
}
