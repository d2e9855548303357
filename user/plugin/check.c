/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check.c - CHECK: compares what was asked for with what the kernel has. */
#include <stddef.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachment.h"
#include "datapath/records/attachments.h"
#include "datapath/records/containers.h"
#include "datapath/records/port_taken.h"
#include "host/container.h"
#include "host/foreign_nat.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"
#include "net/link.h"
#include "plan/fast_path.h"
#include "plugin/commands.h"

/* Of an entry that is missing, belongs to somebody else, or says something else. */
static int set_difference(const char *what, bool found, const char *map, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%s is %s in the map %s: the container must be added again", what,
			     found ? "not as it should be" : "missing", map);
}

/* A port may be that of the same container on another network, which this attachment waits for, or
 * of the container that replaces this one. */
static int verify_port(const struct objects *objects, const struct port_claim *claim,
		       struct owner owner, uint64_t container, struct cni_error *err)
{
	struct portmap wanted = claim->portmap, found = {0};
	struct portmap_succession entry;
	bool is_there = portmap_succession_read(objects, &claim->key, &entry);
	char port[DESCRIBED_PORT_SIZE];
	struct slot other;

	if (is_there)
		found = *(succession_find(&entry, owner) ?: &entry.now);
	if (is_there && !owner_is(found.owner, owner) && owner_read(objects, found.owner, &other))
		return other.container == container
			       ? 0
			       : refuse_taken_port(objects, &claim->key, &other, err);
	wanted.owner = owner;
	wanted.flows = found.flows;
	if (is_there && !memcmp(&wanted, &found, sizeof(found)))
		return 0;
	describe_port(&claim->key, port);
	return set_difference(port, is_there, "portmaps", err);
}

static int verify_endpoint(const struct objects *objects, const struct endpoint_claim *claim,
			   struct owner owner, struct cni_error *err)
{
	struct endpoint wanted = claim->endpoint, found = {0};
	bool is_there = endpoint_read(objects, &claim->key, &found);
	char address[CNI_ADDRESS_TEXT_SIZE];

	wanted.owner = owner;
	wanted.shared = found.shared;
	cni_address_format(claim->key.address, address);
	if (!is_there || !owner_is(found.owner, owner))
		return set_difference(address, is_there, "endpoints", err);
	if (!memcmp(&wanted, &found, sizeof(found)))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "address %s of the container has another prefix length, masquerade or"
			     " \"strict\" setting than it should have: it must be added again",
			     address);
}

#define FIELD(option, name) \
	{ \
		option, offsetof(struct policy, name), sizeof(((struct policy *)NULL)->name) \
	}

static int verify_policy(const struct objects *objects, struct owner owner,
			 const struct policy *wanted, struct cni_error *err)
{
	static const struct {
		const char *option;
		size_t offset, size;
	} fields[] = {
		FIELD("maxFlows", max_flows),
		FIELD("masqAll", masquerade_all),
		FIELD("snat", keep_hairpin_source),
		FIELD("masqPorts", masquerade_ports),
		FIELD("snatAddresses", source4_count),
		FIELD("snatAddresses", sources4),
		FIELD("snatAddresses", source6_count),
		FIELD("snatAddresses", sources6),
		FIELD("nonMasqueradeCIDRs", unmasqueraded_count),
		FIELD("nonMasqueradeCIDRs", unmasqueraded),
		FIELD("sourceRanges", source_range_count),
		FIELD("sourceRanges", source_ranges),
		FIELD("excludeCIDRs", excluded_count),
		FIELD("excludeCIDRs", excluded),
	};
	struct policy found;

	if (!policy_read(objects, owner, &found))
		memset(&found, 0, sizeof(found));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (memcmp((const char *)&found + fields[i].offset,
			   (const char *)wanted + fields[i].offset, fields[i].size))
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "\"%s\" is not what the map policies says of this "
					     "container: the container must be added again",
					     fields[i].option);
	return 0;
}

/* Limits that ADD was told of turn it off; a runtime need not repeat them at CHECK. */
static bool fast_path_is_wanted(const struct objects *objects, const struct conf *conf,
				enum fast_path mode)
{
	struct meta meta;

	return mode == FAST_PATH_OFF ||
	       mode == plan_fast_path(conf, meta_read(objects, &meta) && meta.sees_devices);
}

