/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* named_uplinks.c - "uplinks" that name no interface there is. */
#include "host/named_uplinks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/link_names.h"
#include "host/uplinks.h"

#define LIST_SIZE 256

static bool is_served(const struct host *host, const struct conf *conf, uint32_t ifindex,
		      const char *name)
{
	struct interface interface;

	return uplink_wish(conf, name) == WISH_NAMED &&
	       interface_read(&host->datapath.objects, ifindex, &interface) &&
	       (interface.role == ROLE_UPLINK || interface.role == ROLE_BRIDGE);
}

static bool one_has_an_address(const struct host *host, const struct conf *conf)
{
	char name[IF_NAMESIZE];

	for (size_t i = 0; i < host->addresses.count; i++) {
		uint32_t ifindex = host->addresses.interfaces[i].ifindex;

		if (link_name(host->socket, ifindex, name) && is_served(host, conf, ifindex, name))
			return true;
	}
	return false;
}

/* BGP unnumbered. All interfaces are listed only where a glob may mean any of them. */
static bool one_has_no_address(const struct host *host, const struct conf *conf)
{
	cleanup_free struct link_name *links = NULL;
	struct cni_error ignored = {0};
	bool has_glob = false;
	size_t count = 0;

	for (size_t i = 0; i < conf->uplinks.count; i++) {
		const char *name = conf->uplinks.patterns[i];

		has_glob |= conf_is_glob(name);
		if (!conf_is_glob(name) && is_served(host, conf, link_index(name), name))
			return true;
	}
	if (has_glob && link_names_read(host->socket, &links, &count, &ignored))
		cni_error_release(&ignored);
	for (size_t i = 0; i < count; i++)
		if (is_served(host, conf, links[i].ifindex, links[i].name))
			return true;
	return false;
}

/* Appends what fits, and says where something does not. */
static void append(char list[LIST_SIZE], const char *quote, const char *name)
{
	size_t length = strlen(list);
	const char *separator = length ? ", " : "";

	if (length + strlen(name) + 10 < LIST_SIZE)
		snprintf(list + length, LIST_SIZE - length, "%s%s%s%s", separator, quote, name,
			 quote);
	else if (length < 3 || strcmp(list + length - 3, "..."))
		snprintf(list + length, LIST_SIZE - length, ", ...");
}

/* Neither containers' own interfaces nor those that could be no uplink. */
static void list_possible(struct host *host, char list[LIST_SIZE])
{
	char why_not[WHY_NOT_SIZE];
	struct cni_error ignored = {0};
	struct link link;

	for (size_t i = 0; i < host->addresses.count; i++) {
		if (link_get(host->socket, host->addresses.interfaces[i].ifindex, NULL, &link,
			     &ignored)) {
			cni_error_release(&ignored);
			return;
		}
		if (uplink_is_possible(host, &link, why_not))
			append(list, "", link.name);
	}
}

int named_uplinks_verify(struct host *host, const struct container *container,
			 struct cni_error *err)
{
	const struct conf *conf = &container->conf;
	char named[LIST_SIZE] = "", possible[LIST_SIZE] = "";

	if (!conf->uplinks.count || container_wants_nothing(container) ||
	    one_has_an_address(host, conf) || one_has_no_address(host, conf))
		return 0;
	for (size_t i = 0; i < conf->uplinks.count; i++)
		append(named, "\"", conf->uplinks.patterns[i]);
	list_possible(host, possible);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "\"uplinks\" (%s) match no interface that can be one, so mapped ports"
			     " are not reached from outside, and containers leave with their own"
			     " addresses; there are %s",
			     named, *possible ? possible : "none");
}

void named_uplinks_warn(struct host *host, const struct container *container)
{
	struct cni_error why = {0};

	if (named_uplinks_verify(host, container, &why))
		warning("%s", cni_error_message(&why));
	cni_error_release(&why);
}
