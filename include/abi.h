/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h - what the programs in the kernel and the plugin say to each other:
 * names, keys and values of the pinned maps.
 *
 * Both sides include this file; BPF code after vmlinux.h, user code after
 * <linux/types.h>. Whoever reads the maps with bpftool reads these names too,
 * hence: ports in host byte order; addresses as 16 bytes in network order, an
 * IPv4 address as ::ffff:a.b.c.d (RFC 4291 2.5.5.2); packed enums; no unions;
 * padding always named and always zero, because it is part of the hash.
 *
 * Changing anything here changes LAYOUT.
 */
#ifndef BPF_PORTMAP_ABI_H
#define BPF_PORTMAP_ABI_H

#include "counters.h"

#define LAYOUT 2

/* Where everything is pinned; another network namespace that shares the bpffs
 * keeps its own set in NETNS_DIRECTORY<cookie> below it. */
#define PIN_DIRECTORY "bpf-portmap"
#define NETNS_DIRECTORY "netns-"

#define MAX_PORTMAPS 65536
#define MAX_SLOTS 16384
#define MAX_ENDPOINTS 65536
#define MAX_INTERFACES 32768
#define MAX_HOST_ADDRESSES 65536
#define MAX_NETWORKS 1024
#define MAX_NEW_FLOWS 65536
#define MIN_FLOWS 16384
#define MAX_FLOWS 524288
#define MAX_FRAGMENTED 8192
#define MAX_HELD 512 /* a power of two */
#define MAX_SOCKET_FLOWS 32768
#define PORT_WORDS (65536 / 64) /* a bit for each port */
/* So many pairs for so many entries in flows: 0 is no number. */
#define FLOW_PAIRS(flows) ((flows) / 2 + 1)

#define ATTACHMENT_KEY_SIZE 256
#define PROGRAM_VERSION_SIZE 32
#define WORKLOAD_NAMESPACE_SIZE 64
#define WORKLOAD_NAME_SIZE 256
#define MASQUERADE_RANGES 16
#define POLICY_RANGES 32
#define INTERFACE_NAMES_SIZE 1024
#define POLICY_ADDRESSES 8
#define HELD_SIZE 1584

/* IANA protocol numbers of what is translated. */
enum protocol {
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_SCTP = 132,
} __attribute__((packed));

/* Which side of the IP stack a tuple was seen on. */
enum direction {
	DIRECTION_IN = 1,  /* before routing: tc ingress */
	DIRECTION_OUT = 2, /* after routing: tc egress */
} __attribute__((packed));

enum flow_kind {
	FLOW_MAPPING = 1,    /* to a mapped port, and its replies */
	FLOW_MASQUERADE = 2, /* begun by a container, and its replies */
	/* to a container's own address, or from that of a strict one: untranslated */
	FLOW_DIRECT = 3,
	FLOW_HOST = 4,    /* replies to a socket of the host */
	FLOW_FOREIGN = 5, /* begun by somebody behind another NAT of this host, with its address */
} __attribute__((packed));

enum flow_state {
	STATE_NEW = 0,         /* not answered yet: lives in flows_new */
	STATE_ESTABLISHED = 1, /* both directions seen */
	STATE_FIN = 2,         /* TCP: one side has sent FIN */
	STATE_CLOSING = 3,     /* TCP: RST, or FIN from both sides */
} __attribute__((packed));

enum interface_role {
	ROLE_UPLINK = 1,   /* mapped ports are reached and containers leave here */
	ROLE_BRIDGE = 2,   /* the same, and neighbours enter here */
	ROLE_PORT = 3,     /* host side of a container's veth, a bridge's port */
	ROLE_ROUTED = 4,   /* host side of a container's veth that routes (ptp) */
	ROLE_EXCLUDED = 5, /* left alone on purpose: no programs, and no masquerade out there */
} __attribute__((packed));

