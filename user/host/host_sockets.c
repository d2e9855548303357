/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_sockets.c - the host's own processes and mapped ports: "localhost" and "reserveHostPorts".
 */
#include "host/host_sockets.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/error.h"
#include "conf/addresses.h"
#include "datapath/attach/socket_hooks.h"
#include "net/netlink.h"
#include "net/processes.h"
#include "net/sockets.h"

/* Engines' IDs are 64 hexadecimal digits; a shorter one may be any word. */
#define MIN_UNIQUE_ID 32

/* How many warnings one ADD prints of sockets. */
#define MAX_WARNINGS 16

static void warn_of_slow_localhost(const struct cni_error *why)
{
	warning("processes on this host reach mapped ports on a slower way, by lo: %s. Everything"
		" works",
		cni_error_message(why));
}

static int explain_reservation(struct cni_error *err)
{
	return cni_error_wrap(err, "\"reserveHostPorts\"");
}

static bool reserves(const struct conf *conf)
{
	return conf->reserve_host_ports && conf->port_count;
}

static bool connects(const struct conf *conf)
{
	return conf->localhost && conf->port_count;
}

/* What the programs at sockets leave as it is comes to lo. The program stays there, as they do. */
static int attach_loopback(const struct host *host, struct cni_error *err)
{
	const struct link_name lo = {LOOPBACK_IFINDEX, "lo"};
	struct interface entry;

	/* It may be known for its addresses, which may be excluded. What it lacks of a program that
	 * it has had is part of every plan. */
	if (!interface_read(&host->datapath.objects, lo.ifindex, &entry))
		memset(&entry, 0, sizeof(entry));
	if (entry.role == ROLE_LOOPBACK)
		return 0;
	entry.role = ROLE_LOOPBACK;
	return hooks_settle(&host->datapath, &lo, &entry, err) ||
	       interface_write(&host->datapath.objects, lo.ifindex, &entry, err);
}

int host_sockets_attach(struct host *host, const struct conf *conf, struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};

	if (connects(conf) && socket_hooks_attach(&host->datapath, SOCKETS_REACH_PORTS, &why))
		warn_of_slow_localhost(&why);
	if (connects(conf) && attach_loopback(host, err))
		return -1;
	if (reserves(conf) && socket_hooks_attach(&host->datapath, SOCKETS_LEAVE_PORTS, err))
		return explain_reservation(err);
	return 0;
}

static int verify_localhost(const struct datapath *datapath, struct cni_error *err)
{
	cleanup_error struct cni_error why = {0}, obstacle = {0};

	if (!socket_hooks_verify(datapath, SOCKETS_REACH_PORTS, &why))
		return 0;
	if (socket_hooks_are_used(datapath, SOCKETS_REACH_PORTS) ||
	    !socket_hooks_probe(datapath, SOCKETS_REACH_PORTS, &obstacle))
		return cni_error_move(err, &why);
	/* ADD could not attach them either, and warned. */
	warn_of_slow_localhost(&why);
	return 0;
}

int host_sockets_verify(const struct host *host, const struct conf *conf, struct cni_error *err)
{
	if (connects(conf) && verify_localhost(&host->datapath, err))
		return -1;
	if (reserves(conf) && socket_hooks_verify(&host->datapath, SOCKETS_LEAVE_PORTS, err))
		return explain_reservation(err);
	return 0;
}

int host_sockets_probe(const struct host *host, const struct conf *conf, struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};
	const struct datapath *datapath = &host->datapath;
	struct cgroup_root root;

	/* STATUS loads nothing, so it cannot try. */
	if (conf->localhost && (socket_hooks_probe(datapath, SOCKETS_REACH_PORTS, &why) ||
				(datapath_is_usable(datapath) &&
				 socket_hooks_are_used(datapath, SOCKETS_REACH_PORTS) &&
				 socket_hooks_verify(datapath, SOCKETS_REACH_PORTS, &why))))
		warn_of_slow_localhost(&why);
	if (!conf->reserve_host_ports)
		return 0;
	if (cgroup_root_open(&root, err))
		return explain_reservation(err);
	close(root.fd);
	return 0;
}

/* Whether the socket gets packets that the claim is about. */
static bool meets(const struct port_claim *claim, const struct host_socket *socket)
{
	const uint8_t *wanted = claim->key.host_address, *bound = socket->address;

	if (claim->key.host_port != socket->port || claim->key.protocol != socket->protocol)
		return false;
	if (cni_address_is_ipv4(wanted) != cni_address_is_ipv4(bound))
		return socket->both_families;
	/* No packet from outside has a loopback destination. */
	if (cni_address_is_any(wanted) && cni_address_is_loopback(bound))
		return claim->portmap.localhost;
	return cni_address_is_any(wanted) || cni_address_is_any(bound) ||
	       !memcmp(wanted, bound, CNI_ADDRESS_SIZE);
}

