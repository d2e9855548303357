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
#include <sys/types.h>

#include "lib/address.h"
#include "lib/error.h"

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

struct command_run;

/* Runs the command as command_run() does, in this namespace; NULL: in ours. */
bool namespace_run(const struct namespace *inside, struct command_run *run);

/* --- the addresses of containers ------------------------------------------------------------ */

struct container_address {
	int namespace; /* the kernel's number of it */
	uint8_t address[CNI_ADDRESS_SIZE];
};

/* Begins as {0}. */
struct container_addresses {
	struct container_address *list;
	size_t count;
	bool hidden; /* a namespace has no IPv4 address: a virtual machine in it may have one */
};

/* Release the list also after a failure. CNI_ERROR_IO: it is not complete. */
int container_addresses_read(struct container_addresses *addresses, struct cni_error *err);
void container_addresses_release(struct container_addresses *addresses);

/* Returns how many namespaces have the address. */
size_t container_addresses_count(const struct container_addresses *addresses,
				 const uint8_t address[CNI_ADDRESS_SIZE]);

/* --- files of containers, as their processes have them -------------------------------------- */

#define CONTAINER_FILE_SIZE 4096

/* Calls `take` with the number of each network namespace of which a process has the file, and with
 * its text, which ends at CONTAINER_FILE_SIZE. A container chooses what stands there: a child reads
 * it, within the container's root, and is waited for no longer than a moment. */
void container_files_read(const ino_t *netns, size_t count, const char *path,
			  void (*take)(void *context, size_t number, const char *text),
			  void *context);
