/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* way.c - what a look tells about the way from an uplink into a container, and back. */
#include "operator/doctor/way.h"

#include <linux/neighbour.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "net/host_settings.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "net/processes.h"
#include "net/sockets.h"
#include "operator/doctor/ruleset.h"
#include "operator/kernel/route.h"
#include "operator/print/format.h"

struct passage {
	struct doctor *doctor;
	const struct subject *subject;
	const uint8_t *container;
	struct diagnosis *diagnosis;
	const struct link *uplink; /* may be NULL */
	const uint8_t *client;
};

static struct passage passage_of(struct doctor *doctor, const struct subject *subject,
				 struct diagnosis *diagnosis)
{
	return (struct passage){.doctor = doctor,
				.subject = subject,
				.container = subject->mapping->portmap.container_address,
				.diagnosis = diagnosis};
}

void diagnosis_release(struct diagnosis *diagnosis)
{
	free(diagnosis->text);
	free(diagnosis->remedy);
	*diagnosis = (struct diagnosis){0};
}

/* The remedy goes with it; NULL: there is none. */
static void __attribute__((format(printf, 3, 4)))
say(const struct passage *way, char *remedy, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	way->diagnosis->text = cni_format_list(format, arguments);
	way->diagnosis->remedy = remedy;
	va_end(arguments);
}

/* --- on the host -------------------------------------------------------------------------- */

/* A host that forwards IPv6 takes no default route of routers' advertisements any more, unless it
 * is told to: uplinks that do by now go on with it. */
static char *forwarding6_remedy(const struct passage *way)
{
	const struct look *look = &way->doctor->look.found;
	char *remedy = cni_format("sysctl -w net.ipv6.conf.all.forwarding=1");

	for (size_t i = 0; i < look->count; i++) {
		cleanup_free char *key =
			cni_format("net/ipv6/conf/%s/accept_ra", look->interfaces[i].link.name);
		cleanup_free char *path = cni_format("/proc/sys/%s", key), *before = NULL;
		char value[8];

		text_file_read(path, value, sizeof(value));
		if (!interface_has_role(&look->interfaces[i], ROLE_UPLINK) || atoi(value) != 1)
			continue;
		before = remedy;
		remedy = cni_format("sysctl -w %s=2\n%s", remedy_word(key).text, before);
	}
	return remedy;
}

static void look_at_forwarding_from(const struct passage *way, const char *interface)
{
	bool ipv4 = way->subject->ipv4;
	char key[64];

	/* IPv6 has one switch for the host. */
	if (ipv4 ? forwarding_is_on(true, interface) : forwarding_is_on(false, "all"))
		return;
	if (!forwarding_is_on(ipv4, "all"))
		snprintf(key, sizeof(key), "net.ipv4.ip_forward");
	else
		snprintf(key, sizeof(key), "net/ipv4/conf/%s/forwarding", interface);
	say(way,
	    ipv4 ? cni_format("sysctl -w %s=1", remedy_word(key).text) : forwarding6_remedy(way),
	    "the host does not forward IPv%c packets that come in by %s", ipv4 ? '4' : '6',
	    interface);
}

static void look_at_forwarding(const struct passage *way)
{
	if (way->uplink)
		look_at_forwarding_from(way, way->uplink->name);
	if (way->uplink && !way->diagnosis->text)
		look_at_forwarding_from(way, way->subject->gateway->link.name);
}

static void look_at_links(const struct passage *way)
{
	const struct link *links[] = {way->uplink, &way->subject->gateway->link,
				      &way->subject->veth->link};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]) && !way->diagnosis->text; i++)
		if (links[i] && !(links[i]->flags & IFF_UP))
			say(way,
			    cni_format("ip link set dev %s up", remedy_word(links[i]->name).text),
			    "%s is down", links[i]->name);
}

