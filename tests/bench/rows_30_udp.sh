# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
#
# rows_30_udp.sh - UDP packets per second. The generator in the server's namespace has CPU 0 for
# itself; the thread that polls the host's end of its link (threaded NAPI) has CPU 1, and does all
# other work there: the host's, the container's end of its veth, and the sink. Both have priority
# over everything else on the machine (SCHED_FIFO).
#
# The sink is a tc program that counts and drops the packets where they arrive. So the host is
# measured, from its uplink to the container's interface, but not the container's own IP stack,
# which is the same for all contenders.

row generator 'packets/s' higher 'the generator alone, into a sink at the host, 64 bytes'
row generator_1400 'packets/s' higher 'the generator alone, into a sink at the host, 1,400 bytes'
each_family row udp_in_1 'packets/s' higher 'UDP to the container, 1 flow, 64 bytes'
each_family row udp_in_30000 'packets/s' higher 'UDP to the container, 30,000 flows, 64 bytes'
each_family row udp_in_30000_1400 'packets/s' higher 'UDP to the container, 30,000 flows, 1,400 bytes'
each_family row udp_socket_30000 'packets/s' higher 'UDP to a socket of the container, through its own stack, 30,000 flows, 64 bytes'
each_family row udp_in_oneway 'packets/s' higher 'UDP to the container, never answered, 30,000 flows, 64 bytes'
each_family row udp_slow 'packets/s' higher 'UDP to the container, 60,000 flows, each a packet a second, 64 bytes'
each_family row udp_slow_worst 'packets/s' higher 'UDP to the container, 60,000 flows, each a packet a second, the worst second of seven'
each_family row udp_in_new 'packets/s' higher 'UDP to the container, 200,000 new flows, 64 bytes'
each_family row udp_in_new_1400 'packets/s' higher 'UDP to the container, 200,000 new flows, 1,400 bytes'
each_family row udp_in_new_full 'packets/s' higher \
	'UDP to the container, 200,000 new flows, 64 bytes, beside 240,000 answered ones in a table of 262,144'
each_family row udp_in_1_1400 'packets/s' higher 'UDP to the container, 1 flow, 1,400 bytes'
each_family row udp_out_1 'packets/s' higher 'UDP out of the container, masqueraded, 1 flow, 64 bytes'
each_family row udp_out_30000 'packets/s' higher 'UDP out of the container, masqueraded, 30,000 flows, 64 bytes'
each_family row udp_out_30000_1400 'packets/s' higher 'UDP out of the container, masqueraded, 30,000 flows, 1,400 bytes'
each_family row udp_out_new 'packets/s' higher 'UDP out of the container, masqueraded, 200,000 new flows, 64 bytes'
each_family row udp_foreign 'packets/s' higher 'routing of packets that are not ours, 30,000 flows, 64 bytes'

each_family budget udp_in_30000 established times 2.5 portmap
each_family budget udp_in_30000 established times 2 plain
each_family budget udp_in_30000 off times 1.1 portmap
each_family budget udp_in_oneway established times 1.1 portmap
each_family budget udp_slow established times 1.8 portmap
each_family budget udp_slow established times 1 plain
each_family budget udp_slow_worst established times 1 portmap
each_family budget udp_in_new established times 1.5 portmap
each_family budget udp_foreign established times 0.9 plain

measure quick plain 20 udp_alone generator 60
measure full plain 20 udp_alone generator_1400 1400
each_family measure full "$everyone" 20 udp_in udp_in_1 1 60
each_family measure full "$everyone" 20 udp_in udp_in_1_1400 1 1400
each_family measure quick "$everyone" 20 udp_in udp_in_30000 30000 60
each_family measure full "$everyone" 20 udp_in udp_in_30000_1400 30000 1400
each_family measure full "$everyone" 20 udp_socket
each_family measure quick "$everyone" 20 udp_in_oneway udp_in_oneway
each_family measure quick plain,portmap,established,off 30 udp_slow
each_family measure quick "$everyone" 20 udp_in_new udp_in_new 60
each_family measure full "$everyone" 20 udp_in_new udp_in_new_1400 1400
each_family measure full/1 portmap,established 90 udp_in_new_full
each_family measure full "$everyone" 20 udp_out udp_out_1 1 60
each_family measure quick "$everyone" 20 udp_out udp_out_30000 30000 60
each_family measure full "$everyone" 20 udp_out udp_out_30000_1400 30000 1400
each_family measure full "$everyone" 20 udp_out_new udp_out_new 60
each_family measure quick "$everyone" 20 udp_foreign udp_foreign

