/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmap.bpf.c - the entry programs, and how the datapath works.
 *
 * Theory of operation
 * ===================
 *
 *   client --> uplink -(from_uplink)-> IP stack --> bridge -(to_container)-> veth --> container
 *   client <-- uplink <-(to_uplink)--- IP stack <-- bridge <-(from_container)- veth <- container
 *
 * A destination is rewritten where a packet enters the IP stack (tc ingress), a source where it
 * leaves (tc egress): netfilter's order of PREROUTING and POSTROUTING, and for the same reason. A
 * source that became a host address before routing would be a martian. So the stack, FORWARD rules
 * and conntrack in between see one tuple in both directions, the one without NAT, and that is the
 * identity of a connection: its inside is the container's side, its outside the peer's.
 *
 *   packet to host:8080 --> portmaps: 8080 is container:80 --+
 *   packet to host:40001 -> aliases: container:5000 ---------+--> connections
 *   packet to container:80, or from a container -------------+      {container:80, client:1234}
 *                                                                     owner, external tuple, state,
 *   half_open: a ring of places <------- place of a connection -----> paths, counters
 *   assured: places, which a clock hand gives away when they are dead
 *
 *   program         hangs at                                             file
 *   from_uplink     uplinks, ingress                                     ingress.h
 *   to_uplink       uplinks, egress                                      egress.h
 *   from_uplink_raw, to_uplink_raw: the same for uplinks whose frames begin with the IP header
 *                   (tun, WireGuard, PPP)
 *   from_bridge     bridges, ingress: for containers without from_container
 *   to_container    bridges and routed veths, egress                     egress.h
 *   from_container  containers' veths, ingress                           from_container.h
 *
 * Inwards (ingress.h). A packet whose port is neither mapped nor in use and whose address is
 * no container's is passed at once. Else its connection is looked for, by alias, by mapping, by the
 * tuple itself (dnat.h); where there is none, a mapping of an address of this host begins one
 * (dnat.h), and who reaches a container by its own address is noted (direct.h): tc comes before
 * reverse path filter and FORWARD, so a note means nothing until the packet leaves the stack for
 * the container.
 *
 * Outwards (egress.h). A container's packet has its connection by its tuple; where there is
 * none a masqueraded container begins one (snat.h), whose port is that of the alias it could
 * insert, in an order of the connection's own (port_choice.h). What cannot be translated and must
 * be is dropped. The host's own packets are never changed, but for its ICMP errors about translated
 * ones; those whose replies something here would take for another's are remembered (host.h). Where
 * routing ties a reply's new source to another uplink, it is handed over to that one.
 *
 * A connection translated twice (a container that reaches itself by a mapping; masqAll) is two
 * records: one for what the client sees, one for what the container sees.
 *
 * Life (connection_use.h, connection_table.h). A connection begins half-open and is assured with
 * its third packet; what each owner and client may have is said in shares.h. Nothing sweeps.
 *
 * ICMP errors: icmp_error.h. Fragments. The first one has the ports and is decided about like any
 * packet; at each hook, what was done to it is done to the others. Those that enter before it are
 * held until it comes (fragment.h).
 *
 * The fast path. A connection that the stack has let through both ways skips it from then on:
 * from_uplink and from_container do all that the stack and the hooks behind it would do, and send
 * the packet straight into the container or out of the uplink (offload_decide.h, offload_send.h).
 * For UDP they do the same again up to the end of the second, without a look at the connection
 * (flow_cache.h).
 *
 * Decisions read maps and fill a translation; rewrite.h and rewrite_error.h alone write packets,
 * told by apply.h.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "egress.h"
#include "from_container.h"
#include "ingress.h"

SEC("tc")
int from_uplink(struct __sk_buff *skb)
{
	return handle_frame(skb, true);
}

SEC("tc")
int to_uplink(struct __sk_buff *skb)
{
	return handle_egress(skb, ETH_HLEN, true);
}

/* No MAC says whose packet it is: all of them are given to the IP stack. */
SEC("tc")
int from_uplink_raw(struct __sk_buff *skb)
{
	enum packet_kind kind;
	struct packet packet;

	kind = packet_parse(skb, &packet, 0);
	return handle_ingress(skb, &packet, kind, false);
}

SEC("tc")
int to_uplink_raw(struct __sk_buff *skb)
{
	return handle_egress(skb, 0, true);
}

SEC("tc")
int from_bridge(struct __sk_buff *skb)
{
	return handle_frame(skb, false);
}

SEC("tc")
int to_container(struct __sk_buff *skb)
{
	return handle_egress(skb, ETH_HLEN, false);
}

SEC("tc")
int from_container(struct __sk_buff *skb)
{
	return handle_from_container(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
