/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claimants.h - who else could have a host port: processes of the host that listen, and rules of
 * NAT (portmap's, Docker's, netavark's, kube-proxy's).
 */
#pragma once

#include <linux/types.h>

#include "abi.h"
#include "lib/error.h"
#include "net/address_list.h"
#include "nat/nat_rules.h"
#include "net/processes.h"
#include "net/sockets.h"

extern const uint8_t claimant_loopback4[CNI_ADDRESS_SIZE], claimant_loopback6[CNI_ADDRESS_SIZE];

/* Begins as {0}. */
struct claimants {
	/* What is asked. */
	const struct address_list *addresses; /* of the host */
	struct portmap_key *keys;             /* malloc'ed */
	size_t key_count;
	/* What was found. */
	struct socket_list sockets;     /* that have one of the ports */
	struct socket_process *holders; /* of these sockets, in another order */
	struct nat_rule_list rules;     /* in the order in which packets meet them */
};

/* Each fills in what it has found. CNI_ERROR_KERNEL_REFUSED: the kernel does not tell. */
int claimants_find_sockets(struct claimants *claimants, struct cni_error *err);
int claimants_find_rules(struct claimants *claimants, struct cni_error *err);
void claimants_release(struct claimants *claimants);

#define cleanup_claimants __attribute__((cleanup(claimants_release)))

/* Returns whether the socket has the port of this key, at one of its addresses. */
bool claimant_socket_has(const struct host_socket *socket, const struct portmap_key *key);

#define HOLDER_TEXT_SIZE (PROCESS_NAME_SIZE + 32)

/* Writes "nginx (pid 812)". */
void claimant_holder(const struct claimants *claimants, const struct host_socket *socket,
		     char text[HOLDER_TEXT_SIZE]);
/* Returns who has the socket; pid 0: no process is known to have it. */
struct socket_process claimant_process(const struct claimants *claimants,
				       const struct host_socket *socket);

/* Writes the container's ID that portmap's or netavark's comment has; "": there is none. */
void claimant_container_id(const struct nat_rule *rule, char id[NAT_COMMENT_SIZE]);
