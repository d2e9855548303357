/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - our programs at the interfaces of the host. */
#include "datapath/attach/attach.h"

#include <errno.h>
#include <net/if.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/load/bpf_error.h"
#include "net/tc.h"

/* One program at one hook of one interface. */
struct attaching {
	const struct objects *objects;
	const struct attach_target *target;
	struct attach_undo *undo;
	enum hook hook;
	enum program_number program;
	int fd;
	uint32_t id;
	struct attached_programs found; /* at the hook */
};

static void find_programs(struct attaching *attaching)
{
	hook_find_programs(attaching->target->ifindex, attaching->hook, &attaching->found);
}

static bool is_attached(const struct attaching *attaching)
{
	return attaching->found.count == 1 && attaching->found.list[0].id == attaching->id;
}

static bool is_containers_veth(const struct attach_target *target)
{
	return target->interface.role == ROLE_PORT || target->interface.role == ROLE_ROUTED;
}

/* Keeps the pinned program if it is there, else puts it in place of the first. */
static int dedup_hook(struct attaching *attaching, struct cni_error *err)
{
	uint32_t ifindex = attaching->target->ifindex;
	struct attached_programs *found = &attaching->found;
	cleanup_lock int lock = lock_take(err);
	size_t kept = 0;

	if (lock < 0 || maps_refuse_removed(attaching->objects, err))
		return -1;
	find_programs(attaching);
	for (size_t i = 0; i < found->count; i++)
		if (found->list[i].id == attaching->id)
			kept = i;
	for (size_t i = 0; i < found->count; i++)
		if (i != kept)
			hook_detach(ifindex, attaching->hook, &found->list[i]);
	/* Where the interface or the program is gone meanwhile, the next look finds out. */
	if (found->count && found->list[kept].id != attaching->id &&
	    hook_replace(ifindex, attaching->hook, &found->list[kept], attaching->fd) &&
	    errno != ENODEV && errno != ENOENT)
		return bpf_error_set(err, errno,
				     "cannot replace an older program at %s of interface %s",
				     hook_name(attaching->hook), attaching->target->name);
	return 0;
}

static bool detach_program(uint32_t ifindex, enum hook hook, enum program_number program,
			   bool filters_only)
{
	struct attached_programs found;
	bool detached = false;

	hook_find_programs(ifindex, hook, &found);
	for (size_t i = 0; i < found.count; i++) {
		if (found.list[i].program != program ||
		    (filters_only && found.list[i].mechanism != MECHANISM_CLSACT))
			continue;
		hook_detach(ifindex, hook, &found.list[i]);
		detached = true;
	}
	return detached;
}

/* A container's ADD runs at the same time and has found its veth, which we took for an uplink. */
static bool is_a_containers(const struct attaching *attaching)
{
	for (size_t i = 0; i < attaching->found.count; i++)
		if (attaching->found.list[i].program != attaching->program)
			return !is_containers_veth(attaching->target);
	return false;
}

static int attach_by(const struct attaching *attaching, enum mechanism mechanism,
		     struct cni_error *err)
{
	const struct attach_target *target = attaching->target;
	enum hook hook = attaching->hook;

	if (!hook_attach(target->ifindex, hook, mechanism, attaching->fd)) {
		attaching->undo->attached[hook] = (struct attached_program){
			mechanism,
			attaching->program,
			attaching->id,
		};
		return 0;
	}
	/* Another process was faster; the next look finds out. */
	if (errno == EEXIST)
		return 0;
	if (mechanism == MECHANISM_TCX && errno == EINVAL && !tcx_is_supported(target->ifindex))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "\"attach\": \"tcx\" needs Linux 6.6 or newer; use \"auto\"");
	return bpf_error_set(err, errno, "cannot attach %s %s to %s of interface %s",
			     program_name(attaching->program),
			     mechanism == MECHANISM_TCX ? "by TCX" : "as a filter", hook_name(hook),
			     target->name);
}

static bool wants_tcx(const struct attaching *attaching)
{
	enum attach_mode mode = attaching->target->interface.attach_mode;
	const struct attached_programs *found = &attaching->found;

	if (mode == ATTACH_AUTO || !is_containers_veth(attaching->target))
		return found->tcx && (mode != ATTACH_CLSACT || found->foreign_tcx);
	return mode == ATTACH_TCX;
}

/* Makes a clsact qdisc where there is no qdisc at ingress. To try costs less than to ask first; but
 * of an interface that is up the kernel takes the queues out of service for it, and waits for RCU
 * (expedited) with RTNL held: a third of what an ADD costs where nothing else is going on, and most
 * of it where much is. An `ingress` qdisc has filters at ingress only, and excludes clsact. */
static int attach_by_filter(const struct attaching *attaching, struct cni_error *err)
{
	const struct attach_target *target = attaching->target;

	if (!qdisc_add_clsact(target->ifindex)) {
		attaching->undo->qdisc = true;
		return attach_by(attaching, MECHANISM_CLSACT, err);
	}
	if (errno != EEXIST)
		return bpf_error_set(err, errno, "cannot add a clsact qdisc to interface %s",
				     target->name);
	if (qdisc_at_ingress(target->ifindex) == INGRESS_QDISC_INGRESS) {
		if (attaching->found.tcx && !is_containers_veth(target))
			return attach_by(attaching, MECHANISM_TCX, err);
		if (program_at(&target->interface, HOOK_EGRESS) != PROGRAM_COUNT)
			return cni_error_set(
				err, CNI_ERROR_KERNEL_REFUSED,
				"interface %s has an `ingress` qdisc (the bandwidth plugin makes"
				" one), beside which clsact cannot be, and it needs a program at"
				" egress too; TCX (Linux 6.6, \"attach\": \"auto\" or \"tcx\")"
				" works beside it, or use the bridge plugin, whose ports need none"
				" at egress",
				target->name);
	}
	return attach_by(attaching, MECHANISM_CLSACT, err);
}

