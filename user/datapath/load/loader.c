/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* loader.c - puts our programs into the kernel, which this file has inside. */
#include "datapath/load/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "datapath/load/device_layout.h"
#include "trace_event.h"
#include "bpf/portmap.skel.h"
#include "bpf/socket.skel.h"
#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/table_size.h"

/* libbpf loads a program that was refused once more with the verifier's log and prints
 * that as a warning; its end says why. */
static char log_tail[2048];

static int keep_log_tail(enum libbpf_print_level level, const char *format, va_list arguments)
{
	const size_t room = sizeof(log_tail) - 1;
	size_t length, kept = strlen(log_tail), excess, dropped;
	char *text;

	if (level != LIBBPF_WARN || vasprintf(&text, format, arguments) < 0)
		return 0;
	length = strlen(text);
	excess = kept + length > room ? kept + length - room : 0;
	dropped = excess < kept ? excess : kept;
	memmove(log_tail, log_tail + dropped, kept - dropped);
	/* A text longer than the room, such as the verifier's log, has its beginning cut off. */
	memcpy(log_tail + kept - dropped, text + excess - dropped, length - (excess - dropped) + 1);
	free(text);
	return 0;
}

static void begin_log(void)
{
	log_tail[0] = '\0';
	libbpf_set_print(keep_log_tail);
}

/* The kernel's release and the program first; in the message, for some runtimes show only that. */
static int refuse_load(struct cni_error *err, int errno_value)
{
	struct load_log_reason reason;
	struct utsname system;

	if (uname(&system))
		system.release[0] = '\0';
	load_log_read(log_tail, &reason);
	if (errno_value == ENOMEM)
		cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			      "there is not enough memory for the maps, even with the smallest "
			      "\"flowEntries\": raise the memory limit of the service that runs "
			      "containers (MemoryMax of containerd.service, say)");
	else if (reason.verifier[0])
		cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "Linux %s refuses the program %s: %s",
			      system.release, reason.program, reason.verifier);
	else if (reason.program[0])
		bpf_error_set(err, errno_value, "Linux %s refuses the program %s", system.release,
			      reason.program);
	else
		bpf_error_set(err, errno_value, "Linux %s refuses the programs of bpf-portmap",
			      system.release);
	if (log_tail[0])
		cni_error_set_details(err, "%s", log_tail);
	return -1;
}

/* Those that there are; the others are made. */
static int reuse_maps(struct bpf_object *object, const struct objects *objects)
{
	for (int number = 0; number < MAP_COUNT; number++) {
		struct bpf_map *map =
			bpf_object__find_map_by_name(object, map_name((enum map_number)number));
		int fd = map ? map_fd(objects, (enum map_number)number) : -1;

		if (fd >= 0 ? bpf_map__reuse_fd(map, fd) : map && objects->map_ids[number])
			return -1;
	}
	return 0;
}

int loader_load_over_maps(struct bpf_object *object, const struct objects *objects,
			  struct cni_error *err)
{
	int result, saved;

	begin_log();
	result = reuse_maps(object, objects) || bpf_object__load(object);
	saved = errno;
	libbpf_set_print(NULL);
	return result ? refuse_load(err, saved) : 0;
}

#define MIN_MEMO_SETS 16 /* a CPU; a power of two */
#define MEMOS_A_SET 4

/* Twice as many memos in all as there may be assured connections, in equal parts for each possible
 * CPU: a set that is full makes packets slower, and one CPU may get most of them. */
static int size_memos(struct portmap_bpf *skeleton)
{
	uint32_t assured = skeleton->rodata->assured_places;
	uint32_t cpus, sets = MIN_MEMO_SETS;
	int possible = libbpf_num_possible_cpus();

	if (possible < 0)
		return -1;
	cpus = (uint32_t)possible;
	while ((uint64_t)sets * cpus * MEMOS_A_SET < 2 * (uint64_t)assured)
		sets *= 2;
	skeleton->data->memo_sets_a_cpu = sets;
	return bpf_map__set_max_entries(skeleton->maps.memos, sets * cpus);
}

static int prepare_maps(struct portmap_bpf *skeleton, const struct objects *objects,
			uint32_t assured)
{
	if (table_set_size(skeleton->obj, assured) || reuse_maps(skeleton->obj, objects))
		return -1;
	skeleton->rodata->assured_places = bpf_map__max_entries(skeleton->maps.assured) - 1;
	skeleton->rodata->half_open_places = bpf_map__max_entries(skeleton->maps.half_open) - 1;
	return size_memos(skeleton);
}

static int open_and_load(struct portmap_bpf **skeleton, const struct objects *objects,
			 uint32_t assured, const struct device_layout *layout)
{
	int saved;

	*skeleton = portmap_bpf__open();
	if (!*skeleton)
		return -1;
	(*skeleton)->rodata->device_layout = *layout;
	if (!prepare_maps(*skeleton, objects, assured) && !portmap_bpf__load(*skeleton))
		return 0;
	saved = errno;
	portmap_bpf__destroy(*skeleton);
	*skeleton = NULL;
	errno = saved;
	return -1;
}

