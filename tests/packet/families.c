/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* families.c - what a row of IPv4 says, said of IPv6. */
#include <err.h>
#include <netinet/in.h>
#include <string.h>

#include "row.h"

/* The address that stands in the same place of the host over IPv6. */
static const char *address_over_ipv6(const char *address)
{
#define BOTH(name) v4_##name, v6_##name
	/* clang-format off */
	static const char *const pairs[] = {
		BOTH(host), BOTH(bridge), BOTH(second_uplink), BOTH(client), BOTH(client_other),
		BOTH(server), BOTH(server_second), BOTH(elsewhere), BOTH(source), BOTH(stranger),
		BOTH(container_one), BOTH(container_two), BOTH(container_quiet),
		BOTH(container_routed), BOTH(multicast), "0.0.0.0", "::", "127.0.0.1", "::1",
		"10.10.200.5", "fd00:10::ffff", "10.11.0.0", "fd00:10:0:1::1",
		"10.99.0.2", "fd00:99::2", "198.51.100.42", "2001:db8:99::42",
	};
	/* clang-format on */
#undef BOTH

	for (size_t i = 0; address && i < sizeof(pairs) / sizeof(pairs[0]); i += 2)
		if (strcmp(pairs[i], address) == 0)
			return pairs[i + 1];
	if (address)
		errx(1, "%s has no counterpart over IPv6", address);
	return NULL;
}

static int protocol_over_ipv6(int protocol)
{
	return protocol == IPPROTO_ICMP ? IPPROTO_ICMPV6 : protocol;
}

/* Types and codes of ICMP that rows use, and those of ICMPv6 that say the same (RFC 7915) */
static void icmp_over_ipv6(struct packet *packet)
{
	static const struct {
		unsigned int type4, code4, type6, code6;
	} pairs[] = {{0, 0, 129, 0}, {8, 0, 128, 0}, {3, 1, 1, 0}, {3, 3, 1, 4},
		     {3, 4, 2, 0},   {11, 0, 3, 0},  {11, 1, 3, 1}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].type4 == packet->icmp_type && pairs[i].code4 == packet->icmp_code) {
			packet->icmp_type = pairs[i].type6;
			packet->icmp_code = pairs[i].code6;
			return;
		}
	errx(1, "ICMP type %u code %u has no counterpart", packet->icmp_type, packet->icmp_code);
}

/* IPv4 options become an extension header; only IPv4 allows UDP without a checksum. */
static struct packet packet_over_ipv6(const struct packet *packet)
{
	struct packet other = *packet;

	if (packet->protocol == IPPROTO_ICMP)
		icmp_over_ipv6(&other);
	other.protocol = protocol_over_ipv6(packet->protocol);
	other.from = address_over_ipv6(packet->from);
	other.to = address_over_ipv6(packet->to);
	if (packet->ipv4_options)
		other.extensions = "d";
	other.ipv4_options = 0;
	if (packet->protocol == IPPROTO_UDP)
		other.without_checksum = false;
	return other;
}

static void entry_over_ipv6(struct entry *entry)
{
	entry->protocol = protocol_over_ipv6(entry->protocol);
	entry->inside = address_over_ipv6(entry->inside);
	entry->outside = address_over_ipv6(entry->outside);
	entry->external = address_over_ipv6(entry->external);
}

static struct packet quoting_over_ipv6(const struct packet *packet, struct packet *quoted)
{
	struct packet other = packet_over_ipv6(packet);

	if (packet->quotes) {
		*quoted = packet_over_ipv6(packet->quotes);
		other.quotes = quoted;
	}
	return other;
}

void row_over_ipv6(struct row *other, struct packet quoted[2], const struct row *row)
{
	*other = *row;
	other->in = quoting_over_ipv6(&row->in, &quoted[0]);
	other->out = quoting_over_ipv6(&row->out, &quoted[1]);
	other->socket.address = address_over_ipv6(row->socket.address);
	other->socket.peer = address_over_ipv6(row->socket.peer);
	other->new_source.address = address_over_ipv6(row->new_source.address);
	other->new_destination.address = address_over_ipv6(row->new_destination.address);
	for (int i = 0; i < ROW_HOLDS; i++)
		entry_over_ipv6(&other->holds[i]);
	for (int i = 0; i < ROW_ENTRIES; i++)
		entry_over_ipv6(&other->flows[i]);
	entry_over_ipv6(&other->adds);
}
