/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counts.c - compares the counts that the programs keep with what a walk through the records finds.
 */
#include <linux/types.h>

#include "pinned.h"

#include "abi.h"

#include "../packet/keys.h"

const char tool_usage[] = "counts DIRECTORY   of pinned maps, while no packet comes\n";

static struct share kept[MAX_SLOTS], found[MAX_SLOTS];
static struct usage usage;
static uint32_t assured, proven;
static int wrong;

static void expect_equal(const char *what, uint32_t slot, uint32_t has, uint32_t walked)
{
	if (has == walked)
		return;
	printf("%s of slot %u: %u are counted, there are %u\n", what, slot, has, walked);
	wrong = EXIT_FAILURE;
}

static void count_connections(int fd)
{
	struct connection connection;
	struct connection_key key;

	for (bool more = !bpf_map_get_next_key(fd, NULL, &key); more;
	     more = !bpf_map_get_next_key(fd, &key, &key)) {
		struct share *share;

		if (bpf_map_lookup_elem(fd, &key, &connection) ||
		    !(connection.state & STATE_COUNTED))
			continue;
		assured++;
		proven += key.protocol == PROTOCOL_TCP;
		share = &found[connection.owner.slot % MAX_SLOTS];
		if (share->generation == connection.owner.generation)
			share->flows[account_of(&key, &connection)]++;
	}
}

static void count_half_open(int fd)
{
	struct half_open place;

	/* To the end of the array */
	for (uint32_t i = 1; !bpf_map_lookup_elem(fd, &i, &place); i++) {
		struct share *share = &found[place.slot % MAX_SLOTS];

		share->half_open[place.charged_out & 1] +=
			place.id > 1 && place.counted &&
			place.id >> 16 == (share->generation & 0xffff);
	}
}

int main(int argc, char **argv)
{
	uint32_t zero = 0;
	int shares;

	if (argc != 2)
		die_usage();
	shares = open_map(argv[1], "shares");
	if (bpf_map_lookup_elem(open_map(argv[1], "usage"), &zero, &usage))
		die("usage");
	for (uint32_t i = 0; i < MAX_SLOTS; i++) {
		if (bpf_map_lookup_elem(shares, &i, &kept[i]))
			die("shares");
		found[i].generation = kept[i].generation;
	}
	count_connections(open_map(argv[1], "connections"));
	count_half_open(open_map(argv[1], "half_open"));
	expect_equal("all assured connections", 0, usage.assured, assured);
	expect_equal("those of TCP", 0, usage.proven, proven);
	for (uint32_t i = 0; i < MAX_SLOTS; i++) {
		for (int account = 0; account < ACCOUNTS; account++)
			expect_equal("assured connections", i, kept[i].flows[account],
				     found[i].flows[account]);
		for (int out = 0; out < 2; out++)
			expect_equal("half-open connections", i, kept[i].half_open[out],
				     found[i].half_open[out]);
	}
	return wrong;
}
