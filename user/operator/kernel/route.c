/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* route.c - where packets go from here: routing and neighbours. */
#include "operator/kernel/route.h"

#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/netlink.h"

static const uint8_t *bytes_of(const uint8_t address[CNI_ADDRESS_SIZE], int *size)
{
	bool ipv4 = cni_address_is_ipv4(address);

	*size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	return address + CNI_ADDRESS_SIZE - *size;
}

static uint32_t locked_mtu_of(const struct nlattr *metrics)
{
	const struct nlattr *lock = netlink_find(metrics, RTAX_LOCK);
	const struct nlattr *mtu = netlink_find(metrics, RTAX_MTU);

	return lock && mtu && nla_get_u32(lock) & (1 << RTAX_MTU) ? nla_get_u32(mtu) : 0;
}

static void take_address(const struct nlattr *attribute, bool ipv4,
			 uint8_t address[CNI_ADDRESS_SIZE])
{
	if (!attribute)
		return;
	memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	nla_memcpy(address + (ipv4 ? 12 : 0), attribute, ipv4 ? 4 : CNI_ADDRESS_SIZE);
}

static void take_route(struct nlmsghdr *message, void *context)
{
	const struct rtmsg *header = nlmsg_data(message);
	struct route *route = context;

	take_address(nlmsg_find_attr(message, sizeof(*header), RTA_GATEWAY),
		     header->rtm_family == AF_INET, route->gateway);

	route->exists = header->rtm_type == RTN_UNICAST || header->rtm_type == RTN_LOCAL;
	route->is_local = header->rtm_type == RTN_LOCAL;
	route->has_gateway = nlmsg_find_attr(message, sizeof(*header), RTA_GATEWAY) ||
			     nlmsg_find_attr(message, sizeof(*header), RTA_VIA);
	nla_memcpy(&route->ifindex, nlmsg_find_attr(message, sizeof(*header), RTA_OIF),
		   sizeof(route->ifindex));
	route->locked_mtu = locked_mtu_of(nlmsg_find_attr(message, sizeof(*header), RTA_METRICS));
}

static void put_address(struct nl_msg *request, int type, const uint8_t *address)
{
	int size;
	const uint8_t *bytes = bytes_of(address, &size);

	nla_put(request, type, size, bytes);
}

/* `from` NULL: the packet is this namespace's own. */
static struct nl_msg *route_request(const uint8_t *from, const uint8_t *to, unsigned int flags)
{
	bool ipv4 = cni_address_is_ipv4(to);
	unsigned char length = ipv4 ? 32 : 128;
	struct rtmsg header = {.rtm_family = ipv4 ? AF_INET : AF_INET6,
			       .rtm_dst_len = length,
			       .rtm_src_len = from ? length : 0,
			       .rtm_flags = flags};
	struct nl_msg *request = netlink_begin(RTM_GETROUTE, 0, &header, sizeof(header));

	put_address(request, RTA_DST, to);
	if (from)
		put_address(request, RTA_SRC, from);
	return request;
}

struct route route_to(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	cleanup_request struct nl_msg *request = route_request(NULL, address, 0);
	struct route route = {0};

	if (netlink_ask(socket, request, take_route, &route))
		route.exists = false;
	return route;
}

struct route route_of_forwarded(struct netlink *socket, const struct forwarded *packet)
{
	cleanup_request struct nl_msg *request = route_request(packet->from, packet->to, 0);
	struct route route = {0};

	nla_put_u32(request, RTA_IIF, packet->ifindex);
	if (netlink_ask(socket, request, take_route, &route))
		route.exists = false;
	return route;
}

static void take_prefix_length(struct nlmsghdr *message, void *context)
{
	const struct rtmsg *header = nlmsg_data(message);

	*(unsigned int *)context = header->rtm_dst_len;
}

unsigned int route_prefix_length(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE])
{
	cleanup_request struct nl_msg *request = route_request(NULL, address, RTM_F_FIB_MATCH);
	unsigned int length = 0;

	return netlink_ask(socket, request, take_prefix_length, &length) ? 0 : length;
}

/* --- routes that refuse ------------------------------------------------------------------- */

struct refusal {
	const uint8_t *address;
	const char *word; /* NULL: none is found yet */
	uint8_t prefix[CNI_ADDRESS_SIZE];
	unsigned int length;
};

