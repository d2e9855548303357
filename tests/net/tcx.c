/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx.c - looks at, removes and adds programs at a device's TCX hooks, which
 * older bpftool cannot, for tests that play somebody else who does so; and
 * counts live slots, which bpftool takes a second for.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

#include "abi.h"

/* linux/bpf.h of kernels before 6.6 lacks these. */
#define TCX_INGRESS 46
#define TCX_EGRESS 47
#define MAX_PROGRAMS 64
#define TCX_NEXT (-1) /* the next program sees the packet too */

static const char usage[] =
	"tcx show DEVICE ingress|egress           prints the name of each program there\n"
	"tcx detach DEVICE ingress|egress NAME    removes the program of that name\n"
	"tcx count DEVICE ingress|egress PIN      adds one that counts packets and lets them go "
	"on;\n"
	"                                         its map is pinned at PIN\n"
	"tcx end DEVICE ingress|egress PIN        the same, but no other program sees them\n"
	"tcx pin PROGRAM-PIN PIN                  the same program, only pinned, for tc\n"
	"tcx live PIN                             how many elements of the map slots are live\n"
	"tcx counters PIN NAME...                 of the map counters, all CPUs together\n";

static int fail(const char *what)
{
	fprintf(stderr, "tcx: %s: %s\n", what, strerror(errno));
	return 1;
}

/* struct bpf_attr grew, so its TCX part is written as the kernel lays it out. */
struct query {
	uint32_t target_ifindex;
	uint32_t attach_type;
	uint32_t query_flags;
	uint32_t attach_flags;
	uint64_t program_ids;
	uint32_t count;
	uint32_t padding;
	uint64_t program_attach_flags;
	uint64_t link_ids;
	uint64_t link_attach_flags;
	uint64_t revision;
};

static int query_programs(int ifindex, int hook, uint32_t *ids)
{
	struct query query = {
		.target_ifindex = ifindex,
		.attach_type = hook,
		.program_ids = (uintptr_t)ids,
		.count = MAX_PROGRAMS,
	};

	if (syscall(SYS_bpf, BPF_PROG_QUERY, &query, sizeof(query)))
		return errno == EINVAL ? 0 : -1; /* a kernel before 6.6 has no TCX */
	return (int)query.count;
}

static int program_open(uint32_t id, char name[BPF_OBJ_NAME_LEN])
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	memcpy(name, info.name, BPF_OBJ_NAME_LEN);
	return fd;
}

static int visit(int ifindex, int hook, const char *detach)
{
	uint32_t ids[MAX_PROGRAMS];
	int count = query_programs(ifindex, hook, ids);
	bool found = false;

	if (count < 0)
		return fail("query");
	for (int i = 0; i < count; i++) {
		char name[BPF_OBJ_NAME_LEN];
		int fd = program_open(ids[i], name);

		if (fd < 0)
			return fail("program");
		if (!detach)
			printf("tcx %s\n", name);
		else if (strcmp(name, detach) == 0) {
			if (bpf_prog_detach2(fd, ifindex, (enum bpf_attach_type)hook))
				return fail("detach");
			found = true;
		}
		close(fd);
	}
	return detach && !found;
}

/* Returns the program's descriptor, its map pinned at `pin`; or -1. */
static int counter_make(const char *pin, int answer)
{
	const struct program_place place = {BPF_PROG_TYPE_SCHED_CLS, 0, "somebody_elses"};
	int map = counters_make(1, pin);

	if (map < 0)
		return -1;
	return program_load_counter(place, map, answer);
}

static int count_packets(int ifindex, int hook, const char *pin, int answer)
{
	int program = counter_make(pin, answer);

	if (program < 0)
		return fail(pin);
	if (bpf_prog_attach(program, ifindex, (enum bpf_attach_type)hook, 0))
		return fail("attach");
	return 0;
}

static int pin_program(const char *program_pin, const char *map_pin)
{
	int program = counter_make(map_pin, TCX_NEXT);

	if (program < 0 || bpf_obj_pin(program, program_pin))
		return fail(program_pin);
	return 0;
}

static int count_live(const char *pin)
{
	int map = bpf_obj_get(pin);
	unsigned int live = 0;
	struct slot slot;

	if (map < 0)
		return fail(pin);
	for (uint32_t number = 0; bpf_map_lookup_elem(map, &number, &slot) == 0; number++)
		live += slot.live != 0;
	printf("%u\n", live);
	return 0;
}

static const char *const counter_names[] = {
#define X(name, meaning) #name,
	COUNTERS(X)
#undef X
};

/* -1: there is none of this name. */
static int find_counter(const char *name)
{
	for (int i = 0; i < (int)(sizeof(counter_names) / sizeof(*counter_names)); i++)
		if (strcmp(counter_names[i], name) == 0)
			return i;
	return -1;
}

static int print_counters(const char *pin, char **names)
{
	static struct counters values[1024];
	int map = bpf_obj_get(pin), cpus = libbpf_num_possible_cpus();
	uint32_t only = 0;

	if (map < 0 || cpus < 1 || cpus > 1024 || bpf_map_lookup_elem(map, &only, values))
		return fail(pin);
	for (; *names; names++) {
		int number = find_counter(*names);
		uint64_t sum = 0;

		if (number < 0)
			return fail(*names);
		for (int cpu = 0; cpu < cpus; cpu++)
			sum += ((uint64_t *)&values[cpu])[number];
		printf("%llu%c", (unsigned long long)sum, names[1] ? ' ' : '\n');
	}
	return 0;
}

int main(int argc, char **argv)
{
	int ifindex, hook;

	if (argc == 3 && strcmp(argv[1], "live") == 0)
		return count_live(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "counters") == 0)
		return print_counters(argv[2], argv + 3);
	if (argc < 4) {
		fputs(usage, stderr);
		return 2;
	}
	if (strcmp(argv[1], "pin") == 0)
		return pin_program(argv[2], argv[3]);
	ifindex = (int)if_nametoindex(argv[2]);
	if (!ifindex)
		return fail(argv[2]);
	hook = strcmp(argv[3], "ingress") == 0 ? TCX_INGRESS : TCX_EGRESS;
	if (strcmp(argv[1], "show") == 0)
		return visit(ifindex, hook, NULL);
	if (strcmp(argv[1], "detach") == 0 && argc == 5)
		return visit(ifindex, hook, argv[4]);
	if (strcmp(argv[1], "count") == 0 && argc == 5)
		return count_packets(ifindex, hook, argv[4], TCX_NEXT);
	if (strcmp(argv[1], "end") == 0 && argc == 5)
		return count_packets(ifindex, hook, argv[4], TC_ACT_OK);
	fputs(usage, stderr);
	return 2;
}