static void look_at_bridge(const struct passage *way)
{
	const struct link *veth = &way->subject->veth->link;
	const struct interface_look *bridge = way->subject->gateway;

	if (bridge != way->subject->veth && veth->master != bridge->link.ifindex)
		say(way,
		    cni_format("ip link set dev %s master %s", remedy_word(veth->name).text,
			       remedy_word(bridge->link.name).text),
		    "%s is no port of %s any more", veth->name, bridge->link.name);
}

static bool leads_to_container(const struct passage *way, const struct route *route)
{
	return route->exists && !route->is_local &&
	       route->ifindex == way->subject->gateway->link.ifindex;
}

static void look_at_route(const struct passage *way)
{
	struct route route = route_to(way->doctor->host.socket, way->container);
	const struct link *gateway = &way->subject->gateway->link;
	const struct forwarded packet = {.from = way->client,
					 .to = way->container,
					 .interface = way->uplink ? way->uplink->name : "lo"};
	char address[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE];
	cleanup_free char *rule = NULL;

	if (leads_to_container(way, &route))
		return;
	/* The rule's table goes before the one that a remedy would write to. */
	rule = rule_of_forwarded(way->doctor->host.socket, &packet);
	if (!route.exists || !link_name(route.ifindex, name))
		snprintf(name, sizeof(name), "nowhere");
	cni_address_format(way->container, address);
	say(way,
	    rule ? NULL
		 : cni_format("ip route replace %s/%d dev %s", address,
			      way->subject->ipv4 ? 32 : 128, remedy_word(gateway->name).text),
	    "the host's route to %s leads to %s, not to %s%s%s", address, name, gateway->name,
	    rule ? ": ip rule " : "", rule ? rule : "");
}

const struct container_info *way_container(struct doctor *doctor, uint32_t veth, const uint8_t *mac)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error ignored = {0};
	size_t count = 0;

	if (attachment_list(&doctor->host.datapath, &entries, &count, &ignored))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct attachment *attachment = &entries[i].attachment;

		if (mac ? !memcmp(attachment->container_mac, mac, LINK_MAC_SIZE)
			: attachment->ifindex == veth)
			return view_container(&doctor->view, attachment->owner);
	}
	return NULL;
}

/* Of both directions: routing knows the sender, too, and reverse path filters ask by it. */
static void look_at_rules(const struct passage *way)
{
	struct netlink *socket = way->doctor->host.socket;
	const struct link *gateway = &way->subject->gateway->link;
	const struct forwarded packets[] = {
		{.from = way->client,
		 .to = way->container,
		 .ifindex = way->uplink ? way->uplink->ifindex : 0,
		 .interface = way->uplink ? way->uplink->name : ""},
		{.from = way->container,
		 .to = way->client,
		 .ifindex = gateway->ifindex,
		 .interface = gateway->name},
	};

	for (size_t i = 0; way->uplink && i < 2 && !way->diagnosis->text; i++) {
		cleanup_free char *rule = route_of_forwarded(socket, &packets[i]).exists
						  ? NULL
						  : rule_of_forwarded(socket, &packets[i]);

		if (rule)
			say(way, NULL, "the host does not forward what comes in by %s: ip rule %s",
			    packets[i].interface, rule);
	}
}

static void look_at_other_mac(const struct passage *way)
{
	const struct link *gateway = &way->subject->gateway->link;
	const struct link *inside = &doctor_inside(way->doctor, way->subject)->link;
	struct neighbour neighbour =
		neighbour_of(way->doctor->host.socket, gateway->ifindex, way->container);
	const struct container_info *other;
	char address[CNI_ADDRESS_TEXT_SIZE], port[IF_NAMESIZE];

	if (!inside->ifindex || !neighbour.exists ||
	    !(neighbour.state & (NUD_REACHABLE | NUD_STALE | NUD_PERMANENT | NUD_NOARP)) ||
	    !memcmp(neighbour.mac, inside->mac, LINK_MAC_SIZE))
		return;
	cni_address_format(way->container, address);
	other = way_container(way->doctor, 0, neighbour.mac);
	/* It would be known again at once. */
	if (other) {
		say(way, NULL, "%s and %s both have the address %s: at %s that of %s is known",
		    other->text, way->subject->container->text, address, gateway->name,
		    other->text);
		return;
	}
	if (!(neighbour.state & NUD_PERMANENT) &&
	    link_name(bridge_port_of(way->doctor->host.socket, gateway->ifindex, neighbour.mac),
		      port)) {
		say(way, NULL, "somebody behind %s, a port of %s, has the address %s of %s, too",
		    port, gateway->name, address, way->subject->container->text);
		return;
	}
	say(way, cni_format("ip neighbour del %s dev %s", address, remedy_word(gateway->name).text),
	    "at %s another MAC than the container's is known for %s", gateway->name, address);
}

