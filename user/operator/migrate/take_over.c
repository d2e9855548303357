/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * take_over.c - what ADD would do, for a container that runs already and whose ports are in use.
 *
 * ADD attaches to the veth first, because its container sends nothing yet. Here that comes last:
 * from_container drops what comes from a veth without an attachment. And connections through
 * portmap's rules must never meet a mapping without having a record (connections.c).
 */
#include "operator/migrate/containers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment.h"
#include "host/container.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"
#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "net/link.h"
#include "cni/cache.h"

/* One container. */
struct taking {
	struct migrating *migrating;
	struct cni_environment environment;
	char *arguments, *text; /* of the environment, of the configuration */
	struct cni_network_config config;
	struct container container;
	struct host host;
	struct keeping keeping;
	struct plan plan; /* of what is left: the veth's hooks */
	struct attach_undo undo;
	bool is_new; /* claimed by this run */
};

/* What its runtime would give to ADD. */
static int read_config(struct taking *taking, struct cni_error *err)
{
	struct migrating *migrating = taking->migrating;
	cleanup_json json_t *config = add_cache_config(migrating->cached);
	cleanup_free char *conditions = NULL;

	if (!config)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the list that its runtime has kept has no portmap");
	conditions = conditional_translate(config);
	if (conditions)
		snprintf(migrating->reason, sizeof(migrating->reason), "its conditions as %s",
			 conditions);
	taking->arguments = cni_cache_format_args(json_object_get(migrating->cached, "cniArgs"));
	taking->text = or_exit(json_dumps(config, 0));
	taking->environment = (struct cni_environment){
		.command = CNI_ADD,
		.command_name = "ADD",
		.container_id = migrating->id,
		.netns = add_cache_netns(migrating->cached),
		.ifname = add_cache_text(migrating->cached, "ifName"),
		.args = taking->arguments,
	};
	return cni_network_config_parse(&taking->config, taking->text, strlen(taking->text),
					&taking->environment, err) ||
			       container_refuse_own_netns(&taking->environment, err) ||
			       container_read(&taking->container, &taking->environment,
					      &taking->config, err)
		       ? -1
		       : 0;
}

static bool is_claimed(const struct attachment_claims *claims, const struct migrating_port *port)
{
	for (size_t i = 0; i < claims->port_count; i++)
		if (!memcmp(&claims->ports[i].key, &port->key, sizeof(port->key)))
			return claims->ports[i].portmap.container_port == port->container_port &&
			       !memcmp(claims->ports[i].portmap.container_address,
				       port->container_address, sizeof(port->container_address));
	return false;
}

/* Somebody may have changed the rules since. */
static int check_claims(const struct taking *taking, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;
	const struct migrating *migrating = taking->migrating;
	bool same = claims->port_count == migrating->port_count;

	for (size_t i = 0; i < migrating->port_count; i++)
		same = same && is_claimed(claims, &migrating->ports[i]);
	return same ? 0
		    : cni_error_set(
			      err, CNI_ERROR_INVALID_CONFIGURATION,
			      "its rules are not those that its runtime has asked portmap for");
}

static void release(struct taking *taking)
{
	cleanup_close_pointer(&taking->keeping.program);
	container_release(&taking->container);
	cni_network_config_release(&taking->config);
	plan_release(&taking->plan);
	host_close(&taking->host);
	free(taking->arguments);
	free(taking->text);
}

int take_over_check(struct migrating *container, struct cni_error *err)
{
	struct taking taking = {.migrating = container, .keeping.program = -1};
	int result = read_config(&taking, err) || check_claims(&taking, err) ? -1 : 0;

	release(&taking);
	return result;
}

/* Programs and maps, and all hooks but the veth's. */
static int prepare_host(struct taking *taking, struct cni_error *err)
{
	struct container *container = &taking->container;
	struct host *host = &taking->host;

	if (host_open(host, DATAPATH_WORK, err) ||
	    container_prepare(container, host, &taking->plan, err) ||
	    host_sockets_attach(host, &container->conf, err))
		return -1;
	plan_warn(&taking->plan);
	taking->keeping = (struct keeping){taking->migrating, &host->datapath.objects, -1};
	return 0;
}

/* Whether a run that was killed has claimed all of it. A claim that is not finished is claimed
 * again. */
static int find_claimed(const struct taking *taking, bool *claimed, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;
	const struct objects *objects = &taking->host.datapath.objects;
	struct attachment record;
	struct portmap portmap;

	*claimed = false;
	if (!attachment_read(objects, &claims->key, &record) || record.state != ATTACHMENT_READY)
		return 0;
	for (size_t i = 0; i < claims->port_count; i++)
		if (!portmap_read(objects, &claims->ports[i].key, &portmap) ||
		    !owner_is(portmap.owner, record.owner))
			return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
					     "bpf-portmap has mapped other ports of this container"
					     " already, and mapping it anew would end their"
					     " connections: create it anew");
	*claimed = true;
	return 0;
}

