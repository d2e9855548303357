/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* add_cache.c - what runtimes keep of their ADDs. */
#include "operator/add_cache.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cni/json.h"
#include "lib/memory.h"

static const char *const directories[] = {ADD_CACHE, "/var/lib/cni/cache/results"};

/* What is there but is no JSON tells nothing; what cannot be opened might. */
static void read_file(json_t *all, const char *path, bool *incomplete)
{
	json_error_t error = {0};
	json_t *object = json_load_file(path, 0, &error);

	if (!object && (json_error_code(&error) == json_error_cannot_open_file ||
			json_error_code(&error) == json_error_out_of_memory))
		*incomplete = true;
	if (!json_is_object(object))
		json_decref(object);
	else if (json_array_append_new(all, object))
		*incomplete = true;
}

static void read_directory(json_t *all, const char *directory, bool *incomplete)
{
	DIR *stream = opendir(directory);
	const struct dirent *entry;
	char path[512];

	while (stream && (entry = readdir(stream))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		read_file(all, path, incomplete);
	}
	if (!stream && errno != ENOENT)
		*incomplete = true;
	if (stream)
		closedir(stream);
}

json_t *add_cache_read(bool *incomplete)
{
	json_t *all;

	cni_json_begin();
	all = need(json_array());
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		read_directory(all, directories[i], incomplete);
	return all;
}

const char *add_cache_text(const json_t *cached, const char *key)
{
	const char *text = json_string_value(json_object_get(cached, key));

	return text ? text : "";
}

bool add_cache_has_address(const json_t *cached, const uint8_t address[CNI_ADDRESS_SIZE])
{
	const json_t *ips = json_object_get(json_object_get(cached, "result"), "ips"), *ip;
	uint8_t one[CNI_ADDRESS_SIZE], length;
	size_t i;

	json_array_foreach (ips, i, ip)
		if (!cni_address_parse_cidr(add_cache_text(ip, "address"), one, &length) &&
		    !memcmp(one, address, CNI_ADDRESS_SIZE))
			return true;
	return false;
}

bool add_cache_is_gone(const json_t *cached)
{
	const char *path = add_cache_text(cached, "netns");
	struct stat status;

	return *path && stat(path, &status) && (errno == ENOENT || errno == ENOTDIR);
}

/* [["K", "V"], ...] becomes "K=V;..." */
char *add_cache_arguments(const json_t *cached)
{
	const json_t *pair;
	char *joined = NULL;
	size_t size, i;
	FILE *stream = need(open_memstream(&joined, &size));

	json_array_foreach (json_object_get(cached, "cniArgs"), i, pair) {
		const char *key = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));

		if (key && value)
			fprintf(stream, "%s%s=%s", i ? ";" : "", key, value);
	}
	fclose(stream);
	return need(joined);
}
