/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cache.c - reads and decodes what libcni keeps of an ADD. */
#include "cni/cache.h"

#include <dirent.h>
#include <errno.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cni/conflist.h"
#include "lib/cleanup.h"
#include "lib/memory.h"

char *cni_cache_decode_list(const char *config, size_t *length)
{
	cleanup_free char *list = or_exit(malloc(BASE64_DECODE_LENGTH(strlen(config)) + 1));
	struct base64_decode_ctx decoder;

	*length = BASE64_DECODE_LENGTH(strlen(config));
	base64_decode_init(&decoder);
	if (!base64_decode_update(&decoder, length, (uint8_t *)list, strlen(config), config) ||
	    !base64_decode_final(&decoder))
		return NULL;
	return TAKE(list);
}

char *cni_cache_format_args(const json_t *pairs)
{
	const char *key, *value, *separator = "";
	const json_t *pair;
	char *text = NULL;
	size_t size, i;
	FILE *stream = or_exit(open_memstream(&text, &size));

	json_array_foreach (pairs, i, pair) {
		key = json_string_value(json_array_get(pair, 0));
		value = json_string_value(json_array_get(pair, 1));
		if (!key || !value)
			continue;
		fprintf(stream, "%s%s=%s", separator, key, value);
		separator = ";";
	}
	return or_exit(fclose(stream) ? NULL : text);
}

/* --- what runtimes keep of their ADDs --------------------------------------------------------- */

static const char *const directories[] = {
	ADD_CACHE,
	CNI_CACHE_DIRECTORY "/cache" CNI_CACHE_RESULTS,
};

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
	json_t *all = or_exit(json_array());

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

const char *add_cache_netns(const json_t *cached)
{
	const json_t *interfaces = json_object_get(json_object_get(cached, "result"), "interfaces");
	const char *path = add_cache_text(cached, "netns");
	const json_t *interface;
	size_t i;

	json_array_foreach (interfaces, i, interface)
		if (!*path &&
		    !strcmp(add_cache_text(interface, "name"), add_cache_text(cached, "ifName")))
			path = add_cache_text(interface, "sandbox");
	return path;
}

/* Those arguments that the plugin declares. */
static json_t *make_runtime_config(const json_t *plugin, const json_t *cached)
{
	const json_t *capabilities = json_object_get(plugin, "capabilities");
	json_t *config = json_object(), *value;
	const char *key;

	json_object_foreach (json_object_get(cached, "capabilityArgs"), key, value)
		if (json_is_true(json_object_get(capabilities, key)))
			json_object_set(config, key, value);
	return config;
}

json_t *add_cache_config(const json_t *cached)
{
	size_t length;
	cleanup_free char *text = cni_cache_decode_list(add_cache_text(cached, "config"), &length);
	cleanup_json json_t *list = text ? json_loadb(text, length, 0, NULL) : NULL;
	json_t *plugin = conflist_plugin(list, "bpf-portmap"), *config;
	json_t *result = json_object_get(cached, "result");

	/* Under the alias its type is portmap. */
	plugin = plugin ? plugin : conflist_plugin(list, "portmap");
	if (!plugin)
		return NULL;
	config = json_copy(plugin);
	json_object_set(config, "name", json_object_get(list, "name"));
	/* Of a list with several versions the result has the one that was spoken. */
	json_object_set(config, "cniVersion", json_object_get(result, "cniVersion"));
	json_object_set(config, "prevResult", result);
	json_object_set_new(config, "runtimeConfig", make_runtime_config(plugin, cached));
	return config;
}
