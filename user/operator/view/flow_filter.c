/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_filter.c - which connections a verb shows. */
#include "operator/view/flow_filter.h"

bool range_holds(const struct range_option *range, const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_has_prefix(address, range->address, range->prefix_length);
}

static bool path_matches(enum flow_way_path wanted, const struct connection *connection)
{
	return wanted == WAY_PATH_ANY || wanted == flow_way_path_of(connection, INWARDS) ||
	       wanted == flow_way_path_of(connection, OUTWARDS);
}

bool flow_filter_matches(const struct options *options, const struct connection_key *key,
			 const struct connection *connection)
{
	const struct port_option *port = &options->port;

	return (!options->protocol || options->protocol == key->protocol) &&
	       (!port->protocol || port->protocol == key->protocol) &&
	       (!port->port || port->port == connection->external_port) &&
	       flow_state_matches(options->state, key->protocol, connection->state) &&
	       path_matches(options->path, connection) &&
	       (!options->client.is_set || range_holds(&options->client, key->outside));
}
