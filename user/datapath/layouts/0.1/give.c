/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * give.c - writes connections of ours into the maps of bpf-portmap 0.1.
 *
 * They become half-open ones that were answered: the next packet of the side that began moves such
 * a flow to its place among the others, which only the programs can give it.
 */
#include "datapath/layouts/0.1/give.h"

#include <bpf/bpf.h>
#include <string.h>
#include <time.h>

#include "datapath/layouts/0.1/abi.h"
#include "lib/cleanup.h"
#include "datapath/load/maps.h"
#include "lib/memory.h"

/* Both entries of a connection. */
struct halves {
	struct old_flow_key out_key, in_key;
	struct old_flow out, in;
};

static void make_halves(struct halves *halves, const struct taken_over *connection,
			struct owner owner, uint32_t now)
{
	const struct connection_key *key = &connection->key;
	struct old_flow flow = {
		.owner = owner,
		.kind = (uint8_t)connection->kind,
		.state = OLD_STATE_NEW,
		.answered = 1,
		.last_seen = now,
	};

	memset(halves, 0, sizeof(*halves));
	halves->out_key.source_port = key->inside_port;
	halves->out_key.destination_port = key->outside_port;
	halves->out_key.protocol = (uint8_t)key->protocol;
	halves->out_key.direction = OLD_DIRECTION_OUT;
	memcpy(halves->out_key.source, key->inside, sizeof(key->inside));
	memcpy(halves->out_key.destination, key->outside, sizeof(key->outside));
	halves->out = flow;
	halves->out.reply = !connection->begun_inside;
	halves->out.port = connection->external_port;
	halves->out.peer_port = connection->peer_port;
	memcpy(halves->out.address, connection->external_address, sizeof(halves->out.address));
	halves->in_key.source_port = connection->peer_port;
	halves->in_key.destination_port = connection->external_port;
	halves->in_key.protocol = (uint8_t)key->protocol;
	halves->in_key.direction = OLD_DIRECTION_IN;
	memcpy(halves->in_key.source, key->outside, sizeof(key->outside));
	memcpy(halves->in_key.destination, connection->external_address,
	       sizeof(halves->in_key.destination));
	halves->in = flow;
	halves->in.reply = connection->begun_inside;
	halves->in.port = key->inside_port;
	halves->in.peer_port = key->outside_port;
	memcpy(halves->in.address, key->inside, sizeof(halves->in.address));
}

/* 0.1 may have begun it anew already, alike: a packet came to the mapped port. */
static bool write_half(int flows, const struct old_flow_key *key, const struct old_flow *flow)
{
	struct old_flow found;

	if (!bpf_map_update_elem(flows, key, flow, BPF_NOEXIST))
		return true;
	return !bpf_map_lookup_elem(flows, key, &found) && owner_is(found.owner, flow->owner) &&
	       found.port == flow->port && found.peer_port == flow->peer_port &&
	       !memcmp(found.address, flow->address, sizeof(found.address));
}

/* As 0.1 does: both, or none. */
static bool write_halves(int flows, const struct halves *halves)
{
	if (!write_half(flows, &halves->in_key, &halves->in))
		return false;
	if (write_half(flows, &halves->out_key, &halves->out))
		return true;
	bpf_map_delete_elem(flows, &halves->in_key);
	return false;
}

/* 0.1 looks for a masqueraded connection only where its port is marked. What programs mark while
 * this writes is lost: no connection may begin meanwhile. */
static void mark_ports(const int *maps, const struct given_connections *connections)
{
	cleanup_free struct old_noticed *noticed = need(calloc(1, sizeof(*noticed)));
	uint32_t only = 0;

	if (bpf_map_lookup_elem(maps[OLD_NOTICED], &only, noticed))
		return;
	for (size_t i = 0; i < connections->count; i++)
		if (connections->list[i].kind == FLOW_MASQUERADE) {
			uint16_t port = connections->list[i].external_port;

			noticed->masquerade_ports[port / 64] |= 1ULL << (port % 64);
		}
	bpf_map_update_elem(maps[OLD_NOTICED], &only, noticed, BPF_ANY);
}

void give_connections_0_1(const int *maps, struct given_connections *connections)
{
	struct old_attachment attachment;
	struct timespec now;
	struct halves halves;

	/* The clock that the programs read. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	mark_ports(maps, connections);
	connections->given = 0;
	for (size_t i = 0; i < connections->count; i++) {
		const struct taken_over *one = &connections->list[i];

		if (bpf_map_lookup_elem(maps[OLD_ATTACHMENTS],
					&connections->attachments[one->owner.slot], &attachment))
			continue;
		make_halves(&halves, one, attachment.owner, (uint32_t)now.tv_sec);
		connections->given += write_halves(maps[OLD_FLOWS_NEW], &halves);
	}
}
