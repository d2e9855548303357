/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_list.c - the attachments that GC is told to keep.
 */
#include "cni/attachment_list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cni/json.h"

static int attachment_compare(const void *left, const void *right)
{
	const struct cni_attachment *a = left;
	const struct cni_attachment *b = right;
	int order = strcmp(a->container_id, b->container_id);

	return order ? order : strcmp(a->ifname, b->ifname);
}

static bool has_key(const json_t *config, const char *key)
{
	json_t *constless = (json_t *)config; /* the iterators of jansson take no const */
	const char *candidate;
	json_t *value;

	json_object_foreach (constless, candidate, value) {
		if (!strcasecmp(candidate, key))
			return true;
	}
	return false;
}

static int read_attachment(struct cni_attachment *attachment, const json_t *entry, const char *key,
			   size_t index, struct cni_error *err)
{
	if (cni_json_check_element(entry, key, index, err))
		return -1;
	attachment->container_id = "";
	attachment->ifname = "";
	if (cni_json_get_string(entry, "containerID", &attachment->container_id, err) ||
	    cni_json_get_string(entry, "ifname", &attachment->ifname, err))
		return cni_error_wrap(err, "%s[%zu]", key, index);
	/* Half an entry would keep nothing, and GC would delete what it stands for. */
	if (!*attachment->container_id || !*attachment->ifname)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "%s[%zu] needs a containerID and an ifname", key, index);
	return 0;
}

int cni_attachment_list_read(struct cni_attachment_list *list, const json_t *config,
			     struct cni_error *err)
{
	const char *key = "cni.dev/valid-attachments";
	json_t *array = NULL;
	json_t *entry;
	size_t index;

	if (!has_key(config, key))
		key = "cni.dev/attachments";
	list->given = has_key(config, key);
	if (cni_json_get_array(config, key, &array, err))
		return -1;
	if (!json_array_size(array))
		return 0;

	list->attachments = calloc(json_array_size(array), sizeof(*list->attachments));
	if (!list->attachments)
		return cni_error_no_memory(err);
	json_array_foreach (array, index, entry) {
		if (read_attachment(&list->attachments[index], entry, key, index, err))
			return -1;
		list->count++;
	}
	qsort(list->attachments, list->count, sizeof(*list->attachments), attachment_compare);
	return 0;
}

void cni_attachment_list_release(struct cni_attachment_list *list)
{
	free(list->attachments);
	*list = (struct cni_attachment_list){0};
}

bool cni_attachment_list_has(const struct cni_attachment_list *list, const char *container_id,
			     const char *ifname)
{
	const struct cni_attachment wanted = {container_id, ifname};

	return list->count && bsearch(&wanted, list->attachments, list->count,
				      sizeof(*list->attachments), attachment_compare);
}
