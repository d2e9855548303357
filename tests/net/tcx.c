/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx.c - another software's programs: loads and pins them, and shows, removes and adds programs at
 * the TCX hooks of a device, which older versions of bpftool cannot do; and reads our maps faster
 * than bpftool.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tool.h"

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

/* Prints each program, after the words `where`; `detach` is removed instead. */
static int visit(int ifindex, int hook, const char *where, const char *detach)
{
	uint32_t ids[MAX_PROGRAMS];
	int count = query_programs(ifindex, hook, ids);
	bool found = false;

	if (count < 0)
		die("query");
	for (int i = 0; i < count; i++) {
		char name[BPF_OBJ_NAME_LEN];
		int fd = program_open(ids[i], name);

		if (fd < 0)
			die("program");
		if (!detach)
			printf("%stcx %s\n", where, name);
		else if (strcmp(name, detach) == 0) {
			if (bpf_prog_detach2(fd, ifindex, (enum bpf_attach_type)hook))
				die("detach");
			found = true;
		}
		close(fd);
	}
	return detach && !found;
}

static int hold(int ifindex, int hook, const char *name, const char *pin)
{
	struct link_create create = {.target_ifindex = (uint32_t)ifindex,
				     .attach_type = (uint32_t)hook};
	uint32_t ids[MAX_PROGRAMS];
	int count = query_programs(ifindex, hook, ids), fd, link;
	char found[BPF_OBJ_NAME_LEN];

	for (int i = 0; i < count; i++) {
		fd = program_open(ids[i], found);
		if (fd < 0 || strcmp(found, name) != 0)
			continue;
		create.program_fd = (uint32_t)fd;
		if (bpf_prog_detach2(fd, ifindex, (enum bpf_attach_type)hook))
			die("detach");
		link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof(create));
		if (link < 0 || bpf_obj_pin(link, pin))
			die(pin);
		return 0;
	}
	return 1;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct if_nameindex *)a)->if_name,
		      ((const struct if_nameindex *)b)->if_name);
}

/* By name, because a device that is made again has another number. */
static int show_all(void)
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
		visit((int)devices[i].if_index, TCX_INGRESS, where, NULL);
		snprintf(where, sizeof(where), "%s egress ", devices[i].if_name);
		visit((int)devices[i].if_index, TCX_EGRESS, where, NULL);
	}
	if_freenameindex(devices);
	return 0;
}

/* As bpftool names hooks, which reads the types of the whole kernel before it can say so. In order.
 */
