/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_conf.c - what an operation is about: names, CNI_ARGS, network namespaces. */
#include "runtimes/cnirun/runtime_conf.h"

#include <errno.h>
#include <linux/magic.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "cni/environment.h"

#define ID_PREFIX "cnitool-"
#define ID_BYTES 10

/* Parts of the argument, within a copy of it. */
struct publication {
	const char *host_address; /* NULL: every address */
	const char *host_ports;
	const char *container_ports;
	const char *protocol;
};

static int set_publish_error(const char *text, const char *why, struct cni_error *err)
{
	return cni_error_set(
		err, CNI_ERROR_INVALID_ENVIRONMENT,
		"invalid -p \"%s\": %s; it is [HOSTIP:]HOSTPORT:CONTAINERPORT[/PROTO], "
		"such as 8080:80, 192.0.2.1:53:53/udp, [2001:db8::1]:8000-8010:80-90",
		text, why);
}

/* The whole text. */
static bool parse_range(const char *text, struct port_range *range)
{
	const char *rest = port_range_parse(text, range);

	return rest && !*rest && range->first <= range->last;
}

/* From right to left, as only the host address may have colons of its own. */
static int split_publication(char *copy, struct publication *publication, const char *text,
			     struct cni_error *err)
{
	char *slash = strchr(copy, '/');
	char *colon;
	size_t length;

	publication->protocol = slash ? slash + 1 : "tcp";
	if (slash)
		*slash = '\0';
	colon = strrchr(copy, ':');
	if (!colon)
		return set_publish_error(text, "it has no container port", err);
	publication->container_ports = colon + 1;
	*colon = '\0';
	colon = strrchr(copy, ':');
	publication->host_ports = colon ? colon + 1 : copy;
	if (!colon)
		return 0;
	*colon = '\0';
	publication->host_address = copy;
	length = strlen(copy);
	if (*copy == '[' && copy[length - 1] == ']') {
		copy[length - 1] = '\0';
		publication->host_address = copy + 1;
	} else if (strchr(copy, ':')) {
		return set_publish_error(
			text, "an IPv6 address must be in brackets, before two ports", err);
	}
	return 0;
}

static int validate_publication(struct publication *publication, struct port_range *host,
				struct port_range *container, const char *text,
				struct cni_error *err)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	size_t protocol = 0;

	while (mapped_protocols[protocol] &&
	       strcasecmp(publication->protocol, mapped_protocols[protocol]))
		protocol++;
	/* In lower case, which every plugin accepts. */
	publication->protocol = mapped_protocols[protocol];
	if (!publication->protocol)
		return set_publish_error(text, "the protocol is none of tcp, udp, sctp", err);
	if (publication->host_address && cni_address_parse(publication->host_address, address))
		return set_publish_error(text, "the host address is no IP address", err);
	if (!parse_range(publication->host_ports, host))
		return set_publish_error(text, "the host port is not within 1-65535", err);
	if (!parse_range(publication->container_ports, container))
		return set_publish_error(text, "the container port is not within 1-65535", err);
	if (host->last - host->first != container->last - container->first)
		return set_publish_error(text, "the two ranges differ in length", err);
	return 0;
}

int portmapping_parse(const char *text, json_t *mappings, struct cni_error *err)
{
	cleanup_free char *copy = or_exit(strdup(text));
	struct publication publication = {0};
	struct port_range container, host;

	if (split_publication(copy, &publication, text, err) ||
	    validate_publication(&publication, &host, &container, text, err))
		return -1;
	for (int i = 0; host.first + i <= host.last; i++)
		json_array_append_new(
			mappings,
			json_pack("{s:I, s:I, s:s, s:s*}", "hostPort", (json_int_t)(host.first + i),
				  "containerPort", (json_int_t)(container.first + i), "protocol",
				  publication.protocol, "hostIP", publication.host_address));
	return 0;
}

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

char *netns_resolve(const char *path_or_name, struct cni_error *err)
{
	cleanup_free char *here = NULL;

	if (!strcmp(path_or_name, ".") || !strcmp(path_or_name, ".."))
		return cni_error_null(
			err, CNI_ERROR_INVALID_ENVIRONMENT,
			"\"%s\" is no network namespace: give a path, or a name that `ip "
			"netns` lists",
			path_or_name);
	if (!*path_or_name || *path_or_name == '/')
		return or_exit(strdup(path_or_name));
	if (!strchr(path_or_name, '/'))
		return cni_format("/run/netns/%s", path_or_name);
	here = getcwd(NULL, 0);
	if (here)
		return cni_format("%s/%s", here, path_or_name);
	return cni_error_null(err, CNI_ERROR_IO, "cannot tell where \"%s\" is: %s", path_or_name,
			      strerror(errno));
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
