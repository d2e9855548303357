/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* device_layout.c - finds members of the kernel's types, and its functions, in its BTF. */
#include "datapath/load/device_layout.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
static const struct member tracked_members[] = {DEVICE_MEMBERS_TRACKED(X)};
static const struct member zone_members[] = {DEVICE_MEMBERS_ZONE(X)};
static const struct member mini_qdisc_members[] = {DEVICE_MEMBERS_MINI_QDISC(X)};
static const struct member ipv6_members[] = {DEVICE_MEMBERS_IPV6(X)};
static const struct member routes_members[] = {DEVICE_MEMBERS_ROUTES(X)};
static const struct member sources_members[] = {DEVICE_MEMBERS_SOURCES(X)};
static const struct member rules_members[] = {DEVICE_MEMBERS_RULES(X)};
static const struct member hooks_members[] = {DEVICE_MEMBERS_HOOKS(X)};
static const struct member times_members[] = {DEVICE_MEMBERS_TIMES(X)};
static const struct member checksum_members[] = {DEVICE_MEMBERS_CHECKSUM(X)};
#undef X

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define CONNTRACK_MODULE "nf_conntrack"
#define CONNTRACK_SETTINGS "/proc/sys/net/netfilter/nf_conntrack_max"

#define X(name, function) #function,
static const char *const function_names[KERNEL_FUNCTION_COUNT] = {KERNEL_FUNCTIONS(X)};
#undef X

/* What a call needs to be one of this kernel's function: its BTF ID, 0 if there is none, and for a
 * module's the place of its BTF among `btf_fds`, where 0 is the kernel's own. */
static struct {
	int ids[KERNEL_FUNCTION_COUNT];
	short places[KERNEL_FUNCTION_COUNT];
	int btf_fds[2];
} functions = {.btf_fds = {-1, -1}};

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

/* Called by libbpf for each program, when its instructions are complete. */
static int put_functions(struct bpf_program *program, struct bpf_prog_load_opts *options,
			 long cookie __attribute__((unused)))
{
	size_t count = bpf_program__insn_cnt(program);
	cleanup_free struct bpf_insn *instructions = malloc(count * sizeof(*instructions));

	if (!instructions)
		return -ENOMEM;
	memcpy(instructions, bpf_program__insns(program), count * sizeof(*instructions));
	for (size_t i = 0; i < count; i++) {
		struct bpf_insn *call = &instructions[i];
		uint32_t function = (uint32_t)call->imm - KERNEL_FUNCTION_CALL(cast);

		if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg ||
		    function >= KERNEL_FUNCTION_COUNT || !functions.ids[function])
			continue;
		call->src_reg = BPF_PSEUDO_KFUNC_CALL;
		call->imm = functions.ids[function];
		call->off = functions.places[function];
	}
	options->fd_array = functions.btf_fds;
	return bpf_program__set_insns(program, instructions, count);
}

static void put_functions_from_now_on(void)
{
	DECLARE_LIBBPF_OPTS(libbpf_prog_handler_opts, options,
			    .prog_prepare_load_fn = put_functions);
	static bool done;

	if (!done)
		libbpf_register_prog_handler("tc", BPF_PROG_TYPE_SCHED_CLS, (enum bpf_attach_type)0,
					     &options);
	done = true;
}

/* -1: no such module has BTF. */
static int open_module_btf(const char *module)
{
	for (__u32 id = 0; !bpf_btf_get_next_id(id, &id);) {
		int fd = bpf_btf_get_fd_by_id(id);
		char name[64] = "";
		struct bpf_btf_info info = {.name = (__u64)(uintptr_t)name,
					    .name_len = sizeof(name)};
		__u32 size = sizeof(info);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) && info.kernel_btf &&
		    strcmp(name, module) == 0)
			return fd;
		cleanup_close_pointer(&fd);
	}
	return -1;
}

static bool find_function(const struct btf *btf, enum kernel_function function, short place)
{
	int id = btf__find_by_name_kind(btf, function_names[function], BTF_KIND_FUNC);

	functions.ids[function] = id < 0 ? 0 : id;
	functions.places[function] = place;
	return id > 0;
}

/* bpf_rdonly_cast() wants the type of what it is to read: any structure whose first member is a
 * number of 64 bits does for a word at any address. 0: there is none. */
static uint32_t find_word(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "timespec64", BTF_KIND_STRUCT);

	return id < 0 ? 0 : (uint32_t)id;
}

