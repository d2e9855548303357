/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * view.h - the datapath of this host as a verb reads it, without the lock: it may change meanwhile,
 * and what stands in it is not trusted.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "datapath/load/datapath.h"
#include "datapath/records/attachments.h"
#include "lib/error.h"
#include "operator/print/output.h"
#include "operator/view/container_names.h"

/* Pod, job or container: both names of a workload, and what stands between them. */
#define CONTAINER_TEXT_SIZE (sizeof(struct workload) + ENGINE_TEXT_SIZE)

/* The container that has a slot. All texts are printable. */
struct container_info {
	uint32_t generation;
	bool live;
	uint8_t network;                /* struct slot's: with "uplinks" of its own */
	bool has_record;                /* else `record` is zero */
	struct attachment record;       /* names are terminated */
	struct attachment_name name;    /* of an unreadable one: "", "", "" */
	char *json;                     /* made when it is needed: output.c */
	char text[CONTAINER_TEXT_SIZE]; /* "default/web-0"; without a workload, its engine's name
					 * for it, or the container ID */
};

struct host;
struct netlink;

/* Begins as {0}. */
struct view {
	bool opened;   /* by view_open(): socket and datapath are its own */
	bool is_quiet; /* set before it is opened: no note where it is empty */
	bool is_empty; /* nothing was ever added: there are no maps */
	struct datapath datapath;
	struct netlink *socket;
	uint32_t now;                       /* CLOCK_MONOTONIC, seconds, as programs read it */
	struct container_info **containers; /* by slot; read when they are asked for */
	struct container_names names;
};

/* Prints a note where the view is empty, unless it is quiet. A datapath that is damaged, or of
 * another layout, and missing rights: CNI_ERROR_KERNEL_REFUSED, with what to do. */
int view_open(struct view *view, struct cni_error *err);
/* Takes the place of view_open() where a verb has the host open, with a datapath that is usable.
 * Close the view before the host. */
void view_of_host(struct view *view, const struct host *host);
void view_close(struct view *view);

#define cleanup_view __attribute__((cleanup(view_close)))

/* Whether our programs run at this host's interfaces on maps that have no name any more. */
bool view_runs_without_pins(const struct datapath *datapath);

/* CNI_ERROR_KERNEL_REFUSED: the maps are of another layout, or some or all are missing where there
 * were any. DATAPATH_ABSENT is none: nothing was ever added. */
int view_check(const struct datapath *datapath, struct cni_error *err);

/* Returns the owner's container; NULL: the owner has gone. */
struct container_info *view_container(struct view *view, struct owner owner);

/* Writes what describe_attachment() does, with the engine's name for the container where the record
 * has none. Printable. */
void view_describe(struct view *view, const struct attachment_entry *entry,
		   char text[DESCRIBED_ATTACHMENT_SIZE]);

/* Returns whether the programs take the connection for a live one. */
bool view_is_alive(struct view *view, const struct connection_key *key,
		   const struct connection *connection);

/* Writes "vethb3f2d6e2"; "", and false, where the interface is gone. */
bool view_interface(const struct view *view, uint32_t ifindex, char name[IF_NAMESIZE]);

/* Returns whether the user has typed this container: its name, its name without the namespace, its
 * ID, or the beginning of the ID. */
bool container_matches(const struct container_info *container, const char *wanted);

/* "pod", "job", "container" */
const char *container_kind_word(const struct container_info *container);

/* {"name":"default/web-0","kind":"pod","id":"4f1c...","network":"bridge","interface":"eth0",
 * "host_interface":"vethb3f2d6e2"}; null for NULL. A veth that has gone is null. */
json_t *json_container(const struct view *view, const struct container_info *container);
/* "default/web-0", unless there is another text, and json_container(); NULL: "-" and null */
void output_container(struct output *output, const char *text, const struct view *view,
		      struct container_info *container);
