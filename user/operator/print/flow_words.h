/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_words.h - what a record of a connection says, in netfilter's and the RFCs' words.
 */
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

/* Never FLOW_STATE_ANY or FLOW_STATE_HALF_OPEN. */
enum flow_state flow_state_of(enum protocol protocol, __u32 state);
bool flow_state_matches(enum flow_state wanted, enum protocol protocol, __u32 state);
/* "syn-recv"; "" for FLOW_STATE_ANY */
const char *flow_state_word(enum flow_state state);

/* Never WAY_PATH_ANY. */
enum flow_way_path flow_way_path_of(const struct connection *connection, enum way way);
/* "fast"; "-" for WAY_PATH_NONE */
const char *flow_way_path_word(enum flow_way_path path);

/* "mapping", "masquerade", "direct", "host", "foreign", "unknown" */
const char *flow_kind_word(enum flow_kind kind);

#define PROTOCOL_WORD_SIZE 8
/* "tcp", or the number of one that is not known; returns text. */
const char *protocol_word(enum protocol protocol, char text[PROTOCOL_WORD_SIZE]);
/* 0: there is no such word. */
enum protocol protocol_parse(const char *word);
