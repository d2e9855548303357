/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fast_path.h - whether a container's flows may skip the IP stack, and what bars them from that:
 * packets must not skip what others have put in their way.
 */
#pragma once

#include "plan/hooks.h"

/* Returns the mode of a container's flows, which is off, too, where bandwidth may be limited and
 * our programs cannot see that for themselves. */
enum fast_path plan_fast_path(const struct conf *conf, bool programs_see_qdiscs);

/* The fast path takes a packet from our program at the hook where it enters to the one where it
 * leaves: what hangs behind the first, or anywhere at the host's end of a container's veth or at
 * its bridge, does not see it. */

/* Returns whether a program or filter hangs behind ours at ingress, which hangs there by the
 * mechanism. */
bool others_behind(const struct hooks_look *hooks, enum mechanism ours);

/* What packets must not skip. Of what the programs see by themselves, where programs_see_qdiscs is
 * set, they judge anew each second (bpf/device.h): a reason of that kind stands there, too. */
struct bar {
	bool program;                /* a program that our programs cannot see */
	bool watched;                /* what they see by themselves */
	bool surprises;              /* it is no limit, which is there to hold packets up */
	char what[IF_NAMESIZE + 96]; /* for messages: the first one */
};

/* Returns what is not ours at a container's veth or at its bridge (NULL: none), and the host's
 * IPsec policies. The IP stack looks those up for what it forwards, before it translates the
 * source: a policy for the host's own address matches no packet of a container. */
struct bar others_bar(const struct look *look, const struct interface_look *veth,
		      const struct interface_look *bridge);