static bool port_is(const struct subject *subject, const char *property)
{
	cleanup_free char *path =
		cni_format("/sys/class/net/%s/brport/%s", subject->veth->link.name, property);
	char value[8];

	text_file_read(path, value, sizeof(value));
	return *value == '1';
}

/* A frame for the container leaves by the port that the bridge has for its MAC, or else by all that
 * are flooded. */
static void look_at_port_of_mac(const struct passage *way)
{
	const struct subject *subject = way->subject;
	const char *bridge = subject->gateway->link.name, *veth = subject->veth->link.name;
	const struct link *inside = &doctor_inside(way->doctor, subject)->link;
	const uint8_t *mac = inside->mac;
	char name[IF_NAMESIZE], mac_text[MAC_TEXT_SIZE];
	uint32_t port;

	if (subject->gateway == subject->veth || !inside->ifindex)
		return;
	port = bridge_port_of(way->doctor->host.socket, subject->gateway->link.ifindex, mac);
	if (!port && !port_is(subject, "unicast_flood"))
		say(way,
		    cni_format("bridge link set dev %s flood on learning on",
			       remedy_word(veth).text),
		    "%s does not know where the MAC of %s is, and its port %s gets no frames then"
		    " (flood off)",
		    bridge, subject->container->text, veth);
	else if (port && port != subject->veth->link.ifindex && link_name(port, name))
		say(way,
		    cni_format("bridge fdb del %s dev %s master", format_mac(mac, mac_text),
			       remedy_word(name).text),
		    "%s sends what is for the MAC of %s to its port %s, not to %s", bridge,
		    subject->container->text, name, veth);
}

/* --- in the container --------------------------------------------------------------------- */

/* gVisor takes the addresses of the interface into a network stack of its own, and Kata Containers
 * hand its frames to a virtual machine. The namespace then tells nothing about routes and sockets.
 */
static bool shows_no_sockets(struct netlink *inside, const uint8_t *container)
{
	cleanup_error struct cni_error ignored = {0};
	struct link tap = {0};

	return !local_address_exists(inside, container) ||
	       (!link_get(inside, 0, "tap0_kata", &tap, &ignored) && tap.ifindex);
}

/* Once for each family of a container. */
static bool has_own_stack(const struct passage *way)
{
	struct inside *inside = doctor_inside(way->doctor, way->subject);
	bool ipv4 = way->subject->ipv4;

	if (!inside->stack_is_known[ipv4]) {
		cleanup_netlink struct netlink *socket = doctor_enter(way->doctor, way->subject);

		inside->has_own_stack[ipv4] = !socket || shows_no_sockets(socket, way->container);
		inside->stack_is_known[ipv4] = true;
	}
	return inside->has_own_stack[ipv4];
}

static void say_own_stack(const struct passage *way)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(way->container, address);
	say(way, NULL,
	    "the network namespace of %s does not show routes and sockets: it has a network stack"
	    " of its own (gVisor, Kata Containers), or its address %s was removed",
	    way->subject->container->text, address);
	way->diagnosis->is_not_looked_at = true;
}

