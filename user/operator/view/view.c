/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* view.c - the datapath of this host as a verb reads it. */
#include "operator/view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lifetime.h"

#include "datapath/attach/hooks.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/address_list.h"
#include "net/link.h"
#include "net/netlink.h"

#define MIN_ID_CHARACTERS 4

bool view_runs_without_pins(const struct datapath *datapath)
{
	cleanup_error struct cni_error ignored = {0};
	struct address_list addresses = {0};
	struct objects objects;
	bool found = false;

	objects_clear(&objects);
	address_list_read(&addresses, &ignored);
	for (size_t i = 0; i < addresses.count && !found; i++)
		found = hooks_find_maps(addresses.interfaces[i].ifindex, datapath->netns_cookie,
					objects.maps);
	address_list_release(&addresses);
	objects_close(&objects);
	return found;
}

int view_check(const struct datapath *datapath, struct cni_error *err)
{
	if (datapath->state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(datapath, err);
	if (datapath->state != DATAPATH_DAMAGED &&
	    (datapath->state != DATAPATH_ABSENT || !view_runs_without_pins(datapath)))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "maps or programs are missing in %s: `bpf-portmap repair` puts them"
			     " back where programs still run; the next ADD loads them anew, and"
			     " `bpf-portmap uninstall` removes the rest",
			     datapath->directory);
}

static void begin(struct view *view)
{
	view->now = clock_of_programs();
	view->containers = or_exit(calloc(MAX_SLOTS, sizeof(*view->containers)));
}

int view_open(struct view *view, struct cni_error *err)
{
	/* Without rights the pins would seem to be absent. */
	if (access(BPFFS, R_OK | X_OK) && errno != ENOENT)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot look into " BPFFS ": %s; run it as root",
				     strerror(errno));
	view->opened = true;
	if (datapath_open(&view->datapath, DATAPATH_READ, err) || view_check(&view->datapath, err))
		return -1;
	view->is_empty = view->datapath.state == DATAPATH_ABSENT;
	if (view->is_empty && !view->is_quiet)
		fputs("bpf-portmap: no container was ever added on this host\n", stderr);
	view->socket = netlink_open(NETLINK_ROUTE, err);
	if (!view->socket)
		return -1;
	begin(view);
	return 0;
}

void view_of_host(struct view *view, const struct host *host)
{
	view->datapath = host->datapath;
	view->socket = host->socket;
	begin(view);
}

void view_close(struct view *view)
{
	for (size_t i = 0; view->containers && i < MAX_SLOTS; i++) {
		if (view->containers[i])
			free(view->containers[i]->json);
		free(view->containers[i]);
	}
	free(view->containers);
	container_names_release(&view->names);
	if (view->opened) {
		netlink_close(&view->socket);
		datapath_close(&view->datapath);
	}
	*view = (struct view){0};
}

/* A key without three parts leaves the names empty. */
static void read_name(struct container_info *container, const char key[ATTACHMENT_KEY_SIZE])
{
	struct attachment_name *name = &container->name;

	if (!attachment_name_split(key, name)) {
		name->network = name->container_id = name->ifname = "";
		return;
	}
	cni_printable((char *)name->network, "");
	cni_printable((char *)name->container_id, "");
	cni_printable((char *)name->ifname, "");
}

/* A record of a container that was adopted has no name. */
static void write_text(struct container_info *container, struct container_names *names)
{
	struct workload *workload = &container->record.workload;
	const char *id = container->name.container_id;
	const struct container_name *name;

	workload->namespace[WORKLOAD_NAMESPACE_SIZE - 1] = '\0';
	workload->name[WORKLOAD_NAME_SIZE - 1] = '\0';
	cni_printable(workload->namespace, "");
	cni_printable(workload->name, "");
	if (workload->kind != WORKLOAD_NONE && *workload->name) {
		snprintf(container->text, sizeof(container->text), "%s%s%s", workload->namespace,
			 *workload->namespace ? "/" : "", workload->name);
		return;
	}
	name = container_name_of(names, id);
	if (name) {
		workload->kind = *name->namespace ? WORKLOAD_POD : WORKLOAD_CONTAINER;
		snprintf(workload->namespace, sizeof(workload->namespace), "%.*s",
			 WORKLOAD_NAMESPACE_SIZE - 1, name->namespace);
		snprintf(workload->name, sizeof(workload->name), "%.*s", WORKLOAD_NAME_SIZE - 1,
			 name->name);
	}
	container_name_write(names, *id ? id : "unnamed", container->text);
}

