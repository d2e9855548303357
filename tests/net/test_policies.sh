# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_policies.sh - what the options of a list do to its containers' traffic.

# with_policy NAME OPTIONS [BASE]: a list that has them
with_policy() {
	conflist "$1" "${3:-bridge}" "$(with_ours "$2")"
}

# masqPorts: flows leave with ports of the list, the container's own if it is one of them
test_policy_masquerade_ports() {
	serve_in server 9000
	with_policy some '{"masqPorts": "30000-30009,50000"}'
	container_add one some
	local protocol answer port
	for protocol in tcp udp; do
		answer=$(ask one "$protocol" "$server4" 9000 --source-port 50000)
		expect_equal "$host4_second:50000" "$(field_of client "$answer")"
		for port in 40000 5000 30009; do
			answer=$(ask one "$protocol" "$server4" 9000 --source-port "$port")
			[[ $(field_of client "$answer") =~ ^$host4_second:(3000[0-9]|50000)$ ]] ||
				fail "from port $port: $answer"
		done
		answer=$(ask one "$protocol" "$server6" 9000 --source-port 5000)
		[[ $(field_of client "$answer") =~ :(3000[0-9]|50000)$ ]] || fail "IPv6: $answer"
	done
}

# nonMasqueradeCIDRs: what lies in there sees the container's own address, exceptions do not
test_policy_unmasqueraded() {
	serve_in client 9000
	serve_in server 9000
	with_policy plain_to_client '{"nonMasqueradeCIDRs": ["192.0.2.0/24", "2001:db8:1::/64"]}'
	with_policy exception '{"nonMasqueradeCIDRs": ["192.0.0.0/8", "::/0", "!192.0.2.10",
		"!2001:db8:1::/64"]}'
	container_add one plain_to_client
	container_add two exception
	expect_answers one "$client4" 9000 client "$(address4 one)"
	expect_answers one "$client6" 9000 client "$(address6 one)"
	in_namespace one busybox ping -c 1 -W 1 "$client4" >/dev/null || fail "no reply"
	expect_gets_out one
	both expect_answers two @client 9000 client @host
	expect_answers two "$server4" 9000 server "$host4_second"
}

# snatAddresses: each container leaves with one of them, always the same; a family without one
# with the interface's
test_policy_source_addresses() {
	serve_in server 9000
	local address name seen
	for address in 192.0.2.71 192.0.2.72 192.0.2.73; do ip address add "$address/32" dev eth0; done
	with_policy several '{"snatAddresses": ["192.0.2.71", "192.0.2.72", "192.0.2.73"]}'
	for name in one two three; do
		container_add "$name" several
		seen=$(field_of client "$(ask "$name" tcp "$server4" 9000)" | address_part)
		[[ $seen =~ ^192.0.2.7[123]$ ]] || fail "$name left as $seen"
		for _ in 1 2 3; do expect_answers "$name" "$server4" 9000 server "$seen"; done
		in_namespace "$name" busybox ping -c 1 -W 1 "$server4" >/dev/null || fail "no reply"
		expect_answers "$name" "$server6" 9000 server "$host6_second"
	done
}

# snat false: a container that reaches itself by a mapped port gets no answer, as with portmap;
# everybody else does
test_policy_without_snat() {
	with_policy none '{"snat": false}'
	container_start web none -p 8080:80/tcp -p 8080:80/udp
	container_start usual bridge -p 8081:80/tcp -p 8081:80/udp
	expect_no_answers web "$host4" 8080
	expect_answers usual "$host4" 8081 usual "$bridge4"
	expect_answers usual "$host4" 8080 web "$(address4 usual)"
	expect_answers client "$host4" 8080 web "$client4"
}

# masqAll, whoever asks is seen as the host, on its interface to the container
masquerades_all() {
	local list=$1 gateway4=$2 gateway6=$3
	container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
	both expect_answers client @host 8080 web @gateway
	expect_answers server "$host4_second" 8080 web "$gateway4"
	expect_answers usual "$host4" 8080 web "$gateway4"
	expect_answers web "$host4" 8080 web "$gateway4"
	expect_answer client tcp "$host4" 8081 usual "$client4"
	expect_answers client "$(address4 web)" 80 web "$client4"
	expect_answers web "$server4" 9000 server "$host4_second"
	conversation_open talk client udp "$host4" 8080
	expect_contains "$(say talk)" "client=$gateway4:"
	sleep 1.1
	expect_contains "$(say talk)" "client=$gateway4:"
	conversation_close talk
	container_remove web "$list"
}

