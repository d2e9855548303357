/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* container_names.c - the names that engines have given to containers. */
#include "operator/view/container_names.h"

#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "cni/cache.h"

#define MAX_NAMES 65536

/* Of nerdctl: the file's name is the container's, its content the ID. */
#define NERDCTL_NAMES "/var/lib/nerdctl/*/names/*/*"
/* Podman keeps its names here, as does whoever else uses containers/storage. */
#define STORAGE_CONTAINERS "/var/lib/containers/storage/*-containers/*containers.json"

static void add(struct container_names *names, const char *id, const char *namespace,
		const char *name)
{
	struct container_name *added;

	if (!*id || !*name || strlen(id) >= CONTAINER_NAME_SIZE || names->count == MAX_NAMES)
		return;
	added = ARRAY_ADD(names->list, names->count);
	snprintf(added->id, sizeof(added->id), "%s", id);
	snprintf(added->name, sizeof(added->name), "%s", name);
	snprintf(added->namespace, sizeof(added->namespace), "%s", namespace);
	cni_printable(added->name, "");
	cni_printable(added->namespace, "");
}

/* malloc'ed; NULL: it is no file that an engine writes. */
static char *read_file(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	cleanup_error struct cni_error ignored = {0};
	size_t length;

	return fd < 0 ? NULL : cni_read_all(fd, CNI_INPUT_LIMIT, path, &length, &ignored);
}

/* ".../names/NAMESPACE/NAME": its CNI_CONTAINERID is "NAMESPACE-ID". */
static void take_nerdctl(struct container_names *names, char *path)
{
	cleanup_free char *text = read_file(path);
	cleanup_free char *id = NULL;
	char *name = strrchr(path, '/');
	const char *namespace;

	if (!text || !name)
		return;
	*name++ = '\0';
	namespace = strrchr(path, '/') + 1;
	text[strcspn(text, "\n")] = '\0';
	id = cni_format("%s-%s", namespace, text);
	if (id)
		add(names, id, "", name);
}

/* [{"id": "4f1c...", "names": ["web"]}] */
static void take_storage(struct container_names *names, char *path)
{
	cleanup_free char *text = read_file(path);
	cleanup_json json_t *containers = text ? json_loads(text, 0, NULL) : NULL;
	const json_t *container;
	size_t index;

	json_array_foreach (containers, index, container) {
		const char *id = json_string_value(json_object_get(container, "id"));
		const char *name =
			json_string_value(json_array_get(json_object_get(container, "names"), 0));

		if (id && name)
			add(names, id, "", name);
	}
}

static const char *argument_of(const json_t *cached, const char *key)
{
	const json_t *pair;
	size_t i;

	json_array_foreach (json_object_get(cached, "cniArgs"), i, pair) {
		const char *name = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));

		if (name && value && !strcmp(name, key))
			return value;
	}
	return "";
}

/* Pods' names are arguments of their ADD, which libcni keeps. */
static void take_pods(struct container_names *names)
{
	bool incomplete;
	cleanup_json json_t *all = add_cache_read(&incomplete);
	const json_t *cached;
	size_t i;

	json_array_foreach (all, i, cached)
		if (*argument_of(cached, "K8S_POD_NAMESPACE"))
			add(names, add_cache_text(cached, "containerId"),
			    argument_of(cached, "K8S_POD_NAMESPACE"),
			    argument_of(cached, "K8S_POD_NAME"));
}

static void take_files(struct container_names *names, const char *pattern,
		       void (*take)(struct container_names *names, char *path))
{
	glob_t found = {0};

	if (!glob(pattern, GLOB_NOSORT, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			take(names, found.gl_pathv[i]);
	globfree(&found);
}

const struct container_name *container_name_of(struct container_names *names,
					       const char *container_id)
{
	if (!names->read) {
		names->read = true;
		take_files(names, NERDCTL_NAMES, take_nerdctl);
		take_files(names, STORAGE_CONTAINERS, take_storage);
		take_pods(names);
	}
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->list[i].id, container_id))
			return &names->list[i];
	return NULL;
}

const char *engine_id(const char *container_id)
{
	return engine_id_digits(container_id) ?: container_id;
}

const char *container_name_write(struct container_names *names, const char *container_id,
				 char text[ENGINE_TEXT_SIZE])
{
	const struct container_name *name = container_name_of(names, container_id);
	const char *digits = engine_id_digits(container_id);

	if (name)
		snprintf(text, ENGINE_TEXT_SIZE, "%s%s%s", name->namespace,
			 *name->namespace ? "/" : "", name->name);
	else
		snprintf(text, ENGINE_TEXT_SIZE, "%.*s",
			 digits ? ENGINE_ID_SHOWN : CONTAINER_NAME_SIZE, digits ?: container_id);
	return text;
}

void container_names_release(struct container_names *names)
{
	free(names->list);
	*names = (struct container_names){0};
}