many4_clients=100.64.0.0 many6_clients=2001:db8:64:: # and up: RFC 6598
many4_servers=100.96.0.0 many6_servers=2001:db8:96::
oneway_flows=2000000 # the first of those that are never answered

# polled_by_thread INTERFACE: its packets are processed on CPU 1
polled_by_thread() {
	ethtool -K "$1" gro on >/dev/null
	echo 1 >"/sys/class/net/$1/threaded"
	pin_threads "$1" 1 || echo "note: the thread that polls $1 is not pinned" >&2
}

# Prepares a world once, with a separate container, because answered UDP flows stay for five minutes
# and count in their container's share.
udp_prepare() {
	[ ! -e /run/udp.ready ] || return 0
	ip route add 100.64.0.0/10 via "$server4"
	ip route add 2001:db8:64::/48 via "$server6"
	ip route add 2001:db8:96::/48 via "$server6"
	polled_by_thread eth1
	container_plus datagrams 8082:80/udp
	in_namespace datagrams "$tools/sink" attach eth0 80 datagrams
	in_namespace server "$tools/sink" attach eth0 0 server
	in_namespace client "$tools/sink" attach eth0 9 client
	: >/run/udp.ready
}

said() { sed -n "s/.*\b$1=\([0-9.]*\).*/\1/p" /run/said; }

# generate NAMESPACE ARGUMENT...: runs the generator on CPU 0; its output is in /run/said
generate() {
	local who=$1
	shift
	in_namespace "$who" taskset -c 0 "$tools/generator" eth0 "$@" >/run/said
}

# generate_to CONTAINER PORT ARGUMENT...: from many clients to the container's port 80, through its
# mapping if there is one
generate_to() {
	local name=$1 port=$2
	shift 2
	generate server "$(mac_of eth1)" "$(of_family many_clients)" \
		$(udp_target "$name" "$port") "$@"
}

udp_target() { target "$1" "$2" "$(of_family host_second)"; }

generate_in() { generate_to datagrams 8082 "$@"; }

generate_out() {
	generate "$generating" "$(mac_of cni0)" "$(address_of_family "$generating")" \
		"$(of_family many_servers)" 9 --to-many "$@"
}

# answered_flows SINK FLOWS COMMAND...: sends and answers packets of each flow about four times, so
# that all contenders treat it as established. If a busy machine loses some, more are sent.
answered_flows() {
	local sink=$1 flows=$2 before arrived=0 pace=300000
	shift 2
	"$tools/sink" answer "$sink"
	before=$("$tools/sink" count "$sink")
	while [ "$arrived" -lt $((flows * 39 / 10)) ]; do
		[ "$pace" -ge 10000 ] ||
			fail "packets for $flows flows are lost: $arrived arrived"
		"$@" --flows "$flows" --count $((flows * 4)) --pace "$pace"
		arrived=$(($("$tools/sink" count "$sink") - before))
		pace=$((pace / 2))
	done
	"$tools/sink" drop "$sink"
}

# The number of packets that skipped the stack; empty for contenders without a fast path
fast_packets() {
	is_ours && [ "$fast_path" != off ] || return 0
	bpftool -j map dump pinned "$pins/counters" |
		jq '[.[0].formatted.values[].value | .fast_into_container + .fast_out] | add'
}

# rate_at ROW SINK COMMAND...: packets per second that arrive at the sink while the command
# generates them; the note says whether the generator was the limit, and how many skipped the stack
rate_at() {
	local row=$1 sink=$2 note='' fast arrived
	shift 2
	fast=$(fast_packets)
	arrived=$("$tools/sink" count "$sink")
	"$@" --sink "$sink"
	arrived=$(($("$tools/sink" count "$sink") - arrived))
	if [ -n "$fast" ] && [ "$arrived" -gt 0 ]; then
		fast=$((($(fast_packets) - fast) * 100 / arrived))
		[ "$fast" -ge 99 ] || note="only $fast % on the fast path"
	fi
	# The generator waits before each 64 packets if the host is slower than it.
	[ "$(said sent_per_wait)" -lt 500 ] || note="${note:+$note, }the generator is the limit"
	result "$row" "$(said arrived_per_second)" "$note"
}

udp_in() {
	udp_prepare
	answered_flows datagrams "$2" generate_in
	rate_at "$1" datagrams generate_in --flows "$2" --size "$3" --seconds "$bench_seconds"
}

