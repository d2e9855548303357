/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* absent_addresses.c - addresses in the configuration that the host does not have now. */
#include "host/absent_addresses.h"

#include <string.h>

#include "lib/warning.h"
#include "net/local_address.h"

/* Enough for a reader; a request may name thousands. */
#define MAX_TOLD 16

static void warn_of_sources(const struct host *host, const __u8 (*addresses)[CNI_ADDRESS_SIZE],
			    __u8 count)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count; i++)
		if (!local_address_exists(host->socket, addresses[i]))
			warning("\"snatAddresses\": the host does not have %s now; until it has,"
				" or routes to it lead here, flows that leave with it get no"
				" replies",
				cni_address_format(addresses[i], text));
}

static bool is_among(const uint8_t (*addresses)[CNI_ADDRESS_SIZE], size_t count,
		     const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (size_t i = 0; i < count; i++)
		if (!memcmp(addresses[i], address, CNI_ADDRESS_SIZE))
			return true;
	return false;
}

static void warn_of_host_addresses(const struct host *host, const struct port_claim *ports,
				   size_t count)
{
	uint8_t seen[MAX_TOLD][CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];
	size_t seen_count = 0;

	for (size_t i = 0; i < count && seen_count < MAX_TOLD; i++) {
		const uint8_t *address = ports[i].key.host_address;

		if (cni_address_is_any(address) || is_among(seen, seen_count, address))
			continue;
		memcpy(seen[seen_count++], address, CNI_ADDRESS_SIZE);
		if (!local_address_exists(host->socket, address))
			warning("\"hostIP\": the host does not have %s now; ports mapped there are"
				" reached once it has",
				cni_address_format(address, text));
	}
}

void absent_addresses_warn(const struct host *host, const struct container *container)
{
	const struct policy *policy = &container->conf.policy;

	warn_of_sources(host, policy->sources4, policy->source4_count);
	warn_of_sources(host, policy->sources6, policy->source6_count);
	warn_of_host_addresses(host, container->claims.ports, container->claims.port_count);
}