static bool host_has_gateway(const struct passage *way)
{
	const struct addressed_interface *gateway = way->subject->gateway->addressed;

	return gateway &&
	       !cni_address_is_any(way->subject->ipv4 ? gateway->address4 : gateway->address6);
}

static char *route_remedy(const struct passage *way, const char *interface)
{
	const struct addressed_interface *gateway = way->subject->gateway->addressed;
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (!host_has_gateway(way))
		return NULL;
	cni_address_format(way->subject->ipv4 ? gateway->address4 : gateway->address6, address);
	return cni_format("nsenter --net=%s ip route replace default via %s dev %s",
			  remedy_word(doctor_namespace(way->doctor, way->subject)->path).text,
			  address, remedy_word(interface).text);
}

/* Its routes of IPv4 have gone with it. With IPv6 its address has, too, which is not ours to give.
 */
static char *up_remedy(const struct passage *way, const char *interface)
{
	cleanup_free char *route = way->subject->ipv4 ? route_remedy(way, interface) : NULL;

	return cni_format("nsenter --net=%s ip link set dev %s up%s%s",
			  remedy_word(doctor_namespace(way->doctor, way->subject)->path).text,
			  remedy_word(interface).text, route ? "\n" : "", route ? route : "");
}

/* Somebody whom the container takes for a neighbour, and who does not answer there. */
static void look_at_netmask(const struct passage *way, struct netlink *inside,
			    const struct link *link)
{
	struct neighbour neighbour = neighbour_of(inside, link->ifindex, way->client);
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (neighbour.exists && neighbour.state & (NUD_INCOMPLETE | NUD_FAILED))
		say(way, NULL,
		    "%s takes %s for a neighbour at its %s (a netmask, or a route without gateway),"
		    " and nobody answers there",
		    way->subject->container->text, cni_address_format(way->client, address),
		    link->name);
}

/* Where the bridge has another address the container's route is wrong; else its own has gone. */
static void say_no_gateway(const struct passage *way, struct netlink *inside,
			   const struct link *link, const uint8_t *gateway)
{
	const char *bridge = way->subject->gateway->link.name;
	cleanup_free char *key = cni_format("net/ipv6/conf/%s/disable_ipv6", bridge);
	cleanup_free char *path = cni_format("/proc/sys/%s", key);
	unsigned int length = route_prefix_length(inside, gateway);
	char address[CNI_ADDRESS_TEXT_SIZE], is_off[8] = "", *remedy = NULL;

	cni_address_format(gateway, address);
	if (!way->subject->ipv4)
		text_file_read(path, is_off, sizeof(is_off));
	if (host_has_gateway(way))
		remedy = route_remedy(way, link->name);
	else if (length)
		remedy = cni_format(
			"%s%s%sip address add %s/%u dev %s", *is_off == '1' ? "sysctl -w " : "",
			*is_off == '1' ? remedy_word(key).text : "", *is_off == '1' ? "=0\n" : "",
			address, length, remedy_word(bridge).text);
	say(way, remedy, "the host does not have %s, the gateway of %s", address,
	    way->subject->container->text);
}

/* The host's route has gone with the gateway's address, as IPv6 addresses go with a bridge that
 * goes down. */
static void look_at_lost_gateway(const struct passage *way)
{
	const struct link *link = &doctor_inside(way->doctor, way->subject)->link;
	struct route to_container = route_to(way->doctor->host.socket, way->container);
	cleanup_netlink struct netlink *inside = NULL;
	struct route back = {0};

	if (leads_to_container(way, &to_container) || !link->ifindex)
		return;
	inside = doctor_enter(way->doctor, way->subject);
	if (inside)
		back = route_to(inside, way->client);
	if (back.exists && back.ifindex == link->ifindex && !cni_address_is_any(back.gateway) &&
	    !local_address_exists(way->doctor->host.socket, back.gateway))
		say_no_gateway(way, inside, link, back.gateway);
}

