# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_masquerade.sh - flows from a container to the outside.

# watch_wire: looks for an address of a container network on the wire, where none may ever be.
leak='net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16'

# leaves_masqueraded LIST...
leaves_masqueraded() {
	local list
	for list; do
		container_add "one-$list" "$list"
		expect_gets_out "one-$list"
		both expect_answers "one-$list" @client 9000 client @host
	done
}

# also with fastPath off, always
# a container of a bridge, and one of ptp, leaves by each uplink with that uplink's address, IPv4 and
# IPv6; also with a strict firewall and br_netfilter
test_masquerade_bridge() {
	serve_in client 9000
	serve_in server 9000
	leaves_masqueraded bridge ptp
	container_remove one-bridge bridge
	bridge_netfilter 1
	firewall_strict
	leaves_masqueraded bridge
}

# a container's ping outside is answered; outside sees the host's address
test_masquerade_echo() {
	container_add one bridge
	container_add two bridge
	capture_start wire server eth0 "icmp or icmp6"
	in_namespace one busybox ping -c 3 -i 0.1 -W 1 "$server4" >/dev/null || fail "no reply to IPv4"
	in_namespace two busybox ping -c 1 -W 1 "$server4" >/dev/null || fail "no reply to the second"
	in_namespace one busybox ping -6 -c 3 -i 0.1 -W 1 "$server6" >/dev/null || fail "no reply to IPv6"
	local seen
	seen=$(capture_stop wire)
	expect_contains "$seen" "$host4_second > $server4: ICMP echo request"
	expect_contains "$seen" "$host6_second > $server6: ICMP6, echo request"
	case $seen in *10.88.* | *fd00:*) fail "a container's address on the wire: $seen" ;; esac
}

port_seen() { field_of client "$1" | sed 's/.*://'; }

# the container's own port is kept if it is free and not one of the host's ephemeral range
test_masquerade_keeps_port() {
	sysctl -qw net.ipv4.ip_local_port_range='32768 60999'
	serve_in server 9000
	container_add one bridge
	local port answer protocol
	for protocol in tcp udp; do
		answer=$(ask one "$protocol" "$server4" 9000 --source-port 5000)
		expect_equal "$host4_second:5000" "$(field_of client "$answer")"
		answer=$(ask one "$protocol" "$server4" 9000 --source-port 40000)
		port=$(port_seen "$answer")
		[ "$port" -lt 32768 ] || [ "$port" -gt 60999 ] || fail "port $port is the host's"
	done
}

# also with fastPath off
# containers that use one source port to one server get different ports, and each receives its own
# answers
test_masquerade_same_source_port() {
	serve_in server 9000
	local name protocol ports
	for name in one two three; do container_add "$name" bridge; done
	for protocol in tcp udp; do
		ports=
		for name in one two three; do
			conversation_open "${name}_$protocol" "$name" "$protocol" "$server4" 9000 \
				--source-port 5000 --connected
		done
		for name in one two three one two three; do
			ports+=" $(port_seen "$(say "${name}_$protocol")")"
		done
		set -- $ports
		expect_equal "$1 $2 $3" "$4 $5 $6" "a live flow's ports"
		expect_equal 3 "$(printf '%s\n' "$1" "$2" "$3" | grep -cE '^[0-9]+$')" "answered, of $ports"
		expect_equal 3 "$(printf '%s\n' "$1" "$2" "$3" | sort -u | wc -l)" "different ports of $ports"
	done
}

# expect_other_port NAMESPACE PROTOCOL PORT [LAST]: a flow from that port leaves with one that is none
# of these.
expect_other_port() {
	local answer seen
	answer=$(ask "$1" "$2" "$server4" 9000 --source-port "$3")
	expect_contains "$answer" "client=$host4_second:"
	seen=$(port_seen "$answer")
	[ "$seen" -lt "$3" ] || [ "$seen" -gt "${4:-$3}" ] || fail "left with a port that is taken: $answer"
}

