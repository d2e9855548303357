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
#include "lib/warning.h"
#include "conf/addresses.h"
#include "conf/request.h"
#include "datapath/attach/cgroup_root.h"
#include "datapath/attach/socket_hooks.h"
#include "datapath/load/maps.h"
#include "net/processes.h"
#include "net/sockets.h"
#include "host/own_hooks.h"

/* Engines' IDs are 64 hexadecimal digits; a shorter one may be any word. */
#define MIN_UNIQUE_ID 32

static void warn_without_localhost(const struct cni_error *why)
{
	warning("processes on this host cannot reach mapped ports, neither at 127.0.0.1 nor at"
		" another of its addresses: %s. Everything else works; \"localhost\": false"
		" silences this",
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

	/* It may be known for its addresses, which may be excluded. */
	if (!interface_read(&host->datapath.objects, lo.ifindex, &entry))
		memset(&entry, 0, sizeof(entry));
	entry.role = ROLE_LOOPBACK;
	return hooks_settle(&host->datapath, &lo, &entry, err) ||
	       interface_write(&host->datapath.objects, lo.ifindex, &entry, err);
}

int host_sockets_attach(struct host *host, const struct conf *conf, struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};

	if (connects(conf) && socket_hooks_attach(&host->datapath, SOCKETS_REACH_PORTS, &why))
		warn_without_localhost(&why);
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
	    !socket_hooks_probe(datapath, SOCKETS_REACH_PORTS, &obstacle)) {
		*err = why;
		why = (struct cni_error){0};
		return -1;
	}
	/* ADD could not attach them either, and warned. */
	warn_without_localhost(&why);
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
		warn_without_localhost(&why);
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

/* An address of the host at which nothing is mapped. */
static bool is_left_out(const struct host *host, const struct policy *policy,
			const uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct address_list *list = &host->addresses;

	if (conf_ranges_hold(policy->excluded, policy->excluded_count, address))
		return true;
	for (size_t i = 0; i < list->address_count; i++)
		if (!memcmp(list->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return !host_maps_ports_at(host, &list->addresses[i]);
	return conf_is_never_mapped(address);
}

/* The host's sockets that have one of the ports, of whatever process. */
static int find_sockets(const struct host *host, const struct container *container,
			struct socket_list *found, struct cni_error *err)
{
	size_t kept = 0;

	if (sockets_find_bound(found, err))
		return -1;
	for (size_t i = 0; i < found->count; i++) {
		bool claimed = false;

		for (size_t j = 0; j < container->claims.port_count && !claimed; j++)
			claimed = meets(&container->claims.ports[j], &found->sockets[i]);
		if (claimed &&
		    !is_left_out(host, &container->conf.policy, found->sockets[i].address))
			found->sockets[kept++] = found->sockets[i];
	}
	found->count = kept;
	return 0;
}

/* A process that was started for this container is its engine's, and does not count. Podman's
 * conmon binds the ports after ADD, and still has them at the next ADD (podman network reload).
 * Engines give such a process the container's ID as an argument. */
int host_sockets_refuse(const struct host *host, const struct container *container,
			struct cni_error *err)
{
	const char *id = container->environment->container_id;
	cleanup_free struct socket_process *holders = NULL;
	cleanup_sockets struct socket_list found = {0};
	char address[CNI_ADDRESS_TEXT_SIZE], process[PROCESS_NAME_SIZE + 32];

	if (!reserves(&container->conf))
		return 0;
	if (find_sockets(host, container, &found, err))
		return explain_reservation(err);
	if (!found.count)
		return 0;
	holders = or_exit(calloc(found.count, sizeof(*holders)));
	for (size_t i = 0; i < found.count; i++)
		holders[i] = (struct socket_process){.inode = found.sockets[i].inode, .socket = i};
	processes_find(holders, found.count, strlen(id) >= MIN_UNIQUE_ID ? id : NULL);
	for (size_t i = 0; i < found.count; i++) {
		const struct host_socket *socket = &found.sockets[holders[i].socket];

		if (holders[i].has_argument)
			continue;
		snprintf(process, sizeof(process), "%s (pid %d)", holders[i].name,
			 (int)holders[i].pid);
		return cni_error_set(
			err, CNI_ERROR_PORT_TAKEN,
			"%s already holds host port %u/%s at %s, and \"reserveHostPorts\" is"
			" true: stop that process, or map another hostPort or hostIP",
			holders[i].pid ? process : "an unknown process", socket->port,
			conf_protocol_name(socket->protocol),
			cni_address_format(socket->address, address));
	}
	return 0;
}
