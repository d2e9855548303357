/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_way.c - checks of a packet's way from an uplink into the container, and back. */
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/forwarding.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "net/text_file.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "operator/kernel/route.h"
#include "operator/doctor/listening.h"
#include "operator/print/format.h"

static bool is_uplink(const struct known_interface *known)
{
	return known->link.ifindex && known->entry.role == ROLE_UPLINK;
}

static void refuse_forwarding(struct doctor *doctor, bool ipv4, const char *interface)
{
	char key[64];

	if (!forwarding_is_on(ipv4, "all"))
		snprintf(key, sizeof(key), "%s",
			 ipv4 ? "net.ipv4.ip_forward" : "net.ipv6.conf.all.forwarding");
	else
		snprintf(key, sizeof(key), "net/ipv%c/conf/%s/forwarding", ipv4 ? '4' : '6',
			 interface);
	doctor_found(doctor, VERDICT_FAIL, cni_format("sysctl -w %s=1", remedy_word(key).text),
		     "the host does not forward IPv%c packets that come in by %s", ipv4 ? '4' : '6',
		     interface);
}

static void check_family(struct doctor *doctor, bool ipv4)
{
	const char *uplink = doctor->default_uplink[ipv4], *off = NULL;
	bool one_is_on = false;
	struct subject subject;

	/* IPv6 has one switch for the host. */
	if (!ipv4 && !forwarding_is_on(false, "all")) {
		refuse_forwarding(doctor, false, "all");
		return;
	}
	for (size_t i = 0; ipv4 && i < doctor->interface_count; i++) {
		const char *name = doctor->interfaces[i].link.name;

		if (!is_uplink(&doctor->interfaces[i]))
			continue;
		if (forwarding_is_on(true, name))
			one_is_on = true;
		else if (!off || !strcmp(name, uplink))
			off = name;
	}
	/* It may be off at a second one on purpose. */
	if (off && (!one_is_on || !strcmp(off, uplink))) {
		refuse_forwarding(doctor, true, off);
		return;
	}
	for (size_t i = 0; ipv4 && i < doctor->mappings.count; i++) {
		if (!doctor_subject(doctor, i, &subject) || !subject.ipv4 ||
		    forwarding_is_on(true, subject.gateway->link.name))
			continue;
		refuse_forwarding(doctor, true, subject.gateway->link.name);
		return;
	}
}

void check_forwarding(struct doctor *doctor)
{
	bool needed[2] = {false, false};

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct mapping *mapping = &doctor->mappings.list[i];

		if (!cni_address_is_loopback(mapping->key.host_address))
			needed[cni_address_is_ipv4(mapping->portmap.container_address)] = true;
	}
	for (int ipv4 = 1; ipv4 >= 0; ipv4--)
		if (needed[ipv4])
			check_family(doctor, ipv4);
}

static int reverse_path_of(const char *name)
{
	char path[64], value[8];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
	text_file_read(path, value, sizeof(value));
	return atoi(value);
}

/* With one default route the filter drops nothing that routing would not lose as well. */
void check_reverse_path(struct doctor *doctor)
{
	char text[16384], name[IF_NAMESIZE], destination[9], mask[9], *line = text;
	char first[IF_NAMESIZE] = "";

	text_file_read("/proc/net/route", text, sizeof(text));
	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, "%15s %8s %*s %*s %*s %*s %*s %8s", name, destination, mask) !=
			    3 ||
		    strcmp(destination, "00000000") != 0 || strcmp(mask, "00000000") != 0)
			continue;
		if (!*first) {
			memcpy(first, name, sizeof(first));
			continue;
		}
		/* The greater one of both settings is the one that counts. */
		if (!strcmp(name, first) || reverse_path_of("all") == 2 ||
		    reverse_path_of(name) == 2 ||
		    (reverse_path_of("all") == 0 && reverse_path_of(name) == 0))
			continue;
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("sysctl -w net/ipv4/conf/%s/rp_filter=2",
					remedy_word(name).text),
			     "%s has a second default route and a strict reverse path filter:"
			     " packets from clients that routing reaches by %s are dropped there",
			     name, first);
	}
}

