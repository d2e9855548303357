/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_words.c - what a record of a connection says, in netfilter's and the RFCs' words. */
#include "operator/flow_words.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lifetime.h"

/* How many packets of one way show that the stack changes them. Fewer may have come before a
 * firewall accepted the connection. */
#define CHANGED_PACKETS 3

static const char *const state_words[FLOW_STATE_COUNT] = {
	[FLOW_STATE_ANY] = "",
	[FLOW_STATE_SYN] = "syn",
	[FLOW_STATE_SYN_RECV] = "syn-recv",
	[FLOW_STATE_ESTABLISHED] = "established",
	[FLOW_STATE_FIN_WAIT] = "fin-wait",
	[FLOW_STATE_TIME_WAIT] = "time-wait",
	[FLOW_STATE_CLOSE] = "close",
	[FLOW_STATE_UNREPLIED] = "unreplied",
	[FLOW_STATE_REPLIED] = "replied",
	[FLOW_STATE_HALF_OPEN] = "half-open",
};

static const char *const path_words[WAY_PATH_COUNT] = {
	[WAY_PATH_ANY] = "",      [WAY_PATH_STACK] = "stack",
	[WAY_PATH_FAST] = "fast", [WAY_PATH_DECIDING] = "deciding",
	[WAY_PATH_NONE] = "-",
};

static enum flow_state tcp_state_of(__u32 state)
{
	if (state & STATE_AWAITED)
		return FLOW_STATE_CLOSE;
	if ((state & STATE_FINS) == STATE_FINS)
		return FLOW_STATE_TIME_WAIT;
	if (!(state & STATE_REPLIED))
		return FLOW_STATE_SYN;
	if (!(state & STATE_ASSURED))
		return FLOW_STATE_SYN_RECV;
	return state & STATE_FINS ? FLOW_STATE_FIN_WAIT : FLOW_STATE_ESTABLISHED;
}

enum flow_state flow_state_of(enum protocol protocol, __u32 state)
{
	if (protocol == PROTOCOL_TCP)
		return tcp_state_of(state);
	if (state & STATE_ASSURED)
		return FLOW_STATE_ESTABLISHED;
	return state & STATE_REPLIED ? FLOW_STATE_REPLIED : FLOW_STATE_UNREPLIED;
}

bool flow_state_matches(enum flow_state wanted, enum protocol protocol, __u32 state)
{
	if (wanted == FLOW_STATE_HALF_OPEN)
		return !(state & STATE_ASSURED);
	return wanted == FLOW_STATE_ANY || wanted == flow_state_of(protocol, state);
}

const char *flow_state_word(enum flow_state state)
{
	return state_words[state];
}

enum flow_way_path flow_way_path_of(const struct connection *connection, enum way way)
{
	bool is_reply = connection->begun_inside == (way == INWARDS);
	enum flow_path path = connection->path[way];

	if (path == PATH_CONTAINER || path == PATH_OUT)
		return WAY_PATH_FAST;
	if (path == PATH_STACK)
		return WAY_PATH_STACK;
	if (connection->state & STATE_ASSURED)
		return WAY_PATH_DECIDING;
	return is_reply && !(connection->state & STATE_REPLIED) ? WAY_PATH_NONE : WAY_PATH_STACK;
}

const char *flow_way_path_word(enum flow_way_path path)
{
	return path_words[path];
}

/* Returns whether no packet of one way has left the stack with the tuple that the record expects
 * there (left_stack in abi.h), although packets have come. */
static bool is_changed_in_stack(const struct connection *connection)
{
	if (!(connection->state & STATE_ASSURED))
		return false;
	for (int way = 0; way < 2; way++)
		if (connection->path[way] == PATH_UNDECIDED && !connection->left_stack[way] &&
		    connection->packets[way] >= CHANGED_PACKETS)
			return true;
	return false;
}

const char *flow_stack_word(enum protocol protocol, const struct connection *connection)
{
	static const char *const words[] = {
		[REASON_NONE] = "-",
		[REASON_OFF] = "off",
		[REASON_WATCHED] = "watched",
		[REASON_OPTIONS] = "options",
		[REASON_HOST] = "host",
		[REASON_ROUTING] = "routing",
		[REASON_INTERFACE] = "interface",
		[REASON_NEIGHBOURS] = "neighbours",
		[REASON_MASQUERADED] = "masqAll",
		[REASON_MTU] = "mtu",
		[REASON_NETWORK] = "network",
	};
	enum stack_reason reason = connection->stack_reason;

	if (reason >= sizeof(words) / sizeof(words[0]) ||
	    (flow_way_path_of(connection, INWARDS) == WAY_PATH_FAST &&
	     flow_way_path_of(connection, OUTWARDS) == WAY_PATH_FAST))
		return words[REASON_NONE];
	if (reason == REASON_NONE && (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) &&
	    is_changed_in_stack(connection))
		return "changed";
	return words[reason];
}

const char *flow_kind_word(enum flow_kind kind)
{
	static const char *const words[] = {
		[FLOW_MAPPING] = "mapping", [FLOW_MASQUERADE] = "masquerade",
		[FLOW_DIRECT] = "direct",   [FLOW_HOST] = "host",
		[FLOW_FOREIGN] = "foreign",
	};
	const char *word = kind < sizeof(words) / sizeof(words[0]) ? words[kind] : NULL;

	return word ? word : "unknown";
}
