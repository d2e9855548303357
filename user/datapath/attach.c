/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - our programs at the interfaces of the host. */
#include "datapath/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "datapath/clsact.h"
#include "datapath/lock.h"
#include "datapath/maps.h"
#include "datapath/refusal.h"
#include "datapath/tcx.h"
#include "net/qdisc.h"

enum mechanism {
	MECHANISM_TCX,
	MECHANISM_CLSACT,
};

/* PROGRAM_COUNT: none at this hook. */
static const enum program_number programs_of_role[][HOOK_COUNT] = {
	[ROLE_UPLINK] = {PROGRAM_FROM_UPLINK, PROGRAM_TO_UPLINK},
	[ROLE_BRIDGE] = {PROGRAM_FROM_BRIDGE, PROGRAM_TO_CONTAINER},
	[ROLE_PORT] = {PROGRAM_FROM_CONTAINER, PROGRAM_COUNT},
	[ROLE_ROUTED] = {PROGRAM_FROM_CONTAINER, PROGRAM_TO_CONTAINER},
};

static const enum hook hook_of_program[PROGRAM_COUNT] = {
	[PROGRAM_FROM_UPLINK] = HOOK_INGRESS,    [PROGRAM_TO_UPLINK] = HOOK_EGRESS,
	[PROGRAM_FROM_BRIDGE] = HOOK_INGRESS,    [PROGRAM_TO_CONTAINER] = HOOK_EGRESS,
	[PROGRAM_FROM_CONTAINER] = HOOK_INGRESS,
};

static const char *const hook_names[HOOK_COUNT] = {
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

/* One program of ours at a hook. */
struct copy {
	enum mechanism mechanism;
	enum program_number program;
	uint32_t id;
};

struct copies {
	struct copy list[TCX_PROGRAMS + 1];
	size_t count;
	size_t foreign_tcx; /* programs of others at the TCX hook */
};

static bool role_is_known(enum interface_role role)
{
	return role >= ROLE_UPLINK && role <= ROLE_ROUTED;
}

/* Programs are told by name: a second set may have been loaded by who did not see the
 * first. In the common case, one of ours at TCX, this is two system calls. */
static void find_copies(uint32_t ifindex, enum hook hook, struct copies *copies)
{
	uint32_t ids[TCX_PROGRAMS], filter;
	size_t count;

	copies->count = copies->foreign_tcx = 0;
	if (tcx_list(ifindex, hook, ids, &count))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		enum program_number program = program_by_id(ids[i]);

		if (program == PROGRAM_COUNT)
			copies->foreign_tcx++;
		else
			copies->list[copies->count++] =
				(struct copy){MECHANISM_TCX, program, ids[i]};
	}
	filter = clsact_find(ifindex, hook);
	if (filter) {
		enum program_number program = program_by_id(filter);

		/* An `ingress` qdisc answers for egress with what is at ingress. */
		if (program != PROGRAM_COUNT && hook_of_program[program] == hook)
			copies->list[copies->count++] =
				(struct copy){MECHANISM_CLSACT, program, filter};
	}
}

static int replace_copy(uint32_t ifindex, enum hook hook, const struct copy *copy, int program_fd)
{
	cleanup_close int old = -1;

	if (copy->mechanism == MECHANISM_CLSACT)
		return clsact_attach(ifindex, hook, program_fd, true);
	old = bpf_prog_get_fd_by_id(copy->id);
	if (old < 0)
		return -1;
	return tcx_attach(ifindex, hook, program_fd, old);
}

static void remove_copy(uint32_t ifindex, enum hook hook, const struct copy *copy)
{
	cleanup_close int fd = -1;

	if (copy->mechanism == MECHANISM_CLSACT) {
		clsact_detach(ifindex, hook);
		return;
	}
	fd = bpf_prog_get_fd_by_id(copy->id);
	if (fd >= 0)
		tcx_detach(ifindex, hook, fd);
}

/* The pinned program if it is among them, else the first, is the one to keep. */
static size_t choose_copy(const struct copies *copies, uint32_t id)
{
	for (size_t i = 0; i < copies->count; i++)
		if (copies->list[i].id == id)
			return i;
	return 0;
}

static int make_copies_one(uint32_t ifindex, enum hook hook, int program_fd, uint32_t id,
			   struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);
	struct copies copies;
	size_t kept;

	if (lock < 0)
		return -1;
	find_copies(ifindex, hook, &copies);
	kept = choose_copy(&copies, id);
	for (size_t i = 0; i < copies.count; i++)
		if (i != kept)
			remove_copy(ifindex, hook, &copies.list[i]);
	if (copies.count && copies.list[kept].id != id &&
	    replace_copy(ifindex, hook, &copies.list[kept], program_fd) && errno != ENODEV)
		return refusal_set(err, errno,
				   "cannot replace an older program at %s of interface"
				   " number %u",
				   hook_names[hook], ifindex);
	return 0;
}

