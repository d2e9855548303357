/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plan.c - what has to be changed on the host. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "plan/fast_path.h"
#include "plan/hooks.h"
#include "plan/uplinks.h"

const struct interface_look *look_find(const struct look *look, uint32_t ifindex)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->interfaces[i].link.ifindex == ifindex)
			return &look->interfaces[i];
	return NULL;
}

static void __attribute__((format(printf, 2, 3))) warn(struct plan *plan, const char *format, ...)
{
	char **added = ARRAY_ADD(plan->warnings, plan->warning_count);
	va_list arguments;

	va_start(arguments, format);
	*added = cni_format_list(format, arguments);
	va_end(arguments);
}

/* Of the containers of a bridge that was not read whole only the one at hand is known. */
static bool is_bridge_of_containers(const struct look *look, const struct interface_look *interface)
{
	uint32_t ifindex = interface->link.ifindex;

	if (look->veth.bridge.ifindex == ifindex)
		return true;
	if (!look->is_whole)
		return interface->entry.role == ROLE_BRIDGE;
	for_each (port, look->interfaces, look->count)
		if (port->entry.role == ROLE_PORT && !port->is_gone &&
		    (port->is_read ? port->link.master : port->entry.bridge_ifindex) == ifindex)
			return true;
	return false;
}

static struct change *add_change(struct plan *plan, enum change_kind kind,
				 const struct interface_look *interface)
{
	struct change *change = ARRAY_ADD(plan->changes, plan->count);

	*change = (struct change){.kind = kind, .at.ifindex = interface->link.ifindex};
	memcpy(change->at.name, interface->link.name, sizeof(change->at.name));
	return change;
}

/* Names what of others runs before ours; where all is looked at, at every interface. */
static void warn_of_others_ahead(struct plan *plan, const struct interface_look *interface,
				 const struct interface *entry, const struct hook_changes *changes)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number ours = program_at(entry, (enum hook)hook);
		const struct hung *ahead;

		if (ours == PROGRAM_COUNT)
			continue;
		ahead = others_ahead(&interface->hooks, (enum hook)hook,
				     plan_mechanism(changes, &interface->hooks, (enum hook)hook));
		if (ahead)
			warn(plan,
			     "%s: %s runs before %s at %s: packets that it does not pass on do not"
			     " reach mapped ports",
			     interface->link.name, ahead->name, program_name(ours),
			     hook_name((enum hook)hook));
	}
}

/* Adds the change that makes the interface what the entry says. *added is NULL where nothing is to
 * be done. */
static int change_to(struct plan *plan, const struct interface_look *interface,
		     struct interface *entry, struct change **added, struct cni_error *err)
{
	const struct look *look = plan->look;
	struct hooks_wanted wanted = {&interface->hooks, look->program_ids, entry,
				      interface->link.name};
	struct hook_changes hooks = {0};
	char missing[MISSING_SIZE] = "";
	struct change *change;
	bool writes;

	*added = NULL;
	if (interface->has_hooks && plan_hooks(&hooks, &wanted, missing, err))
		return -1;
	if (interface->has_hooks && entry->role == ROLE_UPLINK)
		entry->without_fast_path = others_behind(
			&interface->hooks, plan_mechanism(&hooks, &interface->hooks, HOOK_INGRESS));
	if (interface->has_hooks &&
	    (look->is_whole || hooks.count || interface->link.ifindex == look->veth.bridge.ifindex))
		warn_of_others_ahead(plan, interface, entry, &hooks);
	writes = !interface->is_known || memcmp(entry, &interface->entry, sizeof(*entry));
	if (!writes && !hooks.count && !hooks.shaper)
		return 0;
	change = *added = add_change(plan, CHANGE_INTERFACE, interface);
	change->entry = *entry;
	change->writes_entry = writes;
	change->hooks = hooks;
	change->is_damage = *missing && interface->is_known && entry->role == interface->entry.role;
	snprintf(change->missing, sizeof(change->missing), "%s", missing);
	if (*missing || hooks.count)
		snprintf(change->what, sizeof(change->what), "%s",
			 change->is_damage ? "attached again" : "attached");
	return 0;
}

