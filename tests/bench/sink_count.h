/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sink_count.h - finds a sink by its name, and reads its counter. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <stdio.h>

#define SINKS "/sys/fs/bpf/sinks"
#define SINK_CPUS 1024

static inline void sink_path(char *path, size_t size, const char *name, const char *map)
{
	snprintf(path, size, SINKS "/%s_%s", name, map);
}

static inline int sink_open(const char *name, const char *map)
{
	char path[128];
	int fd;

	sink_path(path, sizeof(path), name, map);
	fd = bpf_obj_get(path);
	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

static inline unsigned long long sink_count(int arrived)
{
	unsigned long long per_cpu[SINK_CPUS] = {0}, sum = 0;
	int cpus = libbpf_num_possible_cpus();
	unsigned int zero = 0;

	if (cpus > SINK_CPUS || bpf_map_lookup_elem(arrived, &zero, per_cpu))
		err(2, "reading a sink's counter");
	for (int i = 0; i < cpus; i++)
		sum += per_cpu[i];
	return sum;
}
