/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fixture.h - loads the programs, fills their maps, and reads them. */
#pragma once

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
	FROM_UPLINK_RAW = ETHERNET_HOOKS, /* without a link header, see raw_rows.c */
	TO_UPLINK_RAW,
};

/* One slot for each container */
enum container { NOBODY = 0, ONE = 1, TWO = 2, QUIET = 3, ROUTED = 4 };

/* What from_container or from_uplink tells the later hooks of a packet. */
enum mark {
	MARK_USUAL, /* at egress the seal of its sender; at ingress nothing */
	MARK_NONE,
	MARK_SEAL,
	MARK_DONE,    /* from_uplink: to_container has nothing to do */
	MARK_CONFIRM, /* from_uplink: to_container shall confirm the packet */
};

/* Half-open, or assured */
enum stage { NEW, ANSWERED };

/* A summary of the bits of a record's state */
enum flow_state { STATE_NEW, STATE_ESTABLISHED, STATE_FIN, STATE_CLOSING };

/* The record of a connection, with its place, alias (if it has one) and counts. All zero: none. */
struct entry {
	bool of_this_packet; /* of a row: addresses and ports are those of its packet */
	enum stage stage;
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
	enum flow_path path[2]; /* by enum way, like the other arrays here */
	/* Only for records that a row inserts */
	enum container owner;
	bool older_generation;
	uint32_t idle; /* seconds since it was used */
	bool replied;
	bool with_data;
	bool settled; /* conntrack keeps it */
	enum device out[2];
	uint16_t path_mtu; /* 0: 1500 */
	uint32_t seen[2];  /* last packet that left the stack: 1 this second, 2 the last; 0: none */
	uint32_t looked_up; /* when the route was looked up, likewise */
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

/* Whether the programs can read what the kernel knows about devices: not without its BTF. */
bool fixture_sees_devices(void);
void fixture_unload(void);

/* The state that a row begins with: four containers, their ports, the interfaces, no connections,
 * masquerade ports 20000-29999. */
void fixture_reset(void);
void fixture_clear_flows(void);
struct owner fixture_owner(enum container container);

/* Runs a program on a frame; *frame becomes the output. Returns the verdict, TC_ACT_*;
 * FIXTURE_MARKED if mark or priority were changed; FIXTURE_BAD_SUM if the skb's own sum is
 * wrong now; or less than FIXTURE_REFUSED if the kernel does not accept such a frame. */
#define FIXTURE_BAD_SUM (-998)
#define FIXTURE_MARKED (-999)
#define FIXTURE_REFUSED (-1000)
int fixture_run(enum hook hook, enum device device, enum device came_in_by, struct frame *frame);

/* What the program leaves in skb->hash of a frame that it passes unchanged, and that has a mark. */
uint32_t fixture_hash_left(enum hook hook, enum device device, enum device came_in_by,
			   struct frame *frame);

/* Which mark of an earlier hook the next packets have. */
void fixture_set_mark(enum mark mark);

/* Whether frames have a sum as from a network card (CHECKSUM_COMPLETE) or none (CHECKSUM_NONE).
 * False: this kernel cannot, and nothing has changed. */
bool fixture_set_checksum_complete(bool complete);

/* The addresses that ADD or CHECK records of an interface, for kernels before 6.7. */
void fixture_set_addresses(enum device device, const char *address4, const char *address6);
/* Only its entry; user space tells the programs of that, too. */
void fixture_delete_interface(enum device device);
void fixture_tell_of_deletion(void);
void fixture_map_port(int protocol, const char *host, int host_port, const char *container,
		      int container_port, enum container owner);
/* For how long the firewall's rules have not changed, once a program has looked at them. False:
 * this kernel does not tell. */
bool fixture_rules_stand(uint32_t seconds);
/* As ADD and `repair` write down what the host's NAT takes: bits of enum nat_hook. */
void fixture_leave_to_nat(int protocol, const char *host, int host_port, uint32_t hooks);
/* Another container of the workload takes the port over. */
void fixture_replace(int protocol, const char *host, int host_port, const char *container,
		     int container_port, enum container owner);
void fixture_exclude(const char *address); /* as excludeInterfaces does */
/* The map of the host's addresses, which may differ from the real ones */
void fixture_add_host_address(const char *address);
void fixture_forget_host_addresses(void);
/* Another attachment has the same address; the endpoint is strict. */
void fixture_share_address(const char *address);
void fixture_make_strict(const char *address);
/* Makes two attachments those of one container. */
void fixture_make_one_container(enum container one, enum container other);
/* Deletes the veth without DEL. */
void fixture_remove_veth(enum container container);
void fixture_unmap_port(int protocol, const char *host, int host_port);
void fixture_set_masquerade_ports(uint16_t first, uint16_t last);
void fixture_set_endpoint(const char *address, enum container owner, uint8_t prefix_length,
			  bool masquerade);
void fixture_set_fast_path(enum container container, enum fast_path mode);
/* As `bpf-portmap drop-offload` does */
void fixture_drop_offload(void);
void fixture_without_fast_path(enum device device);
/* As an "uplinks" of ONE's network that does not name the device does, until the next reset. */
void fixture_refuse_one(enum device device);
/* Checks mark and priority after the last run. priority -1: unchanged. */
void fixture_check_context(bool mark_cleared, int priority);
/* The function fills in the policy's owner. */
void fixture_set_policy(enum container owner, struct policy policy);
struct address_range fixture_range(const char *address, uint8_t prefix_length, bool exception);
void fixture_kill(enum container container);
/* Lets container ONE's flows skip the stack. */
void fixture_offload_one(enum fast_path mode);
/* All connections get the present as the time of the last packet that left the stack. */
void fixture_let_leave_stack(void);
void fixture_renew(enum container container);     /* DEL and ADD again: another generation */
void fixture_add_again(enum container container); /* the same, with its addresses */
/* Inserts record, place, alias and counts as the programs would, in place of a record with the
 * same key. */
void fixture_put(const struct entry *entry);
/* Removes a record that must exist with place, alias and counts; or its alias only. */
void fixture_remove(const struct entry *entry);
void fixture_lose_alias(const struct entry *entry);
/* As if another CPU had been resetting the container's share when its half-open ones began */
void fixture_uncount(enum container container);
/* Makes all connections so much older. */
void fixture_age_flows(uint32_t seconds);
/* Calls it for the place of each assured connection. */
void fixture_change_places(void (*change)(struct assured *place));
/* So old that a packet assures them; for AFTER(). */
void fixture_let_last(enum container container);
/* The present second of the programs' clock */
uint32_t fixture_second(void);
void fixture_wait_for_next_second(void);
struct share fixture_share_of(enum container container);
struct usage fixture_usage(void);
/* How many external ports a container has towards a UDP port */
int fixture_ports_of(enum container container, const char *server, int server_port,
		     const char *host);

int fixture_count_held(void);
/* Makes all fragments so much older, or younger. */
void fixture_age_fragments(int seconds);

void fixture_address(uint8_t *address, const char *text);
/* Reads as many records as there is room for. */
void fixture_read_flows(struct stored_entries *stored);
/* Checks places, aliases and counts against the records, by row_fail(). */
void records_check(void);

/* The sum over all CPUs. */
void fixture_read_counters(struct counters *sum);
uint64_t fixture_mapping_flows(int protocol, const char *host, int host_port);