static void say_fast_path(struct change *change, const struct interface *before, const char *why)
{
	bool barred = change->entry.without_fast_path || change->entry.watched;

	if (*change->what || barred == (before->without_fast_path || before->watched))
		return;
	if (barred)
		snprintf(change->what, sizeof(change->what), "without the fast path: %s", why);
	else
		snprintf(change->what, sizeof(change->what), "with the fast path again");
}

static void plan_forget(struct plan *plan, const struct interface_look *interface, const char *why)
{
	struct change *change = add_change(plan, CHANGE_FORGET, interface);

	change->entry = interface->entry;
	plan_no_hooks(&change->hooks, &interface->hooks, &interface->entry);
	/* One that turns out to be a container's was nobody's uplink. */
	if (!interface->is_gone && interface_is_served(&interface->entry) &&
	    !uplink_is_containers(interface))
		snprintf(change->what, sizeof(change->what), "left: it %s", why);
}

static void set_addresses(struct interface *entry, const struct addressed_interface *addressed)
{
	if (!addressed)
		return;
	memcpy(entry->address4, addressed->address4, sizeof(entry->address4));
	memcpy(entry->address6, addressed->address6, sizeof(entry->address6));
}

static int plan_serve(struct plan *plan, const struct interface_look *interface,
		      const struct uplink_verdict *verdict, struct cni_error *err)
{
	struct interface entry = interface->entry;
	struct change *change;

	if (interface->is_read) {
		entry.role = link_is_kind(&interface->link, "bridge") ? ROLE_BRIDGE : ROLE_UPLINK;
		entry.without_link_header = interface->link.header == LINK_HEADER_NONE;
		entry.bridge_ifindex = entry.role == ROLE_UPLINK ? interface->bridge_behind : 0;
		memset(entry.bridge_mac, 0, sizeof(entry.bridge_mac));
		if (entry.role == ROLE_BRIDGE)
			memcpy(entry.bridge_mac, interface->link.mac, sizeof(entry.bridge_mac));
	}
	entry.attach_mode = verdict->attach;
	entry.addresses_excluded = verdict->addresses_excluded;
	entry.refusing = verdict->refusing;
	entry.by_administrator |= interface->is_named_now;
	set_addresses(&entry, interface->addressed);
	if (change_to(plan, interface, &entry, &change, err))
		return -1;
	if (!change)
		return 0;
	say_fast_path(change, &interface->entry, "another tc program follows ours");
	if (!*change->what && entry.addresses_excluded && !interface->entry.addresses_excluded)
		snprintf(change->what, sizeof(change->what), "excluded");
	/* Somebody who named it wants to know. */
	if (!*change->what && interface->is_named_now &&
	    (!interface_is_served(&interface->entry) || interface->entry.addresses_excluded))
		snprintf(change->what, sizeof(change->what), "attached");
	return 0;
}

/* Containers get out there, as they are: from_container needs an entry for that. */
static void plan_leave_alone(struct plan *plan, const struct interface_look *interface,
			     const struct uplink_verdict *verdict)
{
	struct interface entry = {
		.role = ROLE_LEFT_ALONE,
		.addresses_excluded = verdict->addresses_excluded,
	};
	struct change *change;

	set_addresses(&entry, interface->addressed);
	if (interface->is_known && !memcmp(&entry, &interface->entry, sizeof(entry)))
		return;
	change = add_change(plan, CHANGE_INTERFACE, interface);
	change->entry = entry;
	change->writes_entry = true;
	plan_no_hooks(&change->hooks, &interface->hooks, &interface->entry);
	if (interface_is_served(&interface->entry))
		snprintf(change->what, sizeof(change->what),
			 "left: no network has it as an uplink");
	else if (entry.addresses_excluded && !interface->entry.addresses_excluded)
		snprintf(change->what, sizeof(change->what), "excluded");
}

