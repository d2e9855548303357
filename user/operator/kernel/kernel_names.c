/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kernel_names.c - the kernel's names for why and where it drops packets. */
#include "operator/kernel/kernel_names.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/text.h"

#define REASON_PREFIX "SKB_DROP_REASON_"
#define MOST_FUNCTIONS 256 /* that are remembered */

void kernel_names_release(struct kernel_names *names)
{
	btf__free(names->btf);
	free(names->functions);
	*names = (struct kernel_names){0};
}

/* Not from the tracepoint's format: tracefs need not be mounted. */
void kernel_names_prepare(struct kernel_names *names)
{
	if (!names->btf)
		names->btf = btf__load_vmlinux_btf();
}

const char *kernel_reason(struct kernel_names *names, uint32_t reason)
{
	const struct btf_type *type;
	const struct btf_enum *members;
	int id;

	kernel_names_prepare(names);
	if (!reason || !names->btf)
		return NULL;
	id = btf__find_by_name_kind(names->btf, "skb_drop_reason", BTF_KIND_ENUM);
	type = id < 0 ? NULL : btf__type_by_id(names->btf, (uint32_t)id);
	members = type ? btf_enum(type) : NULL;
	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(names->btf, members[i].name_off);

		if ((uint32_t)members[i].val == reason && strstr(name, "DROP_REASON_"))
			return strncmp(name, REASON_PREFIX, strlen(REASON_PREFIX))
				       ? name
				       : name + strlen(REASON_PREFIX);
	}
	return NULL;
}

/* The last function that begins before the address. Nothing is kept of the file, which has a
 * hundred thousand lines: few places drop packets. The functions of BPF programs, which drop none
 * themselves, are its last ones, and to read n of them takes the kernel n^2 steps. */
static void find_function(struct kernel_function *function)
{
	char line[256], name[FUNCTION_NAME_SIZE - 20], best_name[FUNCTION_NAME_SIZE - 20] = "";
	uint64_t address, best = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	while (file && fgets(line, sizeof(line), file) && !strstr(line, "\t[bpf]")) {
		if (sscanf(line, "%" SCNx64 " %*1[tTwW] %75s", &address, name) != 2 ||
		    address >= function->address || address <= best)
			continue;
		best = address;
		memcpy(best_name, name, sizeof(best_name));
	}
	if (file)
		fclose(file);
	*function->name = '\0';
	if (best)
		snprintf(function->name, sizeof(function->name), "%s+0x%" PRIx64, best_name,
			 function->address - best);
	cni_printable(function->name, "");
}

const char *kernel_function(struct kernel_names *names, uint64_t address)
{
	struct kernel_function *added;

	for (size_t i = 0; i < names->function_count; i++)
		if (names->functions[i].address == address)
			return names->functions[i].name;
	added = names->function_count < MOST_FUNCTIONS
			? ARRAY_ADD(names->functions, names->function_count)
			: NULL;
	if (!added)
		return "";
	added->address = address;
	find_function(added);
	return added->name;
}
