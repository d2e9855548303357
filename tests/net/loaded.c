/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loaded.c - lends programs and maps that are in the kernel already to a test, because the verifier
 * takes longer than most tests do. A test that gets them begins as on a host whose containers are
 * all gone.
 */
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "pinned.h"

#include "abi.h"
#include "tests/loaded.skel.h"
#include "trace_event.h"

#define MAX_MAPS 64
#define EMPTYING "empty_arrays"
#define META_COPY "meta_copy" /* as it was when the programs were loaded */

const char tool_usage[] =
	"loaded keep PINS DIRECTORY           pins programs and maps also in DIRECTORY\n"
	"loaded lend DIRECTORY PINS [CGROUP]  empties these maps, and pins all in PINS, for the\n"
	"                                     caller's network namespace; with CGROUP, also the\n"
	"                                     links that hold the programs at its sockets\n";

static int get(const char *directory, const char *name)
{
	char path[PIN_SIZE];

	return bpf_obj_get(pin_of(path, directory, name));
}

/* A map, or a program of type tc: not what the programs at sockets have pinned */
static bool is_kept(int fd)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	char target[64] = "", link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, target, sizeof(target) - 1) < 0)
		die(link);
	if (strstr(target, "bpf-map"))
		return true;
	return strstr(target, "bpf-prog") && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
	       info.type == BPF_PROG_TYPE_SCHED_CLS;
}

/* Pins each object of a directory also in another one. */
static void pin_all_in(const char *other, const char *directory)
{
	DIR *entries = opendir(directory);
	struct dirent *entry;

	if (!entries)
		die(directory);
	while ((entry = readdir(entries))) {
		int fd = entry->d_name[0] == '.' ? -1 : get(directory, entry->d_name);

		if (fd >= 0 && is_kept(fd) && strcmp(entry->d_name, META_COPY) != 0)
			pin_in(fd, other, entry->d_name);
		close(fd);
	}
	closedir(entries);
}

static void meta_read(int map, struct meta *meta)
{
	uint32_t only = 0;

	if (map < 0 || bpf_map_lookup_elem(map, &only, meta))
		die("meta");
}

static void meta_write(int map, const struct meta *meta)
{
	uint32_t only = 0;

	if (map < 0 || bpf_map_update_elem(map, &only, meta, BPF_ANY))
		die("meta");
}

/* The program that empties the arrays */
static void pin_emptying(const char *pins, const char *directory)
{
	struct loaded_bpf *skeleton = loaded_bpf__open();
	struct bpf_map *map;

	if (!skeleton)
		die("the program");
	bpf_object__for_each_map(
		map, skeleton->obj) if (bpf_map__reuse_fd(map, get(pins, bpf_map__name(map))))
		die(bpf_map__name(map));
	if (loaded_bpf__load(skeleton))
		die("the program");
	pin_in(bpf_program__fd(skeleton->progs.empty_arrays), directory, EMPTYING);
}

/* Their links belong to the cgroup of the test that is over. Without cgroup2 there are none. */
static void keep_socket_programs(const char *pins, const char *directory)
{
	for (const struct socket_hook *hook = socket_hooks; hook->name; hook++) {
		int link = hook->ours ? get(pins, hook->name) : -1, program;
		struct bpf_link_info info = {0};
		uint32_t size = sizeof(info);

		if (link < 0)
			continue;
		if (bpf_obj_get_info_by_fd(link, &info, &size))
			die(hook->name);
		program = bpf_prog_get_fd_by_id(info.prog_id);
		if (program < 0)
			die(hook->name);
		pin_in(program, directory, hook->name);
	}
}

static void lend_socket_programs(const char *directory, const char *pins, const char *cgroup)
{
	int root = open_cgroup(cgroup), link;

	for (const struct socket_hook *hook = socket_hooks; hook->name; hook++) {
		int program = hook->ours ? get(directory, hook->name) : -1;

		if (program < 0)
			continue;
		link = bpf_link_create(program, root, hook->hook, NULL);
		if (link < 0)
			die(hook->name);
		pin_in(link, pins, hook->name);
	}
}

static int keep(char **operands)
{
	const char *pins = operands[0], *directory = operands[1];
	int copy = bpf_map_create(BPF_MAP_TYPE_ARRAY, META_COPY, sizeof(uint32_t),
				  sizeof(struct meta), 1, NULL);
	struct meta meta;

	meta_read(get(pins, "meta"), &meta);
	meta_write(copy, &meta);
	if (mkdir(directory, 0700))
		die(directory);
	pin_in(copy, directory, META_COPY);
	pin_all_in(directory, pins);
	pin_emptying(pins, directory);
	keep_socket_programs(pins, directory);
	return 0;
}

/* The next key is asked for before this one is deleted: behind a key that is gone the kernel begins
 * with the first bucket again. */
