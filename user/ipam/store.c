/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store.c - which addresses host-local has given, from its own files.
 *
 * A file for each address, in a directory for each network. Its first line is the container's ID.
 */
#include "ipam/store.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cnirun/directory.h"
#include "ipam/plan.h"

#define DEFAULT_DIRECTORY "/var/lib/cni/networks"

/* A file that has gone meanwhile is no error. */
static void read_file(json_t *found, const char *path, const struct prefix *prefix)
{
	cleanup_error struct cni_error ignored = {0};
	uint8_t address[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];
	cleanup_free char *id = NULL;
	struct stat status;
	size_t length;

	if (cni_address_parse(strrchr(path, '/') + 1, address) ||
	    !prefix_contains(prefix, address) || stat(path, &status))
		return;
	id = directory_read_file(path, &length, &ignored);
	if (!id)
		return;
	id[strcspn(id, "\r\n")] = '\0';
	cni_make_utf8(id);
	json_object_set_new(
		found, cni_address_format(address, text),
		json_pack("{s:s, s:I}", "id", id, "since", (json_int_t)status.st_mtime));
}

json_t *store_read(const json_t *pool, struct cni_error *err)
{
	const json_t *plan = json_object_get(pool, "plan");
	const json_t *ipam = cni_json_get(json_object_get(plan, "config"), "ipam");
	const char *directory = json_string_value(cni_json_get(ipam, "dataDir"));
	const char *name = json_string_value(json_object_get(plan, "name"));
	cleanup_json json_t *found = json_object();
	cleanup_directory struct directory files = {0};
	struct prefix prefix = plan_prefix(pool);
	cleanup_free char *path = NULL;

	/* Only host-local is given a range. */
	if (!name || !json_object_get(plan, "range"))
		return TAKE(found);
	path = cni_format("%s/%s", directory && *directory ? directory : DEFAULT_DIRECTORY, name);
	if (directory_list(&files, path, NULL, err))
		return NULL;
	for (size_t i = 0; i < files.count; i++)
		read_file(found, files.paths[i], &prefix);
	return TAKE(found);
}
