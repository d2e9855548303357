# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_packet_cost.sh - the cost of a packet in our programs, by BPF_PROG_TEST_RUN (programs/): the
# sum of all programs on its path. Each packet is of a random flow; UDP unless a row says TCP.

for flows in 1 1000 30000 100000; do
	each_family row "cost_in_$flows" ns lower "our programs, a packet to a mapped port, flows: $flows"
	each_family row "cost_out_$flows" ns lower "our programs, a packet from a mapped port, flows: $flows"
	each_family row "cost_masquerade_$flows" ns lower "our programs, a masqueraded packet, flows: $flows"
	each_family row "cost_unmasquerade_$flows" ns lower \
		"our programs, an answer to a masqueraded packet, flows: $flows"
done
each_family row cost_in_new ns lower 'our programs, a packet to a mapped port that begins a flow'
each_family row cost_masquerade_new ns lower 'our programs, a masqueraded packet that begins a flow'
each_family row cost_tcp_in_30000 ns lower 'our programs, a TCP packet to a mapped port, flows: 30000'
each_family row cost_tcp_out_30000 ns lower 'our programs, a TCP packet from a mapped port, flows: 30000'
each_family row cost_to_host ns lower 'our programs, a packet to the host itself, tuples: 30000'
each_family row cost_of_host ns lower 'our programs, a packet of the host itself, tuples: 30000'
each_family row cost_forwarded ns lower \
	'our programs, a packet that the host forwards for others, tuples: 30000'
for way in in out; do
	each_family row "flat_cost_$way" % lower \
		"our programs, ns more of a packet $way beside 1,000 containers with 10,000 mappings, flows: 30000"
	each_family budget "flat_cost_$way" established at-most 3
done
for way in to of; do
	each_family row "marked_cost_${way}_host" ns lower \
		"our programs, a packet $way the host itself beside those, after each port and address has been used"
	each_family row "shared_cost_${way}_host" ns lower \
		"the same, while masqueraded flows to other peers have each port"
done
each_family budget cost_in_30000 established at-most 150
each_family budget cost_out_30000 established at-most 200

each_family measure quick/1 established 60 packet_cost 1
each_family measure quick/1 established 60 packet_cost 1000
each_family measure quick/1 established 60 packet_cost 30000
each_family measure full/1 established 240 packet_cost 100000
each_family measure quick/1 established 60 packet_cost_tcp
each_family measure quick established 120 packet_cost_flat

# cost CONTENDER ROW LINE...: the sum of these lines of programs.c; all but the first may be missing
cost() {
	local world=$contender contender=$1 row=$2 value
	shift 2
	if [ "$world" = before ]; then
		[ "$contender" = established ] || return 0
		contender=before
	fi
	value=$(jq -s 'map({(.name): .ns}) | add as $costs | $ARGS.positional |
		select($costs[.[0]]) | map($costs[.] // 0) | add' --args "$@" </run/packet_costs)
	[ -z "$value" ] || result "$row" "$value"
}

# cost_of_ways ROW PROTOCOL SAYS ENTERED LEFT: through the IP stack the programs at two interfaces;
# on the fast path the first one, and what the second one costs for a packet that was sent
cost_of_ways() {
	local kind="ipv$family $2" sent=()
	[ "$5" != to_uplink ] || sent=("$5 $kind sent by the fast path")
	cost off "$1" "$4 $kind $3" "$5 $kind $3"
	cost established "$1" "$4 $kind $3, past the stack" "${sent[@]}"
}

# run_programs ROUNDS FLOWS ONLY [OPTION]
run_programs() {
	"$build/tests/programs" --json --rounds "$1" --flows "$2" --only "$3" "${@:4}" \
		"$build/bpf/portmap.bpf.o" >/run/packet_costs
}

cost_rounds=$((bench_rounds * 2 + 1))

# packet_cost FLOWS
packet_cost() {
	run_programs "$cost_rounds" "$1" "ipv$family udp"
	cost_of_ways "cost_in_$1" udp 'to a mapped port' from_uplink to_container
	cost_of_ways "cost_out_$1" udp answer from_container to_uplink
	cost_of_ways "cost_masquerade_$1" udp masqueraded from_container to_uplink
	cost_of_ways "cost_unmasquerade_$1" udp 'answer to masqueraded' from_uplink to_container
	[ "$1" = 30000 ] || return 0
	cost off cost_in_new "from_uplink ipv$family udp to a mapped port, new"
	cost off cost_masquerade_new "from_container ipv$family udp masqueraded, new" \
		"to_uplink ipv$family udp masqueraded, new"
	cost off cost_to_host "from_uplink ipv$family udp to the host"
	cost off cost_of_host "to_uplink ipv$family udp of the host"
	cost off cost_forwarded "from_uplink ipv$family udp forwarded" "to_uplink ipv$family udp forwarded"
}

packet_cost_tcp() {
	run_programs "$cost_rounds" 30000 "ipv$family tcp"
	cost_of_ways cost_tcp_in_30000 tcp 'to a mapped port' from_uplink to_container
	cost_of_ways cost_tcp_out_30000 tcp answer from_container to_uplink
}

# flat_cost ROW LINE: the fastest of all rounds, alternately with and without the other containers
flat_cost() {
	run_programs "$cost_rounds" 30000 "$2" --crowd
	result "$1" "$(jq -s --arg name "$2" '.[] | select(.name == $name) |
		100 * (.lowest_ns / .base_lowest_ns - 1)' </run/packet_costs)"
}

# host_cost ROW LINE CROWD
host_cost() {
	run_programs "$cost_rounds" 30000 "$2" "$3"
	result "$1" "$(jq -s --arg name "$2" '.[] | select(.name == $name) | .ns' </run/packet_costs)"
}

packet_cost_flat() {
	host_cost marked_cost_to_host "from_uplink ipv$family udp to the host" --crowd
	host_cost marked_cost_of_host "to_uplink ipv$family udp of the host" --crowd
	host_cost shared_cost_to_host "from_uplink ipv$family udp to the host" --crowd=ports
	host_cost shared_cost_of_host "to_uplink ipv$family udp of the host" --crowd=ports
	flat_cost flat_cost_in "from_uplink ipv$family udp to a mapped port, past the stack"
	flat_cost flat_cost_out "from_container ipv$family udp answer, past the stack"
}
