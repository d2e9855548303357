/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prerequisites.c - what a host must have for mapped ports and masquerade to work: forwarding and
 * addresses.
 */
#include "host/prerequisites.h"

#include <string.h>

#include "lib/error.h"
#include "datapath/attach/roles.h"
#include "datapath/load/maps.h"
#include "net/host_settings.h"
#include "net/link.h"
#include "net/address_list.h"

/* Enough for a reader; a request may name thousands. */
#define MAX_WARNINGS 16

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

/* Where forwarding is off everywhere the sysctl of the host is named, else that of the interface.
 */
static int refuse_forwarding(bool ipv4, const char *interface, struct cni_error *err)
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

/* Whether the host forwards IPv4 that comes in by the container's gateway (NULL: that of any
 * container), and by at least one uplink: at another one it may be off on purpose. */
static int verify_ipv4(const struct host *host, const struct link *gateway, struct cni_error *err)
{
	char name[IF_NAMESIZE], off[IF_NAMESIZE] = "";

	if (gateway && !forwarding_is_on(true, gateway->name))
		return refuse_forwarding(true, gateway->name, err);
	for (size_t i = 0; i < host->addresses.count; i++) {
		uint32_t ifindex = host->addresses.interfaces[i].ifindex;

		if ((gateway && ifindex == gateway->ifindex) || !host_serves(host, i, name))
			continue;
		if (forwarding_is_on(true, name))
			return 0;
		if (!*off)
			memcpy(off, name, sizeof(off));
	}
	return *off ? refuse_forwarding(true, off, err) : 0;
}

static int verify_forwarding(const struct host *host, struct families families,
			     const struct link *gateway, struct cni_error *err)
{
	if (families.ipv4 && verify_ipv4(host, gateway, err))
		return -1;
	/* IPv6 has one switch for the host. That of an interface says whether the host is a router
	 * there: off, it takes router advertisements. */
	if (families.ipv6 && !forwarding_is_on(false, "all"))
		return refuse_forwarding(false, "all", err);
	return 0;
}

static int verify_forwarding_for(const struct host *host, const struct container *container,
				 struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;
	const struct host_veth *veth = &container->veth;
	struct families families = {false, false};

	/* A port at a loopback address is reached by sockets of the host, without forwarding. */
	for (size_t i = 0; i < claims->port_count; i++)
		if (!cni_address_is_loopback(claims->ports[i].key.host_address))
			add_family(&families, claims->ports[i].portmap.container_address);
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (claims->endpoints[i].endpoint.masquerade)
			add_family(&families, claims->endpoints[i].key.address);
	return verify_forwarding(host, families, veth->bridge.ifindex ? &veth->bridge : &veth->link,
				 err);
}

int prerequisites_verify_host(const struct host *host, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_walk struct map_walk ports = {.objects = objects, .map = MAP_PORTMAPS};
	cleanup_walk struct map_walk endpoints = {.objects = objects, .map = MAP_ENDPOINTS};
	struct families families = {false, false};

	while (!(families.ipv4 && families.ipv6) && map_next(&ports, err)) {
		const struct portmap_key *port = ports.key;

		if (!cni_address_is_loopback(port->host_address))
			add_family(&families,
				   ((const struct portmap *)ports.value)->container_address);
	}
	while (!(families.ipv4 && families.ipv6) && !ports.failed && map_next(&endpoints, err)) {
		const struct endpoint_key *key = endpoints.key;

		if (((const struct endpoint *)endpoints.value)->masquerade)
			add_family(&families, key->address);
	}
	return ports.failed || endpoints.failed ? -1 : verify_forwarding(host, families, NULL, err);
}

static void warn_of_sources(const struct host *host, const __u8 (*addresses)[CNI_ADDRESS_SIZE],
			    __u8 count)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count; i++)
		if (!local_address_exists(host->socket, addresses[i]))
			warning("\"snatAddresses\": the host does not have %s now; until it has,"
				" or routes to it lead here, flows that leave with it get no"
				" replies",
				cni_address_format(addresses[i], text));
}

/* An address may come later, so its absence is no error. */
static void warn_of_absent_addresses(const struct host *host, const struct container *container)
{
	const struct attachment_claims *claims = &container->claims;
	const struct policy *policy = &container->conf.policy;
	uint8_t seen[MAX_WARNINGS][CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];
	size_t seen_count = 0;

	warn_of_sources(host, policy->sources4, policy->source4_count);
	warn_of_sources(host, policy->sources6, policy->source6_count);
	for (size_t i = 0; i < claims->port_count && seen_count < MAX_WARNINGS; i++) {
		const uint8_t *address = claims->ports[i].key.host_address;
		size_t j = 0;

		while (j < seen_count && memcmp(seen[j], address, CNI_ADDRESS_SIZE))
			j++;
		if (cni_address_is_any(address) || j < seen_count)
			continue;
		memcpy(seen[seen_count++], address, CNI_ADDRESS_SIZE);
		if (!local_address_exists(host->socket, address))
			warning("\"hostIP\": the host does not have %s now; ports mapped there are"
				" reached once it has",
				cni_address_format(address, text));
	}
}

void prerequisites_warn(const struct host *host, const struct container *container)
{
	cleanup_error struct cni_error forwarding = {0};

	warn_of_absent_addresses(host, container);
	if (verify_forwarding_for(host, container, &forwarding))
		warning("%s", cni_error_message(&forwarding));
}

int prerequisites_verify(const struct host *host, const struct container *container,
			 struct cni_error *err)
{
	warn_of_absent_addresses(host, container);
	return verify_forwarding_for(host, container, err);
}
