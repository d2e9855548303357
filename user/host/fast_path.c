/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fast_path.c - containers and uplinks whose packets must not skip the IP stack. */
#include "host/fast_path.h"

#include <stdio.h>
#include <string.h>

#include "datapath/attach/foreign_tc.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "lib/warning.h"
#include "net/link.h"
#include "net/forwarding.h"

/* What packets must not skip. */
struct finding {
	bool program;  /* a program that our programs cannot see */
	bool watched;  /* what our programs see, too, where the kernel lets them */
	char what[96]; /* for messages: the first one */
};

static void look_at_link(const struct host *host, const struct link *link, bool new_qdisc,
			 struct finding *finding)
{
	struct foreign_tc found = foreign_tc_at(&host->datapath, host->socket, link, new_qdisc);

	finding->program |= found.program != NULL;
	finding->watched |= found.watched != NULL;
	if (!finding->what[0] && (found.program || found.watched))
		snprintf(finding->what, sizeof(finding->what), "%s that is not ours is at %s",
			 found.program ?: found.watched, link->name);
}

/* The IP stack looks up IPsec policies for what it forwards, before it translates the source. So a
 * policy for the host's own address matches no packet of a container. */
static struct finding look_at_policies(void)
{
	struct finding finding = {0};

	finding.watched = forwarding_has_ipsec_policies();
	if (finding.watched)
		snprintf(finding.what, sizeof(finding.what), "%s",
			 "the host has IPsec policies, asked about containers' own addresses only");
	return finding;
}

static bool finding_bars(const struct finding *finding)
{
	return finding->program || finding->watched;
}

static void warn_without(const char *veth, const struct finding *finding)
{
	warning("%s without the fast path: %s", veth, finding->what);
}

static bool interface_is_barred(const struct interface *interface)
{
	return interface->without_fast_path || interface->watched;
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
	struct finding finding;

	if (container->claims.fast_path == FAST_PATH_OFF)
		return;
	finding = look_at_policies();
	look_at_link(host, &veth->link, new_qdisc, &finding);
	if (veth->bridge.ifindex)
		look_at_link(host, &veth->bridge, false, &finding);
	container->claims.interface.without_fast_path = finding.program;
	container->claims.interface.watched = finding.watched;
	if (finding_bars(&finding))
		warn_without(veth->link.name, &finding);
}

bool fast_path_is_barred_at_uplink(const struct host *host, uint32_t ifindex,
				   const struct interface *interface)
{
	return interface->role == ROLE_UPLINK && foreign_tc_behind(host->socket, ifindex);
}

static void report(const struct host *host, uint32_t ifindex, const struct finding *finding)
{
	char name[IF_NAMESIZE], text[128] = "with the fast path again";

	if (!link_name(host->socket, ifindex, name))
		return;
	if (finding_bars(finding))
		snprintf(text, sizeof(text), "without the fast path: %s", finding->what);
	host_report(host, name, text);
}

/* Writes the finding into the interface's entry, if that says something else. */
static int set_offload_barred(struct host *host, uint32_t ifindex, const struct interface *known,
			      const struct finding *finding, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
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
	if (interface_is_barred(known) != finding_bars(finding))
		report(host, ifindex, finding);
	return interface_write(objects, ifindex, &now, err);
}

int fast_path_refresh_uplink(struct host *host, uint32_t ifindex, const struct interface *known,
			     struct cni_error *err)
{
	struct finding finding = {
		.program = fast_path_is_barred_at_uplink(host, ifindex, known),
		.what = "another tc program follows ours",
	};

	return set_offload_barred(host, ifindex, known, &finding, err);
}

static int look_at(struct host *host, uint32_t ifindex, struct finding *finding,
		   struct cni_error *err)
{
	struct link link;

	if (link_get(host->socket, ifindex, NULL, &link, err))
		return -1;
	if (link.ifindex)
		look_at_link(host, &link, false, finding);
	return 0;
}

static int find_at_container(struct host *host, uint32_t ifindex, const struct interface *interface,
			     struct finding *finding, struct cni_error *err)
{
	if (look_at(host, ifindex, finding, err))
		return -1;
	if (interface->role != ROLE_PORT)
		return 0;
	return look_at(host, interface->bridge_ifindex, finding, err);
}

/* What a walk is about. */
struct refresh {
	uint32_t only; /* one container's veth; 0: all */
	bool without_containers;
	struct finding policies;
};

static int refresh_interface(struct host *host, uint32_t ifindex, const struct interface *interface,
			     void *context, struct cni_error *err)
{
	const struct refresh *refresh = context;
	struct finding finding = refresh->policies;
	char name[IF_NAMESIZE];

	if (!interface_is_containers(interface))
		return fast_path_refresh_uplink(host, ifindex, interface, err);
	if (refresh->without_containers || (refresh->only && refresh->only != ifindex))
		return 0;
	if (find_at_container(host, ifindex, interface, &finding, err))
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
