/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* result.h - results of every CNI version, read into one form. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address.h"
#include "lib/error.h"

/* Strings are borrowed from the JSON, "" where missing. */
struct cni_result_interface {
	const char *name;
	const char *mac;
	const char *sandbox; /* path of its netns; "": it is on the host */
};

struct cni_result_address {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length; /* in the address's own family */
	int interface;         /* index into interfaces, always in range; -1: none given */
};

/* Begins as {0}. */
struct cni_result {
	struct cni_result_interface *interfaces;
	size_t interface_count;
	struct cni_result_address *addresses;
	size_t address_count;
};

/* Reads a prevResult under a configuration of this (supported) version. Its own cniVersion may be
 * missing, or another of the same family; of another family: CNI_ERROR_INVALID_CONFIGURATION. Wrong
 * types and null elements: CNI_ERROR_DECODE; text that is no address:
 * CNI_ERROR_INVALID_CONFIGURATION. Keys of other families are ignored. */
int cni_result_read(struct cni_result *result, const json_t *json, const char *version,
		    struct cni_error *err);
void cni_result_release(struct cni_result *result);

#define cleanup_result __attribute__((cleanup(cni_result_release)))

/* Checks, for a supported version, what plugins of a list could not go on with: interfaces,
 * addresses, and destinations of routes, of which libcni would write "<nil>" for the next plugin.
 * What it does not know it leaves to them. The same errors, which name the field. */
int cni_result_validate(const json_t *json, const char *version, struct cni_error *err);

/* Returns whether the address is the container's on that interface: the result's interface has that
 * name and a sandbox, or the address has no interface. */
bool cni_result_address_is_on(const struct cni_result *result,
			      const struct cni_result_address *address, const char *ifname);

/* Returns the first address of the family that is on the interface, or NULL. */
const struct cni_result_address *cni_result_first_address(const struct cni_result *result,
							  bool ipv4, const char *ifname);

/* Makes a copy labelled with this version, with all keys, known or not, in their order. A chained
 * plugin that changes nothing prints it. A new reference. */
json_t *cni_result_relabel(const json_t *json, const char *version);