enum attachment_state {
	ATTACHMENT_ADDING = 1, /* the intent: whatever it owns is not valid yet */
	ATTACHMENT_READY = 2,
} __attribute__((packed));

/* What Kubernetes, Nomad or Podman calls a container. */
enum workload_kind {
	WORKLOAD_NONE = 0,  /* none of them: the container ID is all that is known */
	WORKLOAD_POD = 1,   /* Kubernetes: namespace and name of the pod */
	WORKLOAD_NOMAD = 2, /* Nomad: namespace, and job/group */
	/* Podman 4: its name, in the argument that is the pod's in Kubernetes, and no namespace */
	WORKLOAD_CONTAINER = 3,
} __attribute__((packed));

/* fastPath: which flows of an attachment skip the IP stack. */
enum fast_path {
	FAST_PATH_OFF = 0,
	FAST_PATH_ESTABLISHED = 1, /* those that the stack has let through in both directions */
	FAST_PATH_ALWAYS = 2,      /* those to a mapped port from their first packet on, too */
} __attribute__((packed));

/* How programs hang on an interface. */
enum attach_mode {
	ATTACH_AUTO = 0, /* TCX where the kernel has it, else filters */
	ATTACH_CLSACT = 1,
	ATTACH_TCX = 2,
} __attribute__((packed));

/* How packets of a flow, in one direction, go on from the hook where they enter. */
enum flow_path {
	PATH_UNDECIDED = 0, /* through the IP stack, so far */
	PATH_STACK = 1,     /* through the IP stack, for good */
	PATH_CONTAINER = 2, /* straight into the container behind out_ifindex */
	PATH_OUT = 3,       /* straight out of out_ifindex */
} __attribute__((packed));

/* All that an attachment has carries its owner. Valid only while slots[slot]
 * is live and has the same generation. {0, 0} belongs to nobody. */
struct owner {
	__u32 slot;
	__u32 generation;
} __attribute__((aligned(8)));

struct port_range {
	__u16 first;
	__u16 last; /* inclusive; {0, 0}: unused */
} __attribute__((aligned(4)));

/* portmaps: HASH. The one owner of a host port. */
struct portmap_key {
	enum protocol protocol;
	__u8 reserved[5];
	__u16 host_port;
	__u8 host_address[16]; /* ::ffff:0.0.0.0: any IPv4 address, :: any IPv6 address of the host
				*/
} __attribute__((aligned(8)));

struct portmap {
	struct owner owner;
	__u8 container_address[16];
	__u16 container_port;
	__u8 localhost;        /* 1: processes of the host reach it, at loopback addresses too */
	__u8 reserved_on_host; /* reserveHostPorts: processes of the host cannot bind to it */
	__u8 reserved[4];
	__u64 flows; /* that began through this mapping */
};

/* published_ports: ARRAY of PORT_WORDS words, a bit for each port. Set before a mapping of the
 * port is written, and never cleared: most packets and sockets need not look into portmaps. */

/* slots: ARRAY by slot number. Slot 0 is nobody's; its `flows` counts the host's own. The
 * programs count `flows`, and read the first 32 bytes; `container` only where a source address is
 * not the sender's own. User space never rewrites a slot that is live, save `live`. */
struct slot {
	__u32 generation;
	__u32 live;
	__u32 ifindex;       /* of the veth's host side */
	__u8 host_mac[6];    /* of the veth's host side: an ifindex can come again */
	__u8 gateway_mac[6]; /* where frames to the gateway went at ADD: the bridge's, or host_mac
			      */
	__u32 flows;         /* pairs it has in flow_pairs */
	/* OFF also where its bandwidth may be limited, and the programs cannot see it */
	enum fast_path fast_path;
	__u8 reserved[3];
	char attachment[ATTACHMENT_KEY_SIZE];
	__u64 container; /* a digest of the container's ID: the same in its slots for other networks
			  */
} __attribute__((aligned(8)));

