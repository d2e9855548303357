/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * others.h - programs, filters and qdiscs of others beside ours: which run before ours, and which
 * the fast path would skip.
 */
#ifndef PLAN_OTHERS_H
#define PLAN_OTHERS_H

#include "plan/look.h"

/* Returns whether something of others hangs at the hook by this mechanism. */
bool others_hang(const struct hook_look *hook, enum mechanism mechanism);

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

/* What packets must not skip. Begins as {0}. */
struct bar {
	bool program;   /* a program that our programs cannot see */
	bool watched;   /* what they see by themselves where programs_see_qdiscs is set */
	bool surprises; /* it is no limit, which is there to hold packets up */
	char what[IF_NAMESIZE + 96]; /* for messages: the first one */
};

/* Adds what is not ours at a container's veth, or at its bridge. */
void others_bar(const struct look *look, const struct interface_look *interface, struct bar *bar);

/* Adds the host's IPsec policies. The IP stack looks them up for what it forwards, before it
 * translates the source: a policy for the host's own address matches no packet of a container. */
void others_bar_by_policies(const struct look *look, struct bar *bar);

#endif
