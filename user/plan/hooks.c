/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hooks.c - what has to be changed at the hooks of one interface, and what of others runs first. */
#include "plan/hooks.h"

#include <stdio.h>

#include "lib/memory.h"

bool others_hang(const struct hook_look *hook, enum mechanism mechanism)
{
	for (size_t i = 0; i < hook->count; i++)
		if (hook->list[i].mechanism == mechanism && !hung_is_ours(&hook->list[i]))
			return true;
	return false;
}

static bool is_containers_veth(const struct interface *entry)
{
	return entry->role == ROLE_PORT || entry->role == ROLE_ROUTED;
}

static void detach(struct hook_changes *changes, enum hook hook, const struct hung *hung)
{
	/* More copies of programs than that are left to the next command. At each hook there is
	 * room for one that is attached or replaced. */
	if (changes->count < MOST_HOOK_CHANGES - HOOK_COUNT)
		changes->list[changes->count++] = (struct hook_change){
			.hook = hook,
			.action = HOOK_DETACH,
			.program = {hung->mechanism, hung->program, hung->id},
		};
}

/* How well what hangs there can be the program: 3: it is it; 2: an older one; 1: one of another
 * role, which is replaced, so that no packet passes in between; 0: it can not. */
static int fitness(const struct hung *hung, enum program_number program, uint32_t id,
		   enum mechanism mechanism)
{
	if (hung->program == PROGRAM_COUNT)
		return 0;
	if (hung->program == program)
		return hung->id == id ? 3 : 2;
	return hung->mechanism == mechanism ? 1 : 0;
}

/* NULL: none is there. */
static const struct hung *find_kept(const struct hook_look *hook, enum program_number program,
				    uint32_t id, enum mechanism mechanism)
{
	const struct hung *kept = NULL;
	int best = 0;

	for (size_t i = 0; i < hook->count; i++) {
		int fits = fitness(&hook->list[i], program, id, mechanism);

		if (fits > best)
			kept = &hook->list[i];
		best = fits > best ? fits : best;
	}
	return kept;
}

/* An `ingress` qdisc has filters at ingress only, and excludes clsact. */
static int choose_filter(const struct hooks_wanted *wanted, enum mechanism *mechanism,
			 struct cni_error *err)
{
	*mechanism = MECHANISM_CLSACT;
	if (wanted->hooks->qdisc <= INGRESS_QDISC_CLSACT)
		return 0;
	if (wanted->hooks->tcx && !is_containers_veth(wanted->entry))
		*mechanism = MECHANISM_TCX;
	else if (program_at(wanted->entry, HOOK_EGRESS) != PROGRAM_COUNT)
		return cni_error_set(
			err, CNI_ERROR_KERNEL_REFUSED,
			"interface %s has an `ingress` qdisc (the bandwidth plugin makes one),"
			" beside which clsact cannot be, and it needs a program at egress too; TCX"
			" (Linux 6.6, \"attach\": \"auto\" or \"tcx\") works beside it; else"
			" use the bridge plugin, whose ports need none at egress, or leave an"
			" uplink out by \"excludeInterfaces\"",
			wanted->name);
	return 0;
}

static int choose_mechanism(const struct hooks_wanted *wanted, enum hook hook,
			    enum mechanism *mechanism, struct cni_error *err)
{
	enum attach_mode mode = wanted->entry->attach_mode;
	bool tcx = wanted->hooks->tcx;

	*mechanism = MECHANISM_TCX;
	if (mode == ATTACH_TCX && is_containers_veth(wanted->entry) && !tcx)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "\"attach\": \"tcx\" needs Linux 6.6 or newer; use \"auto\"");
	if (tcx &&
	    (mode != ATTACH_CLSACT || (!is_containers_veth(wanted->entry) &&
				       others_hang(&wanted->hooks->hooks[hook], MECHANISM_TCX))))
		return 0;
	return choose_filter(wanted, mechanism, err);
}

static void detach_but(struct hook_changes *changes, const struct hook_look *there, enum hook hook,
		       const struct hung *kept)
{
	for (size_t i = 0; i < there->count; i++)
		if (there->list[i].program != PROGRAM_COUNT && &there->list[i] != kept)
			detach(changes, hook, &there->list[i]);
}

static int plan_hook(struct hook_changes *changes, const struct hooks_wanted *wanted,
		     enum hook hook, char missing[MISSING_SIZE], struct cni_error *err)
{
	const struct hook_look *there = &wanted->hooks->hooks[hook];
	struct attached_program attached = {.program = program_at(wanted->entry, hook)};
	const struct hung *kept = NULL;

