/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx.c - another software's programs: loads and pins them, and shows, removes and adds programs at
 * the TCX hooks of a device, which older versions of bpftool cannot do; and reads our maps faster
 * than bpftool.
 */
#include <bpf/libbpf.h>
#include <limits.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <net/if.h>
#include <sys/syscall.h>

#include "pinned.h"

#include "abi.h"
#include "tests/foreign.skel.h"

/* linux/bpf.h of kernels before 6.6 lacks these. */
#define TCX_INGRESS 46
#define TCX_EGRESS 47

#define MAX_PROGRAMS 64
#define SLOTS_AT_ONCE 1024U
#define TCX_NEXT (-1) /* the next program sees the packet too */

const char tool_usage[] =
	"tcx show DEVICE ingress|egress           prints the name of each program there\n"
	"tcx show                                 the same of all devices and hooks\n"
	"tcx detach DEVICE ingress|egress NAME    removes the program of that name\n"
	"tcx count DEVICE ingress|egress PIN      adds a program that counts packets and passes\n"
	"                                         them on; its map is pinned at PIN\n"
	"tcx end DEVICE ingress|egress PIN        the same, but no later program sees the packets\n"
	"tcx drop DEVICE ingress|egress PIN       the same, but drops them\n"
	"tcx hold DEVICE ingress|egress NAME PIN  the program of that name is there by a link "
	"from\n"
	"                                         now on, pinned at PIN, in whose place nobody "
	"puts\n"
	"                                         another\n"
	"tcx pin PROGRAM-PIN PIN [TYPE ANSWER]    only pins the counting program, for tc, or of "
	"another TYPE\n"
	"                                         (xdp, cgroup/connect4, ...), that returns "
	"ANSWER\n"
	"tcx sums PROGRAM-PIN PIN                 pins a program that counts packets by the state "
	"of\n"
	"                                         their checksums\n"
	"tcx attach DEVICE ingress|egress PROGRAM-PIN\n"
	"tcx sockets CGROUP                       prints each hook at sockets with each program "
	"there\n"
	"tcx entries DIRECTORY MAP...             prints, in one line, how many entries each map "
	"has\n"
	"                                         that is pinned there; of `slots`, how many are "
	"live\n"
	"tcx bits PIN                             prints the number of each bit that is set in "
	"the words of an array\n"
	"tcx clear PIN                            clears them\n"
	"tcx state DIRECTORY MAP...               the same of those that are pinned there, a line "
	"each\n"
	"tcx counters PIN NAME...                 prints the sum of each counter over all CPUs\n"
	"                                         PIN: the map counters\n";

/* The header's union bpf_attr may be older than TCX, so this is the kernel's layout. */
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

/* The same of a link that is made. */
struct link_create {
	uint32_t program_fd;
	uint32_t target_ifindex;
	uint32_t attach_type;
	uint32_t flags;
	uint32_t relative_fd;
	uint32_t padding;
	uint64_t expected_revision;
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

/* DEVICE ingress|egress, where most commands work */
struct place {
	int ifindex;
	int hook;
};

static struct place parse_place(char **operands)
{
	int ifindex = (int)if_nametoindex(operands[0]);

	if (!ifindex)
		die(operands[0]);
	return (struct place){ifindex, strcmp(operands[1], "ingress") ? TCX_EGRESS : TCX_INGRESS};
}

static void detach_program(int program, struct place place)
{
	if (bpf_prog_detach2(program, place.ifindex, (enum bpf_attach_type)place.hook))
		die("detach");
}

/* Prints each program, after the words `where`; `detach` is removed instead. Returns its
 * descriptor, or -1. */
static int visit(struct place place, const char *where, const char *detach)
{
	uint32_t ids[MAX_PROGRAMS];
	int count = query_programs(place.ifindex, place.hook, ids), found = -1;

	if (count < 0)
		die("query");
	for (int i = 0; i < count; i++) {
		char name[BPF_OBJ_NAME_LEN];
		int fd = program_open(ids[i], name);

		if (fd < 0)
			die("program");
		if (!detach)
			printf("%stcx %s\n", where, name);
		if (!detach || strcmp(name, detach) != 0) {
			close(fd);
			continue;
		}
		detach_program(fd, place);
		found = fd;
	}
	return found;
}

static int detach(char **operands)
{
	return visit(parse_place(operands), NULL, operands[2]) < 0;
}

static int hold(char **operands)
{
	struct place place = parse_place(operands);
	int program = visit(place, NULL, operands[2]), link;
	struct link_create create = {.program_fd = (uint32_t)program,
				     .target_ifindex = (uint32_t)place.ifindex,
				     .attach_type = (uint32_t)place.hook};

	if (program < 0)
		return 1;
	link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof(create));
	if (link < 0)
		die("link");
	pin(link, operands[3]);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct if_nameindex *)a)->if_name,
		      ((const struct if_nameindex *)b)->if_name);
}

