/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h - the interface between the BPF programs and the plugin: names, keys and values of the
 * pinned maps.
 *
 * Both sides include this file; BPF code after vmlinux.h, user code after <linux/types.h>. bpftool
 * shows these names too, hence: ports in host byte order; addresses as 16 bytes in network order,
 * an IPv4 address as ::ffff:a.b.c.d (RFC 4291 2.5.5.2); packed enums; no unions in keys. Padding is
 * always named and always zero, because it is hashed with the key.
 *
 * A change here after 1.0.0 requires a new LAYOUT, and a way to take over the maps of the last one
 * (CONTRIBUTING.md).
 */
#pragma once

#ifndef __VMLINUX_H__
#include <linux/bpf.h> /* struct bpf_spin_lock */
#endif

#include "counters.h"

#define LAYOUT 1

/* Directory of all pins; another network namespace that shares the bpffs has its own set in
 * NETNS_DIRECTORY<cookie> below it. */
#define PIN_DIRECTORY "bpf-portmap"
#define NETNS_DIRECTORY "netns-"

#define MAX_PORTMAPS 65536
#define MAX_NAT_PORTS 65536
#define MAX_SLOTS 16384
#define MAX_ENDPOINTS 65536
#define MAX_INTERFACES 32768
#define MAX_HOST_ADDRESSES 65536
#define MAX_NETWORKS 1024
#define MAX_HOMES 8
#define META_OBJECTS 40
#define LOOPBACK_IFINDEX 1 /* lo's, in every network namespace */
#define MIN_ASSURED 16384
#define MAX_ASSURED 262144
#define MIN_HALF_OPEN 32768
#define FRAGMENT_PLACES 8 /* in a row: a power of two */
#define FRAGMENT_ROWS 1024
#define MAX_HELD 512 /* a power of two */
#define EXTERNAL_PORTS 65536
#define PORT_WORDS (65536 / 64) /* a bit for each port */
#define SHARES 65536            /* a power of two: hashed counters */
#define EXTERNAL_ADDRESS_WORDS 64
/* Sizes that follow from `assured`: the half_open ring; the maps connections and aliases. */
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

/* IANA numbers of the protocols whose headers are translated. Of any other one that has no ports,
 * as GRE and ESP, only the addresses are. */
enum protocol {
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_SCTP = 132,
	PROTOCOL_UDPLITE = 136,
} __attribute__((packed));

/* On which side of the IP stack a tuple was seen. */
enum direction {
	DIRECTION_IN = 1,  /* before routing: tc ingress */
	DIRECTION_OUT = 2, /* after routing: tc egress */
} __attribute__((packed));

enum flow_kind {
	FLOW_MAPPING = 1,    /* to a mapped port */
	FLOW_MASQUERADE = 2, /* its source becomes an address of the host */
	/* to a container's own address, or from that of a strict one: untranslated */
	FLOW_DIRECT = 3,
	FLOW_HOST = 4,    /* begun by a socket of the host */
	FLOW_FOREIGN = 5, /* translated by another NAT of this host, to the host's address */
} __attribute__((packed));

/* What has happened to a connection: bits of `state`, changed by atomic operations. The bit for the
 * outside is the inside's, shifted by one. */
enum connection_state {
	STATE_REPLIED = 1 << 0, /* the side that began has got a reply */
	STATE_ASSURED =
		1 << 1, /* and it has lasted (connection_use.h): its place is in `assured` */
	STATE_COUNTED = 1 << 2,     /* counted in the shares of its owner and client */
	STATE_SETTLED = 1 << 3,     /* in the IP stack twice within seconds (bpf/firewall.h) */
	STATE_UNCONFIRMED = 1 << 4, /* FLOW_DIRECT: the IP stack has not let it through yet */
	STATE_CHARGED_OUT = 1 << 5, /* counted as begun by its owner */
	STATE_DATA = 1 << 6,        /* TCP: payload was sent */
	/* TCP: this side has sent FIN */
	STATE_FIN_INSIDE = 1 << 8,
	STATE_FIN_OUTSIDE = 1 << 9,
	/* TCP: after RST, or SYN on a closed connection: nothing came from this side since */
	STATE_AWAITED_INSIDE = 1 << 10,
	STATE_AWAITED_OUTSIDE = 1 << 11,
	/* TCP: `sequence_end`, `acknowledged` of this side are known */
	STATE_SEQUENCE_INSIDE = 1 << 12,
	STATE_SEQUENCE_OUTSIDE = 1 << 13,
	STATE_ACKNOWLEDGED_INSIDE = 1 << 14,
	STATE_ACKNOWLEDGED_OUTSIDE = 1 << 15,
	/* TCP: this side has sent a SYN on a live connection, not answered yet */
	STATE_SYN_INSIDE = 1 << 16,
	STATE_SYN_OUTSIDE = 1 << 17,
};

