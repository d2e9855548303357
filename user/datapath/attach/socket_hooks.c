/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_hooks.c - our programs at the sockets of the host's processes. */
#include "datapath/attach/socket_hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/load/loader.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/load/bpf_error.h"
#include "lib/error.h"

/* What the kernel allows at one hook of one cgroup (BPF_CGROUP_MAX_PROGS). */
#define PROGRAMS_PER_HOOK 64
#define LINK_PATH_SIZE (PIN_DIRECTORY_SIZE + 32)

static void link_path(const struct datapath *datapath, enum socket_program program,
		      char path[LINK_PATH_SIZE])
{
	snprintf(path, LINK_PATH_SIZE, "%s/%s", datapath->directory, socket_program_name(program));
}

/* A link stays after its cgroup is removed or it is detached, but then names no cgroup. */
static bool read_link(int fd, struct bpf_link_info *info)
{
	uint32_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return !bpf_obj_get_info_by_fd(fd, info, &size) && info->type == BPF_LINK_TYPE_CGROUP &&
	       info->cgroup.cgroup_id;
}

/* Its pinned link, or -1. */
static int open_link(const struct datapath *datapath, enum socket_program program,
		     struct bpf_link_info *info)
{
	char path[LINK_PATH_SIZE];
	int fd;

	link_path(datapath, program, path);
	fd = bpf_obj_get(path);
	if (fd < 0 || read_link(fd, info))
		return fd;
	close(fd);
	return -1;
}

static bool is_attached(const struct datapath *datapath, enum socket_program program)
{
	struct bpf_link_info info;
	cleanup_close int fd = open_link(datapath, program, &info);

	return fd >= 0;
}

static bool are_attached(const struct datapath *datapath, enum socket_purpose purpose)
{
	for_each_socket_program (program, purpose)
		if (!is_attached(datapath, program))
			return false;
	return true;
}

static int refuse_attach(enum socket_program program, const char *path, struct cni_error *err)
{
	const char *name = socket_program_name(program);

	switch (errno) {
	case E2BIG:
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the hook %s of cgroup %s has all the %d programs that it can"
				     " have; `bpftool cgroup show %s` lists them",
				     name, path, PROGRAMS_PER_HOOK, path);
	case EPERM:
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the hook %s of cgroup %s is taken by a program that allows no"
				     " other; `bpftool cgroup show %s` lists it",
				     name, path, path);
	default:
		return bpf_error_set(err, errno, "cannot attach %s to cgroup %s", name, path);
	}
}

static int attach_one(const struct datapath *datapath, enum socket_program program, int fd,
		      const struct cgroup_root *root, struct cni_error *err)
{
	cleanup_close int link = bpf_link_create(fd, root->fd, socket_program_hook(program), NULL);
	char path[LINK_PATH_SIZE];

	if (link < 0)
		return refuse_attach(program, root->path, err);
	link_path(datapath, program, path);
	/* What is pinned there is no attached link. */
	unlink(path);
	return bpf_obj_pin(link, path) ? bpf_error_set(err, errno, "cannot pin %s", path) : 0;
}

/* A run that is killed on the way leaves the first ones, which do no harm without the others. */
static int attach_locked(const struct datapath *datapath, enum socket_purpose purpose,
			 const struct cgroup_root *root, struct cni_error *err)
{
	int fds[SOCKET_PROGRAM_COUNT];
	char path[LINK_PATH_SIZE];
	uint32_t attached = 0;
	int result = 0;

	/* Another process may have had the lock for the same. */
	if (are_attached(datapath, purpose))
		return 0;
	if (loader_load_socket_programs(&datapath->objects, purpose, fds, err))
		return -1;
	for_each_socket_program (program, purpose) {
		if (result || is_attached(datapath, program))
			continue;
		result = attach_one(datapath, program, fds[program], root, err);
		attached |= (result ? 0 : 1U) << program;
	}
	for_each_socket_program (program, purpose) {
		link_path(datapath, program, path);
		if (result && attached & 1U << program)
			unlink(path);
	}
	socket_programs_close(fds);
	return result;
}

/* Every ADD asks this, so of those that were listed with the pins only the ones are looked at that
 * are attached last. They all lose their cgroup together; that another one was detached is found by
 * CHECK, STATUS and `repair`. */
