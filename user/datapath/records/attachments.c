/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments.c - which attachments there are, by their names and by their slots, and in words. */
#include "datapath/records/attachments.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/maps.h"
#include "net/link.h"
#include "net/netlink.h"
#include "lib/address.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "net/processes.h"

int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err)
{
	int length;

	memset(key, 0, sizeof(*key));
	length = snprintf(key->name, sizeof(key->name), "%s/%s/%s", network, container_id, ifname);
	if (length >= 0 && (size_t)length < sizeof(key->name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "network name, CNI_CONTAINERID and CNI_IFNAME are %d bytes together,"
			     " at most %zu are possible",
			     length - 2, sizeof(key->name) - 3);
}

bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name)
{
	char *container_id, *ifname;

	memcpy(name->text, key, ATTACHMENT_KEY_SIZE);
	name->text[ATTACHMENT_KEY_SIZE] = '\0';
	container_id = strchr(name->text, '/');
	ifname = container_id ? strchr(container_id + 1, '/') : NULL;
	if (!ifname)
		return false;
	*container_id = *ifname = '\0';
	name->network = name->text;
	name->container_id = container_id + 1;
	name->ifname = ifname + 1;
	return true;
}

int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &datapath->objects, .map = MAP_ATTACHMENTS};
	cleanup_free struct attachment_entry *list = NULL;

	*count = 0;
	while (map_next(&walk, err)) {
		struct attachment_entry *entry = ARRAY_ADD(list, *count);

		memcpy(&entry->key, walk.key, sizeof(entry->key));
		memcpy(&entry->attachment, walk.value, sizeof(entry->attachment));
	}
	if (walk.failed)
		return -1;
	*entries = TAKE(list);
	return 0;
}

bool attachment_has_veth(const struct objects *objects, const struct attachment *record)
{
	struct interface interface;
	struct link link;

	if (link_get(netlink_route(NULL), record->ifindex, NULL, &link, NULL))
		return true;
	if (!link.ifindex)
		return false;
	return !memcmp(link.mac, record->host_mac, LINK_MAC_SIZE) ||
	       (interface_read(objects, record->ifindex, &interface) &&
		owner_is(interface.owner, record->owner) &&
		hook_has_program(record->ifindex, HOOK_INGRESS, PROGRAM_FROM_CONTAINER));
}

bool owner_is_live_with_veth(const struct objects *objects, struct owner owner, struct slot *slot)
{
	struct attachment record;

	if (!owner_read(objects, owner, slot)) {
		memset(slot, 0, sizeof(*slot));
		return false;
	}
	/* Under the lock no ADD or DEL is under way: one that is not live was killed. */
	return slot->live && slot_read_record(objects, owner.slot, slot, &record) &&
	       record.state == ATTACHMENT_READY && attachment_has_veth(objects, &record);
}

int owner_allocate(const struct objects *objects, struct meta *meta, struct owner *owner,
		   bool *had_policy, struct cni_error *err)
{
	struct attachment record;
	struct slot slot;

	owner->slot = 0;
	for (uint32_t tried = 1, hint = meta->next_slot; tried < MAX_SLOTS && !owner->slot;
	     tried++, hint++) {
		if (hint == 0 || hint >= MAX_SLOTS)
			hint = 1;
		if (slot_read(objects, hint, &slot) &&
		    !slot_read_record(objects, hint, &slot, &record)) {
			owner->slot = hint;
			*had_policy = slot.has_policy;
		}
	}
	if (!owner->slot)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "there are %d attachments already, as many as bpf-portmap can "
				     "hold; GC removes those whose containers are gone",
				     MAX_SLOTS - 1);
	meta->generation++;
	/* Zero means no owner. */
	meta->generation += meta->generation == 0;
	meta->next_slot = owner->slot + 1;
	owner->generation = meta->generation;
	return 0;
}

