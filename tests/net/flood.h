/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flood.h - what flood.c passes to flood.bpf.c; included after the packet headers' types. */
#pragma once

#define FLOOD_SOURCES 0x64400000u /* 100.64.0.0/10, RFC 6598 */
#define FLOOD_UDP 17
#define FLOOD_DATAGRAM 20 /* bytes of a UDP header and its payload */

/* A datagram has a UDP header and a payload where the TCP header would be. */
struct flood_headers {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

struct flood_plan {
	unsigned int ifindex;
	unsigned int own_source; /* the address in the headers, not a random one */
	struct flood_headers headers;
};
