/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_taken.c - what is said of a host port that another container has. */
#include "datapath/records/port_taken.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/text.h"
#include "net/processes.h"

#define ADVICE_SIZE 512 /* two names, and the words around them */

/* Whether it may stand in a command that people copy: a pod's name is one in DNS. */
static bool is_plain(const char *name)
{
	return *name && *name != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")];
}

/* By the engine's own command: it would start again what is deleted by other means. */
static void advise_engine(const struct workload *workload, const char *container_id,
			  char text[ADVICE_SIZE])
{
	int length = 0;

	if (workload->kind == WORKLOAD_POD) {
		length = snprintf(text, ADVICE_SIZE, "delete that pod");
		if (!is_plain(workload->namespace) || !is_plain(workload->name))
			return;
		length += snprintf(text + length, ADVICE_SIZE - length,
				   " (`kubectl delete pod -n %s %s`", workload->namespace,
				   workload->name);
		if (engine_id_digits(container_id))
			length += snprintf(text + length, ADVICE_SIZE - length,
					   "; `crictl inspectp %.12s` shows its sandbox",
					   container_id);
		snprintf(text + length, ADVICE_SIZE - length, ")");
	} else if (workload->kind == WORKLOAD_NOMAD && is_plain(container_id)) {
		snprintf(text, ADVICE_SIZE, "stop that allocation (`nomad alloc stop %.8s`)",
			 container_id);
	} else if (engine_id_digits(container_id) == container_id) {
		snprintf(text, ADVICE_SIZE, "remove that container (`podman rm -f %.12s`)",
			 container_id);
	}
}

void describe_last_resort(const struct slot *owner, char text[LAST_RESORT_SIZE])
{
	struct attachment_name name;
	char veth[IF_NAMESIZE];

	*text = '\0';
	if (attachment_name_split(owner->attachment, &name) &&
	    !processes_are_in_container(name.container_id) &&
	    !processes_are_in_netns(owner->netns_id) && if_indextoname(owner->ifindex, veth))
		snprintf(text, LAST_RESORT_SIZE, "`ip link delete %s`", veth);
}

int refuse_taken_port(const struct objects *objects, const struct portmap_key *key,
		      const struct slot *owner, struct cni_error *err)
{
	char port[DESCRIBED_PORT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE],
		since[32] = "an unknown time";
	char engine[ADVICE_SIZE] = "remove that container", last_resort[LAST_RESORT_SIZE];
	struct attachment record = {0};
	struct attachment_name name;
	struct tm parts;
	time_t time;

	if (attachment_read_text(objects, owner->attachment, &record)) {
		time = (time_t)record.since;
		if (gmtime_r(&time, &parts))
			strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &parts);
	}
	describe_port(key, port);
	describe_attachment(objects, owner->attachment, who);
	if (attachment_name_split(owner->attachment, &name))
		advise_engine(&record.workload, name.container_id, engine);
	describe_last_resort(owner, last_resort);
	cni_error_set(err, CNI_ERROR_PORT_TAKEN, "%s is taken by %s, since %s", port, who, since);
	return cni_error_set_details(
		err, "choose another host port or hostIP, or %s%s%s", engine,
		*last_resort ? "; as a last resort, where no engine knows it any more: " : "",
		last_resort);
}
