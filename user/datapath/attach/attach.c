/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - our programs at the interfaces of the host. */
#include "datapath/attach/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/attach/clsact.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/bpf_error.h"
#include "datapath/attach/shaper.h"
#include "net/qdisc.h"

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
	hook_find_copies(ifindex, hook, &copies);
	kept = choose_copy(&copies, id);
	for (size_t i = 0; i < copies.count; i++)
		if (i != kept)
			remove_copy(ifindex, hook, &copies.list[i]);
	/* Where either is gone meanwhile, the next look finds out. */
	if (copies.count && copies.list[kept].id != id &&
	    hook_replace_copy(ifindex, hook, &copies.list[kept], program_fd) && errno != ENODEV &&
	    errno != ENOENT)
		return bpf_error_set(err, errno,
				     "cannot replace an older program at %s of interface"
				     " number %u",
				     hook_name(hook), ifindex);
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

static bool is_containers_veth(const struct attach_target *target)
{
	return target->interface.role == ROLE_PORT || target->interface.role == ROLE_ROUTED;
}

static bool needs_egress(const struct interface *interface)
{
	return program_at(interface, HOOK_EGRESS) != PROGRAM_COUNT;
}

/* A qdisc that takes filters at the hooks of the role. *ingress: it is one that takes them at
 * ingress alone. To try to make it costs less than to ask first; but of an interface that is up
 * the kernel takes the queues out of service for it, and waits for RCU (expedited) with RTNL held:
 * a third of what an ADD costs where nothing else is going on, and most of it where much is. */
static int prepare_clsact(struct nl_sock *socket, const struct attach_target *target,
			  struct attach_undo *undo, bool *ingress, struct cni_error *err)
{
	*ingress = false;
	if (!clsact_create(target->ifindex)) {
		undo->qdisc = true;
		return 0;
	}
	if (errno != EEXIST)
		return bpf_error_set(err, errno, "cannot add a clsact qdisc to interface %s",
				     target->name);
	*ingress = qdisc_at_ingress(socket, target->ifindex) == INGRESS_QDISC_INGRESS;
	return 0;
}

static bool wants_tcx(const struct attach_target *target, const struct copies *copies)
{
	enum attach_mode mode = target->interface.attach_mode;

	if (mode == ATTACH_AUTO || !is_containers_veth(target))
		return copies->tcx && (mode != ATTACH_CLSACT || copies->foreign_tcx);
	return mode == ATTACH_TCX;
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
	if (errno == EINVAL && !tcx_is_supported(target->ifindex))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "\"attach\": \"tcx\" needs Linux 6.6 or newer; use \"auto\"");
	return bpf_error_set(err, errno, "cannot attach %s by TCX to %s of interface %s",
			     program_name(program_at(&target->interface, hook)), hook_name(hook),
			     target->name);
}

static int attach_by_clsact(struct nl_sock *socket, const struct attach_target *target,
			    enum hook hook, int program_fd, bool tcx, struct attach_undo *undo,
			    struct cni_error *err)
{
	bool ingress;

	if (prepare_clsact(socket, target, undo, &ingress, err))
		return -1;
	if (ingress && tcx && !is_containers_veth(target))
		return attach_by_tcx(target, hook, program_fd, undo, err);
	if (ingress && needs_egress(&target->interface))
		return refuse_ingress_qdisc(target, err);
	if (!clsact_attach(target->ifindex, hook, program_fd, false)) {
		undo->filter[hook] = true;
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	return bpf_error_set(err, errno, "cannot attach %s as a filter to %s of interface %s",
			     program_name(program_at(&target->interface, hook)), hook_name(hook),
			     target->name);
}

/* Where it was attached by somebody else meanwhile, the next look finds out. */
static int attach_first(struct nl_sock *socket, const struct attach_target *target, enum hook hook,
			int program_fd, const struct copies *copies, struct attach_undo *undo,
			struct cni_error *err)
{
	if (wants_tcx(target, copies))
		return attach_by_tcx(target, hook, program_fd, undo, err);
	return attach_by_clsact(socket, target, hook, program_fd, copies->tcx, undo, err);
}

/* A container's ADD runs beside us and has found its veth, which we took for an uplink. */
static bool is_a_containers(enum interface_role role, enum program_number program,
			    const struct copies *copies)
{
	if (role == ROLE_PORT || role == ROLE_ROUTED)
		return false;
	for (size_t i = 0; i < copies->count; i++)
		if (copies->list[i].program != program)
			return true;
	return false;
}

/* Leaves the hook to the container's program. Whoever of the two looks last sees both. */
static int retreat(uint32_t ifindex, enum hook hook, enum program_number program,
		   struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);
	struct copies copies;

