/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * repair.c - `bpf-portmap repair`, for udev rules, timers and administrators: brings what is in the
 * kernel to where the living containers want it. With --dry-run each part only says what it would
 * change.
 */
#include <stdio.h>
#include <unistd.h>

#include "datapath/attach/socket_hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment.h"
#include "datapath/records/attachments.h"
#include "datapath/records/bitmaps.h"
#include "host/foreign_nat.h"
#include "host/host.h"
#include "host/interfaces.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "net/host_settings.h"
#include "net/link.h"
#include "operator/verbs.h"
#include "operator/view/mappings.h"
#include "operator/view/portmap_gone.h"
#include "plan/uplinks.h"

/* One run, and what it changed. */
struct repair {
	const struct options *options;
	struct host host;
	struct view view; /* of the host's datapath */
	size_t changes;
};

/* --- what containers have left ------------------------------------------------------------- */

/* For runtimes that never call CNI's GC. What belongs to a container that lives is not touched. */
static int collect_one(struct repair *repair, const struct mappings *mappings,
		       const struct attachment_entry *entry, struct cni_error *err)
{
	const struct objects *objects = &repair->host.datapath.objects;
	char who[DESCRIBED_ATTACHMENT_SIZE], ports[PORTS_TEXT_SIZE];
	bool was_there = true;

	if (!attachment_is_abandoned(objects, entry))
		return 0;
	/* Before it is removed: its record names it. */
	view_describe(&repair->view, entry, who);
	mappings_write_ports(mappings, entry->attachment.owner, ports);
	if (!repair->options->dry_run && attachment_remove_stale(objects, entry, &was_there, err))
		return cni_error_wrap(err, "%s", who);
	if (!was_there)
		return 0;
	repair->changes++;
	printf("%s %s: %s\n", repair->options->dry_run ? "would remove" : "removed", who, ports);
	return 0;
}