static int refuse_ingress_qdisc(const struct attach_target *target, struct cni_error *err)
{
	return cni_error_set(
		err, CNI_ERROR_KERNEL_REFUSED,
		"interface %s has an `ingress` qdisc (the bandwidth plugin makes one),"
		" beside which clsact cannot be, and it needs a program at egress too;"
		" TCX (Linux 6.6, \"attach\": \"auto\" or \"tcx\") works beside it, or use"
		" the bridge plugin, whose ports need none at egress",
		target->name);
}

static bool needs_egress(enum interface_role role)
{
	return programs_of_role[role][HOOK_EGRESS] != PROGRAM_COUNT;
}

/* A qdisc that takes filters at the hooks of the role. */
static int prepare_clsact(struct nl_sock *socket, const struct attach_target *target,
			  struct attach_undo *undo, struct cni_error *err)
{
	if (!clsact_create(target->ifindex)) {
		undo->qdisc = true;
		return 0;
	}
	if (errno != EEXIST)
		return refusal_set(err, errno, "cannot add a clsact qdisc to interface %s",
				   target->name);
	if (qdisc_at_ingress(socket, target->ifindex) == INGRESS_QDISC_INGRESS &&
	    needs_egress(target->role))
		return refuse_ingress_qdisc(target, err);
	return 0;
}

static bool wants_tcx(struct nl_sock *socket, const struct attach_target *target,
		      const struct copies *copies)
{
	if (target->mode != ATTACH_AUTO)
		return target->mode == ATTACH_TCX;
	if (!tcx_is_supported(target->ifindex))
		return false;
	if (target->way != ATTACH_WAY_CLSACT || copies->foreign_tcx)
		return true;
	return qdisc_at_ingress(socket, target->ifindex) == INGRESS_QDISC_INGRESS;
}

static int attach_by_tcx(const struct attach_target *target, enum hook hook, int program_fd,
			 struct attach_undo *undo, struct cni_error *err)
{
	if (!tcx_attach(target->ifindex, hook, program_fd, -1)) {
		undo->tcx[hook] = true;
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	if (errno == EINVAL && target->mode == ATTACH_TCX && !tcx_is_supported(target->ifindex))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "\"attach\": \"tcx\" needs Linux 6.6 or newer; use \"auto\"");
	return refusal_set(err, errno, "cannot attach %s by TCX to %s of interface %s",
			   program_name(programs_of_role[target->role][hook]), hook_names[hook],
			   target->name);
}

static int attach_by_clsact(struct nl_sock *socket, const struct attach_target *target,
			    enum hook hook, int program_fd, struct attach_undo *undo,
			    struct cni_error *err)
{
	if (prepare_clsact(socket, target, undo, err))
		return -1;
	if (!clsact_attach(target->ifindex, hook, program_fd, false)) {
		undo->filter[hook] = true;
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	return refusal_set(err, errno, "cannot attach %s as a filter to %s of interface %s",
			   program_name(programs_of_role[target->role][hook]), hook_names[hook],
			   target->name);
}

/* Where it was attached by somebody else meanwhile, the next look finds out. */
static int attach_first(struct nl_sock *socket, const struct attach_target *target, enum hook hook,
			int program_fd, const struct copies *copies, struct attach_undo *undo,
			struct cni_error *err)
{
	if (wants_tcx(socket, target, copies))
		return attach_by_tcx(target, hook, program_fd, undo, err);
	return attach_by_clsact(socket, target, hook, program_fd, undo, err);
}

static int attach_hook(const struct datapath *datapath, struct nl_sock *socket,
		       const struct attach_target *target, enum hook hook, struct attach_undo *undo,
		       struct cni_error *err)
{
	enum program_number program = programs_of_role[target->role][hook];
	int fd = datapath->objects.programs[program];
	uint32_t id = datapath->objects.program_ids[program];
	struct copies copies;

	/* Each round settles something; a third would mean that somebody works against us. */
	for (int round = 0; round < 3; round++) {
		find_copies(target->ifindex, hook, &copies);
		if (copies.count == 1 && copies.list[0].id == id)
			return 0;
		if (!copies.count) {
			if (attach_first(socket, target, hook, fd, &copies, undo, err))
				return -1;
		} else if (make_copies_one(target->ifindex, hook, fd, id, err)) {
			return -1;
		}
	}
	find_copies(target->ifindex, hook, &copies);
	if (copies.count == 1 && copies.list[0].id == id)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%s is not at %s of interface %s after it was attached; something else"
			     " removes it",
			     program_name(program), hook_names[hook], target->name);
}

int attach_interface(const struct datapath *datapath, struct nl_sock *socket,
		     const struct attach_target *target, struct attach_undo *undo,
		     struct cni_error *err)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (programs_of_role[target->role][hook] != PROGRAM_COUNT &&
		    attach_hook(datapath, socket, target, (enum hook)hook, undo, err))
			return -1;
	return 0;
}

