/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* foreign_programs.c - programs of others beside ours: which must not be skipped, which run before.
 */
#include "host/foreign_programs.h"

#include <stdio.h>

#include "datapath/attach/foreign_tc.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/link.h"
#include "net/forwarding.h"
#include "datapath/attach/hooks.h"

/* The IP stack looks up IPsec policies for what it forwards, before it translates the source. So a
 * policy for the host's own address matches no packet of a container. */
static struct foreign_tc look_at_policies(void)
{
	struct foreign_tc finding = {0};

	finding.watched = forwarding_has_ipsec_policies();
	if (finding.watched)
		snprintf(finding.what, sizeof(finding.what), "%s",
			 "the host has IPsec policies, asked about containers' own addresses only");
	return finding;
}

static bool finding_bars(const struct foreign_tc *finding)
{
	return finding->program || finding->watched;
}

static void warn_without(const char *veth, const struct foreign_tc *finding)
{
	warning("%s without the fast path: %s", veth, finding->what);
}

void fast_path_choose_mode(const struct host *host, struct container *container)
{
	bool may_skip = !container->conf.may_limit_bandwidth ||
			foreign_tc_is_seen_by_programs(&host->datapath);

	container->claims.fast_path = may_skip ? container->conf.fast_path : FAST_PATH_OFF;
}

void fast_path_decide(const struct host *host, struct container *container, bool new_qdisc)
{
	const struct host_veth *veth = &container->veth;
	struct foreign_tc finding;

	if (container->claims.fast_path == FAST_PATH_OFF)
		return;
	finding = look_at_policies();
	foreign_tc_look(&host->datapath, &veth->link, new_qdisc, &finding);
	if (veth->bridge.ifindex)
		foreign_tc_look(&host->datapath, &veth->bridge, false, &finding);
	container->claims.interface.without_fast_path = finding.program;
	container->claims.interface.watched = finding.watched;
	if (finding_bars(&finding))
		warn_without(veth->link.name, &finding);
}

bool fast_path_is_barred_at_uplink(const struct host *host, uint32_t ifindex,
				   const struct interface *interface)
{
	return interface->role == ROLE_UPLINK && foreign_tc_behind(ifindex);
}

/* Writes the finding into the interface's entry, if that says something else. */
static int set_offload_barred(struct host *host, uint32_t ifindex, const struct interface *known,
			      const struct foreign_tc *finding, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	char name[IF_NAMESIZE], text[128] = "with the fast path again";
	cleanup_lock int lock = -1;
	struct interface now;

	if (known->without_fast_path == finding->program && known->watched == finding->watched)
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	/* A container's ADD or DEL beside us may have changed the entry. */
	if (!interface_read(objects, ifindex, &now) || now.role != known->role ||
	    !owner_is(now.owner, known->owner))
		return 0;
	now.without_fast_path = finding->program;
	now.watched = finding->watched;
	if ((known->without_fast_path || known->watched) != finding_bars(finding) &&
	    link_name(host->socket, ifindex, name)) {
		if (finding_bars(finding))
			snprintf(text, sizeof(text), "without the fast path: %s", finding->what);
		host_report(host, name, text);
	}
	return interface_write(objects, ifindex, &now, err);
}

int fast_path_refresh_uplink(struct host *host, uint32_t ifindex, const struct interface *known,
			     struct cni_error *err)
{
	struct foreign_tc finding = {
		.program = fast_path_is_barred_at_uplink(host, ifindex, known),
		.what = "another tc program follows ours",
	};

	return set_offload_barred(host, ifindex, known, &finding, err);
}

static int look_at(struct host *host, uint32_t ifindex, struct foreign_tc *finding,
		   struct cni_error *err)
{
	struct link link;

	if (link_get(host->socket, ifindex, NULL, &link, err))
		return -1;
	if (link.ifindex)
		foreign_tc_look(&host->datapath, &link, false, finding);
	return 0;
}

/* What a walk is about. */
struct refresh {
	uint32_t only; /* one container's veth; 0: all */
	bool without_containers;
	struct foreign_tc policies;
};

static int refresh_interface(struct host *host, uint32_t ifindex, const struct interface *interface,
			     void *context, struct cni_error *err)
{
	const struct refresh *refresh = context;
	struct foreign_tc finding = refresh->policies;
	char name[IF_NAMESIZE];

	if (!interface_is_containers(interface))
		return fast_path_refresh_uplink(host, ifindex, interface, err);
	if (refresh->without_containers || (refresh->only && refresh->only != ifindex))
		return 0;
	if (look_at(host, ifindex, &finding, err) ||
	    (interface->role == ROLE_PORT &&
	     look_at(host, interface->bridge_ifindex, &finding, err)))
		return -1;
	if (refresh->only && finding_bars(&finding) && link_name(host->socket, ifindex, name))
		warn_without(name, &finding);
	return set_offload_barred(host, ifindex, interface, &finding, err);
}

int fast_path_refresh(struct host *host, const struct container *only, struct cni_error *err)
{
	struct refresh refresh = {.policies = look_at_policies()};

	if (only) {
		refresh.only = only->target.ifindex;
		refresh.without_containers = only->claims.fast_path == FAST_PATH_OFF;
	} else if (finding_bars(&refresh.policies)) {
		warning("no flow skips the IP stack: %s", refresh.policies.what);
	}
	return host_walk_interfaces(host, refresh_interface, &refresh, err);
}

void run_before_warn(struct host *host, uint32_t ifindex, const struct interface *interface,
		     bool new_qdisc)
{
	char text[FOREIGN_TC_SIZE], name[IF_NAMESIZE];

	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (program_at(interface, hook) != PROGRAM_COUNT &&
		    foreign_tc_ahead(ifindex, hook, new_qdisc, text) &&
		    link_name(host->socket, ifindex, name))
			warning("%s: %s runs before %s at %s: packets that it does not pass on"
				" do not reach mapped ports",
				name, text, program_name(program_at(interface, hook)),
				hook_name(hook));
}

void run_before_warn_container(struct host *host, const struct container *container, bool new_qdisc)
{
	uint32_t bridge = container->veth.bridge.ifindex;
	struct interface known;

	run_before_warn(host, container->target.ifindex, &container->target.interface, new_qdisc);
	if (bridge && interface_read(&host->datapath.objects, bridge, &known))
		run_before_warn(host, bridge, &known, false);
}

static int warn_at(struct host *host, uint32_t ifindex, const struct interface *interface,
		   void *context, struct cni_error *err)
{
	run_before_warn(host, ifindex, interface, false);
	return 0;
}

void run_before_warn_all(struct host *host)
{
	cleanup_error struct cni_error ignored = {0};

	host_walk_interfaces(host, warn_at, NULL, &ignored);
}
