/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflist_find.h - finds a conflist by its path or by the network's name.
 */
#ifndef CNIRUN_CONFLIST_FIND_H
#define CNIRUN_CONFLIST_FIND_H

#include "lib/error.h"
#include "cnirun/conflist.h"

/* Finds and reads one. A path contains a slash or ends with .conflist, .conf or .json. A name is
 * looked up in NETCONFPATH: first in *.conflist, then in *.conf and *.json together, in the order
 * of the files' names. An invalid file before the right one is an error. CNI_ERROR_IO,
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err);

#endif
