/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * uplinks.h - which interfaces are uplinks: what the conflists of living networks say, and an
 * administrator. The order in which they said it decides nothing:
 *
 * - An interface that one of them names in "uplinks" is an uplink, whoever excludes it.
 * - Else one that has an address is an uplink if at least one of them gives no "uplinks" and does
 *   not exclude it.
 * - No port is mapped at the addresses of an interface that one of them excludes and none names.
 *
 * While no network has a container, nobody says anything, and all stays as it is.
 */
#pragma once

#include "plan/look.h"

/* What a conflist says of an interface, by its name alone. */
enum wish {
	WISH_ANY,      /* an uplink if it can be one: "uplinks" is not given */
	WISH_NAMED,    /* an uplink: "uplinks" names it */
	WISH_NOT,      /* none: "uplinks" names others */
	WISH_EXCLUDED, /* none, and its addresses are never mapped: "excludeInterfaces" */
};

enum wish uplink_wish(const struct network_wish *network, const char *interface);

/* What all of them together make of it. */
struct uplink_verdict {
	bool is_uplink;
	bool addresses_excluded;
	uint64_t refusing;       /* struct interface's: networks that have other uplinks */
	enum attach_mode attach; /* as the networks ask for that want it */
};

struct uplink_verdict uplink_decide(const struct look *look,
				    const struct interface_look *interface);

#define WHY_NOT_SIZE 128

/* Returns whether an interface that was read can be an uplink. False: `why` says why not, as a
 * phrase that follows the name. */
bool uplink_is_possible(const struct interface_look *interface, char why[WHY_NOT_SIZE]);

/* Returns whether a program hangs there that only a container's veth has. */
bool uplink_is_containers(const struct interface_look *interface);

/* Returns a sentence about what the network of the request wants of interfaces and does not get,
 * because another network wants something else; malloc'ed, NULL: it gets all. */
char *uplink_conflict(const struct look *look);

/* Returns a sentence where "uplinks" of the request's network match no interface that can be one;
 * malloc'ed, else NULL. */
char *uplink_unmatched(const struct look *look);