# a masquerade port is never a published one, even if the container uses it as its source, nor one
# that is published for one address of the host only; nor one that a socket of the host has, connected or
# listening
test_masquerade_not_a_published_port() {
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp -p "$host4_second:8081:80/udp"
	container_add one bridge
	local protocol name
	for name in one web; do
		for protocol in tcp udp; do expect_other_port "$name" "$protocol" 8080; done
	done
	expect_other_port one udp 8081
	expect_answers server "$host4_second" 8080 web "$server4" --source-port 9001
	serve_on_host 5001
	for protocol in tcp udp; do
		conversation_open "host_$protocol" host "$protocol" "$server4" 9000 \
			--source-port 5000 --connected
		expect_says "host_$protocol" server
		expect_other_port one "$protocol" 5000
		expect_other_port one "$protocol" 5001
		expect_says "host_$protocol" server
	done
}

# nor one that the administrator has reserved, or reserves later, from the next ADD on
test_masquerade_not_a_reserved_port() {
	serve_in server 9000
	sysctl -qw net.ipv4.ip_local_reserved_ports=5010-5019
	container_add one bridge
	expect_other_port one udp 5014 5019
	expect_equal 5004 "$(port_seen "$(ask one udp "$server4" 9000 --source-port 5004)")" \
		"the port seen before"
	sysctl -qw net.ipv4.ip_local_reserved_ports=5000-5009 net.ipv4.ip_local_port_range='6000 7000'
	container_add two bridge
	local port answer
	for port in 5005 6500; do
		answer=$(ask one udp "$server4" 9000 --source-port "$port")
		expect_contains "$answer" "client=$host4_second:"
		[[ ! "$(port_seen "$answer")" =~ ^(500[0-9]|6[0-9]{3}|7000)$ ]] ||
			fail "left with a port of the host's own: $answer"
	done
	expect_equal 40000 "$(port_seen "$(ask one udp "$server4" 9000 --source-port 40000)")" \
		"a port that is no longer the host's own"
}

# UDP is, two seconds after it began.
ports_are_assured() {
	local port
	for port in $free; do expect_contains "$(say "talk$port")" name=server; done
	[ "$("$build/bpf-portmap" flows --state established --json | jq '.items | length')" = 7 ]
}

# when no port is left towards one server, new flows are dropped, never sent untranslated; other
# servers are reached
test_masquerade_ports_exhausted() {
	sysctl -qw net.ipv4.ip_local_port_range='1025 64505'
	local port options=() free='1024 65530 65531 65532 65533 65534 65535'
	serve_in server 9000
	serve_in client 9000
	for port in $(seq 64506 65529); do options+=(-p "$port:80/udp"); done
	container_add web bridge "${options[@]}"
	container_add one bridge
	container_add two bridge
	capture_start wire server eth0 "$leak"
	for port in $free; do
		conversation_open "talk$port" one udp "$server4" 9000 --source-port "$port"
		expect_contains "$(say "talk$port")" "client=$host4_second:$port "
	done
	wait_until 10 ports_are_assured || fail "ports that are not assured are given up"
	for port in $free 5000 40000; do
		expect_no_answer two udp "$server4" 9000 --source-port "$port"
	done
	expect_contains "$(say talk65531)" "client=$host4_second:65531 "
	expect_answer two udp "$client4" 9000 client "$host4" --source-port 1024
	expect_captured_nothing wire
}

# also with fastPath off
# of several addresses on the uplink the one that routing prefers is used, not the lowest; a flow keeps
# its address when routing would choose another one for new flows; these use a new one at once
test_masquerade_live_flow_keeps_address() {
	serve_in server 9000
	container_add one bridge
	local protocol before
	ip address add 198.51.100.0/32 dev lo 2>/dev/null || true
	ip address add 10.0.0.1/32 dev eth1
	ip address add 198.51.100.200/24 dev eth1
	expect_answers one "$server4" 9000 server "$host4_second"
	for protocol in tcp udp; do
		conversation_open "old_$protocol" one "$protocol" "$server4" 9000
		before=$(say "old_$protocol")
		expect_contains "$before" "client=$host4_second:"
		eval "before_$protocol=\$before"
	done
	ip address add 198.51.100.2/24 dev eth1
	ip route change 198.51.100.0/24 dev eth1 src 198.51.100.2
	expect_answers one "$server4" 9000 server 198.51.100.2
	expect_equal "$before_tcp" "$(say old_tcp)"
	expect_equal "$before_udp" "$(say old_udp)"
	ip address del "$host4_second/24" dev eth1
	ip address replace 198.51.100.3/24 dev eth1
	expect_answers one "$server4" 9000 server 198.51.100.3
	address6_add 2001:db8:2::2/64 eth1
	ip address del "$host6_second/64" dev eth1
	expect_answers one "$server6" 9000 server 2001:db8:2::2
}

