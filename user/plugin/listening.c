/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* listening.c - processes of the host that have a port which is to be mapped. */
#include "plugin/listening.h"

#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "cni/cleanup.h"
#include "datapath/warning.h"
#include "net/bindable.h"
#include "net/sockets.h"
#include "net/netlink.h"
#include "net/port_cover.h"
#include "net/processes.h"
#include "conf/addresses.h"
#include "plugin/taken_ports.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Enough for a reader: a line each. */
#define MAX_PROCESSES 16

/* Trying whether a port is free takes some microseconds, having all that listen told some
 * hundreds. */
#define MAX_TRIED 32

/* Engines' IDs are 64 hexadecimal digits. */
#define MIN_UNIQUE_ID 32

/* Begins as {0}. */
struct taken_list {
	struct taken_port *ports;
	size_t count;
};

static void taken_list_release(struct taken_list *list)
{
	free(list->ports);
}

#define cleanup_sockets __attribute__((cleanup(sockets_release)))
#define cleanup_taken __attribute__((cleanup(taken_list_release)))

/* Ports of one protocol. */
struct wanted_ports {
	enum protocol protocol;
	uint16_t *ports;
	size_t count;
	bool ipv4; /* one of them is mapped there */
};

static void collect_ports(const struct attachment_claims *claims, struct wanted_ports *wanted)
{
	for (size_t i = 0; i < claims->port_count; i++) {
		const struct portmap_key *key = &claims->ports[i].key;

		if (key->protocol != wanted->protocol)
			continue;
		wanted->ports[wanted->count++] = key->host_port;
		wanted->ipv4 = wanted->ipv4 || cni_address_is_ipv4(key->host_address);
	}
}