static int arp_ignore_of(const char *interface)
{
	char path[sizeof("/proc/sys/net/ipv4/conf//arp_ignore") + IF_NAMESIZE], value[8];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore", interface);
	text_file_read(path, value, sizeof(value));
	return atoi(value);
}

/* The host has the address, and does not say so. Of the two settings the larger one counts. */
static void say_silent_gateway(const struct passage *way, const uint8_t *gateway)
{
	const char *bridge = way->subject->gateway->link.name;
	int of_bridge = arp_ignore_of(bridge), of_all = arp_ignore_of("all");
	bool ignores = way->subject->ipv4 && (of_bridge || of_all);
	cleanup_free char *key =
		cni_format("net/ipv4/conf/%s/arp_ignore", of_bridge >= of_all ? bridge : "all");
	cleanup_free char *table = ruleset_table_below_ip();
	char address[CNI_ADDRESS_TEXT_SIZE];

	say(way,
	    ignores && of_bridge > of_all
		    ? cni_format("sysctl -w %s=%d", remedy_word(key).text, of_all)
		    : NULL,
	    "%s asks for the MAC of its gateway %s, and %s does not answer%s%s%s%s",
	    way->subject->container->text, cni_address_format(gateway, address), bridge,
	    ignores ? "; what it ignores says the sysctl " : "", ignores ? key : "",
	    table ? "; rules that see ARP are in nft's table " : "", table ? table : "");
}

/* A gateway that no host has, as Calico's 169.254.1.1, is answered for all the same. */
static void look_at_gateway(const struct passage *way, struct netlink *inside,
			    const struct link *link, const uint8_t *gateway)
{
	struct neighbour neighbour = neighbour_of(inside, link->ifindex, gateway);

	if (neighbour.exists && neighbour.state & (NUD_INCOMPLETE | NUD_FAILED) &&
	    !local_address_exists(way->doctor->host.socket, gateway))
		say_no_gateway(way, inside, link, gateway);
}

/* The remedy is a default route, which mends nothing where a rule or a narrower route has the
 * client's address. */
static void say_no_route_back(const struct passage *way, struct netlink *inside,
			      const struct link *link)
{
	const struct forwarded packet = {
		.from = way->container, .to = way->client, .interface = "lo"};
	const char *who = way->subject->container->text;
	unsigned int length = route_prefix_length(inside, way->client);
	cleanup_free char *rule = rule_of_forwarded(inside, &packet);
	bool is_single;
	cleanup_free char *route = route_refusing(inside, way->client, &is_single);
	char address[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(way->client, address);
	if (rule || route)
		say(way, NULL, "%s has no route to %s by its %s: ip %s %s", who, address,
		    link->name, rule ? "rule" : "route", rule ? rule : route);
	else if (length)
		say(way, NULL, "%s has a route for %s/%u that does not lead out by its %s", who,
		    address, length, link->name);
	else
		say(way, route_remedy(way, link->name),
		    "%s has no IPv%c route to clients by its %s", who,
		    way->subject->ipv4 ? '4' : '6', link->name);
}

static void look_at_route_back(const struct passage *way, struct netlink *inside,
			       const struct link *link)
{
	struct route route = route_to(inside, way->client);

	if (!route.exists || route.ifindex != link->ifindex)
		say_no_route_back(way, inside, link);
	else if (!route.has_gateway)
		look_at_netmask(way, inside, link);
	else if (!cni_address_is_any(route.gateway))
		look_at_gateway(way, inside, link, route.gateway);
}

static void look_inside(const struct passage *way)
{
	const struct link *link = &doctor_inside(way->doctor, way->subject)->link;
	const char *who = way->subject->container->text;
	cleanup_netlink struct netlink *inside = NULL;

	if (!link->ifindex) {
		say(way, NULL, "the network namespace of %s is not found", who);
		way->diagnosis->is_not_looked_at = true;
		return;
	}
	if (!(link->flags & IFF_UP)) {
		say(way, up_remedy(way, link->name), "%s in %s is down", link->name, who);
		return;
	}
	if (has_own_stack(way))
		say_own_stack(way);
	else if ((inside = doctor_enter(way->doctor, way->subject)))
		look_at_route_back(way, inside, link);
}

void way_diagnose(struct doctor *doctor, const struct subject *subject, const struct link *uplink,
		  const uint8_t client[CNI_ADDRESS_SIZE], struct diagnosis *diagnosis)
{
	static void (*const looks[])(const struct passage *) = {
		look_at_forwarding,   look_at_links,       look_at_bridge,
		look_at_lost_gateway, look_at_route,       look_at_rules,
		look_at_other_mac,    look_at_port_of_mac, look_inside,
	};
	struct passage way = passage_of(doctor, subject, diagnosis);

	way.uplink = uplink;
	way.client = client;
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]) && !diagnosis->text; i++)
		looks[i](&way);
}