static void take_refusal(struct nlmsghdr *message, void *context)
{
	static const char *const words[RTN_MAX + 1] = {
		[RTN_BLACKHOLE] = "blackhole",
		[RTN_UNREACHABLE] = "unreachable",
		[RTN_PROHIBIT] = "prohibit",
	};
	const struct rtmsg *header = nlmsg_data(message);
	struct refusal *found = context;
	bool ipv4 = cni_address_is_ipv4(found->address);
	uint8_t prefix[CNI_ADDRESS_SIZE] = {0};

	if (header->rtm_type > RTN_MAX || !words[header->rtm_type] ||
	    (found->word && header->rtm_dst_len < found->length))
		return;
	if (ipv4)
		memcpy(prefix, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	take_address(nlmsg_find_attr(message, sizeof(*header), RTA_DST), ipv4, prefix);
	if (!cni_address_has_prefix(found->address, prefix, header->rtm_dst_len))
		return;
	found->word = words[header->rtm_type];
	found->length = header->rtm_dst_len;
	memcpy(found->prefix, prefix, CNI_ADDRESS_SIZE);
}

char *route_refusing(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE],
		     bool *is_single)
{
	bool ipv4 = cni_address_is_ipv4(address);
	struct rtmsg header = {.rtm_family = ipv4 ? AF_INET : AF_INET6};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETROUTE, NLM_F_DUMP, &header, sizeof(header));
	struct refusal found = {.address = address};
	char prefix[CNI_ADDRESS_TEXT_SIZE];

	netlink_ask(socket, request, take_refusal, &found);
	*is_single = found.length == (ipv4 ? 32 : 128);
	return found.word ? cni_format("%s %s/%u", found.word,
				       cni_address_format(found.prefix, prefix), found.length)
			  : NULL;
}

/* --- rules -------------------------------------------------------------------------------- */

struct rule_search {
	const struct forwarded *packet;
	char *text; /* NULL: none is found yet */
};

static const struct nlattr *rule_attribute(struct nlmsghdr *message, int type)
{
	return nlmsg_find_attr(message, sizeof(struct fib_rule_hdr), type);
}

static bool has_prefix(const uint8_t *address, const struct nlattr *prefix, unsigned int length)
{
	uint8_t read[CNI_ADDRESS_SIZE];

	take_address(prefix, cni_address_is_ipv4(address), read);
	return !prefix || cni_address_has_prefix(address, read, length);
}

static uint32_t rule_number(struct nlmsghdr *message, int type)
{
	const struct nlattr *attribute = rule_attribute(message, type);

	return attribute ? nla_get_u32(attribute) : 0;
}

/* Of a rule for what this host sends by one interface, or for some users, it is false. */
static bool rule_may_match(struct nlmsghdr *message, const struct forwarded *packet)
{
	const struct fib_rule_hdr *header = nlmsg_data(message);
	const struct nlattr *interface = rule_attribute(message, FRA_IIFNAME);
	bool matches =
		has_prefix(packet->from, rule_attribute(message, FRA_SRC), header->src_len) &&
		has_prefix(packet->to, rule_attribute(message, FRA_DST), header->dst_len) &&
		(!interface || netlink_is(interface, packet->interface));

	if (rule_attribute(message, FRA_OIFNAME) || rule_attribute(message, FRA_UID_RANGE))
		return false;
	if (rule_number(message, FRA_FWMARK) && packet->has_mark)
		return matches;
	return (matches && !rule_number(message, FRA_FWMARK)) !=
	       !!(header->flags & FIB_RULE_INVERT);
}

static const char *action_word(const struct fib_rule_hdr *header)
{
	switch (header->action) {
	case FR_ACT_BLACKHOLE:
		return "blackhole";
	case FR_ACT_UNREACHABLE:
		return "unreachable";
	case FR_ACT_PROHIBIT:
		return "prohibit";
	default:
		return NULL;
	}
}

/* " from 10.88.0.2", malloc'ed; "": it has no such condition. */
static char *prefix_text(struct nlmsghdr *message, int type)
{
	const struct fib_rule_hdr *header = nlmsg_data(message);
	const struct nlattr *prefix = rule_attribute(message, type);
	unsigned int length = type == FRA_SRC ? header->src_len : header->dst_len;
	bool ipv4 = header->family == AF_INET;
	char address[CNI_ADDRESS_TEXT_SIZE];
	uint8_t read[CNI_ADDRESS_SIZE];

	if (!prefix)
		return cni_format("%s", "");
	take_address(prefix, ipv4, read);
	cni_address_format(read, address);
	return length == (ipv4 ? 32 : 128)
		       ? cni_format(" %s %s", type == FRA_SRC ? "from" : "to", address)
		       : cni_format(" %s %s/%u", type == FRA_SRC ? "from" : "to", address, length);
}