/* veths: DEVMAP_HASH by slot number, the ifindex of the veth's host side. The kernel empties the
 * entry when that interface goes, whoever deletes it: without DEL nothing else tells that an
 * owner is dead. Written before the slot goes live. */

/* endpoints: HASH by container address. */
struct endpoint_key {
	__u8 address[16];
} __attribute__((aligned(8)));

struct endpoint {
	struct owner owner;
	__u8 prefix_length; /* of the address's own subnet, counted in its own family */
	__u8 masquerade;    /* 1: a flow it begins leaves with the outgoing interface's address */
	__u8 strict;        /* 1: from an uplink it is reached by its mapped ports only */
	__u8 shared;        /* 1: another attachment has this address too, and goes on using it */
	__u8 reserved[4];
};

/* Holds addresses of its own family alone: ::/0 is no range of IPv4. */
struct address_range {
	__u8 address[16];   /* network order, host bits zero */
	__u8 prefix_length; /* in the address's own family */
	__u8 exception;     /* 1: what lies in here is not meant ("!10.1.0.0/16") */
	__u8 reserved[6];
} __attribute__((aligned(8)));

/* policies: HASH by slot number. What an attachment's configuration says about its flows
 * where that is not the default; an attachment with nothing but defaults has no entry.
 * Written before the slot goes live, never changed, deleted after the slot is dead. Ranges
 * are ordered, the longest prefix first: the first that holds an address decides. */
struct policy {
	struct owner owner;
	__u32 max_flows;          /* maxFlows: answered flows at a time; 0: half the table */
	__u8 masquerade_all;      /* masqAll: who comes by a mapping is masqueraded too */
	__u8 keep_hairpin_source; /* snat false: who reaches itself by a mapping is not */
	__u8 source4_count;       /* snatAddresses: so many of the arrays below are used */
	__u8 source6_count;
	__u8 unmasqueraded_count; /* nonMasqueradeCIDRs */
	__u8 source_range_count;  /* sourceRanges; 0: everybody may reach the mapped ports */
	__u8 excluded_count;      /* excludeCIDRs: host addresses that are never mapped */
	__u8 reserved[5];
	struct port_range masquerade_ports[MASQUERADE_RANGES]; /* masqPorts; empty: the host's */
	__u8 sources4[POLICY_ADDRESSES][16];
	__u8 sources6[POLICY_ADDRESSES][16];
	struct address_range unmasqueraded[POLICY_RANGES];
	struct address_range source_ranges[POLICY_RANGES];
	struct address_range excluded[POLICY_RANGES];
} __attribute__((aligned(8)));

/* interfaces: HASH by ifindex. Every interface of the host that has been
 * classified; what is not in here has not been seen. */
struct interface {
	struct owner owner; /* of a container's veth, else {0, 0} */
	enum interface_role role;
	__u8 without_link_header; /* 1: frames begin with the IP header (tun, WireGuard, PPP) */
	__u8 bridge_mac[6];       /* ROLE_PORT: its bridge's MAC, where frames to the gateway go */
	__u32 bridge_ifindex;     /* ROLE_PORT: its bridge */
	__u8 addresses_excluded;  /* 1: excludeInterfaces of some list: none of them is mapped */
	/* 1: programs that are not ours, here or at its bridge, must see what passes. Written by
	 * user space. */
	__u8 without_fast_path;
	/* 1, at a container's veth: the same for qdiscs, filters and IPsec policies. Written by
	 * user space, and by the programs, which look once a second (bpf/device.h). */
	__u8 watched;
	enum attach_mode attach_mode; /* as the configuration had it at the last ADD */
	/* The fallback where the kernel cannot say which source routing would choose
	 * (BPF_FIB_LOOKUP_SRC: since 6.7); all zero: none. Refreshed by ADD and CHECK. */
	__u8 address4[16];
	__u8 address6[16];
	__u32 looked_at; /* CLOCK_MONOTONIC, seconds: when a program last looked for `watched` */
	__u32 reserved3;
} __attribute__((aligned(8)));

