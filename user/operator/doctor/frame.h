/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.h - an Ethernet frame for a probe. */
#ifndef OPERATOR_DOCTOR_FRAME_H
#define OPERATOR_DOCTOR_FRAME_H

#include <linux/types.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "net/link.h"

#define FRAME_MAX 128

/* Ports in host byte order. */
struct probe_packet {
	enum protocol protocol; /* TCP or UDP */
	uint8_t source[CNI_ADDRESS_SIZE];
	uint8_t destination[CNI_ADDRESS_SIZE];
	uint16_t source_port;
	uint16_t destination_port;
	bool is_reset; /* of TCP: ends what the same packet without this has begun */
};

/* One that begins a connection, SYN or an empty datagram, or ends it. Returns its length. */
uint32_t frame_make(uint8_t frame[FRAME_MAX], const struct probe_packet *packet,
		    const uint8_t destination[LINK_MAC_SIZE]);

#endif
