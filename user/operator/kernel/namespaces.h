/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * namespaces.h - the network namespaces that veths of this host lead to.
 *
 * A record does not say where its container's namespace is; the kernel numbers the namespaces that
 * links lead to, and says the number of one that is open.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NAMESPACE_PATH_SIZE 320

struct netlink;

struct namespace
{
	int number; /* struct link's peer_netns_id */
	int fd;
	char path[NAMESPACE_PATH_SIZE]; /* "/run/netns/web", "/proc/812/ns/net" */
};

/* Begins as {0}. */
struct namespaces {
	struct namespace *list;
	size_t count;
};

/* Opens those that have a name in /run/netns, and those of processes. What cannot be opened is left
 * out. Raises this process' limit of open files as far as it may. */
void namespaces_read(struct namespaces *namespaces, struct netlink *socket);
void namespaces_release(struct namespaces *namespaces);

/* Returns the namespace of this number; NULL: it is not known. */
const struct namespace *namespaces_find(const struct namespaces *namespaces, int number);