static int attach_hook(struct attaching *attaching, struct cni_error *err)
{
	cleanup_lock int lock = -1;

	/* Each round settles something; a third would mean that another process keeps changing it.
	 */
	for (int round = 0; round < 3; round++) {
		int result;

		find_programs(attaching);
		if (is_attached(attaching))
			return 0;
		if (is_a_containers(attaching)) {
			/* Leaves the hook to the container's program. Whichever of the two
			 * processes looks last sees both programs. */
			lock = lock_take(err);
			if (lock < 0)
				return -1;
			detach_program(attaching->target->ifindex, attaching->hook,
				       attaching->program, false);
			return 0;
		}
		if (attaching->found.count)
			result = dedup_hook(attaching, err);
		else if (wants_tcx(attaching))
			result = attach_by(attaching, MECHANISM_TCX, err);
		else
			result = attach_by_filter(attaching, err);
		if (result)
			return -1;
	}
	find_programs(attaching);
	if (is_attached(attaching))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%s is not at %s of interface %s after it was attached; something else"
			     " removes it",
			     program_name(attaching->program), hook_name(attaching->hook),
			     attaching->target->name);
}

int attach_interface(const struct datapath *datapath, const struct attach_target *target,
		     struct attach_undo *undo, struct cni_error *err)
{
	const struct interface uplink = {.role = ROLE_UPLINK};
	struct attaching attaching = {
		.objects = &datapath->objects,
		.target = target,
		.undo = undo,
	};
	bool detached = false, created = false;
	uint32_t shaper;
	int result;

	/* Before its container's ADD came another ADD may have taken the veth for an uplink. The
	 * clsact qdisc that it made there excludes the qdisc of the bandwidth plugin, which is to
	 * come. */
	if (is_containers_veth(target) && target->interface.attach_mode != ATTACH_CLSACT &&
	    tcx_is_supported(target->ifindex))
		for (int hook = 0; hook < HOOK_COUNT; hook++)
			detached |= detach_program(target->ifindex, hook, program_at(&uplink, hook),
						   true);
	if (detached && qdisc_is_empty_clsact(target->ifindex))
		qdisc_delete_clsact(target->ifindex);
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		attaching.hook = hook;
		attaching.program = program_at(&target->interface, hook);
		if (attaching.program == PROGRAM_COUNT)
			continue;
		attaching.fd = datapath->objects.programs[attaching.program];
		attaching.id = datapath->objects.program_ids[attaching.program];
		if (attach_hook(&attaching, err))
			return -1;
	}
	shaper = shaper_of(target->ifindex, &target->interface);
	if (!shaper)
		return 0;
	result = shaper_attach(datapath, shaper, &created, err);
	if (created)
		undo->shaper = shaper;
	return result;
}

void attach_rollback(uint32_t ifindex, const struct attach_undo *undo)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (undo->attached[hook].id)
			hook_detach(ifindex, hook, &undo->attached[hook]);
	if (undo->qdisc)
		qdisc_delete_clsact(ifindex);
	if (undo->shaper)
		qdisc_delete_clsact(undo->shaper);
}

void detach_all(uint32_t ifindex, const struct interface *interface)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		detach_program(ifindex, hook, program_at(interface, hook), false);
}

struct refresh {
	const struct datapath *datapath;
	struct cni_error failure; /* the first one */
};

/* Where the interface or the program is gone meanwhile, nothing is left to replace. */
static void refresh_hook(struct refresh *refresh, uint32_t ifindex, enum hook hook,
			 enum program_number program)
{
	const struct objects *objects = &refresh->datapath->objects;
	struct attached_programs found;
	char name[IF_NAMESIZE];
	int error;

	hook_find_programs(ifindex, hook, &found);
	for (size_t i = 0; i < found.count; i++) {
		if (found.list[i].id == objects->program_ids[program] ||
		    !hook_replace(ifindex, hook, &found.list[i], objects->programs[program]) ||
		    errno == ENODEV || errno == ENOENT || refresh->failure.code)
			continue;
		error = errno;
		if (if_indextoname(ifindex, name))
			bpf_error_set(&refresh->failure, error,
				      "cannot replace %s at %s of interface %s",
				      program_name(program), hook_name(hook), name);
	}
}

static enum walk refresh_interface(const void *key, const void *value, void *context,
				   struct cni_error *err)
{
	struct refresh *refresh = context;
	const struct interface *interface = value;
	uint32_t ifindex = *(const uint32_t *)key, shaper;
	struct cni_error failure = {0};
	bool created;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);

		if (program != PROGRAM_COUNT)
			refresh_hook(refresh, ifindex, hook, program);
	}
	shaper = shaper_of(ifindex, interface);
	if (!shaper || !shaper_program(shaper) ||
	    !shaper_attach(refresh->datapath, shaper, &created, &failure))
		return WALK_ON;
	if (refresh->failure.code)
		cni_error_release(&failure);
	else
		refresh->failure = failure;
	return WALK_ON;
}

int attach_refresh(const struct datapath *datapath, struct cni_error *err)
{
	struct refresh refresh = {datapath, {0}};
	int result = map_walk(&datapath->objects, MAP_INTERFACES, refresh_interface, &refresh, err);

	if (result || !refresh.failure.code) {
		cni_error_release(&refresh.failure);
		return result;
	}
	*err = refresh.failure;
	return -1;
}
