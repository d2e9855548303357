/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* removal.c - takes all that is in the kernel of this host away again. */
#include "host/removal.h"

#include <stdlib.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment_remove.h"
#include "lib/cleanup.h"
#include "net/link.h"
#include "net/tc.h"

int host_remove_attachments(struct host *host, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	if (!datapath_is_usable(&host->datapath))
		return 0;
	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		bool was_there;

		if (attachment_remove_stale(&host->datapath.objects, &entries[i], &was_there,
					    &failure))
			result = cni_error_chain(err, &failure);
	}
	return result;
}

/* What the bandwidth plugin sends a container's packets through. */
static bool detach_from_shaper(uint32_t ifindex)
{
	const struct attached_program attached = {MECHANISM_CLSACT, PROGRAM_FROM_CONTAINER, 0};

	if (!shaper_program(ifindex))
		return false;
	hook_detach(ifindex, HOOK_EGRESS, &attached);
	return true;
}

static void detach_from(struct host *host, const struct link_name *link)
{
	struct attached_programs found;
	bool detached = detach_from_shaper(link->ifindex);
	struct interface entry;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(link->ifindex, (enum hook)hook, &found);
		for (size_t i = 0; i < found.count; i++)
			hook_detach(link->ifindex, (enum hook)hook, &found.list[i]);
		detached |= found.count > 0;
	}
	if (detached)
		host_report(host, link->name, "detached");
	/* A killed run may have left the qdisc. */
	detached |= datapath_is_usable(&host->datapath) &&
		    interface_read(&host->datapath.objects, link->ifindex, &entry);
	if (detached && qdisc_is_empty_clsact(link->ifindex))
		qdisc_delete_clsact(link->ifindex);
}

static bool has_programs(uint32_t ifindex)
{
	struct attached_programs found;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(ifindex, (enum hook)hook, &found);
		if (found.count)
			return true;
	}
	return shaper_program(ifindex) != 0;
}

bool host_has_programs(struct host *host)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_free struct link_name *links = NULL;
	size_t count = 0;

	link_names_read(host->socket, &links, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		if (has_programs(links[i].ifindex))
			return true;
	return false;
}

int host_remove_programs(struct host *host, struct cni_error *err)
{
	cleanup_free struct link_name *links = NULL;
	cleanup_lock int lock = lock_take(err);
	size_t count;

	if (lock < 0 || link_names_read(host->socket, &links, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		detach_from(host, &links[i]);
	return bpffs_is_mounted() ? pins_remove(host->datapath.directory, err) : 0;
}
