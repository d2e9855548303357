/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* craft.h - builds valid packets, and damages them. */
#pragma once

#include "wire.h"

/* Both addresses must be of one family. */
struct craft {
	uint8_t source[16];
	uint8_t destination[16];
	uint16_t source_port; /* for an echo the identifier is the requester's port */
	uint16_t destination_port;
	uint8_t protocol;
	uint8_t tcp_flags;
	bool echo_reply;
	/* Not NULL: an ICMP error about this frame's packet */
	const struct frame *about;
};

/* Options, extension headers, payload, padding and the like are random. */
void craft_frame(struct frame *frame, const struct craft *craft);

/* Inserts one to five VLAN tags, most of them priority tags. */
void craft_tag(struct frame *frame);

/* Damages one to three bytes, lengths, offsets or checksums. */
void craft_spoil(struct frame *frame);
