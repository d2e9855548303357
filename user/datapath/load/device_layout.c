/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* device_layout.c - finds members of the kernel's types in its BTF. */
#include "datapath/load/device_layout.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "net/tc.h"

struct member {
	const char *type;
	const char *name;
	size_t place; /* in struct device_layout */
};

#define X(field, type, member) {#type, #member, offsetof(struct device_layout, field)},
static const struct member members[] = {DEVICE_MEMBERS(X)};
static const struct member tcx_members[] = {DEVICE_MEMBERS_TCX(X)};
static const struct member upper_members[] = {DEVICE_MEMBERS_UPPER(X)};
static const struct member xfrm_members[] = {DEVICE_MEMBERS_XFRM(X)};
static const struct member conntrack_members[] = {DEVICE_MEMBERS_CONNTRACK(X)};
static const struct member mini_qdisc_members[] = {DEVICE_MEMBERS_MINI_QDISC(X)};
static const struct member ipv6_members[] = {DEVICE_MEMBERS_IPV6(X)};
static const struct member checksum_members[] = {DEVICE_MEMBERS_CHECKSUM(X)};
#undef X

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* In bits; also in the structs and unions without a name inside. -1: there is none. */
static long find_member(const struct btf *btf, const struct btf_type *type, const char *name)
{
	const struct btf_member *member = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		long offset = btf_member_bit_offset(type, i), inner;
		const char *own = btf__name_by_offset(btf, member[i].name_off);
		const struct btf_type *inside = btf__type_by_id(btf, member[i].type);

		if (strcmp(own, name) == 0)
			return offset;
		if (*own || !btf_is_composite(inside))
			continue;
		inner = find_member(btf, inside, name);
		if (inner >= 0)
			return offset + inner;
	}
	return -1;
}

static long find_in_struct(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);

	return id < 0 ? -1 : find_member(btf, btf__type_by_id(btf, (uint32_t)id), name);
}

static bool find_all(const struct btf *btf, const struct member *wanted, size_t count,
		     struct device_layout *layout)
{
	for (size_t i = 0; i < count; i++) {
		long bits = find_in_struct(btf, wanted[i].type, wanted[i].name);
		uint32_t bytes = (uint32_t)bits / 8;

		if (bits < 0 || bits % 8)
			return false;
		memcpy((char *)layout + wanted[i].place, &bytes, sizeof(bytes));
	}
	return true;
}

/* sk_buff.ip_summed is a bit-field of two bits. */
static bool find_ip_summed(const struct btf *btf, struct device_layout *layout)
{
	long bits = find_in_struct(btf, "sk_buff", "ip_summed");

	if (bits < 0 || bits % 8 > 6)
		return false;
	layout->skb_ip_summed = (uint32_t)bits / 8;
	layout->ip_summed_mask = 3U << bits % 8;
	return true;
}

int device_layout_apply(struct bpf_program *program, const struct device_layout *layout)
{
	size_t count = bpf_program__insn_cnt(program);
	cleanup_free struct bpf_insn *instructions = NULL;

	if (!layout->cast)
		return 0;
	instructions = malloc(count * sizeof(*instructions));
	if (!instructions)
		return -1;
	memcpy(instructions, bpf_program__insns(program), count * sizeof(*instructions));
	for (size_t i = 0; i < count; i++) {
		struct bpf_insn *call = &instructions[i];

		if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg || call->imm != CAST_CALL)
			continue;
		call->src_reg = BPF_PSEUDO_KFUNC_CALL;
		call->imm = (int)layout->cast;
	}
	return bpf_program__set_insns(program, instructions, count);
}

void device_layout_find(struct device_layout *layout)
{
	struct btf *btf;
	int cast;

	memset(layout, 0, sizeof(*layout));
	btf = btf__load_vmlinux_btf();
	if (libbpf_get_error(btf))
		return;
	layout->known = find_all(btf, members, COUNT(members), layout);
	layout->upper = find_all(btf, upper_members, COUNT(upper_members), layout);
	layout->xfrm = find_all(btf, xfrm_members, COUNT(xfrm_members), layout);
	layout->conntrack = find_all(btf, conntrack_members, COUNT(conntrack_members), layout);
	layout->checksum = find_all(btf, checksum_members, COUNT(checksum_members), layout) &&
			   find_ip_summed(btf, layout);
	cast = btf__find_by_name_kind(btf, "bpf_cast_to_kern_ctx", BTF_KIND_FUNC);
	layout->cast = cast < 0 ? 0 : (uint32_t)cast;
	layout->ipv6 = find_all(btf, ipv6_members, COUNT(ipv6_members), layout);
	layout->tcx = find_all(btf, tcx_members, COUNT(tcx_members), layout);
	if (!layout->tcx)
		layout->known &=
			find_all(btf, mini_qdisc_members, COUNT(mini_qdisc_members), layout);
	layout->our_priority = FILTER_PRIORITY;
	btf__free(btf);
}