enum interface_role {
	ROLE_UPLINK = 1,     /* clients of mapped ports arrive and containers' packets leave here */
	ROLE_BRIDGE = 2,     /* the same, and its containers' packets arrive here */
	ROLE_PORT = 3,       /* host side of a container's veth, port of a bridge */
	ROLE_ROUTED = 4,     /* host side of a container's veth that routes (ptp) */
	ROLE_LEFT_ALONE = 5, /* left alone on purpose: no programs, no masquerade */
	ROLE_LOOPBACK = 6,   /* lo, once processes of the host may reach a mapped port */
} __attribute__((packed));

enum attachment_state {
	ATTACHMENT_ADDING = 1, /* ADD has begun: what it owns is not valid yet */
	ATTACHMENT_READY = 2,
} __attribute__((packed));

/* Where the name of a workload comes from. */
enum workload_kind {
	WORKLOAD_NONE = 0,  /* none of them: the container ID is all that is known */
	WORKLOAD_POD = 1,   /* Kubernetes: namespace and name of the pod */
	WORKLOAD_NOMAD = 2, /* Nomad: namespace, and job/group */
	/* Podman 4: the container's name, given as Kubernetes' pod name, without namespace */
	WORKLOAD_CONTAINER = 3,
} __attribute__((packed));

/* fastPath: which flows of an attachment skip the IP stack. */
enum fast_path {
	FAST_PATH_OFF = 0,
	FAST_PATH_ESTABLISHED = 1, /* those that the stack has let through in both directions */
	FAST_PATH_ALWAYS = 2,      /* those to a mapped port from their first packet on, too */
} __attribute__((packed));

/* How programs are attached to an interface. */
enum attach_mode {
	ATTACH_AUTO = 0, /* TCX where the kernel has it, else filters */
	ATTACH_CLSACT = 1,
	ATTACH_TCX = 2,
} __attribute__((packed));

/* Where packets of one direction go from the hook where they arrive. */
enum flow_path {
	PATH_UNDECIDED = 0, /* through the IP stack for now */
	PATH_STACK = 1,     /* through the IP stack, for good */
	PATH_CONTAINER = 2, /* straight into the container behind out_ifindex */
	PATH_OUT = 3,       /* straight out of out_ifindex */
} __attribute__((packed));

/* Why a connection goes through the IP stack, other than that the stack has not let both directions
 * through unchanged. */
enum stack_reason {
	REASON_NONE = 0,
	REASON_OFF = 1,         /* fastPath is off */
	REASON_WATCHED = 2,     /* a qdisc, filter or IPsec policy must see the packets */
	REASON_OPTIONS = 3,     /* IPv4 options */
	REASON_HOST = 4,        /* the host takes part: it sends in the container's name */
	REASON_ROUTING = 5,     /* the stack routes by more than the tuple: a mark, say */
	REASON_INTERFACE = 6,   /* no uplink, no link header, or programs of others there */
	REASON_NEIGHBOURS = 7,  /* both ends are behind one bridge, or routes lead elsewhere */
	REASON_MASQUERADED = 8, /* masqAll: the host takes the client's place */
	REASON_MTU = 9,         /* the way out has a smaller MTU than the container */
	REASON_NETWORK = 10,    /* the container sends by another one of its networks */
} __attribute__((packed));

/* Everything that belongs to an attachment carries its owner. It is valid only while slots[slot] is
 * live and has the same generation. {0, 0}: no owner. */
struct owner {
	__u32 slot;
	__u32 generation;
} __attribute__((aligned(8)));

struct port_range {
	__u16 first;
	__u16 last; /* inclusive; {0, 0}: unused */
} __attribute__((aligned(4)));

/* portmaps: HASH. The mapping of a host port; each has one owner. Engines ask for a container's
 * ports on each of its networks: the attachment that came later waits, under a key of its own, and
 * gets the port when the first one goes. */
struct portmap_key {
	enum protocol protocol;
	__u8 reserved[3];
	__u16 waiter; /* slot of the attachment that waits for the port; 0: the mapping */
	__u16 host_port;
	__u8 host_address[16]; /* ::ffff:0.0.0.0: any IPv4 address, :: any IPv6 address of the host
				*/
} __attribute__((aligned(8)));

struct portmap {
	struct owner owner;
	__u8 container_address[16];
	__u16 container_port;
	__u8 localhost;        /* 1: host processes reach it, at loopback addresses too */
	__u8 reserved_on_host; /* reserveHostPorts: processes of the host cannot bind to it */
	__u8 names_address;    /* 1: of one address, which is meant also where it is excluded */
	/* 1: the container has the port at any address, and is in this entry as the one that is
	 * replaced at this address alone. It does not count among its ports. */
	__u8 of_any_address;
	__u8 reserved[2];
	__u64 flows; /* begun through this mapping */
};

