# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# test_floods.sh - what a flood, or a crowd, does to others. FLOOD=20: seconds of each flood,
# against 5,000 connections of each kind.

flood=$build/tests/flood
idle=$build/tests/idle
flood_seconds=${FLOOD:-3}
flood_crowd=$((${FLOOD:-0} ? 5000 : 500))

# crowd_open NAME NAMESPACE ADDRESS PORT COUNT, then crowd_count NAME: how many echo a byte
crowd_open() {
	local name=$1 who=$2
	shift 2
	mkfifo "/run/$name.in" "/run/$name.out"
	in_namespace "$who" "$idle" hold "$@" <"/run/$name.in" >"/run/$name.out" &
	exec {crowd_fd}>"/run/$name.in"
	eval "${name}_in=$crowd_fd"
	exec {crowd_fd}<"/run/$name.out"
	eval "${name}_out=$crowd_fd"
	read -r -t $((40 * ${SLOWER:-1})) crowd_size <&"$crowd_fd" || fail "crowd $name does not come together"
}

crowd_count() {
	local in=$1_in out=$1_out count
	echo >&"${!in}"
	read -r -t $((40 * ${SLOWER:-1})) count <&"${!out}" || count='no answer'
	echo "$count"
}

expect_crowd() {
	expect_equal "$2" "$(crowd_count "$1")" "the living of crowd $1"
}

# Random sources must be where a strict reverse path filter expects them.
flood_prepare() {
	[ -x "$flood" ] || skip "no flood"
	ethtool -K eth0 gro on >/dev/null
	ip route add 100.64.0.0/10 via "$client4" dev eth0
}

# flood_from NAMESPACE INTERFACE-OF-HOST ARGUMENT...: what it says, and what arrived
flood_from() {
	local who=$1 interface=$2 before after said
	shift 2
	before=$(cat "/sys/class/net/$interface/statistics/rx_packets")
	said=$(in_namespace "$who" "$flood" "$@")
	after=$(cat "/sys/class/net/$interface/statistics/rx_packets")
	[ $((after - before)) -gt 10000 ] || fail "the flood did not arrive: $said"
	echo "note: $1 flood: $said arrived=$((after - before))"
}

counter() {
	bpftool -j map dump pinned "$pins/counters" |
		jq "[.[0].formatted.values[].value.$1] | add"
}

# limit 180 s
# [T32] idle connections outlive a flood of SYNs, and one of datagrams
test_flood_through_mapping() {
	flood_prepare
	container_start web bridge -p 8080:80 -p 8080:80/udp -p 8081:81
	in_namespace web "$idle" serve 81
	in_namespace server "$idle" serve 9000
	crowd_open mapped client "$host4" 8081 "$flood_crowd"
	expect_equal "$flood_crowd" "$crowd_size" "connections through the mapping"
	crowd_open masqueraded web "$server4" 9000 "$flood_crowd"
	expect_equal "$flood_crowd" "$crowd_size" "masqueraded connections"
	flood_from client eth0 tcp eth0 "$(mac_of eth0)" "$host4" 8080 "$flood_seconds"
	flood_from client eth0 udp eth0 "$(mac_of eth0)" "$host4" 8080 "$flood_seconds"
	expect_crowd mapped "$flood_crowd"
	expect_crowd masqueraded "$flood_crowd"
	expect_answers client "$host4" 8080 web "$client4"
	echo "note: flows promoted: $(counter flow_promoted), half-open: $(map_count flows_new)"
}

# limit 120 s
# [T32] a container's own flood, out to a server, does not stop another container
test_flood_of_container() {
	local pid veth
	flood_prepare
	container_add bad bridge
	container_start good bridge -p 8080:80
	serve_in server 7000 server
	veth=$(host_veth bad)
	ethtool -K "$veth" gro on >/dev/null
	expect_answers good "$server4" 7000 server
	flood_from bad "$veth" tcp eth0 "$(mac_of cni0)" "$server4" 9 "$flood_seconds" \
		"$(address4 bad)" >/run/flood.out &
	pid=$!
	sleep 1
	for _ in 1 2 3; do
		expect_answers good "$server4" 7000 server "$host4_second"
		expect_answer client tcp "$host4" 8080 good "$client4"
	done
	wait "$pid"
	cat /run/flood.out
	expect_answers good "$server4" 7000 server "$host4_second"
}

# limit 120 s
# a full table refuses new connections and counts them; those it has live
test_full_table() {
	local half=4096 name port=8081 refused
	conflist small bridge "$(with_ours '{flowEntries: 16384}')"
	for name in one two three; do
		container_add "$name" small -p "$port:81"
		in_namespace "$name" "$idle" serve 81
		port=$((port + 1))
	done
	crowd_open one_crowd client "$host4" 8081 $((half + 100))
	expect_equal "$half" "$crowd_size" "[T32] connections of one container, half of all"
	[ "$(counter drop_flow_limit)" -ge 100 ] || fail "beyond its limit nothing was refused"
	crowd_open two_crowd client "$host4" 8082 "$half"
	expect_equal "$half" "$crowd_size" "connections of another, the other half"
	refused=$(counter drop_table_full)
	crowd_open three_crowd client "$host4" 8083 20
	expect_equal 0 "$crowd_size" "connections when the table is full"
	[ "$(counter drop_table_full)" -ge $((refused + 20)) ] || fail "nothing was refused"
	expect_crowd one_crowd "$half"
	expect_crowd two_crowd "$half"
	container_del two small
	crowd_open four_crowd client "$host4" 8083 20
	expect_equal 20 "$crowd_size" "connections when there is room again"
	expect_crowd one_crowd "$half"
}