/* host_addresses: HASH. What is local to routing, as it was at the last ADD, CHECK or
 * attach, loopback and IPv6 link-local addresses left out: socket hooks cannot ask routing.
 * No port is mapped at an excluded one: those of excluded interfaces (a service's, on
 * kube-ipvs0) and subnets' broadcast addresses. The entry :: is no address: its digest is
 * that of all others, so that nobody need read them to know that they are right. */
struct host_address_key {
	__u8 address[16];
} __attribute__((aligned(8)));

struct host_address {
	__u64 digest;
	__u32 ifindex; /* whose it is */
	__u8 excluded; /* 1: no port is mapped at it */
	__u8 reserved[3];
};

/* networks: HASH by the list's name, zero-filled. What the list said at its last ADD, for
 * who must classify interfaces without a configuration at hand. Names and globs, each ended
 * by a zero byte. */
struct network_key {
	char name[ATTACHMENT_KEY_SIZE];
};

struct network {
	char uplinks[INTERFACE_NAMES_SIZE]; /* empty: every interface that can be one */
	char excluded_interfaces[INTERFACE_NAMES_SIZE];
};

/* flows: HASH, answered flows: nothing is ever pushed out. flows_new: LRU_HASH, half-open
 * ones, so that a flood pushes out nothing but its like. A tuple is what a hook sees. */
struct flow_key {
	__u8 source[16];
	__u8 destination[16];
	/* ICMP echo: the identifier is the port of the side that asks, the other is 0 */
	__u16 source_port;
	__u16 destination_port;
	enum protocol protocol;
	enum direction direction;
	__u8 reserved[2];
} __attribute__((aligned(8)));

/* One translated direction at one side. DIRECTION_IN: `address` and `port`
 * replace the destination, `peer_port` the source port. DIRECTION_OUT: `address`
 * and `port` replace the source, `peer_port` the destination port. What equals
 * the key is not changed. The other entry of the pair follows from key and value. */
struct flow {
	struct owner owner; /* of the container's side; FLOW_HOST and FLOW_FOREIGN: {0, 0} */
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	enum flow_kind kind;
	enum flow_state state;
	__u8 reply;      /* 1: the half that packets back to the initiator take */
	__u8 answered;   /* 1: a packet has come back to the initiator */
	__u32 last_seen; /* CLOCK_MONOTONIC, seconds; written at most once a second */
	__u32 pair;      /* in flows: its number in flow_pairs */
	/* Where it leaves, as of the second (CLOCK_MONOTONIC) it was looked up in: on the way
	 * back through a mapping, the interface that routing wants with the new source, and of
	 * a masqueraded flow the one that routing took; on the fast path (`path`) the uplink,
	 * or the host side of the container's veth */
	__u32 out_ifindex;
	__u32 out_looked_up;
	/* Since the flow was answered; those that took a shortcut (shortcut.h) are added later,
	 * or never if another flow took its place */
	__u64 packets;
	__u64 bytes;
	/* TCP, what has gone this way (RFC 9293 3.3.1) */
	__u32 sequence_end; /* behind the last of the sequence space */
	__u32 acknowledged; /* the last acknowledgment */
	__u8 sequence_known;
	__u8 acknowledged_known;
	__u8 fin;     /* 1: a FIN */
	__u8 awaited; /* 1: closed by RST, or opened by SYN again, and silent since */
	/* 1: FLOW_DIRECT that the stack has not let through yet: it has no other half */
	__u8 unconfirmed;
	enum flow_path path;
	__u16 path_mtu;           /* of the IP packet, where it leaves */
	__u8 path_destination[6]; /* MACs of the frame there; all zero: the neighbour is not known
				   */
	__u8 path_source[6];
	/* Of a half that enters: where its packets came in that the stack let through. From
	 * elsewhere they are the stack's. */
	__u32 in_ifindex;
	__u32 reserved;
	/* CLOCK_MONOTONIC, seconds: when one of its packets left the IP stack last, still with
	 * the tuple of this flow; 0: none has */
	__u32 left_stack;
};

