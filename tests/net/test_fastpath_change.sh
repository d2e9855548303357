# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fastpath_change.sh - flows that skip the IP stack while the network around them changes: they
# behave as in the IP stack.

far4=203.0.113.9 far6=2001:db8:9::9
router4=198.51.100.11 router6=2001:db8:2::11
# watch_wire: looks for a container's address on an uplink, where none may ever be.
leak='net 10.87.0.0/16 or net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16'

watch_wire() {
	capture_start wire_client client eth0 "$leak"
	capture_start wire_server server eth0 "$leak"
}

expect_no_leak() {
	expect_captured_nothing wire_client
	expect_captured_nothing wire_server
}

# web has a mapped port, which the client uses; one is masqueraded and uses the server: four
# conversations in and four out, all of which skip the stack.
flows_make() {
	local list=${1:-fast}
	fast_lists
	serve_in server 9000
	container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
	container_add one "$list"
	watch_wire
	talks_open in client "$host4" "$host6" 8080
	talks_open out one "$server4" "$server6" 9000
	flows=$(talks in out)
	expect_skips_stack $flows
}

expect_flows_skip_stack() {
	expect_goes_on $flows
	expect_skips_stack $flows
}

# frames_start NAME NAMESPACE INTERFACE FILTER, frames_stop NAME: prints a line for each frame, with
# MACs, TTL and whether the checksum is right
frames_start() { CAPTURE='-e -vv' capture_start "$@"; }
frames_stop() { capture_stop "$1" | sed -e ':a' -e 'N;$!ba' -e 's/\n[ \t]\+/ /g'; }

# A filter for what others send, because libpcap cannot tell whether the first frames are inbound.
not_from() { echo "not ether src $(mac_in "$1" eth0)"; }

# expect_frames NAME COUNT FROM-MAC TO-MAC: at least COUNT frames, routed once, with right checksums
expect_frames() {
	local frames bad
	frames=$(frames_stop "$1")
	[ "$(wc -l <<<"$frames")" -ge "$2" ] || fail "$1: too few frames: $frames"
	bad=$(grep -vE "$3 > $4,.*(ttl 63|hlim 63),.*(\(correct\)|udp sum ok)" <<<"$frames") || return 0
	fail "$1: expected $3 > $4, TTL 63 and right checksums, not: $bad"
}

# Senders compute their checksums, so every frame on the wire has one.
checksums_computed() {
	local name
	for name; do in_namespace "$name" ethtool -K eth0 tx off >/dev/null; done
}

# Every request and answer that a capture is to show has skipped the stack.
talk_fast() {
	local name
	for name; do
		for _ in 1 2 3; do expect_skips_stack $name; done
	done
}

frames_are_routed() {
	local list=$1 gateway container
	checksums_computed client server
	flows_make "$list"
	checksums_computed web one
	expect_flows_skip_stack
	for container in web one; do
		gateway=$(mac_of "$(host_veth "$container")")
		[ "$list" != fast ] || gateway=$(mac_of cni0)
		eval "gateway_$container=$gateway"
		frames_start "to_$container" "$container" eth0 "(tcp or udp) and $(not_from "$container")"
	done
	frames_start to_client client eth0 "(tcp or udp) and $(not_from client)"
	frames_start to_server server eth0 "(tcp or udp) and $(not_from server)"
	talk_fast $flows
	expect_frames to_web 12 "$gateway_web" "$(mac_in web eth0)"
	expect_frames to_one 12 "$gateway_one" "$(mac_in one eth0)"
	expect_frames to_client 12 "$(mac_of eth0)" "$(mac_in client eth0)"
	expect_frames to_server 12 "$(mac_of eth1)" "$(mac_in server eth0)"
	expect_no_leak
}

# packets of flows that skip the stack look as if they were routed: TTL less by one, the next hop's
# MACs, right checksums, into and out of a bridge's containers, and no container's address outside
test_fastpath_frames_bridge() { frames_are_routed fast; }

