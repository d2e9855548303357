# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fastpath_never.sh - flows that never skip the IP stack, and flows that always do if
# configured.

# Another flow does skip the stack, so nothing else has kept these from it.
expect_only_usual_skips() {
	local before
	container_start usual bridge -p 8099:80/tcp
	before=$(fast_packets)
	expect_equal 0 "$before" "packets that skipped the IP stack"
	conversation_with usual usual client tcp "$host4" 8099
	ROUNDS=5 expect_fast usual usual tcp
	[ "$(fast_packets)" -gt 0 ] || fail "no packet skips the IP stack, or none is counted"
}

# expect_reasons REASONS [CONDITION]: `flows` says of all flows, or of those that meet a condition of
# jq, why they stay in the stack.
expect_reasons() {
	expect_equal "$1" "$(item "[.items[] | select(${2:-true}) | .stack_reason // \"none\"] |
		unique | join(\" \")" flows)" "reasons of flows with ${2:-anything}"
}

mapped_tcp='.kind == "mapping" and .protocol == "tcp"'

# connections whose packets have IP options, from the handshake on
test_fastpath_never_ip_options() {
	guarded_world
	conversation_open in client tcp "$host4" 8080 --ip-options
	conversation_open out web tcp "$server4" 9000 --ip-options
	conversation_open datagrams client udp "$host4" 8080 --ip-options
	expect_slow in web tcp
	expect_slow out server tcp
	expect_slow datagrams web udp
	expect_reasons options
	expect_only_usual_skips
}

# pings; a container that reaches itself through the host's address; containers on one bridge that
# talk through it, with bridge netfilter and without; a client that connects to the container's own
# address
test_fastpath_never_hairpin() {
	local protocol setting
	guarded_world
	nft insert rule inet guard forward meta l4proto '{ icmp, ipv6-icmp }' accept
	in_namespace web busybox ping -c 4 -i 0.1 -q "$server4" >/dev/null || fail "no echo"
	in_namespace web busybox ping -6 -c 4 -i 0.1 -q "$server6" >/dev/null || fail "no echo"
	expect_equal 16 "$(forwarded icmp)" "echo requests and replies through the IP stack"
	container_add near bridge
	for protocol in tcp udp; do
		conversation_open "own_$protocol" web "$protocol" "$host4" 8080
		for _ in 1 2 3 4; do expect_says "own_$protocol" web; done
		conversation_open "direct_$protocol" client "$protocol" "$(address4 web)" 80
		expect_slow "direct_$protocol" web "$protocol"
	done
	for setting in 0 1; do
		bridge_netfilter "$setting"
		for protocol in tcp udp; do
			conversation_open "near_$protocol" near "$protocol" "$host6" 8080
			for _ in 1 2 3 4; do expect_says "near_$protocol" web; done
			conversation_close "near_$protocol"
		done
	done
	bridge_netfilter 0
	expect_only_usual_skips
}

# masqAll: a flow that is translated at both ends; containers whose list turns fastPath off, together with
# others; SCTP
test_fastpath_never_of_lists() {
	conflist all bridge "$(with_ours '{"masqAll": true}')"
	stack_watch
	container_start web all -p 8080:80/tcp -p 8080:80/udp
	local protocol
	for protocol in tcp udp; do
		conversation_open "all_$protocol" client "$protocol" "$host4" 8080
		expect_slow "all_$protocol" web "$protocol"
	done
	expect_reasons changed "$mapped_tcp"
	container_remove web all
	conflist off bridge "$(with_ours '{"fastPath": "off"}')"
	guard
	serve_in server 9000
	container_start web off -p 8080:80/tcp -p 8080:80/udp
	conversations_open
	conversations_each expect_slow tcp udp
	expect_reasons off
	nft delete table inet guard
	container_add sctp bridge -p 9999:3868/sctp
	serve_sctp_in sctp 3868
	ask client sctp "$host4" 9999 --count 3 >/run/answers || fail "$(cat /run/answers)"
	[ "$(forwarded sctp)" -ge 6 ] || fail "$(forwarded sctp) packets through the IP stack"
	expect_only_usual_skips
}

# flows that another NAT translates on the way out: a service address for a server elsewhere, as
# kube-proxy's, TCP and UDP
test_fastpath_never_service() {
	stack_watch
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp
	nft -f - <<-RULES
	table ip service {
		chain prerouting {
			type nat hook prerouting priority dstnat;
			ip daddr 198.18.0.1 meta l4proto { tcp, udp } dnat to $server4:9000
		}
	}
	RULES
	local protocol
	for protocol in tcp udp; do
		conversation_open "service_$protocol" web "$protocol" 198.18.0.1 80
		expect_slow "service_$protocol" server "$protocol"
	done
	expect_contains "$(say service_tcp)" "client=$host4_second:"
	expect_contains "$(say service_tcp)" "from=198.18.0.1:80"
	expect_only_usual_skips
}

# flows that another NAT translates on the way in: sources that an iptables rule masquerades towards
# the containers, and a port that an nftables rule publishes
test_fastpath_never_foreign_nat_inward() {
	stack_watch
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start other bridge
	iptables -t nat -A POSTROUTING -o cni0 -p tcp --dport 80 -s "$client4" -j MASQUERADE
	iptables -t nat -A POSTROUTING -o cni0 -p udp --dport 80 -s "$client4" -j MASQUERADE
	iptables -t nat -A PREROUTING -p tcp -d "$host4" --dport 7070 -j DNAT --to "$(address4 other):80"
	conversation_open seen_tcp client tcp "$host4" 8080
	conversation_open seen_udp client udp "$host4" 8080
	conversation_open published client tcp "$host4" 7070
	expect_contains "$(say seen_tcp)" "client=$bridge4:"
	expect_contains "$(say seen_udp)" "client=$bridge4:"
	expect_slow seen_tcp web tcp
	expect_slow seen_udp web udp
	expect_slow published other tcp
	expect_reasons changed "$mapped_tcp"
	iptables -t nat -F POSTROUTING
	expect_slow seen_tcp web tcp
	conntrack -F 2>/dev/null
	expect_only_usual_skips
}

# an uplink without Ethernet headers, for a bridge container and a ptp container
test_fastpath_never_tunnel() {
	local list
	stack_watch
	tunnel_make
	serve_in office 9000
	for list in bridge ptp; do
		container_start "$list" "$list" -p "80${#list}:80/tcp" -p "80${#list}:80/udp"
		conversation_open in_tcp office tcp "$tunnel4" "80${#list}"
		conversation_open in_udp office udp "$tunnel4" "80${#list}"
		conversation_open out_tcp "$list" tcp "$office4" 9000
		expect_slow in_tcp "$list" tcp
		expect_slow in_udp "$list" udp
		expect_slow out_tcp office tcp
		expect_reasons interface '.state == "established"'
		conversation_close in_tcp
		conversation_close in_udp
		conversation_close out_tcp
	done
	expect_only_usual_skips
}

always_world() {
	conflist always bridge "$(with_ours '{"fastPath": "always"}')"
	stack_watch
	nft add table inet watch_web
	nft add counter inet watch_web to_web
	nft add chain inet watch_web forward '{ type filter hook forward priority -400; }'
	nft add rule inet watch_web forward th dport 80 counter name to_web
	nft add rule inet watch_web forward th sport 80 counter name to_web
	serve_in server 9000
	container_start web always -p 8080:80/tcp -p 8080:80/udp
}

# fastPath always: no packet to a mapped port goes through the IP stack, not even the first and the
# last, once the container's MAC is known; flows that a container begins do so at first, and a firewall
# that refuses those is obeyed
test_fastpath_always() {
	always_world
	expect_serves web
	nft reset counters >/dev/null
	conversations_open
	conversations_skip_stack
	local each
	for each in {in,out}{4,6}_{tcp,udp}; do conversation_close "$each"; done
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_equal 0 "$(nft -j list counter inet watch_web to_web |
		jq '.nftables[] | select(.counter).counter.packets')" "packets of the mapped port there"
	guard 'meta l4proto { tcp, udp } th dport 9000 drop'
	hits_count server eth0 9000
	ask web udp "$server4" 9000 --count 4 --timeout 150 --keep-going >/dev/null || true
	ask web tcp "$server6" 9000 --timeout 300 >/dev/null || true
	expect_equal 0 "$(hits server)" "packets that got through"
	expect_answers client "$host4" 8080 web "$client4"
}
