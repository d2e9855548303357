/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.c - typed access to the maps. */
#include "datapath/load/maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/bpf_error.h"

#define FIRST_BATCH 1024U

struct batch {
	char *keys;
	char *values;
	uint32_t capacity;
};

static int batch_allocate(struct batch *batch, size_t key_size, size_t value_size)
{
	free(batch->keys);
	free(batch->values);
	batch->keys = calloc(batch->capacity, key_size);
	batch->values = calloc(batch->capacity, value_size);
	return batch->keys && batch->values ? 0 : -1;
}

static int walk(int fd, size_t key_size, size_t value_size, struct batch *batch,
		bool (*visit)(const void *key, const void *value, void *context), void *context)
{
	uint32_t position = 0;
	bool first = true, last = false;

	while (!last) {
		uint32_t count = batch->capacity;

		if (bpf_map_lookup_batch(fd, first ? NULL : &position, &position, batch->keys,
					 batch->values, &count, NULL)) {
			/* More entries in one bucket of the hash than fit. */
			if (errno == ENOSPC && batch->capacity < 1U << 20) {
				batch->capacity *= 2;
				if (batch_allocate(batch, key_size, value_size))
					return -1;
				continue;
			}
			if (errno != ENOENT)
				return -1;
			last = true;
		}
		first = false;
		for (uint32_t i = 0; i < count; i++)
			if (!visit(batch->keys + i * key_size, batch->values + i * value_size,
				   context))
				return 0;
	}
	return 0;
}

int maps_walk(int fd, size_t key_size, size_t value_size,
	      bool (*visit)(const void *key, const void *value, void *context), void *context)
{
	struct batch batch = {.capacity = FIRST_BATCH};
	int result = batch_allocate(&batch, key_size, value_size);

	if (!result)
		result = walk(fd, key_size, value_size, &batch, visit, context);
	free(batch.keys);
	free(batch.values);
	return result;
}

static int refuse_write(const struct objects *objects, enum map_number map, int errno_value,
			struct cni_error *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (errno_value != E2BIG || bpf_obj_get_info_by_fd(objects->maps[map], &info, &size))
		return bpf_error_set(err, errno_value, "cannot write to the map %s", map_name(map));
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the map %s is full: a host can have %u entries there", map_name(map),
			     info.max_entries);
}

static int write_entry(const struct objects *objects, enum map_number map, const void *key,
		       const void *value, uint64_t flags, struct cni_error *err)
{
	if (!bpf_map_update_elem(objects->maps[map], key, value, flags))
		return 0;
	return refuse_write(objects, map, errno, err);
}

bool slot_read(const struct objects *objects, uint32_t number, struct slot *slot)
{
	if (bpf_map_lookup_elem(objects->maps[MAP_SLOTS], &number, slot))
		return false;
	slot->attachment[ATTACHMENT_KEY_SIZE - 1] = '\0';
	return true;
}

int slot_write(const struct objects *objects, uint32_t number, const struct slot *slot,
	       struct cni_error *err)
{
	return write_entry(objects, MAP_SLOTS, &number, slot, BPF_ANY, err);
}

bool attachment_read(const struct objects *objects, const struct attachment_key *key,
		     struct attachment *attachment)
{
	return !bpf_map_lookup_elem(objects->maps[MAP_ATTACHMENTS], key, attachment);
}

int attachment_write(const struct objects *objects, const struct attachment_key *key,
		     const struct attachment *attachment, struct cni_error *err)
{
	return write_entry(objects, MAP_ATTACHMENTS, key, attachment, BPF_ANY, err);
}

bool interface_read(const struct objects *objects, uint32_t ifindex, struct interface *interface)
{
	return !bpf_map_lookup_elem(objects->maps[MAP_INTERFACES], &ifindex, interface);
}

int interface_write(const struct objects *objects, uint32_t ifindex,
		    const struct interface *interface, struct cni_error *err)
{
	return write_entry(objects, MAP_INTERFACES, &ifindex, interface, BPF_ANY, err);
}

int interface_write_new(const struct objects *objects, uint32_t ifindex,
			const struct interface *interface, struct cni_error *err)
{
	if (!bpf_map_update_elem(objects->maps[MAP_INTERFACES], &ifindex, interface, BPF_NOEXIST) ||
	    errno == EEXIST)
		return 0;
	return refuse_write(objects, MAP_INTERFACES, errno, err);
}

bool interface_is_containers(const struct interface *interface)
{
	return interface->owner.slot != 0;
}

void interface_delete(const struct objects *objects, uint32_t ifindex)
{
	bpf_map_delete_elem(objects->maps[MAP_INTERFACES], &ifindex);
}

bool endpoint_read(const struct objects *objects, const struct endpoint_key *key,
		   struct endpoint *endpoint)
{
	return !bpf_map_lookup_elem(objects->maps[MAP_ENDPOINTS], key, endpoint);
}

int endpoint_write(const struct objects *objects, const struct endpoint_key *key,
		   const struct endpoint *endpoint, struct cni_error *err)
{
	return write_entry(objects, MAP_ENDPOINTS, key, endpoint, BPF_ANY, err);
}

bool portmap_read(const struct objects *objects, const struct portmap_key *key,
		  struct portmap *portmap)
{
	return !bpf_map_lookup_elem(objects->maps[MAP_PORTMAPS], key, portmap);
}

void noticed_read(const struct objects *objects, struct noticed *noticed)
{
	uint32_t only = 0;

	if (bpf_map_lookup_elem(objects->maps[MAP_NOTICED], &only, noticed))
		memset(noticed, 0, sizeof(*noticed));
}

bool meta_read(const struct objects *objects, struct meta *meta)
{
	uint32_t only = 0;

	return !bpf_map_lookup_elem(objects->maps[MAP_META], &only, meta);
}

int meta_write(const struct objects *objects, const struct meta *meta, struct cni_error *err)
{
	uint32_t only = 0;

	return write_entry(objects, MAP_META, &only, meta, BPF_ANY, err);
}

bool owner_is(struct owner a, struct owner b)
{
	return a.slot == b.slot && a.generation == b.generation;
}
