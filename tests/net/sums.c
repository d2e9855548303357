/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sums.c - counts packets that arrive at a device by the state of their checksums (ip_summed), as
 * far as a BPF program can tell it, so that a test can check that it has set up what it claims.
 */
#include <net/if.h>

#include "program.h"
#include "tool.h"

const char tool_usage[] =
	"sums make PROGRAM-PIN PIN        pins a program for tc; its counters are pinned at PIN\n"
	"sums attach PROGRAM-PIN DEVICE   attaches it by TCX after the programs that are there\n"
	"sums show PIN                    prints STATE=PACKETS, and the same for GSO packets\n";

/* A program cannot distinguish NONE from PARTIAL; a GSO packet is PARTIAL. */
static const char *const states[] = {"complete",     "unnecessary",     "other",
				     "complete_gso", "unnecessary_gso", "other_gso"};

#define STATES (sizeof(states) / sizeof(states[0]))

static int load(int map)
{
	const struct bpf_insn program[] = {
		/* r6 = packet; r7 = gso_size ? 3 : 0 */
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 7, .imm = 0},
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = 1,
		 .src_reg = 6,
		 .off = offsetof(struct __sk_buff, gso_size)},
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1, .off = 1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 7, .imm = 3},
		/* bpf_csum_update(packet, 0) succeeds only if COMPLETE */
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_csum_update},
		{.code = BPF_JMP | BPF_JSGE | BPF_K, .dst_reg = 0, .off = 6},
		/* bpf_csum_level(packet, BPF_CSUM_LEVEL_QUERY) only if UNNECESSARY */
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 7, .imm = 1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = BPF_CSUM_LEVEL_QUERY},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_csum_level},
		{.code = BPF_JMP | BPF_JSGE | BPF_K, .dst_reg = 0, .off = 1},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 7, .imm = 1},
		/* counter[r7] += 1; return TC_ACT_UNSPEC; */
		{.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 10, .src_reg = 7, .off = -4},
		COUNT_AND_RETURN(map, -1),
	};
	const struct program_place place = {BPF_PROG_TYPE_SCHED_CLS, 0, "sums"};

	return program_load(place, program, sizeof(program) / sizeof(program[0]));
}

static int make(const char *program_pin, const char *pin)
{
	int map = counters_make(STATES, pin);
	int program;

	if (map < 0)
		die(pin);
	program = load(map);
	if (program < 0 || bpf_obj_pin(program, program_pin))
		die(program_pin);
	return 0;
}

static int attach(const char *program_pin, const char *device)
{
	if (bpf_prog_attach(bpf_obj_get(program_pin), (int)if_nametoindex(device),
			    (enum bpf_attach_type)TCX_INGRESS, 0))
		die(device);
	return 0;
}

static int show(const char *pin)
{
	int map = bpf_obj_get(pin);
	uint64_t packets;

	if (map < 0)
		die(pin);
	for (uint32_t i = 0; i < STATES; i++) {
		if (bpf_map_lookup_elem(map, &i, &packets))
			die(pin);
		printf("%s=%llu%s", states[i], (unsigned long long)packets,
		       i + 1 < STATES ? " " : "\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "make") == 0)
		return make(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "attach") == 0)
		return attach(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "show") == 0)
		return show(argv[2]);
	die_usage();
}