/* The value: containers of one workload. One write of it replaces one by the next, or gives the
 * port back: there is no state in between. */
struct portmap_succession {
	struct portmap now;
	/* The one that `now` has replaced, while it lives: its connections go on, and it gets new
	 * ones until a process serves the port in the other (bpf/replace.h). Owner {0, 0}: none. */
	struct portmap before;
	/* The one that `before` has replaced: its connections go on. Set only where `before` is. */
	struct portmap earlier;
} __attribute__((aligned(8)));

/* published_ports: ARRAY of three times PORT_WORDS words, a bit for each port; in the second third,
 * for those that are mapped at a single address; in the last, for those of which nat_ports has had
 * an entry. Set before the entry is written, and cleared by `repair` where none is left; saves most
 * packets and sockets a lookup in portmaps, or one of two, and the one in nat_ports. */
#define PUBLISHED_WORDS (3 * PORT_WORDS)

/* nat_ports: HASH by struct portmap_key, without a waiter: what the host's own NAT takes of the
 * ports that are mapped, at an address of the host, else at any, by its rules at the last look:
 * ADD's for its own ports, `repair`'s for all. A mapping begins no flow there. User space writes
 * it. */
struct nat_port {
	__u32 hooks; /* bits of enum nat_hook */
	__u32 reserved;
} __attribute__((aligned(8)));

/* Where the host's NAT gives packets another destination. */
enum nat_hook {
	NAT_FROM_OUTSIDE = 1, /* PREROUTING: what comes in, containers' packets too */
	NAT_FROM_HOST = 2,    /* OUTPUT: what processes of the host send */
};

/* One of the kernel's pointers as the programs have seen it: where it is, and its value. */
struct seen_pointer {
	__u64 place; /* 0: not looked for yet */
	__u64 value;
} __attribute__((aligned(8)));

/* slots: ARRAY by slot number. Slot 0 is unused. The programs read the first 64 bytes; `container`
 * and `netns_id` not in every packet. In a live slot user space changes nothing but `live`, and
 * gateway_mac and gateway where it has another bridge, or that another MAC. The programs follow a
 * new MAC, too (bpf/device.h). A packet that sees half of the new MAC and half of the old one finds
 * it to be nobody's, and takes the long way. */
struct slot {
	__u32 generation;
	__u32 live;
	__u32 ifindex;       /* of the veth's host side */
	__u8 host_mac[6];    /* its MAC: an ifindex can be reused */
	__u8 gateway_mac[6]; /* MAC of the gateway: the bridge's, or host_mac */
	__u32 gateway; /* ifindex where its packets enter the IP stack: the bridge's, or the same */
	/* also OFF where bandwidth may be limited and the programs cannot see it */
	enum fast_path fast_path;
	__u8 has_policy; /* 1: there is an entry in policies */
	__u8 network;    /* its network's number where the conflist gave "uplinks"; 0: none */
	__u8 reserved2;
	/* By enum way: the first filter at the veth's ingress, and its root qdisc, when they were
	 * last examined; another has come since where another value is found. The programs write
	 * them. */
	struct seen_pointer passed[2];
	char attachment[ATTACHMENT_KEY_SIZE];
	__u64 container; /* digest of the container ID: the same on all its networks */
	__s32 netns_id;  /* of the container's network namespace, in the host's; negative: none */
	__u8 container_mac[6]; /* of its interface, at its ADD: machines behind a tap there look at
				  it */
	__u8 reserved3[6];
} __attribute__((aligned(8)));

/* veths: DEVMAP_HASH by slot number, the ifindex of the veth's host side. The kernel removes the
 * entry with the interface, whoever deletes that. If DEL is never called, nothing else shows that
 * an owner is dead. An entry is written before its slot goes live. */

/* endpoints: HASH by container address. */
struct endpoint_key {
	__u8 address[16];
} __attribute__((aligned(8)));

struct endpoint {
	struct owner owner;
	__u8 prefix_length; /* of its subnet, in its own family (IPv4: at most 32) */
	__u8 masquerade;    /* 1: flows it begins get the outgoing interface's address */
	__u8 strict;        /* 1: uplinks reach it only through mapped ports */
	__u8 shared;        /* 1: another attachment uses this address too */
	__u8 reserved[4];
};

/* containers: HASH by slots' `container`. The addresses of a container on all its networks. */
struct home {
	__u8 address[16];
	__u32 slot; /* of the attachment; 0: unused */
	__u8 prefix_length;
	__u8 reserved[3];
} __attribute__((aligned(8)));

struct container_homes {
	struct home homes[MAX_HOMES];
};