/*
 * From the claim of a port until the connections that began just before it have their records, a
 * packet without a record must not begin one. So the port is claimed with a policy that admits no
 * client, and opened afterwards. A TCP client sends again what was dropped meanwhile.
 *
 * The broadcast address, which no client has, so that no conflist has it in "sourceRanges".
 */
static const struct address_range nobody = {
	.address = {[10] = 0xff, [11] = 0xff, [12] = 0xff, [13] = 0xff, [14] = 0xff, [15] = 0xff},
	.prefix_length = 32,
};

static struct policy closed_policy(const struct policy *wanted)
{
	struct policy policy = *wanted;

	memset(policy.source_ranges, 0, sizeof(policy.source_ranges));
	policy.source_ranges[0] = nobody;
	policy.source_range_count = 1;
	return policy;
}

/* Whether this attachment was claimed so, and not opened. */
static bool is_closed(const struct objects *objects, struct owner owner)
{
	struct policy policy;

	return policy_read(objects, owner, &policy) && policy.source_range_count == 1 &&
	       !memcmp(&policy.source_ranges[0], &nobody, sizeof(nobody));
}

static int open_policy(const struct objects *objects, struct owner owner,
		       const struct policy *policy, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct slot slot;

	if (lock < 0)
		return -1;
	if (!owner_read(objects, owner, &slot))
		return 0; /* its DEL has come */
	/* Programs read the entry only where the slot says that there is one. */
	if (policy_says_nothing(policy) && slot.has_policy) {
		slot.has_policy = 0;
		if (slot_write(objects, owner.slot, &slot, err))
			return -1;
	}
	return policy_write(objects, owner, policy, err);
}

static int claim(struct taking *taking, struct cni_error *err)
{
	const struct objects *objects = &taking->host.datapath.objects;
	const struct policy closed = closed_policy(&taking->container.conf.policy);
	struct attachment_claims claims = taking->container.claims;
	bool claimed;

	if (find_claimed(taking, &claimed, err))
		return -1;
	if (claimed)
		return 0;
	if (connections_keep(&taking->keeping, err))
		return -1;
	claims.policy = &closed;
	taking->is_new = !attachment_add(objects, &claims, err);
	return taking->is_new ? 0 : -1;
}

/* portmap's rules, which stay, get the packets again. Without an attachment the program at the veth
 * would drop what the container sends, so it goes too. */
static void give_back(struct taking *taking, struct cni_error *err)
{
	const struct attachment_claims *claims = &taking->container.claims;
	struct cni_error failure = {0};

	attach_rollback(taking->container.veth.link.ifindex, &taking->undo);
	if (attachment_remove(&taking->host.datapath.objects, &claims->key, claims, &failure))
		cni_error_chain(err, &failure);
}

/* What fails before the policy is open is undone, unless a run that was killed has claimed it:
 * then connections may be ours already. */
static int complete(struct taking *taking, struct cni_error *err)
{
	const struct objects *objects = &taking->host.datapath.objects;
	const struct attachment_claims *claims = &taking->container.claims;
	const struct plan *plan = &taking->plan;
	struct cni_error failure = {0};
	struct attachment record;
	int result = 0;

	if (connections_keep(&taking->keeping, &failure))
		result = cni_error_chain(err, &failure);
	if (attach_apply(&taking->host.datapath, &plan->veth_at, &plan->veth_hooks, &taking->undo,
			 &failure))
		result = cni_error_chain(err, &failure);
	if (result && taking->is_new) {
		give_back(taking, err);
		return -1;
	}
	if (attachment_read(objects, &claims->key, &record) && is_closed(objects, record.owner) &&
	    open_policy(objects, record.owner, &taking->container.conf.policy, &failure))
		result = cni_error_chain(err, &failure);
	bridge_entry_add_new(claims->ifindex, claims->bridge_entry_mac);
	prerequisites_warn(&taking->host, &taking->container);
	return result;
}

static void mark_mapped(struct migrating *migrating)
{
	unsigned int not_kept = migrating_not_kept(migrating);

	migrating->fate = MIGRATING_MAPPED;
	if (not_kept)
		snprintf(migrating->reason, sizeof(migrating->reason),
			 "%u connections may break: the table of connections has no room for them",
			 not_kept);
}

int take_over(struct migrating *container, struct cni_error *err)
{
	struct taking taking = {.migrating = container, .keeping.program = -1};
	int result = -1;

	if (!read_config(&taking, err) && !check_claims(&taking, err) &&
	    !prepare_host(&taking, err) && !claim(&taking, err))
		result = complete(&taking, err);
	if (!result)
		mark_mapped(container);
	release(&taking);
	return result;
}
