/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result.h - results of every CNI version, read into one plain form.
 */
#ifndef CNI_RESULT_H
#define CNI_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cni/address.h"
#include "cni/error.h"

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

/* A prevResult under a configuration of this (supported) version. Its own cniVersion
 * may be missing, or another of the same family; of another family: 7. Wrong types and
 * null elements: 6; text that is no address: 7. Keys of other families are ignored. */
int cni_result_read(struct cni_result *result, const json_t *json, const char *version,
		    struct cni_error *err);
void cni_result_release(struct cni_result *result);

/* Whether the address is the container's own on that interface. Not if its interface
 * has another name or no sandbox; an address without interface is. */
bool cni_result_address_is_on(const struct cni_result *result,
			      const struct cni_result_address *address, const char *ifname);

/* The first address of the family that is on the interface, or NULL. */
const struct cni_result_address *cni_result_first_address(const struct cni_result *result,
							  bool ipv4, const char *ifname);

/* A copy that says it is of this version, with all keys, known or not, in their order:
 * what a chained plugin that changes nothing prints. A new reference, or NULL. */
json_t *cni_result_relabel(const json_t *json, const char *version, struct cni_error *err);

/* The result in another version's shape; both versions are supported ones. Within a
 * family: a relabelled copy. A new reference, or NULL and code 6 or 7. */
json_t *cni_result_convert(const json_t *json, const char *from, const char *to,
			   struct cni_error *err);

#endif