void check_conntrack(struct doctor *doctor)
{
	char count[16], most[16];
	long used, limit;

	text_file_read("/proc/sys/net/netfilter/nf_conntrack_count", count, sizeof(count));
	text_file_read("/proc/sys/net/netfilter/nf_conntrack_max", most, sizeof(most));
	used = atol(count);
	limit = atol(most);
	if (limit > 0 && used * 10 >= limit * 9)
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("sysctl -w net.netfilter.nf_conntrack_max=%ld", limit * 2),
			     "nf_conntrack has %ld entries of %ld: new connections are dropped when"
			     " it is full",
			     used, limit);
}

void check_ipsec(struct doctor *doctor)
{
	if (forwarding_has_ipsec_policies())
		doctor_found(doctor, VERDICT_WARN, cni_format("ip xfrm policy"),
			     "the host has IPsec policies: what is masqueraded meets only those for"
			     " containers' own addresses");
}

/* An uplink may be down on purpose, unless the default route leads by it. */
void check_links(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->interface_count; i++) {
		const struct known_interface *known = &doctor->interfaces[i];
		const struct link *link = &known->link;

		if (!link->ifindex || link->flags & IFF_UP ||
		    known->entry.role == ROLE_LEFT_ALONE ||
		    (known->entry.role == ROLE_UPLINK &&
		     strcmp(link->name, doctor->default_uplink[0]) != 0 &&
		     strcmp(link->name, doctor->default_uplink[1]) != 0))
			continue;
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("ip link set dev %s up", remedy_word(link->name).text),
			     "%s is down", link->name);
	}
}

static void check_route_of(struct doctor *doctor, const struct subject *subject)
{
	char address[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE];
	struct route route =
		route_to(doctor->host.socket, subject->mapping->portmap.container_address);

	if (route.exists && !route.is_local && route.ifindex == subject->gateway->ifindex)
		return;
	if (!route.exists || !link_name(doctor->host.socket, route.ifindex, name))
		snprintf(name, sizeof(name), "nowhere");
	cni_address_format(subject->mapping->portmap.container_address, address);
	doctor_found(doctor, VERDICT_FAIL,
		     cni_format("ip route replace %s/%d dev %s", address, subject->ipv4 ? 32 : 128,
				remedy_word(subject->gateway->link.name).text),
		     "%s: the host's route to %s leads to %s, not to %s", subject->port, address,
		     name, subject->gateway->link.name);
}

void check_container_route(struct doctor *doctor)
{
	doctor_visit(doctor, true, check_route_of);
}

static void check_neighbour_of(struct doctor *doctor, const struct subject *subject)
{
	const uint8_t *address = subject->mapping->portmap.container_address;
	const char *interface = subject->gateway->link.name;
	struct neighbour neighbour =
		neighbour_of(doctor->host.socket, subject->gateway->ifindex, address);
	const struct link *link = doctor_inside(doctor, subject);
	char text[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(address, text);
	if (!neighbour.exists)
		return;
	if (neighbour.state & NUD_FAILED)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("ip neighbour flush to %s dev %s", text,
					remedy_word(interface).text),
			     "%s: nobody at %s answers for %s", subject->port, interface, text);
	else if (link->ifindex &&
		 neighbour.state & (NUD_REACHABLE | NUD_STALE | NUD_PERMANENT | NUD_NOARP) &&
		 memcmp(neighbour.mac, link->mac, LINK_MAC_SIZE) != 0)
		doctor_found(
			doctor, VERDICT_FAIL,
			cni_format("ip neighbour del %s dev %s", text, remedy_word(interface).text),
			"%s: at %s another MAC than the container's is known for %s", subject->port,
			interface, text);
}

void check_neighbour(struct doctor *doctor)
{
	doctor_visit(doctor, true, check_neighbour_of);
}

/* Addresses for documentation, which no container is at. */
static const uint8_t *somewhere(const struct doctor *doctor, bool ipv4)
{
	static const uint8_t far4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 203, 0, 113, 1};
	static const uint8_t far6[] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
	const struct range_option *from = &doctor->options->from;

	if (from->is_set && cni_address_is_ipv4(from->address) == ipv4)
		return from->address;
	return ipv4 ? far4 : far6;
}

