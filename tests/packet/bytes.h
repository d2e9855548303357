/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bytes.h - writes and reads the bytes of a frame, for whoever builds or parses one. */
#pragma once

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "frame.h"

static inline void put8(struct frame *frame, unsigned int value)
{
	assert(frame->length < FRAME_SIZE);
	frame->bytes[frame->length++] = (uint8_t)value;
}

static inline void put16(struct frame *frame, unsigned int value)
{
	put8(frame, value >> 8);
	put8(frame, value);
}

static inline void put32(struct frame *frame, uint32_t value)
{
	put16(frame, value >> 16);
	put16(frame, value);
}

static inline void put_bytes(struct frame *frame, const void *bytes, size_t size)
{
	assert(frame->length + size <= FRAME_SIZE);
	memcpy(frame->bytes + frame->length, bytes, size);
	frame->length += size;
}

static inline void write16(struct frame *frame, size_t offset, unsigned int value)
{
	frame->bytes[offset] = (uint8_t)(value >> 8);
	frame->bytes[offset + 1] = (uint8_t)value;
}

static inline uint16_t read16(const struct frame *frame, size_t offset)
{
	return (uint16_t)(frame->bytes[offset] << 8 | frame->bytes[offset + 1]);
}

/* UDP and UDP-Lite */
static inline bool is_udp(int protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE;
}

/* The checksum's offset in a transport header; 0: unknown or none. */
static inline size_t checksum_offset(int protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return 6;
	case IPPROTO_SCTP:
		return 8;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	default:
		return 0;
	}
}

/* Of SCTP, in little endian */
static inline void write_crc(struct frame *frame, size_t offset, uint32_t crc)
{
	for (size_t i = 0; i < 4; i++)
		frame->bytes[offset + i] = (uint8_t)(crc >> 8 * i);
}
