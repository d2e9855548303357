/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets.c - sockets of the host, as the kernel lists them.
 *
 * By dumps of sock_diag, filtered by the kernel. A dump walks a hash table from end to end,
 * whether one port is asked for or all: a few hundred microseconds if none of it is in the
 * cache. bindable.h is for who asks about a few ports. (A look-up of a single socket would
 * be cheap too, but finds only one that is bound to the very address.)
 */
#include "net/sockets.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/netlink.h"
#include "net/port_cover.h"

#ifndef TCP_BOUND_INACTIVE
#define TCP_BOUND_INACTIVE 13 /* since Linux 6.8; earlier ones know no such socket */
#endif

#define FIRST_ALLOCATION 16

/* Four instructions of a filter: port >= first, else go on behind; port <= last, else go on
 * behind; accept. A comparison has its port in a second instruction. */
struct range_filter {
	struct inet_diag_bc_op first[2];
	struct inet_diag_bc_op last[2];
	struct inet_diag_bc_op accept;
};

struct request {
	struct inet_diag_req_v2 header;
	struct rtattr attribute;
	struct range_filter filter[PORT_COVER_RANGES];
};

/* A jump to the end is "yes", one beyond it "no"; distances are from the instruction itself. */
static void fill_filter(struct request *request, const struct socket_query *query)
{
	const size_t size = sizeof(struct range_filter);

	for (size_t i = 0; i < query->range_count; i++) {
		size_t left = (query->range_count - i) * size;
		bool is_last = i + 1 == query->range_count;
		/* "No" to the last range is "no" to all. */
		uint16_t next = (uint16_t)(size + (is_last ? sizeof(struct inet_diag_bc_op) : 0));
		struct range_filter *filter = &request->filter[i];
		const uint16_t to_last = offsetof(struct range_filter, last);
		const uint16_t to_accept = offsetof(struct range_filter, accept);

		filter->first[0] = (struct inet_diag_bc_op){INET_DIAG_BC_S_GE, to_last, next};
		filter->first[1].no = query->ranges[i].first;
		filter->last[0] = (struct inet_diag_bc_op){INET_DIAG_BC_S_LE,
							   (unsigned char)(to_accept - to_last),
							   (uint16_t)(next - to_last)};
		filter->last[1].no = query->ranges[i].last;
		filter->accept =
			(struct inet_diag_bc_op){INET_DIAG_BC_JMP, sizeof(struct inet_diag_bc_op),
						 (uint16_t)(left - to_accept)};
	}
	request->attribute.rta_type = INET_DIAG_REQ_BYTECODE;
	request->attribute.rta_len = (uint16_t)RTA_LENGTH(query->range_count * size);
}

static uint32_t wanted_states(const struct socket_query *query)
{
	if (query->state == SOCKET_CONNECTED)
		return 1U << TCP_ESTABLISHED;
	if (query->protocol == PROTOCOL_UDP)
		return 1U << TCP_CLOSE; /* neither connected nor anything else */
	if (query->protocol == PROTOCOL_TCP && query->state == SOCKET_BOUND)
		return 1U << TCP_LISTEN | 1U << TCP_BOUND_INACTIVE;
	return 1U << TCP_LISTEN;
}

static struct host_socket *append(struct socket_list *list)
{
	bool is_full = !list->count ||
		       (list->count >= FIRST_ALLOCATION && !(list->count & (list->count - 1)));

	if (is_full) {
		size_t size = list->count ? 2 * list->count : FIRST_ALLOCATION;
		struct host_socket *grown = reallocarray(list->sockets, size, sizeof(*grown));

		if (!grown)
			return NULL;
		list->sockets = grown;
	}
	return &list->sockets[list->count++];
}

struct reading {
	struct socket_list *list;
	const struct socket_query *query;
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
	struct host_socket *socket = append(reading->list);

	if (!socket)
		return -NLE_NOMEM;
	*socket = (struct host_socket){
		.protocol = reading->query->protocol,
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

/* With SCTP not loaded there are no sockets either, and loading it is not our business. */
static bool protocol_is_absent(const struct socket_query *query)
{
	return query->protocol == PROTOCOL_SCTP && access("/proc/net/sctp", F_OK) != 0;
}

static int refuse(const struct socket_query *query, int result, struct cni_error *err)
{
	if (result == -NLE_NOMEM)
		return cni_error_no_memory(err);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the kernel does not tell which sockets the host has: %s (it needs"
			     " %s_diag, CONFIG_INET_DIAG)",
			     nl_geterror(result),
			     query->protocol == PROTOCOL_UDP   ? "udp"
			     : query->protocol == PROTOCOL_TCP ? "tcp"
							       : "sctp");
}

static int find_family(struct reading *reading, struct nl_sock *socket, int family,
		       struct cni_error *err)
{
	const struct socket_query *query = reading->query;
	struct request request = {
		.header = {.sdiag_family = (uint8_t)family,
			   .sdiag_protocol = query->protocol,
			   .idiag_states = wanted_states(query)},
	};
	size_t size = offsetof(struct request, attribute);
	int result;

	if (query->range_count) {
		fill_filter(&request, query);
		size = offsetof(struct request, filter) +
		       query->range_count * sizeof(struct range_filter);
	}
	result = netlink_get(socket, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, size, parse_socket,
			     reading);
	if (result < 0 && result != -NLE_DUMP_INTR)
		return refuse(query, result, err);
	return 0;
}

int sockets_find(struct socket_list *list, struct nl_sock *socket, const struct socket_query *query,
		 struct cni_error *err)
{
	struct reading reading = {.list = list, .query = query};

	if ((!query->range_count && query->state != SOCKET_CONNECTED) || protocol_is_absent(query))
		return 0;
	if (query->ipv4 && find_family(&reading, socket, AF_INET, err))
		return -1;
	return find_family(&reading, socket, AF_INET6, err);
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
