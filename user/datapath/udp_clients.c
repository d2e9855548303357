/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* udp_clients.c - UDP sockets of the host's processes that are connected to a mapped port. */
#include "datapath/udp_clients.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cni/cleanup.h"
#include "datapath/maps.h"
#include "datapath/warning.h"
#include "net/apart.h"
#include "net/netlink.h"
#include "net/processes.h"
#include "net/sockets.h"

/* Connecting takes microseconds. But a process can put something in the place of a socket that
 * we borrow, and closing that again may wait for ever: FUSE asks its server first. */
#define PATIENCE 2000 /* milliseconds */

/* Enough for a reader: a line each. */
#define MAX_TOLD 16

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

/* What the program asked for. */
static void read_asked(const struct objects *objects, const struct host_socket *socket,
		       struct peer *asked)
{
	struct socket_flow_key key = {
		.cookie = socket->cookie,
		.container_port = socket->peer_port,
		.protocol = PROTOCOL_UDP,
	};
	struct socket_flow flow;

	memcpy(key.container_address, socket->peer, CNI_ADDRESS_SIZE);
	if (bpf_map_lookup_elem(objects->maps[MAP_SOCKET_FLOWS], &key, &flow)) {
		memcpy(flow.address, socket->peer, CNI_ADDRESS_SIZE);
		flow.port = socket->peer_port;
	}
	memcpy(asked->address, flow.address, CNI_ADDRESS_SIZE);
	asked->port = flow.port;
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

/* What connect(2) would probably make of it. It is the program at connect(2) that decides:
 * where the two differ, a socket is connected once more for nothing. */
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

static bool is_same_socket(int fd, uint64_t cookie)
{
	uint64_t found = 0;
	socklen_t size = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, SO_COOKIE, &found, &size) && found == cookie;
}

static socklen_t fill_name(int fd, const struct peer *peer, struct sockaddr_storage *name)
{
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)name;
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)name;
	int family = AF_INET6;
	socklen_t size = sizeof(family);

	memset(name, 0, sizeof(*name));
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
	name->ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		memcpy(&ipv4->sin_addr, peer->address + 12, sizeof(ipv4->sin_addr));
		ipv4->sin_port = htons(peer->port);
		return sizeof(*ipv4);
	}
	memcpy(&ipv6->sin6_addr, peer->address, sizeof(ipv6->sin6_addr));
	ipv6->sin6_port = htons(peer->port);
	return sizeof(*ipv6);
}

/* To an address; struct sockaddr_in has its port where this one has it. */
static bool is_bound(const struct sockaddr_in6 *name)
{
	static const struct in6_addr none;

	if (name->sin6_family == AF_INET)
		return ((const struct sockaddr_in *)name)->sin_addr.s_addr != 0;
	return memcmp(&name->sin6_addr, &none, sizeof(none)) != 0;
}

/* It got the loopback address together with its peer, and would keep it. One that was bound to
 * it does, and so cannot be helped: then it shall have its port again, too. */
static int disconnect(int fd)
{
	static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	struct sockaddr_in6 before = {0}, after = {0};
	socklen_t size = sizeof(before), after_size = sizeof(after);
	int device = 0;
	socklen_t device_size = sizeof(device);

	getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &device_size);
	if (getsockname(fd, (struct sockaddr *)&before, &size) ||
	    connect(fd, &nobody, sizeof(nobody)) ||
	    getsockname(fd, (struct sockaddr *)&after, &after_size))
		return -1;
	if (device)
		setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, sizeof(device));
	if (!after.sin6_port && is_bound(&after))
		bind(fd, (struct sockaddr *)&before, size);
	return 0;
}

static int connect_again(int fd, const struct host_socket *socket, const struct peer *asked)
{
	struct sockaddr_storage name;
	socklen_t size;

	if (!is_same_socket(fd, socket->cookie))
		return 0;
	if (cni_address_is_loopback(socket->address) && disconnect(fd))
		return -1;
	size = fill_name(fd, asked, &name);
	return connect(fd, (struct sockaddr *)&name, size);
}

static void warn_about_client(const struct peer *asked, const char *who, const char *why)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	warning("%s goes on sending UDP to the container that had host port %u at %s, until it"
		" connects again: %s",
		who, asked->port, cni_address_format(asked->address, address), why);
}

/* A socket that is not connected to what it should be. */
struct client {
	const struct host_socket *socket;
	struct peer asked;
};

