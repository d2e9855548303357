/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look.h - what one look at the host found. host/interfaces.c fills it; plan/ decides by it alone.
 */
#pragma once

#include "conf/option_table.h"
#include "datapath/attach/hooks.h"
#include "net/address_list.h"
#include "net/link.h"

/* What the conflist of a network says about interfaces. The network has a living container, or is
 * the one that a container is added to. */
struct network_wish {
	const char *name;
	bool is_of_request;
	uint8_t number;                            /* struct network's */
	const char *uplinks, *excluded_interfaces; /* lists of names (conf/option_types.h) */
	enum attach_mode attach;
};

/* One interface that can concern us: it has an address, a conflist names it, or the map interfaces
 * has it. */
struct interface_look {
	struct link link;   /* number and name always; the rest where `is_read` */
	struct link master; /* where `is_read`: the bridge, bond or VRF that it belongs to */
	bool is_read;
	uint32_t bridge_behind; /* the bridge that it leads to, as a VLAN of it, or 0 */
	const struct addressed_interface *addressed; /* NULL: it has no address */
	bool is_known;
	struct interface entry; /* in the map; zeros where it is not known */
	bool has_hooks;         /* `hooks` says what hangs there */
	struct hooks_look hooks;
	bool is_gone;      /* since it was written into the map */
	bool is_named_now; /* an administrator names it with this command */
};

struct look {
	const struct address_list *addresses;
	const uint32_t *program_ids; /* of those that are pinned, by enum program_number */
	struct interface_look *interfaces;
	size_t count;
	struct network_wish *networks;
	size_t network_count;
	bool is_whole;            /* every entry of the map was read */
	bool has_ipsec_policies;  /* the host has some for outgoing or forwarded packets */
	bool programs_see_qdiscs; /* and filters, by themselves (struct meta) */
	struct host_veth veth;    /* of the container at hand; zeros: there is none */
	const struct conf *conf;  /* of that container */
	bool adds;                /* it has not been added yet, or is added again */
};

const struct interface_look *look_find(const struct look *look, uint32_t ifindex);