/* The offsets of zones stay 0 without them. */
static bool find_tracked(const struct btf *btf, short place, struct device_layout *layout)
{
	find_all(btf, zone_members, COUNT(zone_members), layout);
	return find_function(btf, KERNEL_FUNCTION_conntrack_lookup, place) &&
	       find_function(btf, KERNEL_FUNCTION_conntrack_release, place) &&
	       find_function(btf, KERNEL_FUNCTION_conntrack_set_timeout, place) &&
	       find_all(btf, tracked_members, COUNT(tracked_members), layout);
}

/* Looks in the kernel itself, and in the module if that is loaded: it is not loaded for this. */
static bool find_conntrack(struct btf *kernel, struct device_layout *layout)
{
	struct btf *module;
	bool found;

	if (find_tracked(kernel, 0, layout))
		return true;
	cleanup_close_pointer(&functions.btf_fds[1]);
	functions.btf_fds[1] = open_module_btf(CONNTRACK_MODULE);
	if (functions.btf_fds[1] < 0)
		return false;
	module = btf__load_module_btf(CONNTRACK_MODULE, kernel);
	if (libbpf_get_error(module))
		return false;
	found = find_tracked(module, 1, layout);
	btf__free(module);
	return found;
}

/* A coarse clock goes by the kernel's ticks (CONFIG_HZ). */
static uint32_t ticks_of_second(void)
{
	struct timespec tick = {0};

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tick.tv_sec || !tick.tv_nsec ? 0 : (uint32_t)(1000000000 / tick.tv_nsec);
}

bool device_layout_has_nat_without_hook(void)
{
	return access("/sys/module/act_ct", F_OK) == 0 ||
	       access("/sys/module/openvswitch", F_OK) == 0;
}

/* Where they are a part of the kernel, it has their types. */
static bool may_translate_without_hook(const struct btf *btf)
{
	return device_layout_has_nat_without_hook() ||
	       btf__find_by_name_kind(btf, "tcf_ct_params", BTF_KIND_STRUCT) > 0 ||
	       btf__find_by_name_kind(btf, "ovs_conntrack_info", BTF_KIND_STRUCT) > 0;
}

bool device_layout_has_conntrack(void)
{
	return access(CONNTRACK_SETTINGS, F_OK) == 0;
}

void device_layout_find(struct device_layout *layout)
{
	struct btf *btf;

	memset(layout, 0, sizeof(*layout));
	memset(functions.ids, 0, sizeof(functions.ids));
	btf = btf__load_vmlinux_btf();
	if (libbpf_get_error(btf))
		return;
	layout->known = find_all(btf, members, COUNT(members), layout);
	layout->upper = find_all(btf, upper_members, COUNT(upper_members), layout);
	layout->xfrm = find_all(btf, xfrm_members, COUNT(xfrm_members), layout);
	layout->conntrack = find_all(btf, conntrack_members, COUNT(conntrack_members), layout);
	layout->routes = find_all(btf, routes_members, COUNT(routes_members), layout);
	layout->sources = find_all(btf, sources_members, COUNT(sources_members), layout);
	layout->hooks = find_all(btf, hooks_members, COUNT(hooks_members), layout);
	layout->nat_without_hook = may_translate_without_hook(btf);
	layout->rules = layout->hooks && find_all(btf, rules_members, COUNT(rules_members), layout);
	if (find_all(btf, times_members, COUNT(times_members), layout))
		layout->ticks = ticks_of_second();
	layout->checksum = find_all(btf, checksum_members, COUNT(checksum_members), layout) &&
			   find_ip_summed(btf, layout);
	layout->cast = find_function(btf, KERNEL_FUNCTION_cast, 0);
	if (find_function(btf, KERNEL_FUNCTION_cast_address, 0))
		layout->word = find_word(btf);
	layout->tracked = layout->conntrack && find_conntrack(btf, layout);
	put_functions_from_now_on();
	layout->ipv6 = find_all(btf, ipv6_members, COUNT(ipv6_members), layout);
	layout->tcx = find_all(btf, tcx_members, COUNT(tcx_members), layout);
	if (!layout->tcx)
		layout->known &=
			find_all(btf, mini_qdisc_members, COUNT(mini_qdisc_members), layout);
	layout->our_priority = FILTER_PRIORITY;
	btf__free(btf);
}
