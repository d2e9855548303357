/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - what has to be changed at the hooks of one interface, so that each program that its
 * role has hangs there exactly once and is the pinned one; and what of others hangs there: what
 * runs before ours, and what the fast path would skip.
 */
#pragma once

#include "datapath/attach/hooks.h"
#include "plan/look.h"

#define MISSING_SIZE 128

struct hooks_wanted {
	const struct hooks_look *hooks;
	const uint32_t *program_ids;
	const struct interface *entry; /* as it is to be: its role says which programs */
	const char *name;              /* of the interface, for messages */
};

/* `missing`: what is not there, as a phrase, or "". A container's attach mode is an order, a host
 * interface's a wish: one conflist must not fail because of what is on an interface of the host.
 * CNI_ERROR_KERNEL_REFUSED where an order cannot be obeyed. */
int plan_hooks(struct hook_changes *changes, const struct hooks_wanted *wanted,
	       char missing[MISSING_SIZE], struct cni_error *err);

/* Takes away those that the entry's role has: another one of ours may be a container's, whose ADD
 * is under way. */
void plan_no_hooks(struct hook_changes *changes, const struct hooks_look *hooks,
		   const struct interface *entry);

/* Returns by which mechanism our program hangs at the hook when the changes are made. */
enum mechanism plan_mechanism(const struct hook_changes *changes, const struct hooks_look *hooks,
			      enum hook hook);

/* Returns what of others runs first, before our program at the hook, which hangs there by the
 * mechanism; NULL: nothing. One that answers TC_ACT_OK, or anything but "go on", ends the chain:
 * ours never sees the packet, and a mapped port is dead. The verdicts of others' programs are not
 * visible, and most (those that count or trace) let packets go on, so this is worth a warning. */
const struct hung *others_ahead(const struct hooks_look *hooks, enum hook hook,
				enum mechanism ours);

/* The fast path takes a packet from our program at the hook where it enters to the one where it
 * leaves: what hangs behind the first, or anywhere at the host's end of a container's veth or at
 * its bridge, does not see it. */

/* Returns whether a program or filter hangs behind ours at ingress, which hangs there by the
 * mechanism. */
bool others_behind(const struct hooks_look *hooks, enum mechanism ours);

/* What packets must not skip. */
struct bar {
	bool program;   /* a program that our programs cannot see */
	bool watched;   /* what they see by themselves where programs_see_qdiscs is set */
	bool surprises; /* it is no limit, which is there to hold packets up */
	char what[IF_NAMESIZE + 96]; /* for messages: the first one */
};

/* Returns what is not ours at a container's veth or at its bridge (NULL: none), and the host's
 * IPsec policies. The IP stack looks those up for what it forwards, before it translates the
 * source: a policy for the host's own address matches no packet of a container. */
struct bar others_bar(const struct look *look, const struct interface_look *veth,
		      const struct interface_look *bridge);