# also with fastPath off
# an address that is reachable through two uplinks is reached through the one that routing uses now, also
# where policy routing decides by the container's address, and the source address is that uplink's
test_masquerade_two_uplinks() {
	local far=203.0.113.9 name
	for name in client server; do
		ip -n "$name" address add "$far/32" dev lo
		serve_in "$name" 9000
	done
	container_add one bridge
	ip route add "$far" via "$client4"
	expect_answers one "$far" 9000 client "$host4"
	ip route replace "$far" via "$server4"
	expect_answers one "$far" 9000 server "$host4_second"
	container_add two bridge
	ip route replace "$far" via "$client4"
	ip route add "$far" via "$server4" table 100
	ip rule add from "$(address4 two)" lookup 100
	reverse_path_loose
	expect_answers two "$far" 9000 server "$host4_second"
	expect_answers one "$far" 9000 client "$host4"
}

# also with fastPath off, always
# a reply leaves through the uplink that policy routing ties to the requested address
test_masquerade_reply_by_second_uplink() {
	local far=203.0.113.9
	ip -n server address add "$far/32" dev lo
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	reverse_path_loose
	ip route add "$far" via "$client4"
	ip route add "$far" via "$server4" table 100
	ip rule add from "$host4_second" lookup 100
	expect_answers server "$host4_second" 8080 web "$far" --from "$far"
	local protocol
	for protocol in tcp udp; do
		conversation_open "talk_$protocol" server "$protocol" "$host4_second" 8080 --from "$far"
	done
	for _ in 1 2 3; do
		for protocol in tcp udp; do expect_says "talk_$protocol" web; done
		sleep 0.7
	done
}

# within its own subnet a container keeps its address; another container network sees the host's
test_masquerade_other_container_network() {
	conflist other bridge "$other_network"
	container_start near bridge
	container_start far other
	container_start routed ptp
	container_add one bridge
	expect_answers one "$(address4 near)" 80 near "$(address4 one)"
	expect_answers one "$(address6 near)" 80 near "$(address6 one)"
	expect_answers one "$(address4 far)" 80 far 10.87.0.1
	expect_answers one "$(address6 far)" 80 far fd00:87::1
	expect_answers one "$(address4 routed)" 80 routed
	expect_answers routed "$(address4 near)" 80 near "$bridge4"
	container_add routed_too ptp
	expect_answers routed_too "$(address4 routed)" 80 routed "$(address4 routed_too)"
	expect_answers routed_too "$(address6 routed)" 80 routed "$(address6 routed_too)"
}

# ipMasq, ipMasq4 and ipMasq6: what they turn off leaves with the container's own address; where bridge
# masquerades too, a packet that already has the host's address passes
test_masquerade_one_family() {
	conflist four bridge "$(with_ours '{"ipMasq4": true, "ipMasq6": false}')"
	conflist six bridge "$(with_ours '{"ipMasq": false, "ipMasq6": true}')"
	conflist open bridge "$(with_ours '{"ipMasq": false}')"
	container_add one four
	container_add two six
	container_add three open
	serve_in client 9000
	expect_answers one "$client4" 9000 client "$host4"
	expect_answers one "$client6" 9000 client "$(address6 one)"
	expect_answers two "$client4" 9000 client "$(address4 two)"
	expect_answers two "$client6" 9000 client "$host6"
	expect_answers three "$client6" 9000 client "$(address6 three)"
	conflist both bridge '.plugins[0].ipMasq = true'
	container_start four both -p 8080:80/tcp
	both expect_answers four @client 9000 client @host
	expect_answer client tcp "$host4" 8080 four "$client4"
}