/* If the verifier refuses the look at devices it may still accept the rest. */
static int load_for_kernel(struct portmap_bpf **skeleton, const struct objects *objects,
			   uint32_t assured, struct device_layout *layout)
{
	if (!open_and_load(skeleton, objects, assured, layout))
		return 0;
	if (!layout->known || errno == ENOMEM)
		return -1;
	memset(layout, 0, sizeof(*layout));
	log_tail[0] = '\0';
	return open_and_load(skeleton, objects, assured, layout);
}

/* The skeleton closes its own when it goes. */
static int keep_fd(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int loader_keep_program(const struct bpf_program *program, struct cni_error *err)
{
	int fd = keep_fd(bpf_program__fd(program));

	return fd < 0 ? bpf_error_set(err, errno, "cannot keep a program open") : fd;
}

static int keep_objects(const struct portmap_bpf *skeleton, struct objects *objects)
{
	for (int number = 0; number < MAP_COUNT; number++) {
		const char *name = map_name((enum map_number)number);

		objects->maps[number] =
			keep_fd(bpf_object__find_map_fd_by_name(skeleton->obj, name));
		if (objects->maps[number] < 0)
			return -1;
	}
	for (int number = 0; number < PROGRAM_COUNT; number++) {
		const char *name = program_name((enum program_number)number);
		struct bpf_program *program = bpf_object__find_program_by_name(skeleton->obj, name);

		if (!program)
			return -1;
		objects->programs[number] = keep_fd(bpf_program__fd(program));
		objects->program_ids[number] =
			program_id_of((enum program_number)number, objects->programs[number]);
		if (!objects->program_ids[number])
			return -1;
	}
	return 0;
}

static enum conntrack_use conntrack_use(const struct device_layout *layout)
{
	if (layout->tracked)
		return layout->nat_without_hook ? CONNTRACK_ASKED_ALWAYS : CONNTRACK_ASKED;
	return device_layout_has_conntrack() ? CONNTRACK_UNREADABLE : CONNTRACK_ABSENT;
}

int loader_load(struct objects *objects, uint32_t assured, struct loaded_senses *senses,
		struct cni_error *err)
{
	struct portmap_bpf *skeleton = NULL;
	struct device_layout layout;
	struct objects loaded;
	int result;

	begin_log();
	objects_clear(&loaded);
	device_layout_find(&layout);
	if (!assured)
		assured = table_default_size();
	result = load_for_kernel(&skeleton, objects, assured, &layout);
	/* A cgroup's limit may leave less than the machine has. */
	while (result && errno == ENOMEM && assured > MIN_ASSURED) {
		assured /= 2;
		log_tail[0] = '\0';
		result = load_for_kernel(&skeleton, objects, assured, &layout);
	}
	*senses = (struct loaded_senses){layout.known, conntrack_use(&layout)};
	if (!result) {
		result = keep_objects(skeleton, &loaded);
		for (int i = 0; !result && i < PROGRAM_COUNT * MAP_COUNT; i++)
			result = bpf_prog_bind_map(loaded.programs[i / MAP_COUNT],
						   loaded.maps[i % MAP_COUNT], NULL);
		portmap_bpf__destroy(skeleton);
	}
	libbpf_set_print(NULL);
	if (result) {
		int saved = errno;

		objects_close(&loaded);
		return refuse_load(err, saved);
	}
	objects_close(objects);
	*objects = loaded;
	return 0;
}

static struct bpf_program *find_socket_program(const struct socket_bpf *skeleton,
					       enum socket_program program)
{
	return bpf_object__find_program_by_name(skeleton->obj, socket_program_name(program));
}

/* Each purpose's programs are loaded for themselves: what one needs of the kernel the other may do
 * without. */
static int load_sockets(struct socket_bpf *skeleton, const struct objects *objects,
			enum socket_purpose purpose, struct cni_error *err)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, skeleton->obj)
		bpf_program__set_autoload(program, false);
	for_each_socket_program (number, purpose)
		bpf_program__set_autoload(find_socket_program(skeleton, number), true);
	skeleton->rodata->can_give_reason = purpose == SOCKETS_LEAVE_PORTS &&
					    libbpf_probe_bpf_helper(BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
								    BPF_FUNC_set_retval, NULL) == 1;
	return loader_load_over_maps(skeleton->obj, objects, err);
}

int loader_load_socket_programs(const struct objects *objects, enum socket_purpose purpose,
				int fds[SOCKET_PROGRAM_COUNT], struct cni_error *err)
{
	struct socket_bpf *skeleton = or_exit(socket_bpf__open());
	int result = load_sockets(skeleton, objects, purpose, err);

	memset(fds, -1, SOCKET_PROGRAM_COUNT * sizeof(*fds));
	for_each_socket_program (number, purpose) {
		if (result)
			break;
		fds[number] = loader_keep_program(find_socket_program(skeleton, number), err);
		result = fds[number] < 0 ? -1 : 0;
	}
	if (result)
		socket_programs_close(fds);
	socket_bpf__destroy(skeleton);
	return result;
}
