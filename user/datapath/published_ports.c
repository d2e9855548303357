/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* published_ports.c - the map that says of most ports that they need not be looked for. */
#include "datapath/published_ports.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "datapath/refusal.h"

static int mark_word(int map, uint32_t number, uint64_t wanted, struct cni_error *err)
{
	uint64_t bits;

	if (bpf_map_lookup_elem(map, &number, &bits))
		return refusal_set(err, errno, "cannot read the map published_ports");
	if ((bits & wanted) == wanted)
		return 0;
	bits |= wanted;
	if (bpf_map_update_elem(map, &number, &bits, BPF_ANY))
		return refusal_set(err, errno, "cannot write to the map published_ports");
	return 0;
}

int published_ports_mark(const struct objects *objects, const struct attachment_claims *claims,
			 struct cni_error *err)
{
	uint64_t wanted[PORT_WORDS] = {0};

	for (size_t i = 0; i < claims->port_count; i++) {
		uint16_t port = claims->ports[i].key.host_port;

		wanted[port / 64] |= 1ULL << (port % 64);
	}
	for (uint32_t number = 0; claims->port_count && number < PORT_WORDS; number++)
		if (wanted[number] &&
		    mark_word(objects->maps[MAP_PUBLISHED_PORTS], number, wanted[number], err))
			return -1;
	return 0;
}
