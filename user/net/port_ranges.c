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

/* A bit for each port, as in the maps: a byte would be sixteen pages to touch in every ADD. */
static void exclude(uint64_t usable[PORT_WORDS], unsigned long first, unsigned long last)
{
	if (last >= PORTS)
		last = PORTS - 1;
	while (first <= last && first % 64)
		usable[first / 64] &= ~(1ULL << first % 64), first++;
	for (; first + 63 <= last; first += 64)
		usable[first / 64] = 0;
	for (; first <= last; first++)
		usable[first / 64] &= ~(1ULL << first % 64);
}

static void exclude_list(uint64_t usable[PORT_WORDS], const char *list)
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

/* The next port that is usable, or is not. */
static unsigned int find(const uint64_t usable[PORT_WORDS], unsigned int from, bool wanted)
{
	while (from < PORTS) {
		uint64_t word = wanted ? usable[from / 64] : ~usable[from / 64];

		word &= ~0ULL << from % 64;
		if (word)
			return from / 64 * 64 + (unsigned int)__builtin_ctzll(word);
		from = from / 64 * 64 + 64;
	}
	return PORTS;
}

static unsigned int collect(const uint64_t usable[PORT_WORDS],
			    struct port_range ranges[MASQUERADE_RANGES])
{
	unsigned int first = find(usable, FIRST_PORT, true), after, total = 0;

	memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
	for (; first < PORTS; first = find(usable, after, true)) {
		after = find(usable, first, false);
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
	uint64_t usable[PORT_WORDS];

	memset(usable, 0xff, sizeof(usable));
	exclude_list(usable, reserved);
	exclude(usable, ephemeral.first, ephemeral.last);
	if (collect(usable, ranges) >= ENOUGH_PORTS)
		return true;
	memset(usable, 0xff, sizeof(usable));
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