/* By name, because a device that is made again has another number. */
static void show_all(void)
{
	struct if_nameindex *devices = if_nameindex();
	char where[IF_NAMESIZE + 16];
	size_t count = 0;

	if (!devices)
		die("devices");
	while (devices[count].if_index)
		count++;
	qsort(devices, count, sizeof(*devices), compare_names);
	for (size_t i = 0; i < count; i++) {
		snprintf(where, sizeof(where), "%s ingress ", devices[i].if_name);
		visit((struct place){(int)devices[i].if_index, TCX_INGRESS}, where, NULL);
		snprintf(where, sizeof(where), "%s egress ", devices[i].if_name);
		visit((struct place){(int)devices[i].if_index, TCX_EGRESS}, where, NULL);
	}
	if_freenameindex(devices);
}

static int show(char **operands)
{
	if (operands[0] && !operands[1])
		die_usage();
	if (operands[0])
		visit(parse_place(operands), "", NULL);
	else
		show_all();
	return 0;
}

static int show_sockets(char **operands)
{
	int cgroup = open_cgroup(operands[0]);

	for (const struct socket_hook *hook = socket_hooks; hook->name; hook++) {
		uint32_t ids[MAX_PROGRAMS], count = MAX_PROGRAMS;
		char name[BPF_OBJ_NAME_LEN];

		if (bpf_prog_query(cgroup, hook->hook, 0, NULL, ids, &count))
			die(hook->name);
		for (uint32_t i = 0; i < count; i++) {
			close(program_open(ids[i], name));
			printf("%s %s\n", hook->name, name);
		}
	}
	return 0;
}

/* What another software's program is */
struct foreign {
	const char *name; /* in foreign.bpf.c */
	const char *type; /* as libbpf names sections: tc, xdp, cgroup/connect4 */
	int answer;
};

/* Returns its descriptor. Its map is pinned at `pin`. */
static int foreign_load(struct foreign foreign, const char *map_pin)
{
	struct foreign_bpf *skeleton = foreign_bpf__open();
	enum bpf_prog_type type;
	enum bpf_attach_type hook;
	struct bpf_program *program;

	if (!skeleton)
		die("the program");
	if (libbpf_prog_type_by_name(foreign.type, &type, &hook))
		die_usage();
	skeleton->rodata->answer = foreign.answer;
	bpf_object__for_each_program (program, skeleton->obj)
		bpf_program__set_autoload(program,
					  !strcmp(bpf_program__name(program), foreign.name));
	program = bpf_object__find_program_by_name(skeleton->obj, foreign.name);
	bpf_program__set_type(program, type);
	bpf_program__set_expected_attach_type(program, hook);
	if (foreign_bpf__load(skeleton))
		die("the program");
	pin(bpf_map__fd(skeleton->maps.counts), map_pin);
	return bpf_program__fd(program);
}

static bool is_command(char **operands, const char *name)
{
	return strcmp(operands[-1], name) == 0;
}

/* A program that is pinned, or one that counts: count, drop, end */
static int attach(char **operands)
{
	struct foreign foreign = {"somebody_elses", "tc",
				  is_command(operands, "count")  ? TCX_NEXT
				  : is_command(operands, "drop") ? TC_ACT_SHOT
								 : TC_ACT_OK};
	struct place place = parse_place(operands);
	int program = is_command(operands, "attach") ? open_pin(operands[2])
						     : foreign_load(foreign, operands[2]);

	if (bpf_prog_attach(program, place.ifindex, (enum bpf_attach_type)place.hook, 0))
		die("attach");
	return 0;
}

/* pin, sums */
static int pin_program(char **operands)
{
	struct foreign foreign = {"somebody_elses", "tc", TCX_NEXT};

	if (is_command(operands, "sums"))
		foreign.name = "sums";
	else if (operands[2] && operands[3])
		foreign = (struct foreign){foreign.name, operands[2],
					   parse_number(operands[3], 0, INT_MAX)};
	pin(foreign_load(foreign, operands[1]), operands[0]);
	return 0;
}

