/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.h - options that are lists of addresses, or of address ranges with exceptions; and
 * portmap's "conditionsV4" and "conditionsV6", words of iptables, as such options.
 */
#pragma once

#include <jansson.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "conf/option_types.h"

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

/* Returns a new object of the keys that let in and keep out the same clients. NULL: not all of
 * these conditions have such a key. */
json_t *conditions_translate(const json_t *config);

/* Returns the keys as they stand in a list: "excludeCIDRs": ["192.0.2.1"]. malloc'ed. */
char *conditions_print(const json_t *keys);