static char *way_back_remedy(struct doctor *doctor, const struct subject *subject,
			     const struct link *link, bool route)
{
	const struct namespace *namespace =
		namespaces_find(&doctor->namespaces, subject->veth->link.peer_netns_id);
	const struct addressed_interface *gateway =
		address_list_find(&doctor->host.addresses, subject->gateway->ifindex);
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (!route)
		return cni_format("nsenter --net=%s ip link set dev %s up",
				  remedy_word(namespace->path).text, remedy_word(link->name).text);
	if (!gateway)
		return NULL;
	cni_address_format(subject->ipv4 ? gateway->address4 : gateway->address6, address);
	return cni_format("nsenter --net=%s ip route replace default via %s dev %s",
			  remedy_word(namespace->path).text, address, remedy_word(link->name).text);
}

/* gVisor takes the addresses of the interface into a network stack of its own, and Kata Containers
 * hand its frames to a virtual machine. The namespace then tells nothing about routes and sockets.
 */
static bool has_own_stack(struct nl_sock *inside, const struct subject *subject)
{
	cleanup_error struct cni_error ignored = {0};
	struct link tap = {0};

	return !local_address_exists(inside, subject->mapping->portmap.container_address) ||
	       (!link_get(inside, 0, "tap0_kata", &tap, &ignored) && tap.ifindex);
}

static void report_own_stack(struct doctor *doctor, const struct subject *subject)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(subject->mapping->portmap.container_address, address);
	doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
		     "%s: the network namespace of %s does not show routes and sockets: it has a"
		     " network stack of its own (gVisor, Kata Containers), or its address %s was"
		     " removed",
		     subject->port, subject->container->text, address);
}

static void check_way_back_of(struct doctor *doctor, const struct subject *subject)
{
	const struct link *link = doctor_inside(doctor, subject);
	cleanup_netlink struct nl_sock *inside = NULL;
	struct route route;

	if (!link->ifindex) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "%s: the network namespace of %s is not found", subject->port,
			     subject->container->text);
		return;
	}
	if (!(link->flags & IFF_UP)) {
		doctor_found(doctor, VERDICT_FAIL, way_back_remedy(doctor, subject, link, false),
			     "%s: %s in the container is down", subject->port, link->name);
		return;
	}
	inside = doctor_enter(doctor, subject);
	if (has_own_stack(inside, subject)) {
		report_own_stack(doctor, subject);
		return;
	}
	route = route_to(inside, somewhere(doctor, subject->ipv4));
	if (!route.exists || route.ifindex != link->ifindex)
		doctor_found(doctor, VERDICT_FAIL, way_back_remedy(doctor, subject, link, true),
			     "%s: the container has no IPv%c route to clients by %s", subject->port,
			     subject->ipv4 ? '4' : '6', link->name);
}

void check_way_back(struct doctor *doctor)
{
	doctor_visit(doctor, true, check_way_back_of);
}

static uint32_t mtu_of(const char *name)
{
	char path[64], value[16];

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", name);
	text_file_read(path, value, sizeof(value));
	return (uint32_t)strtoul(value, NULL, 10);
}

static void check_mtu_of(struct doctor *doctor, const struct subject *subject)
{
	const char *uplink = doctor->default_uplink[subject->ipv4],
		   *veth = subject->veth->link.name;
	struct route route = route_to(doctor->host.socket, somewhere(doctor, subject->ipv4));
	const struct namespace *namespace =
		namespaces_find(&doctor->namespaces, subject->veth->link.peer_netns_id);
	uint32_t most = *uplink ? mtu_of(uplink) : 0;
	const struct link *link = doctor_inside(doctor, subject);

	if (route.exists && route.locked_mtu && route.locked_mtu < most)
		most = route.locked_mtu;
	if (!namespace || !link->ifindex || mtu_of(veth) <= most || !most)
		return;
	doctor_found(
		doctor, VERDICT_WARN,
		cni_format("ip link set dev %s mtu %u\nnsenter --net=%s ip link set dev %s mtu %u\n"
			   "# and for the next containers: \"mtu\": %u for the main plugin",
			   remedy_word(veth).text, most, remedy_word(namespace->path).text,
			   remedy_word(link->name).text, most, most),
		"%s: %s has an MTU of %u, %s%s of %u: large packets are fragmented or refused,"
		" and no flow skips the IP stack",
		subject->port, veth, mtu_of(veth), uplink,
		route.locked_mtu == most ? ", where it is locked," : "", most);
}

