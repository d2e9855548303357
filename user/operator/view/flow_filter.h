/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_filter.h - which connections a verb shows: by their records alone, before anything is looked
 * up or formatted.
 */
#ifndef OPERATOR_VIEW_FLOW_FILTER_H
#define OPERATOR_VIEW_FLOW_FILTER_H

#include "operator/options.h"

/* Whether it is the peer, port, protocol, state and path of the options. */
bool flow_filter_matches(const struct options *options, const struct connection_key *key,
			 const struct connection *connection);

/* Whether the address lies in the range, which has one of its own family only. */
bool range_holds(const struct range_option *range, const uint8_t address[CNI_ADDRESS_SIZE]);

#endif
