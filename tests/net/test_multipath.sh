# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_multipath.sh - a route with two next hops, by one uplink each (ECMP), where a hash of ports
# chooses: the namespaces of client and server are the routers, and both have the far address.

far4=203.0.113.9 far6=2001:db8:9::9

# far_at NAMESPACE HOST4 HOST6: it answers as the far address, by the link on which it was asked.
far_at() {
	ip -n "$1" -batch - <<-LINES
		address add $far4/32 dev lo
		address add $far6/128 dev lo nodad
		route add $2 dev eth0 src $far4
		route add $3 dev eth0 src $far6
	LINES
}

# multipath_world POLICY: the container one of the list `fast`. POLICY is IPv6's: by default (0) the
# flow label, not ports, chooses, and a fragment may leave elsewhere than a whole datagram
multipath_world() {
	fast_lists
	far_at client "$host4" "$host6"
	far_at server "$host4_second" "$host6_second"
	ip route add "$far4" nexthop via "$client4" dev eth0 nexthop via "$server4" dev eth1
	ip route add "$far6" nexthop via "$client6" dev eth0 nexthop via "$server6" dev eth1
	echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy
	echo "$1" >/proc/sys/net/ipv6/fib_multipath_hash_policy
	container_add one fast
}

# uplink_of TALK: prints client or server, which one has answered.
uplink_of() {
	local answer
	answer=$(say "$1")
	[[ $answer =~ name=(client|server)\  ]] || fail "$1: $answer"
	echo "${BASH_REMATCH[1]}"
}

# a datagram's fragments leave by one uplink, where a hash of ports chooses it, and so do large and
# small datagrams of one socket: both come back whole, also when their path is renewed
test_multipath_fragments() { fragments_come_back 1; }
# the same with the kernel's default of IPv6
test_multipath_fragments_label() { fragments_come_back 0; }
fragments_come_back() {
	local name
	multipath_world "$1"
	for name in client server; do in_namespace "$name" "$datagrams" echo 9000 --background; done
	all_come_back
	second_passes
	all_come_back
}
all_come_back() {
	local port to
	for port in {5001..5010}; do
		for to in "$far4" "$far6"; do
			expect_whole one "$to" 9000 3000 --source-port "$port"
			expect_whole one "$to" 9000 30 --source-port "$port"
		done
	done
}

# replies of a mapped port that leave by the other uplink than routing has chosen for the container's
# address are sent to the router that is there
test_multipath_replies() {
	local port
	multipath_world 0
	container_start web fast -p 8080:80/udp
	for port in {6001..6016}; do
		ask client udp "$host4" 8080 --from "$far4" --source-port "$port" --timeout 100 || true
		ask client udp "$host6" 8080 --from "$far6" --source-port "$port" --timeout 100 || true
	done >/dev/null
	[ "$(counted rerouted)" -gt 0 ] || fail "no reply leaves by the other uplink"
	expect_equal "" "$(ip neigh show to "$client4" dev eth1; ip neigh show to "$server4" dev eth0
		ip neigh show to "$client6" dev eth1; ip neigh show to "$server6" dev eth0)" \
		"routers that were looked for elsewhere"
}

# a UDP flow that a firewall's mark sends by another uplink than before, which routing would not choose,
# leaves there with that one's address: nothing takes it back
test_multipath_marked_later() {
	local name
	conflist slow bridge "$(with_ours '{"fastPath": "off"}')"
	far_at client "$host4" "$host6"
	far_at server "$host4_second" "$host6_second"
	ip_lines host "route add $far4 via $client4" "route add $far6 via $client6" \
		"route add $far4 via $server4 table 100" "route add $far6 via $server6 table 100"
	for name in client server; do serve_in "$name" 9000; done
	container_add one slow
	talk_open out4 one udp "$far4" 9000
	talk_open out6 one udp "$far6" 9000
	expect_equal 'client client' "$(uplink_of out4) $(uplink_of out6)" "uplinks"
	sysctl -qw net.ipv4.conf.all.rp_filter=2
	ip rule add fwmark 7 lookup 100
	ip -6 rule add fwmark 7 lookup 100
	nft 'table inet marks { chain before { type filter hook prerouting priority mangle;
		udp dport 9000 meta mark set 7; }; }'
	for _ in 1 2; do
		expect_equal 'server server' "$(uplink_of out4) $(uplink_of out6)" "uplinks by the mark"
	done
}

# masqueraded flows skip the stack by whichever uplink it has chosen for them, and stay there when
# their path is renewed
test_multipath_fast_path() { flows_keep_their_uplink 1; }
# the same with the kernel's default of IPv6
test_multipath_fast_path_label() { flows_keep_their_uplink 0; }
flows_keep_their_uplink() {
	local number talk to talks=() first=()
	multipath_world "$1"
	for to in client server; do serve_in "$to" 9000; done
	for number in 0 1 2 3 4 5; do
		for to in "$far4" "$far6"; do
			talk=out_$((${#talks[@]}))
			talk_open "$talk" one "$([ $((number % 2)) = 0 ] && echo tcp || echo udp)" "$to" 9000
			talks+=("$talk") first+=("$(uplink_of "$talk")")
		done
	done
	expect_equal 'client server' "$(printf '%s\n' "${first[@]}" | sort -u | paste -sd ' ')" \
		"uplinks that were chosen"
	for _ in 1 2; do
		for number in "${!talks[@]}"; do
			try_often goes_out_fast "${talks[$number]}" || fail "${talks[$number]}: $(paths_show)"
			expect_equal "${first[$number]}" "$(uplink_of "${talks[$number]}")" \
				"the uplink of ${talks[$number]}"
		done
		second_passes
	done
}

# goes_out_fast TALK: its request skips the stack.
goes_out_fast() {
	local into out before
	fast_each_way
	before=$out
	goes_on "$1" || return 1
	fast_each_way
	[ "$out" -gt "$before" ]
}

# Paths are renewed once a second of the monotonic clock.
second_passes() {
	local now=${EPOCHSECONDS}
	until [ "$EPOCHSECONDS" -ge $((now + 2)) ]; do sleep 0.1; done
}