static bool seem_attached(const struct datapath *datapath, enum socket_purpose purpose)
{
	for_each_socket_program (program, purpose)
		if (!(datapath->links & 1U << program) ||
		    (program >= SOCKET_CONNECT4 && !is_attached(datapath, program)))
			return false;
	return true;
}

static int attach_missing(struct datapath *datapath, enum socket_purpose purpose,
			  struct cni_error *err)
{
	cleanup_lock int lock = -1;
	struct cgroup_root root;
	int result;

	if (cgroup_root_open(&root, err))
		return -1;
	lock = lock_take_claims(err);
	result = lock < 0 ? -1 : attach_locked(datapath, purpose, &root, err);
	close(root.fd);
	if (!result && !root.is_whole)
		warning("%s is only a part of the host's cgroups: the programs at sockets do not "
			"see processes outside of it",
			root.path);
	return result;
}

int socket_hooks_attach(struct datapath *datapath, enum socket_purpose purpose,
			struct cni_error *err)
{
	return seem_attached(datapath, purpose) ? 0 : attach_missing(datapath, purpose, err);
}

int socket_hooks_probe(const struct datapath *datapath, enum socket_purpose purpose,
		       struct cni_error *err)
{
	struct cgroup_root root;
	int result = 0;

	if (cgroup_root_open(&root, err))
		return -1;
	for_each_socket_program (program, purpose) {
		uint32_t flags = 0, count = 0;

		if (result || is_attached(datapath, program))
			continue;
		if (!bpf_prog_query(root.fd, socket_program_hook(program), 0, &flags, NULL, &count))
			errno = count >= PROGRAMS_PER_HOOK              ? E2BIG
				: count && !(flags & BPF_F_ALLOW_MULTI) ? EPERM
									: 0;
		if (errno)
			result = refuse_attach(program, root.path, err);
	}
	close(root.fd);
	return result;
}

int socket_hooks_verify(const struct datapath *datapath, enum socket_purpose purpose,
			struct cni_error *err)
{
	const char *meaning =
		purpose == SOCKETS_REACH_PORTS
			? "processes of the host reach mapped ports on a slower way, by lo; the"
			  " next ADD, or `bpf-portmap repair`, attaches it"
			: "processes of the host can bind to reserved ports; the next ADD with"
			  " \"reserveHostPorts\", or `bpf-portmap repair`, attaches it";

	for_each_socket_program (program, purpose) {
		struct bpf_link_info info;
		cleanup_close int fd = open_link(datapath, program, &info);

		if (fd < 0)
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "%s is not attached to the root of cgroup2: %s",
					     socket_program_name(program), meaning);
		if (!program_uses_maps(info.prog_id, &datapath->objects))
			return cni_error_set(
				err, CNI_ERROR_KERNEL_REFUSED,
				"%s at the root of cgroup2 uses other maps than those in %s",
				socket_program_name(program), datapath->directory);
	}
	return 0;
}

