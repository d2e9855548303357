/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* uplinks.c - which of the host's interfaces are to be uplinks. */
#include "host/uplinks.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/memory.h"
#include "datapath/attach/attach_verify.h"
#include "datapath/load/maps.h"

enum wish uplink_wish(const struct conf *conf, const char *interface)
{
	if (conf_names_interface(&conf->excluded_interfaces, interface))
		return WISH_EXCLUDED;
	if (!conf->uplinks.count)
		return WISH_ANY;
	return conf_names_interface(&conf->uplinks, interface) ? WISH_NAMED : WISH_NOT;
}

int uplinks_list_named(const struct host *host, const struct conf *conf, struct link_name **links,
		       size_t *count, struct cni_error *err)
{
	const struct interface_names *names = &conf->uplinks;
	size_t candidates = names->count, kept = 0;
	bool has_glob = false;

	*links = NULL;
	*count = 0;
	if (!names->count)
		return 0;
	for (size_t i = 0; i < names->count; i++)
		has_glob |= conf_is_glob(names->patterns[i]);
	/* All interfaces are listed only where there is a glob. */
	if (has_glob) {
		if (link_names_read(host->socket, links, &candidates, err))
			return -1;
	} else {
		*links = need(calloc(candidates, sizeof(**links)));
		for (size_t i = 0; i < candidates; i++) {
			(*links)[i].ifindex = link_index(names->patterns[i]);
			snprintf((*links)[i].name, IF_NAMESIZE, "%s", names->patterns[i]);
		}
	}
	for (size_t i = 0; i < candidates; i++)
		if ((*links)[i].ifindex && uplink_wish(conf, (*links)[i].name) == WISH_NAMED)
			(*links)[kept++] = (*links)[i];
	*count = kept;
	return 0;
}

bool uplink_is_served(const struct host *host, uint32_t ifindex)
{
	struct interface interface;

	return interface_read(&host->datapath.objects, ifindex, &interface) &&
	       (interface.role == ROLE_UPLINK || interface.role == ROLE_BRIDGE);
}

enum step uplink_step(enum wish wish, const struct interface *known, bool reachable)
{
	bool is_uplink = known && known->role != ROLE_LEFT_ALONE;
	bool is_excluded = known && known->addresses_excluded;

	switch (wish) {
	case WISH_EXCLUDED:
		return is_excluded ? STEP_KEEP : STEP_EXCLUDE;
	case WISH_NAMED:
		return is_uplink ? STEP_KEEP : STEP_ATTACH;
	case WISH_NOT:
		return !known && reachable ? STEP_LEAVE_ALONE : STEP_KEEP;
	default:
		return !is_uplink && !is_excluded && reachable ? STEP_ATTACH : STEP_KEEP;
	}
}

bool uplink_is_possible(const struct host *host, const struct link *link, char why[WHY_NOT_SIZE])
{
	cleanup_error struct cni_error ignored = {0};
	struct link master = {0};

	if (!link->ifindex)
		snprintf(why, WHY_NOT_SIZE, "does not exist");
	else if (link->flags & IFF_LOOPBACK)
		snprintf(why, WHY_NOT_SIZE, "is the loopback interface");
	else if (link->flags & IFF_SLAVE)
		snprintf(why, WHY_NOT_SIZE, "belongs to a bond, which is the one to attach to");
	else if (link->header == LINK_HEADER_OTHER)
		/* The programs would look for the IP header in the wrong place. Without an entry
		 * from_container lets nothing masqueraded out there. */
		snprintf(why, WHY_NOT_SIZE, "has frames that begin with neither Ethernet nor IP");
	else if (link_is_kind(link, "veth") && attach_is_container_veth(link->ifindex))
		/* A ptp container's, whose own ADD is under way or whose DEL has begun. */
		snprintf(why, WHY_NOT_SIZE, "belongs to a container");
	else if (link->master && !link_get(host->socket, link->master, NULL, &master, &ignored) &&
		 link_is_kind(&master, "bridge"))
		snprintf(why, WHY_NOT_SIZE,
			 "is a port of the bridge %s, which is the one to attach to", master.name);
	else
		return true;
	return false;
}

void uplink_target(const struct conf *conf, const struct link *link, struct attach_target *target)
{
	*target = (struct attach_target){
		.ifindex = link->ifindex,
		.name = link->name,
		.interface.role = link_is_kind(link, "bridge") ? ROLE_BRIDGE : ROLE_UPLINK,
		.interface.without_link_header = link->header == LINK_HEADER_NONE,
		.interface.attach_mode = conf->attach,
	};
}
