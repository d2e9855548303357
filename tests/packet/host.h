/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host.h - the small host that the programs run on, in its own network namespace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Interface indexes, given at creation. */
enum device {
	UPLINK = 10,
	SECOND_UPLINK = 11,
	BRIDGE = 12,
	VETH_ONE = 13, /* host side, a port of the bridge */
	VETH_TWO = 14,
	VETH_QUIET = 15, /* of the container that is not masqueraded */
	VETH_ROUTED = 16,
	VETH_DELETED = 17, /* a port whose attachment was deleted */
	UNCLASSIFIED = 18, /* a VPN that was created after the last ADD */
};

/* Addresses of the host */
#define v4_host "192.0.2.1"
#define v4_host_other "192.0.2.2"
#define v4_second_uplink "203.0.113.1"
#define v4_bridge "10.10.0.1"
#define v4_unclassified "172.16.0.1"
#define v6_host "2001:db8:1::1"
#define v6_second_uplink "2001:db8:2::1"
#define v6_bridge "fd00:10::1"
/* by their MACs */
#define v6_bridge_link_local "fe80::ff:fe00:12"
#define v6_routed_link_local "fe80::ff:fe00:16"

/* Containers */
#define v4_container_one "10.10.0.2"
#define v4_container_two "10.10.0.3"
#define v4_container_quiet "10.10.0.4"
#define v4_container_routed "10.20.0.2"
#define v6_container_one "fd00:10::2"
#define v6_container_two "fd00:10::3"
#define v6_container_quiet "fd00:10::4"
#define v6_container_routed "fd00:20::2"
/* A container on the bridge that this plugin did not set up */
#define v4_stranger "10.10.0.9"
#define v6_stranger "fd00:10::9"

/* Outside */
#define v4_client "198.51.100.7"
#define v4_client_other "198.51.100.8"
#define v4_server "198.51.100.80"
#define v4_server_second "203.0.113.80" /* behind the second uplink */
#define v4_server_vpn "172.16.0.80"     /* behind the unclassified interface */
#define v4_elsewhere "198.51.100.99"    /* where forwarded packets go */
#define v6_client "2001:db8:99::7"
#define v6_client_other "2001:db8:99::8"
#define v6_server "2001:db8:99::80"
#define v6_server_second "2001:db8:2::80"
#define v6_elsewhere "2001:db8:99::99"
#define v4_multicast "224.0.0.251"
#define v6_multicast "ff02::fb"
/* Behind the second uplink: an address that snatAddresses gives */
#define v4_source "203.0.113.99"
#define v6_source "2001:db8:2::99"

/* From now on frames that enter the device, also those that programs send in, are queued for
 * host_watched(), which returns the length of the next one; 0: there is none within `wait` ms. */
void host_watch(enum device device);
size_t host_watched(uint8_t *frame, size_t size, int wait);
void host_watch_end(void);

/* Enters new network and mount namespaces and makes the host there. Ends the program with a message
 * on failure. */
void host_create(void);

/* Lines for `ip -batch`. Ends the program if ip fails. */
void host_configure(const char *batch);

/* IPv4 forwarding of packets that enter by a device. */
void host_set_forwarding(const char *device, bool on);

/* For how long conntrack keeps what has passed both ways for a while. False: it is not there. */
bool host_set_conntrack_stream(const char *seconds);

struct bpf_map;
/* Clears a per-CPU array: what the programs remember, within a tick of the clock, of this host's
 * routing. */
void host_forget_routes(const struct bpf_map *answers);

/* The MAC of a device made by host_create(), and those behind it */
const uint8_t *host_mac(enum device device);
const uint8_t *host_neighbour_mac(void);
const uint8_t *host_container_two_mac(void);
const uint8_t *host_container_mac(enum device veth); /* the inside of this veth */

/* A socket of the host */
struct host_socket {
	int protocol; /* IPPROTO_TCP, IPPROTO_UDP */
	const char *address;
	uint16_t port;
	/* It is connected, without sending anything. NULL: one of TCP listens. */
	const char *peer;
	uint16_t peer_port;
	bool v6_only; /* on every IPv6 address, not for IPv4 */
};

/* Open until host_close_sockets(). Ends the program on failure. */
void host_open_socket(const struct host_socket *wanted);
void host_close_sockets(void);