/* A range holds addresses of its own family only: ::/0 holds no IPv4 address. */
struct address_range {
	__u8 address[16];   /* network order, host bits zero */
	__u8 prefix_length; /* in the address's own family */
	__u8 exception;     /* 1: excludes addresses in it ("!10.1.0.0/16") */
	__u8 reserved[6];
} __attribute__((aligned(8)));

/* policies: HASH by slot number. An attachment's options about its connections; one with only
 * defaults has no entry. An entry is written before the slot goes live, never changed, and deleted
 * after the slot is dead. Ranges are sorted by prefix length, longest first: the first that holds
 * an address decides. */
struct policy {
	struct owner owner;
	__u32 max_flows;          /* maxFlows: limit of assured connections; 0: none */
	__u8 masquerade_all;      /* masqAll: clients of mapped ports are masqueraded too */
	__u8 keep_hairpin_source; /* snat false: no masquerade for hairpin */
	__u8 source4_count;       /* snatAddresses: entries used in the arrays below */
	__u8 source6_count;
	__u8 unmasqueraded_count; /* nonMasqueradeCIDRs */
	__u8 source_range_count;  /* sourceRanges; 0: any client may connect */
	__u8 excluded_count;      /* excludeCIDRs: host addresses that are never mapped */
	__u8 reserved[5];
	struct port_range masquerade_ports[MASQUERADE_RANGES]; /* masqPorts; empty: the host's */
	__u8 sources4[POLICY_ADDRESSES][16];
	__u8 sources6[POLICY_ADDRESSES][16];
	struct address_range unmasqueraded[POLICY_RANGES];
	struct address_range source_ranges[POLICY_RANGES];
	struct address_range excluded[POLICY_RANGES];
} __attribute__((aligned(8)));

/* interfaces: HASH by ifindex. All interfaces of the host that have been classified. */
struct interface {
	struct owner owner; /* of a container's veth, else {0, 0} */
	enum interface_role role;
	__u8 without_link_header; /* 1: frames begin with the IP header (tun, WireGuard, PPP) */
	__u8 bridge_mac[6];       /* ROLE_PORT: its bridge's MAC, where frames to the gateway go */
	__u32 bridge_ifindex; /* ROLE_PORT: its bridge; ROLE_UPLINK: one that it leads to, or 0 */
	__u8 addresses_excluded; /* 1: in a conflist's excludeInterfaces: no port is mapped here */
	/* 1: other programs, here or at its bridge, must see the packets. Written by user space. */
	__u8 without_fast_path;
	/* 1, at a container's veth: qdiscs, filters or IPsec policies must see the packets. Written
	 * by user space, and by the programs, which check once a second (bpf/device.h). */
	__u8 watched;
	enum attach_mode attach_mode; /* as the conflists want it */
	/* Source addresses for kernels that cannot tell which one routing would choose
	 * (BPF_FIB_LOOKUP_SRC: since 6.7); all zero: none. ADD and CHECK refresh them. */
	__u8 address4[16];
	__u8 address6[16];
	__u32 looked_at; /* CLOCK_MONOTONIC, seconds: when a program last checked for `watched` */
	__u8 by_administrator; /* 1: `bpf-portmap repair NAME` made it an uplink */
	__u8 reserved3[3];
	/* A bit for the number of each network whose "uplinks" do not name it: no port of those is
	 * reached here, and what their containers send here keeps its source. */
	__u64 refusing;
} __attribute__((aligned(8)));

/* host_addresses: HASH. Addresses that routing called local at the last ADD, CHECK or repair,
 * without loopback and IPv6 link-local addresses: socket hooks cannot ask routing. No port is
 * mapped at an excluded one: an address of an excluded interface (a service's, on kube-ipvs0) or a
 * subnet's broadcast address. The entry :: is no address: it holds a digest of all others, so that
 * one lookup shows whether they are up to date. */
struct host_address_key {
	__u8 address[16];
} __attribute__((aligned(8)));

struct host_address {
	__u64 digest;
	__u32 ifindex; /* that has it */
	__u8 excluded; /* 1: no port is mapped at it */
	__u8 reserved[3];
};

/* networks: HASH by the conflist's name, zero-filled. What it says about interfaces, as long as it
 * has a container. Names and globs, each ended by a zero byte. */
#define NETWORK_NUMBERS 64 /* 0 is none */

struct network_key {
	char name[ATTACHMENT_KEY_SIZE];
};

struct network {
	/* A container of this network: while it is there, so is the network. When it has gone the
	 * next command that looks finds another one, or deletes the entry. {0, 0}: the one behind
	 * `veth`, whose ADD has not claimed anything yet. */
	struct owner witness;
	__u32 veth; /* ifindex */
	enum attach_mode attach;
	__u8 number; /* from 1: its own among those that live and have `uplinks`; 0: none */
	__u8 reserved[2];
	char uplinks[INTERFACE_NAMES_SIZE]; /* empty: every interface that can be one */
	char excluded_interfaces[INTERFACE_NAMES_SIZE];
} __attribute__((aligned(8)));