static unsigned int count_live(const char *path)
{
	static struct slot slots[SLOTS_AT_ONCE];
	uint32_t numbers[SLOTS_AT_ONCE], position, *from = NULL, count;
	int map = open_pin(path);
	unsigned int live = 0;
	bool last = false;

	while (!last) {
		count = SLOTS_AT_ONCE;
		last = bpf_map_lookup_batch(map, from, &position, numbers, slots, &count, NULL) !=
		       0;
		if (last && errno != ENOENT)
			die(path);
		from = &position;
		for (uint32_t i = 0; i < count; i++)
			live += slots[i].live != 0;
	}
	close(map);
	return live;
}

static unsigned int count_entries(const char *path)
{
	static unsigned char key[512];
	int map = open_pin(path);
	unsigned int entries = 0;

	for (void *last = NULL; !bpf_map_get_next_key(map, last, key); last = key)
		entries++;
	if (errno != ENOENT)
		die(path);
	close(map);
	return entries;
}

/* Of an array of words of 64 bits: `bits` prints the numbers of those that are set, `clear` clears
 * them. */
static int visit_bits(char **operands)
{
	const uint64_t none = 0;
	bool clears = is_command(operands, "clear");
	int map = open_pin(operands[0]);
	uint64_t word;

	for (uint32_t i = 0; !bpf_map_lookup_elem(map, &i, &word); i++) {
		for (uint32_t bit = 0; !clears && bit < 64; bit++)
			if (word >> bit & 1)
				printf("%u\n", 64 * i + bit);
		if (clears && word && bpf_map_update_elem(map, &i, &none, BPF_EXIST))
			die(operands[0]);
	}
	return 0;
}

/* Every slot has an entry. */
static unsigned int count_used(const char *map, const char *path)
{
	return strcmp(map, "slots") == 0 ? count_live(path) : count_entries(path);
}

/* entries, state */
static int show_used(char **operands)
{
	char path[PIN_SIZE];

	for (char **map = operands + 1; *map; map++) {
		pin_of(path, operands[0], *map);
		if (is_command(operands, "entries"))
			printf("%u%c", count_used(*map, path), map[1] ? ' ' : '\n');
		else if (!access(path, F_OK))
			printf("%s: %u\n", *map, count_used(*map, path));
	}
	return 0;
}

static const char *const counter_names[] = {
#define X(name, meaning) #name,
	COUNTERS(X)
#undef X
};

/* -1: no counter has this name. */
static int find_counter(const char *name)
{
	for (int i = 0; i < (int)(sizeof(counter_names) / sizeof(*counter_names)); i++)
		if (strcmp(counter_names[i], name) == 0)
			return i;
	return -1;
}

static int counters(char **operands)
{
	static struct counters values[1024];
	int map = open_pin(operands[0]), cpus = libbpf_num_possible_cpus();
	uint32_t only = 0;

	if (cpus < 1 || cpus > 1024 || bpf_map_lookup_elem(map, &only, values))
		die(operands[0]);
	for (char **name = operands + 1; *name; name++) {
		int number = find_counter(*name);
		uint64_t sum = 0;

		if (number < 0)
			die(*name);
		for (int cpu = 0; cpu < cpus; cpu++)
			sum += ((uint64_t *)&values[cpu])[number];
		printf("%llu%c", (unsigned long long)sum, name[1] ? ' ' : '\n');
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_command commands[] = {
		{"show", 0, 2, show},
		{"detach", 3, 3, detach},
		{"attach", 3, 3, attach},
		{"count", 3, 3, attach},
		{"drop", 3, 3, attach},
		{"end", 3, 3, attach},
		{"hold", 4, 4, hold},
		{"pin", 2, 4, pin_program},
		{"sums", 2, 2, pin_program},
		{"sockets", 1, 1, show_sockets},
		{"entries", 2, INT_MAX, show_used},
		{"state", 2, INT_MAX, show_used},
		{"bits", 1, 1, visit_bits},
		{"clear", 1, 1, visit_bits},
		{"counters", 2, INT_MAX, counters},
		{NULL},
	};

	return run_command(argc - 1, argv + 1, commands);
}
