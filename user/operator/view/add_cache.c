/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* add_cache.c - what runtimes keep of their ADDs. */
#include "operator/view/add_cache.h"

#include <dirent.h>
#include <errno.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "operator/conflists.h"

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

/* libcni keeps the conflist in a Go []byte, which is base64 in JSON. */
static json_t *decode_list(const json_t *cached)
{
	const char *text = add_cache_text(cached, "config");
	size_t length = BASE64_DECODE_LENGTH(strlen(text));
	cleanup_free uint8_t *list = or_exit(malloc(length + 1));
	struct base64_decode_ctx decoding;

	base64_decode_init(&decoding);
	if (!base64_decode_update(&decoding, &length, list, strlen(text), text) ||
	    !base64_decode_final(&decoding))
		return NULL;
	return json_loadb((const char *)list, length, 0, NULL);
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
	cleanup_json json_t *list = decode_list(cached);
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

/* [["K", "V"], ...] becomes "K=V;..." */
char *add_cache_arguments(const json_t *cached)
{
	const json_t *pair;
	char *joined = NULL;
	size_t size, i;
	FILE *stream = or_exit(open_memstream(&joined, &size));

	json_array_foreach (json_object_get(cached, "cniArgs"), i, pair) {
		const char *key = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));

		if (key && value)
			fprintf(stream, "%s%s=%s", i ? ";" : "", key, value);
	}
	fclose(stream);
	return or_exit(joined);
}
