/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmapping.c - -p [HOSTIP:]HOSTPORT:CONTAINERPORT[/PROTO] to runtimeConfig.portMappings.
 *
 * CNI has no ranges, so runtimes expand them.
 */
#include "cnirun/portmapping.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/memory.h"

#define PORT_MAX 65535

struct ports {
	long first;
	long last;
};

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

static bool parse_port(const char **text, long *port)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*port = strtol(*text, &end, 10);
	*text = end;
	return *port >= 1 && *port <= PORT_MAX;
}

static bool parse_range(const char *text, struct ports *range)
{
	if (!parse_port(&text, &range->first))
		return false;
	range->last = range->first;
	if (*text == '-' && (text++, !parse_port(&text, &range->last)))
		return false;
	return !*text && range->first <= range->last;
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

static int validate_publication(struct publication *publication, struct ports *host,
				struct ports *container, const char *text, struct cni_error *err)
{
	static const char *const protocols[] = {"tcp", "udp", "sctp", NULL};
	uint8_t address[CNI_ADDRESS_SIZE];
	size_t protocol = 0;

	while (protocols[protocol] && strcasecmp(publication->protocol, protocols[protocol]))
		protocol++;
	/* In lower case, which every plugin accepts. */
	publication->protocol = protocols[protocol];
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
	struct ports container;
	struct ports host;

	if (split_publication(copy, &publication, text, err) ||
	    validate_publication(&publication, &host, &container, text, err))
		return -1;
	for (long i = 0; host.first + i <= host.last; i++)
		json_array_append_new(
			mappings,
			json_pack("{s:I, s:I, s:s, s:s*}", "hostPort", (json_int_t)(host.first + i),
				  "containerPort", (json_int_t)(container.first + i), "protocol",
				  publication.protocol, "hostIP", publication.host_address));
	return 0;
}
