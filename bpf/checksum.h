/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checksum.h - where the kernel will write the checksum that a packet's sender has left to it.
 *
 * A sender that leaves its checksum to the device (CHECKSUM_PARTIAL) says which bytes it covers and
 * where it belongs. A container may name any place (AF_PACKET with PACKET_VNET_HDR, or a tun device
 * behind it), and chooses the value by the bytes; the kernel writes it after programs and firewall
 * have judged the packet. So it must be the transport header's own or, as of a tunnel's inner
 * packet, lie behind the headers that are judged.
 */
#pragma once

#include "device_layout.h"
#include "parse.h"
#include "rewrite.h"

#define PROTOCOL_AUTHENTICATION 51 /* IPv6: firewalls look for ports behind it */
#define JUDGED_BYTES 6             /* of a transport header: ports, or type and identifier */

/* start: where the bytes begin that the checksum covers, counted from the IP header; offset: of its
 * field from there. */
INLINE bool checksum_is_own(const struct packet *packet, __u16 start, __u16 offset)
{
	enum protocol protocol = packet->tuple.protocol;

	return start == (__u16)(packet->l4_offset - packet->l3_offset) &&
	       offset == rewrite_checksum_field(protocol) &&
	       (packet_protocol_has_ports(protocol) || parse_is_icmp(packet, protocol));
}

/* Returns whether what follows the first bytes of the transport header may be written: not TCP's
 * flags and numbers, SCTP's chunks, what an error quotes, nor where that header was not found. */
INLINE bool checksum_may_be_inner(const struct packet *packet, enum packet_kind kind)
{
	__u8 protocol = packet->tuple.protocol;

	return protocol != PROTOCOL_TCP && protocol != PROTOCOL_SCTP && !packet->error &&
	       protocol != PROTOCOL_AUTHENTICATION && (protocol || kind != PACKET_OPAQUE);
}

INLINE bool checksum_is_misplaced(const struct packet *packet, enum packet_kind kind, __u16 start,
				  __u16 offset)
{
	__u32 transport = sizeof(struct iphdr); /* not IP, or tagged: unknown */

	if (packet->l4_offset)
		transport = packet->l4_offset - packet->l3_offset;
	return !checksum_may_be_inner(packet, kind) || (__s16)start < (__s32)transport ||
	       start + offset < transport + JUDGED_BYTES;
}

/* Returns whether the kernel would write the packet's checksum where it must not. */
INLINE bool checksum_refuses(struct __sk_buff *skb, const struct packet *packet,
			     enum packet_kind kind)
{
	__u16 start, offset;

	return device_writes_checksum(skb, &start, &offset) &&
	       !checksum_is_own(packet, start, offset) &&
	       checksum_is_misplaced(packet, kind, start, offset);
}
