/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* containers.h - whose ports portmap has mapped, and what runtimes have kept of their ADDs. */
#pragma once

#include "datapath/load/objects.h"
#include "operator/view/container_names.h"
#include "operator/view/portmap_gone.h"

enum migrating_fate {
	MIGRATING_MAP,    /* its ports are to be mapped by us, and portmap's rules removed then */
	MIGRATING_MAPPED, /* that was done */
	MIGRATING_GONE,   /* the rules of a container that is gone are removed */
	MIGRATING_LEFT,   /* all stays, for the reason given */
};

/* A port that portmap has mapped, in one family. */
struct migrating_port {
	struct portmap_key key;
	uint8_t container_address[CNI_ADDRESS_SIZE];
	uint16_t container_port;
	const char *rules; /* "iptables", "iptables-legacy", "nftables" */
	unsigned int kept; /* connections */
	unsigned int not_kept;
};

/* A container for which portmap has rules. */
struct migrating {
	char network[NAT_COMMENT_SIZE]; /* "": not known */
	char id[NAT_COMMENT_SIZE];
	char name[ENGINE_TEXT_SIZE]; /* "default/web-0"; without one, the ID as engines show it */
	struct migrating_port *ports;
	size_t port_count;
	const json_t *cached; /* its ADD; NULL: no runtime has kept it */
	enum migrating_fate fate;
	char reason[512]; /* of MIGRATING_LEFT; else what is to be said of it, or "" */
};

/* Begins as {0}. */
struct migrating_list {
	struct migrating *list; /* in the order in which packets come to their rules */
	size_t count;
	struct portmap_evidence evidence;
	struct container_names names;
};

/* Finds whose rules they are, and decides about each container. The host is open. */
void migrating_find(struct migrating_list *containers, const struct portmap_entries *entries,
		    const struct host *host);
/* Returns how many connections have got no record. */
unsigned int migrating_not_kept(const struct migrating *container);
void migrating_release(struct migrating_list *containers);

/* Makes the container MIGRATING_LEFT, for this reason. */
void migrating_leave(struct migrating *container, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define cleanup_migrating __attribute__((cleanup(migrating_release)))

/* Puts our options in the place of the conditions in the configuration of a container, and returns
 * them as they stand in a list, malloc'ed. NULL: it has none, or none of our options does the same
 * for this network alone, or the list has one already. Then the conditions stay, and reading them
 * says why they are refused. */
char *conditional_translate(json_t *config);

/* --- take_over.c: what ADD would do, for a container that runs already and whose ports are in use
 */

/* Maps the ports of the container, as its runtime has asked portmap to: it becomes
 * MIGRATING_MAPPED. One that a run which was killed has mapped is completed. After a failure the
 * ports are where they were. Codes as of ADD. */
int take_over(struct migrating *container, struct cni_error *err);

/* Checks whether that can be told from what its runtime has kept, and says in container->reason
 * what it changes. Codes as of ADD. */
int take_over_check(struct migrating *container, struct cni_error *err);

/* --- connections.c: the connections that conntrack translates by rules of portmap, and goes on to
 * translate when the rules are gone. They get records, so that our programs leave them alone. */

/* What connections_keep() works on: the connections of one container. */
struct keeping {
	struct migrating *container;
	const struct objects *objects;
	int program; /* -1 until it is loaded */
};

/* Makes records of all that the container has now, and counts them at its ports. Call it before the
 * ports are claimed, and again afterwards. CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
int connections_keep(struct keeping *keeping, struct cni_error *err);

/* Counts the connections of all containers, and makes no records. CNI_ERROR_IO. */
int connections_count(const struct migrating_list *containers, struct cni_error *err);

/* Counts those that conntrack still translates and that have such a record. CNI_ERROR_IO. */
int connections_left(const struct objects *objects, unsigned int *count, struct cni_error *err);
