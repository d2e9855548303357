# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_packet_cost.sh - what a packet costs in our programs, by BPF_PROG_TEST_RUN (programs.c): each
# of another flow at random. UDP over IPv4, all programs of the way through the IP stack together.

for flows in 1 1000 30000 1000000; do
	row "cost_in_$flows" ns lower "our programs, a packet to a mapped port, flows: $flows"
	row "cost_out_$flows" ns lower "our programs, a packet from a mapped port, flows: $flows"
	row "cost_masquerade_$flows" ns lower "our programs, a masqueraded packet, flows: $flows"
done
row cost_to_host ns lower 'our programs, a packet to the host itself'
row cost_of_host ns lower 'our programs, a packet of the host itself'
row cost_forwarded ns lower 'our programs, a packet that the host forwards for others'

measure quick/1 established 60 packet_cost 1
measure quick/1 established 60 packet_cost 1000
measure quick/1 established 60 packet_cost 30000
measure full/1 established 240 packet_cost 1000000

# cost ROW PROGRAM SAYS PROGRAM SAYS: two lines of programs.c together, where they are there
cost() {
	local row=$1
	shift
	jq -s '[.[] | select(.name as $name | $ARGS.positional | index($name)).ns] |
		if length == ($ARGS.positional | length) then add else empty end' \
		--args "$@" </run/packet_costs | while read -r value; do result "$row" "$value"; done
}

# packet_cost FLOWS
packet_cost() {
	"$build/tests/programs" --json --rounds "$((bench_rounds * 2 + 1))" --flows "$1" \
		--only 'ipv4 udp' "$build/bpf/portmap.bpf.o" >/run/packet_costs
	cost "cost_in_$1" 'from_uplink ipv4 udp to a mapped port' 'to_container ipv4 udp to a mapped port'
	cost "cost_out_$1" 'from_container ipv4 udp answer' 'to_uplink ipv4 udp answer'
	cost "cost_masquerade_$1" 'from_container ipv4 udp masqueraded' 'to_uplink ipv4 udp masqueraded'
	[ "$1" = 1000 ] || return 0
	cost cost_to_host 'from_uplink ipv4 udp to the host'
	cost cost_of_host 'to_uplink ipv4 udp of the host'
	cost cost_forwarded 'from_uplink ipv4 udp forwarded' 'to_uplink ipv4 udp forwarded'
}
