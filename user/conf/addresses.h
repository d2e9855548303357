/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.h - options that are lists of addresses, or of address ranges with exceptions.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "conf/option.h"

/* Returns whether no packet to a mapped port can have this address: a mapping would stay silent. */
bool conf_is_never_mapped(const uint8_t address[CNI_ADDRESS_SIZE]);

/* Returns whether the address is meant: the first range that holds it decides, else false. */
bool conf_ranges_hold(const struct address_range *ranges, size_t count,
		      const uint8_t address[CNI_ADDRESS_SIZE]);

/* Reads ["10.0.0.0/8", "!10.1.0.0/16", "192.0.2.1"]. Bits behind the prefix are cleared, with a
 * warning; each range is kept once, the longest prefix first. Where `one_is_none`, exceptions alone
 * are refused. */
int conf_read_ranges(struct address_range ranges[POLICY_RANGES], __u8 *count,
		     const struct given *given, bool one_is_none, struct cni_error *err);

/* Reads ["203.0.113.7", "2001:db8::7"]: addresses of the host to masquerade with. */
int conf_read_sources(struct policy *policy, const struct given *given, struct cni_error *err);