/* lo, which has a program: it serves nothing but the host's own sockets, whatever is said of it. */
static int plan_loopback(struct plan *plan, const struct interface_look *interface,
			 bool addresses_excluded, struct cni_error *err)
{
	struct interface entry = interface->entry;
	struct change *ignored;

	entry.addresses_excluded = addresses_excluded;
	return change_to(plan, interface, &entry, &ignored, err);
}

/* One of the host's own. */
static int plan_own(struct plan *plan, const struct interface_look *interface,
		    struct cni_error *err)
{
	const struct look *look = plan->look;
	struct uplink_verdict verdict = uplink_decide(look, interface);
	bool is_reachable = interface->addressed && interface->addressed->is_reachable;
	bool has_containers = is_bridge_of_containers(look, interface), is_possible, serves;
	char why[WHY_NOT_SIZE];

	if (interface->addressed)
		plan->excluded[interface->addressed - look->addresses->interfaces] =
			verdict.addresses_excluded;
	if (interface->entry.role == ROLE_LOOPBACK)
		return plan_loopback(plan, interface, verdict.addresses_excluded, err);
	is_possible = !interface->is_read || uplink_is_possible(interface, why);
	serves = has_containers || verdict.is_uplink;
	/* Containers of this host reach each other. Which bridges have some a small look does not
	 * find out. */
	if (has_containers)
		verdict.refusing =
			look->is_whole || look->veth.bridge.ifindex == interface->link.ifindex
				? 0
				: interface->entry.refusing;
	if (interface->addressed)
		plan->served[interface->addressed - look->addresses->interfaces] =
			serves && is_possible;
	if (serves && is_possible)
		return plan_serve(plan, interface, &verdict, err);
	if (!is_possible && interface_is_served(&interface->entry))
		plan_forget(plan, interface, why);
	else if (verdict.addresses_excluded || interface->entry.role == ROLE_LEFT_ALONE ||
		 (!serves && is_reachable && is_possible))
		plan_leave_alone(plan, interface, &verdict);
	else if (interface->is_known)
		plan_forget(plan, interface, "is named by no network as an uplink any more");
	return 0;
}

/* Finds the bridge of a container's veth, as far as it was read. One that is in no bridge is left
 * as it is. */
static const struct interface_look *find_bridge(const struct look *look,
						const struct interface_look *veth)
{
	uint32_t ifindex =
		veth->is_read && veth->link.master ? veth->link.master : veth->entry.bridge_ifindex;
	const struct interface_look *bridge = look_find(look, ifindex);

	return bridge && bridge->is_read && link_is_kind(&bridge->link, "bridge") ? bridge : NULL;
}

/* Keeps a container's flows in the IP stack where they would skip something of others. */
static struct bar bar_fast_path(struct plan *plan, const struct interface_look *veth,
				const struct interface_look *bridge, struct interface *entry)
{
	struct bar bar = others_bar(plan->look, veth, bridge);

	entry->without_fast_path = bar.program;
	entry->watched = bar.watched;
	if (bar.surprises && veth->link.ifindex == plan->look->veth.link.ifindex)
		warn(plan, "%s without the fast path: %s", veth->link.name, bar.what);
	return bar;
}

/* A container's veth, whose ADD has been made. */
static int plan_containers(struct plan *plan, const struct interface_look *veth,
			   struct cni_error *err)
{
	const struct look *look = plan->look;
	bool is_at_hand = veth->link.ifindex == look->veth.link.ifindex;
	const struct interface_look *bridge = NULL;
	struct interface entry = veth->entry;
	struct change *change;
	struct bar bar = {0};

	if (entry.role == ROLE_PORT)
		bridge = find_bridge(look, veth);
	if (bridge) {
		entry.bridge_ifindex = bridge->link.ifindex;
		memcpy(entry.bridge_mac, bridge->link.mac, sizeof(entry.bridge_mac));
	}
	if (veth->has_hooks && !(is_at_hand && plan->fast_path == FAST_PATH_OFF))
		bar = bar_fast_path(plan, veth, bridge, &entry);
	if (change_to(plan, veth, &entry, &change, err))
		return -1;
	if (change)
		say_fast_path(change, &veth->entry, bar.what);
	return 0;
}

