/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_nat.c - mapped ports that the host's own NAT takes, or is about to. */
#include <string.h>

#include "conf/request.h"
#include "datapath/load/maps.h"
#include "host/foreign_nat.h"
#include "lib/cleanup.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"

/* What the next `repair` would write down, or take back. It mends the latter alone: whoever reaches
 * the container now would not any more. */
static void take_change(const struct portmap_key *key, bool is_taken, void *context)
{
	const char *protocol = protocol_word(key->protocol);
	char port[ENDPOINT_TEXT_SIZE];

	format_host_port(key->host_address, key->host_port, port);
	if (is_taken)
		doctor_found(context, VERDICT_WARN, NULL,
			     "%s/%s: a rule of the host's NAT has come since the last ADD or"
			     " repair; it gets nothing until the next one, which leaves the port to"
			     " it (`bpf-portmap who %u/%s` shows the rule)",
			     port, protocol, key->host_port, protocol);
	else
		doctor_found(context, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "%s/%s: a rule of the host's NAT that took it is gone, and its"
			     " container gets nothing before repair",
			     port, protocol);
}

static void note_left_ports(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_NAT_PORTS};
	char host_port[ENDPOINT_TEXT_SIZE];
	struct portmap mapping;

	while (map_next(&walk, &err)) {
		const struct portmap_key *key = walk.key;
		struct portmap_key any = *key;

		memcpy(any.host_address,
		       cni_address_is_ipv4(key->host_address) ? cni_address_any_ipv4
							      : cni_address_any_ipv6,
		       CNI_ADDRESS_SIZE);
		if (!((const struct nat_port *)walk.value)->hooks ||
		    (!portmap_read(walk.objects, key, &mapping) &&
		     !portmap_read(walk.objects, &any, &mapping)))
			continue;
		format_host_port(key->host_address, key->host_port, host_port);
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "%s/%s is mapped, and left to the host's NAT, of which a rule took it"
			     " at the last ADD or repair: no client reaches the container there;"
			     " `bpf-portmap who %u/%s` shows the rule",
			     host_port, protocol_word(key->protocol), key->host_port,
			     protocol_word(key->protocol));
	}
	if (walk.failed)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
}

void check_nat(struct doctor *doctor)
{
	const struct nat_ports_change change = {
		.dry_run = true, .report = take_change, .context = doctor};
	cleanup_error struct cni_error err = {0};

	if (foreign_nat_settle(&doctor->host, &change, &err))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	note_left_ports(doctor);
}
