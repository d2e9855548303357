/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - a network driver for netavark, the network stack of Podman 5, made of CNI plugins:
 * bridge and bpf-portmap. Its commands, and `create`, which completes a network that Podman is
 * about to write down.
 *
 * netavark's protocol: the command is the first argument, the network namespace the second one;
 * JSON on stdin and stdout; an error is {"error": MESSAGE} and the exit status 1.
 */
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/io.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/address.h"
#include "lib/text.h"
#include "cni/reply.h"
#include "runtimes/cnirun/directory.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/netavark/attach.h"
#include "runtimes/netavark/network.h"
#include "runtimes/netavark/names.h"
#include "runtimes/netavark/network_options.h"
#include "runtimes/netavark/request.h"

#define PROGRAM "bpf-portmap"
#define API_VERSION "1.0.0" /* of netavark's plugins; there is no other */
#define HOST_LOCAL "host-local"
#define BRIDGE_TRIES 1000
#define NETWORKS "/etc/containers/networks"
#define FIRST_OCTET 89
#define IPV4_SUBNETS ((256U - FIRST_OCTET) * 256U)
#define IPV6_TRIES 1000U

/* Which subnets and bridges the host's interfaces and all networks have: Podman looks after those
 * of its own drivers alone. Begins as {0}. */
struct in_use {
	struct used_subnet {
		struct prefix prefix;
		char *user; /* "that of interface eth0" */
	} * subnets;
	size_t subnet_count;
	struct used_bridge {
		char *name;
		char *user; /* "network web" */
	} * bridges;
	size_t bridge_count;
};

#define cleanup_in_use __attribute__((cleanup(in_use_release)))

/* Adds a subnet; takes over `user`, which is malloc'ed. */
static void in_use_add_subnet(struct in_use *used, const struct prefix *prefix, char *user)
{
	*ARRAY_ADD(used->subnets, used->subnet_count) = (struct used_subnet){*prefix, user};
}

/* False: it is an address of another kind. */
static bool read_interface(const struct ifaddrs *one, struct prefix *prefix)
{
	uint8_t mask[CNI_ADDRESS_SIZE];
	int length = 0;

	if (!one->ifa_addr || !one->ifa_netmask ||
	    !socket_address_read(one->ifa_addr, prefix->address) ||
	    !socket_address_read(one->ifa_netmask, mask))
		return false;
	if (cni_address_is_ipv4(prefix->address))
		memset(mask, 0xff, PREFIX_IPV4_BITS / 8);
	for (size_t i = 0; i < sizeof(mask); i++)
		length += __builtin_popcount(mask[i]);
	prefix->length = (uint8_t)length;
	return true;
}

static void find_on_interfaces(struct in_use *used)
{
	struct ifaddrs *all = NULL;
	struct prefix prefix;

	if (getifaddrs(&all))
		return;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next)
		if (read_interface(one, &prefix))
			in_use_add_subnet(used, &prefix,
					  cni_format("that of interface %s", one->ifa_name));
	freeifaddrs(all);
}

static void find_in_file(struct in_use *used, const char *path)
{
	cleanup_error struct cni_error ignored = {0};
	size_t length, index;
	cleanup_free char *text = directory_read_file(path, &length, &ignored);
	cleanup_json json_t *root =
		text ? cni_json_parse_object(text, length, path, &ignored) : NULL;
	struct network network;
	struct subnet subnet;
	json_t *element;

	if (!root || network_read(&network, root, &ignored))
		return;
	if (*network.bridge)
		*ARRAY_ADD(used->bridges, used->bridge_count) = (struct used_bridge){
			or_exit(strdup(network.bridge)), cni_format("network %s", network.name)};
	json_array_foreach (network.subnets, index, element)
		if (!subnet_read(&subnet, element, index, &ignored))
			in_use_add_subnet(used, &subnet.prefix,
					  cni_format("that of network %s", network.name));
}

/* Finds what the host's interfaces have, and Podman's networks in the folder where Podman keeps
 * them by default. What cannot be read is left out. */
