/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sockets.c - sockets, as the kernel lists them, and whether one takes what comes to a port. */
#include "net/sockets.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/memory.h"
#include "lib/ports.h"
#include "net/netlink.h"

#ifndef TCP_BOUND_INACTIVE
#define TCP_BOUND_INACTIVE 13 /* since Linux 6.8; earlier ones know no such socket */
#endif

struct reading {
	struct socket_list *list;
	enum protocol protocol;
};

static void take_socket(struct nlmsghdr *message, void *context)
{
	const struct inet_diag_msg *said = nlmsg_data(message);
	struct reading *reading = context;
	struct host_socket *socket = ARRAY_ADD(reading->list->sockets, reading->list->count);
	size_t size = said->idiag_family == AF_INET6 ? CNI_ADDRESS_SIZE : 4;
	uint8_t only_ipv6 = 0;

	nla_memcpy(&only_ipv6, nlmsg_find_attr(message, sizeof(*said), INET_DIAG_SKV6ONLY), 1);
	*socket = (struct host_socket){
		.protocol = reading->protocol,
		.port = ntohs(said->id.idiag_sport),
		.inode = said->idiag_inode,
		.waiting = said->idiag_rqueue,
		.backlog = said->idiag_wqueue,
	};
	cni_address_make(socket->address, said->id.idiag_src, size);
	socket->both_families =
		!memcmp(socket->address, cni_address_any_ipv6, CNI_ADDRESS_SIZE) && !only_ipv6;
}

static int dump_sockets(struct netlink *socket, int family, struct reading *reading,
			uint32_t states)
{
	struct inet_diag_req_v2 header = {
		.sdiag_family = (uint8_t)family,
		.sdiag_protocol = reading->protocol,
		.idiag_states = states,
	};
	cleanup_request struct nl_msg *request =
		netlink_begin(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &header, sizeof(header));

	if (netlink_ask(socket, request, take_socket, reading) && errno != EAGAIN)
		return -1;
	return 0;
}

static int find_in(struct socket_list *list, struct netlink *socket, enum protocol protocol,
		   uint32_t states, struct cni_error *err)
{
	struct reading reading = {list, protocol};

	if (protocol == PROTOCOL_UDP)
		states = 1U << TCP_CLOSE; /* neither connected nor anything else */
	/* With SCTP not loaded there are no sockets either, and loading it is not our business. */
	if (protocol == PROTOCOL_SCTP && access("/proc/net/sctp", F_OK))
		return 0;
	if (!dump_sockets(socket, AF_INET, &reading, states) &&
	    !dump_sockets(socket, AF_INET6, &reading, states))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the kernel does not tell which sockets the host has: %s (it needs"
			     " %s_diag, CONFIG_INET_DIAG)",
			     strerror(errno), protocol_word(protocol));
}

int sockets_find_listening(struct socket_list *list, struct netlink *socket, enum protocol protocol,
			   struct cni_error *err)
{
	return find_in(list, socket, protocol, 1U << TCP_LISTEN, err);
}

int sockets_find_bound(struct socket_list *list, struct cni_error *err)
{
	static const enum protocol protocols[] = {PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_SCTP};
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_SOCK_DIAG, err);

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (!socket ||
		    find_in(list, socket, protocols[i],
			    1U << TCP_LISTEN |
				    (protocols[i] == PROTOCOL_TCP ? 1U << TCP_BOUND_INACTIVE : 0),
			    err))
			return -1;
	return 0;
}

/* Both families' sockets that talk IPv4 are found by their IPv4 addresses. */
static void write_address(__be32 words[4], const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		memcpy(words, address + 12, 4);
	else
		memcpy(words, address, CNI_ADDRESS_SIZE);
}

/* The kernel looks for the receiver of a packet; source and destination are the socket's, except
 * for UDP, where they are the packet's. */
void sockets_find_at(struct socket_list *list, struct netlink *socket, enum protocol protocol,
		     const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	struct reading reading = {list, protocol};
	struct inet_diag_req_v2 header = {
		.sdiag_family = cni_address_is_ipv4(address) ? AF_INET : AF_INET6,
		.sdiag_protocol = protocol,
		.idiag_states = UINT32_MAX,
		.id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
	};
	bool is_udp = protocol == PROTOCOL_UDP;
	cleanup_request struct nl_msg *request = NULL;
	size_t count = list->count;

	write_address(is_udp ? header.id.idiag_dst : header.id.idiag_src, address);
	*(is_udp ? &header.id.idiag_dport : &header.id.idiag_sport) = htons(port);
	request = netlink_begin(SOCK_DIAG_BY_FAMILY, 0, &header, sizeof(header));
	if (netlink_ask(socket, request, take_socket, &reading) || list->count == count)
		return;
	for (size_t i = 0; i < count; i++)
		if (list->sockets[i].inode == list->sockets[count].inode)
			list->count = count;
}

void sockets_release(struct socket_list *list)
{
	free(list->sockets);
	*list = (struct socket_list){0};
}

static enum listening judge(const struct host_socket *socket,
			    const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool same_family = cni_address_is_ipv4(socket->address) == cni_address_is_ipv4(address);

	if (cni_address_is_any(socket->address))
		return same_family || socket->both_families ? LISTENING : LISTENING_ELSEWHERE;
	if (!memcmp(socket->address, address, CNI_ADDRESS_SIZE))
		return LISTENING;
	return cni_address_is_loopback(socket->address) ? LISTENING_AT_LOOPBACK
							: LISTENING_ELSEWHERE;
}

enum listening listening_at(const struct socket_list *sockets, enum protocol protocol,
			    const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    const uint8_t **where)
{
	enum listening best = LISTENING_NOT;

	*where = NULL;
	for_each (socket, sockets->sockets, sockets->count) {
		enum listening one;

		if (socket->protocol != protocol || socket->port != port)
			continue;
		one = judge(socket, address);
		if (one < best) {
			best = one;
			*where = socket->address;
		}
	}
	return best;
}
