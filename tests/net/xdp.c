/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xdp.c - puts an XDP program at a device that drops every frame, as a filter of another software.
 */
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>

#include "program.h"
#include "tool.h"

const char tool_usage[] = "xdp drop DEVICE native|generic    all that comes in by it\n"
			  "xdp end DEVICE native|generic     takes it away\n";

static int load(void)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_DROP},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return program_load((struct program_place){BPF_PROG_TYPE_XDP, 0, "foreign_xdp"},
			    instructions, sizeof(instructions) / sizeof(*instructions));
}

int main(int argc, char **argv)
{
	int ifindex = argc > 2 ? (int)if_nametoindex(argv[2]) : 0, program = -1;
	uint32_t flags;

	if (!ifindex || argc != 4)
		die_usage();
	flags = strcmp(argv[3], "native") == 0 ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	if (strcmp(argv[1], "drop") == 0) {
		program = load();
		if (program < 0)
			die("the program");
	}
	if (bpf_xdp_attach(ifindex, program, flags, NULL))
		die(argv[2]);
	return 0;
}