static void in_use_find(struct in_use *used)
{
	static const char *const suffixes[] = {".json", NULL};
	cleanup_directory struct directory networks = {0};
	cleanup_error struct cni_error ignored = {0};

	find_on_interfaces(used);
	if (directory_list(&networks, NETWORKS, suffixes, &ignored))
		return;
	for (size_t i = 0; i < networks.count; i++)
		find_in_file(used, networks.paths[i]);
}

static void in_use_release(struct in_use *used)
{
	for (size_t i = 0; i < used->subnet_count; i++)
		free(used->subnets[i].user);
	for (size_t i = 0; i < used->bridge_count; i++) {
		free(used->bridges[i].name);
		free(used->bridges[i].user);
	}
	free(used->subnets);
	free(used->bridges);
	*used = (struct in_use){0};
}

/* Returns who has a subnet that overlaps with the prefix, or NULL. */
static const char *in_use_subnet(const struct in_use *used, const struct prefix *prefix)
{
	for (size_t i = 0; i < used->subnet_count; i++)
		if (prefix_overlaps(&used->subnets[i].prefix, prefix))
			return used->subnets[i].user;
	return NULL;
}

/* Returns who has an interface of that name on the host, or will have, or NULL. */
static const char *in_use_bridge(const struct in_use *used, const char *name)
{
	for (size_t i = 0; i < used->bridge_count; i++)
		if (!strcmp(used->bridges[i].name, name))
			return used->bridges[i].user;
	return bridge_exists(name) ? "an interface of the host" : NULL;
}

static char *subnet_text(bool ipv4, uint64_t number)
{
	unsigned int place = (unsigned int)(number % IPV4_SUBNETS);

	return ipv4 ? cni_format("10.%u.%u.0/24", FIRST_OCTET + place / 256, place % 256)
		    : cni_format("fd%02x:%x:%x:%x::/64", (unsigned int)(number >> 48 & 0xff),
				 (unsigned int)(number >> 32 & 0xffff),
				 (unsigned int)(number >> 16 & 0xffff),
				 (unsigned int)(number & 0xffff));
}

/* Chooses a free subnet of the family: a /24 of Podman's default pools, 10.89.0.0 to
 * 10.255.255.0, or a /64 of fd00::/8. Where the search begins follows from the network's ID,
 * because networks may be kept in a folder that is not looked at. A malloc'ed text, or NULL and
 * CNI_ERROR_INVALID_CONFIGURATION. */
static char *in_use_choose_subnet(const struct in_use *used, bool ipv4, const char *id,
				  struct cni_error *err)
{
	uint64_t first = digest_add(DIGEST_OF_NOTHING, id, strlen(id));
	unsigned int tries = ipv4 ? IPV4_SUBNETS : IPV6_TRIES;

	for (unsigned int i = 0; i < tries; i++) {
		cleanup_free char *text = subnet_text(ipv4, first + i);
		struct prefix prefix;

		if (!prefix_parse(text, &prefix) && !in_use_subnet(used, &prefix))
			return TAKE(text);
	}
	return cni_error_null(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "no %s subnet is free: choose one with --subnet",
			      ipv4 ? "IPv4" : "IPv6");
}

static int check_bridge(const struct network *network, const struct in_use *used,
			struct cni_error *err)
{
	const char *user = in_use_bridge(used, network->bridge);

	if (!user)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the name %s is that of %s, and the network's bridge must be its own: "
			     "give another --interface-name",
			     network->bridge, user);
}

