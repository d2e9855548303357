/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_list.c - sockets of the network namespace we are in. */
#include "net/socket_list.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>

#include "net/netlink.h"

struct listing {
	struct inet_socket *sockets;
	size_t count, capacity;
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

static void read_socket(struct inet_socket *socket, const struct inet_diag_msg *message)
{
	read_address(socket->source, message->idiag_family, message->id.idiag_src);
	read_address(socket->destination, message->idiag_family, message->id.idiag_dst);
	socket->source_port = ntohs(message->id.idiag_sport);
	socket->destination_port = ntohs(message->id.idiag_dport);
	socket->inode = message->idiag_inode;
	socket->cookie = (uint64_t)message->id.idiag_cookie[1] << 32 | message->id.idiag_cookie[0];
}

static int parse_socket(struct nl_msg *message, void *context)
{
	struct listing *listing = context;

	if (nlmsg_datalen(nlmsg_hdr(message)) < (int)sizeof(struct inet_diag_msg))
		return NL_OK;
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
		void *grown = realloc(listing->sockets, capacity * sizeof(*listing->sockets));

		if (!grown)
			return -NLE_NOMEM;
		listing->sockets = grown;
		listing->capacity = capacity;
	}
	read_socket(&listing->sockets[listing->count++], nlmsg_data(nlmsg_hdr(message)));
	return NL_OK;
}

static int dump_family(struct nl_sock *socket, int family, int protocol, uint32_t states,
		       struct listing *listing)
{
	struct inet_diag_req_v2 request = {
		.sdiag_family = (uint8_t)family,
		.sdiag_protocol = (uint8_t)protocol,
		.idiag_states = states,
	};
	int result = netlink_get(socket, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request, sizeof(request),
				 parse_socket, listing);

	/* What comes or goes meanwhile was not there before. */
	return result == -NLE_DUMP_INTR ? 0 : result;
}

int socket_list_read(int protocol, uint32_t states, struct inet_socket **sockets, size_t *count,
		     struct cni_error *err)
{
	struct nl_sock *socket = netlink_open_protocol(NETLINK_SOCK_DIAG, err);
	struct listing listing = {0};
	int result;

	if (!socket)
		return -1;
	result = dump_family(socket, AF_INET, protocol, states, &listing);
	if (!result)
		result = dump_family(socket, AF_INET6, protocol, states, &listing);
	nl_socket_free(socket);
	if (!result) {
		*sockets = listing.sockets;
		*count = listing.count;
		return 0;
	}
	free(listing.sockets);
	return cni_error_set(err, CNI_ERROR_IO, "cannot list the host's sockets: %s",
			     nl_geterror(result));
}