# An application's socket; the container's IP stack works on the same CPU.
udp_socket() {
	udp_prepare
	if [ ! -e /run/hold ]; then
		mkfifo /run/hold
		in_namespace datagrams "$tools/sink" hold 80 >/run/hold 2>&1 &
		read -r -t 5 _ </run/hold || fail "no socket in the container"
	fi
	answered_flows datagrams 30000 generate_in
	"$tools/sink" pass datagrams
	rate_at udp_socket_30000 datagrams generate_in --flows 30000 --seconds "$bench_seconds"
	"$tools/sink" drop datagrams
}

# DNS, telemetry, games: each packet is its flow's first one for a second, and all of them come at
# once. A second in which a flow's turn in the stack comes is among seven, for each flow.
udp_slow() {
	local row
	udp_prepare
	answered_flows datagrams 60000 generate_in
	generate_in --flows 60000 --sink datagrams --bursts 7
	for row in all:udp_slow slowest:udp_slow_worst; do
		result "${row#*:}" "$(said "${row%:*}")"
	done
}

# Flows that are known, but not established: syslog, statsd, video
udp_in_oneway() {
	local flows=(--first "$oneway_flows" --flows 30000)
	udp_prepare
	[ "$fast_path" = always ] || fast_path=off
	generate_in "${flows[@]}" --count 60000 --pace 300000
	rate_at "$1" datagrams generate_in "${flows[@]}" --seconds "$bench_seconds"
}

# New flows: each round has other ones
udp_new_first() {
	local first
	first=$(cat /run/flows.used 2>/dev/null || echo 4000000)
	echo $((first + 20000000)) >/run/flows.used
	[ "$plugin" != portmap ] || conntrack -F >/dev/null 2>&1
	echo "$first"
}

udp_in_new() {
	udp_prepare
	[ "$fast_path" = always ] || fast_path=off # for first packets
	rate_at "$1" datagrams generate_in --flows 20000000 --first "$(udp_new_first)" --size "$2" \
		--arrivals 200000
}

# table_fill: answered flows of 15 containers, seen again after two seconds, by which both contenders
# hold them for assured. Those of one container alone would not fill our table.
table_fill() {
	local number pass
	for number in {1..15}; do
		[ ! -e "/run/full$number.ready" ] || continue
		container_plus "full$number" "$((8100 + number)):80/udp"
		in_namespace "full$number" "$tools/sink" attach eth0 80 "full$number"
		: >"/run/full$number.ready"
	done
	for pass in 1 2; do
		for number in {1..15}; do
			answered_flows "full$number" 16000 generate_to "full$number" $((8100 + number))
		done
		[ "$pass" = 2 ] || sleep 2
	done
}

udp_in_new_full() {
	local first
	udp_prepare
	[ "$fast_path" = always ] || fast_path=off
	first=$(udp_new_first)
	table_fill
	rate_at udp_in_new_full datagrams generate_in --flows 20000000 --first "$first" --arrivals 200000
}

# A container of which a thread polls the host's end of the veth; other containers have none, as
# usual.
udp_out_prepare() {
	udp_prepare
	generating=outwards
	[ ! -e /run/udp_out.ready ] || return 0
	container_plus "$generating"
	polled_by_thread "$(host_veth "$generating")"
	: >/run/udp_out.ready
}

udp_out() {
	udp_out_prepare
	answered_flows server "$2" generate_out
	rate_at "$1" server generate_out --flows "$2" --size "$3" --seconds "$bench_seconds"
}

udp_out_new() {
	udp_out_prepare
	fast_path=off # first packets of masqueraded flows never skip the stack
	rate_at "$1" server generate_out --flows 20000000 --first "$(udp_new_first)" --size "$2" \
		--arrivals 200000
}

# Routed from the server's network to the client's, without a mapping
udp_foreign() {
	udp_prepare
	fast_path=off # these flows are not translated
	rate_at "$1" client generate server "$(mac_of eth1)" "$(of_family many_clients)" "$(of_family client)" 9 \
		--flows 30000 --seconds "$bench_seconds"
}

# Packets that end at the host's interface: the maximum of generator and thread
udp_alone() {
	if [ ! -e /run/udp_alone.ready ]; then
		ip netns add alone
		ip link add alone0 type veth peer name eth0 netns alone
		ip link set alone0 up
		ip -n alone link set eth0 up
		polled_by_thread alone0
		"$tools/sink" attach alone0 0 alone
		: >/run/udp_alone.ready
	fi
	generate alone "$(mac_of alone0)" "$many4_clients" 192.0.2.1 9 --flows 30000 --size "$2" \
		--seconds "$bench_seconds" --sink alone
	result "$1" "$(said arrived_per_second)"
}
