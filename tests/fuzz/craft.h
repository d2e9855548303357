/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* craft.h - builds sound packets, and spoils them. */
#ifndef BPF_PORTMAP_TESTS_CRAFT_H
#define BPF_PORTMAP_TESTS_CRAFT_H

#include "wire.h"

/* Both addresses of one family. */
struct craft {
	uint8_t source[16];
	uint8_t destination[16];
	uint16_t source_port; /* of an echo: the identifier stands on the asker's side */
	uint16_t destination_port;
	uint8_t protocol;
	uint8_t tcp_flags;
	bool echo_reply;
	/* An ICMP error instead: about this frame's packet */
	const struct frame *about;
};

/* Options, extension headers, payload, padding and the like are random. */
void craft_frame(struct frame *frame, const struct craft *craft);

/* One to five VLAN tags in front, most of them of no VLAN. */
void craft_tag(struct frame *frame);

/* Bytes, lengths, offsets, checksums: one to three of them. */
void craft_spoil(struct frame *frame);

#endif