# the same for ptp containers
test_fastpath_frames_ptp() { frames_are_routed fast-ptp; }

# Each container connects to every other one's host port: two bridges and two ptp links.
inside_make() {
	local list port=8080
	fast_lists
	for list in fast fast-other fast-ptp; do
		container_start "$list" "$list" -p "$port:80/tcp" -p "$port:80/udp"
		port=$((port + 1))
	done
	container_start ptp2 fast-ptp -p 8083:80/tcp -p 8083:80/udp
}

# containers on different bridges and ptp links reach each other through the host port past the
# stack, in both directions, with TTL less by one and the right MACs
test_fastpath_between_containers() {
	inside_make
	local from to port protocol
	while read -r from to port; do
		checksums_computed "$from" "$to"
		for protocol in tcp udp; do
			talk_open "a_$protocol" "$from" "$protocol" "$host4" "$port"
			talk_open "b_$protocol" "$from" "$protocol" "$host6" "$port"
		done
		expect_skips_stack_inside a_tcp b_tcp a_udp b_udp
		frames_start to_server "$to" eth0 "(tcp or udp) and $(not_from "$to")"
		frames_start to_client "$from" eth0 "(tcp or udp) and $(not_from "$from")"
		expect_skips_stack_inside a_tcp b_tcp a_udp b_udp
		expect_frames to_server 4 "$(gateway_of "$to")" "$(mac_in "$to" eth0)"
		expect_frames to_client 4 "$(gateway_of "$from")" "$(mac_in "$from" eth0)"
		for protocol in tcp udp; do
			conversation_close "a_$protocol"
			conversation_close "b_$protocol"
		done
	done <<-'PAIRS'
	fast fast-other 8081
	fast-other fast 8080
	fast fast-ptp 8082
	fast-ptp fast-other 8081
	fast-ptp ptp2 8083
	PAIRS
}

# The source MAC of frames to a container
gateway_of() {
	case $1 in
	fast) mac_of cni0 ;;
	fast-other) mac_of cni1 ;;
	*) mac_of "$(host_veth "$1")" ;;
	esac
}

loose() {
	local name
	reverse_path_loose
	for name in client server; do
		in_namespace "$name" sysctl -qw net.ipv4.conf.all.rp_filter=2 net.ipv4.ip_forward=1 \
			net.ipv6.conf.all.forwarding=1
	done
}

# far_make OWNER [BY]: which namespace has the far addresses, and by whom the host reaches them. Client
# and server have a link of their own, and forward to each other what arrives at the wrong one.
far_make() {
	local owner=$1
	loose
	link_make client shortcut "10.99.0.1/24 2001:db8:8::1/64" \
		server shortcut "10.99.0.2/24 2001:db8:8::2/64"
	ip -n "$owner" address add "$far4/32" dev lo
	ip -n "$owner" address add "$far6/128" dev lo nodad
	if [ "$owner" = server ]; then
		ip -n client route add "$far4" via 10.99.0.2
		ip -n client route add "$far6" via 2001:db8:8::2
	else
		ip -n server route add "$far4" via 10.99.0.1
		ip -n server route add "$far6" via 2001:db8:8::1
	fi
	[ -z "${2:-}" ] || far_by "$2"
}

# far_by client|server|router [OPTION...]: sets the host's route to far
far_by() {
	local who=$1 via4 via6
	shift
	case $who in
	client) via4=$client4 via6=$client6 ;;
	server) via4=$server4 via6=$server6 ;;
	router) via4=$router4 via6=$router6 ;;
	esac
	ip route replace "$far4" via "$via4" "$@"
	ip -6 route replace "$far6" via "$via6" "$@"
}

