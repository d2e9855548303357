/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* marked.c - runs a program for a packet that brings values of skb->tc_index and skb->hash. */
#include "marked.h"

#include <bpf/bpf.h>
#include <err.h>
#include <linux/bpf.h>
#include <stddef.h>

/* Registers: 6 has the packet, 7 struct told. */
static int load(int array, int told)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_7,
		 .src_reg = BPF_PSEUDO_MAP_VALUE,
		 .imm = told},
		{0}, /* the second half of the instruction before */
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_3,
		 .src_reg = BPF_REG_6,
		 .off = offsetof(struct __sk_buff, hash)},
		{.code = BPF_STX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_7,
		 .src_reg = BPF_REG_3,
		 .off = offsetof(struct told, left)},
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_3,
		 .src_reg = BPF_REG_7,
		 .off = offsetof(struct told, tc_index)},
		{.code = BPF_STX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_6,
		 .src_reg = BPF_REG_3,
		 .off = offsetof(struct __sk_buff, tc_index)},
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_REG_7,
		 .off = offsetof(struct told, hash)},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_set_hash},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6},
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = array},
		{0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "marked", "GPL", instructions,
			     sizeof(instructions) / sizeof(*instructions), NULL);
}

static int map_create(enum bpf_map_type type, size_t size)
{
	return bpf_map_create(type, "marked", sizeof(uint32_t), (uint32_t)size, 1, NULL);
}

int marked_load(struct marked *marked, int program)
{
	uint32_t first = 0;

	marked->program = -1;
	marked->array = map_create(BPF_MAP_TYPE_PROG_ARRAY, sizeof(uint32_t));
	marked->told = map_create(BPF_MAP_TYPE_ARRAY, sizeof(struct told));
	if (marked->array >= 0 && marked->told >= 0 &&
	    !bpf_map_update_elem(marked->array, &first, &program, BPF_ANY))
		marked->program = load(marked->array, marked->told);
	return marked->program >= 0 ? 0 : -1;
}

int marked_program(const struct marked *marked, struct told told)
{
	uint32_t first = 0;

	if (bpf_map_update_elem(marked->told, &first, &told, BPF_ANY))
		err(1, "telling a program of a packet");
	return marked->program;
}

uint32_t marked_hash_left(const struct marked *marked)
{
	uint32_t first = 0;
	struct told told;

	if (bpf_map_lookup_elem(marked->told, &first, &told))
		err(1, "reading what a program left");
	return told.left;
}
