/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockhook.c - another software's programs at the socket hooks of a cgroup.
 */
#include <fcntl.h>

#include "program.h"
#include "tool.h"

const char tool_usage[] =
	"sockhook count CGROUP HOOK PIN      attaches a program that counts its calls; its map is\n"
	"                                    pinned at PIN\n"
	"sockhook fill CGROUP HOOK COUNT     attaches COUNT programs that do nothing\n"
	"sockhook alone CGROUP HOOK          attaches one that does not share the hook\n"
	"sockhook show CGROUP                prints the attached programs, in order: HOOK NAME\n"
	"     HOOK: connect4, connect6, sendmsg4, sendmsg6, recvmsg4, recvmsg6, getpeername4,\n"
	"     getpeername6, bind4, bind6\n";

#define MAX_PROGRAMS 64 /* the kernel's limit for one hook of one cgroup */

static const struct {
	const char *name;
	enum bpf_attach_type type;
} hooks[] = {
	{"connect4", BPF_CGROUP_INET4_CONNECT},
	{"connect6", BPF_CGROUP_INET6_CONNECT},
	{"sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
	{"sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
	{"recvmsg4", BPF_CGROUP_UDP4_RECVMSG},
	{"recvmsg6", BPF_CGROUP_UDP6_RECVMSG},
	{"getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
	{"getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
	{"sock_release", BPF_CGROUP_INET_SOCK_RELEASE},
	{"bind4", BPF_CGROUP_INET4_BIND},
	{"bind6", BPF_CGROUP_INET6_BIND},
};

static enum bpf_attach_type hook_find(const char *name)
{
	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
		if (strcmp(hooks[i].name, name) == 0)
			return hooks[i].type;
	die_usage();
}

static struct program_place place_of(enum bpf_attach_type type)
{
	return (struct program_place){BPF_PROG_TYPE_CGROUP_SOCK_ADDR, type, "somebody_elses"};
}

static int require_loaded(int program)
{
	if (program < 0)
		die("BPF_PROG_LOAD");
	return program;
}

static int load_idle(enum bpf_attach_type type)
{
	static const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return require_loaded(program_load(place_of(type), instructions,
					   sizeof(instructions) / sizeof(*instructions)));
}

static int load_counting(enum bpf_attach_type type, int map)
{
	return require_loaded(program_load_counter(place_of(type), map, 1));
}

static void attach(int program, int cgroup, enum bpf_attach_type type, unsigned int flags)
{
	if (bpf_prog_attach(program, cgroup, type, flags))
		die("attach");
}

static void count_calls(int cgroup, enum bpf_attach_type type, const char *pin)
{
	int map = counters_make(1, pin);

	if (map < 0)
		die(pin);
	attach(load_counting(type, map), cgroup, type, BPF_F_ALLOW_MULTI);
}

static void print_program(const char *hook, uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int program = bpf_prog_get_fd_by_id(id);

	if (program < 0 || bpf_obj_get_info_by_fd(program, &info, &size))
		die("program");
	printf("%s %s\n", hook, info.name);
	close(program);
}

static void show(int cgroup)
{
	uint32_t ids[MAX_PROGRAMS], count;

	for (size_t hook = 0; hook < sizeof(hooks) / sizeof(*hooks); hook++) {
		count = MAX_PROGRAMS;
		if (bpf_prog_query(cgroup, hooks[hook].type, 0, NULL, ids, &count))
			die("query");
		for (uint32_t i = 0; i < count; i++)
			print_program(hooks[hook].name, ids[i]);
	}
}

static int open_cgroup(const char *path)
{
	int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cgroup < 0)
		die(path);
	return cgroup;
}

int main(int argc, char **argv)
{
	enum bpf_attach_type type;
	int cgroup;

	if (argc < 3)
		die_usage();
	cgroup = open_cgroup(argv[2]);
	if (strcmp(argv[1], "show") == 0 && argc == 3) {
		show(cgroup);
		return 0;
	}
	if (argc < 4)
		die_usage();
	type = hook_find(argv[3]);
	if (strcmp(argv[1], "count") == 0 && argc == 5)
		count_calls(cgroup, type, argv[4]);
	else if (strcmp(argv[1], "fill") == 0 && argc == 5)
		for (int left = parse_number(argv[4], 1, MAX_PROGRAMS); left; left--)
			attach(load_idle(type), cgroup, type, BPF_F_ALLOW_MULTI);
	else if (strcmp(argv[1], "alone") == 0 && argc == 4)
		attach(load_idle(type), cgroup, type, 0);
	else
		die_usage();
	return 0;
}
