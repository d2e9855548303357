/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * uplinks.h - which of the host's interfaces are to be uplinks: what the configuration says,
 * what the interface is, and what was decided before.
 *
 * If conflists disagree, an interface is an uplink as soon as one conflist makes it one. One that
 * is left alone because "uplinks" names others may become an uplink by another conflist. One that a
 * conflist excludes by "excludeInterfaces" becomes an uplink only where "uplinks" or an
 * administrator names it.
 */
#ifndef HOST_UPLINKS_H
#define HOST_UPLINKS_H

#include "conf/conf.h"
#include "datapath/attach/attach.h"
#include "net/link.h"
#include "host/host.h"

/* What the configuration says of an interface, by its name alone. */
enum wish {
	WISH_ANY,      /* an uplink if it can be one: "uplinks" is not given */
	WISH_NAMED,    /* an uplink: "uplinks" names it */
	WISH_NOT,      /* none: "uplinks" names others */
	WISH_EXCLUDED, /* none, and its addresses are never mapped: "excludeInterfaces" */
};

enum wish uplink_wish(const struct conf *conf, const char *interface);

/* Lists the interfaces that "uplinks" names; *links is malloc'ed, or NULL where it names none.
 * CNI_ERROR_IO. */
int uplinks_list_named(const struct host *host, const struct conf *conf, struct link_name **links,
		       size_t *count, struct cni_error *err);

/* Returns whether programs are at the interface because it is one of the host's uplinks. */
bool uplink_is_served(const struct host *host, uint32_t ifindex);

enum step {
	STEP_KEEP,        /* nothing */
	STEP_ATTACH,      /* make it an uplink */
	STEP_LEAVE_ALONE, /* write an entry that it is none */
	STEP_EXCLUDE,     /* write an entry that its addresses are never mapped */
};

/* Returns what follows from the wish. `known`: the interface's entry in the map, or NULL.
 * `reachable`: it has an address that is not link-local. */
enum step uplink_step(enum wish wish, const struct interface *known, bool reachable);

#define WHY_NOT_SIZE 128

/* Returns whether it can be an uplink. False: `why` says why not, as a phrase that follows the
 * name. */
bool uplink_is_possible(const struct host *host, const struct link *link, char why[WHY_NOT_SIZE]);

/* Fills in what to attach to an interface that can be an uplink. */
void uplink_target(const struct conf *conf, const struct link *link, struct attach_target *target);

#endif
