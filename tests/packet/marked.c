/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.c - runs a program for a packet that brings a value of skb->tc_index. */
#include "marked.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <unistd.h>

static int load(int array, uint16_t tc_index)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = tc_index},
		{.code = BPF_STX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_REG_3,
		 .off = offsetof(struct __sk_buff, tc_index)},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = array},
		{0}, /* the second half of the instruction before */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "marked", "GPL", instructions,
			     sizeof(instructions) / sizeof(*instructions), NULL);
}

int marked_load(struct marked *marked, int program, uint16_t tc_index)
{
	uint32_t first = 0;

	marked->array = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "marked", sizeof(uint32_t),
				       sizeof(uint32_t), 1, NULL);
	if (marked->array < 0)
		return -1;
	marked->program = bpf_map_update_elem(marked->array, &first, &program, BPF_ANY)
				  ? -1
				  : load(marked->array, tc_index);
	if (marked->program >= 0)
		return 0;
	close(marked->array);
	return -1;
}

void marked_close(const struct marked *marked)
{
	close(marked->program);
	close(marked->array);
}