/*
 * connections: HASH. One record for each connection, by its tuple without NAT, which the IP stack
 * sees in both directions. The inside is the container (for FLOW_HOST and FLOW_FOREIGN the host),
 * the outside its peer.
 */
struct connection_key {
	__u8 inside[16];
	__u8 outside[16];
	/* ICMP echo and timestamp: the requester's port is the identifier, the other is 0 */
	__u16 inside_port;
	__u16 outside_port;
	enum protocol protocol;
	__u8 reserved[3];
} __attribute__((aligned(8)));

/* Which way a packet goes; index of a record's arrays of two. */
enum way {
	OUTWARDS = 0, /* from the inside */
	INWARDS = 1,
};

/* TCP: what one side has sent (RFC 9293 3.3.1) */
struct tcp_numbers {
	__u32 sequence_end; /* sequence number that follows the last one sent */
	__u32 acknowledged; /* the last acknowledgment */
};

/* Where packets of one way go on a path. */
struct next_hop {
	__u32 ifindex;       /* the uplink, or the host side of the container's veth; 0: no route */
	__u16 mtu;           /* of the IP packet; 0: not known */
	__u16 asked;         /* CLOCK_MONOTONIC, seconds, the low 16 bits: when it was looked for */
	__u8 destination[6]; /* MACs; all zero: not resolved */
	__u8 source[6];
} __attribute__((aligned(4)));

/* Inwards, destination {external_address, external_port} and source port peer_port become the key's
 * inside address and port and its outside_port; outwards the reverse. */
struct connection {
	struct owner owner; /* FLOW_HOST and FLOW_FOREIGN: {0, 0} */
	/* The low half of the owner's generation and 15 random bits, so that a record which reuses
	 * this memory differs. 0: deleted. Never 1. */
	__u32 id;
	__u32 state; /* enum connection_state */
	__u8 external_address[16];
	__u16 external_port;
	__u16 peer_port; /* the peer's port on the wire */
	enum flow_kind kind;
	__u8 begun_inside;      /* 1: the inside sent the first packet */
	enum flow_path path[2]; /* by enum way */
	/* CLOCK_MONOTONIC, seconds; written at most once a second, and not by packets that use a
	 * memo (bpf/memo.h), which lasts until a turn in the IP stack (bpf/firewall.h), of TCP
	 * and of what stays in the stack for STACK_SECONDS */
	__u32 last_seen;
	__u32 place; /* index in half_open or, with STATE_ASSURED, assured */
	/* Where the stack accepted inward packets; those from elsewhere go through it. Of a process
	 * of this host: LOOPBACK_IFINDEX. */
	__u32 in_ifindex;
	/* Where outward packets leave the stack; 0: not known. A reply through a mapping is
	 * redirected there: routing chose it for the external address. */
	__u32 out_ifindex;
	__u8 out_destination[6]; /* FLOW_MASQUERADE: the MAC that the stack gave them; or zero */
	/* CLOCK_MONOTONIC, seconds, the low 16 bits: when routing was last asked whether they may
	 * leave there with the external address */
	__u16 out_asked;
	/* By enum way, since it was assured, modulo 2^32. Packets that used a memo (memo.h)
	 * are added late, or never. */
	__u32 packets[2];
	__u32 uplink; /* FLOW_MASQUERADE: the interface whose address it got */
	enum stack_reason stack_reason;
	/* device_ways_number() when routing last said that outward packets leave by an interface
	 * that is in `interfaces`; 0: it never did */
	__u32 ways : 24;
	__u64 bytes[2];
	union {
		/* Of the inside, of the outside, until it is assured: from then on its place in
		 * `assured` has them, and these stay as they were */
		struct tcp_numbers tcp[2];
		__u32 begun; /* others: CLOCK_MONOTONIC, seconds */
	};
	/* By enum way. CLOCK_MONOTONIC, seconds: when a packet last left the IP stack with exactly
	 * the tuple that this record expects there; 0: never */
	__u32 left_stack[2];
	struct next_hop next_hop[2]; /* by enum way */
} __attribute__((aligned(8)));

/*
 * aliases: HASH. External tuples that lead to a connection where no mapping does: those of
 * masqueraded connections, of clients whose source port was changed, and of the host's own. The key
 * is built like a connection's, with the external address and port as inside. Whoever inserts it
 * first has the port.
 */
