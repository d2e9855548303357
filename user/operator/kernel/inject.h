/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * inject.h - makes a frame, and hands it to the kernel as if it had come in by an interface; runs
 * programs for one.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "net/link.h"

#define FRAME_MAX 1514
#define XDP_NAME_SIZE 16

/* TCP: the next packet of the same connection. */
enum probe_step {
	STEP_BEGIN, /* SYN */
	/* An ACK with data that the receiver has acknowledged already, as a keep-alive has: whoever
	 * follows the connection lets it pass, and the receiver answers it with an ACK and has
	 * nothing for its program. */
	STEP_DATA,
	STEP_END, /* RST */
};

/* Ports in host byte order. */
struct probe_packet {
	enum protocol protocol; /* TCP or UDP */
	uint8_t source[CNI_ADDRESS_SIZE];
	uint8_t destination[CNI_ADDRESS_SIZE];
	uint16_t source_port;
	uint16_t destination_port;
	enum probe_step step;
	uint32_t acknowledgment; /* of STEP_DATA */
	/* Of the IP packet, which is filled up with zeros; 0: as short as can be. Never fragmented.
	 */
	uint16_t size;
};

/* Makes a frame that begins a connection, with SYN or an empty datagram, or that ends it. Returns
 * its length. */
uint32_t frame_make(uint8_t frame[FRAME_MAX], const struct probe_packet *packet,
		    const uint8_t destination[LINK_MAC_SIZE]);

/* Sends the frame to the interface's ingress, by BPF_PROG_TEST_RUN of a program that redirects it
 * there. It enters behind the driver: generic XDP, tc programs and the IP stack see it, a native
 * XDP program does not. 0, or -1 and errno; what the kernel drops after that is no failure. */
int inject_frame(uint32_t ifindex, const uint8_t *frame, uint32_t length);

/* Runs a tc program for a frame, which is not changed. 0, or -1 and errno. */
int program_run(int program, const uint8_t *frame, uint32_t length, uint32_t *result);

/* Runs the tc program with this id of the kernel. Returns whether it drops the frame. */
bool inject_tc_drops(uint32_t id, const uint8_t *frame, uint32_t length);

/* Runs the interface's XDP program, if it has one, for the frame, which is not changed. Returns
 * whether the program drops it, and then the program's name. */
bool inject_xdp_drops(uint32_t ifindex, const uint8_t *frame, uint32_t length,
		      char name[XDP_NAME_SIZE]);

/* --- asking for a neighbour ----------------------------------------------------------------- */

/* Who is in the network answers within that. */
#define NEIGHBOUR_ANSWER_MS 100

/* Asks all who are there. The sender of an ARP question has no address, so that nobody learns
 * anything from it. Returns a file to read answers from, which is to be closed, or -1. */
int neighbour_ask(const struct link *link, const uint8_t address[CNI_ADDRESS_SIZE]);

/* Waits, at most so long, for the next answer, and writes the MAC of whoever sent it. False: none
 * has come. */
bool neighbour_answer(int question, const uint8_t address[CNI_ADDRESS_SIZE], int milliseconds,
		      uint8_t mac[LINK_MAC_SIZE]);