static struct container_info *read_container(const struct objects *objects, uint32_t number,
					     struct container_names *names)
{
	struct container_info *container = or_exit(calloc(1, sizeof(*container)));
	struct slot slot;

	if (!slot_read(objects, number, &slot))
		return container;
	container->generation = slot.generation;
	container->live = slot.live != 0;
	container->network = slot.network;
	container->has_record = slot_read_record(objects, number, &slot, &container->record);
	if (!container->has_record)
		memset(&container->record, 0, sizeof(container->record));
	read_name(container, slot.attachment);
	write_text(container, names);
	return container;
}

struct container_info *view_container(struct view *view, struct owner owner)
{
	struct container_info **container;

	if (!owner.slot || owner.slot >= MAX_SLOTS)
		return NULL;
	container = &view->containers[owner.slot];
	if (!*container)
		*container = read_container(&view->datapath.objects, owner.slot, &view->names);
	return (*container)->generation == owner.generation ? *container : NULL;
}

void view_describe(struct view *view, const struct attachment_entry *entry,
		   char text[DESCRIBED_ATTACHMENT_SIZE])
{
	const struct container_info *container = view_container(view, entry->attachment.owner);

	describe_attachment_of(container ? &container->record.workload : NULL, entry->key.name,
			       text);
	cni_printable(text, "");
}

bool view_is_alive(struct view *view, const struct connection_key *key,
		   const struct connection *connection)
{
	const struct container_info *container;

	if (!connection->id || idle_seconds(view->now, connection->last_seen) >
				       connection_timeout(key->protocol, connection->state))
		return false;
	if (connection->kind == FLOW_HOST || connection->kind == FLOW_FOREIGN)
		return true;
	container = view_container(view, connection->owner);
	return container && container->live;
}

bool view_interface(const struct view *view, uint32_t ifindex, char name[IF_NAMESIZE])
{
	*name = '\0';
	if (!ifindex || !link_name(ifindex, name))
		return false;
	cni_printable(name, "");
	return true;
}

bool container_matches(const struct container_info *container, const char *wanted)
{
	const char *id = container->name.container_id, *slash = strchr(container->text, '/');
	size_t length = strlen(wanted);

	if (!strcmp(container->text, wanted) || !strcmp(id, wanted) ||
	    (slash && !strcmp(slash + 1, wanted)))
		return true;
	return length >= MIN_ID_CHARACTERS &&
	       (!strncmp(id, wanted, length) || !strncmp(engine_id(id), wanted, length));
}

const char *container_kind_word(const struct container_info *container)
{
	switch (container->record.workload.kind) {
	case WORKLOAD_POD:
		return "pod";
	case WORKLOAD_NOMAD:
		return "job";
	default:
		return "container";
	}
}

json_t *json_container(const struct view *view, const struct container_info *container)
{
	char veth[IF_NAMESIZE];

	if (!container)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "name", container->text, "kind",
			 container_kind_word(container), "id", container->name.container_id,
			 "network", container->name.network, "interface", container->name.ifname,
			 "host_interface",
			 view_interface(view, container->record.ifindex, veth) ? veth : NULL);
}

/* Made once for each container, and freed with the view: for thousands of items. */
static const char *json_text_of(const struct view *view, struct container_info *container)
{
	cleanup_json json_t *json = NULL;

	if (!container->json) {
		json = json_container(view, container);
		container->json = or_exit(json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII));
	}
	return container->json;
}

void output_container(struct output *output, const char *text, const struct view *view,
		      struct container_info *container)
{
	bool in_json = output->options->json && container;

	output_cell(output,
		    text        ? text
		    : container ? container->text
				: "-",
		    in_json ? json_text_of(view, container) : NULL);
}
