/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* removal.c - takes all that is in the kernel of this host away again. */
#include "host/removal.h"

#include <stdlib.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment_remove.h"
#include "lib/cleanup.h"
#include "net/bridge_entry.h"
#include "net/link.h"
#include "net/tc.h"

/* From here on nothing is claimed any more. */
static int mark_removed(const struct objects *objects, struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	meta.complete = META_REMOVED;
	return meta_write(objects, &meta, err);
}

static int remove_attachments(struct host *host, struct release *release, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct attachment *attachment = &entries[i].attachment;

		bridge_entry_delete(host->socket, attachment->ifindex, attachment->container_mac);
		if (attachment_remove_locked(release, &entries[i].key, &failure))
			result = cni_error_chain(err, &failure);
	}
	return result;
}

static bool is_meant(const struct attached_program *attached, const uint32_t *ids)
{
	return !ids || ids[attached->program] == attached->id;
}

/* What the bandwidth plugin sends a container's packets through. */
static bool detach_from_shaper(uint32_t ifindex, const uint32_t *ids)
{
	const struct attached_program attached = {MECHANISM_CLSACT, PROGRAM_FROM_CONTAINER,
						  shaper_program(ifindex)};

	if (!attached.id || !is_meant(&attached, ids))
		return false;
	hook_detach(ifindex, HOOK_EGRESS, &attached);
	return true;
}

/* `ids`: only those of our programs, or NULL. */
static void detach_from(struct host *host, const struct link_name *link, const uint32_t *ids)
{
	bool detached = detach_from_shaper(link->ifindex, ids);
	struct attached_programs found;
	struct interface entry;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(link->ifindex, (enum hook)hook, &found);
		for (size_t i = 0; i < found.count; i++) {
			if (!is_meant(&found.list[i], ids))
				continue;
			hook_detach(link->ifindex, (enum hook)hook, &found.list[i]);
			detached = true;
		}
	}
	if (detached)
		host_report(host, link->name, "detached");
	/* A killed run may have left the qdisc. */
	detached |= datapath_is_usable(&host->datapath) &&
		    interface_read(&host->datapath.objects, link->ifindex, &entry);
	if (detached && qdisc_is_empty_clsact(link->ifindex))
		qdisc_delete_clsact(link->ifindex);
}

static int detach_from_all(struct host *host, const uint32_t *ids, struct cni_error *err)
{
	cleanup_free struct link_name *links = NULL;
	size_t count;

	if (link_names_read(host->socket, &links, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		detach_from(host, &links[i], ids);
	return 0;
}

/* Nothing where the maps are not whole. */
static int close_ports(struct host *host, struct release *release, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;

	release->objects = objects;
	if (!datapath_is_usable(&host->datapath))
		return 0;
	return mark_removed(objects, err) ? -1 : remove_attachments(host, release, err);
}

int host_remove(struct host *host, int *lock, struct cni_error *err)
{
	struct release release = {0};

	if (close_ports(host, &release, err) || detach_from_all(host, NULL, err) ||
	    (bpffs_is_mounted() && pins_remove(host->datapath.directory, err)))
		return -1;
	release_finish(&release, lock);
	return 0;
}

int host_withdraw_if_removed(struct host *host, int result, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct cni_error failure = {0};
	cleanup_lock int lock = -1;

	if (!datapath_is_usable(&host->datapath) || !maps_are_removed(objects))
		return result;
	lock = lock_take(&failure);
	if (lock < 0)
		return cni_error_chain(err, &failure);
	/* An ADD that found these programs attached may have made the set whole again. */
	if (!maps_are_removed(objects))
		return result;
	detach_from_all(host, objects->program_ids, &failure);
	cni_error_release(&failure);
	return maps_refuse_removed(objects, err);
}
