/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fast_path.h - where packets must not skip the IP stack, because they would skip what somebody
 * else has hung in their way, too.
 */
#ifndef HOST_FAST_PATH_H
#define HOST_FAST_PATH_H

#include "host/container.h"

/* The mode that the container's flows have: off also where its bandwidth may be limited and the
 * programs cannot see that for themselves. Call it when the programs are loaded. */
void fast_path_choose_mode(const struct host *host, struct container *container);

/* Bars the container's veth from the fast path, in what ADD is to write, where somebody else has a
 * program or a qdisc at its veth or bridge, or the host has IPsec policies, and warns of it. Call
 * it when our programs are there; `new_qdisc`: for which the veth got its qdisc just now. */
void fast_path_decide(const struct host *host, struct container *container, bool new_qdisc);

/* Whether somebody else's program hangs behind ours at an uplink. */
bool fast_path_is_barred_at_uplink(const struct host *host, uint32_t ifindex,
				   const struct interface *interface);

/* Writes down whether, if that is no longer as it was. Codes 102, 11. */
int fast_path_refresh_uplink(struct host *host, uint32_t ifindex, const struct interface *known,
			     struct cni_error *err);

/* The same for a container's veth, and its bridge; with a warning where it is barred. */
int fast_path_check_container(struct host *host, uint32_t ifindex, struct cni_error *err);

/* The same for all uplinks; and for all containers. Codes 102, 5, 11. */
int fast_path_refresh_uplinks(struct host *host, struct cni_error *err);
int fast_path_refresh(struct host *host, struct cni_error *err);

#endif