# The server also becomes a second router, with another MAC on the same wire.
router_make() {
	ip -n server link add link eth0 name eth0b type macvlan mode bridge
	end_make server eth0b "$router4/24" "$router6/64"
	ip neighbour replace "$router4" lladdr "$(mac_in server eth0b)" dev eth1 nud permanent
	ip neighbour replace "$router6" lladdr "$(mac_in server eth0b)" dev eth1 nud permanent
}

# one connects to far, which is the server
far_asked_by_one() {
	fast_lists
	serve_in server 9000
	container_add one fast
	watch_wire
	talks_open out one "$far4" "$far6" 9000
	flows=$(talks out)
	expect_skips_stack $flows
}

# web_asked_by NAMESPACE [IPV4 IPV6 OPTION4 OPTION6]: conversations with the mapped port of web
web_asked_by() {
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in "$1" "${2:-$host4}" "${3:-$host6}" 8080 "${@:4}"
	flows=$(talks in)
	expect_skips_stack $flows
}

# far_rules add|del ADDRESS4 ADDRESS6: what comes from there goes to far by table 100
far_rules() {
	ip rule "$1" from "$2" lookup 100
	ip -6 rule "$1" from "$3" lookup 100
}

# expect_follow NAMESPACE: the flows pass where hits_count counts, and skip the stack.
expect_follow() {
	expect_arrives_at "$1" $flows
	expect_skips_stack $flows
}

# a masqueraded flow follows its route to another router on the same uplink
test_fastpath_route_to_another_router() {
	far_make server
	router_make
	far_by server
	far_asked_by_one
	hits_count server eth0b
	far_by router
	expect_follow server
	expect_arrives_at server $flows
	expect_no_leak
}

# a masqueraded flow follows its route to another uplink and keeps its address; without a route, or
# with a blackhole route, it stops, and continues when there is a route again
test_fastpath_route_to_another_uplink() {
	local seen gone
	far_make server server
	far_asked_by_one
	capture_start other client eth0 "dst port 9000 and (src $host4_second or src $host6_second)"
	hits_count client eth0 9000
	far_by client
	expect_follow client
	seen=$(capture_stop other)
	expect_contains "$seen" "IP $host4_second" "IP6 $host6_second"
	far_by server
	expect_goes_on $flows
	for gone in del blackhole; do
		if [ "$gone" = del ]; then
			ip route del "$far4"
			ip -6 route del "$far6"
		else
			ip route replace blackhole "$far4"
			ip -6 route del "$far6"
			ip -6 route add blackhole "$far6"
		fi
		expect_stops $(talks out | tr ' ' '\n' | grep udp)
		[ "$gone" = del ] || ip -6 route del blackhole "$far6"
		far_by server
		expect_flows_skip_stack
	done
	expect_no_leak
}

# replies of a mapped port follow their route to another uplink and keep their source address
test_fastpath_reply_to_another_uplink() {
	far_make client client
	fast_lists
	watch_wire
	web_asked_by client "$host4" "$host6" "--from $far4" "--from $far6"
	hits_count server eth0
	far_by server
	expect_follow server
	far_by client
	expect_flows_skip_stack
	expect_no_leak
}

# a flow follows a policy rule for the container's address when the rule is added and removed
test_fastpath_policy_by_container() {
	far_make server server
	far_asked_by_one
	hits_count client eth0 9000
	far_by client table 100
	far_rules add "$(address4 one)" "$(address6 one)"
	expect_follow client
	far_rules del "$(address4 one)" "$(address6 one)"
	try_often hits_stand_still client $flows || fail "the flow still follows the removed rule"
	expect_skips_stack $flows
	expect_no_leak
}

hits_stand_still() {
	local who=$1 before name
	shift
	before=$(hits "$who")
	for name; do goes_on "$name" || return 1; done
	[ "$(hits "$who")" = "$before" ]
}

