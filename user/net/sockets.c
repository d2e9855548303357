/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sockets.c - sockets of the host, as the kernel lists them. */
#include "net/sockets.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/array.h"
#include "net/netlink.h"

#ifndef TCP_BOUND_INACTIVE
#define TCP_BOUND_INACTIVE 13 /* since Linux 6.8; earlier ones know no such socket */
#endif

struct reading {
	struct socket_list *list;
	enum protocol protocol;
};

static void read_address(uint8_t address[CNI_ADDRESS_SIZE], uint8_t family, const __be32 words[4])
{
	if (family == AF_INET6) {
		memcpy(address, words, CNI_ADDRESS_SIZE);
		return;
	}
	memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	memcpy(address + 12, words, 4);
}

static bool is_only_ipv6(const struct nlmsghdr *header)
{
	const struct nlattr *only = nlmsg_find_attr(
		(struct nlmsghdr *)header, sizeof(struct inet_diag_msg), INET_DIAG_SKV6ONLY);

	return only && nla_get_u8(only);
}

static int parse_socket(struct nl_msg *message, void *context)
{
	const struct nlmsghdr *header = nlmsg_hdr(message);
	const struct inet_diag_msg *said = nlmsg_data(header);
	struct reading *reading = context;
	struct host_socket *socket = ARRAY_ADD(reading->list->sockets, reading->list->count);

	if (!socket)
		return -NLE_NOMEM;
	*socket = (struct host_socket){
		.protocol = reading->protocol,
		.port = ntohs(said->id.idiag_sport),
		.peer_port = ntohs(said->id.idiag_dport),
		.interface = said->id.idiag_if,
		.inode = said->idiag_inode,
		.cookie = (uint64_t)said->id.idiag_cookie[1] << 32 | said->id.idiag_cookie[0],
	};
	read_address(socket->address, said->idiag_family, said->id.idiag_src);
	read_address(socket->peer, said->idiag_family, said->id.idiag_dst);
	socket->both_families = !memcmp(socket->address, cni_address_any_ipv6, CNI_ADDRESS_SIZE) &&
				!is_only_ipv6(header);
	return NL_OK;
}

static uint32_t wanted_states(enum protocol protocol, enum socket_state state)
{
	if (state == SOCKET_CONNECTED)
		return 1U << TCP_ESTABLISHED;
	if (protocol == PROTOCOL_UDP)
		return 1U << TCP_CLOSE; /* neither connected nor anything else */
	return protocol == PROTOCOL_TCP ? 1U << TCP_LISTEN | 1U << TCP_BOUND_INACTIVE
					: 1U << TCP_LISTEN;
}

static int refuse(enum protocol protocol, int result, struct cni_error *err)
{
	if (result == -NLE_NOMEM)
		return cni_error_no_memory(err);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the kernel does not tell which sockets the host has: %s (it needs"
			     " %s_diag, CONFIG_INET_DIAG)",
			     nl_geterror(result),
			     protocol == PROTOCOL_UDP   ? "udp"
			     : protocol == PROTOCOL_TCP ? "tcp"
							: "sctp");
}

int sockets_find(struct socket_list *list, struct nl_sock *socket, enum protocol protocol,
		 enum socket_state state, struct cni_error *err)
{
	struct inet_diag_req_v2 request = {
		.sdiag_family = AF_INET,
		.sdiag_protocol = protocol,
		.idiag_states = wanted_states(protocol, state),
	};
	struct reading reading = {list, protocol};
	int result;

	/* With SCTP not loaded there are no sockets either, and loading it is not our business. */
	if (protocol == PROTOCOL_SCTP && access("/proc/net/sctp", F_OK))
		return 0;
	result = netlink_get(socket, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, sizeof(request),
			     parse_socket, &reading);
	request.sdiag_family = AF_INET6;
	if (!result || result == -NLE_DUMP_INTR)
		result = netlink_get(socket, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request,
				     sizeof(request), parse_socket, &reading);
	return !result || result == -NLE_DUMP_INTR ? 0 : refuse(protocol, result, err);
}

/* Both families' sockets that talk IPv4 are found by their IPv4 addresses. */
static void write_address(__be32 words[4], const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		memcpy(words, address + 12, 4);
	else
		memcpy(words, address, CNI_ADDRESS_SIZE);
}

int sockets_end(struct nl_sock *socket, const struct host_socket *ended)
{
	struct inet_diag_req_v2 request = {
		.sdiag_family = cni_address_is_ipv4(ended->peer) ? AF_INET : AF_INET6,
		.sdiag_protocol = ended->protocol,
		.id = {.idiag_sport = htons(ended->port),
		       .idiag_dport = htons(ended->peer_port),
		       .idiag_if = ended->interface,
		       .idiag_cookie = {(uint32_t)ended->cookie, (uint32_t)(ended->cookie >> 32)}},
	};
	int result;

	write_address(request.id.idiag_src, ended->address);
	write_address(request.id.idiag_dst, ended->peer);
	errno = 0;
	result =
		netlink_get(socket, SOCK_DESTROY, NLM_F_ACK, &request, sizeof(request), NULL, NULL);
	if (result >= 0 || errno == ENOENT)
		return 0;
	return errno ? -errno : -EIO;
}

void sockets_release(struct socket_list *list)
{
	free(list->sockets);
	*list = (struct socket_list){0};
}
