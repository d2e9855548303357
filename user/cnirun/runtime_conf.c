/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_conf.c - what an operation is about: names, CNI_ARGS, network namespaces. */
#include "cnirun/runtime_conf.h"

#include <errno.h>
#include <linux/magic.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "cni/environment.h"
#include "lib/text.h"

#define ID_PREFIX "cnitool-"
#define ID_BYTES 10

int runtime_conf_validate(const struct runtime_conf *conf, struct cni_error *err)
{
	if (cni_validate_container_id(conf->container_id, err))
		return -1;
	return cni_validate_ifname(conf->ifname, err);
}

static int parse_pair(json_t *pairs, const char *text, size_t length, struct cni_error *err)
{
	const char *equals = memchr(text, '=', length);
	size_t key = equals ? (size_t)(equals - text) : 0;
	json_t *pair;

	/* Plugins read them with types.LoadArgs(), which refuses "=" in a value. */
	if (!key || key + 1 == length || memchr(equals + 1, '=', length - key - 1))
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid CNI_ARGS pair \"%.*s\": must be KEY=VALUE with one "
				     "\"=\", pairs are separated by semicolons",
				     (int)length, text);
	pair = json_pack("[s%, s%]", text, key, equals + 1, length - key - 1);
	if (!pair)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid CNI_ARGS pair \"%.*s\": not UTF-8", (int)length,
				     text);
	return json_array_append_new(pairs, pair);
}

json_t *args_parse(const char *text, struct cni_error *err)
{
	cleanup_json json_t *pairs = json_array();

	while (*text) {
		size_t length = strcspn(text, ";");

		if (parse_pair(pairs, text, length, err))
			return NULL;
		text += length;
		/* A semicolon at the end begins an empty pair, which is invalid. */
		if (*text == ';' && !*++text && parse_pair(pairs, text, 0, err))
			return NULL;
	}
	return TAKE(pairs);
}

char *args_format(const json_t *pairs)
{
	char *text = NULL;
	size_t size;
	FILE *stream = or_exit(open_memstream(&text, &size));
	const json_t *pair;
	size_t index;

	json_array_foreach (pairs, index, pair)
		fprintf(stream, "%s%s=%s", index ? ";" : "",
			json_string_value(json_array_get(pair, 0)),
			json_string_value(json_array_get(pair, 1)));
	return or_exit(fclose(stream) ? NULL : text);
}

char *netns_resolve(const char *path_or_name, struct cni_error *err)
{
	cleanup_free char *here = NULL;

	if (!strcmp(path_or_name, ".") || !strcmp(path_or_name, "..")) {
		cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			      "\"%s\" is no network namespace: give a path, or a name that `ip "
			      "netns` lists",
			      path_or_name);
		return NULL;
	}
	if (!*path_or_name || *path_or_name == '/')
		return or_exit(strdup(path_or_name));
	if (!strchr(path_or_name, '/'))
		return cni_format("/run/netns/%s", path_or_name);
	here = getcwd(NULL, 0);
	if (here)
		return cni_format("%s/%s", here, path_or_name);
	cni_error_set(err, CNI_ERROR_IO, "cannot tell where \"%s\" is: %s", path_or_name,
		      strerror(errno));
	return NULL;
}

bool netns_is_gone(const char *path)
{
	struct statfs status;

	if (statfs(path, &status))
		return errno == ENOENT || errno == ENOTDIR;
	return status.f_type != NSFS_MAGIC;
}

char *netns_default_container_id(const char *path)
{
	char id[sizeof(ID_PREFIX) + BASE16_ENCODE_LENGTH(ID_BYTES)] = ID_PREFIX;
	uint8_t digest[ID_BYTES];
	struct sha512_ctx hash;

	sha512_init(&hash);
	sha512_update(&hash, strlen(path), (const uint8_t *)path);
	sha512_digest(&hash, sizeof(digest), digest);
	base16_encode_update(id + strlen(ID_PREFIX), sizeof(digest), digest);
	return or_exit(strdup(id));
}
