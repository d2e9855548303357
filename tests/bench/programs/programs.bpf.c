/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * programs.bpf.c - runs a program on packets of many flows.
 *
 * BPF_PROG_TEST_RUN repeats a program on one packet, which the first run has changed, and whose
 * flow would stay in the nearest cache. So it runs next_packet, which writes a packet of a random
 * flow and tail-calls the measured program. The cost of next_packet alone is measured with
 * `nothing` in the program's place.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "../../../bpf/siphash.h"
#include "programs.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, MAX_MEASURED);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

/* By flow. next_packet finds here what a program has made of the last packet. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct passed);
} passed SEC(".maps");

struct traffic traffic; /* no "= {}": with a padded structure it confuses clang 14 */
__u64 random_state = 0x9e3779b97f4a7c15ULL;
__u32 next_in_order = 0;
__u32 flow_before = 0; /* and 1; 0: there is none */
volatile __u64 clock = 0;

static __always_inline __u32 choose_flow(void)
{
	__u64 random = random_state;
	__u32 next = next_in_order;

	if (traffic.in_order) {
		next_in_order = next + 1 < traffic.flows ? next + 1 : 0;
		return traffic.first + next;
	}
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	random_state = random;
	return traffic.first + ((random & 0xffffffff) * traffic.flows >> 32);
}

#define IPV4_CHECKSUM_OFFSET 24

/* Corrects the IPv4 header's checksum (RFC 1624), which the fast path verifies. */
static __always_inline void correct_checksum(void *data, __be16 old, __be16 new)
{
	__u16 *checksum = data + IPV4_CHECKSUM_OFFSET;
	__u32 sum = (__u16) ~*checksum + (__u16)~old + new;

	sum = (sum & 0xffff) + (sum >> 16);
	*checksum = ~(sum + (sum >> 16));
}

/* Writes a peer's address and port. False: the offsets are beyond the packet. */
static __always_inline bool write_peer(struct __sk_buff *skb, __u32 flow)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__be16 *address = data + (traffic.address_offset & 0x7f);
	__be16 *port = data + (traffic.port_offset & 0x7f);
	__be16 new_address = bpf_htons(PEER_ADDRESS(flow)), new_port = bpf_htons(PEER_PORT(flow));

	if ((void *)(address + 1) > end || (void *)(port + 1) > end)
		return false;
	if (traffic.few_servers) {
		new_address = bpf_htons(SERVER_ADDRESS(flow));
		new_port = bpf_htons(OWN_PORT(flow));
	}
	if (skb->protocol == bpf_htons(0x0800) &&
	    data + IPV4_CHECKSUM_OFFSET + sizeof(__be16) <= end)
		correct_checksum(data, *address, new_address);
	*address = new_address;
	*port = new_port;
	return true;
}

static __always_inline struct passed *passed_of(__u32 flow)
{
	__u32 index = traffic.passed_first + flow;

	return bpf_map_lookup_elem(&passed, &index);
}

static __always_inline __be16 *port_at(struct __sk_buff *skb, __u32 offset)
{
	__be16 *port = (void *)(long)skb->data + (offset & 0x7f);

	return (void *)(port + 1) > (void *)(long)skb->data_end ? NULL : port;
}

static __always_inline void pass_on(struct __sk_buff *skb)
{
	struct passed *entry = passed_of(flow_before - 1);
	__be16 *port = port_at(skb, traffic.passed_port_offset);

	if (!entry || !port)
		return;
	if (traffic.passes_on) {
		entry->tc_index = skb->tc_index;
		entry->hash = skb->hash;
	}
	if (traffic.passed_port_offset)
		entry->source_port = *port;
}

static __always_inline void go_on(struct __sk_buff *skb, __u32 flow)
{
	struct passed *entry = passed_of(flow);
	__be16 *port = port_at(skb, traffic.own_port_offset);

	if (!entry || !port)
		return;
	if (traffic.goes_on) {
		skb->tc_index = entry->tc_index;
		bpf_set_hash(skb, entry->hash);
	}
	if (traffic.own_port_offset)
		*port = entry->source_port;
}

static __always_inline void seal(struct __sk_buff *skb, __u32 flow)
{
	struct sip_state state = sip_begin(traffic.seal_key);

	sip_take(&state, traffic.sender[0]);
	sip_take(&state, traffic.sender[1]);
	sip_take(&state, (__u64)OWN_PORT(flow) << 32 | traffic.protocol);
	bpf_set_hash(skb, sip_end(&state));
}

SEC("tc")
int next_packet(struct __sk_buff *skb)
{
	__u32 flow = choose_flow();
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (data + HEADERS_SIZE > end)
		return -1;
	if ((traffic.passes_on || traffic.passed_port_offset) && flow_before)
		pass_on(skb);
	flow_before = flow + 1;
	__builtin_memcpy(__builtin_assume_aligned(data, 8), traffic.headers, HEADERS_SIZE);
	if (!write_peer(skb, flow))
		return -1;
	skb->tc_index = 0;
	if (traffic.protocol)
		seal(skb, flow);
	if (traffic.goes_on || traffic.own_port_offset)
		go_on(skb, flow);
	/* Reading the clock waits for earlier instructions. Otherwise the CPU would overlap the
	 * work on two packets, and loads would wait for stores that are still pending. */
	clock = bpf_ktime_get_ns();
	bpf_tail_call(skb, &measured, traffic.program);
	return -1;
}

SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return skb ? -1 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