static void empty_hash(int map, const struct bpf_map_info *info)
{
	char *keys = calloc(2, info->key_size), *key = keys, *next = keys + info->key_size;
	bool more;

	if (!keys)
		die(info->name);
	for (more = !bpf_map_get_next_key(map, NULL, key); more;) {
		char *done = key;

		more = !bpf_map_get_next_key(map, key, next);
		if (bpf_map_delete_elem(map, key))
			die(info->name);
		key = next;
		next = done;
	}
	if (errno != ENOENT)
		die(info->name);
	free(keys);
}

/* Not pinned: the programs' memos of flows */
static void empty_mapped(int map, const struct bpf_map_info *info)
{
	size_t size = (size_t)info->max_entries * info->value_size;
	void *values = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	if (values == MAP_FAILED)
		die(info->name);
	memset(values, 0, size);
	munmap(values, size);
}

static void empty_counters(int map, const struct bpf_map_info *info)
{
	char *zeros = calloc((size_t)libbpf_num_possible_cpus(), (info->value_size + 7) / 8 * 8);

	for (uint32_t i = 0; i < info->max_entries; i++)
		if (!zeros || bpf_map_update_elem(map, &i, zeros, BPF_ANY))
			die(info->name);
	free(zeros);
}

static void end_trace(int map)
{
	const struct trace_settings settings = {.version = TRACE_VERSION};
	uint32_t only = 0;

	if (bpf_map_update_elem(map, &only, &settings, BPF_ANY))
		die(TRACE_SETTINGS);
}

static _Noreturn void die_unknown(const char *map)
{
	fprintf(stderr, "loaded: loaded.bpf.c does not know the array %s\n", map);
	exit(EXIT_USAGE);
}

struct map_ids {
	uint32_t ids[MAX_MAPS];
	uint32_t count;
};

static void map_ids_of(int program, struct map_ids *maps)
{
	struct bpf_prog_info info = {.nr_map_ids = MAX_MAPS, .map_ids = (uintptr_t)maps->ids};
	uint32_t size = sizeof(info);

	if (program < 0 || bpf_obj_get_info_by_fd(program, &info, &size) ||
	    info.nr_map_ids > MAX_MAPS)
		die("a program");
	maps->count = info.nr_map_ids;
}

static bool has_id(const struct map_ids *maps, uint32_t id)
{
	for (uint32_t i = 0; i < maps->count; i++)
		if (maps->ids[i] == id)
			return true;
	return false;
}

/* All but the arrays that the program has emptied, and meta */
static void empty(int map, const struct map_ids *emptied)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(map, &info, &size))
		die("a map");
	if (has_id(emptied, info.id) || strcmp(info.name, "meta") == 0)
		return;
	if (strcmp(info.name, TRACE_SETTINGS) == 0)
		end_trace(map);
	else if (strstr(info.name, "data") || info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY ||
		 info.type == BPF_MAP_TYPE_SK_STORAGE)
		return; /* what the loader sets, and what has ended with its sockets */
	else if (info.map_flags & BPF_F_MMAPABLE)
		empty_mapped(map, &info);
	else if (info.type == BPF_MAP_TYPE_PERCPU_ARRAY)
		empty_counters(map, &info);
	else if (info.type != BPF_MAP_TYPE_ARRAY)
		empty_hash(map, &info);
	else
		die_unknown(info.name);
}

static void empty_maps(const char *directory)
{
	int emptying = get(directory, EMPTYING);
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct map_ids emptied, all;

	if (bpf_prog_test_run_opts(emptying, &options))
		die(EMPTYING);
	map_ids_of(emptying, &emptied);
	map_ids_of(get(directory, "from_uplink"), &all);
	for (uint32_t i = 0; i < all.count; i++) {
		int map = bpf_map_get_fd_by_id(all.ids[i]);

		if (map < 0)
			die("a map");
		empty(map, &emptied);
		close(map);
	}
}

/* As loaded by the caller's host, which has given nothing to a container yet */
static void meta_renew(const char *directory)
{
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof(__u64);
	struct meta meta;

	meta_read(get(directory, META_COPY), &meta);
	if (getsockopt(any, SOL_SOCKET, SO_NETNS_COOKIE, &meta.netns_cookie, &size))
		die("SO_NETNS_COOKIE");
	if (getrandom(&meta.port_seed, sizeof(meta.port_seed), 0) < 0)
		die("getrandom");
	meta.generation = meta.next_slot = meta.offload_dropped = meta.owner_gone = 0;
	meta_write(get(directory, "meta"), &meta);
}

static int lend(char **operands)
{
	const char *directory = operands[0], *pins = operands[1], *cgroup = operands[2];

	empty_maps(directory);
	meta_renew(directory);
	if (mkdir(pins, 0700) && errno != EEXIST)
		die(pins);
	pin_all_in(pins, directory);
	if (cgroup)
		lend_socket_programs(directory, pins, cgroup);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_command commands[] = {
		{"keep", 2, 2, keep},
		{"lend", 2, 3, lend},
		{NULL},
	};

	libbpf_set_print(NULL);
	return run_command(argc - 1, argv + 1, commands);
}
