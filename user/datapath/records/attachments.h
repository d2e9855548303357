/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachments.h - which attachments there are, and what they are called in the maps:
 * "network/containerID/ifname".
 */
#ifndef DATAPATH_RECORDS_ATTACHMENTS_H
#define DATAPATH_RECORDS_ATTACHMENTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"
#include "lib/error.h"
#include "datapath/load/datapath.h"

/* Makes the key. CNI_ERROR_INVALID_ENVIRONMENT if that is too long. */
int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err);

struct attachment_name {
	char text[ATTACHMENT_KEY_SIZE + 1]; /* where they lie */
	const char *network, *container_id, *ifname;
};

/* Splits a key as it stands in a map. Returns false where it is none. */
bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name);

bool attachments_are_of_one_container(const char one[ATTACHMENT_KEY_SIZE],
				      const char other[ATTACHMENT_KEY_SIZE]);

struct attachment_entry {
	struct attachment_key key; /* as it stands in the map: a damaged one may lack its NUL */
	struct attachment attachment;
};

/* Lists all attachments; *entries is malloc'ed. CNI_ERROR_KERNEL_REFUSED. */
int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err);

#endif
