/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * uplinks.h - which of the host's interfaces are to be uplinks: what the configuration says,
 * what the interface is, and what was decided before.
 *
 * Classification is the host's, not one list's: what one list has as uplink, no other list
 * makes less of it; what one list leaves alone because its "uplinks" name others, another one
 * may make an uplink; what a list excludes by "excludeInterfaces" becomes an uplink only where
 * somebody names it.
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

enum step {
	STEP_KEEP,        /* as it is; also: nothing to do with us */
	STEP_ATTACH,      /* make it an uplink */
	STEP_LEAVE_ALONE, /* write down that it is none */
	STEP_EXCLUDE,     /* write down that its addresses are never mapped */
};

/* `known`: what stands in the map, or NULL. `reachable`: it has an address that is not
 * link-local. */
enum step uplink_step(enum wish wish, const struct interface *known, bool reachable);

#define WHY_NOT_SIZE 128

/* Whether programs can be attached there as the host's. False: `why` says why not, as a
 * phrase that follows the name. */
bool uplink_is_possible(struct host *host, const struct link *link, char why[WHY_NOT_SIZE]);

/* Where it is possible: the role, and what else belongs to an attach. */
void uplink_target(const struct conf *conf, const struct link *link, struct attach_target *target);

#endif