/* -1 and errno. */
static int reconnect(const struct client *client, const struct socket_process *holder)
{
	cleanup_close int fd = -1;

	if (!holder->pid) {
		errno = ENOENT;
		return -1;
	}
	fd = processes_borrow_socket(holder);
	if (fd >= 0 && !connect_again(fd, client->socket, &client->asked))
		return 0;
	/* The process has gone, or has closed it. */
	return errno == ESRCH || errno == EBADF ? 0 : -1;
}

static void complain(const struct client *client, const struct socket_process *holder)
{
	char who[PROCESS_NAME_SIZE + 32];
	int why = errno;

	snprintf(who, sizeof(who), "process %d (%s)", (int)holder->pid, holder->name);
	if (holder->pid)
		warn_about_client(&client->asked, who, strerror(why));
	else
		warn_about_client(&client->asked, "a process", "/proc does not show which it is");
}

struct clients {
	struct client *all;
	struct socket_process *holders;
	size_t count;
};

static void reconnect_all(void *context)
{
	const struct clients *clients = context;
	size_t failed = 0;

	for (size_t i = 0; i < clients->count; i++)
		clients->holders[i].inode = clients->all[i].socket->inode;
	processes_find(clients->holders, clients->count, NULL);
	for (size_t i = 0; i < clients->count; i++) {
		const struct client *client = &clients->all[i];
		const struct socket_process *holder = processes_of_socket(
			clients->holders, clients->count, client->socket->inode);

		if (reconnect(client, holder) && failed++ < MAX_TOLD)
			complain(client, holder);
	}
	if (failed > MAX_TOLD)
		warning("and so do %zu more sockets", failed - MAX_TOLD);
}

static bool is_astray(const struct objects *objects, const struct host_socket *socket,
		      struct peer *asked)
{
	struct peer now = {.port = socket->peer_port}, wanted;

	memcpy(now.address, socket->peer, CNI_ADDRESS_SIZE);
	read_asked(objects, socket, asked);
	expect_peer(objects, asked, &wanted);
	return !peer_equal(&now, &wanted);
}

static int reconnect_apart(struct clients *clients, struct cni_error *err)
{
	cleanup_free struct socket_process *holders =
		calloc(clients->count, sizeof(*clients->holders));

	if (!holders)
		return cni_error_no_memory(err);
	clients->holders = holders;
	if (run_apart(reconnect_all, clients, PATIENCE))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "connecting %zu of them again takes longer than %d ms", clients->count,
			     PATIENCE);
}

static int reconnect_astray(const struct objects *objects, const struct socket_list *found,
			    struct cni_error *err)
{
	cleanup_free struct client *all = calloc(found->count + 1, sizeof(*all));
	struct clients clients = {.all = all};

	if (!all)
		return cni_error_no_memory(err);
	for (size_t i = 0; i < found->count; i++) {
		all[clients.count].socket = &found->sockets[i];
		if (is_astray(objects, &found->sockets[i], &all[clients.count].asked))
			clients.count++;
	}
	return clients.count ? reconnect_apart(&clients, err) : 0;
}

static int find_and_reconnect(const struct objects *objects, struct cni_error *err)
{
	cleanup_netlink struct nl_sock *socket = netlink_open_protocol(NETLINK_SOCK_DIAG, err);
	struct socket_query query = {
		.protocol = PROTOCOL_UDP, .ipv4 = true, .state = SOCKET_CONNECTED};
	struct socket_list found = {0};
	int result;

	if (!socket)
		return -1;
	result = sockets_find(&found, socket, &query, err);
	if (!result)
		result = reconnect_astray(objects, &found, err);
	sockets_release(&found);
	return result;
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

static int reconnect_if_noticed(const struct datapath *datapath, const struct udp_ports *ports,
				struct cni_error *err)
{
	struct objects objects;
	int result = 0;

	if (datapath_borrow_maps(datapath, &objects, err))
		return -1;
	if (are_noticed(&objects, ports))
		result = find_and_reconnect(&objects, err);
	datapath_return_maps(datapath, &objects);
	return result;
}

void udp_clients_reconnect(const struct datapath *datapath, const struct udp_ports *ports)
{
	struct cni_error why = {0};

	if (!ports->any || !reconnect_if_noticed(datapath, ports, &why))
		return;
	warning("connected UDP sockets of processes of this host may go on sending to a container"
		" that is gone: %s",
		cni_error_message(&why));
	cni_error_release(&why);
}