enum pair_state {
	PAIR_FREE = 0,
	PAIR_TAKEN = 1,
	PAIR_BUSY = 2, /* being given to another flow */
};

/* flow_pairs: ARRAY. One for each two entries in flows, which are a flow's two halves: who
 * has none is not let in, and whose flow is dead is reclaimed. Number 0 is never used. */
struct flow_pair {
	__u32 state;        /* enum pair_state */
	__u32 alive_before; /* CLOCK_MONOTONIC, seconds: until then only a close can end it */
	struct owner owner;
	struct flow_key key; /* of either half; the other one follows from it */
} __attribute__((aligned(8)));

enum fragment_fate {
	FRAGMENT_WAITING = 0, /* the first one has not come: nobody knows yet */
	FRAGMENT_PASSED = 1,
	FRAGMENT_TRANSLATED = 2,
	FRAGMENT_DROPPED = 3,
	FRAGMENT_LIFTED = 4, /* a reply to a neighbour: into the IP stack */
	FRAGMENT_LEFT = 5,   /* past the IP stack, with another source */
} __attribute__((packed));

/* fragments: LRU_HASH, datagrams that come in pieces, as a hook sees them. Only the first
 * fragment has ports: what is done to it is done to those that come by the same interface. */
struct fragment_key {
	__u8 source[16];
	__u8 destination[16];
	__u32 identification;
	__u32 ifindex;          /* by which it came; DIRECTION_OUT: 0 */
	enum protocol protocol; /* 0: IPv6, where it is no part of the identity (RFC 8200 4.5) */
	enum direction direction;
	__u8 reserved[6];
} __attribute__((aligned(8)));

struct fragment {
	__u8 address[16];  /* FRAGMENT_TRANSLATED, FRAGMENT_LEFT: as in struct flow */
	__u32 out_ifindex; /* to leave by this interface instead; 0: no */
	__u32 last_seen;   /* CLOCK_MONOTONIC, seconds */
	__u32 newest;      /* the ticket of the one held last; 0: none */
	__u32 held;        /* how many were */
	enum fragment_fate fate;
	enum flow_path path;      /* past the IP stack: the datagram's others, too */
	__u8 path_destination[6]; /* MACs */
	__u8 path_source[6];
	__u8 reserved[2];
} __attribute__((aligned(8)));

/* held: ARRAY. Fragments that came before their datagram's first one, from the IP header on. */
struct held_fragment {
	__u32 ticket; /* a random number whose remainder is the index; 0: free, 1: being written */
	__u32 previous; /* the ticket of the one held before it, of the same datagram; 0: none */
	__u32 since;    /* CLOCK_MONOTONIC, seconds */
	__u32 length;
	__u32 ifindex; /* by which it came: it is sent in again there or nowhere */
	__u32 reserved;
	__u8 bytes[HELD_SIZE];
} __attribute__((aligned(8)));

/* socket_flows: LRU_HASH. A socket of the host that asked for a mapped port is connected,
 * or sends, to the container itself; the value is what the program asked for, and believes
 * to talk to. */
struct socket_flow_key {
	__u64 cookie; /* SO_COOKIE of the socket */
	__u8 container_address[16];
	__u16 container_port;
	enum protocol protocol;
	__u8 reserved[5];
} __attribute__((aligned(8)));

struct socket_flow {
	__u8 address[16];
	__u16 port;
	__u8 reserved[6];
} __attribute__((aligned(8)));

/* attachments: HASH by "network/containerID/ifname", zero-filled. */
struct attachment_key {
	char name[ATTACHMENT_KEY_SIZE];
};

/* As the runtime said at ADD, in CNI_ARGS: printable ASCII, cut where it is too long, zeros behind
 * it. */
struct workload {
	enum workload_kind kind;
	__u8 reserved[7];
	char namespace[WORKLOAD_NAMESPACE_SIZE];
	char name[WORKLOAD_NAME_SIZE];
};

