/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.c - what a plugin finds on stdin.
 */
#include "cnirun/request.h"

#include "cni/cleanup.h"
#include "cni/json.h"

static json_t *compose_base(const struct conflist *list, const json_t *plugin,
			    struct cni_error *err)
{
	/* Shallow: only keys of the top are set, never what hangs below them. */
	cleanup_json json_t *request = json_copy((json_t *)plugin);

	if (!request) {
		cni_error_no_memory(err);
		return NULL;
	}
	if (cni_json_set_new(request, "name", json_string(list->name), err) ||
	    cni_json_set_new(request, "cniVersion", json_string(list->version), err))
		return NULL;
	return TAKE(request);
}

/* An object, empty where nothing of what is declared was given. */
static json_t *declared_arguments(const json_t *plugin, const json_t *capability_args)
{
	cleanup_json json_t *declared = json_object();
	const char *capability;
	json_t *value;

	json_object_foreach ((json_t *)capability_args, capability, value) {
		if (plugin_has_capability(plugin, capability) &&
		    json_object_set(declared, capability, value))
			return NULL;
	}
	return TAKE(declared);
}

static int add_runtime_config(json_t *request, const json_t *plugin, const json_t *capability_args,
			      struct cni_error *err)
{
	cleanup_json json_t *declared = declared_arguments(plugin, capability_args);

	if (!declared)
		return cni_error_no_memory(err);
	if (!json_object_size(declared))
		return 0;
	return cni_json_set_new(request, "runtimeConfig", TAKE(declared), err);
}

json_t *request_compose(const struct conflist *list, const json_t *plugin, json_t *prev_result,
			const json_t *capability_args, struct cni_error *err)
{
	cleanup_json json_t *request = compose_base(list, plugin, err);

	if (!request)
		return NULL;
	if (prev_result && cni_json_set_new(request, "prevResult", json_incref(prev_result), err))
		return NULL;
	if (add_runtime_config(request, plugin, capability_args, err))
		return NULL;
	return TAKE(request);
}

json_t *request_compose_gc(const struct conflist *list, const json_t *plugin,
			   json_t *valid_attachments, struct cni_error *err)
{
	cleanup_json json_t *request = compose_base(list, plugin, err);

	/* cni.dev/attachments is what the specification said first; libcni sends both. */
	if (!request ||
	    cni_json_set_new(request, "cni.dev/valid-attachments", json_incref(valid_attachments),
			     err) ||
	    cni_json_set_new(request, "cni.dev/attachments", json_incref(valid_attachments), err))
		return NULL;
	return TAKE(request);
}
