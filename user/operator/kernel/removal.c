/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* removal.c - takes all that is in the kernel of this host away again. */
#include "operator/kernel/removal.h"

#include <stdlib.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment_remove.h"
#include "lib/cleanup.h"
#include "net/bridge_entry.h"
#include "net/link.h"
#include "net/tc.h"

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

/* What the bandwidth plugin sends a container's packets through. */
static bool detach_from_shaper(uint32_t ifindex)
{
	const struct attached_program attached = {MECHANISM_CLSACT, PROGRAM_FROM_CONTAINER,
						  shaper_program(ifindex)};

	if (!attached.id)
		return false;
	hook_detach(ifindex, HOOK_EGRESS, &attached);
	return true;
}

static void detach_from(struct host *host, const struct link_name *link)
{
	bool detached = detach_from_shaper(link->ifindex);
	struct attached_programs found;
	struct interface entry;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(link->ifindex, (enum hook)hook, &found);
		for (size_t i = 0; i < found.count; i++) {
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

static int detach_from_all(struct host *host, struct cni_error *err)
{
	struct link_names links = {0};
	int result = link_names_read(host->socket, &links, err);

	for (size_t i = 0; i < links.count && !result; i++)
		detach_from(host, &links.list[i]);
	free(links.list);
	return result;
}

int host_remove(struct host *host, struct cni_error *err)
{
	struct release release = {.objects = &host->datapath.objects};

	if ((datapath_is_usable(&host->datapath) && remove_attachments(host, &release, err)) ||
	    detach_from_all(host, err) ||
	    (bpffs_is_mounted() && pins_remove(host->datapath.directory, err)))
		return -1;
	release_finish(&release, &host->datapath.lock);
	return 0;
}