# a capture on the wire sees an untranslated packet, and none while containers talk in every way
test_masquerade_no_leak() {
	serve_in server 9000
	serve_in client 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start routed ptp -p 8081:80/tcp
	container_add_plain plain
	capture_start control server eth0 "$leak"
	ask plain udp "$server4" 9000 --timeout 200 >/dev/null || true
	expect_contains "$(capture_stop control)" "$(address4 plain)"
	ip netns delete plain
	capture_start wire_server server eth0 "$leak"
	capture_start wire_client client eth0 "$leak"
	local name address
	for name in web routed; do
		for address in "$server4" "$server6"; do
			expect_answers "$name" "$address" 9000 server
			expect_answer "$name" tcp "$address" 9000 server - --reset
			ask "$name" tcp "$address" 9999 >/dev/null || true
			ask "$name" udp "$address" 9999 --connected >/dev/null || true
		done
		in_namespace "$name" busybox ping -c 1 -W 1 "$server4" >/dev/null
	done
	expect_answers client "$host4" 8080 web
	expect_answer client tcp "$host4" 8080 web - --reset
	expect_answer client tcp "$host4" 8081 routed - --reset
	expect_captured_nothing wire_server
	expect_captured_nothing wire_client
}

# a container's late RST, FIN and ACK, and those that belong to no flow, do not leave with its
# address
test_masquerade_late_segments() {
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp
	local flags
	capture_start leak server eth0 "$leak"
	capture_start client_leak client eth0 "$leak"
	capture_start any server eth0 "tcp port 9000"
	expect_answer web tcp "$server4" 9000 server "$host4_second" --source-port 5000
	expect_answer client tcp "$host4" 8080 web "$client4" --source-port 7000
	flows_end
	for flags in R A FA RA PA SA; do
		forge web cni0 tcp "$(address4 web)" 5000 "$server4" 9000 --tcp-flags "$flags"
		forge web cni0 tcp "$(address4 web)" 6000 "$server4" 9000 --tcp-flags "$flags"
		forge web cni0 tcp "$(address6 web)" 6000 "$server6" 9000 --tcp-flags "$flags"
		forge web cni0 tcp "$(address4 web)" 80 "$client4" 7000 --tcp-flags "$flags"
		forge web cni0 tcp "$(address4 web)" 80 "$client4" 7001 --tcp-flags "$flags"
	done
	expect_contains "$(capture_stop any)" "$host4_second.5000"
	expect_captured_nothing leak
	expect_captured_nothing client_leak
}

# After a while the kernel and we forget a closed connection; here this happens at once.
flows_end() {
	conntrack -F >/dev/null 2>&1 || true
	connections_forget
}

# between our DEL and bridge's no packet leaves with the container's address, and none reaches it
test_masquerade_no_leak_after_del() {
	serve_in server 9000
	container_add_plain web
	plugin_call ADD web >/run/result || fail "$(cat /run/result)"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	conversation_open out web udp "$server4" 9000
	conversation_open stream web tcp "$server4" 9000
	expect_says out server
	expect_says stream server
	capture_start leak server eth0 "$leak"
	capture_start client_leak client eth0 "$leak"
	plugin_call DEL web || fail DEL
	expect_contains "$(say out)" timeout
	expect_contains "$(say stream)" timeout
	expect_no_answer web tcp "$server4" 9000
	expect_no_answer web udp "$server6" 9000
	expect_no_answer client tcp "$host4" 8080
	expect_captured_nothing leak
	expect_captured_nothing client_leak
}

# forge_direct PROTOCOL SOURCE CONTAINER: a packet from port 9000 to the container's own port 5000
forge_direct() {
	for _ in 1 2; do
		forge client eth0 "$1" "$2" 9000 "$3" 5000
	done
}

# a packet with a forged source, which the reverse path filter or the firewall drops, does not keep
# a container's flow to that very address from being masqueraded
test_masquerade_forged_direct_client() {
	serve_in server 9000
	serve_in client 9000
	container_add one bridge
	container_add routed ptp
	nft add table inet deny
	nft 'add chain inet deny forward { type filter hook forward priority 0; policy accept; }'
	nft add rule inet deny forward iifname eth0 udp sport 9000 ct state new drop
	nft add rule inet deny forward iifname eth0 tcp sport 9000 ct state new drop
	local name protocol
	for name in one routed; do
		for protocol in tcp udp; do
			forge_direct "$protocol" "$server4" "$(address4 "$name")"
			forge_direct "$protocol" "$client4" "$(address4 "$name")"
			forge_direct "$protocol" "$client6" "$(address6 "$name")"
			expect_answer "$name" "$protocol" "$server4" 9000 server "$host4_second" \
				--source-port 5000
			both expect_answer "$name" "$protocol" @client 9000 client @host --source-port 5000
		done
	done
}

