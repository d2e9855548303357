/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bridge.c - a network's interface on the host, by the few ioctls that bridges have. */
#include "netavark/bridge.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/run.h"
#include "lib/text.h"
#include "cnirun/directory.h"
#include "cnirun/output.h"

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
