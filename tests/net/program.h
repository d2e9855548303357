/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * program.h - BPF programs that stand for another software's.
 */
#pragma once

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/bpf.h of kernels before 6.6 lacks these. */
#define TCX_INGRESS 46
#define TCX_EGRESS 47

/* What BPF_PROG_LOAD needs to know about the hook. */
struct program_place {
	enum bpf_prog_type type;
	enum bpf_attach_type hook; /* 0 where the type implies it */
	const char *name;
};

/* Returns the program's descriptor, or -1 and errno. */
static inline int program_load(struct program_place place, const struct bpf_insn *instructions,
			       size_t count)
{
	union bpf_attr attributes = {
		.prog_type = place.type,
		.expected_attach_type = place.hook,
		.insn_cnt = (uint32_t)count,
		.insns = (uintptr_t)instructions,
		.license = (uintptr_t) "GPL",
	};

	snprintf(attributes.prog_name, sizeof(attributes.prog_name), "%s", place.name);

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
}

/* Creates and pins an array of counters; returns its descriptor, or -1 and errno. */
static inline int counters_make(uint32_t count, const char *pin)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = 8,
		.max_entries = count,
	};
	int map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes));

	return map < 0 || bpf_obj_pin(map, pin) ? -1 : map;
}

/* The end of a program: adds one to the map's entry whose number is at the top of the stack, and
 * returns `answer`. */
#define COUNT_AND_RETURN(map_, answer_) \
	{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10}, \
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4}, \
		{.code = BPF_LD | BPF_DW | BPF_IMM, \
		 .dst_reg = 1, \
		 .src_reg = BPF_PSEUDO_MAP_FD, \
		 .imm = map_}, \
		{0}, {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem}, \
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .off = 2}, \
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = 1}, \
		{.code = BPF_STX | BPF_ATOMIC | BPF_DW, \
		 .dst_reg = 0, \
		 .src_reg = 1, \
		 .imm = BPF_ADD}, \
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = answer_}, \
	{ \
		.code = BPF_JMP | BPF_EXIT \
	}

/* A program that adds one to the map's first entry at each call, and returns `answer`. */
static inline int program_load_counter(struct program_place place, int map, int answer)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = 10, .off = -4},
		COUNT_AND_RETURN(map, answer),
	};

	return program_load(place, instructions, sizeof(instructions) / sizeof(*instructions));
}