/* An address of the host at which nothing is mapped, unless it is named. */
static bool is_left_out(const struct host *host, const struct policy *policy,
			const struct port_claim *claim, const uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct address_list *list = &host->addresses;

	if (conf_ranges_hold(policy->excluded, policy->excluded_count, address))
		return true;
	for (size_t i = 0; i < list->address_count && !claim->portmap.names_address; i++)
		if (!memcmp(list->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return !host_maps_ports_at(host, &list->addresses[i]);
	return conf_is_never_mapped(address);
}

#define cleanup_sockets __attribute__((cleanup(sockets_release)))

static bool is_claimed(const struct host *host, const struct container *container,
		       const struct host_socket *socket)
{
	for_each (claim, container->claims.ports, container->claims.port_count)
		if (meets(claim, socket) &&
		    !is_left_out(host, &container->conf.policy, claim, socket->address))
			return true;
	return false;
}

#define MAX_LOOKUPS 16

/* Asks for the receivers of what comes to a port at each of the host's addresses. */
static bool find_receivers(const struct host *host, const struct container *container,
			   struct netlink *socket, struct socket_list *found)
{
	const struct attachment_claims *claims = &container->claims;
	const struct address_list *list = &host->addresses;

	if (claims->port_count * (list->address_count + 1) > MAX_LOOKUPS)
		return false;
	for (size_t i = 0; i < claims->port_count; i++) {
		const struct portmap_key *key = &claims->ports[i].key;
		bool ipv4 = cni_address_is_ipv4(key->host_address);

		sockets_find_at(found, socket, key->protocol, key->host_address, key->host_port);
		for (size_t j = 0; cni_address_is_any(key->host_address) && j < list->address_count;
		     j++)
			if (cni_address_is_ipv4(list->addresses[j].address) == ipv4)
				sockets_find_at(found, socket, key->protocol,
						list->addresses[j].address, key->host_port);
	}
	return true;
}

/* Those that listen, of the protocols that are claimed. */
static int find_listeners(const struct container *container, struct netlink *socket,
			  struct socket_list *found, struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;
	uint8_t seen[UINT8_MAX + 1] = {0};

	for (size_t i = 0; i < claims->port_count; i++) {
		enum protocol protocol = claims->ports[i].key.protocol;

		if (!seen[protocol]++ && sockets_find_listening(found, socket, protocol, err))
			return -1;
	}
	return 0;
}

/* All of them, where a reservation depends on it; else those that get what comes, quickly: an ADD
 * takes a millisecond, and to list all takes five. */
static int find_sockets(const struct host *host, const struct container *container,
			struct socket_list *found, struct cni_error *err)
{
	struct netlink *socket;

	if (reserves(&container->conf))
		return sockets_find_bound(found, err);
	socket = netlink_own(NETLINK_SOCK_DIAG, err);
	if (!socket)
		return -1;
	return find_receivers(host, container, socket, found)
		       ? 0
		       : find_listeners(container, socket, found, err);
}

/* The host's sockets that have one of the ports, of whatever process.
 *
 * A process that was started for this container is its engine's, and does not count. Podman's
 * conmon binds the ports after ADD, and still has them at the next ADD (podman network reload).
 * Engines give such a process the container's ID as an argument. */
static int find_rivals(const struct host *host, const struct container *container,
		       struct socket_list *found, struct cni_error *err)
{
	const char *id = container->environment->container_id;
	size_t claimed = 0, kept = 0;

	if (find_sockets(host, container, found, err))
		return -1;
	for_each (socket, found->sockets, found->count)
		if (is_claimed(host, container, socket))
			found->sockets[claimed++] = *socket;
	found->count = claimed;
	if (claimed)
		processes_find_holders(found, strlen(id) >= MIN_UNIQUE_ID ? id : NULL);
	for_each (socket, found->sockets, claimed)
		if (!socket->holder.has_argument)
			found->sockets[kept++] = *socket;
	found->count = kept;
	return 0;
}

static const char *describe_holder(const struct socket_holder *holder, char text[HOLDER_TEXT_SIZE])
{
	if (!holder->pid)
		return "an unknown process";
	snprintf(text, HOLDER_TEXT_SIZE, "%s (pid %d)", holder->name, (int)holder->pid);
	return text;
}

int host_sockets_refuse(const struct host *host, const struct container *container,
			struct cni_error *err)
{
	char address[CNI_ADDRESS_TEXT_SIZE], process[HOLDER_TEXT_SIZE];
	cleanup_sockets struct socket_list rivals = {0};
	const struct host_socket *rival;

	if (!reserves(&container->conf))
		return 0;
	if (find_rivals(host, container, &rivals, err))
		return explain_reservation(err);
	if (!rivals.count)
		return 0;
	rival = &rivals.sockets[0];
	return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
			     "%s already holds host port %u/%s at %s, and \"reserveHostPorts\" is"
			     " true: stop that process, or map another hostPort or hostIP",
			     describe_holder(&rival->holder, process), rival->port,
			     protocol_word(rival->protocol),
			     cni_address_format(rival->address, address));
}

void host_sockets_warn(const struct host *host, const struct container *container)
{
	char address[CNI_ADDRESS_TEXT_SIZE], process[HOLDER_TEXT_SIZE];
	cleanup_error struct cni_error ignored = {0};
	cleanup_sockets struct socket_list rivals = {0};
	size_t count = 0;

	if (!container->claims.port_count || reserves(&container->conf) ||
	    container->environment->engine_holds_ports ||
	    find_rivals(host, container, &rivals, &ignored))
		return;
	for_each (rival, rivals.sockets, rivals.count) {
		if (count++ == MAX_WARNINGS) {
			warning("processes of the host hold more of the ports that are mapped now");
			return;
		}
		warning("%s holds host port %u/%s at %s, and gets nothing any more that comes to"
			" this container's port: stop that process, or map another hostPort or"
			" hostIP; \"reserveHostPorts\" refuses such ports",
			describe_holder(&rival->holder, process), rival->port,
			protocol_word(rival->protocol),
			cni_address_format(rival->address, address));
	}
}
