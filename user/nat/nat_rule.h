/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_rule.h - what one rule of a NAT table says about the destination of packets.
 *
 * Filled from iptables' and nftables' binary forms, which may hold anything: whatever is not
 * understood is no condition. Ports in host byte order. Without any I/O.
 */
#pragma once

#include <linux/types.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"

#define NAT_RULE_RANGES 16
#define NAT_NAME_SIZE 64
#define NAT_COMMENT_SIZE 256

/* What somebody else has written: a match's conditions, a text, attributes. */
struct bytes {
	const uint8_t *data;
	size_t size;
};

/* What somebody wants to know about: ports that are mapped, or may be. */
struct nat_asked {
	const struct portmap_key *keys;
	size_t key_count;
	/* Of the host: those that a key for any address means. */
	const uint8_t (*addresses)[CNI_ADDRESS_SIZE];
	size_t address_count;
};

/* A set of nftables that the packet's port or address is looked up in, or a verdict map. Offsets
 * into an element's key; -1: the key has no such field. */
struct nat_lookup {
	char set[NAT_COMMENT_SIZE]; /* "": there is none */
	bool is_verdict;            /* each element says which chain to jump to */
	int port_at, protocol_at, address_at;
};

struct nat_rule {
	bool legacy;    /* of iptables-legacy, whose tables cannot be changed rule by rule */
	uint8_t family; /* of its table, by NFPROTO_ */
	char table[NAT_NAME_SIZE];
	uint64_t handle; /* 0 in iptables-legacy */
	uint8_t hooks;   /* bits of enum nat_hook: from where packets come to it */
	bool restricted; /* it has conditions that are not known here */
	/* It has one that what comes to an address of this host meets: that it is one, or is no
	 * loopback address; or that it has not come in by this interface. */
	bool excepts;
	bool not_loopback;
	char except_interface[IFNAMSIZ]; /* "": none */
	/* Whatever meets its conditions is translated, as far as is known: it has no others, and
	 * nor has one of the rules that it leads to. */
	bool whole;
	bool jumps;
	char target[NAT_COMMENT_SIZE]; /* the chain that it jumps to */
	size_t target_offset;          /* of iptables-legacy: where that chain begins */
	const char *verdict; /* "dnat", "redirect", "tproxy"; NULL: no other destination */
	bool ipv4, ipv6;     /* packets of these families may match */
	uint8_t protocol;    /* 0: any */
	bool names_port;     /* it has a condition on the destination port */
	struct port_range ports[NAT_RULE_RANGES];
	size_t range_count;
	uint8_t address[CNI_ADDRESS_SIZE]; /* of the destination, under the mask */
	uint8_t mask[CNI_ADDRESS_SIZE];    /* zero: any */
	struct nat_lookup lookup, address_lookup;
	uint8_t new_address[CNI_ADDRESS_SIZE]; /* DNAT; all zero: not known */
	uint16_t new_port;                     /* 0: not known, or not changed */
	bool is_one_of_several; /* these are: connections are shared out among more */
	char chain_name[NAT_NAME_SIZE];
	char comment[NAT_COMMENT_SIZE]; /* "": none */
};

/* Makes it a rule without conditions. */
void nat_rule_begin(struct nat_rule *rule, bool ipv4, bool ipv6);

/* Adds a condition: the packet's port is in one of the ranges, or in none of them. */
void nat_rule_limit_ports(struct nat_rule *rule, const struct port_range *ranges, size_t count);
void nat_rule_exclude_ports(struct nat_rule *rule, const struct port_range *range);

/* Adds a condition: the packet's destination begins with these bytes; of IPv4 or else of IPv6. mask
 * NULL: all ones. */
void nat_rule_limit_address(struct nat_rule *rule, bool ipv4, const uint8_t *bytes,
			    const uint8_t *mask, size_t size);

/* Copies the front of what has at least this size. */
bool bytes_copy_front(void *to, size_t size, struct bytes bytes);
/* Copies as text of one line that any terminal may get. */
void nat_text_copy(char *to, size_t room, struct bytes text);

/* Adds the conditions of a rule that leads to this one. False: nothing meets both. */
bool nat_rule_limit_to(struct nat_rule *rule, const struct nat_rule *outer);

/* Returns whether a packet to this address and port can match, as far as the rule itself says. */
bool nat_rule_may_match(const struct nat_rule *rule, uint8_t protocol,
			const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);
/* Returns whether the rule may take what comes to this port, at one of its addresses; for any
 * address, at one of those that are given. A rule that has only been read has no hooks yet, and may
 * be at each. */
bool nat_rule_may_take(const struct nat_rule *rule, const struct portmap_key *key,
		       const struct nat_asked *asked);
/* Returns whether it may take one of the ports, whose keys ascend by port: thousands of rules are
 * asked about thousands of keys. */
bool nat_rule_is_asked_for(const struct nat_rule *rule, const struct nat_asked *asked);
bool nat_rule_holds_address(const struct nat_rule *rule, const uint8_t address[CNI_ADDRESS_SIZE]);
bool nat_rule_has_any_address(const struct nat_rule *rule);
