/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_ranges.c - the ports that masqueraded flows may leave with. */
#include "net/port_ranges.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"

#define FIRST_PORT 1024
#define PORTS 65536
/* Fewer to one destination than this is no masquerade worth the name. */
#define ENOUGH_PORTS 1024
/* The kernel's default, for a /proc that cannot be read. */
#define DEFAULT_EPHEMERAL ((struct port_range){32768, 60999})

/* One byte for each port: 1 or 0. */
static void exclude(char *usable, unsigned long first, unsigned long last)
{
	if (last >= PORTS)
		last = PORTS - 1;
	if (first <= last)
		memset(usable + first, 0, last - first + 1);
}

static void exclude_list(char *usable, const char *list)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10);
		unsigned long last = first;

		if (end != list && *end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end != list)
			exclude(usable, first, last);
		list = end + strcspn(end, ",");
		list += *list == ',';
	}
}

static unsigned int range_size(struct port_range range)
{
	return range.last ? range.last - range.first + 1U : 0;
}

static void keep_largest(struct port_range ranges[MASQUERADE_RANGES], struct port_range range)
{
	size_t smallest = 0;

	for (size_t i = 0; i < MASQUERADE_RANGES; i++)
		if (range_size(ranges[i]) < range_size(ranges[smallest]))
			smallest = i;
	if (range_size(range) <= range_size(ranges[smallest]))
		return;
	memmove(&ranges[smallest], &ranges[smallest + 1],
		(MASQUERADE_RANGES - 1 - smallest) * sizeof(*ranges));
	ranges[MASQUERADE_RANGES - 1] = range;
}

/* Free places sink to the front while ranges are appended; turn them to the end. */
static void move_unused_last(struct port_range ranges[MASQUERADE_RANGES])
{
	size_t unused = 0;

	while (unused < MASQUERADE_RANGES && !ranges[unused].last)
		unused++;
	memmove(ranges, ranges + unused, (MASQUERADE_RANGES - unused) * sizeof(*ranges));
	memset(ranges + MASQUERADE_RANGES - unused, 0, unused * sizeof(*ranges));
}

/* In every ADD: memchr takes two microseconds for what a loop takes fifty. */
static unsigned int find(const char *usable, unsigned int from, char wanted)
{
	const char *found = memchr(usable + from, wanted, PORTS - from);

	return found ? (unsigned int)(found - usable) : PORTS;
}

static unsigned int collect(const char *usable, struct port_range ranges[MASQUERADE_RANGES])
{
	unsigned int first = find(usable, FIRST_PORT, 1), after, total = 0;

	memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
	for (; first < PORTS; first = find(usable, after, 1)) {
		after = find(usable, first, 0);
		keep_largest(ranges, (struct port_range){(__u16)first, (__u16)(after - 1)});
	}
	move_unused_last(ranges);
	for (size_t i = 0; i < MASQUERADE_RANGES; i++)
		total += range_size(ranges[i]);
	return total;
}

bool port_ranges_choose(struct port_range ephemeral, const char *reserved,
			struct port_range ranges[MASQUERADE_RANGES])
{
	char usable[PORTS];

	memset(usable, 1, sizeof(usable));
	exclude_list(usable, reserved);
	exclude(usable, ephemeral.first, ephemeral.last);
	if (collect(usable, ranges) >= ENOUGH_PORTS)
		return true;
	memset(usable, 1, sizeof(usable));
	exclude_list(usable, reserved);
	if (collect(usable, ranges) < ENOUGH_PORTS) {
		memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
		ranges[0] = (struct port_range){FIRST_PORT, PORTS - 1};
	}
	return false;
}

/* Of a list that is longer, the part that fits: a reserved port more or less only
 * makes a clash with a socket more likely, which the programs look for anyway. */
static void read_text(const char *path, char *text, size_t size)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);

	text[length > 0 ? length : 0] = '\0';
}

bool port_ranges_of_host(struct port_range ranges[MASQUERADE_RANGES])
{
	struct port_range ephemeral = DEFAULT_EPHEMERAL;
	char text[64], reserved[16384];
	unsigned int first, last;

	read_text("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text));
	if (sscanf(text, "%u %u", &first, &last) == 2 && first <= last && last < PORTS)
		ephemeral = (struct port_range){(__u16)first, (__u16)last};
	read_text("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved, sizeof(reserved));
	return port_ranges_choose(ephemeral, reserved, ranges);
}
