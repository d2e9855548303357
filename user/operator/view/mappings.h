/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings.h - the mapped ports, with the connections that each has now.
 */
#ifndef OPERATOR_VIEW_MAPPINGS_H
#define OPERATOR_VIEW_MAPPINGS_H

#include "operator/options.h"
#include "operator/view/view.h"

struct mapping {
	struct portmap_key key;
	struct portmap portmap;
	uint32_t flows;     /* that are not closed */
	uint32_t half_open; /* of these, those that are not assured */
};

/* Ordered by port, protocol and address. Begins as {0}. */
struct mappings {
	struct mapping *list;
	size_t count;
};

/* CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int mappings_read(struct mappings *mappings, const struct view *view, struct cni_error *err);
/* Reads all connections. CNI_ERROR_KERNEL_REFUSED. */
int mappings_count_flows(struct mappings *mappings, struct view *view, struct cni_error *err);
void mappings_release(struct mappings *mappings);

/* Whether list shows it: `container` may be NULL. */
bool mapping_matches(const struct mapping *mapping, const struct container_info *container,
		     const struct options *options);

#define cleanup_mappings __attribute__((cleanup(mappings_release)))

#endif