# a client that connects to containers by their own addresses is answered from there, with NAT on
# the way or without; it is told if the firewall refuses it
test_masquerade_direct_clients() {
	conflist other bridge "$other_network"
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	container_start routed ptp
	container_start far other
	container_add_plain plain
	local name
	for name in one routed far; do
		expect_answers client "$(address4 "$name")" 80 "$name" "$client4"
		expect_answers client "$(address6 "$name")" 80 "$name" "$client6"
		in_namespace client busybox ping -c 1 -W 1 "$(address4 "$name")" >/dev/null
		in_namespace client busybox ping -6 -c 1 -W 1 "$(address6 "$name")" >/dev/null
		expect_answers plain "$(address4 "$name")" 80 "$name" "$(address4 plain)"
	done
	expect_answers client "$(address4 one)" 80 one "$client4" --source-port 7000
	expect_answers client "$host4" 8080 one "$client4" --source-port 7001
	nft add table inet deny
	nft 'add chain inet deny forward { type filter hook forward priority 0; policy accept; }'
	nft add rule inet deny forward ip saddr "$client4" tcp dport 80 reject with tcp reset
	expect_contains "$(ask client tcp "$(address4 one)" 80)" refused
}

# traffic of addresses that are not our endpoints is left alone, forwarded or not, and so is what goes
# to the host's own addresses; a flow that came in through a mapped port leaves with the requested
# address
test_masquerade_not_for_others() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_add_plain plain
	serve_in client 9000
	expect_answers plain "$client4" 9000 client "$(address4 plain)"
	expect_answers client "$(address4 web)" 80 web "$client4"
	serve_in server 9000
	expect_answers client "$server4" 9000 server "$client4"
	serve_on_host 9999
	expect_answers web "$host4" 9999 host "$(address4 web)"
	expect_answers web "$host4_second" 9999 host "$(address4 web)"
	expect_answers web "$host6" 9999 host "$(address6 web)"
	ip address add 192.0.2.3/24 dev eth0
	conversation_open talk client udp 192.0.2.3 8080
	expect_contains "$(say talk)" "from=192.0.2.3:8080"
	expect_contains "$(say talk)" "from=192.0.2.3:8080"
}

# an uplink that appeared after the last ADD leaks nothing, and works after the next CHECK, ADD or
# attach, which says what it did, once
test_masquerade_new_uplink() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	network_make late eth2 203.0.113.1 2001:db8:3::1 203.0.113.10 2001:db8:3::10
	serve_in late 9000
	capture_start leak late eth0 "$leak"
	expect_no_answers web 203.0.113.10 9000
	expect_captured_nothing leak
	container_check web bridge
	expect_answers web 203.0.113.10 9000 late 203.0.113.1
	expect_answers late 203.0.113.1 8080 web 203.0.113.10
	network_make later eth3 203.0.114.1 2001:db8:4::1 203.0.114.10 2001:db8:4::10
	serve_in later 9000
	container_add other bridge
	expect_answers web 203.0.114.10 9000 later 203.0.114.1
	expect_answers later 2001:db8:4::1 8080 web 2001:db8:4::10
	network_make last eth4 203.0.115.1 2001:db8:5::1 203.0.115.10 2001:db8:5::10
	serve_in last 9000
	expect_no_answer web udp 203.0.115.10 9000
	expect_equal 'eth4            attached' "$("$build/bpf-portmap" attach)"
	expect_equal '' "$("$build/bpf-portmap" attach)"
	expect_answers web 203.0.115.10 9000 last 203.0.115.1
	expect_answers web 2001:db8:5::10 9000 last 2001:db8:5::1
	expect_answers last 203.0.115.1 8080 web 203.0.115.10
}

# a flow whose row for replies was lost to another container's gets another port within a second
test_masquerade_lost_tuple() {
	serve_in server 9000
	container_add one bridge
	container_add two bridge
	conversation_open first one udp "$server4" 9001 --source-port 5000
	say first >/dev/null || true
	map_empty aliases
	conversation_open second two udp "$server4" 9001 --source-port 5000
	say second >/dev/null || true
	sleep 1.1
	say first >/dev/null || true
	bpftool -j map dump pinned "$pins/connections" | jq -e '[.[].formatted.value |
		select(.kind == "FLOW_MASQUERADE") | .external_port] |
		length == 2 and .[0] != .[1]' >/dev/null || fail "both still leave as one"
}
