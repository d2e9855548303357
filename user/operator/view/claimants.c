/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* claimants.c - who else could have a host port. */
#include "operator/view/claimants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "nat/nat_rule.h"

const uint8_t claimant_loopback4[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
const uint8_t claimant_loopback6[CNI_ADDRESS_SIZE] = {[15] = 1};

void claimants_release(struct claimants *claimants)
{
	sockets_release(&claimants->sockets);
	nat_rule_list_release(&claimants->rules);
	free(claimants->holders);
	free(claimants->keys);
	*claimants = (struct claimants){0};
}

bool claimant_socket_has(const struct host_socket *socket, const struct portmap_key *key)
{
	if (socket->protocol != key->protocol || socket->port != key->host_port)
		return false;
	if (cni_address_is_any(key->host_address) || cni_address_is_any(socket->address))
		return (socket->both_families && cni_address_is_any(socket->address)) ||
		       cni_address_is_ipv4(key->host_address) ==
			       cni_address_is_ipv4(socket->address);
	return !memcmp(socket->address, key->host_address, CNI_ADDRESS_SIZE);
}

static bool socket_is_asked_for(const struct claimants *claimants, const struct host_socket *socket)
{
	for (size_t i = 0; i < claimants->key_count; i++)
		if (claimant_socket_has(socket, &claimants->keys[i]))
			return true;
	return false;
}

/* All at once: it means to look at the open files of every process. */
static void find_holders(struct claimants *claimants)
{
	const struct socket_list *sockets = &claimants->sockets;

	if (!sockets->count)
		return;
	claimants->holders = or_exit(calloc(sockets->count, sizeof(*claimants->holders)));
	for (size_t i = 0; i < sockets->count; i++)
		claimants->holders[i].inode = sockets->sockets[i].inode;
	processes_find(claimants->holders, sockets->count, NULL);
}

int claimants_find_sockets(struct claimants *claimants, struct cni_error *err)
{
	struct socket_list *found = &claimants->sockets;
	size_t kept = 0;

	if (sockets_find_bound(found, err))
		return -1;
	for (size_t i = 0; i < found->count; i++)
		if (socket_is_asked_for(claimants, &found->sockets[i]))
			found->sockets[kept++] = found->sockets[i];
	found->count = kept;
	find_holders(claimants);
	return 0;
}

int claimants_find_rules(struct claimants *claimants, struct cni_error *err)
{
	const struct address_list *list = claimants->addresses;
	uint8_t(*addresses)[CNI_ADDRESS_SIZE] =
		or_exit(calloc(list->address_count + 2, sizeof(*addresses)));
	const struct nat_asked asked = {claimants->keys, claimants->key_count,
					(const uint8_t(*)[CNI_ADDRESS_SIZE])addresses,
					list->address_count + 2};
	const struct nat_question question = {.place = NAT_EVERYWHERE, .asked = &asked};
	int result;

	for (size_t i = 0; i < list->address_count; i++)
		memcpy(addresses[i], list->addresses[i].address, CNI_ADDRESS_SIZE);
	memcpy(addresses[list->address_count], claimant_loopback4, CNI_ADDRESS_SIZE);
	memcpy(addresses[list->address_count + 1], claimant_loopback6, CNI_ADDRESS_SIZE);
	result = nat_rules_find(&claimants->rules, &question, err);
	free(addresses);
	return result;
}

struct socket_process claimant_process(const struct claimants *claimants,
				       const struct host_socket *socket)
{
	for (size_t i = 0; i < claimants->sockets.count; i++)
		if (claimants->holders[i].inode == socket->inode)
			return claimants->holders[i];
	return (struct socket_process){0};
}

void claimant_holder(const struct claimants *claimants, const struct host_socket *socket,
		     char text[HOLDER_TEXT_SIZE])
{
	struct socket_process process = claimant_process(claimants, socket);

	if (process.pid)
		snprintf(text, HOLDER_TEXT_SIZE, "%s (pid %d)", process.name, (int)process.pid);
	else
		snprintf(text, HOLDER_TEXT_SIZE, "a socket without a process");
}

/* `dnat name: "bridge" id: "4f1c..."`; of portmap's nftables backend the ID alone. */
void claimant_container_id(const struct nat_rule *rule, char id[NAT_COMMENT_SIZE])
{
	static const char mark[] = "id: \"";
	const char *begin = strstr(rule->comment, mark);
	const char *engine = nat_engine_of(rule);
	size_t length;

	begin = begin ? begin + strlen(mark) : rule->comment;
	length = strcspn(begin, "\" ");
	if ((begin == rule->comment && begin[length]) ||
	    (strcmp(engine, "portmap") != 0 && strcmp(engine, "netavark") != 0))
		length = 0;
	memcpy(id, begin, length);
	id[length] = '\0';
}