static bool is_among(const uint16_t *ports, size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* The same port may be wanted at several addresses. */
static void leave_out_free_ports(struct wanted_ports *wanted)
{
	uint16_t free_ports[MAX_TRIED];
	size_t free_count = 0, kept = 0;

	for (size_t i = 0; i < wanted->count; i++) {
		uint16_t port = wanted->ports[i];

		if (is_among(free_ports, free_count, port))
			continue;
		if (port_is_bindable(wanted->protocol, port))
			free_ports[free_count++] = port;
		else
			wanted->ports[kept++] = port;
	}
	wanted->count = kept;
}

static int find_in_kernel(struct socket_list *found, const struct wanted_ports *wanted,
			  bool bound_too, struct cni_error *err)
{
	cleanup_netlink struct nl_sock *socket = netlink_open_protocol(NETLINK_SOCK_DIAG, err);
	struct port_range ranges[PORT_COVER_RANGES];
	struct socket_query query = {
		.protocol = wanted->protocol,
		.ipv4 = wanted->ipv4,
		.state = bound_too ? SOCKET_BOUND : SOCKET_LISTENING,
		.ranges = ranges,
		.range_count = port_cover(wanted->ports, wanted->count, ranges),
	};

	return socket ? sockets_find(found, socket, &query, err) : -1;
}

/* reserved: the ports are, so that trying them would find that alone; and who is bound and
 * about to listen will never be asked again. */
static int find_listeners(struct socket_list *found, const struct attachment_claims *claims,
			  bool reserved, struct cni_error *err)
{
	static const enum protocol protocols[] = {PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_SCTP};
	cleanup_free uint16_t *ports = calloc(claims->port_count, sizeof(*ports));

	if (!ports)
		return cni_error_no_memory(err);
	for (size_t i = 0; i < COUNT(protocols); i++) {
		struct wanted_ports wanted = {.protocol = protocols[i], .ports = ports};

		collect_ports(claims, &wanted);
		if (wanted.count <= MAX_TRIED && !reserved)
			leave_out_free_ports(&wanted);
		if (wanted.count && find_in_kernel(found, &wanted, reserved, err))
			return -1;
	}
	return 0;
}

/* An address of the host where nothing is mapped. */
static bool is_left_out(const struct host *host, const struct conf *conf,
			const uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct address_list *list = &host->addresses;

	if (conf_ranges_hold(conf->policy.excluded, conf->policy.excluded_count, address))
		return true;
	for (size_t i = 0; i < list->address_count; i++)
		if (!memcmp(list->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return list->addresses[i].is_broadcast ||
			       list->interfaces[list->addresses[i].interface].is_excluded;
	return conf_is_never_mapped(address);
}

static int keep_taken(struct taken_list *taken, const struct socket_list *found,
		      const struct host *host, const struct container *container,
		      struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;

	taken->ports = calloc(found->count, sizeof(*taken->ports));
	if (!taken->ports)
		return cni_error_no_memory(err);
	for (size_t i = 0; i < found->count; i++) {
		const struct host_socket *listener = &found->sockets[i];

		if (claims_take_from(claims->ports, claims->port_count, listener) &&
		    !is_left_out(host, &container->conf, listener->address))
			taken->ports[taken->count++].socket = *listener;
	}
	return 0;
}

/* What was started for this very container is its engine's: Podman's conmon holds the ports
 * open from after ADD on, and still does at the next one (podman network reload). Engines give
 * it the ID as an argument of its own; a short one may be any word. */
static const char *engine_argument(const char *container_id)
{
	return strlen(container_id) >= MIN_UNIQUE_ID ? container_id : NULL;
}

static int name_holders(struct taken_list *taken, const char *container_id, struct cni_error *err)
{
	cleanup_free struct socket_process *holders = calloc(taken->count, sizeof(*holders));
	size_t kept = 0;

	if (!holders)
		return cni_error_no_memory(err);
	for (size_t i = 0; i < taken->count; i++)
		holders[i].inode = taken->ports[i].socket.inode;
	processes_find(holders, taken->count, engine_argument(container_id));
	for (size_t i = 0; i < taken->count; i++) {
		struct taken_port *port = &taken->ports[i];

		port->holder = *processes_of_socket(holders, taken->count, port->socket.inode);
		if (!port->holder.has_argument)
			taken->ports[kept++] = *port;
	}
	taken->count = kept;
	return 0;
}

static int find_taken(const struct host *host, const struct container *container,
		      const char *container_id, bool reserved, struct taken_list *taken,
		      struct cni_error *err)
{
	cleanup_sockets struct socket_list found = {0};

	if (!container->claims.port_count)
		return 0;
	if (find_listeners(&found, &container->claims, reserved, err))
		return -1;
	if (!found.count)
		return 0;
	if (keep_taken(taken, &found, host, container, err) ||
	    (taken->count && name_holders(taken, container_id, err)))
		return -1;
	taken->count = taken_ports_sort(taken->ports, taken->count);
	return 0;
}

static void warn_of_process(const struct taken_port *ports, size_t count)
{
	char text[TAKEN_PORTS_TEXT_SIZE];

	taken_ports_describe(ports, count, text);
	warning("%s: what comes %s reaches the container from now on, not that process; stop it, or"
		" map another hostPort or hostIP",
		text, taken_ports_are_loopback(ports, count) ? "from the host" : "from outside");
}

static void warn_of_taken(const struct taken_list *taken)
{
	size_t processes = 0, length;

	for (size_t i = 0; i < taken->count; i += length) {
		length = taken_ports_of_first(&taken->ports[i], taken->count - i);
		if (processes++ == MAX_PROCESSES) {
			warning("more processes of the host hold ports that are mapped now");
			break;
		}
		warn_of_process(&taken->ports[i], length);
	}
}

static int refuse_taken(const struct taken_list *taken, struct cni_error *err)
{
	char text[TAKEN_PORTS_TEXT_SIZE];

	taken_ports_describe(taken->ports, taken_ports_of_first(taken->ports, taken->count), text);
	return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
			     "%s, and \"reserveHostPorts\" is true: stop that process, or map"
			     " another hostPort or hostIP",
			     text);
}

static int check_reserved(const struct host *host, const struct container *container,
			  const char *container_id, bool claimed, struct cni_error *err)
{
	cleanup_taken struct taken_list taken = {0};

	if (find_taken(host, container, container_id, claimed, &taken, err))
		return cni_error_wrap(err, "\"reserveHostPorts\"");
	return taken.count ? refuse_taken(&taken, err) : 0;
}

int listening_check(const struct host *host, const struct container *container,
		    const char *container_id, enum listening_stage stage, struct cni_error *err)
{
	cleanup_taken struct taken_list taken = {0};
	bool claimed = stage == LISTENING_CLAIMED;
	struct cni_error ignored = {0};

	if (container->conf.reserve_host_ports)
		return check_reserved(host, container, container_id, claimed, err);
	if (!claimed)
		return 0;
	if (find_taken(host, container, container_id, false, &taken, &ignored))
		cni_error_release(&ignored);
	else
		warn_of_taken(&taken);
	return 0;
}
