/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_layout.h - reads the kernel's own structures (device_members.h), which RCU keeps in
 * memory. An invalid address reads as 0.
 */
#pragma once

#include "device_members.h"
#include "maps.h"

/* Set by the loader. It is constant for the verifier, which removes the code that it disables. */
const volatile struct device_layout device_layout = {};

static __u64 *(*const kernel_word)(__u64 address,
				   __u32 type) = (void *)KERNEL_FUNCTION_CALL(cast_address);

/* The low half is the value of a member of 32 bits. The kernel replaces the call of kernel_word(),
 * so that a read is one instruction, in place of a helper's 10 to 45 ns. */
INLINE __u64 device_read(__u64 address, __u32 offset)
{
	__u64 value = 0;

	if (device_layout.word)
		return *kernel_word(address + offset, device_layout.word);
	bpf_probe_read_kernel(&value, sizeof(value), (void *)(address + offset));
	return value;
}

static void *(*const kernel_skb)(void *skb) = (void *)KERNEL_FUNCTION_CALL(cast);

/* A member of the kernel's skb. Where the program can read it itself, no helper is needed. */
#define MEMBER(type, skb, member) \
	(device_layout.cast ? *(const type *)(kernel_skb(skb) + device_layout.member) \
			    : (type)device_read((__u64)(skb), device_layout.member))

/* Returns whether the packet's sender has left a checksum to the device (CHECKSUM_PARTIAL). start:
 * where the bytes begin that it covers, counted from the IP header; offset: of its field from
 * there. Where it cannot be read: no. */
INLINE bool device_writes_checksum(struct __sk_buff *skb, __u16 *start, __u16 *offset)
{
	const __u8 partial = device_layout.ip_summed_mask;

	if (!device_layout.checksum || (MEMBER(__u8, skb, skb_ip_summed) & partial) != partial)
		return false;
	*start = MEMBER(__u16, skb, skb_csum_start) - MEMBER(__u16, skb, skb_network_header);
	*offset = MEMBER(__u16, skb, skb_csum_offset);
	return true;
}