# replies that policy routing ties to the uplink of the request leave through it past the stack,
# also when the rule is added and removed during the flow
test_fastpath_reply_tied_to_uplink() {
	far_make server client
	fast_lists
	watch_wire
	far_by server table 100
	far_rules add "$host4_second" "$host6_second"
	hits_count client eth0
	web_asked_by server "$host4_second" "$host6_second" "--from $far4" "--from $far6"
	expect_equal 0 "$(hits client)" "replies by the other uplink"
	far_rules del "$host4_second" "$host6_second"
	expect_follow client
	far_rules add "$host4_second" "$host6_second"
	try_often hits_stand_still client $flows || fail "the flow does not follow its new rule"
	expect_skips_stack $flows
	expect_no_leak
}

# neighbours_know COMMAND...: changes the host's neighbour entries of client and server
neighbours_know() {
	local address device
	while read -r address device; do
		"$@" "$address" dev "$device"
	done <<-NEIGHBOURS
	$client4 eth0
	$client6 eth0
	$server4 eth1
	$server6 eth1
	NEIGHBOURS
}

neighbour_is_at() {
	local name=client
	[ "$3" = eth0 ] || name=server
	ip neighbour replace "$1" lladdr "$(mac_in "$name" eth0)" dev "$3" nud permanent
}

# when the next hop's MAC changes, flows follow at once; when the neighbour entry is removed or has
# failed, or the neighbour does not answer for a while, it is resolved again, and flows continue
test_fastpath_neighbour_changes() {
	flows_make
	ip -n client link set eth0 address 02:00:00:00:07:01
	ip -n server link set eth0 address 02:00:00:00:07:02
	neighbours_know neighbour_is_at
	expect_flows_skip_stack
	expect_steady $flows
	neighbours_know ip neighbour del
	expect_flows_skip_stack
	neighbours_know neighbour_failed
	expect_flows_skip_stack
	expect_steady $flows
	try_often server_is_known || fail "not resolved: $(ip neighbour show "$server4")"
	ip -n server link set eth0 arp off
	neighbours_know ip neighbour del
	expect_stops out_udp4
	ip -n server link set eth0 arp on
	expect_flows_skip_stack
	expect_no_leak
}

# Once a second the programs look at the neighbour entry.
server_is_known() {
	expect_skips_stack out_udp4
	[[ "$(ip neighbour show "$server4")" == *lladdr* ]]
}

neighbour_failed() { ip neighbour replace "$1" dev "$3" nud failed; }

# bulk_open NAME NAMESPACE ADDRESS PORT: much data in both directions, in two halves on demand
bulk_open() {
	local name=$1 who=$2
	piped_open "$name" in_namespace "$who" "$build/tests/bulk" ask tcp "$3" "$4" --on-demand
}

# bulk_half NAME ANSWER: transfers the next half; the answer is half, and ok after the second one
bulk_half() {
	piped_send "$1"
	expect_equal "$2" "$(piped_read "$1" 20)" "answer of $1"
}

# transfers_make on|off OWNER-OF-FAR: large transfers in and out past the stack, of which the first
# half is done, with segmentation offload or without
transfers_make() {
	fast_lists
	sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
	container_add web fast -p 8080:80/tcp
	in_namespace web "$build/tests/bulk" serve 80 --background
	in_namespace "$2" "$build/tests/bulk" serve 9000 --background
	in_namespace web ethtool -K eth0 tso "$1" gso "$1"
	watch_wire
	bulk_open in4 client "$host4" 8080
	bulk_open in6 client "$host6" 8080
	bulk_open out4 web "$far4" 9000
	bulk_open out6 web "$far6" 9000
	local name before
	for name in in4 in6 out4 out6; do
		before=$(counted fast_out)
		bulk_half "$name" half
		[ $(($(counted fast_out) - before)) -gt 10 ] || fail "$name passes the stack: $(paths_show)"
	done
}

# expect_path_mtu MTU ADDRESS...: web has learned this MTU.
expect_path_mtu() {
	local mtu=$1 address
	shift
	for address; do
		expect_contains "$(ip -n web route get "$address")" "mtu $mtu"
	done
}

