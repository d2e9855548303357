# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_packet_cost.sh - what a packet costs in our programs, by BPF_PROG_TEST_RUN (programs/): each
# of another flow at random. UDP over IPv4, all programs on its way together.

for flows in 1 1000 30000 1000000; do
	row "cost_in_$flows" ns lower "our programs, a packet to a mapped port, flows: $flows"
	row "cost_out_$flows" ns lower "our programs, a packet from a mapped port, flows: $flows"
	row "cost_masquerade_$flows" ns lower "our programs, a masqueraded packet, flows: $flows"
done
row cost_to_host ns lower 'our programs, a packet to the host itself'
row cost_of_host ns lower 'our programs, a packet of the host itself'
row cost_forwarded ns lower 'our programs, a packet that the host forwards for others'

budget cost_in_30000 established at-most 150
budget cost_out_30000 established at-most 200

measure quick/1 established 60 packet_cost 1
measure quick/1 established 60 packet_cost 1000
measure quick/1 established 60 packet_cost 30000
measure full/1 established 240 packet_cost 1000000

# cost CONTENDER ROW LINE...: lines of programs.c together; it may leave out all but the first
cost() {
	local contender=$1 row=$2 value
	shift 2
	value=$(jq -s 'map({(.name): .ns}) | add as $costs | $ARGS.positional |
		select($costs[.[0]]) | map($costs[.] // 0) | add' --args "$@" </run/packet_costs)
	[ -z "$value" ] || result "$row" "$value"
}

# cost_of_ways ROW SAYS ENTERED LEFT: through the IP stack the programs at two interfaces, past
# it the first one, and what the second does when it is sent
cost_of_ways() {
	cost off "$1" "$3 ipv4 udp $2" "$4 ipv4 udp $2"
	if [ "$4" = to_uplink ]; then
		cost established "$1" "$3 ipv4 udp $2, past the stack" "$4 ipv4 udp sent by the fast path"
	else
		cost established "$1" "$3 ipv4 udp $2, past the stack"
	fi
}

# packet_cost FLOWS
packet_cost() {
	"$build/tests/programs" --json --rounds "$((bench_rounds * 2 + 1))" --flows "$1" \
		--only 'ipv4 udp' "$build/bpf/portmap.bpf.o" >/run/packet_costs
	cost_of_ways "cost_in_$1" 'to a mapped port' from_uplink to_container
	cost_of_ways "cost_out_$1" answer from_container to_uplink
	cost_of_ways "cost_masquerade_$1" masqueraded from_container to_uplink
	[ "$1" = 1000 ] || return 0
	cost off cost_to_host 'from_uplink ipv4 udp to the host'
	cost off cost_of_host 'to_uplink ipv4 udp of the host'
	cost off cost_forwarded 'from_uplink ipv4 udp forwarded' 'to_uplink ipv4 udp forwarded'
}
