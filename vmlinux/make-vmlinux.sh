#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make-vmlinux.sh - writes vmlinux.h: only the kernel types that bpf/ uses, out
# of the BTF of the running kernel. Run it when bpf/ needs another type: add
# its name below. All of them are UAPI types, the same on every architecture
# and in every kernel since 5.15 but for new members at the end of enums.
set -eu

types='
__u8 __u16 __u32 __u64 __s8 __s16 __s32 __s64 __be16 __be32 __be64 __sum16 __wsum
u8 u16 u32 u64 bool
bpf_map_type bpf_spin_lock bpf_sock bpf_sock_addr bpf_sock_tuple bpf_fib_lookup bpf_redir_neigh __sk_buff
ethhdr in_addr iphdr in6_addr ipv6hdr ipv6_opt_hdr tcphdr udphdr
'
# An enum without a name is found by one of its members.
members='BPF_ANY BPF_F_NO_PREALLOC BPF_F_RECOMPUTE_CSUM BPF_F_PSEUDO_HDR BPF_F_CURRENT_NETNS
BPF_FIB_LOOKUP_DIRECT BPF_FIB_LKUP_RET_SUCCESS BPF_TCP_ESTABLISHED BPF_SK_STORAGE_GET_F_CREATE true'

btf=${1:-/sys/kernel/btf/vmlinux}
out=$(dirname "$0")/vmlinux.h
{
	cat <<'HEAD'
/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/* vmlinux.h - the kernel types that bpf/ uses, made by make-vmlinux.sh. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__
HEAD
	bpftool btf dump file "$btf" format c | awk -v types="$types" -v members="$members" '
	BEGIN {
		n = split(types, t); for (i = 1; i <= n; i++) wanted[t[i]] = 1
		n = split(members, m)
	}
	function flush_block(    keep, i, line) {
		keep = (name in wanted)
		if (name == "" && block ~ /^enum \{/)
			for (i = 1; i <= n; i++)
				if (block ~ ("[ \t]" m[i] "[ ,]")) keep = 1
		if (keep) print "\n" substr(block, 1, length(block) - 1)
		block = ""; open = 0
	}
	!open && /^typedef [^{]*;$/ {
		name = $NF; sub(/;$/, "", name)
		if (name in wanted) print "\n" $0
		next
	}
	!open && /^(struct|union|enum)( [A-Za-z_0-9]+)? \{$/ {
		name = ($2 == "{") ? "" : $2
		open = 1; block = $0 "\n"; next
	}
	open { block = block $0 "\n"; if ($0 ~ /^}.*;$/) flush_block() }'
	printf '\n#endif\n'
} >"$out.new"
mv "$out.new" "$out"
