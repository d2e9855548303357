/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* detach.c - DEL, by what setup has written down. */
#include "netavark/detach.h"

#include "lib/cleanup.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"

int detach_read_written(struct cache_entry *entry, const struct request *request,
			struct cni_error *err)
{
	struct cni_error problem = {0};

	if (!cache_read(entry, request->network_name, &request->conf, &problem))
		return 0;
	if (entry->is_of_another) {
		*err = problem;
		return -1;
	}
	output_warn("going on without it: %s", cni_error_message(&problem));
	cni_error_release(&problem);
	cache_release(entry);
	return 0;
}

/* The list that setup has written down, since the network may have changed; without it, that of the
 * network as it is now. */
static int find_list(struct conflist *list, const struct cache_entry *entry, const json_t *root,
		     struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};

	if (!entry->root)
		return request_make_list_for_del(list, root, err);
	if (!cache_read_conflist(entry, list, &problem))
		return 0;
	output_warn("going by the network as it is now: %s", cni_error_message(&problem));
	conflist_release(list);
	return request_make_list_for_del(list, root, err);
}

int detach(struct conflist *list, const struct request *request, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct runtime_conf conf = request->conf;
	const struct operation operation = {"DEL", list, &conf, NULL, true, NULL};

	if (detach_read_written(&entry, request, err) ||
	    find_list(list, &entry, request->root, err))
		return -1;
	if (!conf.netns)
		conf.netns = entry.netns;
	/* Plugins know what to do without one, but not with a file that is no namespace any more,
	 * as after `umount`. */
	if (!conf.netns || netns_is_gone(conf.netns))
		conf.netns = "";
	if (entry.root) {
		conf.args = entry.args;
		conf.capability_args = entry.capability_args;
	}
	if (plugin_run_all(&operation, entry.result, NULL, err))
		return -1;
	return cache_remove(request->network_name, &conf, err);
}

void detach_forgotten(struct conflist *list, struct request request, const char *what)
{
	cleanup_error struct cni_error problem = {0};

	request.conf.netns = NULL;
	if (runtime_conf_validate(&request.conf, &problem) || detach(list, &request, &problem))
		output_warn("%s cannot be undone: %s", what, cni_error_message(&problem));
}