static int verify_record(const struct objects *objects, const struct container *container,
			 struct attachment *record, struct slot *slot, struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;
	const struct host_veth *veth = &container->veth;
	struct interface interface;

	if (!attachment_read(objects, &claims->key, record))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "there is no record of the attachment %s: the container must "
				     "be added again",
				     claims->key.name);
	if (record->state != ATTACHMENT_READY || !owner_read(objects, record->owner, slot) ||
	    !slot->live)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was left unfinished by an ADD or DEL: the "
				     "container must be added again",
				     claims->key.name);
	if (!fast_path_is_wanted(objects, &container->conf, slot->fast_path))
		return set_difference("\"fastPath\"", true, "slots", err);
	/* Not its MAC, which may change. */
	if (record->ifindex != veth->link.ifindex)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was made with another veth: the container "
				     "must be added again",
				     claims->key.name);
	if (interface_read(objects, veth->link.ifindex, &interface) &&
	    owner_is(interface.owner, record->owner) && interface.role == plan_role(veth))
		return 0;
	return set_difference("the container's veth", false, "interfaces", err);
}

/* The ports only if the runtime repeats them, else that there are as many as were claimed. */
static int verify_attachment(const struct objects *objects, const struct container *container,
			     struct attachment *record, struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};
	uint32_t count = 0;
	struct slot slot;

	if (verify_record(objects, container, record, &slot, err) ||
	    verify_policy(objects, record->owner, claims->policy, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (verify_endpoint(objects, &claims->endpoints[i], record->owner, err))
			return -1;
	for (size_t i = 0; i < claims->port_count; i++)
		if (verify_port(objects, &claims->ports[i], record->owner, slot.container, err))
			return -1;
	while (map_next(&walk, err)) {
		struct portmap_succession entry = *(const struct portmap_succession *)walk.value;
		const struct portmap *own = succession_find(&entry, record->owner);

		count += own && !own->of_any_address;
	}
	if (walk.failed)
		return -1;
	if (count == record->host_ports)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the map portmaps has %u of the %u host ports of this container: it "
			     "must be added again",
			     count, record->host_ports);
}

static int require_datapath(struct host *host, struct cni_error *err)
{
	/* Pins that were lost under running programs are made again. */
	if (host_recover(host, err))
		return -1;
	if (datapath_is_usable(&host->datapath))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the maps and programs of bpf-portmap are not loaded; the next ADD"
			     " loads them, but this container must be added again");
}

/* What came since the last look, and what others have changed, is settled rather than reported;
 * what was there and is gone is an error. */
static int verify_programs(struct host *host, struct container *container, struct cni_error *err)
{
	const struct look_at at = {.container = container, .entries = true, .refuses_damage = true};
	cleanup_plan struct plan plan = {0};
	int result = host_settle(host, &at, &plan, err);

	plan_warn(&plan);
	if (!result && plan.unmatched_uplinks && !container->wants_nothing)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "%s", plan.unmatched_uplinks);
	return result;
}

static int verify_all(struct host *host, struct container *container, struct cni_error *err)
{
	struct attachment record;

	abandoned_remove(&host->datapath);
	if (verify_attachment(&host->datapath.objects, container, &record, err))
		return -1;
	/* The MAC of its ADD: by now it may have taken another one, the bridge's, for example. */
	bridge_entry_add(container->veth.link.ifindex, record.container_mac);
	if (verify_programs(host, container, err) ||
	    host_sockets_verify(host, &container->conf, err))
		return -1;
	foreign_nat_warn(host, container);
	return prerequisites_verify(host, container, err);
}

int command_check(const struct cni_environment *environment,
		  const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_container struct container container = {0};
	cleanup_host struct host host = {0};
	struct attachment record;

	if (container_read(&container, environment, config, err) ||
	    host_open(&host, DATAPATH_WORK, err))
		return -1;
	/* A container that asks for nothing may have no record. */
	if (container.wants_nothing &&
	    (!datapath_is_usable(&host.datapath) ||
	     !attachment_read(&host.datapath.objects, &container.claims.key, &record)))
		return 0;
	if (require_datapath(&host, err) || container_find_veth(&container, err))
		return -1;
	return verify_all(&host, &container, err);
}
