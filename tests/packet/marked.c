/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.c - a packet that brings a value of skb->tc_index from an earlier hook. */
#include "marked.h"

#include <bpf/bpf.h>
#include <err.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define TAIL_CALL 12 /* BPF_FUNC_tail_call */

/* The map stays open: the kernel empties such a map when nobody has it open any more. */
static int program_array(int program)
{
	uint32_t first = 0;
	int map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "marked", sizeof(uint32_t),
				 sizeof(uint32_t), 1, NULL);

	if (map < 0 || bpf_map_update_elem(map, &first, &program, BPF_ANY))
		err(1, "making a table of programs");
	return map;
}

int marked_program(int program, unsigned int tc_index)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = (int)tc_index},
		{.code = BPF_STX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_REG_3,
		 .off = offsetof(struct __sk_buff, tc_index)},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = program_array(program)},
		{0}, /* the second half of the instruction before */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3},
		{.code = BPF_JMP | BPF_CALL, .imm = TAIL_CALL},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "marked", "GPL", instructions,
			       sizeof(instructions) / sizeof(*instructions), NULL);

	if (fd < 0)
		err(1, "loading a program that sets tc_index");
	return fd;
}
