/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* roles.c - which of our programs belongs at which hook of an interface. */
#include "datapath/attach/roles.h"

/* PROGRAM_COUNT: none at this hook. */
static const enum program_number programs_of_role[][HOOK_COUNT] = {
	[ROLE_UPLINK] = {PROGRAM_FROM_UPLINK, PROGRAM_TO_UPLINK},
	[ROLE_BRIDGE] = {PROGRAM_FROM_BRIDGE, PROGRAM_TO_CONTAINER},
	[ROLE_PORT] = {PROGRAM_FROM_CONTAINER, PROGRAM_COUNT},
	[ROLE_ROUTED] = {PROGRAM_FROM_CONTAINER, PROGRAM_TO_CONTAINER},
	[ROLE_LEFT_ALONE] = {PROGRAM_COUNT, PROGRAM_COUNT},
	[ROLE_LOOPBACK] = {PROGRAM_FROM_LOOPBACK, PROGRAM_COUNT},
};

/* For an uplink whose frames begin with the IP header. */
static const enum program_number raw_programs[HOOK_COUNT] = {
	PROGRAM_FROM_UPLINK_RAW,
	PROGRAM_TO_UPLINK_RAW,
};

bool interface_is_containers(const struct interface *interface)
{
	return interface->owner.slot != 0;
}

bool interface_is_served(const struct interface *interface)
{
	return interface->role == ROLE_UPLINK || interface->role == ROLE_BRIDGE;
}

enum program_number program_at(const struct interface *interface, enum hook hook)
{
	enum interface_role role = interface->role;

	if (role < ROLE_UPLINK || role > ROLE_LOOPBACK)
		return PROGRAM_COUNT;
	if (role == ROLE_UPLINK && interface->without_link_header)
		return raw_programs[hook];
	return programs_of_role[role][hook];
}

const char *hook_name(enum hook hook)
{
	return hook == HOOK_INGRESS ? "ingress" : "egress";
}
