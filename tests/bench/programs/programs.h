/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* programs.h - settings of programs.bpf.c: the packets to be made. */
#pragma once

#define HEADERS_SIZE 80
#define MAX_MEASURED 64

/* The peer of a flow: the low 16 bits of its address, and its port. */
#define PEER_ADDRESS(flow) ((flow)&0xffff)
#define PEER_PORT(flow) (1024 + ((flow) >> 16))

/* A new masqueraded flow's: few servers, with a port of the container for each flow */
#define SERVER_ADDRESS(flow) ((flow) >> 14 & 0xffff)
#define OWN_PORT(flow) (1024 + ((flow)&0x3fff))

/* What the next hook on the way needs of a packet after a program. */
struct passed {
	__u32 hash;
	__u16 tc_index;
	__be16 source_port;
};

struct traffic {
	/* From the Ethernet header on */
	__u8 headers[HEADERS_SIZE] __attribute__((aligned(8)));
	__u32 address_offset; /* of PEER_ADDRESS */
	__u32 port_offset;
	__u32 own_port_offset;    /* of the flow's own port in an answer; 0: none */
	__u32 passed_port_offset; /* of the port to be kept after a request; 0: none */
	__u32 first;              /* the first of `flows` */
	__u32 flows;
	__u32 passed_first; /* in the map `passed`, flow 0 */
	__u32 program;      /* its index in the map `measured` */
	__u32 goes_on;      /* 1: a packet has tc_index and hash of the last hook */
	__u32 passes_on;    /* 1: keep it for the next one */
	__u32 in_order;     /* 1: one flow after the other; 0: random */
	__u32 few_servers;  /* 1: SERVER_ADDRESS and, at port_offset, OWN_PORT */
	__u32 protocol; /* of a packet that has the container's seal (bpf/seal.h); 0: it has none */
	__u64 sender[2]; /* of such a packet */
	__u64 seal_key;
};
