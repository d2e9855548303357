/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* gc.c - GC: removes attachments of this network that are no longer valid. */
#include <string.h>

#include "cni/network_config.h"
#include "lib/cleanup.h"
#include "datapath/records/attachments.h"
#include "datapath/records/attachment.h"
#include "plugin/commands.h"
#include "host/host.h"
#include "host/interfaces.h"

static bool is_stale(struct host *host, const json_t *valid, const char *network,
		     const struct attachment_entry *entry)
{
	struct attachment_name name;

	if (!attachment_name_split(entry->key.name, &name) || strcmp(name.network, network) != 0)
		return false;
	if (valid)
		return !cni_attachments_have(valid, name.container_id, name.ifname);
	/* The runtime does not say which are valid. */
	return attachment_is_abandoned(&host->datapath.objects, entry);
}

static int collect_garbage(struct host *host, const json_t *valid, const char *network,
			   struct cni_error *err)
{
	const struct look_at at = {.entries = true};
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_plan struct plan plan = {0};
	int result = 0;
	size_t count;

	if (host_open(host, DATAPATH_WORK, err) || host_recover_any(host, err))
		return -1;
	if (!datapath_is_usable(&host->datapath))
		return 0;
	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct attachment_key *key = &entries[i].key;
		struct cni_error failure = {0};
		bool was_there;

		if (!is_stale(host, valid, network, &entries[i]) ||
		    !attachment_remove_stale(&host->datapath.objects, &entries[i], &was_there,
					     &failure))
			continue;
		cni_error_wrap(&failure, "%.*s", ATTACHMENT_KEY_SIZE, key->name);
		result = cni_error_chain(err, &failure);
	}
	return result ? -1 : host_settle(host, &at, &plan, err);
}

int command_gc(const struct cni_environment *environment, const struct cni_network_config *config,
	       struct cni_error *err)
{
	cleanup_json json_t *valid = NULL;
	cleanup_host struct host host = {0};

	return cni_attachments_read(&valid, config->root, err) ||
			       collect_garbage(&host, valid, config->name, err)
		       ? -1
		       : 0;
}
