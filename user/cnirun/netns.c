/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * netns.c - network namespaces by path or by name.
 */
#define _GNU_SOURCE
#include "cnirun/netns.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"

#define ID_PREFIX "cnitool-"
#define ID_BYTES 10

static char *join(const char *directory, const char *name, struct cni_error *err)
{
	char *path;

	if (asprintf(&path, "%s%s%s", directory, *directory ? "/" : "", name) >= 0)
		return path;
	cni_error_no_memory(err);
	return NULL;
}

char *netns_resolve(const char *path_or_name, struct cni_error *err)
{
	cleanup_free char *here = NULL;

	if (!*path_or_name || *path_or_name == '/')
		return join("", path_or_name, err);
	if (!strcmp(path_or_name, ".") || !strcmp(path_or_name, "..")) {
		cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			      "\"%s\" is no network namespace: give a path, or a name that `ip "
			      "netns` lists",
			      path_or_name);
		return NULL;
	}
	if (!strchr(path_or_name, '/'))
		return join("/run/netns", path_or_name, err);
	here = getcwd(NULL, 0);
	if (!here) {
		cni_error_set(err, CNI_ERROR_IO, "cannot tell where \"%s\" is: %s", path_or_name,
			      strerror(errno));
		return NULL;
	}
	return join(here, path_or_name, err);
}

bool netns_is_gone(const char *path)
{
	return access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR);
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
	return strdup(id);
}
