/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* forwarding.c - a host that does not forward: mapped ports and masquerade are dead. */
#include "host/forwarding.h"

#include <string.h>

#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/forwarding.h"
#include "net/link_names.h"
#include "datapath/records/claims.h"

struct families {
	bool ipv4, ipv6;
};

static void add_family(struct families *families, const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		families->ipv4 = true;
	else
		families->ipv6 = true;
}

/* A port at a loopback address is reached by sockets of the host, without forwarding. */
static struct families families_of(const struct container *container)
{
	const struct attachment_claims *claims = &container->claims;
	struct families families = {false, false};

	for (size_t i = 0; i < claims->port_count; i++)
		if (!cni_address_is_loopback(claims->ports[i].key.host_address))
			add_family(&families, claims->ports[i].container_address);
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (claims->endpoints[i].masquerade)
			add_family(&families, claims->endpoints[i].key.address);
	return families;
}

/* Where all interfaces are off it is the host's switch that was meant. */
static int refuse(bool ipv4, const char *interface, struct cni_error *err)
{
	if (forwarding_is_on(ipv4, "all"))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "this host does not forward IPv%c packets that come in by %s,"
				     " so mapped ports and masquerade do not work: `sysctl -w"
				     " net/ipv%c/conf/%s/forwarding=1` turns it on",
				     ipv4 ? '4' : '6', interface, ipv4 ? '4' : '6', interface);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "this host does not forward IPv%c packets, so mapped ports and"
			     " masquerade do not work: `sysctl -w %s=1` turns it on",
			     ipv4 ? '4' : '6',
			     ipv4 ? "net.ipv4.ip_forward" : "net.ipv6.conf.all.forwarding");
}

static bool uplink_name(const struct host *host, uint32_t ifindex, char name[IF_NAMESIZE])
{
	struct interface interface;

	return interface_read(&host->datapath.objects, ifindex, &interface) &&
	       (interface.role == ROLE_UPLINK || interface.role == ROLE_BRIDGE) &&
	       link_name(host->socket, ifindex, name);
}

/* One uplink that forwards is enough: at another one it may be off on purpose. */
static int verify_uplinks(const struct host *host, bool ipv4, uint32_t own_bridge,
			  struct cni_error *err)
{
	char name[IF_NAMESIZE], off[IF_NAMESIZE] = "";

	for (size_t i = 0; i < host->addresses.count; i++) {
		uint32_t ifindex = host->addresses.interfaces[i].ifindex;

		if (ifindex == own_bridge || !uplink_name(host, ifindex, name))
			continue;
		if (forwarding_is_on(ipv4, name))
			return 0;
		if (!*off)
			memcpy(off, name, sizeof(off));
	}
	return *off ? refuse(ipv4, off, err) : 0;
}

/* IPv6 asks the host's switch wherever a packet came in; IPv4 each interface its own. */
static int verify_family(const struct host *host, const struct host_veth *veth, bool ipv4,
			 struct cni_error *err)
{
	const struct link *gateway = veth->bridge.ifindex ? &veth->bridge : &veth->link;

	if (!forwarding_is_on(ipv4, ipv4 ? gateway->name : "all"))
		return refuse(ipv4, gateway->name, err);
	return verify_uplinks(host, ipv4, veth->bridge.ifindex, err);
}

int forwarding_verify(const struct host *host, const struct container *container,
		      struct cni_error *err)
{
	struct families families = families_of(container);

	if (families.ipv4 && verify_family(host, &container->veth, true, err))
		return -1;
	return families.ipv6 ? verify_family(host, &container->veth, false, err) : 0;
}

void forwarding_warn(const struct host *host, const struct container *container)
{
	struct cni_error why = {0};

	if (forwarding_verify(host, container, &why))
		warning("%s", cni_error_message(&why));
	cni_error_release(&why);
}

static bool add_port(const void *key, const void *value, void *context)
{
	const struct portmap_key *port = key;
	const struct portmap *portmap = value;
	struct families *families = context;

	if (!cni_address_is_loopback(port->host_address))
		add_family(families, portmap->container_address);
	return !families->ipv4 || !families->ipv6;
}

static bool add_endpoint(const void *key, const void *value, void *context)
{
	const struct endpoint_key *address = key;
	const struct endpoint *endpoint = value;
	struct families *families = context;

	if (endpoint->masquerade)
		add_family(families, address->address);
	return !families->ipv4 || !families->ipv6;
}

int forwarding_verify_host(const struct host *host, struct cni_error *err)
{
	const int *maps = host->datapath.objects.maps;
	struct families families = {false, false};

	/* Other checks report maps that cannot be read. */
	maps_walk(maps[MAP_PORTMAPS], sizeof(struct portmap_key), sizeof(struct portmap), add_port,
		  &families);
	maps_walk(maps[MAP_ENDPOINTS], sizeof(struct endpoint_key), sizeof(struct endpoint),
		  add_endpoint, &families);
	if (families.ipv4 && verify_uplinks(host, true, 0, err))
		return -1;
	if (families.ipv6 && !forwarding_is_on(false, "all"))
		return refuse(false, "all", err);
	return families.ipv6 ? verify_uplinks(host, false, 0, err) : 0;
}