struct alias {
	__u8 inside[16];    /* as in the connection's key */
	struct owner owner; /* counted in port_shares for this owner; {0, 0}: not counted */
	__u16 inside_port;
	__u16 outside_port;
	__u32 id;   /* the connection's */
	__u32 made; /* CLOCK_MONOTONIC, seconds */
	__u32 reserved;
} __attribute__((aligned(8)));

/* half_open: ARRAY from 1. A ring: a new connection takes a place in it, and ends the
 * half-open connection that had it. */
struct half_open {
	struct connection_key key;
	__u32 id;         /* of the connection; 0: free, 1: being changed */
	__u16 slot;       /* of its owner */
	__u8 charged_out; /* 1: STATE_CHARGED_OUT */
	__u8 counted;     /* 1: in the share of its owner */
} __attribute__((aligned(8)));

/* assured: ARRAY from 1. Without a free place a connection is not assured; a place is reused when
 * its connection is dead or closed. */
struct assured {
	__u32 id; /* of the connection; 0: free, 1: being changed */
	/* CLOCK_MONOTONIC, seconds: until then the connection need not be checked */
	__u32 protected_until;
	struct tcp_numbers tcp[2]; /* of the inside, of the outside */
	union {
		struct connection_key key; /* with these in place of `reserved` */
		struct {
			__u8 of_key[__builtin_offsetof(struct connection_key, reserved)];
			__u8 steady; /* 1: TCP, and plain segments leave its state as it is */
			__u16 slot;  /* of its owner */
		};
	};
} __attribute__((aligned(8))); /* a cache line */

/* Which account of its owner a connection is charged to: a number of these bits */
enum account {
	ACCOUNT_OUT = 1 << 0, /* the owner began it, with STATE_CHARGED_OUT */
	/* TCP: the client has acknowledged a number of its peer's. Of any other protocol the client
	 * may have forged its address. */
	ACCOUNT_PROVEN = 1 << 1,
};

#define ACCOUNTS 4

/* shares: ARRAY by slot number. Counts of the owner of this generation. */
struct share {
	__u32 generation;
	__u32 flows[ACCOUNTS]; /* connections with STATE_COUNTED */
	__u32 half_open[2];    /* places in half_open: that others began, and its own */
	__u32 reserved;
};

/* usage: ARRAY of one. */
struct usage {
	__u32 assured; /* connections with STATE_COUNTED */
	__u32 proven;  /* those of TCP */
	__u32 hogs;    /* accounts (`flows` of a share) with a 16th of the table or more */
	/* The places to check next ("hands"), counted from 0 and on past the last one. Two CPUs may
	 * write one: some are checked twice. */
	__u32 half_open_hand;
	__u32 assured_hand;
	__u32 clean_hand;
	__u32 cleaned; /* last search for dead ones: CLOCK_MONOTONIC, 2^20 ns */
	/* CLOCK_MONOTONIC, tenths of a second: last long search for a place, when few are free */
	__u32 searched;
};

/* client_shares: ARRAY of SHARES. Assured connections of one client to one owner, proven ones apart
 * from others, by hash. */
/* port_shares: ARRAY of SHARES. Ports of masqueraded connections to one port of one server, by a
 * hash of these: of all owners, and, by another hash, of one. */
struct port_share {
	__u32 ports;
	__u32 none_left; /* CLOCK_MONOTONIC, seconds: when a search last found no port */
};

/* How to rewrite a packet. DIRECTION_IN: address and port replace the destination, peer_port the
 * source port. DIRECTION_OUT: address and port replace the source, peer_port the other port. */
struct translation {
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	__u32 out_ifindex;         /* redirect to this interface; 0: no. On a path: its end */
	enum flow_path path;       /* PATH_CONTAINER, PATH_OUT: skip the IP stack */
	__u8 report;               /* 1: the hook behind the stack shall confirm it */
	__u8 frame_destination[6]; /* on a path: MACs in frame order; zero: unknown */
	__u8 frame_source[6];
	__u8 enters_again; /* 1: by redirecting it to the interface where it has arrived */
	__u8 done;         /* 1: the hook behind the stack has nothing to do */
} __attribute__((aligned(8)));

enum fragment_fate {
	FRAGMENT_WAITING = 0, /* the first one has not come yet */
	FRAGMENT_PASSED = 1,
	FRAGMENT_TRANSLATED = 2,
	FRAGMENT_DROPPED = 3,
	FRAGMENT_LIFTED = 4, /* sent into the IP stack instead of across the bridge */
	FRAGMENT_LEFT = 5,   /* translated at ingress, past the IP stack */
	FRAGMENT_REPLY = 6,  /* sent to lo, to a process of this host */
} __attribute__((packed));

/* fragments: ARRAY of rows. Fragmented datagrams, as one hook sees them. Only the first fragment
 * has ports; later ones from the same interface share its fate. */
