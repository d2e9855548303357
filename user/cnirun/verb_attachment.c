/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verb_attachment.c - add, del and check: one attachment, under its lock.
 */
#include "cni/cleanup.h"
#include "cnirun/attachment.h"
#include "cnirun/conflist.h"
#include "cnirun/lock.h"
#include "cnirun/netns.h"
#include "cnirun/output.h"
#include "cnirun/verbs.h"

#define cleanup_conflist __attribute__((cleanup(conflist_release)))

static int describe(struct attachment *attachment, const struct conflist *list,
		    const struct options *options, struct cni_error *err)
{
	if (!options->container_id)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "NETNS is empty: --id must say which container it is");
	*attachment = (struct attachment){
		.list = list,
		.container_id = options->container_id,
		.ifname = options->ifname,
		.netns = options->netns,
		.args = options->args,
		.capability_args = options->capability_args,
		.execution = options->execution,
		.cache_directory = options->cache_directory,
	};
	/* Before the lock, whose file has the names in its own. */
	return attachment_validate(attachment, err);
}

static int lock_for(struct lock *lock, const struct attachment *attachment, struct cni_error *err)
{
	return lock_attachment(lock, attachment->cache_directory, attachment->list->name,
			       attachment->container_id, attachment->ifname, err);
}

static int require_netns(const struct options *options, struct cni_error *err)
{
	if (!*options->netns)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "NETNS is empty: only del can do without");
	if (!netns_is_gone(options->netns))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
			     "there is no network namespace %s: make it with `ip netns add`, or "
			     "give the path of another",
			     options->netns);
}

/* A port that was asked for and that no plugin would map is not to be dropped silently. */
static int require_capabilities(const struct conflist *list, const struct options *options,
				struct cni_error *err)
{
	const char *capability;
	json_t *value;

	json_object_foreach (options->demanded, capability, value) {
		if (!conflist_has_capability(list, capability))
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "no plugin of the list \"%s\" declares the capability "
					     "\"%s\": add \"capabilities\": {\"%s\": true} to the "
					     "plugin that has it",
					     list->name, capability, capability);
	}
	return 0;
}

int verb_add(const struct options *options, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	cleanup_lock struct lock lock = LOCK_NONE;
	cleanup_json json_t *result = NULL;
	struct attachment attachment;

	if (conflist_find(&list, options->conflist, err) ||
	    describe(&attachment, &list, options, err) || require_netns(options, err) ||
	    require_capabilities(&list, options, err) || lock_for(&lock, &attachment, err) ||
	    attachment_add(&attachment, &result, err))
		return -1;
	return output_json(result, err);
}

/* A verb that needs the attachment and nothing else. */
static int call(const struct options *options,
		int (*verb)(const struct attachment *attachment, struct cni_error *err),
		struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	cleanup_lock struct lock lock = LOCK_NONE;
	struct attachment attachment;

	if (conflist_find(&list, options->conflist, err) ||
	    describe(&attachment, &list, options, err) || lock_for(&lock, &attachment, err))
		return -1;
	return verb(&attachment, err);
}

int verb_del(const struct options *options, struct cni_error *err)
{
	return call(options, attachment_del, err);
}

int verb_check(const struct options *options, struct cni_error *err)
{
	return call(options, attachment_check, err);
}
