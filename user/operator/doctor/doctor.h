/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor.h - what the checks of `bpf-portmap doctor` look at, and what they find. */
#pragma once

#include <jansson.h>

#include "host/interfaces.h"
#include "host/host.h"
#include "net/link.h"
#include "net/sockets.h"
#include "operator/kernel/drops.h"
#include "operator/kernel/namespaces.h"
#include "operator/print/format.h"
#include "operator/options.h"
#include "operator/view/mappings.h"
#include "operator/view/statistics.h"

/* In the order in which they are printed: the cause comes first. */
enum verdict {
	VERDICT_FAIL,
	VERDICT_WARN,
	VERDICT_COULD_NOT_LOOK,
	VERDICT_NOTE, /* neither good nor bad: what was left out, and why */
	VERDICT_OK,
	VERDICT_COUNT,
};

enum check_group {
	GROUP_HOST,
	GROUP_HOOKS,
	GROUP_PORT,
	GROUP_WAY,
	GROUP_MASQUERADE,
	GROUP_RECORDS,
	GROUP_COUNT,
};

/* What a check needs. Where that is missing the check is left out. */
enum check_needs {
	NEEDS_NOTHING,
	NEEDS_SIGHT, /* maps and interfaces can be read */
	NEEDS_MAPS,  /* there are maps: something was added before */
};

struct doctor;
struct subject;
struct conflist;
typedef void check_run(struct doctor *doctor);
typedef void check_subject(struct doctor *doctor, const struct subject *subject);
typedef void check_conflist(struct doctor *doctor, const struct conflist *list);

struct check {
	const char *name; /* in the output; never changed, as programs read it */
	enum check_group group;
	enum check_needs needs;
	const char *looked_at; /* one line */
	/* Exactly one of these is set. */
	check_run *run;
	check_subject *of_mapping;  /* for each mapping whose container lives */
	check_subject *of_endpoint; /* once for each container's address, with its first mapping */
	check_conflist *of_conflist;
};

extern const struct check checks[];
extern const size_t check_count;

struct finding {
	const struct check *check;
	const char *code; /* of --explain: the check's name, or more exactly what it has found */
	enum verdict verdict;
	char *text;   /* printable; of VERDICT_OK what was looked at */
	char *remedy; /* commands to paste, or a shell's comment; NULL: none */
	size_t more;  /* of the same check that are only counted; --all lists them */
	size_t more_places;
};

/* What is known of the inside of a container, by its veth. */
struct inside {
	bool is_read;
	struct link link; /* the container's end; ifindex 0: it is not found */
	bool stack_is_known[2], has_own_stack[2]; /* of IPv6 and IPv4: not the kernel's */
	bool has_sockets;
	struct socket_list sockets; /* read when they are asked for */
	bool was_probed[2]; /* by IPv6 and IPv4: a packet has shown whether the way to it is open */
};

struct conflist {
	char *path;
	json_t *json;         /* NULL: it is none */
	bool is_first, hides; /* runtimes take this one, and so ignore another one of its directory
				 that has our plugin */
};

/* A question that was sent while ports were probed (check_neighbours.c). */
struct asked {
	bool is_own; /* the host's address; else that of the next hop towards a client */
	const struct link *at;
	uint8_t address[CNI_ADDRESS_SIZE];
	int file; /* to read answers from; -1: it could not be sent */
};

/* What is read once, before the checks. Begins as {0}. */
struct doctor {
	const struct options *options;
	struct host host;
	struct view view;         /* of the same datapath */
	struct mappings mappings; /* of the ports that are asked about; a range is one */
	/* By mapping: it was tried; a packet has shown whether it is answered. */
	bool *was_tried, *was_probed;
	const struct interface_look *in; /* of --in; NULL: any */
	size_t sent;                     /* packets to mapped ports, and connections */
	size_t ports_probed;             /* mappings to which one was sent */
	struct prober *prober;           /* NULL: no packet was sent (probe.h) */
	struct asked *asked;
	size_t asked_count;
	int64_t asked_ms; /* when the last one was sent */
	struct host_look look;
	struct plan plan;       /* what ADD or `repair` would change */
	struct inside *insides; /* by their places in the look */
	struct namespaces namespaces;
	struct link_drops_list drops; /* when it began */
	struct conflist *conflists;
	size_t conflist_count;
	char default_uplink[2][IF_NAMESIZE]; /* of IPv6, of IPv4; "": no default route */

	const struct check *check; /* that runs now */
	const char *code;          /* of its next findings; NULL: its name */
	bool has_looked;           /* it has; else there is nothing that it could find in order */
	struct finding *findings;
	size_t finding_count;
	size_t suppressed[VERDICT_COUNT]; /* findings that are only counted */
	char *blind; /* why neither maps nor interfaces can be read; NULL: they were */
};