bool socket_hooks_are_used(const struct datapath *datapath, enum socket_purpose purpose)
{
	char path[LINK_PATH_SIZE];

	for_each_socket_program (program, purpose) {
		link_path(datapath, program, path);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

/* Whether one was attached, or a mapped port needs it: the pins of the links may be lost with all
 * others. */
static bool are_wanted(const struct datapath *datapath, enum socket_purpose purpose)
{
	cleanup_walk struct map_walk walk = {.objects = &datapath->objects, .map = MAP_PORTMAPS};
	bool wanted = socket_hooks_are_used(datapath, purpose);

	while (!wanted && map_next(&walk, NULL)) {
		const struct portmap *portmap = walk.value;

		wanted = purpose == SOCKETS_REACH_PORTS ? portmap->localhost
							: portmap->reserved_on_host;
	}
	return wanted;
}

static int repair_purpose(struct datapath *datapath, enum socket_purpose purpose, bool *repaired,
			  struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};
	bool used = socket_hooks_are_used(datapath, purpose);

	*repaired = !attach_missing(datapath, purpose, &why);
	if (*repaired)
		return 0;
	if (used || purpose == SOCKETS_LEAVE_PORTS)
		return cni_error_move(err, &why);
	/* ADD could not attach them either, and warned. */
	warning("processes of this host reach mapped ports on a slower way, by lo: %s",
		cni_error_message(&why));
	return 0;
}

int socket_hooks_repair(struct datapath *datapath, bool dry_run, bool repaired[SOCKET_PURPOSES],
			struct cni_error *err)
{
	for (int purpose = 0; purpose < SOCKET_PURPOSES; purpose++) {
		repaired[purpose] =
			are_wanted(datapath, purpose) && !are_attached(datapath, purpose);
		if (repaired[purpose] && !dry_run &&
		    repair_purpose(datapath, (enum socket_purpose)purpose, &repaired[purpose], err))
			return -1;
	}
	return 0;
}

void socket_hooks_refresh(const struct datapath *datapath)
{
	int fds[SOCKET_PROGRAM_COUNT];
	char path[LINK_PATH_SIZE];

	for (int purpose = 0; purpose < SOCKET_PURPOSES; purpose++) {
		cleanup_error struct cni_error why = {0};

		if (!socket_hooks_are_used(datapath, purpose))
			continue;
		if (loader_load_socket_programs(&datapath->objects, purpose, fds, &why))
			warning("the programs at the host's sockets are not replaced: %s",
				cni_error_message(&why));
		for_each_socket_program (program, purpose) {
			struct bpf_link_info info;
			cleanup_close int link = open_link(datapath, program, &info);
			int fd = fds[program];

			/* Older programs go on where the new ones do not load. */
			if (link < 0 ||
			    (fd < 0 ? program_uses_maps(info.prog_id, &datapath->objects)
				    : !bpf_link_update(link, fd, NULL)))
				continue;
			link_path(datapath, program, path);
			unlink(path);
		}
		socket_programs_close(fds);
	}
}

/* --- the cgroup that all processes of the host are in --------------------------------------- */

#define MOUNTS "/proc/self/mountinfo"
/* The inode number of a cgroup is its id, and the root's is the first (kernfs). */
#define REAL_ROOT 1
#define MOUNT_LINE_SIZE (3 * PATH_MAX)

/* A space is \040 there, and so on. */
static void unescape(char *text)
{
	unsigned int character;
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text, "\\%3o", &character) == 1) {
			*to++ = (char)character;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* The root of a cgroup namespace has all processes, unless process 1 is outside of it: then we are
 * in a container that shares the host's network namespace. */
static bool is_outside_namespace(void)
{
	cleanup_stream FILE *file = fopen("/proc/1/cgroup", "re");
	char line[MOUNT_LINE_SIZE];
	bool outside = false;

	while (file && !outside && fgets(line, sizeof(line), file))
		outside = !strncmp(line, "0::/..", strlen("0::/.."));
	return outside;
}

int cgroup_root_open(struct cgroup_root *root, struct cni_error *err)
{
	char line[MOUNT_LINE_SIZE], tree[PATH_MAX], path[PATH_MAX];
	cleanup_stream FILE *mounts = fopen(MOUNTS, "re");
	struct statfs file_system;
	struct stat status;
	ino_t best = 0;

	*root = (struct cgroup_root){.fd = -1};
	if (!mounts)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read " MOUNTS ": %s",
				     strerror(errno));
	while (best != REAL_ROOT && fgets(line, sizeof(line), mounts)) {
		cleanup_close int fd = -1;

		/* proc_pid_mountinfo(5): ID, parent, device, root, path, options, ..., "-", type */
		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", tree, path) != 2)
			continue;
		unescape(path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Another file system may be mounted over it. Mounts of parts of the tree have a
		 * higher number than the mount of all of it. */
		if (fd < 0 || fstatfs(fd, &file_system) ||
		    file_system.f_type != CGROUP2_SUPER_MAGIC || fstat(fd, &status) ||
		    (best && status.st_ino >= best))
			continue;
		cleanup_close_pointer(&root->fd);
		root->fd = fd;
		fd = -1;
		best = status.st_ino;
		root->is_whole = best == REAL_ROOT || !strncmp(tree, "/..", strlen("/..")) ||
				 (!strcmp(tree, "/") && !is_outside_namespace());
		memcpy(root->path, path, sizeof(root->path));
	}
	if (best)
		return 0;
	return cni_error_set(
		err, CNI_ERROR_KERNEL_REFUSED,
		"no cgroup2 is mounted; `mount -t cgroup2 cgroup2 DIRECTORY` mounts it");
}