# The programs look up a flow's route again in the next second of the clock.
routing_is_asked_again() { sleep 1.1; }

mtu_shrinks() {
	local name
	far_make server server
	transfers_make "$1" server
	# Both ends, as of a real link: a veth drops what is larger than the other end's.
	for name in client server; do ip -n "$name" link set eth0 mtu 1400; done
	for name in eth0 eth1; do ip link set "$name" mtu 1400; done
	routing_is_asked_again
	capture_start large_client client eth0 "greater 1415 and $(not_from client)"
	capture_start large_server server eth0 "greater 1415 and $(not_from server)"
	for name in in4 in6 out4 out6; do bulk_half "$name" ok; done
	expect_path_mtu 1400 "$client4" "$client6" "$far4" "$far6"
	if [ "$1" = off ]; then
		expect_captured_nothing large_client
		expect_captured_nothing large_server
	fi
	expect_no_leak
}

# an uplink whose MTU shrinks during a flow: the sender is told, and everything arrives
test_fastpath_mtu_shrinks() { mtu_shrinks off; }

# the same with packets joined for segmentation offload
test_fastpath_mtu_shrinks_offload() { mtu_shrinks on; }

# a route whose MTU shrinks during a flow (locked, because programs cannot see any other route MTU
# of IPv4): the sender is told, and everything arrives
test_fastpath_route_mtu_shrinks() {
	far_make server server
	transfers_make off server
	far_by server mtu lock 1350
	routing_is_asked_again
	capture_start large server eth0 "greater 1365 and $(not_from server)"
	bulk_half out4 ok
	bulk_half out6 ok
	expect_path_mtu 1350 "$far4" "$far6"
	expect_captured_nothing large
	expect_no_leak
}

# a later router with a smaller MTU tells the sender, past the stack too
test_fastpath_path_mtu_behind() {
	far_make client server
	in_namespace server sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
	transfers_make on client
	ip -n server link set shortcut mtu 1300
	ip -n client link set shortcut mtu 1300
	bulk_half out4 ok
	bulk_half out6 ok
	expect_path_mtu 1300 "$far4" "$far6"
	expect_no_leak
}

one_address='.plugins[0].ipam.ranges = [[{"subnet":"10.88.0.0/16", "rangeStart":"10.88.0.50",
	"rangeEnd":"10.88.0.50"}], [{"subnet":"fd00:88::/64", "rangeStart":"fd00:88::50",
	"rangeEnd":"fd00:88::50"}]]'

# a container that is added again, with its old address behind another veth, is reached there, also
# by earlier flows
test_fastpath_veth_replaced() {
	fast_lists "$one_address"
	web_asked_by client
	local veth
	veth=$(host_veth web)
	container_del web fast
	wait_until 5 no_interface "$veth" || fail "$veth stays"
	container_add web fast -p 8080:80/tcp -p 8080:80/udp
	[ "$veth" != "$(host_veth web)" ] || fail "it is the same veth"
	expect_flows_skip_stack
}

# the same with the container stopped in between: the next owner of its address receives none of its
# packets, and the new flows skip the stack
test_fastpath_container_replaced() {
	fast_lists "$one_address"
	web_asked_by client
	container_die web
	runtime del fast web || fail "DEL"
	namespace_add heir
	container_start heir fast
	expect_equal 10.88.0.50 "$(address4 heir)"
	capture_start heir heir eth0 "(tcp or udp) and $(not_from heir)"
	local name
	for name in $flows; do ! goes_on "$name" || fail "$name: the heir answers"; done
	expect_captured_nothing heir
	container_remove heir fast
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open again client "$host4" "$host6" 8080
	expect_skips_stack $(talks again)
}

