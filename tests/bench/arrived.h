/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arrived.h - for BPF programs: how many packets a sink has got, by CPU. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrived SEC(".maps");