	if (attached.program == PROGRAM_COUNT) {
		detach_but(changes, there, hook, NULL);
		return 0;
	}
	attached.id = wanted->program_ids[attached.program];
	if (choose_mechanism(wanted, hook, &attached.mechanism, err))
		return -1;
	kept = find_kept(there, attached.program, attached.id, attached.mechanism);
	if (!kept) {
		changes->makes_clsact |= attached.mechanism == MECHANISM_CLSACT &&
					 wanted->hooks->qdisc == INGRESS_QDISC_NONE;
		changes->list[changes->count++] =
			(struct hook_change){hook, HOOK_ATTACH, attached, 0};
	} else if (kept->id != attached.id) {
		attached.mechanism = kept->mechanism;
		changes->list[changes->count++] =
			(struct hook_change){hook, HOOK_REPLACE, attached, kept->id};
	}
	if (!kept || kept->program != attached.program)
		snprintf(missing, MISSING_SIZE, "%s is not attached at %s",
			 program_name(attached.program), hook_name(hook));
	else if (kept->on_other_maps)
		snprintf(missing, MISSING_SIZE,
			 "%s at %s uses other maps than those that are pinned",
			 program_name(attached.program), hook_name(hook));
	detach_but(changes, there, hook, kept);
	return 0;
}

/* Before a container's ADD came another one may have taken the veth for an uplink. The clsact qdisc
 * that it made there excludes the qdisc of the bandwidth plugin, which is to come. */
static bool deletes_clsact(const struct hook_changes *changes, const struct hooks_wanted *wanted)
{
	if (!is_containers_veth(wanted->entry) || wanted->entry->attach_mode == ATTACH_CLSACT ||
	    !wanted->hooks->tcx)
		return false;
	for (size_t i = 0; i < changes->count; i++)
		if (changes->list[i].action == HOOK_DETACH &&
		    changes->list[i].program.mechanism == MECHANISM_CLSACT)
			return true;
	return false;
}

static void plan_shaper(struct hook_changes *changes, const struct hooks_wanted *wanted,
			char missing[MISSING_SIZE])
{
	const struct hooks_look *hooks = wanted->hooks;
	uint32_t id = wanted->program_ids[PROGRAM_FROM_CONTAINER];

	if (!hooks->shaper || hooks->shaper_program == id || !is_containers_veth(wanted->entry) ||
	    plan_mechanism(changes, hooks, HOOK_INGRESS) != MECHANISM_CLSACT)
		return;
	changes->shaper = hooks->shaper;
	if (!hooks->shaper_program || hooks->shaper_on_other_maps)
		snprintf(missing, MISSING_SIZE,
			 "a filter ahead of from_container sends all packets to interface number"
			 " %u, and from_container is not attached there",
			 hooks->shaper);
}

int plan_hooks(struct hook_changes *changes, const struct hooks_wanted *wanted,
	       char missing[MISSING_SIZE], struct cni_error *err)
{
	*missing = '\0';
	*changes = (struct hook_changes){0};
	/* Of several that are missing the one at ingress is named. */
	for (int hook = HOOK_COUNT; hook-- > 0;)
		if (plan_hook(changes, wanted, (enum hook)hook, missing, err))
			return -1;
	changes->deletes_clsact = deletes_clsact(changes, wanted);
	plan_shaper(changes, wanted, missing);
	return 0;
}

void plan_no_hooks(struct hook_changes *changes, const struct hooks_look *hooks,
		   const struct interface *entry)
{
	*changes = (struct hook_changes){0};
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for (size_t i = 0; i < hooks->hooks[hook].count; i++)
			if (hooks->hooks[hook].list[i].program != PROGRAM_COUNT &&
			    hooks->hooks[hook].list[i].program ==
				    program_at(entry, (enum hook)hook))
				detach(changes, (enum hook)hook, &hooks->hooks[hook].list[i]);
}

enum mechanism plan_mechanism(const struct hook_changes *changes, const struct hooks_look *hooks,
			      enum hook hook)
{
	for (size_t i = 0; i < changes->count; i++)
		if (changes->list[i].hook == hook && changes->list[i].action != HOOK_DETACH)
			return changes->list[i].program.mechanism;
	for (size_t i = 0; i < hooks->hooks[hook].count; i++)
		if (hooks->hooks[hook].list[i].program != PROGRAM_COUNT)
			return hooks->hooks[hook].list[i].mechanism;
	return MECHANISM_TCX;
}

const struct hung *others_ahead(const struct hooks_look *hooks, enum hook hook, enum mechanism ours)
{
	const struct hook_look *at = &hooks->hooks[hook];

	for_each (hung, at->list, at->count) {
		if (hung_is_ours(hung) && hung->mechanism == ours)
			return NULL;
		if (hung_is_ours(hung) || hung->is_announcement)
			continue;
		if (hung->mechanism == MECHANISM_TCX)
			return hung;
		if (ours == MECHANISM_TCX || hung->priority >= FILTER_PRIORITY)
			return NULL;
		/* What the bandwidth plugin's filter redirects meets from_container at the other
		 * device. */
		return hook == HOOK_INGRESS && !hung->id && hooks->shaper ? NULL : hung;
	}
	return NULL;
}