# flows that are routed by a packet mark stay in the stack, because only the stack knows marks; so
# does a UDP flow that is marked later, once it passes the stack again
test_fastpath_routed_by_mark() {
	far_make server server
	far_asked_by_one
	far_by client table 100
	ip rule add fwmark 7 lookup 100
	ip -6 rule add fwmark 7 lookup 100
	firewall_marks 'iifname "cni0" meta mark set 7'
	hits_count client eth0 9000
	flows_age 6
	expect_arrives_at client out_udp4 out_udp6
	talks_open marked one "$far4" "$far6" 9000
	expect_arrives_at client $(talks marked)
	expect_passes_stack $(talks marked)
	expect_arrives_at client $(talks marked)
	nft delete table inet marks
	talks_open unmarked one "$far4" "$far6" 9000
	expect_skips_stack $(talks unmarked)
	expect_no_leak
}

# when the route changes to an interface that is not classified, a flow is dropped, never sent
# untranslated, and continues once the interface is an uplink
test_fastpath_unclassified_way_out() {
	far_make server server
	far_asked_by_one
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in client "$host4" "$host6" 8080
	expect_skips_stack $(talks in)
	network_make late eth2 203.0.114.1 2001:db8:4::1 203.0.114.10 2001:db8:4::10
	loose
	ip -n late route add "$host4_second" via 203.0.114.1
	capture_start leak late eth0 "$leak"
	ip route replace "$far4" via 203.0.114.10
	ip -6 route replace "$far6" via 2001:db8:4::10
	ip route add "$client4" via 203.0.114.10
	ip -6 route add "$client6" via 2001:db8:4::10
	expect_stops out_udp4 out_udp6 in_udp4 in_udp6
	[ "$(counted drop_unclassified_interface)" -gt 0 ] || fail "nothing was dropped"
	"$build/bpf-portmap" attach >/run/out
	hits_count late eth0
	for _ in 1 2 3; do goes_on out_udp4 || true; done
	[ "$(hits late)" -gt 0 ] || fail "nothing leaves by the new uplink"
	far_by server
	ip route del "$client4" via 203.0.114.10
	ip -6 route del "$client6" via 2001:db8:4::10
	expect_goes_on $flows $(talks in)
	expect_skips_stack $flows $(talks in)
	expect_captured_nothing leak
	expect_no_leak
}

# a container that changes its MAC, which shows only in the neighbour table, receives frames with the
# new one; when the containers' bridge changes its MAC everything works after the next ADD
test_fastpath_inside_another_mac() {
	local name mac=02:00:00:00:07:04
	flows_make
	ip -n web link set eth0 address "$mac"
	ip neighbour flush dev cni0
	expect_flows_skip_stack
	try_often web_gets_frames "> $mac" || fail "frames to web go to $(cat /run/to_web.capture)"
	ip link set cni0 address 02:00:00:00:07:03
	for name in web one; do
		ip -n "$name" neighbour flush dev eth0
	done
	container_add three fast
	expect_flows_skip_stack
	try_often web_gets_frames "02:00:00:00:07:03 > $mac" ||
		fail "the bridge sends frames to web as before: $(cat /run/to_web.capture)"
	expect_no_leak
}

web_gets_frames() {
	frames_start to_web web eth0 "udp and $(not_from web)"
	expect_skips_stack in_udp4
	case $(frames_stop to_web) in *"$1"*) ;; *) return 1 ;; esac
}

