/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* containers.c - whose ports portmap has mapped. */
#include "operator/migrate/containers.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cni/environment.h"
#include "lib/address.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/namespaces.h"
#include "net/netns.h"
#include "operator/add_cache.h"

/* An address that a container has. */
struct held {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length;
	size_t namespace;
	char ifname[IF_NAMESIZE];
};

/* What is looked at once. */
struct finding {
	struct migrating_list *containers;
	struct namespaces namespaces;
	struct held *held;
	size_t held_count;
	size_t reading; /* the namespace that is read */
	size_t others;  /* namespaces but the host's own */
	bool failed;    /* something could not be read, so what is not seen may exist */
	json_t *cached; /* the objects of the caches */
};

static bool take_socket_address(const struct sockaddr *from, uint8_t address[CNI_ADDRESS_SIZE])
{
	if (from && from->sa_family == AF_INET) {
		memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
		memcpy(address + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr,
		       4);
		return true;
	}
	if (!from || from->sa_family != AF_INET6)
		return false;
	memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
	       CNI_ADDRESS_SIZE);
	return true;
}

static uint8_t length_of_mask(const uint8_t mask[CNI_ADDRESS_SIZE], size_t first)
{
	uint8_t length = 0;

	for (size_t i = first; i < CNI_ADDRESS_SIZE; i++)
		length += (uint8_t)__builtin_popcount(mask[i]);
	return length;
}

/* In the container's namespace. */
static int read_addresses(void *context, struct cni_error *err)
{
	struct finding *finding = context;
	uint8_t mask[CNI_ADDRESS_SIZE];
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all)) {
		finding->failed = true;
		return 0;
	}
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		struct held held = {.namespace = finding->reading};

		if (!take_socket_address(one->ifa_addr, held.address) ||
		    !take_socket_address(one->ifa_netmask, mask) ||
		    cni_address_is_loopback(held.address))
			continue;
		held.prefix_length =
			length_of_mask(mask, cni_address_is_ipv4(held.address) ? 12 : 0);
		snprintf(held.ifname, sizeof(held.ifname), "%s", one->ifa_name);
		*ARRAY_ADD(finding->held, finding->held_count) = held;
	}
	freeifaddrs(all);
	return 0;
}

static void read_namespaces(struct finding *finding, struct nl_sock *socket)
{
	cleanup_error struct cni_error ignored = {0};
	bool own;

	namespaces_read(&finding->namespaces, socket);
	finding->failed |= finding->namespaces.incomplete;
	for (size_t i = 0; i < finding->namespaces.count; i++) {
		finding->reading = i;
		own = true;
		if (netns_is_own(finding->namespaces.list[i].fd, &own, &ignored)) {
			finding->failed = true;
			continue;
		}
		if (own)
			continue;
		finding->others++;
		if (netns_call(finding->namespaces.list[i].fd, read_addresses, finding, &ignored))
			finding->failed = true;
	}
}

static bool is_add_of(const json_t *cached, const struct portmap_rule *rule)
{
	return !strcmp(add_cache_text(cached, "containerId"), rule->id) &&
	       (!*rule->network || !strcmp(add_cache_text(cached, "networkName"), rule->network));
}

/* The ADD that gave the rule's container its address; or of another container, that has it now. */
static const json_t *find_cached(const struct finding *finding, const struct portmap_rule *rule,
				 bool other)
{
	const json_t *cached;
	size_t i;

	json_array_foreach (finding->cached, i, cached) {
		if (is_add_of(cached, rule) == other || (other && add_cache_is_gone(cached)))
			continue;
		if (add_cache_has_address(cached, rule->container_address))
			return cached;
	}
	return NULL;
}

static bool is_namespace(const struct namespace *namespace, const char *path)
{
	struct stat one, other;

	return !fstat(namespace->fd, &one) && !stat(path, &other) && one.st_ino == other.st_ino &&
	       one.st_dev == other.st_dev;
}

/* Containers of two networks may have the same address: the namespace that the runtime has named
 * is the one. *count: how many have the address. */
static const struct held *find_held(const struct finding *finding, const struct portmap_rule *rule,
				    const json_t *cached, size_t *count)
{
	const char *path = add_cache_text(cached, "netns");
	const struct held *found = NULL;

	*count = 0;
	for (size_t i = 0; i < finding->held_count; i++) {
		const struct held *held = &finding->held[i];

		if (memcmp(held->address, rule->container_address, CNI_ADDRESS_SIZE) != 0)
			continue;
		found = held;
		(*count)++;
		if (*path && is_namespace(&finding->namespaces.list[held->namespace], path)) {
			*count = 1;
			break;
		}
	}
	return found;
}