# also with fastPath off
# masqAll: a bridge's container sees the bridge's address alone, a routed one the address of its veth;
# also with a strict firewall
test_policy_masquerade_all() {
	serve_in server 9000
	container_start usual bridge -p 8081:80/tcp
	with_policy all '{"masqAll": true}'
	with_policy routed '{"masqAll": true}' ptp
	masquerades_all all "$bridge4" "$bridge6"
	masquerades_all routed 10.89.0.1 fd00:89::1
	firewall_strict
	masquerades_all all "$bridge4" "$bridge6"
}

# also with fastPath off, always
# sourceRanges: only who is in there gets a new flow to a mapped port, neighbours included; those of one
# family alone close the ports to all clients of the other one
test_policy_source_ranges() {
	with_policy some '{"sourceRanges": ["192.0.2.0/24", "!192.0.2.11", "2001:db8:1::/64"]}'
	ip -n client address add 192.0.2.11/24 dev eth0
	container_start web some -p 8080:80/tcp -p 8080:80/udp
	container_start usual bridge -p 8081:80/tcp
	local protocol
	expect_serves web
	for protocol in tcp udp; do
		expect_no_answer client "$protocol" "$host4" 8080 --from 192.0.2.11
		expect_no_answer server "$protocol" "$host4_second" 8080
		expect_no_answer server "$protocol" "$host6_second" 8080
		expect_no_answer usual "$protocol" "$host4" 8080
	done
	expect_answer server tcp "$host4_second" 8081 usual "$server4"
	[ "$(counted drop_source_range)" -gt 7 ] || fail "not counted"
	with_policy four '{"sourceRanges": ["0.0.0.0/0"]}'
	with_policy six '{"sourceRanges": ["::/0"]}'
	container_start of_four four -p 8082:80/tcp
	container_start of_six six -p 8083:80/tcp
	expect_answer client tcp "$host4" 8082 of_four
	expect_no_answer client tcp "$host6" 8082
	expect_answer client tcp "$host6" 8083 of_six
	expect_no_answer client tcp "$host4" 8083
}

# excludeCIDRs: on an address in there nothing is mapped, the host itself answers
test_policy_excluded() {
	with_policy some '{"excludeCIDRs": ["192.0.2.64/26", "2001:db8:1::77"]}'
	ip address add 192.0.2.77/24 dev eth0
	address6_add 2001:db8:1::77/64 eth0
	serve_on_host 8080
	container_start web some -p 8080:80/tcp -p 8080:80/udp
	container_add near bridge
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers client 192.0.2.77 8080 host "$client4"
	expect_answers client 2001:db8:1::77 8080 host "$client6"
	expect_answers client "$host6" 8080 web "$client6"
	expect_answers near 192.0.2.77 8080 host "$(address4 near)"
}

# the options of one container are not those of the next that has its slot
test_policy_of_another_time() {
	serve_in client 9000
	with_policy some '{"nonMasqueradeCIDRs": ["192.0.2.0/24"], "sourceRanges": ["198.51.100.0/24"]}'
	container_start one some -p 8080:80/tcp
	expect_answers one "$client4" 9000 client "$(address4 one)"
	expect_no_answer client tcp "$host4" 8080
	container_remove one some
	container_start one bridge -p 8080:80/tcp
	expect_answers one "$client4" 9000 client "$host4"
	expect_answer client tcp "$host4" 8080 one "$client4"
}

# deprecated IPv6 addresses are not what new flows leave with, live ones keep theirs
test_policy_deprecated_address() {
	serve_in server 9000
	container_add one bridge
	conversation_open old one udp "$server6" 9000
	expect_contains "$(say old)" "client=[$host6_second]:"
	address6_add 2001:db8:2::55/64 eth1
	ip address change "$host6_second/64" dev eth1 valid_lft forever preferred_lft 0
	expect_answers one "$server6" 9000 server 2001:db8:2::55
	expect_contains "$(say old)" "client=[$host6_second]:"
}