void check_mtu(struct doctor *doctor)
{
	doctor_visit(doctor, true, check_mtu_of);
}

/* The sockets of one protocol in one namespace: mappings of both families, which follow one
 * another, ask for the same. */
struct inside {
	const struct namespace *namespace;
	enum protocol protocol;
	struct socket_list sockets;
};

static int find_sockets(void *context, struct cni_error *err)
{
	struct inside *inside = context;
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_SOCK_DIAG, err);

	return socket ? sockets_find(&inside->sockets, socket, inside->protocol, SOCKET_BOUND, err)
		      : -1;
}

static int read_inside(struct inside *inside, const struct namespace *namespace,
		       enum protocol protocol, struct cni_error *err)
{
	if (inside->namespace == namespace && inside->protocol == protocol)
		return 0;
	sockets_release(&inside->sockets);
	*inside = (struct inside){.namespace = namespace, .protocol = protocol};
	return netns_call(namespace->fd, find_sockets, inside, err);
}

static void report_listening(struct doctor *doctor, const struct subject *subject,
			     enum listening listening, const uint8_t *where)
{
	const struct portmap *portmap = &subject->mapping->portmap;
	const char *who = subject->container->text;
	char at[ENDPOINT_TEXT_SIZE] = "", wanted[ENDPOINT_TEXT_SIZE], word[PROTOCOL_WORD_SIZE];

	if (where)
		format_endpoint(where, portmap->container_port, at);
	format_endpoint(portmap->container_address, portmap->container_port, wanted);
	if (listening == LISTENING_NOT)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# start the program in %s, or map the port that it listens"
					" at",
					remedy_word(who).text),
			     "%s: nobody listens at %s port %s in %s", subject->port,
			     protocol_word(subject->mapping->key.protocol, word), wanted, who);
	else
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# let the program in %s listen at %s",
					remedy_word(who).text, subject->ipv4 ? "0.0.0.0" : "::"),
			     "%s: %s listens at %s only, not at %s", subject->port, who, at,
			     wanted);
}

/* The check of the way back says what cannot be looked at. */
static bool can_see_sockets(struct doctor *doctor, const struct subject *subject)
{
	cleanup_netlink struct nl_sock *inside = doctor_enter(doctor, subject);

	return inside && !has_own_stack(inside, subject);
}

static void check_listener_of(struct doctor *doctor, const struct subject *subject,
			      struct inside *inside)
{
	const struct namespace *namespace =
		namespaces_find(&doctor->namespaces, subject->veth->link.peer_netns_id);
	const struct portmap *portmap = &subject->mapping->portmap;
	enum protocol protocol = subject->mapping->key.protocol;
	cleanup_error struct cni_error err = {0};
	enum listening listening;
	const uint8_t *where;

	/* The check of the way back says that the namespace is not found. */
	if (!namespace)
		return;
	if (read_inside(inside, namespace, protocol, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s: %s", subject->port,
			     cni_error_message(&err));
		return;
	}
	listening = listening_at(&inside->sockets, protocol, portmap->container_address,
				 portmap->container_port, &where);
	if (listening != LISTENING && can_see_sockets(doctor, subject))
		report_listening(doctor, subject, listening, where);
}

void check_listener(struct doctor *doctor)
{
	struct inside inside = {0};
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (doctor_subject(doctor, i, &subject) &&
		    subject.mapping->key.protocol != PROTOCOL_SCTP)
			check_listener_of(doctor, &subject, &inside);
	sockets_release(&inside.sockets);
}
