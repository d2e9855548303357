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
 * A destination is rewritten before routing (tc ingress), a source after it (tc egress), as
 * netfilter does in PREROUTING and POSTROUTING, and for the same reason: a source that became a
 * host address before routing would be a martian. So the IP stack, FORWARD rules and conntrack see
 * the same tuple in both directions, the one without NAT. That tuple identifies a connection: its
 * inside is the container's side, its outside the peer's.
 *
 *   packet to host:8080 --> portmaps: 8080 is container:80 --+
 *   packet to host:40001 -> aliases: container:5000 ---------+--> connections
 *   packet to container:80, or from a container -------------+      {container:80, client:1234}
 *                                                                     owner, external tuple, state,
 *   half_open: a ring of places <------- place of a connection -----> paths, counters
 *   assured: places, which a clock algorithm reuses when their connections are dead
 *
 *   program         attached to                                          file
 *   from_uplink     uplinks, ingress                                     ingress.h
 *   to_uplink       uplinks, egress                                      egress.h
 *   from_uplink_raw, to_uplink_raw: the same for uplinks whose frames begin with the IP header
 *                   (tun, WireGuard, PPP)
 *   from_bridge     bridges, ingress: for containers without from_container
 *   to_container    bridges and routed veths, egress                     egress.h
 *   from_container  containers' veths, ingress                           from_container.h
 *   from_loopback   lo, ingress: the host's own processes                loopback.h
 *
 * Inwards (ingress.h). A packet is passed at once if its port is neither published nor used by an
 * alias and its address is no container's. Otherwise its connection is looked up by alias, by
 * mapping and by the tuple itself (dnat.h); if there is none, a mapping of an address of this host
 * begins one. A client that reaches a container by its own address gets an unconfirmed record
 * (direct.h), which counts only once a packet has passed reverse path filter and FORWARD.
 *
 * Outwards (egress.h). A container's packet finds its connection by its tuple. If there is none, a
 * masqueraded container begins one (snat.h). A packet that must be translated but cannot be is
 * dropped. The host's own packets are never changed, except ICMP errors about translated packets
 * and connections that had to give up their port (host.h). Where routing ties a reply's new source
 * to another uplink, the reply is redirected there.
 *
 * A connection translated twice (a container that reaches itself through a mapping; masqAll) has
 * two records: one for what the client sees, one for what the container sees.
 *
 * Life: connection_table.h, connection_use.h, shares.h. ICMP errors: icmp_error.h. Fragments:
 * fragment.h.
 *
 * The fast path. Once the stack has let a connection through in both directions, from_uplink and
 * from_container do what stack and hooks would do, and redirect its packets into the container or
 * out of the uplink (offload_decide.h, offload_send.h). What was decided about a packet is
 * reused without looking up the connection (memo.h), as long as once a second a packet that is
 * treated alike confirms it; what was found out about a path, by all connections that would ask the
 * same (renewal.h).
 *
 * Decisions read maps and fill a translation, which apply.h carries out.
 */
#include "trace_note.h"
#include "egress.h"
#include "loopback.h"
#include "trace_packet.h"

/* Without a MAC to compare, every packet counts as addressed to this host. */
INLINE int handle_raw(struct __sk_buff *skb)
{
	struct flow_context flow = flow_of(skb);

	*flow.arrival = (struct arrival){.ifindex = skb->ifindex, .routed = true};
	flow.kind = packet_parse(skb, flow.packet, 0, DIRECTION_IN);
	return handle_ingress(&flow);
}

PROGRAM(from_uplink, TRACE_FROM_UPLINK, handle_frame(skb, true))
PROGRAM(to_uplink, TRACE_TO_UPLINK, handle_egress(skb, ETH_HLEN, true))
PROGRAM(from_uplink_raw, TRACE_FROM_UPLINK_RAW, handle_raw(skb))
PROGRAM(to_uplink_raw, TRACE_TO_UPLINK_RAW, handle_egress(skb, 0, true))
PROGRAM(from_bridge, TRACE_FROM_BRIDGE, handle_frame(skb, false))
PROGRAM(to_container, TRACE_TO_CONTAINER, handle_egress(skb, ETH_HLEN, false))
PROGRAM(from_container, TRACE_FROM_CONTAINER, handle_from_container(skb))
PROGRAM(from_loopback, TRACE_FROM_LOOPBACK, handle_loopback(skb))

char LICENSE[] SEC("license") = "Dual BSD/GPL";