struct attachment {
	struct owner owner;
	__u64 since;   /* CLOCK_REALTIME, seconds */
	__u32 ifindex; /* of the veth's host side */
	__u8 host_mac[6];
	enum attachment_state state;
	__u8 reserved;
	__u32 host_ports; /* entries in portmaps it claimed */
	__u32 endpoints;  /* entries in endpoints; 0: not known */
	struct workload workload;
};

/* meta: ARRAY of one. */
struct meta {
	__u32 layout;
	__u32 complete;     /* written last: everything is loaded, pinned, consistent */
	__u64 netns_cookie; /* SO_NETNS_COOKIE of the host this set belongs to */
	__u32 generation;   /* last one given out; never goes back */
	__u32 next_slot;    /* where to look for a free slot first */
	char program_version[PROGRAM_VERSION_SIZE];
	/* Ports a masqueraded flow may leave with, where its policy does not say */
	struct port_range masquerade_ports[MASQUERADE_RANGES];
	__u64 port_seed; /* random, written once: no outsider can tell which port comes next */
	/* CLOCK_MONOTONIC, seconds: what left the stack in this second or before does not count */
	__u32 offload_dropped;
	__u32 sees_devices; /* 1: the programs can look for qdiscs and filters themselves */
	/* 1: the programs have met a mapping or flow of an owner whose veth is gone. Written by
	 * them; by user space when it looks for such owners. */
	__u32 owner_gone;
	__u32 reserved;
} __attribute__((aligned(8)));

/* noticed: ARRAY of one. What the programs have done at least once, so that nobody who does
 * not use it pays for looking whether it concerns him. Written by the programs alone. */
struct noticed {
	__u64 masquerade_ports[PORT_WORDS]; /* a bit each: masqueraded flows have left with it */
	__u64 masquerade_all;               /* 1: masqAll has had something to do */
	/* A bit each: a UDP socket was connected to this port of a local address, be it
	 * mapped or not */
	__u64 local_udp_ports[PORT_WORDS];
	/* A bit each: socket_flows has had an entry with this port */
	__u64 local_container_ports[PORT_WORDS];
};

/* counters: PERCPU_ARRAY of one. */
struct counters {
#define X(name, meaning) __u64 name;
	COUNTERS(X)
#undef X
};

#define ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is part of layout " \
						     "2")

ASSERT_SIZE(struct owner, 8);
ASSERT_SIZE(struct portmap_key, 24);
ASSERT_SIZE(struct portmap, 40);
ASSERT_SIZE(struct slot, 40 + ATTACHMENT_KEY_SIZE);
ASSERT_SIZE(struct endpoint_key, 16);
ASSERT_SIZE(struct endpoint, 16);
ASSERT_SIZE(struct policy,
	    24 + 4 * MASQUERADE_RANGES + 32 * POLICY_ADDRESSES + 3 * 24 * POLICY_RANGES);
ASSERT_SIZE(struct interface, 64);
ASSERT_SIZE(struct host_address_key, 16);
ASSERT_SIZE(struct host_address, 16);
ASSERT_SIZE(struct socket_flow_key, 32);
ASSERT_SIZE(struct socket_flow, 24);
ASSERT_SIZE(struct network, 2 * INTERFACE_NAMES_SIZE);
ASSERT_SIZE(struct flow_key, 40);
ASSERT_SIZE(struct fragment_key, 48);
ASSERT_SIZE(struct fragment, 48);
ASSERT_SIZE(struct held_fragment, 1608);
ASSERT_SIZE(struct flow, 104);
ASSERT_SIZE(struct flow_pair, 56);
ASSERT_SIZE(struct workload, 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct attachment, 40 + 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct noticed, 8 + 3 * 8 * PORT_WORDS);
ASSERT_SIZE(struct meta, 48 + PROGRAM_VERSION_SIZE + 4 * MASQUERADE_RANGES);

#endif