/* "100: from 10.88.0.2 iif cni0 fwmark 0x9 lookup 77" */
static char *rule_text(struct nlmsghdr *message)
{
	const struct fib_rule_hdr *header = nlmsg_data(message);
	const struct nlattr *interface = rule_attribute(message, FRA_IIFNAME);
	uint32_t mark = rule_number(message, FRA_FWMARK);
	cleanup_free char *from = prefix_text(message, FRA_SRC);
	cleanup_free char *to = prefix_text(message, FRA_DST);
	cleanup_free char *marked = mark ? cni_format(" fwmark 0x%x", mark) : NULL;
	cleanup_free char *looked_up = cni_format("lookup %u", rule_number(message, FRA_TABLE));
	const char *action = action_word(header);

	return cni_format("%u:%s%s%s%s%.*s%s %s", rule_number(message, FRA_PRIORITY),
			  header->flags & FIB_RULE_INVERT ? " not" : "", from, to,
			  interface ? " iif " : "", IF_NAMESIZE,
			  interface ? (char *)nla_data(interface) : "", marked ? marked : "",
			  action ? action : looked_up);
}

static void take_rule(struct nlmsghdr *message, void *context)
{
	const struct fib_rule_hdr *header = nlmsg_data(message);
	struct rule_search *search = context;
	uint32_t table = rule_number(message, FRA_TABLE);
	bool is_usual =
		table == RT_TABLE_MAIN || table == RT_TABLE_LOCAL || table == RT_TABLE_DEFAULT;

	if (!search->text && (!is_usual || action_word(header)) &&
	    rule_may_match(message, search->packet))
		search->text = rule_text(message);
}

char *rule_of_forwarded(struct netlink *socket, const struct forwarded *packet)
{
	bool ipv4 = cni_address_is_ipv4(packet->to);
	struct fib_rule_hdr header = {.family = ipv4 ? AF_INET : AF_INET6};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETRULE, NLM_F_DUMP, &header, sizeof(header));
	struct rule_search search = {.packet = packet};

	netlink_ask(socket, request, take_rule, &search);
	return search.text;
}

/* --- neighbours --------------------------------------------------------------------------- */

static void take_neighbour(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);
	struct neighbour *neighbour = context;

	neighbour->exists = true;
	neighbour->state = header->ndm_state;
	nla_memcpy(neighbour->mac, nlmsg_find_attr(message, sizeof(*header), NDA_LLADDR),
		   LINK_MAC_SIZE);
}

struct neighbour neighbour_of(struct netlink *socket, uint32_t ifindex,
			      const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct ndmsg header = {.ndm_ifindex = (int)ifindex};
	cleanup_request struct nl_msg *request = NULL;
	struct neighbour neighbour = {0};

	header.ndm_family = cni_address_is_ipv4(address) ? AF_INET : AF_INET6;
	request = netlink_begin(RTM_GETNEIGH, 0, &header, sizeof(header));
	put_address(request, NDA_DST, address);
	if (netlink_ask(socket, request, take_neighbour, &neighbour))
		neighbour.exists = false;
	return neighbour;
}

static void take_port(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);

	*(uint32_t *)context = (uint32_t)header->ndm_ifindex;
}

uint32_t bridge_port_of(struct netlink *socket, uint32_t bridge, const uint8_t mac[LINK_MAC_SIZE])
{
	struct ndmsg header = {.ndm_family = AF_BRIDGE};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNEIGH, 0, &header, sizeof(header));
	uint32_t port = 0;

	nla_put(request, NDA_LLADDR, LINK_MAC_SIZE, mac);
	nla_put_u32(request, NDA_MASTER, bridge);
	return netlink_ask(socket, request, take_port, &port) ? 0 : port;
}

struct neighbour_search {
	uint32_t ifindex;
	const uint8_t *prefix;
	unsigned int prefix_length;
	bool found;
	uint8_t *address;
};

#define NUD_THERE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)

static void take_first(struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = nlmsg_data(message);
	const struct nlattr *address = nlmsg_find_attr(message, sizeof(*header), NDA_DST);
	struct neighbour_search *search = context;
	bool ipv4 = header->ndm_family == AF_INET;
	uint8_t read[CNI_ADDRESS_SIZE];

	if (search->found || !address || (uint32_t)header->ndm_ifindex != search->ifindex ||
	    !(header->ndm_state & NUD_THERE))
		return;
	take_address(address, ipv4, read);
	if (cni_address_is_link_local(read) ||
	    !cni_address_has_prefix(read, search->prefix, search->prefix_length))
		return;
	search->found = true;
	memcpy(search->address, read, CNI_ADDRESS_SIZE);
}

bool neighbour_first(struct netlink *socket, uint32_t ifindex,
		     const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int prefix_length,
		     uint8_t address[CNI_ADDRESS_SIZE])
{
	struct ndmsg header = {.ndm_family = cni_address_is_ipv4(prefix) ? AF_INET : AF_INET6};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNEIGH, NLM_F_DUMP, &header, sizeof(header));
	struct neighbour_search search = {ifindex, prefix, prefix_length, false, address};

	netlink_ask(socket, request, take_first, &search);
	return search.found;
}
