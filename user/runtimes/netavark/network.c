/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* network.c - reads a network, and compares subnets. */
#include "runtimes/netavark/network.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cni/environment.h"
#include "runtimes/cnirun/directory.h"
#include "runtimes/cnirun/output.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "lib/run.h"
#include "lib/text.h"

int network_read(struct network *network, const json_t *root, struct cni_error *err)
{
	json_t *ipam_options = NULL;

	*network = (struct network){.name = "", .id = "", .bridge = "", .ipam = ""};
	if (cni_json_get_string(root, "name", &network->name, err) ||
	    cni_json_get_string(root, "id", &network->id, err) ||
	    cni_json_get_string(root, "network_interface", &network->bridge, err) ||
	    cni_json_get_boolean(root, "internal", &network->internal, err) ||
	    cni_json_get_boolean(root, "ipv6_enabled", &network->ipv6_enabled, err) ||
	    cni_json_get_boolean(root, "dns_enabled", &network->dns_enabled, err) ||
	    cni_json_get_array(root, "subnets", &network->subnets, err) ||
	    cni_json_get_array(root, "routes", &network->routes, err) ||
	    cni_json_get_object(root, "options", &network->options, err) ||
	    cni_json_get_array(root, "network_dns_servers", &network->dns_servers, err) ||
	    cni_json_get_object(root, "ipam_options", &ipam_options, err) ||
	    (ipam_options && cni_json_get_string(ipam_options, "driver", &network->ipam, err)) ||
	    cni_validate_network_name(network->name, err))
		return cni_error_wrap(err, "the network");
	if (*network->bridge && cni_validate_ifname(network->bridge, err))
		return cni_error_wrap(err, "network_interface");
	return 0;
}

static json_t *find_gateways(const struct network *network, bool ipv4)
{
	cleanup_error struct cni_error ignored = {0};
	json_t *gateways = json_array(), *element;
	struct subnet subnet;
	size_t index;

	json_array_foreach (network->subnets, index, element)
		if (!subnet_read(&subnet, element, index, &ignored) && *subnet.gateway &&
		    prefix_is_ipv4(&subnet.prefix) == ipv4)
			json_array_append_new(gateways, json_string(subnet.gateway));
	return gateways;
}

json_t *network_servers(const struct network *network)
{
	cleanup_json json_t *ipv4 = find_gateways(network, true);

	return json_array_size(ipv4) ? TAKE(ipv4) : find_gateways(network, false);
}

int subnet_read(struct subnet *subnet, const json_t *element, size_t index, struct cni_error *err)
{
	uint8_t gateway[CNI_ADDRESS_SIZE];
	const char *text = "";

	if (cni_json_check_element(element, "subnets", index, err) ||
	    cni_json_get_string(element, "subnet", &text, err))
		return -1;
	*subnet = (struct subnet){.text = text, .gateway = ""};
	if (prefix_parse(text, &subnet->prefix))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "subnets[%zu]: \"%s\" is no subnet: give one as "
				     "10.89.0.0/24 or fd00:89::/64",
				     index, text);
	if (cni_json_get_string(element, "gateway", &subnet->gateway, err))
		return cni_error_wrap(err, "subnets[%zu]", index);
	if (*subnet->gateway && cni_address_parse(subnet->gateway, gateway))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "subnets[%zu]: the gateway \"%s\" is no IP address", index,
				     subnet->gateway);
	return 0;
}

/* --- its interface on the host -------------------------------------------------------------- */

#define WAIT_ROUNDS 200
#define WAIT_PAUSE_US 10000
#define COMMENT "CNI firewall plugin rules (ingressPolicy: same-bridge)"
#define STAGE_1 "CNI-ISOLATION-STAGE-1"
#define STAGE_2 "CNI-ISOLATION-STAGE-2"
#define MAX_SAME_RULES 100
#define LOCK_SECONDS "5" /* for iptables of others to end */
#define REMOVE_SECONDS 30

char *bridge_name_of(const char *id, unsigned int others)
{
	uint64_t digest = digest_add(DIGEST_OF_NOTHING, id, strlen(id));

	/* Nine digits are what the longest name of an interface has room for. */
	return cni_format("podman%09llx",
			  (unsigned long long)((digest >> 28) + others) & 0xfffffffff);
}

bool bridge_exists(const char *name)
{
	return if_nametoindex(name);
}

size_t bridge_count_ports(const char *name)
{
	cleanup_free char *path = cni_format("/sys/class/net/%s/brif", name);
	cleanup_directory struct directory ports = {0};
	cleanup_error struct cni_error ignored = {0};

	return access(path, F_OK) || directory_list(&ports, path, NULL, &ignored) ? SIZE_MAX
										  : ports.count;
}

void bridge_wait_for_ports(const char *name, size_t ports)
{
	for (unsigned int i = 0;
	     i < WAIT_ROUNDS && bridge_exists(name) && bridge_count_ports(name) > ports; i++)
		usleep(WAIT_PAUSE_US);
}

/* The kernel removes a bridge only while it is down. */
static int remove_bridge(int socket, const char *name)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(socket, SIOCGIFFLAGS, &request))
		return -1;
	request.ifr_flags = (short)(request.ifr_flags & ~IFF_UP);
	return ioctl(socket, SIOCSIFFLAGS, &request) || ioctl(socket, SIOCBRDELBR, name) ? -1 : 0;
}

void bridge_remove(const char *name)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (remove_bridge(fd, name) && errno != ENODEV)
		output_warn("cannot remove the unused bridge %s: %s", name, strerror(errno));
}

/* Until there is none: of several `firewall` at once each may have written the rule. */
static void remove_all_of(const char *const *arguments)
{
	for (unsigned int removed = 0; removed < MAX_SAME_RULES; removed++) {
		cleanup_command struct command_run run = {.arguments = arguments,
							  .seconds = REMOVE_SECONDS};

		if (!command_run(&run))
			return;
	}
}

static void remove_rules(const char *program, const char *bridge)
{
	const char *const stage_1[] = {program, "-w",      LOCK_SECONDS, "-D",    STAGE_1, "-i",
				       bridge,  "!",       "-o",         bridge,  "-j",    STAGE_2,
				       "-m",    "comment", "--comment",  COMMENT, NULL};
	const char *const stage_2[] = {program,   "-w",        LOCK_SECONDS, "-D",   STAGE_2,
				       "-o",      bridge,      "-j",         "DROP", "-m",
				       "comment", "--comment", COMMENT,      NULL};

	remove_all_of(stage_1);
	remove_all_of(stage_2);
}

void bridge_remove_rules(const char *bridge)
{
	remove_rules("iptables", bridge);
	remove_rules("ip6tables", bridge);
}
