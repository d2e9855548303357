/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repair.h - `bpf-portmap repair`: brings what is in the kernel to where the living containers want
 * it. With --dry-run each part only says what it would change.
 */
#ifndef OPERATOR_REPAIR_REPAIR_H
#define OPERATOR_REPAIR_REPAIR_H

#include "host/host.h"
#include "operator/options.h"
#include "operator/print/items.h"
#include "operator/view/view.h"

/* One run, and what it changed. */
struct repair {
	const struct options *options;
	struct host host;
	struct view view; /* of the host's datapath */
	struct items items;
	size_t attachments; /* of containers that are gone */
	size_t interfaces;
	size_t of_portmap; /* containers whose rules of portmap were removed */
};

/* Removes what containers have left whose veth is gone. A failure does not end it; codes of
 * attachment_remove.h. */
int repair_abandoned(struct repair *repair, struct cni_error *err);

/* Removes portmap's rules of containers that are gone. Codes of portmap_gone.h. */
int repair_rules_of_portmap(struct repair *repair, struct cni_error *err);

/* Attaches what is missing, at the host's sockets too, and at interfaces with these names; follows
 * the host's ephemeral ports. Codes of host_settle(). */
int repair_interfaces(struct repair *repair, char *const *names, struct cni_error *err);

/* For struct host: says what was changed at an interface; `context` is the repair. */
void repair_say_interface(const char *interface, const char *what, void *context);

#endif