static int plan_one(struct plan *plan, const struct interface_look *interface,
		    struct cni_error *err)
{
	const struct look *look = plan->look;

	/* The entry of a container that is gone goes with its attachment. */
	if (interface->is_gone) {
		if (interface->is_known && !interface_is_containers(&interface->entry))
			plan_forget(plan, interface, "is gone");
		return 0;
	}
	if (look->adds && interface->link.ifindex == look->veth.link.ifindex)
		return 0;
	if (interface_is_containers(&interface->entry))
		return plan_containers(plan, interface, err);
	return plan_own(plan, interface, err);
}

/* The entry of the container at hand, which is written with the rest of what it claims. */
static void plan_entry(struct plan *plan)
{
	const struct look *look = plan->look;
	const struct link *bridge = &look->veth.bridge;

	plan->fast_path = plan_fast_path(look->conf, look->programs_see_qdiscs);
	plan->veth.role = plan_role(&look->veth);
	plan->veth.attach_mode = look->conf->attach;
	plan->veth.bridge_ifindex = bridge->ifindex;
	memcpy(plan->veth.bridge_mac, bridge->mac, sizeof(plan->veth.bridge_mac));
}

/* What the veth of a container that is added lacks. */
static int plan_veth(struct plan *plan, struct cni_error *err)
{
	const struct look *look = plan->look;
	const struct interface_look *veth = look_find(look, look->veth.link.ifindex);
	const struct interface_look *bridge = look_find(look, look->veth.bridge.ifindex);
	struct hooks_wanted wanted = {&veth->hooks, look->program_ids, &plan->veth,
				      veth->link.name};
	char missing[MISSING_SIZE];

	plan->veth_at.ifindex = veth->link.ifindex;
	memcpy(plan->veth_at.name, veth->link.name, sizeof(plan->veth_at.name));
	set_addresses(&plan->veth, veth->addressed);
	if (plan_hooks(&plan->veth_hooks, &wanted, missing, err))
		return -1;
	warn_of_others_ahead(plan, veth, &plan->veth, &plan->veth_hooks);
	if (plan->fast_path != FAST_PATH_OFF)
		bar_fast_path(plan, veth, bridge, &plan->veth);
	return 0;
}

int plan_make(struct plan *plan, const struct look *look, struct cni_error *err)
{
	char *conflict;

	*plan = (struct plan){.look = look};
	if (look->conf)
		plan_entry(plan);
	plan->excluded = or_exit(calloc(look->addresses->count + 1, sizeof(*plan->excluded)));
	plan->served = or_exit(calloc(look->addresses->count + 1, sizeof(*plan->served)));
	for (size_t i = 0; i < look->count; i++)
		if (plan_one(plan, &look->interfaces[i], err))
			return -1;
	if (look->adds && plan_veth(plan, err))
		return -1;
	if (look->is_whole && !look->veth.link.ifindex && look->has_ipsec_policies)
		warn(plan, "no flow skips the IP stack: the host has IPsec policies, which see "
			   "containers' own addresses only");
	plan->unmatched_uplinks = uplink_unmatched(look);
	conflict = uplink_conflict(look);
	if (conflict)
		*ARRAY_ADD(plan->warnings, plan->warning_count) = conflict;
	plan->look = NULL;
	return 0;
}

void plan_release(struct plan *plan)
{
	for (size_t i = 0; i < plan->warning_count; i++)
		free(plan->warnings[i]);
	free(plan->warnings);
	free(plan->unmatched_uplinks);
	free(plan->changes);
	free(plan->excluded);
	free(plan->served);
	*plan = (struct plan){0};
}

const struct change *plan_find_damage(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->changes[i].is_damage)
			return &plan->changes[i];
	return NULL;
}
