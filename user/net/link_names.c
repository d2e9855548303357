/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* link_names.c - names and indexes of interfaces. */
#include "net/link_names.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "net/netlink.h"

struct listing {
	struct link_name *names;
	size_t count, capacity;
};

/* Any socket serves, and rtnetlink would wait for whoever changes interfaces just now. */
bool link_name(struct nl_sock *socket, uint32_t ifindex, char name[IF_NAMESIZE])
{
	struct ifreq request = {.ifr_ifindex = (int)ifindex};

	if (ioctl(nl_socket_get_fd(socket), SIOCGIFNAME, &request))
		return false;
	memcpy(name, request.ifr_name, IF_NAMESIZE);
	name[IF_NAMESIZE - 1] = '\0';
	return true;
}

uint32_t link_index(const char *name)
{
	return if_nametoindex(name);
}

static int parse_link(struct nl_msg *message, void *context)
{
	struct listing *listing = context;
	struct ifinfomsg *header = nlmsg_data(nlmsg_hdr(message));
	struct nlattr *name = nlmsg_find_attr(nlmsg_hdr(message), sizeof(*header), IFLA_IFNAME);
	struct link_name *added;

	if (!name)
		return NL_OK;
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
		void *grown = realloc(listing->names, capacity * sizeof(*listing->names));

		if (!grown)
			return -NLE_NOMEM;
		listing->names = grown;
		listing->capacity = capacity;
	}
	added = &listing->names[listing->count++];
	added->ifindex = (uint32_t)header->ifi_index;
	nla_strlcpy(added->name, name, sizeof(added->name));
	return NL_OK;
}

int link_names_read(struct nl_sock *socket, struct link_name **names, size_t *count,
		    struct cni_error *err)
{
	struct {
		struct ifinfomsg header;
		struct nlattr attribute;
		uint32_t filter;
	} request = {
		.attribute = {.nla_len = NLA_HDRLEN + sizeof(uint32_t), .nla_type = IFLA_EXT_MASK},
		.filter = RTEXT_FILTER_SKIP_STATS,
	};
	struct listing listing = {0};
	int result = netlink_get(socket, RTM_GETLINK, NLM_F_DUMP, &request, sizeof(request),
				 parse_link, &listing);

	/* What comes or goes meanwhile is somebody's next look. */
	if (!result || result == -NLE_DUMP_INTR) {
		*names = listing.names;
		*count = listing.count;
		return 0;
	}
	free(listing.names);
	return cni_error_set(err, CNI_ERROR_IO, "cannot list the host's interfaces: %s",
			     nl_geterror(result));
}