static int choose_bridge(json_t *root, const struct network *network, const struct in_use *used,
			 struct cni_error *err)
{
	if (*network->bridge)
		return check_bridge(network, used, err);
	for (unsigned int i = 0; i < BRIDGE_TRIES; i++) {
		cleanup_free char *chosen = bridge_name_of(network->id, i);

		if (in_use_bridge(used, chosen))
			continue;
		cni_json_set_new(root, "network_interface", json_string(chosen));
		return 0;
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no name for a bridge is free: give one by --interface-name");
}

static int append_subnet(json_t *subnets, const struct in_use *used, bool ipv4,
			 const struct network *network, struct cni_error *err)
{
	cleanup_free char *text = in_use_choose_subnet(used, ipv4, network->id, err);

	return text ? json_array_append_new(subnets, json_pack("{s:s}", "subnet", text)) : -1;
}

/* It is in use from then on, for those that follow. */
static int check_subnet(struct in_use *used, const struct subnet *subnet, struct cni_error *err)
{
	const char *user = in_use_subnet(used, &subnet->prefix);

	if (!user) {
		in_use_add_subnet(used, &subnet->prefix,
				  or_exit(strdup("another one of this network")));
		return 0;
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "subnet %s overlaps with %s: give another --subnet", subnet->text,
			     user);
}

/* Setup would fail. */
static int check_count(const struct network *network, unsigned int ipv4_subnets,
		       struct cni_error *err)
{
	if (ipv4_subnets < 2 || (network->internal && !network->dns_enabled))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%u IPv4 subnets: the CNI plugin bridge gives a bridge one IPv4 "
			     "address, so that there may be more only with --internal and "
			     "--disable-dns",
			     ipv4_subnets);
}

/* As Podman does for its own bridge networks: of IPv4 where no subnet was given, and both with
 * --ipv6. */
static int choose_subnets(json_t *root, const struct network *network, struct in_use *used,
			  struct cni_error *err)
{
	cleanup_json json_t *subnets =
		network->subnets ? json_incref(network->subnets) : json_array();
	unsigned int counts[2] = {0, 0};
	struct subnet subnet;
	json_t *element;
	size_t index;

	json_array_foreach (subnets, index, element) {
		if (subnet_read(&subnet, element, index, err) || check_subnet(used, &subnet, err))
			return -1;
		counts[prefix_is_ipv4(&subnet.prefix)]++;
	}
	if (check_count(network, counts[true], err) ||
	    ((!json_array_size(subnets) || network->ipv6_enabled) && !counts[true] &&
	     append_subnet(subnets, used, true, network, err)) ||
	    (network->ipv6_enabled && !counts[false] &&
	     append_subnet(subnets, used, false, network, err)))
		return -1;
	cni_json_set_new(root, "subnets", TAKE(subnets));
	return 0;
}

/* Setup would fail with what this finds. */
static int check_plugins(const struct network *network, struct cni_error *err)
{
	cleanup_network_options struct network_options options = {0};
	cleanup_conflist struct conflist list = {0};
	cleanup_json json_t *no_addresses = json_array();

	if (network_options_read(&options, network->options, err) ||
	    plugin_list_make(&list, network, &options, no_addresses, err))
		return -1;
	return plugin_list_find(network, &options, err);
}

/* Podman refuses name servers without dns_enabled: containers get these themselves then. */
static void choose_names(json_t *root, struct network *network)
{
	cleanup_error struct cni_error problem = {0};

	if (!network->dns_enabled || !names_check(&problem))
		return;
	output_warn("containers of network \"%s\" will not find each other by name: %s",
		    network->name, cni_error_message(&problem));
	network->dns_enabled = json_array_size(network->dns_servers);
	cni_json_set_new(root, "dns_enabled", json_boolean(network->dns_enabled));
}

/* Completes the network: its bridge, its subnets, and whether it has names, which it has not where
 * aardvark-dns cannot be used (a warning). Refuses what setup would refuse. Changes nothing on the
 * host. CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION, CNI_ERROR_INVALID_ENVIRONMENT. */
