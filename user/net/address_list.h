/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address_list.h - the interfaces of the host that have an address.
 */
#ifndef NET_ADDRESS_LIST_H
#define NET_ADDRESS_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "cni/address.h"
#include "cni/error.h"

struct nl_sock;

/* An interface with at least one address that is neither link-local nor loopback. They are
 * those to masquerade with where the kernel can't say better, zero if it has none of
 * the family: the first, if possible neither secondary, temporary nor deprecated. */
struct addressed_interface {
	uint32_t ifindex;
	uint8_t address4[CNI_ADDRESS_SIZE];
	uint8_t address6[CNI_ADDRESS_SIZE];
};

/* Begins as {0}. */
struct address_list {
	struct addressed_interface *interfaces;
	size_t count;
};

/* One RTM_GETADDR. Code 5. */
int address_list_read(struct address_list *list, struct nl_sock *socket, struct cni_error *err);
void address_list_release(struct address_list *list);

const struct addressed_interface *address_list_find(const struct address_list *list,
						    uint32_t ifindex);

#endif
