/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - what has to be changed at the hooks of one interface, so that each program that its
 * role has hangs there exactly once and is the pinned one; and what of others runs before ours.
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

/* Returns whether it is one of our programs. */
static inline bool hung_is_ours(const struct hung *hung)
{
	return hung->program != PROGRAM_COUNT;
}

/* Returns whether something of others hangs at the hook by this mechanism. */
bool others_hang(const struct hook_look *hook, enum mechanism mechanism);

/* Returns what of others runs first, before our program at the hook, which hangs there by the
 * mechanism; NULL: nothing. One that answers TC_ACT_OK, or anything but "go on", ends the chain:
 * ours never sees the packet, and a mapped port is dead. The verdicts of others' programs are not
 * visible, and most (those that count or trace) let packets go on, so this is worth a warning. */
const struct hung *others_ahead(const struct hooks_look *hooks, enum hook hook,
				enum mechanism ours);