struct fragment_key {
	__u8 source[16];
	__u8 destination[16];
	__u32 identification;
	__u32 ifindex;          /* where it arrived; DIRECTION_OUT: 0 */
	enum protocol protocol; /* 0: IPv6, which does not compare it (RFC 8200 4.5) */
	enum direction direction;
	__u8 reserved[6];
} __attribute__((aligned(8)));

struct fragment {
	struct fragment_key key;
	struct translation
		translation; /* of FRAGMENT_TRANSLATED and FRAGMENT_LEFT, without ports */
	struct owner owner;  /* of the translated container's address */
	__u64 last_seen;     /* CLOCK_MONOTONIC, nanoseconds */
	__u32 account;       /* the slot of a container, twice; or an interface, inverted */
	__u32 newest;        /* the ticket of the one held last; 0: none */
	__u32 held;          /* how many are or were held */
	enum fragment_fate fate;
	__u8 reserved;
	__u16 source_port; /* of the first fragment, as it arrived */
} __attribute__((aligned(8)));

struct fragment_row {
	struct bpf_spin_lock lock;
	__u32 reserved;
	struct fragment places[FRAGMENT_PLACES];
};

/* held: ARRAY. Fragments that came before their datagram's first one, from the IP header on. */
struct held_fragment {
	__u32 ticket; /* a random number whose remainder is the index; 0: free, 1: being written */
	__u32 previous; /* the ticket of the one held before it, of the same datagram; 0: none */
	__u64 since;    /* CLOCK_MONOTONIC, nanoseconds */
	__u32 length;
	__u32 ifindex; /* where it arrived: it is sent in again only there */
	__u32 account; /* as of its datagram, which is of no container yet */
	__u32 reserved;
	__u8 bytes[HELD_SIZE];
} __attribute__((aligned(8)));

/* A host socket that connects or sends to a mapped port reaches the container directly; its program
 * goes on to see the address and port that it has used as its peer. */
struct socket_flow {
	__u8 container_address[16];
	__u8 asked_address[16];
	__u16 container_port; /* 0: unused */
	__u16 asked_port;
	__u8 reserved[4];
} __attribute__((aligned(8)));

/* A ring for whom the socket has asked, and one for who has sent to it from a mapped port: so the
 * latter take nothing from the former. */
enum socket_ring {
	RING_ASKED,
	RING_SENDERS,
	SOCKET_RINGS,
};
#define RING_ASKED_PLACES 16
#define SOCKET_PLACES (RING_ASKED_PLACES + 4)

/* socket_flows: SK_STORAGE. Each socket has its own, which the kernel counts among its memory
 * (net.core.optmem_max) and frees with it. So no process takes from another one. */
struct socket_flows {
	struct bpf_spin_lock lock; /* threads may share a socket */
	__u32 next[SOCKET_RINGS];  /* counted from 0 and on past the ring's last place */
	__u32 reserved;
	struct socket_flow places[SOCKET_PLACES];
};

/* attachments: HASH by "network/containerID/ifname", zero-filled. */
struct attachment_key {
	char name[ATTACHMENT_KEY_SIZE];
};

/* From CNI_ARGS at ADD: printable ASCII, truncated, zero-filled. */
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
	__u8 replaces;         /* 1: it took ports over from another container of its workload */
	__u32 host_ports;      /* entries in portmaps it claimed */
	__u32 endpoints;       /* entries in endpoints; 0: not known */
	__u8 container_mac[6]; /* that its bridge is to know; 0: none */
	__u8 reserved2[2];
	struct workload workload;
};

/* Whether the programs ask conntrack which packets another NAT of the host translates. */
enum conntrack_use {
	CONNTRACK_ABSENT = 0, /* it was not loaded when the programs were */
	/* They ask once a hook of netfilter translates, and keep conntrack's module in the kernel.
	 */
	CONNTRACK_ASKED = 1,
	/* It was loaded, but this kernel, before 6.0 or without BTF, does not tell programs. */
	CONNTRACK_UNREADABLE = 2,
	/* They ask from the beginning: Open vSwitch or tc's action ct, which translate without a
	 * hook, were in the kernel when the programs were loaded. */
	CONNTRACK_ASKED_ALWAYS = 3,
};

