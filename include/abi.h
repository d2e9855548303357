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

#define LAYOUT 3

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
#define MIN_ASSURED 16384
#define MAX_ASSURED 262144
#define MIN_HALF_OPEN 32768
#define MAX_FRAGMENTED 8192
#define MAX_HELD 512 /* a power of two */
#define MAX_SOCKET_FLOWS 32768
#define PORT_WORDS (65536 / 64) /* a bit for each port */
#define SHARES 65536            /* a power of two: hashed counters */
#define EXTERNAL_ADDRESS_WORDS 64
/* Half-open connections for so many assured ones, and entries in connections and aliases. */
#define HALF_OPEN(assured) ((assured) / 4 > MIN_HALF_OPEN ? (assured) / 4 : MIN_HALF_OPEN)
#define CONNECTIONS(assured) ((assured) + HALF_OPEN(assured) + 1024)

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
	FLOW_MAPPING = 1,    /* to a mapped port */
	FLOW_MASQUERADE = 2, /* leaves with an address of the host */
	/* to a container's own address, or from that of a strict one: untranslated */
	FLOW_DIRECT = 3,
	FLOW_HOST = 4,    /* of a socket of the host */
	FLOW_FOREIGN = 5, /* translated by another NAT of this host, to the host's address */
} __attribute__((packed));

/* What has happened to a connection: bits of `state`, set and cleared by atomic operations. A
 * bit of the outside is that of the inside shifted by one. */
enum connection_state {
	STATE_REPLIED = 1 << 0,     /* a packet has come back to the side that began */
	STATE_ASSURED = 1 << 1,     /* and that side has gone on: it has a place in `assured` */
	STATE_COUNTED = 1 << 2,     /* it counts in the shares of its owner and client */
	STATE_VOID = 1 << 3,        /* it has ended, or has lost its external tuple */
	STATE_UNCONFIRMED = 1 << 4, /* FLOW_DIRECT that the IP stack has not let through yet */
	STATE_CHARGED_OUT = 1 << 5, /* it counts as one that its owner began */
	STATE_DATA = 1 << 6,        /* TCP: payload was sent */
	/* TCP: this side has sent FIN */
	STATE_FIN_INSIDE = 1 << 8,
	STATE_FIN_OUTSIDE = 1 << 9,
	/* TCP: closed by RST, or opened by SYN again, and nothing heard from this side since */
	STATE_AWAITED_INSIDE = 1 << 10,
	STATE_AWAITED_OUTSIDE = 1 << 11,
	/* TCP: `sequence_end`, `acknowledged` of this side are known */
	STATE_SEQUENCE_INSIDE = 1 << 12,
	STATE_SEQUENCE_OUTSIDE = 1 << 13,
	STATE_ACKNOWLEDGED_INSIDE = 1 << 14,
	STATE_ACKNOWLEDGED_OUTSIDE = 1 << 15,
	/* TCP: this side has sent a SYN though connected, which the other one has not answered */
	STATE_SYN_INSIDE = 1 << 16,
	STATE_SYN_OUTSIDE = 1 << 17,
};

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

/* slots: ARRAY by slot number. Slot 0 is nobody's. The programs read the first 32 bytes;
 * `container` only where a source address is not the sender's own. User space never rewrites a
 * slot that is live, save `live`. */
