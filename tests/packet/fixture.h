/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fixture.h - the loaded programs, what stands in their maps, what they leave there. */
#ifndef BPF_PORTMAP_TESTS_FIXTURE_H
#define BPF_PORTMAP_TESTS_FIXTURE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "frame.h"
#include "host.h"

enum hook {
	FROM_UPLINK,
	TO_UPLINK,
	FROM_BRIDGE,
	TO_CONTAINER,
	FROM_CONTAINER,
	ETHERNET_HOOKS,
	FROM_UPLINK_RAW = ETHERNET_HOOKS, /* without a link header: raw_rows.c */
	TO_UPLINK_RAW,
};

/* Slots, one a container; the generation is always generation_of(slot). */
enum container { NOBODY = 0, ONE = 1, TWO = 2, QUIET = 3, ROUTED = 4 };

/* Half-open, or assured */
enum table { NEW, ANSWERED };

/* What the bits of a record's state come to. */
enum flow_state { STATE_NEW, STATE_ESTABLISHED, STATE_FIN, STATE_CLOSING };

/* The record of a connection, and what goes with it: a place, an alias where it has one, counts.
 * All zero: none. */
struct entry {
	enum table table;
	int protocol;
	const char *inside;
	int inside_port;
	const char *outside;
	int outside_port;
	const char *external;
	int external_port;
	int peer_port;
	enum flow_kind kind;
	bool begun_inside;
	bool unconfirmed;
	enum flow_state state;
	enum flow_path path[2]; /* by enum way, as all that is twice here */
	/* Of records a row puts in by itself */
	enum container owner;
	bool older_generation;
	uint32_t idle; /* seconds since it was used */
	bool replied;
	bool with_data;
	enum device out[2];
	uint16_t path_mtu;  /* 0: 1500 */
	uint32_t seen[2];   /* 1: a packet left the stack in this second, 2: in the last; 0: none */
	uint32_t looked_up; /* the same of when routing was asked */
	bool neighbour_unknown;
};

#define MAX_ENTRIES 16

struct stored_entry {
	struct connection_key key;
	struct connection connection;
};

struct stored_entries {
	int count;
	struct stored_entry entries[MAX_ENTRIES];
};

void fixture_load(void);
void fixture_unload(void);

/* Everything as it is when a row starts afresh: the four containers, their
 * ports, the interfaces, no connections, masquerade ports 20000-29999. */
void fixture_reset(void);
void fixture_clear_flows(void);
struct owner fixture_owner(enum container container);

/* Runs a program on a frame; *frame becomes what came out. Returns the verdict,
 * TC_ACT_*; FIXTURE_MARKED where mark or priority were changed [i12];
 * FIXTURE_BAD_SUM where the skb's own sum is wrong now [i11]; or less than
 * FIXTURE_REFUSED where the kernel does not take such a frame. */
#define FIXTURE_BAD_SUM (-998)
#define FIXTURE_MARKED (-999)
#define FIXTURE_REFUSED (-1000)
int fixture_run(enum hook hook, enum device device, enum device came_in_by, struct frame *frame);

/* Whether frames come in with the sum that a network card computed (CHECKSUM_COMPLETE)
 * or without (CHECKSUM_NONE). False: this kernel cannot, and nothing has changed. */
bool fixture_set_checksum_complete(bool complete);

/* What ADD or CHECK has written down of an interface: what kernels before 6.7 have. */
void fixture_set_addresses(enum device device, const char *address4, const char *address6);
void fixture_map_port(int protocol, const char *host, int host_port, const char *container,
		      int container_port, enum container owner);
void fixture_exclude(const char *address); /* as excludeInterfaces does */
/* What is written down of the host's addresses, true or not */
void fixture_add_host_address(const char *address);
void fixture_forget_host_addresses(void);
/* Of an endpoint: another attachment has it too; "strict" */
void fixture_share_address(const char *address);
void fixture_make_strict(const char *address);
/* Two attachments become those of one container. */
void fixture_make_one_container(enum container one, enum container other);
/* The veth is deleted, and nobody calls DEL. */
void fixture_remove_veth(enum container container);
void fixture_unmap_port(int protocol, const char *host, int host_port);
void fixture_set_masquerade_ports(uint16_t first, uint16_t last);
void fixture_set_endpoint(const char *address, enum container owner, uint8_t prefix_length,
			  bool masquerade);
void fixture_set_fast_path(enum container container, enum fast_path mode);
/* As `bpf-portmap drop-offload` does: what has left the stack so far does not count. */
void fixture_drop_offload(void);
void fixture_without_fast_path(enum device device);
/* Of the last run: FIXTURE_MARKED's cause, said with row_fail(). priority -1: as it was. */
void fixture_check_context(bool mark_cleared, int priority);
/* Its owner is filled in. */
void fixture_set_policy(enum container owner, struct policy policy);
/* The n-th entry of a list in a policy: an address, a prefix length, an exception or not */
struct address_range fixture_range(const char *address, uint8_t prefix_length, bool exception);
void fixture_kill(enum container container);
/* Container ONE's flows may skip the stack. */
void fixture_offload_one(enum fast_path mode);
/* As though all connections had left the stack just now. */
void fixture_let_leave_stack(void);
void fixture_renew(enum container container); /* DEL and ADD again: another generation */
/* Puts the record, place, alias and counts as the programs would have; another record of that
 * identity ends. */
void fixture_put(const struct entry *entry);
void fixture_put_as(const struct entry *entry, enum container owner, bool older_generation,
		    uint32_t idle, enum flow_state state);
/* With the paths that the row says */
void fixture_put_offloaded(const struct entry *entry, enum container owner);
/* Of a record that must be there: ends it, with all that goes with it, or its alias alone goes. */
void fixture_remove(const struct entry *entry);
void fixture_lose_alias(const struct entry *entry);
/* So much time passes for all connections. */
void fixture_age_flows(uint32_t seconds);
/* The second that the programs think it is */
uint32_t fixture_second(void);
void fixture_wait_for_next_second(void);
struct share fixture_share_of(enum container container);
struct usage fixture_usage(void);

/* How many fragments are held, and how many datagrams are known. */
int fixture_count_held(void);
int fixture_count_fragmented(void);
/* So much time passes for all of them. */
void fixture_age_fragments(uint32_t seconds);

void fixture_address(uint8_t *address, const char *text);
/* As many records as there is room for. */
void fixture_read_flows(struct stored_entries *stored);
/* Places, aliases and counts are those that the records say; else row_fail(). */
void records_check(void);

/* The sum over all CPUs. */
void fixture_read_counters(struct counters *sum);
uint64_t fixture_mapping_flows(int protocol, const char *host, int host_port);

#endif
