/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* warnings.c - what ADD has warned of, kept with the attachment. */
#include "datapath/records/warnings.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/load/pins.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "lib/warning.h"

/* Whole lines. */
static void copy_lines(char text[WARNINGS_SIZE], const char *lines)
{
	size_t length = strnlen(lines, WARNINGS_SIZE - 1);

	while (length && lines[length - 1] != '\n')
		length--;
	memcpy(text, lines, length);
}

static int keep_locked(const struct objects *objects, int map, const struct attachment_key *key,
		       struct warnings *warnings, struct cni_error *err)
{
	struct attachment record;

	if (!attachment_read(objects, key, &record) || record.state != ATTACHMENT_READY)
		return 0;
	warnings->owner = record.owner;
	record.has_warnings = 1;
	if (attachment_write(objects, key, &record, err))
		return -1;
	/* Where the map is full they are lost. */
	bpf_map_update_elem(map, &record.owner.slot, warnings, BPF_ANY);
	return 0;
}

/* It is in none of the sets of pins that ADD and DEL open. */
static int open_map(const struct objects *objects)
{
	char path[PIN_DIRECTORY_SIZE + BPF_OBJ_NAME_LEN];
	int map;

	if (objects->maps[MAP_WARNINGS] >= 0)
		return fcntl(objects->maps[MAP_WARNINGS], F_DUPFD_CLOEXEC, 0);
	if (!objects->directory)
		return -1;
	snprintf(path, sizeof(path), "%s/%s", objects->directory, map_name(MAP_WARNINGS));
	map = bpf_obj_get(path);
	if (map >= 0 && !map_has_our_shape(MAP_WARNINGS, map))
		cleanup_close_pointer(&map);
	return map;
}

void warnings_keep(const struct objects *objects, const struct attachment_key *key,
		   const char *lines)
{
	cleanup_error struct cni_error err = {0};
	struct warnings warnings = {0};
	cleanup_close int map = -1;
	cleanup_lock int lock = -1;

	copy_lines(warnings.text, lines);
	if (!*warnings.text)
		return;
	map = open_map(objects);
	if (map < 0)
		return;
	lock = lock_take_claims(&err);
	if (lock < 0 || keep_locked(objects, map, key, &warnings, &err))
		warning_passing("warnings are not kept: %s", cni_error_message(&err));
}

void warnings_forget(const struct objects *objects, const struct attachment *record)
{
	cleanup_close int map = record->has_warnings ? open_map(objects) : -1;
	struct warnings warnings;

	if (map >= 0 && !bpf_map_lookup_elem(map, &record->owner.slot, &warnings) &&
	    owner_is(warnings.owner, record->owner))
		bpf_map_delete_elem(map, &record->owner.slot);
}

int warnings_forget_living(const struct objects *objects, const struct attachment_key *key,
			   bool *had_some, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct attachment record;

	*had_some = false;
	if (lock < 0)
		return -1;
	if (!attachment_read(objects, key, &record) || !record.has_warnings)
		return 0;
	*had_some = true;
	warnings_forget(objects, &record);
	record.has_warnings = 0;
	return attachment_write(objects, key, &record, err);
}

char *warnings_read(const struct objects *objects, const struct attachment *record)
{
	cleanup_close int map = record->has_warnings ? open_map(objects) : -1;
	struct warnings warnings;
	char *text;

	if (map < 0 || bpf_map_lookup_elem(map, &record->owner.slot, &warnings) ||
	    !owner_is(warnings.owner, record->owner) || !*warnings.text)
		return NULL;
	warnings.text[WARNINGS_SIZE - 1] = '\0';
	text = need(strdup(warnings.text));
	cni_printable(text, "\n");
	return text;
}
