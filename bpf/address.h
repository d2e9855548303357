/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address.h - addresses of both families as 16 bytes, IPv4 as ::ffff:a.b.c.d. */
#pragma once

#include <bpf/bpf_endian.h>
#include "maps.h"

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define ETH_P_ARP 0x0806
#define ETH_HLEN 14
#define ETH_ALEN 6
#define AF_INET 2
#define AF_INET6 10

struct address {
	__u8 bytes[16];
} __attribute__((aligned(8)));

/* Every address is at an offset divisible by 8, in a struct aligned to 8. */
INLINE __u64 *address_halves(const __u8 *address)
{
	return (__u64 *)__builtin_assume_aligned(address, 8);
}

INLINE void address_copy(__u8 *to, const __u8 *from)
{
	address_halves(to)[0] = address_halves(from)[0];
	address_halves(to)[1] = address_halves(from)[1];
}

INLINE bool address_equal(const __u8 *a, const __u8 *b)
{
	/* Without a branch, at which the verifier would go two ways */
	return !((address_halves(a)[0] ^ address_halves(b)[0]) |
		 (address_halves(a)[1] ^ address_halves(b)[1]));
}

INLINE void address_from_ipv4(__u8 *address, __be32 ipv4)
{
	address_halves(address)[0] = 0;
	address_halves(address)[1] = bpf_cpu_to_be64(0x0000ffff00000000ULL | bpf_ntohl(ipv4));
}

INLINE __be32 address_to_ipv4(const __u8 *address)
{
	return ((__be32 *)__builtin_assume_aligned(address, 8))[3];
}

INLINE bool address_is_ipv4(const __u8 *address)
{
	return address_halves(address)[0] == 0 &&
	       (bpf_be64_to_cpu(address_halves(address)[1]) >> 32) == 0xffff;
}

/* A product's high bits depend on all bits of the factor below them. */
INLINE __u64 hash_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word ^ word >> 32) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Of a structure that is a whole number of words, without padding */
INLINE __u64 hash_words(const void *structure, __u32 size)
{
	const __u64 *words = structure;
	__u64 hash = 0;

	for (__u32 i = 0; i < size / sizeof(__u64); i++)
		hash = hash_mix(hash, words[i]);
	return hash;
}

INLINE bool words_equal(const void *one, const void *other, __u32 size)
{
	const __u64 *words = one, *others = other;
	__u64 differences = 0;

	for (__u32 i = 0; i < size / sizeof(__u64); i++)
		differences |= words[i] ^ others[i];
	return !differences;
}

INLINE bool address_is_unset(const __u8 *address)
{
	return address_halves(address)[0] == 0 && address_halves(address)[1] == 0;
}

INLINE bool address_is_ipv6_link_local(const __u8 *address)
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

/* The IP stack drops loopback addresses that arrive on the wire, as martians. */
INLINE bool address_is_loopback(const __u8 *address)
{
	if (address_is_ipv4(address))
		return address[12] == 127;
	return address_halves(address)[0] == 0 && address_halves(address)[1] == bpf_cpu_to_be64(1);
}

/* Returns whether it is multicast of either family, or IPv4's limited broadcast. */
INLINE bool address_is_group(const __u8 *address)
{
	if (!address_is_ipv4(address))
		return address[0] == 0xff;
	return (address[12] & 0xf0) == 0xe0 || address_to_ipv4(address) == 0xffffffff;
}

/* prefix_length counts in the address's own family. */
INLINE bool address_same_subnet(const __u8 *a, const __u8 *b, __u8 prefix_length)
{
	__u64 difference_high = bpf_be64_to_cpu(address_halves(a)[0] ^ address_halves(b)[0]);
	__u64 difference_low = bpf_be64_to_cpu(address_halves(a)[1] ^ address_halves(b)[1]);
	__u32 bits = prefix_length + (address_is_ipv4(a) ? 96 : 0);

	if (bits == 0)
		return true;
	if (bits <= 64)
		return difference_high >> (64 - bits) == 0;
	if (bits > 128)
		bits = 128;
	return difference_high == 0 && difference_low >> (128 - bits) == 0;
}