void attach_take_back(const struct datapath *datapath, const struct attach_target *target,
		      const struct attach_undo *undo)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = programs_of_role[target->role][hook];

		if (undo->tcx[hook])
			tcx_detach(target->ifindex, (enum hook)hook,
				   datapath->objects.programs[program]);
		if (undo->filter[hook])
			clsact_detach(target->ifindex, (enum hook)hook);
	}
	if (undo->qdisc)
		clsact_destroy(target->ifindex);
}

static bool hook_is_settled(uint32_t ifindex, enum hook hook, uint32_t id)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	if (tcx_list(ifindex, hook, ids, &count))
		count = 0;
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return clsact_find(ifindex, hook) == id;
}

bool attach_is_settled(const struct datapath *datapath, uint32_t ifindex, enum interface_role role)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = programs_of_role[role][hook];

		if (program != PROGRAM_COUNT &&
		    !hook_is_settled(ifindex, (enum hook)hook,
				     datapath->objects.program_ids[program]))
			return false;
	}
	return true;
}

/* An older program does as well as long as it uses the very maps that are pinned. */
static bool uses_pinned_maps(const struct datapath *datapath, uint32_t id)
{
	cleanup_close int program = bpf_prog_get_fd_by_id(id);
	struct objects used;
	bool same = program >= 0;

	objects_clear(&used);
	if (same)
		objects_open_maps_of(program, used.maps);
	for (int map = 0; same && map < MAP_COUNT; map++)
		same = map_id_of(used.maps[map]) == map_id_of(datapath->objects.maps[map]);
	objects_close(&used);
	return same;
}

static bool verify_hook(const struct datapath *datapath, uint32_t ifindex, enum interface_role role,
			enum hook hook, char *missing, size_t size)
{
	enum program_number program = programs_of_role[role][hook];
	struct copies copies;

	find_copies(ifindex, hook, &copies);
	for (size_t i = 0; i < copies.count; i++) {
		if (copies.list[i].program != program)
			continue;
		if (copies.list[i].id == datapath->objects.program_ids[program] ||
		    uses_pinned_maps(datapath, copies.list[i].id))
			return true;
		snprintf(missing, size, "%s at %s uses other maps than those in %s",
			 program_name(program), hook_names[hook], datapath->directory);
		return false;
	}
	snprintf(missing, size, "%s is not attached at %s", program_name(program),
		 hook_names[hook]);
	return false;
}

bool attach_verify(const struct datapath *datapath, uint32_t ifindex, enum interface_role role,
		   char *missing, size_t size)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (programs_of_role[role][hook] != PROGRAM_COUNT &&
		    !verify_hook(datapath, ifindex, role, (enum hook)hook, missing, size))
			return false;
	return true;
}

bool attach_is_container_veth(uint32_t ifindex)
{
	struct copies copies;

	find_copies(ifindex, HOOK_INGRESS, &copies);
	for (size_t i = 0; i < copies.count; i++)
		if (copies.list[i].program == PROGRAM_FROM_CONTAINER)
			return true;
	return false;
}

static bool serves_host(const int maps[MAP_COUNT], uint64_t netns_cookie)
{
	struct meta_head head;

	for (int map = 0; map < MAP_COUNT; map++)
		if (maps[map] < 0)
			return false;
	return !meta_head_read(maps[MAP_META], &head) && head.layout == LAYOUT &&
	       head.netns_cookie == netns_cookie;
}

bool attach_maps_of_program(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct objects used;
	bool ours;

	objects_clear(&used);
	ours = !objects_open_maps_of(program_fd, used.maps) && serves_host(used.maps, netns_cookie);
	if (ours) {
		memcpy(maps, used.maps, sizeof(used.maps));
		objects_clear(&used);
	}
	objects_close(&used);
	return ours;
}

bool attach_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct copies copies;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		find_copies(ifindex, (enum hook)hook, &copies);
		for (size_t i = 0; i < copies.count; i++) {
			cleanup_close int program = bpf_prog_get_fd_by_id(copies.list[i].id);

			if (program >= 0 && attach_maps_of_program(program, netns_cookie, maps))
				return true;
		}
	}
	return false;
}

static bool refresh_interface(const void *key, const void *value, void *context)
{
	const struct datapath *datapath = context;
	const struct interface *interface = value;
	uint32_t ifindex = *(const uint32_t *)key;
	struct copies copies;

	for (int hook = 0; role_is_known(interface->role) && hook < HOOK_COUNT; hook++) {
		enum program_number program = programs_of_role[interface->role][hook];

		if (program == PROGRAM_COUNT)
			continue;
		find_copies(ifindex, (enum hook)hook, &copies);
		for (size_t i = 0; i < copies.count; i++)
			if (copies.list[i].id != datapath->objects.program_ids[program])
				replace_copy(ifindex, (enum hook)hook, &copies.list[i],
					     datapath->objects.programs[program]);
	}
	return true;
}

void attach_refresh(const struct datapath *datapath)
{
	maps_walk(datapath->objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		  sizeof(struct interface), refresh_interface, (void *)datapath);
}