/* All addresses of the interface. */
static json_t *list_addresses(const struct finding *finding, const struct held *its)
{
	json_t *ips = json_array();
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < finding->held_count; i++) {
		const struct held *held = &finding->held[i];

		if (held->namespace != its->namespace || strcmp(held->ifname, its->ifname) != 0 ||
		    (held->address[0] == 0xfe && (held->address[1] & 0xc0) == 0x80))
			continue;
		json_array_append_new(
			ips,
			json_pack("{s:o, s:i}", "address",
				  json_sprintf("%s/%u", cni_address_format(held->address, text),
					       held->prefix_length),
				  "interface", 0));
	}
	return ips;
}

static void take_container(struct finding *finding, struct portmap_rule *rule,
			   const struct held *held, const json_t *cached)
{
	struct migrating_list *containers = finding->containers;
	struct migrating container = {0};

	for (size_t i = 0; i < containers->count; i++)
		if (!strcmp(containers->list[i].network, rule->network) &&
		    !strcmp(containers->list[i].id, rule->id) &&
		    !strcmp(containers->list[i].ifname, held->ifname)) {
			rule->container = i;
			return;
		}
	/* The container may have named it. */
	snprintf(container.ifname, sizeof(container.ifname), "%s", held->ifname);
	cni_make_utf8(container.ifname);
	if (strcmp(container.ifname, held->ifname) != 0) {
		rule_leave(rule, "its interface's name is not UTF-8");
		return;
	}
	container.netns = fcntl(finding->namespaces.list[held->namespace].fd, F_DUPFD_CLOEXEC, 3);
	if (container.netns < 0) {
		rule_leave(rule, "its namespace cannot be kept open: %s", strerror(errno));
		return;
	}
	snprintf(container.network, sizeof(container.network), "%s", rule->network);
	snprintf(container.id, sizeof(container.id), "%s", rule->id);
	container.arguments = add_cache_arguments(cached);
	container.ips = list_addresses(finding, held);
	rule->container = containers->count;
	*ARRAY_ADD(containers->list, containers->count) = container;
}

/* A container that is not seen may live all the same. */
static void judge_unseen(const struct finding *finding, struct portmap_rule *rule)
{
	const json_t *cached;
	size_t i;

	if (finding->failed) {
		rule_leave(rule, "its namespace is not seen, but not everything could be read");
		return;
	}
	if (!finding->others) {
		rule_leave(rule, "its namespace is not seen, and neither is that of any container");
		return;
	}
	json_array_foreach (finding->cached, i, cached)
		if (is_add_of(cached, rule) && !add_cache_is_gone(cached)) {
			rule_leave(rule,
				   "its namespace is not seen with its address, but exists: %s",
				   add_cache_text(cached, "netns"));
			return;
		}
	rule->fate = RULE_DEAD;
}

static void find_container(struct finding *finding, struct portmap_rule *rule)
{
	const json_t *cached = find_cached(finding, rule, false);
	cleanup_error struct cni_error invalid = {0};
	const struct held *held;
	size_t count;

	if (!*rule->id) {
		if (rule->order)
			rule_leave(rule, RULE_NOT_UNDERSTOOD);
		else
			rule->fate = RULE_DEAD; /* no rule jumps to its chain */
		return;
	}
	held = find_held(finding, rule, cached, &count);
	if (!held || (!cached && find_cached(finding, rule, true))) {
		judge_unseen(finding, rule);
		return;
	}
	if (count > 1) {
		rule_leave(rule,
			   "%zu network namespaces have the container's address, and no"
			   " runtime has kept which is its own",
			   count);
		return;
	}
	if (!*rule->network && cached)
		snprintf(rule->network, sizeof(rule->network), "%s",
			 add_cache_text(cached, "networkName"));
	if (cni_validate_network_name(rule->network, &invalid) ||
	    cni_validate_container_id(rule->id, &invalid)) {
		rule_leave(rule, "the rule does not name the network, and no file in %s does",
			   ADD_CACHE);
		return;
	}
	rule->fate = RULE_MAP;
	take_container(finding, rule, held, cached);
}

void migrating_find(struct migrating_list *containers, struct portmap_rules *rules,
		    struct nl_sock *socket)
{
	struct finding finding = {.containers = containers};

	finding.cached = add_cache_read(&finding.failed);
	read_namespaces(&finding, socket);
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].fate == RULE_UNDECIDED)
			find_container(&finding, &rules->rules[i]);
	namespaces_release(&finding.namespaces);
	free(finding.held);
	json_decref(finding.cached);
}

void migrating_release(struct migrating_list *containers)
{
	for (size_t i = 0; i < containers->count; i++) {
		if (containers->list[i].netns >= 0)
			close(containers->list[i].netns);
		free(containers->list[i].arguments);
		json_decref(containers->list[i].ips);
	}
	free(containers->list);
	*containers = (struct migrating_list){0};
}
