/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slot_amend.c - changing a slot that is live, in place. */
#include "datapath/slot_amend.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "datapath/refusal.h"

/* What the program is called with. */
struct amendment {
	__u32 slot;
	__u32 generation;
	__u64 macs; /* the word that ends with gateway_mac */
	__u32 fast_path;
	__u32 reserved;
};

#define MACS_OFFSET (offsetof(struct slot, gateway_mac) - 2)

_Static_assert(MACS_OFFSET % sizeof(__u64) == 0, "gateway_mac is written by one store");
_Static_assert(offsetof(struct slot, host_mac) + sizeof(((struct slot *)0)->host_mac) ==
		       MACS_OFFSET + 2,
	       "the rest of that word is the end of host_mac, which stays");

#define LOAD(size, to, from, at) \
	{ \
		.code = BPF_LDX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), \
		.off = (short)(at) \
	}
#define STORE(size, to, at, from) \
	{ \
		.code = BPF_STX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from), \
		.off = (short)(at) \
	}
#define MOVE(to, from) \
	{ \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) \
	}
#define SET(to, value) \
	{ \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) \
	}
#define ADD(to, value) \
	{ \
		.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value) \
	}
#define LOAD_MAP(to, fd) \
	{.code = BPF_LD | BPF_IMM | BPF_DW, \
	 .dst_reg = (to), \
	 .src_reg = BPF_PSEUDO_MAP_FD, \
	 .imm = (fd)}, \
	{ \
		0 \
	}
#define CALL(helper) \
	{ \
		.code = BPF_JMP | BPF_CALL, .imm = (helper) \
	}
#define SKIP_IF_ZERO(what, count) \
	{ \
		.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (what), .off = (count) \
	}
#define SKIP_IF_DIFFERENT(a, b, count) \
	{ \
		.code = BPF_JMP | BPF_JNE | BPF_X, .dst_reg = (a), .src_reg = (b), .off = (count) \
	}
#define EXIT() \
	{ \
		.code = BPF_JMP | BPF_EXIT \
	}

static int load(int slots)
{
	/* slot = slots[amendment->slot]; if (slot && slot->generation == amendment->generation)
	 * its fields = those of the amendment; return 0 */
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_6, offsetof(struct amendment, slot)),
		STORE(BPF_W, BPF_REG_10, -4, BPF_REG_1),
		LOAD_MAP(BPF_REG_1, slots),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		SKIP_IF_ZERO(BPF_REG_0, 7),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_0, offsetof(struct slot, generation)),
		LOAD(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct amendment, generation)),
		SKIP_IF_DIFFERENT(BPF_REG_1, BPF_REG_2, 4),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_6, offsetof(struct amendment, macs)),
		STORE(BPF_DW, BPF_REG_0, MACS_OFFSET, BPF_REG_1),
		LOAD(BPF_W, BPF_REG_1, BPF_REG_6, offsetof(struct amendment, fast_path)),
		STORE(BPF_B, BPF_REG_0, offsetof(struct slot, fast_path), BPF_REG_1),
		SET(BPF_REG_0, 0),
		EXIT(),
	};
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_SYSCALL;
	attributes.prog_flags = BPF_F_SLEEPABLE;
	attributes.insns = (uint64_t)(uintptr_t)program;
	attributes.insn_cnt = sizeof(program) / sizeof(program[0]);
	attributes.license = (uint64_t)(uintptr_t) "Dual BSD/GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
}

static int run(int program, const struct amendment *amendment)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.test.prog_fd = (uint32_t)program;
	attributes.test.ctx_in = (uint64_t)(uintptr_t)amendment;
	attributes.test.ctx_size_in = sizeof(*amendment);
	return (int)syscall(SYS_bpf, BPF_PROG_RUN, &attributes, sizeof(attributes));
}

int slot_amender_open(const struct objects *objects, struct cni_error *err)
{
	int amender = load(objects->maps[MAP_SLOTS]);

	if (amender < 0)
		refusal_set(err, errno, "cannot load what changes an entry in the map slots");
	return amender;
}

int slot_amend(int amender, uint32_t number, const struct slot *wanted, struct cni_error *err)
{
	struct amendment amendment = {
		.slot = number,
		.generation = wanted->generation,
		.fast_path = wanted->fast_path,
	};

	memcpy(&amendment.macs, (const char *)wanted + MACS_OFFSET, sizeof(amendment.macs));
	if (run(amender, &amendment))
		return refusal_set(err, errno, "cannot change an entry in the map slots");
	return 0;
}
