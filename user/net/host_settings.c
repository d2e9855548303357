/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_settings.c - what settings of the host say: the source ports of masqueraded connections, and
 * what is done with packets that are not its own. */
#include "net/host_settings.h"

#include <linux/xfrm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/option_types.h"
#include "lib/error.h"
#include "lib/io.h"
#include "net/netlink.h"

/* Fewer to one destination are too few: then the ephemeral range is shared. */
#define ENOUGH_PORTS 1024
#define USABLE ((struct port_range){1024, UINT16_MAX})
/* The kernel's default, for a /proc that cannot be read. */
#define DEFAULT_EPHEMERAL ((struct port_range){32768, 60999})

static unsigned int range_size(struct port_range range)
{
	return range.last - range.first + 1U;
}

/* Keeps the largest ranges, ascending. Returns how many ports they have. */
static unsigned int collect_largest(const struct port_set *usable,
				    struct port_range ranges[MASQUERADE_RANGES])
{
	unsigned int total = 0;
	struct port_range range;
	size_t count = 0;

	memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
	for (range = port_set_next(usable, 1); range.last;
	     range = port_set_next(usable, range.last + 1U)) {
		size_t smallest = 0;

		if (count == MASQUERADE_RANGES) {
			for (size_t i = 1; i < count; i++)
				if (range_size(ranges[i]) < range_size(ranges[smallest]))
					smallest = i;
			if (range_size(range) <= range_size(ranges[smallest]))
				continue;
			memmove(&ranges[smallest], &ranges[smallest + 1],
				(--count - smallest) * sizeof(*ranges));
		}
		ranges[count++] = range;
	}
	for (size_t i = 0; i < count; i++)
		total += range_size(ranges[i]);
	return total;
}

bool port_ranges_choose(struct port_range ephemeral, const char *reserved,
			struct port_range ranges[MASQUERADE_RANGES])
{
	struct port_set unreserved = {0}, usable;

	port_set_add(&unreserved, USABLE);
	port_set_change_by_list(&unreserved, reserved, port_set_remove);
	usable = unreserved;
	port_set_remove(&usable, ephemeral);
	if (collect_largest(&usable, ranges) >= ENOUGH_PORTS)
		return true;
	if (collect_largest(&unreserved, ranges) < ENOUGH_PORTS) {
		memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
		ranges[0] = USABLE;
	}
	return false;
}

/* The ranges follow from what /proc/sys/net/ipv4 of this namespace says. */
static bool choose_for_host(struct port_range ranges[MASQUERADE_RANGES])
{
	struct port_range ephemeral = DEFAULT_EPHEMERAL;
	char text[64], reserved[16384];
	unsigned int first, last;

	text_file_read("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text));
	if (sscanf(text, "%u %u", &first, &last) == 2 && first <= last && last <= UINT16_MAX)
		ephemeral = (struct port_range){(__u16)first, (__u16)last};
	/* Of a list that is longer, the part that fits: a reserved port more or less only makes a
	 * clash with a socket more likely, which the programs look for anyway. */
	text_file_read("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved, sizeof(reserved));
	return port_ranges_choose(ephemeral, reserved, ranges);
}

bool port_ranges_follow(struct meta *meta)
{
	struct port_range ranges[MASQUERADE_RANGES];
	bool enough = choose_for_host(ranges);

	if (!memcmp(meta->masquerade_ports, ranges, sizeof(ranges)))
		return false;
	if (!enough)
		warning("net.ipv4.ip_local_port_range leaves hardly any port to masquerade with, "
			"so masqueraded connections share its ports with the host's own; make the "
			"range narrower");
	memcpy(meta->masquerade_ports, ranges, sizeof(ranges));
	return true;
}

/* --- what it does with packets that are not its own ------------------------------------------- */

bool forwarding_is_on(bool ipv4, const char *interface)
{
	char path[64], value[3];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv%c/conf/%s/forwarding", ipv4 ? '4' : '6',
		 interface);
	text_file_read(path, value, sizeof(value));
	return *value != '0';
}

static void take_counts(struct nlmsghdr *message, void *context)
{
	nla_memcpy(context, nlmsg_find_attr(message, sizeof(uint32_t), XFRMA_SPD_INFO),
		   sizeof(struct xfrmu_spdinfo));
}

bool forwarding_has_ipsec_policies(void)
{
	cleanup_request struct nl_msg *request = NULL;
	struct xfrmu_spdinfo counts = {0};
	uint32_t flags = 0;

	/* A kernel built without it would look for a module each time. */
	if (access("/proc/sys/net/core/xfrm_larval_drop", F_OK))
		return false;
	request = netlink_begin(XFRM_MSG_GETSPDINFO, 0, &flags, sizeof(flags));
	return !netlink_ask(netlink_own(NETLINK_XFRM, NULL), request, take_counts, &counts) &&
	       (counts.outcnt || counts.fwdcnt);
}
