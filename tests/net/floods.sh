# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# floods.sh - what the tests of floods and of fairness share: crowds (idle connections), herds
# (flows without an IP stack at their end), floods, and calls. FLOOD=20: seconds of each flood.

flood=$build/tests/flood
herd=$build/tests/herd
callers=$build/tests/callers
together=$build/tests/together
crowd=$build/tests/crowd
flood_seconds=${FLOOD:-2}
flood_crowd=5000

# crowd_open NAME NAMESPACE ADDRESS PORT COUNT: opens connections; $crowd_size is how many there
# are.
crowd_open() {
	local name=$1 who=$2
	shift 2
	piped_open "$name" in_namespace "$who" "$crowd" hold "$@"
	crowd_size=$(piped_read "$name" 40)
	[[ $crowd_size =~ ^[0-9]+$ ]] || fail "crowd $name does not connect: $crowd_size"
}

# crowd_count NAME: how many of its connections still answer
crowd_count() {
	piped_send "$1"
	piped_read "$1" 40
}

expect_crowd() {
	expect_equal "$2" "$(crowd_count "$1")" "connections of crowd $1"
}

# The strict reverse path filter accepts random sources only if they are routed to this interface.
flood_prepare() {
	[ -x "$flood" ] || skip "no flood"
	ethtool -K eth0 gro on >/dev/null
	ip route add 100.64.0.0/10 via "$client4" dev eth0
}

received() { echo "$(<"/sys/class/net/$1/statistics/rx_packets")"; }

# flood_from NAMESPACE INTERFACE-OF-HOST ARGUMENT...: fails unless the flood arrives, of which a busy
# machine may drop most in its first seconds
flood_from() {
	local who=$1 interface=$2 before arrived said _
	shift 2
	before=$(received "$interface")
	for _ in 1 2 3 4 5; do
		said=$(in_namespace "$who" "$flood" "$@")
		arrived=$(($(received "$interface") - before))
		[ "$arrived" -le 10000 ] || break
	done
	[ "$arrived" -gt 10000 ] || fail "the flood did not arrive: $said arrived=$arrived"
	echo "note: $1 flood: $said arrived=$arrived"
}

# flood_await INTERFACE-OF-HOST: until one that was started arrives there
flood_await() {
	wait_until 20 has_received "$1" $(($(received "$1") + 1000)) || fail "no flood arrives at $1"
}
has_received() { [ "$(received "$1")" -gt "$2" ]; }

# small_table: the list "small" has the smallest possible table of flows.
flow_entries=16384
small_table() {
	conflist small bridge "$(with_ours "{flowEntries: $flow_entries}")"
}

# serve_crowd NAMESPACE PORT: echoes over TCP and UDP, to any number of clients
serve_crowd() {
	in_namespace "$1" "$crowd" serve "$2" --background
	in_namespace "$1" "$callers" serve "$2"
	wait_until 5 calls "$1" tcp 127.0.0.1 "$2" 1 || fail "$1 does not serve on port $2"
}

# The client's herds use addresses that are not the client's own, so that its IP stack does not
# answer; the strict reverse path filter accepts them from there.
herds_prepare() {
	ip route replace 100.64.0.0/10 via "$client4" dev eth0
}

# herd_outside tcp|udp SOURCE PORT COUNT [OPTION...]: towards a mapped port
herd_outside() {
	local protocol=$1 source=$2 port=$3 count=$4
	shift 4
	in_namespace client "$herd" "$protocol" eth0 "$(mac_of eth0)" "$source" "$host4" "$port" \
		"$count" "$@"
}

# herd_of NAMESPACE tcp|udp DESTINATION PORT COUNT [OPTION...]: flows of a container, out through
# the host. Its own IP stack must not receive the answers: herd_hush.
herd_of() {
	local who=$1 protocol=$2 destination=$3 port=$4 count=$5
	shift 5
	in_namespace "$who" "$herd" "$protocol" eth0 "$(gateway_mac "$who")" "$(address4 "$who")" \
		"$destination" "$port" "$count" "$@"
}

# gateway_mac CONTAINER: the MAC of its bridge, or of the host's end of its veth
gateway_mac() {
	local veth
	veth=$(host_veth "$1")
	if [ -e "/sys/class/net/$veth/master" ]; then mac_of cni0; else mac_of "$veth"; fi
}

herd_hush() {
	in_namespace "$1" nft \
		'table ip hush { chain input { type filter hook input priority 0; policy drop; }; }'
}

# calls NAMESPACE tcp|udp ADDRESS PORT COUNT [OPTION...]: fails unless all are answered
calls() {
	local who=$1
	shift
	in_namespace "$who" "$callers" "$@" >/run/calls
}

# expect_calls WHAT NAMESPACE tcp|udp ADDRESS PORT [OPTION...]: 100 of 100 are answered
expect_calls() {
	local what=$1 who=$2 protocol=$3 address=$4 port=$5
	shift 5
	calls "$who" "$protocol" "$address" "$port" 100 --at-once 100 "$@" ||
		fail "$what: $who calls $protocol $address:$port: $(cat /run/calls) $(drops)"
}

# The drop counters that are not 0
drops() {
	[ ! -e "$pins/counters" ] || bpftool -j map dump pinned "$pins/counters" |
		jq -c '[.[0].formatted.values[].value | to_entries[] | select(.key | startswith("drop_"))] |
			group_by(.key) | map({(.[0].key): map(.value) | add} | select(.[] > 0)) | add'
}

# expect_untouched WHAT NAME PORT: the container's port answers a client, and it reaches a server
expect_untouched() {
	local protocol
	for protocol in tcp udp; do
		expect_calls "$1" client "$protocol" "$host4" "$3"
		expect_calls "$1" "$2" "$protocol" "$server4" 7000
	done
}
