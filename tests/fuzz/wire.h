/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wire.h - parses frames for the oracle, written from the RFCs alone. */
#pragma once

#include "../packet/bytes.h"
#include "../packet/keys.h"

enum wire_kind {
	WIRE_FOREIGN,  /* no valid IP, or addresses that are never translated */
	WIRE_OPAQUE,   /* IP of a kind that is not translated */
	WIRE_FRAGMENT, /* a later fragment of a packet that may be translated */
	WIRE_FLOW,
	WIRE_ERROR, /* an ICMP error that quotes a packet of a flow */
};

struct wire_header {
	size_t network; /* offsets in the frame */
	size_t transport;
	uint8_t protocol;
	uint8_t source[16];
	uint8_t destination[16];
	uint16_t source_port;
	uint16_t destination_port;
	bool echo_reply;
};

struct wire {
	enum wire_kind kind;
	bool ipv4;
	bool unreadable; /* extension headers hide what it is */
	size_t end;      /* of the IP packet */
	struct wire_header outer;
	struct wire_header quoted; /* of an error */
	uint8_t tcp_flags;
	uint32_t tcp_sequence;
	uint32_t tcp_acknowledgment;
	uint32_t tcp_length; /* of sequence numbers: payload, SYN, FIN */
	bool first_fragment; /* its checksum covers the whole datagram */
	uint32_t identification;
	uint8_t first_header; /* the type of the header after the fragment header */
};

void wire_read(const struct frame *frame, struct wire *wire);

/* TCP, UDP, UDP-Lite, SCTP */
bool wire_has_ports(uint8_t protocol);
/* Only the addresses are translated: GRE, ESP, ... */
bool wire_is_portless(uint8_t protocol);

uint32_t wire_read32_little(const struct frame *frame, size_t offset);

/* Also true for UDP over IPv4 without a checksum. */
bool wire_network_checksum_right(const struct frame *frame, const struct wire *wire);
bool wire_transport_checksum_right(const struct frame *frame, const struct wire *wire);
/* Recomputes both. */
void wire_write_checksums(struct frame *frame, const struct wire *wire);
