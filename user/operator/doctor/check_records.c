/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_records.c - checks of the records of containers. */
#include <string.h>
#include <time.h>

#include "datapath/records/attachments.h"
#include "datapath/records/owners.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"

/* An ADD or DEL that takes longer was killed. */
#define UNFINISHED_SECONDS 60

static void visit(struct doctor *doctor,
		  void (*look)(struct doctor *doctor, const struct attachment_entry *entry,
			       const char *name))
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error err = {0};
	size_t count = 0;

	if (attachment_list(&doctor->host.datapath, &entries, &count, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct attachment_name name;

		look(doctor, &entries[i],
		     attachment_name_split(entries[i].key.name, &name) ? name.container_id
								       : "a damaged record");
	}
}

static void look_for_veth(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	if (!attachment_has_veth(&doctor->host.datapath.objects, doctor->host.socket,
				 &entry->attachment))
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "container %s has gone without DEL: its ports are still recorded",
			     name);
}

void check_abandoned(struct doctor *doctor)
{
	visit(doctor, look_for_veth);
}

static void look_at_state(struct doctor *doctor, const struct attachment_entry *entry,
			  const char *name)
{
	uint64_t now = (uint64_t)time(NULL);

	if (entry->attachment.state == ATTACHMENT_READY ||
	    now < entry->attachment.since + UNFINISHED_SECONDS)
		return;
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# remove the container and add it again: cnirun del CONFLIST %s",
				remedy_word(name).text),
		     "ADD or DEL of container %s was cut short", name);
}

void check_unfinished(struct doctor *doctor)
{
	visit(doctor, look_at_state);
}