	if (lock < 0)
		return -1;
	hook_find_copies(ifindex, hook, &copies);
	for (size_t i = 0; i < copies.count; i++)
		if (copies.list[i].program == program)
			remove_copy(ifindex, hook, &copies.list[i]);
	return 0;
}

static int attach_hook(const struct datapath *datapath, struct nl_sock *socket,
		       const struct attach_target *target, enum hook hook, struct attach_undo *undo,
		       struct cni_error *err)
{
	enum program_number program = program_at(&target->interface, hook);
	int fd = datapath->objects.programs[program];
	uint32_t id = datapath->objects.program_ids[program];
	struct copies copies;

	/* Each round settles something; a third would mean that somebody works against us. */
	for (int round = 0; round < 3; round++) {
		hook_find_copies(target->ifindex, hook, &copies);
		if (copies.count == 1 && copies.list[0].id == id)
			return 0;
		if (is_a_containers(target->interface.role, program, &copies))
			return retreat(target->ifindex, hook, program, err);
		if (!copies.count) {
			if (attach_first(socket, target, hook, fd, &copies, undo, err))
				return -1;
		} else if (make_copies_one(target->ifindex, hook, fd, id, err)) {
			return -1;
		}
	}
	hook_find_copies(target->ifindex, hook, &copies);
	if (copies.count == 1 && copies.list[0].id == id)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%s is not at %s of interface %s after it was attached; something else"
			     " removes it",
			     program_name(program), hook_name(hook), target->name);
}

static bool leave_uplink_hook(uint32_t ifindex, enum hook hook)
{
	const struct interface uplink = {.role = ROLE_UPLINK};
	struct copies copies;
	bool left = false;

	hook_find_copies(ifindex, hook, &copies);
	for (size_t i = 0; i < copies.count; i++)
		if (copies.list[i].mechanism == MECHANISM_CLSACT &&
		    copies.list[i].program == program_at(&uplink, hook)) {
			remove_copy(ifindex, hook, &copies.list[i]);
			left = true;
		}
	return left;
}

/* Before its container's ADD came others may have taken the veth for an uplink; beside the
 * qdisc that they made there, the one that is to come cannot be. */
static void leave_uplink_qdisc(struct nl_sock *socket, uint32_t ifindex)
{
	bool left = leave_uplink_hook(ifindex, HOOK_INGRESS);

	left |= leave_uplink_hook(ifindex, HOOK_EGRESS);
	if (left && qdisc_is_empty_clsact(socket, ifindex))
		clsact_destroy(ifindex);
}

static int attach_to_shaper(const struct datapath *datapath, const struct attach_target *target,
			    struct attach_undo *undo, struct cni_error *err)
{
	uint32_t shaper = shaper_of(target->ifindex, &target->interface);
	bool created = false;
	int result;

	if (!shaper)
		return 0;
	result = shaper_attach(datapath, shaper, &created, err);
	if (created)
		undo->shaper = shaper;
	return result;
}

int attach_interface(const struct datapath *datapath, struct nl_sock *socket,
		     const struct attach_target *target, struct attach_undo *undo,
		     struct cni_error *err)
{
	if (is_containers_veth(target) && target->interface.attach_mode != ATTACH_CLSACT &&
	    tcx_is_supported(target->ifindex))
		leave_uplink_qdisc(socket, target->ifindex);
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (program_at(&target->interface, hook) != PROGRAM_COUNT &&
		    attach_hook(datapath, socket, target, hook, undo, err))
			return -1;
	return attach_to_shaper(datapath, target, undo, err);
}

void attach_take_back(const struct datapath *datapath, const struct attach_target *target,
		      const struct attach_undo *undo)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(&target->interface, hook);

		if (undo->tcx[hook])
			tcx_detach(target->ifindex, hook, datapath->objects.programs[program]);
		if (undo->filter[hook])
			clsact_detach(target->ifindex, hook);
	}
	if (undo->qdisc)
		clsact_destroy(target->ifindex);
	if (undo->shaper)
		clsact_destroy(undo->shaper);
}

void attach_leave(uint32_t ifindex, const struct interface *interface)
{
	struct copies copies;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_copies(ifindex, hook, &copies);
		for (size_t i = 0; i < copies.count; i++)
			if (copies.list[i].program == program_at(interface, hook))
				remove_copy(ifindex, hook, &copies.list[i]);
	}
}
