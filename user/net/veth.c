/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* veth.c - the host's end of a container's veth. */
#include "net/veth.h"

#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netlink.h"

static int get_container_end(int netns, const char *ifname, struct link *link,
			     struct cni_error *err)
{
	cleanup_netlink struct nl_sock *there = netlink_open_in(netns, err);

	if (!there || link_get(there, 0, ifname, link, err))
		return -1;
	if (!link->ifindex)
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"there is no interface %s in the container's network namespace;"
			" a plugin earlier in the list must make it",
			ifname);
	if (!link_is_kind(link, "veth"))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "interface %s of the container is of kind %s, but only a veth"
				     " (plugins bridge, ptp) has an end on the host to attach to;"
				     " remove the port mappings from this network, or use bridge",
				     ifname, link->kind[0] ? link->kind : "hardware");
	return 0;
}

static int take_netns_id(struct nlmsghdr *message, void *context)
{
	nla_memcpy(context, nlmsg_find_attr(message, sizeof(struct rtgenmsg), NETNSA_NSID),
		   sizeof(int));
	return 0;
}

/* The number by which our namespace knows the other one, as IFLA_LINK_NETNSID has it. */
static int get_netns_id(struct nl_sock *socket, int netns)
{
	struct rtgenmsg header = {0};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNSID, 0, &header, sizeof(header));
	int id = NETNSA_NSID_NOT_ASSIGNED;

	if (request)
		nla_put_u32(request, NETNSA_FD, (uint32_t)netns);
	netlink_ask(socket, request, take_netns_id, &id);
	return id;
}

/* An ifindex counts within its namespace only, so a veth of another container may well
 * carry the number; its peer's number and namespace must be right too. */
static bool points_back(struct nl_sock *socket, const struct link *host, int netns,
			const struct link *container)
{
	if (!host->ifindex || !link_is_kind(host, "veth") || host->peer != container->ifindex)
		return false;
	return host->peer_netns_id == get_netns_id(socket, netns);
}

int veth_find_host_end(struct nl_sock *socket, int netns, const char *ifname,
		       struct host_veth *veth, struct cni_error *err)
{
	struct link container;

	memset(veth, 0, sizeof(*veth));
	if (get_container_end(netns, ifname, &container, err) ||
	    link_get(socket, container.peer, NULL, &veth->link, err))
		return -1;
	if (!points_back(socket, &veth->link, netns, &container))
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"the other end of the container's veth %s is not in the network"
			" namespace that bpf-portmap runs in; run it on the host",
			ifname);
	if (!veth->link.master)
		return 0;
	if (link_get(socket, veth->link.master, NULL, &veth->bridge, err))
		return -1;
	/* A VRF's member routes as ptp's veth does. */
	if (!link_is_kind(&veth->bridge, "bridge"))
		memset(&veth->bridge, 0, sizeof(veth->bridge));
	return 0;
}