void way_diagnose_gateway(struct doctor *doctor, const struct subject *subject,
			  const uint8_t client[CNI_ADDRESS_SIZE], struct diagnosis *diagnosis)
{
	const struct passage way = passage_of(doctor, subject, diagnosis);
	const struct link *link = &doctor_inside(doctor, subject)->link;
	cleanup_netlink struct netlink *inside = doctor_enter(doctor, subject);
	struct neighbour neighbour;
	struct route route;

	if (!inside || !link->ifindex)
		return;
	route = route_to(inside, client);
	neighbour = neighbour_of(inside, link->ifindex, route.gateway);
	if (route.exists && !cni_address_is_any(route.gateway) && neighbour.exists &&
	    neighbour.state & (NUD_INCOMPLETE | NUD_FAILED))
		say_silent_gateway(&way, route.gateway);
}

void way_diagnose_isolation(const struct subject *subject, const struct subject *asker,
			    struct diagnosis *diagnosis)
{
	const struct link *ends[] = {&asker->veth->link, &subject->veth->link};
	const struct passage way = {.subject = subject, .diagnosis = diagnosis};

	if (ends[0]->master == ends[1]->master && port_is(asker, "isolated") &&
	    port_is(subject, "isolated"))
		say(&way,
		    cni_format("bridge link set dev %s isolated off",
			       remedy_word(ends[1]->name).text),
		    "both %s and %s are isolated ports of %s, which switches nothing between them",
		    ends[0]->name, ends[1]->name, subject->gateway->link.name);
}

/* --- who takes it ------------------------------------------------------------------------- */

static int find_sockets(void *context, struct cni_error *err)
{
	return sockets_find_bound(context, err);
}

/* Those of all ports, once for each container. NULL without an error: its namespace is not found.
 */
static const struct socket_list *read_sockets(const struct passage *way, struct cni_error *err)
{
	const struct namespace *namespace = doctor_namespace(way->doctor, way->subject);
	struct inside *inside = doctor_inside(way->doctor, way->subject);

	if (!namespace)
		return NULL;
	if (!inside->has_sockets && netns_call(namespace->fd, find_sockets, &inside->sockets, err))
		return NULL;
	inside->has_sockets = true;
	return &inside->sockets;
}

const struct socket_list *way_sockets(struct doctor *doctor, const struct subject *subject)
{
	const struct passage way = passage_of(doctor, subject, NULL);
	cleanup_error struct cni_error ignored = {0};

	return read_sockets(&way, &ignored);
}

static bool is_at_port(const struct passage *way, const struct host_socket *socket)
{
	const struct mapping *mapping = way->subject->mapping;

	return socket->protocol == mapping->key.protocol &&
	       socket->port == mapping->portmap.container_port;
}

/* The socket that has the most waiting: several may share a port. */
static void look_at_backlog(const struct passage *way, const struct socket_list *sockets)
{
	const struct host_socket *full = NULL;

	for_each (socket, sockets->sockets, sockets->count)
		if (is_at_port(way, socket) && socket->backlog &&
		    socket->waiting > socket->backlog && (!full || socket->waiting > full->waiting))
			full = socket;
	if (full)
		say(way, NULL,
		    "delivered, no answer: the accept queue of %s is full (%u of %u): its program"
		    " accepts no connections",
		    way->subject->container->text, full->waiting, full->backlog);
}