static int command_create(json_t *root, const char *netns, struct cni_error *err)
{
	cleanup_in_use struct in_use used = {0};
	struct network network;

	if (network_read(&network, root, err))
		return -1;
	if (*network.ipam && strcmp(network.ipam, HOST_LOCAL) != 0)
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"--ipam-driver %s is not supported: ports are mapped to addresses "
			"that Podman chooses (" HOST_LOCAL ")",
			network.ipam);
	if (check_plugins(&network, err))
		return -1;
	choose_names(root, &network);
	in_use_find(&used);
	if (choose_bridge(root, &network, &used, err) || choose_subnets(root, &network, &used, err))
		return -1;
	cni_json_set_new(root, "ipam_options", json_pack("{s:s}", "driver", HOST_LOCAL));
	return cni_reply_result(root, err);
}

static int command_setup(json_t *root, const char *netns, struct cni_error *err)
{
	return attach_setup(root, netns, cni_reply_result, err);
}

static int command_teardown(json_t *root, const char *netns, struct cni_error *err)
{
	return attach_teardown(root, netns, err);
}

static const struct driver_command {
	const char *name;
	bool wants_netns;
	int (*run)(json_t *root, const char *netns, struct cni_error *err);
} commands[] = {
	{"create", false, command_create},
	{"setup", true, command_setup},
	{"teardown", true, command_teardown},
};

static int print_help(struct cni_error *err)
{
	output_text(
		"usage: " PROGRAM " create|setup NETNS|teardown NETNS|info\n\n"
		"A network driver that netavark, the network stack of Podman, calls with JSON on "
		"stdin:\n"
		"  podman network create -d " PROGRAM " [-o NAME=VALUE]... web\n"
		"  podman run -p 8080:80 --network web ...\n\n"
		"What -o may give:\n");
	network_options_print_help();
	return output_flush(err);
}

/* Root of a user namespace is not root: the map of the first namespace has every user. */
static int require_root(struct cni_error *err)
{
	unsigned int inside = 1, outside = 1, count = 0;
	FILE *map = fopen("/proc/self/uid_map", "re");
	int fields = map ? fscanf(map, "%u %u %u", &inside, &outside, &count) : 0;

	if (map)
		fclose(map);
	if (!geteuid() && fields == 3 && !inside && !outside && count == UINT32_MAX)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "rootless Podman cannot use the driver " PROGRAM
			     ", because BPF programs at the host's interfaces need root: run "
			     "Podman as root, or create the network with -d bridge");
}

static int run_command(const struct driver_command *command, int argc, char **argv,
		       struct cni_error *err)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *root = NULL;
	size_t length;

	if (argc != 2 + command->wants_netns)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "usage: " PROGRAM " %s%s, with JSON on stdin", command->name,
				     command->wants_netns ? " NETNS" : "");
	if (require_root(err))
		return -1;
	text = cni_read_all(STDIN_FILENO, CNI_INPUT_LIMIT, "stdin", &length, err);
	root = text ? cni_json_parse_object(text, length, "stdin", err) : NULL;
	return root ? command->run(root, argv[2], err) : -1;
}

static int run_command_line(int argc, char **argv, struct cni_error *err)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return run_command(&commands[i], argc, argv, err);
	if (!strcmp(name, "info")) {
		cleanup_json json_t *info = json_pack("{s:s, s:s}", "version", PROGRAM_VERSION,
						      "api_version", API_VERSION);

		return cni_reply_result(info, err);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		return print_help(err);
	if (!strcmp(name, "--version")) {
		output_text("netavark-" PROGRAM " " PROGRAM_VERSION "\n");
		return output_flush(err);
	}
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "%s%s%s: netavark calls create, setup, teardown and info; see"
			     " netavark-" PROGRAM "(8)",
			     *name ? "unknown command \"" : "no command", name, *name ? "\"" : "");
}

static void reply_error(struct cni_error *err)
{
	cleanup_free char *text = cni_format("%s", cni_error_whole(err));
	cleanup_error struct cni_error failure = {0};
	cleanup_json json_t *reply = NULL;

	cni_printable(text, "\n");
	reply = json_pack("{s:s}", "error", text);
	/* After an answer that could not be written whole. */
	if (cni_reply_result(reply, &failure))
		output_error(err);
}

int main(int argc, char **argv)
{
	return output_main(argc, argv, run_command_line, reply_error);
}
