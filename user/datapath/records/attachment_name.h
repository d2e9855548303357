/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_name.h - what an attachment is called in the maps: "network/containerID/ifname".
 */
#ifndef DATAPATH_RECORDS_ATTACHMENT_NAME_H
#define DATAPATH_RECORDS_ATTACHMENT_NAME_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"
#include "lib/error.h"

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

#endif