static void say_listening(const struct passage *way, enum listening listening, const uint8_t *where)
{
	uint16_t port = way->subject->mapping->portmap.container_port;
	const char *who = way->subject->container->text;
	char at[ENDPOINT_TEXT_SIZE] = "", wanted[ENDPOINT_TEXT_SIZE];
	const char *word = protocol_word(way->subject->mapping->key.protocol);

	if (where)
		format_endpoint(where, port, at);
	format_endpoint(way->container, port, wanted);
	if (listening == LISTENING_NOT)
		say(way,
		    cni_format("# start the program in %s, or map the port that it listens at",
			       remedy_word(who).text),
		    "refused: nobody listens at %s port %s in %s", word, wanted, who);
	else
		say(way,
		    cni_format("# let the program in %s listen at %s", remedy_word(who).text,
			       way->subject->ipv4 ? "0.0.0.0" : "::"),
		    "refused: %s listens at %s port %s only, not at %s", who, word, at, wanted);
}

/* A range of ports is asked about by its first one. */
void way_diagnose_listener(struct doctor *doctor, const struct subject *subject,
			   struct diagnosis *diagnosis)
{
	const struct passage way = passage_of(doctor, subject, diagnosis);
	cleanup_error struct cni_error err = {0};
	const struct socket_list *sockets;
	enum listening listening;
	const uint8_t *where;

	if (subject->mapping->key.protocol == PROTOCOL_SCTP || !doctor_namespace(doctor, subject))
		return;
	sockets = read_sockets(&way, &err);
	if (!sockets) {
		say(&way, NULL, "%s", cni_error_message(&err));
		diagnosis->is_not_looked_at = true;
		return;
	}
	listening = listening_at(sockets, subject->mapping->key.protocol, way.container,
				 subject->mapping->portmap.container_port, &where);
	if (listening == LISTENING) {
		look_at_backlog(&way, sockets);
		return;
	}
	if (!has_own_stack(&way))
		say_listening(&way, listening, where);
}

/* "0::/system.slice/docker-1a2b.scope" */
static bool is_frozen(pid_t pid)
{
	char path[512], groups[4096], events[128];
	const char *group;

	process_file(pid, "cgroup", groups, sizeof(groups));
	group = strstr(groups, "0::/");
	if (!group)
		return false;
	group += strlen("0::");
	snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cgroup.events", (int)strcspn(group, "\n"),
		 group);
	text_file_read(path, events, sizeof(events));
	return strstr(events, "frozen 1");
}

static bool is_stopped(pid_t pid)
{
	char status[512];

	process_file(pid, "status", status, sizeof(status));
	return strstr(status, "\nState:\tT");
}

void way_diagnose_program(struct doctor *doctor, const struct subject *subject,
			  struct diagnosis *diagnosis)
{
	const struct passage way = passage_of(doctor, subject, diagnosis);
	cleanup_error struct cni_error ignored = {0};
	const struct socket_list *list = read_sockets(&way, &ignored);
	struct host_socket socket = {0};
	const struct socket_holder *holder = &socket.holder;

	for (size_t i = 0; list && i < list->count && !socket.inode; i++)
		if (is_at_port(&way, &list->sockets[i]))
			socket = list->sockets[i];
	if (socket.inode)
		processes_find_holders(&(struct socket_list){&socket, 1}, NULL);
	if (holder->pid && (is_stopped(holder->pid) || is_frozen(holder->pid)))
		say(&way, NULL, "connected, but no answer will come: %s of %s (pid %d) is %s",
		    holder->name, subject->container->text, (int)holder->pid,
		    is_stopped(holder->pid) ? "stopped" : "frozen: its container is paused");
}
