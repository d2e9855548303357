/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_words.h - what a record of a connection says, in netfilter's and the RFCs' words. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* In the order of --state. */
enum flow_state {
	FLOW_STATE_ANY, /* as a filter */
	FLOW_STATE_SYN,
	FLOW_STATE_SYN_RECV,
	FLOW_STATE_ESTABLISHED,
	FLOW_STATE_FIN_WAIT,
	FLOW_STATE_TIME_WAIT,
	FLOW_STATE_CLOSE,
	FLOW_STATE_UNREPLIED,
	FLOW_STATE_REPLIED,
	FLOW_STATE_HALF_OPEN, /* as a filter: not assured */
	FLOW_STATE_COUNT,
};

/* How the packets of one way go, in the order of --path. */
enum flow_way_path {
	WAY_PATH_ANY, /* as a filter */
	WAY_PATH_STACK,
	WAY_PATH_FAST,
	WAY_PATH_DECIDING, /* through the stack so far */
	WAY_PATH_NONE,     /* none has come yet */
	WAY_PATH_COUNT,
};

/* Returns neither FLOW_STATE_ANY nor FLOW_STATE_HALF_OPEN. */
enum flow_state flow_state_of(enum protocol protocol, __u32 state);
bool flow_state_matches(enum flow_state wanted, enum protocol protocol, __u32 state);
/* Returns "syn-recv"; "" for FLOW_STATE_ANY. */
const char *flow_state_word(enum flow_state state);

/* Never returns WAY_PATH_ANY. */
enum flow_way_path flow_way_path_of(const struct connection *connection, enum way way);
/* Returns "fast"; "-" for WAY_PATH_NONE. */
const char *flow_way_path_word(enum flow_way_path path);

/* Returns in a word why it goes through the IP stack, as "options"; "-": no reason is known, or it
 * does not. */
const char *flow_stack_word(enum protocol protocol, const struct connection *connection);

/* Returns "mapping", "masquerade", "direct", "host", "foreign" or "unknown". */
const char *flow_kind_word(enum flow_kind kind);
