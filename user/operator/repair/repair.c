/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* repair.c - `bpf-portmap repair`, for udev rules, timers and administrators. */
#include "operator/repair/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/interfaces.h"
#include "host/ready.h"
#include "operator/verbs.h"
#include "plan/uplinks.h"
#include "operator/view/view.h"

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

/* A failure at one does not keep the others from it; *err has all of them. */
static int check_names(struct host *host, char *const *names, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result = 0;

	for (; *names; names++)
		if (check_name(host, *names, &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

static int load(struct cni_error *err)
{
	cleanup_host struct host host = {0};

	if (host_open(&host, PINS_ALL, err))
		return -1;
	return datapath_make_ready(&host.datapath, &host.addresses, 0, err);
}

static int prepare(struct repair *repair, struct cni_error *err)
{
	struct datapath *datapath = &repair->host.datapath;

	if (repair->options->load && !repair->options->dry_run && load(err))
		return -1;
	if (host_open(&repair->host, PINS_ALL, err) ||
	    (!repair->options->dry_run && host_recover(&repair->host, err)))
		return -1;
	/* What is not found again by the programs that run is loaded by the next ADD. */
	if (repair->options->dry_run && datapath->state == DATAPATH_DAMAGED)
		return view_refuse_damaged(datapath, err);
	return datapath->state == DATAPATH_FOREIGN ? datapath_refuse_foreign(datapath, err) : 0;
}

/* What containers have left first: it says what the ports of an ended one were. */
static int repair_all(struct repair *repair, char *const *names, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result = check_names(&repair->host, names, err);

	/* At boot, for example. The first ADD attaches to everything. */
	if (datapath_is_usable(&repair->host.datapath)) {
		if (repair_abandoned(repair, &failure))
			result = cni_error_chain(err, &failure);
		if (repair_interfaces(repair, names, &failure))
			result = cni_error_chain(err, &failure);
	}
	if (repair_rules_of_portmap(repair, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

static int finish(struct repair *repair, struct cni_error *err)
{
	if (repair->options->json)
		return items_end(&repair->items,
				 json_pack("{s:I, s:I, s:I, s:b}", "attachments",
					   (json_int_t)repair->attachments, "interfaces",
					   (json_int_t)repair->interfaces, "containers_of_portmap",
					   (json_int_t)repair->of_portmap, "done",
					   !repair->options->dry_run),
				 err);
	/* For a person: a timer's journal would be full of it. */
	if (!repair->attachments && !repair->interfaces && !repair->of_portmap &&
	    isatty(STDOUT_FILENO))
		puts("nothing to repair");
	return 0;
}

int verb_repair(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct repair repair = {.options = options, .items.file = stdout};
	struct cni_error failure = {0};
	int result;

	repair.host.report = repair_say_interface;
	repair.host.report_context = &repair;
	result = prepare(&repair, err);
	if (!result) {
		result = repair_all(&repair, operands, err);
		if (finish(&repair, &failure))
			result = cni_error_chain(err, &failure);
	}
	view_close(&repair.view);
	host_close(&repair.host);
	return result;
}