static int collect_abandoned(struct repair *repair, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_mappings struct mappings mappings = {0};
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	view_of_host(&repair->view, &repair->host);
	if (mappings_read(&mappings, &repair->view, err) ||
	    mappings_add_replaced(&mappings, &repair->view, err) ||
	    attachment_list(&repair->host.datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (collect_one(repair, &mappings, &entries[i], &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

/* --- interfaces and sockets ---------------------------------------------------------------- */

/* struct host calls it, too. */
static void say_interface(const char *interface, const char *what, void *context)
{
	struct repair *repair = context;

	repair->changes++;
	printf("%-15s %s%s\n", interface, repair->options->dry_run ? "would be: " : "", what);
}

/* Of containers that live: the others' are gone by now. */
static void repair_macs(struct repair *repair)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error ignored = {0};
	char name[IF_NAMESIZE];
	size_t count;

	if (attachment_list(&repair->host.datapath, &entries, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct attachment *record = &entries[i].attachment;

		if (link_name(record->ifindex, name) &&
		    bridge_entry_is_missing(record->ifindex, record->container_mac) &&
		    (repair->options->dry_run ||
		     !bridge_entry_add(record->ifindex, record->container_mac)))
			host_report(&repair->host, name,
				    "its MAC address put into the bridge's table");
	}
}

static int repair_port_ranges(struct repair *repair, struct cni_error *err)
{
	const struct objects *objects = &repair->host.datapath.objects;
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0)
		return -1;
	if (!meta_read(objects, &meta) || !port_ranges_follow(&meta))
		return 0;
	if (!repair->options->dry_run && meta_write(objects, &meta, err))
		return -1;
	say_interface("masquerade", "source ports chosen anew by net.ipv4.ip_local_port_range",
		      repair);
	return 0;
}

/* Nothing is broken by a bit too many, so nothing is said. */
static int forget_bits(const struct repair *repair, struct cni_error *err)
{
	cleanup_lock int lock = repair->options->dry_run ? -1 : lock_take_claims(err);

	if (repair->options->dry_run)
		return 0;
	return lock < 0 ? -1 : bitmaps_forget(&repair->host.datapath.objects, err);
}

static int repair_sockets(struct repair *repair, struct cni_error *err)
{
	bool repaired[SOCKET_PURPOSES];

	if (socket_hooks_repair(&repair->host.datapath, repair->options->dry_run, repaired, err))
		return -1;
	for (int i = 0; i < SOCKET_PURPOSES; i++)
		if (repaired[i])
			say_interface("sockets",
				      i == SOCKETS_REACH_PORTS
					      ? "programs of \"localhost\" attached"
					      : "programs of \"reserveHostPorts\" attached",
				      repair);
	return 0;
}

/* Every interface, containers' veths too, and uplinks of those that an administrator names. */
static int settle_all(struct repair *repair, char *const *names, struct cni_error *err)
{
	const struct look_at all = {
		.named = names, .entries = true, .veths = true, .veth_hooks = true};
	cleanup_look struct host_look look = {0};
	cleanup_plan struct plan plan = {0};
	int result;

	if (!repair->options->dry_run) {
		result = host_settle(&repair->host, &all, &plan, err);
		plan_warn(&plan);
		return result;
	}
	if (host_plan(&look, &plan, &repair->host, &all, err))
		return -1;
	for_each (change, plan.changes, plan.count)
		host_report(&repair->host, *change->at.name ? change->at.name : "(gone)",
			    *change->what ? change->what : "recorded anew");
	plan_warn(&plan);
	return 0;
}

static int repair_interfaces(struct repair *repair, char *const *names, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result;

	repair_macs(repair);
	result = settle_all(repair, names, err);
	if (repair_port_ranges(repair, &failure))
		result = cni_error_chain(err, &failure);
	if (repair_sockets(repair, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Checks whether one that an administrator names can be attached to. */
static int check_name(struct host *host, const char *name, struct cni_error *err)
{
	struct interface_look interface = {0};
	char why_not[WHY_NOT_SIZE];
	bool is_possible;

	if (link_get(host->socket, 0, name, &interface.link, err) ||
	    link_get(host->socket, interface.link.master, NULL, &interface.master, err))
		return -1;
	if (interface.link.ifindex)
		hooks_look(&interface.hooks, interface.link.ifindex,
			   qdisc_at_ingress(interface.link.ifindex), &host->datapath.objects);
	is_possible = uplink_is_possible(&interface, why_not);
	hooks_look_release(&interface.hooks);
	if (is_possible)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "interface %s cannot be attached to: it %s", name, why_not);
}

static int load(struct cni_error *err)
{
	cleanup_host struct host host = {0};

	if (host_open(&host, DATAPATH_WORK, err))
		return -1;
	return host_make_ready(&host, 0, err);
}

static int prepare(struct repair *repair, struct cni_error *err)
{
	struct datapath *datapath = &repair->host.datapath;

	if (repair->options->load && !repair->options->dry_run && load(err))
		return -1;
	if (host_open(&repair->host, DATAPATH_WORK, err) ||
	    (!repair->options->dry_run && host_recover(&repair->host, err)))
		return -1;
	/* The host may have got other NAT since. */
	if (datapath->is_blind && !repair->options->dry_run) {
		if (host_make_ready(&repair->host, 0, err))
			return -1;
		say_interface("programs", "loaded anew, to ask conntrack about NAT that came since",
			      repair);
	}
	/* What is not found again by the programs that run is loaded by the next ADD. */
	if (repair->options->dry_run)
		return view_check(datapath, err);
	return datapath->state == DATAPATH_FOREIGN ? datapath_refuse_foreign(datapath, err) : 0;
}

static void say_nat_port(const struct portmap_key *key, bool is_taken, void *context)
{
	char port[16], address[CNI_ADDRESS_TEXT_SIZE], what[CNI_ADDRESS_TEXT_SIZE + 64];

	snprintf(port, sizeof(port), "%u/%s", key->host_port, protocol_word(key->protocol));
	cni_address_format(key->host_address, address);
	snprintf(what, sizeof(what),
		 is_taken ? "left to the host's NAT, whose rules take it at %s"
			  : "given back to its container: no rule takes it at %s any more",
		 cni_address_is_any(key->host_address) ? "any address" : address);
	say_interface(port, what, context);
}

/* What containers have left first: it says what the ports of an ended one were. */
static int repair_all(struct repair *repair, char *const *names, struct cni_error *err)
{
	const struct nat_ports_change change = {
		.dry_run = repair->options->dry_run, .report = say_nat_port, .context = repair};
	struct cni_error failure = {0};
	int result = 0;

	/* A failure at one does not keep the others from it; *err has all of them. */
	for (char *const *name = names; *name; name++)
		if (check_name(&repair->host, *name, &failure))
			result = cni_error_chain(err, &failure);
	/* At boot, for example. The first ADD attaches to everything. */
	if (datapath_is_usable(&repair->host.datapath)) {
		if (collect_abandoned(repair, &failure))
			result = cni_error_chain(err, &failure);
		if (repair_interfaces(repair, names, &failure))
			result = cni_error_chain(err, &failure);
		if (foreign_nat_settle(&repair->host, &change, &failure))
			result = cni_error_chain(err, &failure);
		if (forget_bits(repair, &failure))
			result = cni_error_chain(err, &failure);
	}
	if (portmap_gone_remove(&repair->host, repair->options->dry_run, &repair->changes,
				&failure))
		result = cni_error_chain(err, &failure);
	return result;
}

int verb_repair(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct repair repair = {.options = options};
	int result;

	repair.host.report = say_interface;
	repair.host.report_context = &repair;
	result = prepare(&repair, err) || repair_all(&repair, operands, err) ? -1 : 0;
	/* For a person: a timer's journal would be full of it. */
	if (!result && !repair.changes && isatty(STDOUT_FILENO))
		puts("nothing to repair");
	view_close(&repair.view);
	host_close(&repair.host);
	return result;
}
