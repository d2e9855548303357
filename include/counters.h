/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters.h - all counters of the programs, in one list.
 *
 * COUNTERS(X) calls X(name, meaning) for each. The list defines the value type of the map
 * `counters` (one struct of named u64 per CPU, so that bpftool prints the names; an ARRAY indexed
 * by an enum would lose its BTF) and the sentences that user space prints.
 *
 * drop_* count dropped packets; all others count packets or flows that went on.
 */
#pragma once

#define COUNTERS(X) \
	X(rewritten_destination, "packets whose destination was rewritten on the way in") \
	X(rewritten_source, "packets whose source was rewritten on the way out") \
	X(rewritten_error, "ICMP errors rewritten, the quoted packet included, either way") \
	X(rerouted, \
	  "packets that left by another interface, where routing wants their new source") \
	X(fast_into_container, "packets that skipped the IP stack, straight into a container") \
	X(fast_out, "packets that skipped the IP stack, straight out of an uplink") \
	X(flow_offloaded, "flows that began to skip the IP stack, both ways") \
	X(flow_mapping, "new flows through a mapping") \
	X(flow_masquerade, "new masqueraded flows, hairpin included") \
	X(flow_direct, \
	  "new flows remembered as untranslated: to a container's own address, or a strict one's") \
	X(flow_host, "new flows of the host's own whose replies could be taken for a container's") \
	X(flow_displaced, \
	  "masqueraded flows, not established yet, that lost their port to a later socket of the" \
	  " host") \
	X(flow_moved_port, \
	  "new flows whose source port had to change, mostly because the tuple was taken") \
	X(flow_evicted, \
	  "masqueraded flows, closed or never answered, whose port went to another early") \
	X(masquerade_tries_1, "masqueraded flows that got the first port that they tried") \
	X(masquerade_tries_2_to_4, "masqueraded flows that tried 2 to 4 ports") \
	X(masquerade_tries_5_to_16, "masqueraded flows that tried 5 to 16 ports") \
	X(masquerade_tries_17_to_64, "masqueraded flows that tried 17 to 64 ports") \
	X(flow_promoted, "flows that were answered and went on, and so have a place of their own") \
	X(flow_pushed_out, "half-open flows that newer ones pushed out") \
	X(lifted_reply, "replies to another container on the bridge, lifted into the IP stack") \
	X(fragment_held, "fragments that came before their datagram's first one, and were held") \
	X(fragment_released, "held fragments that were sent on behind the first one") \
	X(fragment_not_held, \
	  "such fragments that there was no room for: they went on as they were") \
	X(local_connect, "sockets of the host that were connected to a mapped port's container") \
	X(local_send, "datagrams of unconnected sockets of the host to a mapped port") \
	X(local_by_loopback, \
	  "new flows of the host's processes to a mapped port that were translated at lo") \
	X(bind_refused, "binds of the host's processes to a port that reserveHostPorts keeps") \
	X(forwarding_disabled, \
	  "packets to a mapped port that came in where forwarding is disabled") \
	X(drop_no_tuple, "no free port could be found for a new flow") \
	X(drop_source_range, "a new flow to a mapped port from outside its sourceRanges") \
	X(drop_no_address, "no address of the outgoing interface to masquerade with") \
	X(drop_unclassified_interface, \
	  "new masqueraded flow towards an interface not seen by ADD") \
	X(drop_untranslatable, "masqueraded container's packet that cannot be translated") \
	X(drop_table_full, "no room for a new flow, or none for one more that was answered") \
	X(drop_flow_limit, \
	  "a new flow of a container, or of one client of it, that has as many as it may have") \
	X(drop_foreign_error, \
	  "a container's ICMP error about another one's flow, of which it got no packet") \
	X(drop_nested_tags, \
	  "a VLAN tag under a priority tag: the kernel would take both off behind the programs") \
	X(drop_no_attachment, "packet from a container whose attachment was deleted") \
	X(drop_forged_source, \
	  "packet from a container with the address of another container or of the host") \
	X(drop_misplaced_checksum, "packet from a container whose checksum the kernel would " \
				   "write into its addresses or ports") \
	X(drop_damaged_header, \
	  "packet on its way past the IP stack with a wrong checksum of its IPv4 header") \
	X(drop_strict, "packet from an uplink to a strict container's own address, of no flow") \
	X(drop_sctp_fragment, \
	  "SCTP in fragments to or from a port whose number changes: its checksum cannot follow") \
	X(drop_rewrite_failed, "the kernel refused to change the packet")