static const struct {
	const char *name;
	enum bpf_attach_type hook;
} socket_hooks[] = {
	{"bind4", BPF_CGROUP_INET4_BIND},
	{"bind6", BPF_CGROUP_INET6_BIND},
	{"connect4", BPF_CGROUP_INET4_CONNECT},
	{"connect6", BPF_CGROUP_INET6_CONNECT},
	{"getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
	{"getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
	{"recvmsg4", BPF_CGROUP_UDP4_RECVMSG},
	{"recvmsg6", BPF_CGROUP_UDP6_RECVMSG},
	{"sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
	{"sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
};

static int show_sockets(const char *path)
{
	int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cgroup < 0)
		die(path);
	for (size_t i = 0; i < sizeof(socket_hooks) / sizeof(*socket_hooks); i++) {
		uint32_t ids[MAX_PROGRAMS], count = MAX_PROGRAMS;
		char name[BPF_OBJ_NAME_LEN];

		if (bpf_prog_query(cgroup, socket_hooks[i].hook, 0, NULL, ids, &count))
			die(socket_hooks[i].name);
		for (uint32_t j = 0; j < count; j++) {
			close(program_open(ids[j], name));
			printf("%s %s\n", socket_hooks[i].name, name);
		}
	}
	close(cgroup);
	return 0;
}

/* What another software's program is */
struct foreign {
	const char *name; /* in foreign.bpf.c */
	const char *type; /* as libbpf names sections: tc, xdp, cgroup/connect4 */
	int answer;
};

/* Returns its descriptor. Its map is pinned at `pin`. */
static int foreign_load(struct foreign foreign, const char *pin)
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
	if (bpf_obj_pin(bpf_map__fd(skeleton->maps.counts), pin))
		die(pin);
	return bpf_program__fd(program);
}

static int attach(int program, int ifindex, int hook)
{
	if (bpf_prog_attach(program, ifindex, (enum bpf_attach_type)hook, 0))
		die("attach");
	return 0;
}

static int count_packets(int ifindex, int hook, const char *pin, int answer)
{
	struct foreign foreign = {"somebody_elses", "tc", answer};

	return attach(foreign_load(foreign, pin), ifindex, hook);
}

static int pin_program(struct foreign foreign, const char *program_pin, const char *map_pin)
{
	if (bpf_obj_pin(foreign_load(foreign, map_pin), program_pin))
		die(program_pin);
	return 0;
}

static unsigned int count_live(const char *pin)
{
	static struct slot slots[SLOTS_AT_ONCE];
	uint32_t numbers[SLOTS_AT_ONCE], position, *from = NULL, count;
	int map = bpf_obj_get(pin);
	unsigned int live = 0;
	bool last = false;

	while (!last) {
		count = SLOTS_AT_ONCE;
		last = bpf_map_lookup_batch(map, from, &position, numbers, slots, &count, NULL) !=
		       0;
		if (last && errno != ENOENT)
			die(pin);
		from = &position;
		for (uint32_t i = 0; i < count; i++)
			live += slots[i].live != 0;
	}
	close(map);
	return live;
}

static unsigned int count_entries(const char *pin)
{
	static unsigned char key[512];
	int map = bpf_obj_get(pin);
	unsigned int entries = 0;
	int end;

	if (map < 0)
		die(pin);
	for (end = bpf_map_get_next_key(map, NULL, key); !end;
	     end = bpf_map_get_next_key(map, key, key))
		entries++;
	if (errno != ENOENT)
		die(pin);
	close(map);
	return entries;
}

/* Of an array of words of 64 bits: prints the numbers of those that are set, or clears all. */
static int visit_bits(const char *pin, bool clears)
{
	const uint64_t none = 0;
	int map = bpf_obj_get(pin);
	uint64_t word;

	if (map < 0)
		die(pin);
	for (uint32_t i = 0; !bpf_map_lookup_elem(map, &i, &word); i++) {
		for (uint32_t bit = 0; !clears && bit < 64; bit++)
			if (word >> bit & 1)
				printf("%u\n", 64 * i + bit);
		if (clears && word && bpf_map_update_elem(map, &i, &none, BPF_EXIST))
			die(pin);
	}
	return 0;
}

/* Every slot has an entry. */
static unsigned int count_used(const char *map, const char *pin)
{
	return strcmp(map, "slots") == 0 ? count_live(pin) : count_entries(pin);
}

static int show_entries(const char *directory, char **maps)
{
	char path[512];

	for (; *maps; maps++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *maps);
		printf("%u%c", count_used(*maps, path), maps[1] ? ' ' : '\n');
	}
	return 0;
}

static int show_state(const char *directory, char **maps)
{
	char path[512];

	for (; *maps; maps++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *maps);
		if (!access(path, F_OK))
			printf("%s: %u\n", *maps, count_used(*maps, path));
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

static int print_counters(const char *pin, char **names)
{
	static struct counters values[1024];
	int map = bpf_obj_get(pin), cpus = libbpf_num_possible_cpus();
	uint32_t only = 0;

	if (map < 0 || cpus < 1 || cpus > 1024 || bpf_map_lookup_elem(map, &only, values))
		die(pin);
	for (; *names; names++) {
		int number = find_counter(*names);
		uint64_t sum = 0;

		if (number < 0)
			die(*names);
		for (int cpu = 0; cpu < cpus; cpu++)
			sum += ((uint64_t *)&values[cpu])[number];
		printf("%llu%c", (unsigned long long)sum, names[1] ? ' ' : '\n');
	}
	return 0;
}

int main(int argc, char **argv)
{
	int ifindex, hook;

	if (argc == 2 && strcmp(argv[1], "show") == 0)
		return show_all();
	if (argc >= 4 && strcmp(argv[1], "entries") == 0)
		return show_entries(argv[2], argv + 3);
	if (argc == 3 && strcmp(argv[1], "bits") == 0)
		return visit_bits(argv[2], false);
	if (argc == 3 && strcmp(argv[1], "clear") == 0)
		return visit_bits(argv[2], true);
	if (argc >= 4 && strcmp(argv[1], "state") == 0)
		return show_state(argv[2], argv + 3);
	if (argc >= 4 && strcmp(argv[1], "counters") == 0)
		return print_counters(argv[2], argv + 3);
	if (argc == 3 && strcmp(argv[1], "sockets") == 0)
		return show_sockets(argv[2]);
	if (argc < 4)
		die_usage();
	if (strcmp(argv[1], "pin") == 0) {
		struct foreign foreign = {"somebody_elses", "tc", TCX_NEXT};

		if (argc == 6) {
			foreign.type = argv[4];
			foreign.answer = parse_number(argv[5], 0, INT_MAX);
		}
		return pin_program(foreign, argv[2], argv[3]);
	}
	if (strcmp(argv[1], "sums") == 0)
		return pin_program((struct foreign){"sums", "tc", TCX_NEXT}, argv[2], argv[3]);
	ifindex = (int)if_nametoindex(argv[2]);
	if (!ifindex)
		die(argv[2]);
	hook = strcmp(argv[3], "ingress") == 0 ? TCX_INGRESS : TCX_EGRESS;
	if (strcmp(argv[1], "show") == 0)
		return visit(ifindex, hook, "", NULL);
	if (strcmp(argv[1], "attach") == 0 && argc == 5)
		return attach(bpf_obj_get(argv[4]), ifindex, hook);
	if (strcmp(argv[1], "detach") == 0 && argc == 5)
		return visit(ifindex, hook, "", argv[4]);
	if (strcmp(argv[1], "hold") == 0 && argc == 6)
		return hold(ifindex, hook, argv[4], argv[5]);
	if (strcmp(argv[1], "count") == 0 && argc == 5)
		return count_packets(ifindex, hook, argv[4], TCX_NEXT);
	if (strcmp(argv[1], "drop") == 0 && argc == 5)
		return count_packets(ifindex, hook, argv[4], TC_ACT_SHOT);
	if (strcmp(argv[1], "end") == 0 && argc == 5)
		return count_packets(ifindex, hook, argv[4], TC_ACT_OK);
	die_usage();
}