struct slot {
	__u32 generation;
	__u32 live;
	__u32 ifindex;       /* of the veth's host side */
	__u8 host_mac[6];    /* of the veth's host side: an ifindex can come again */
	__u8 gateway_mac[6]; /* where frames to the gateway went at ADD: the bridge's, or host_mac
			      */
	__u32 reserved;
	/* OFF also where its bandwidth may be limited, and the programs cannot see it */
	enum fast_path fast_path;
	__u8 has_policy; /* 1: there is an entry in policies */
	__u8 reserved2[2];
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

/* policies: HASH by slot number. What an attachment's configuration says about its connections
 * where that is not the default; an attachment with nothing but defaults has no entry.
 * Written before the slot goes live, never changed, deleted after the slot is dead. Ranges
 * are ordered, the longest prefix first: the first that holds an address decides. */
struct policy {
	struct owner owner;
	__u32 max_flows;          /* maxFlows: assured connections at a time; 0: its share */
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

/*
 * connections: HASH. One record for each connection, as the IP stack sees it: without NAT, which is
 * the same tuple in both directions. The inside is the container's side (of FLOW_HOST and
 * FLOW_FOREIGN the host's), the outside its peer.
 */
struct connection_key {
	__u8 inside[16];
	__u8 outside[16];
	/* ICMP echo: the identifier is the port of the side that asks, the other is 0 */
	__u16 inside_port;
	__u16 outside_port;
	enum protocol protocol;
	__u8 reserved[3];
} __attribute__((aligned(8)));

/* Which way a packet goes; index of what a record has twice. */
enum way {
	OUTWARDS = 0, /* from the inside */
	INWARDS = 1,
};

/* TCP: what one side has sent (RFC 9293 3.3.1) */
struct tcp_numbers {
	__u32 sequence_end; /* behind the last of the sequence space */
	__u32 acknowledged; /* the last acknowledgment */
};

/* Where packets of one way leave. MACs and MTU are those of the fast path. */
struct leave {
	/* As of the second it was looked up in. Of replies through a mapping: the interface that
	 * routing wants with their new source; of a masqueraded connection: the one that routing
	 * took; on the fast path: the uplink, or the host side of the container's veth. */
	__u32 ifindex;
	/* CLOCK_MONOTONIC, seconds: when a packet left the IP stack last with the very tuple that
	 * this record expects there; 0: none has */
	__u32 left_stack;
	__u16 looked_up;     /* CLOCK_MONOTONIC, seconds, the low 16 bits */
	__u16 mtu;           /* of the IP packet; 0: not known */
	__u8 destination[6]; /* MACs; all zero: the neighbour is not known */
	__u8 source[6];
} __attribute__((aligned(8)));

/* A packet inwards that has {external_address, external_port} as destination and peer_port as
 * source port gets those of the inside, and the key's outside_port; one outwards the reverse. */
struct connection {
	struct owner owner; /* FLOW_HOST and FLOW_FOREIGN: {0, 0} */
	/* The low half of the owner's generation, and 15 random bits: a record that takes this
	 * memory next has another one. Never 0, but where it is deleted, nor 1. */
	__u32 id;
	__u32 state; /* enum connection_state */
	__u8 external_address[16];
	__u16 external_port;
	__u16 peer_port; /* of the outside on the wire */
	enum flow_kind kind;
	__u8 begun_inside;      /* 1: the inside has sent the first packet */
	enum flow_path path[2]; /* by enum way */
	__u32 last_seen;        /* CLOCK_MONOTONIC, seconds; written at most once a second */
	__u32 place;            /* its number in half_open or, with STATE_ASSURED, assured */
	/* Where packets came in that the stack let inwards. From elsewhere they are the stack's. */
	__u32 in_ifindex;
	/* By enum way, since it was assured; of those that took a memo (flow_cache.h) some are
	 * added late, or never. Packets are counted modulo 2^32. */
	__u32 packets[2];
	__u32 reserved;
	__u64 bytes[2];
	struct tcp_numbers tcp[2]; /* of the inside, of the outside */
	struct leave leave[2];     /* by enum way */
} __attribute__((aligned(8)));

/*
 * aliases: HASH. External tuples that lead to a connection where no mapping does: those of
 * masqueraded connections, of clients whose port had to move, and of the host's own. The key is
 * made as that of a connection, with the external address and port as inside; who inserts it first
 * has the port.
 */
struct alias {
	__u8 inside[16];    /* as in the connection's key */
	struct owner owner; /* whose ports are counted in port_shares; {0, 0}: nobody's */
	__u16 inside_port;
	__u16 outside_port;
	__u32 id;   /* the connection's */
	__u32 made; /* CLOCK_MONOTONIC, seconds */
	__u32 reserved;
} __attribute__((aligned(8)));

/* half_open: ARRAY from 1. A ring: who begins a connection takes the next place, and ends the one
 * that has it if that is still half-open. */
struct half_open {
	struct connection_key key;
	__u32 id;   /* of the connection; 0: free, 1: being changed */
	__u32 slot; /* of its owner */
} __attribute__((aligned(8)));

/* assured: ARRAY from 1. Where there is no place a connection is not assured; one is given away
 * when its connection is dead or closed. */
struct assured {
	struct connection_key key;
	__u32 id; /* of the connection; 0: free, 1: being changed */
	/* CLOCK_MONOTONIC, seconds: before then the hand need not look at the connection */
	__u32 protected_until;
	__u16 slot; /* of its owner */
	__u16 reserved[3];
} __attribute__((aligned(8)));

/* shares: ARRAY by slot number. What the owner of this generation has. */
struct share {
	__u32 generation;
	__u32 in;        /* connections with STATE_COUNTED that others began */
	__u32 out;       /* the same, begun by itself */
	__u32 half_open; /* places in half_open */
};

/* usage: ARRAY of one. */
struct usage {
	__u32 assured; /* connections with STATE_COUNTED */
	__u32 hogs;    /* accounts, `in` or `out` of a share, with a 16th of the table or more */
	/* The place that was looked at last. Two CPUs may write it at once: then some are looked
	 * at twice. */
	__u32 half_open_hand;
	__u32 assured_hand;
	__u32 clean_hand;
	/* CLOCK_MONOTONIC, tenths of a second */
	__u32 cleaned;  /* dead ones were looked for */
	__u32 searched; /* a place was looked for where few are free */
};

/* client_shares: ARRAY of SHARES. Assured connections that a client has to an owner, by a hash of
 * both. */
/* port_shares: ARRAY of SHARES. Ports of masqueraded connections to one port of one server, by a
 * hash of these: of all owners, and, by another hash, of one. */
struct port_share {
	__u32 ports;
	__u32 none_left; /* CLOCK_MONOTONIC, seconds: when no port was found last */
};

/* What a packet gets. DIRECTION_IN: address and port replace the destination, peer_port the source
 * port. DIRECTION_OUT: address and port replace the source, peer_port the destination port. */
struct translation {
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	__u32 out_ifindex;         /* send by this interface instead; 0: no. On a path: its end */
	enum flow_path path;       /* PATH_CONTAINER, PATH_OUT: past the IP stack */
	__u8 report;               /* 1: to be told of where the packet leaves the stack */
	__u8 frame_destination[6]; /* on a path: MACs, as a frame begins; zero: not known */
	__u8 frame_source[6];
	__u8 reserved[2];
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
	struct translation
		translation; /* of FRAGMENT_TRANSLATED and FRAGMENT_LEFT, without ports */
	__u32 last_seen;     /* CLOCK_MONOTONIC, seconds */
	__u32 newest;        /* the ticket of the one held last; 0: none */
	__u32 held;          /* how many were */
	enum fragment_fate fate;
	__u8 reserved[3];
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
	/* 1: the programs have met a mapping or connection of an owner whose veth is gone. Written
	 * by them; by user space when it looks for such owners. */
	__u32 owner_gone;
	__u32 reserved;
} __attribute__((aligned(8)));

/* endpoint_addresses: ARRAY of PORT_WORDS words, a bit for each address_hash() of an endpoint.
 * Set before the endpoint is written, and never cleared: most packets need not look for one. */

/* noticed: ARRAY of one. What the programs have done at least once, so that nobody who does
 * not use it pays for looking whether it concerns him. Written by the programs alone. */
struct noticed {
	__u64 external_ports[PORT_WORDS]; /* a bit each: keys of aliases have this port */
	__u64 masquerade_all;             /* 1: masqAll has had something to do */
	/* A bit each: a UDP socket was connected to this port of a local address, be it
	 * mapped or not */
	__u64 local_udp_ports[PORT_WORDS];
	/* A bit each: socket_flows has had an entry with this port */
	__u64 local_container_ports[PORT_WORDS];
	/* A bit for each address_hash(), less its low bits: keys of aliases have this address */
	__u64 external_addresses[EXTERNAL_ADDRESS_WORDS];
};

/* 16 bits of an address of 16 bytes, given as two halves in memory's order. */
static inline __attribute__((always_inline)) __u16 address_hash(__u64 high, __u64 low)
{
	__u64 hash = (high * 0x9e3779b97f4a7c15ULL) ^ low;

	return (__u16)((hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL >> 48);
}

/* counters: PERCPU_ARRAY of one. */
struct counters {
#define X(name, meaning) __u64 name;
	COUNTERS(X)
#undef X
};

#define ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " is part of layout " \
						     "3")

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
ASSERT_SIZE(struct connection_key, 40);
ASSERT_SIZE(struct connection, 144);
ASSERT_SIZE(struct alias, 40);
ASSERT_SIZE(struct half_open, 48);
ASSERT_SIZE(struct assured, 56);
ASSERT_SIZE(struct fragment_key, 48);
ASSERT_SIZE(struct translation, 40);
ASSERT_SIZE(struct fragment, 56);
ASSERT_SIZE(struct held_fragment, 1608);
ASSERT_SIZE(struct workload, 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct attachment, 40 + 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct noticed, 8 + 3 * 8 * PORT_WORDS + 8 * EXTERNAL_ADDRESS_WORDS);
ASSERT_SIZE(struct meta, 48 + PROGRAM_VERSION_SIZE + 4 * MASQUERADE_RANGES);

#endif
