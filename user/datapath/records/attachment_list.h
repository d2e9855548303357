/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_list.h - which attachments there are.
 */
#ifndef DATAPATH_RECORDS_ATTACHMENT_LIST_H
#define DATAPATH_RECORDS_ATTACHMENT_LIST_H

#include "datapath/load/datapath.h"

struct attachment_entry {
	struct attachment_key key; /* as it stands in the map: a damaged one need not end */
	struct attachment attachment;
};

/* Lists all attachments; *entries is malloc'ed. CNI_ERROR_KERNEL_REFUSED. */
int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err);

#endif
