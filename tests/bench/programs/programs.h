/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* programs.h - what programs.c tells programs.bpf.c about the packets to be made. */
#ifndef BPF_PORTMAP_TESTS_PROGRAMS_H
#define BPF_PORTMAP_TESTS_PROGRAMS_H

#define HEADERS_SIZE 80
#define MAX_MEASURED 64

/* The end of every flow that differs: the low 16 bits of its address, and its port. */
#define PEER_ADDRESS(flow) ((flow)&0xffff)
#define PEER_PORT(flow) (1024 + ((flow) >> 16))

/* What a packet had when a program had done with it, for the next hook on its way. */
struct passed {
	__u16 tc_index;
	__be16 source_port;
};

struct traffic {
	/* Of every packet, from the Ethernet header on */
	__u8 headers[HEADERS_SIZE] __attribute__((aligned(8)));
	__u32 address_offset; /* where PEER_ADDRESS stands */
	__u32 port_offset;
	__u32 own_port_offset; /* of the flow's own source port in an answer; 0: all have the same
				*/
	__u32 passed_port_offset; /* where to note it, as a request has left; 0: do not */
	__u32 first;              /* of so many flows */
	__u32 flows;
	__u32 passed_first; /* in the map `passed`, flow 0 */
	__u32 program;      /* its index in the map `measured` */
	__u32 goes_on;      /* 1: a packet has the tc_index that the hook before gave it */
	__u32 passes_on;    /* 1: note that for the next one */
	__u32 in_order;     /* 1: one flow after the other; 0: at random */
};

#endif