int owner_set_gateway(const struct objects *objects, struct owner owner, uint32_t ifindex,
		      const uint8_t mac[6], struct cni_error *err)
{
	struct slot slot;

	if (!owner_read(objects, owner, &slot))
		return 0;
	slot.gateway = ifindex;
	memcpy(slot.gateway_mac, mac, sizeof(slot.gateway_mac));
	return slot_write(objects, owner.slot, &slot, err);
}

/* --- words for messages --------------------------------------------------------------------- */

void describe_port(const struct portmap_key *key, char text[DESCRIBED_PORT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	const char *where = cni_address_format(key->host_address, address);

	if (!memcmp(key->host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE))
		where = "any IPv4 address";
	else if (!memcmp(key->host_address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		where = "any IPv6 address";
	snprintf(text, DESCRIBED_PORT_SIZE, "host port %u/%s of %s", key->host_port,
		 protocol_word(key->protocol), where);
}

bool attachment_read_text(const struct objects *objects, const char key[ATTACHMENT_KEY_SIZE],
			  struct attachment *record)
{
	struct attachment_key whole = {0};

	memcpy(whole.name, key, strnlen(key, ATTACHMENT_KEY_SIZE));
	if (!attachment_read(objects, &whole, record))
		return false;
	record->workload.namespace[WORKLOAD_NAMESPACE_SIZE - 1] = '\0';
	record->workload.name[WORKLOAD_NAME_SIZE - 1] = '\0';
	return true;
}

static void describe_container(const struct workload *workload, const char *container_id,
			       char *text, size_t size)
{
	const char *kind = workload->kind == WORKLOAD_POD ? "pod" : "Nomad job";
	const char *unit = workload->kind == WORKLOAD_POD ? "sandbox" : "allocation";

	if (workload->kind == WORKLOAD_NONE)
		snprintf(text, size, "container %s", container_id);
	else if (workload->kind == WORKLOAD_CONTAINER)
		snprintf(text, size, "container %s (%s)", workload->name, container_id);
	else
		snprintf(text, size, "%s %s%s%s (%s %s)", kind, workload->namespace,
			 *workload->namespace ? "/" : "", workload->name, unit, container_id);
}

void describe_attachment_of(const struct workload *workload, const char key[ATTACHMENT_KEY_SIZE],
			    char text[DESCRIBED_ATTACHMENT_SIZE])
{
	static const struct workload none;
	struct attachment_name name;
	size_t length;

	if (!attachment_name_split(key, &name)) {
		snprintf(text, DESCRIBED_ATTACHMENT_SIZE, "an unknown attachment");
		return;
	}
	describe_container(workload ? workload : &none, name.container_id, text,
			   DESCRIBED_ATTACHMENT_SIZE);
	length = strlen(text);
	snprintf(text + length, DESCRIBED_ATTACHMENT_SIZE - length, ", interface %s, network %s",
		 name.ifname, name.network);
}

void describe_attachment(const struct objects *objects, const char key[ATTACHMENT_KEY_SIZE],
			 char text[DESCRIBED_ATTACHMENT_SIZE])
{
	struct attachment record = {0};

	attachment_read_text(objects, key, &record);
	describe_attachment_of(&record.workload, key, text);
}

bool attachment_has_uuid(const char key[ATTACHMENT_KEY_SIZE])
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	struct attachment_name name;
	size_t i;

	if (!attachment_name_split(key, &name) || strlen(name.container_id) != strlen(form))
		return false;
	for (i = 0; form[i]; i++)
		if (form[i] == '-' ? name.container_id[i] != '-'
				   : !strchr("0123456789abcdef", name.container_id[i]))
			return false;
	return true;
}

bool slot_is_engines(const struct slot *slot, const struct attachment *record)
{
	struct attachment_name name;

	return record->workload.kind != WORKLOAD_NONE || attachment_has_uuid(slot->attachment) ||
	       (attachment_name_split(slot->attachment, &name) &&
		engine_id_digits(name.container_id));
}