/* Runs the checks, for `stats --checks`. A check that could not be run is left out. */
void doctor_read_statuses(struct statistics *statistics);

/* Reads what the checks need. Where maps or interfaces cannot be read, `blind` says why, and the
 * checks that do without them can still run. */
void doctor_read(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

#define cleanup_doctor __attribute__((cleanup(doctor_release)))

/* Adds a finding of the check that runs. The remedy was made by cni_format(), and is freed; NULL:
 * none. What the check has reported already is not reported again; after the first few findings of
 * a check the others are only counted. */
void doctor_found(struct doctor *doctor, enum verdict verdict, char *remedy, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

/* Does the same for what was found at a place: "cause [place]". Places with the same cause share
 * one finding, which names all of them and what mends each. Takes over *remedy. */
void doctor_found_at(struct doctor *doctor, enum verdict verdict, char **remedy, const char *cause,
		     const char *place);

/* Returns the uplink by which clients come: that of the default route, or else the first. NULL:
 * there is none. */
const struct interface_look *doctor_usual_uplink(const struct doctor *doctor, bool ipv4);

/* Returns what is known of an interface, which may be gone; NULL: it is not in the map. */
const struct interface_look *doctor_interface(const struct doctor *doctor, uint32_t ifindex);

/* Returns whether the interface exists, and has this role in the map. */
static inline bool interface_has_role(const struct interface_look *interface,
				      enum interface_role role)
{
	return interface->is_known && !interface->is_gone && interface->entry.role == role;
}

/* A mapped port with its container. */
struct subject {
	const struct mapping *mapping;
	const struct container_info *container;
	const struct interface_look *veth;
	const struct interface_look *gateway; /* the bridge, or the veth where it routes */
	bool ipv4;                            /* of the container's address */
	char port[ENDPOINT_TEXT_SIZE + 16];   /* "*:8080/tcp", "*:9000-9099/udp" */
};

/* Fills in the subject. False: the mapping's container has gone, which check_owner() reports. */
bool doctor_subject(struct doctor *doctor, size_t mapping, struct subject *subject);
/* Fills in veth and gateway of the subject's container; false: it has gone. */
bool doctor_locate(const struct doctor *doctor, struct subject *subject);

/* Returns what is known of the container's inside; reads its end of the veth at the first call. */
struct inside *doctor_inside(struct doctor *doctor, const struct subject *subject);

/* Returns the container's namespace; NULL: it is not found. */
const struct namespace *doctor_namespace(const struct doctor *doctor,
					 const struct subject *subject);
/* Returns a socket for rtnetlink in the container's namespace, or NULL. */
struct netlink *doctor_enter(struct doctor *doctor, const struct subject *subject);

/* check_probe.c */
check_run check_probe;
/* check_neighbours.c */
check_run check_neighbours;
/* Asks at the uplink who has the host's address, to which the client sends, and that of the next
 * hop back to the client. */
void neighbours_ask(struct doctor *doctor, const struct link *uplink, const uint8_t *client,
		    const uint8_t *destination);
void neighbours_release(struct doctor *doctor);
/* check_connect.c */
check_run check_connect;
/* check_outwards.c */
check_run check_outwards;
/* check_host.c */
check_run check_bpffs, check_rights, check_pins, check_version, check_cgroup, check_lock;
/* check_hooks.c */
check_run check_uplinks, check_settled, check_foreign_behind, check_container_hooks, check_bridge,
	check_socket_hooks;
/* check_port.c */
check_run check_owner, check_nat, check_ephemeral, check_ports_left;
check_subject check_host_ip;
/* check_way.c */
check_subject check_way, check_listener, check_mtu;
check_run check_conntrack, check_ipsec, check_queues, check_drops;
/* check_records.c */
check_run check_abandoned, check_unfinished, check_source_addresses, check_tables;
/* what stands in files: */
void doctor_read_conflists(struct doctor *doctor);
check_conflist check_conflist_syntax, check_conflist_first, check_conflist_portmap,
	check_conflist_capability, check_conflist_masquerade;
check_run check_named_uplinks;

/* resolve.c: what address a container finds for a name: by its own /etc/hosts and resolv.conf, and
 * from within its network namespace. */
check_run check_resolver;

struct resolved {
	bool is_found;
	uint8_t address[CNI_ADDRESS_SIZE]; /* of the subject's family */
	char said[160];                    /* who said so: "/etc/hosts"; or why there is none */
};

/* Takes three seconds, and one for the server that is asked last, where none answers. */
void resolve_name(struct doctor *doctor, const struct subject *subject, const char *name,
		  struct resolved *resolved);