# packets that skip the stack pass a root qdisc on an uplink, and its limit is kept; tcpdump on the
# uplinks shows them, in both directions, as they are on the wire
test_fastpath_root_qdisc() {
	flows_make
	capture_start eth0 host eth0 "tcp or udp"
	capture_start eth1 host eth1 "tcp or udp"
	local name before seen
	talk_fast $flows
	seen=$(capture_stop eth0)
	expect_contains "$seen" "> $host4.8080" "> $host6.8080" "IP $host4.8080 >" "IP6 $host6.8080 >"
	seen=$(capture_stop eth1)
	grep -q "IP $host4_second.* > $server4.9000" <<<"$seen" || fail "what leaves is not seen: $seen"
	grep -q "IP6 $host6_second.* > $server6.9000" <<<"$seen" || fail "what leaves is not seen: $seen"
	expect_contains "$seen" "IP $server4.9000 > $host4_second" "IP6 $server6.9000 > $host6_second"
	tc qdisc add dev eth1 root tbf rate 100mbit burst 20k latency 50ms
	for name in $(talks out); do
		before=$(queued eth1)
		expect_skips_stack "$name"
		[ "$(queued eth1)" -gt "$before" ] || fail "$name passes by the qdisc"
	done
	tc qdisc replace dev eth1 root tbf rate 8bit burst 100 latency 1ms
	expect_stops out_udp4 out_udp6
	tc qdisc del dev eth1 root
	expect_flows_skip_stack
	expect_no_leak
}

queued() { tc -j -s qdisc show dev "$1" root | jq '.[0].packets'; }

# queued_in BAND: how many packets the prio qdisc of eth1 has had in this band
queued_in() {
	tc -s class show dev eth1 | awk -v band="1:$1" '$3 == band { found = 1 }
		found && $1 == "Sent" { print $4; exit }'
}

# a packet's IPv4 type of service sets its priority in the uplink's queue, as when it is routed; the
# priority of the container's socket does not
test_fastpath_priority() {
	fast_lists
	serve_in server 9000
	container_add one fast
	talk_open plain one udp "$server4" 9000 --priority 6
	talk_open bulk one udp "$server4" 9000 --tos 8
	talk_open quick one udp "$server4" 9000 --tos 16
	local name band before
	tc qdisc add dev eth1 root handle 1: prio 2>/dev/null || skip "the kernel has no prio"
	expect_skips_stack plain bulk quick
	while read -r name band; do
		before=$(queued_in "$band")
		expect_skips_stack "$name"
		[ "$(queued_in "$band")" -gt "$before" ] ||
			fail "$name is not queued in band $band: $(tc -s class show dev eth1)"
	done <<-'BANDS'
	quick 1
	plain 2
	bulk 3
	BANDS
}

# a masqueraded flow that a packet mark routes stays on that route, also where routing without the
# mark had no other route at first, because the neighbour's address was unknown
test_fastpath_mark_neighbour() {
	local hits
	far_make server server
	fast_lists
	serve_in server 9000
	container_add one fast
	ip route add "$far4" via "$client4" table 100
	ip rule add fwmark 7 lookup 100
	firewall_marks 'iifname "cni0" meta mark set 7'
	ip neighbour delete "$server4" dev eth1
	hits_count client eth0 9000
	talk_open marked one tcp "$far4" 9000
	expect_goes_on marked
	ip neighbour replace "$server4" lladdr "$(mac_in server eth0)" dev eth1 nud permanent
	sleep 1.05
	hits=$(hits client)
	expect_steady marked
	[ "$(hits client)" -gt "$hits" ] || fail "it leaves by the other way: $(paths_show)"
}

# a container that marks its packets like the fast path does, on an interface of its own that is
# unknown to us, cannot send them untranslated
test_fastpath_forged_tc_index() {
	loose
	container_start web bridge -p 8080:80/udp
	watch_wire
	ip link add unknown type veth peer name unknown netns web
	end_make host unknown 10.200.0.1/24
	end_make web unknown 10.200.0.2/24
	ip -n web route add "$server4" via 10.200.0.1 src "$(address4 web)"
	"$build/tests/tcx" pin /sys/fs/bpf/program /sys/fs/bpf/count
	in_namespace web tc qdisc add dev unknown clsact
	in_namespace web tc filter add dev unknown egress protocol all bpf \
		pinned /sys/fs/bpf/program classid 1:6251
	ask web udp "$server4" 9000 --timeout 200 >/dev/null || true
	expect_no_leak
}
