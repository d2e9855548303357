/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* roles.h - which of our programs belongs at which hook of an interface. */
#pragma once

#include "datapath/load/objects.h"

enum hook {
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOK_COUNT,
};

enum mechanism {
	MECHANISM_TCX,    /* Linux 6.6; runs before all filters */
	MECHANISM_CLSACT, /* a direct-action filter */
	MECHANISM_COUNT,
};

/* Returns whether the entry is that of a container's veth, which was claimed. */
bool interface_is_containers(const struct interface *interface);
/* Returns whether clients arrive and containers leave there: at an uplink, or a bridge. */
bool interface_is_served(const struct interface *interface);

/* Returns which program belongs at the hook; PROGRAM_COUNT: none, or the role is not known. Of an
 * interface's entry only what says that is looked at. */
enum program_number program_at(const struct interface *interface, enum hook hook);

/* "ingress", "egress" */
const char *hook_name(enum hook hook);