/* meta: ARRAY of one. */
struct meta {
	__u32 layout;
	__u32 complete;     /* 1 is written last, when all is loaded and pinned */
	__u64 netns_cookie; /* SO_NETNS_COOKIE of the host this set belongs to */
	__u64 lo_inode;     /* of lo's directory in that host's sysfs; 0: not known */
	__u32 generation;   /* last one given out; only grows */
	__u32 next_slot;    /* where the search for a free slot begins */
	char program_version[PROGRAM_VERSION_SIZE];
	__u32 conntrack;    /* enum conntrack_use */
	__u32 sees_devices; /* 1: the programs can look for qdiscs and filters themselves */
	/* Ports for masqueraded flows whose policy has none */
	struct port_range masquerade_ports[MASQUERADE_RANGES];
	__u64 port_seed; /* random, written once; keeps the next port unpredictable */
	/* CLOCK_MONOTONIC, seconds: packets that left the stack until then do not count */
	__u32 offload_dropped;
	/* 1: the programs have met a mapping or connection of an owner whose veth is gone. User
	 * space clears it before it searches for such owners. */
	__u32 owner_gone;
	__u32 several_networks; /* 1: a container has been on several networks */
	/* How often user space has deleted the entry of an interface that is still there */
	__u32 interfaces_forgotten;
	/* The kernel's ids of the programs and maps that are pinned, in user space's order; no
	 * other object gets them. */
	__u32 object_ids[META_OBJECTS];
} __attribute__((aligned(8)));

/* endpoint_addresses: ARRAY of PORT_WORDS words, a bit for each address_hash() of an endpoint. A
 * bit is set before the endpoint is written, and cleared by `repair` alone. It saves most packets a
 * lookup. */

/* external_ports: ARRAY by port number. How many aliases have this external port; one of the host's
 * connections that got another port counts at its own port, too. Counted up before the alias is
 * written, and down when it is gone: where none is, packets skip the lookup in aliases. Echo
 * identifiers are not counted. Written by the programs only. */
struct external_port {
	/* Of other protocols, and of TCP. The port of a socket is given to no flow of the socket's
	 * protocol, so that packets of what the host serves by TCP are not looked up because
	 * containers ask by UDP. */
	__u32 aliases[2];
} __attribute__((aligned(8)));

/* noticed: ARRAY of one. Features and values that the programs have used at least once: without
 * them packets skip the lookups. Written by the programs only. */
struct noticed {
	__u64 masquerade_all; /* 1: clients of a mapped port have been masqueraded */
	__u64 moved_host;     /* 1: a connection of the host got another port */
	/* 1: another NAT has changed the address of a container's packet to one of its bridge */
	__u64 hidden_siblings;
	/* 1: a process has reached a mapped port by lo with an address that is no loopback one */
	__u64 loopback_flows;
	/* A bit each: socket_flows has had an entry with this port */
	__u64 local_container_ports[PORT_WORDS];
	/* A bit for each address_hash() modulo their number: keys of aliases have this address */
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

#define ASSERT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " is part of LAYOUT")

ASSERT_SIZE(struct owner, 8);
ASSERT_SIZE(struct portmap_key, 24);
ASSERT_SIZE(struct portmap, 40);
ASSERT_SIZE(struct nat_port, 8);
ASSERT_SIZE(struct portmap_succession, 120);
ASSERT_SIZE(struct seen_pointer, 16);
ASSERT_SIZE(struct slot, 88 + ATTACHMENT_KEY_SIZE);
ASSERT_SIZE(struct endpoint_key, 16);
ASSERT_SIZE(struct endpoint, 16);
ASSERT_SIZE(struct policy,
	    24 + 4 * MASQUERADE_RANGES + 32 * POLICY_ADDRESSES + 3 * 24 * POLICY_RANGES);
ASSERT_SIZE(struct interface, 72);
ASSERT_SIZE(struct host_address_key, 16);
ASSERT_SIZE(struct host_address, 16);
ASSERT_SIZE(struct socket_flow, 40);
ASSERT_SIZE(struct socket_flows, 16 + 40 * SOCKET_PLACES);
ASSERT_SIZE(struct network, 16 + 2 * INTERFACE_NAMES_SIZE);
ASSERT_SIZE(struct connection_key, 40);
ASSERT_SIZE(struct connection, 160);
ASSERT_SIZE(struct alias, 40);
ASSERT_SIZE(struct half_open, 48);
ASSERT_SIZE(struct assured, 64);
ASSERT_SIZE(struct fragment_key, 48);
ASSERT_SIZE(struct translation, 40);
ASSERT_SIZE(struct fragment, 120);
ASSERT_SIZE(struct fragment_row, 8 + 120 * FRAGMENT_PLACES);
ASSERT_SIZE(struct held_fragment, 1616);
ASSERT_SIZE(struct workload, 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct attachment, 48 + 8 + WORKLOAD_NAMESPACE_SIZE + WORKLOAD_NAME_SIZE);
ASSERT_SIZE(struct external_port, 8);
ASSERT_SIZE(struct noticed, 32 + 8 * PORT_WORDS + 8 * EXTERNAL_ADDRESS_WORDS);
ASSERT_SIZE(struct home, 24);
ASSERT_SIZE(struct meta, 64 + PROGRAM_VERSION_SIZE + 4 * MASQUERADE_RANGES + 4 * META_OBJECTS);
