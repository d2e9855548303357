# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_foreign_errors.sh - ICMP errors about packets that their sender never received.

# too_big_send NAMESPACE INTERFACE NEXT-HOP-MAC MTU SENDER RECEIVER PORT PEER PEER-PORT: reports
# that the UDP packet from the receiver's port to the peer was too big
too_big_send() {
	local quoted
	quoted=$(ipv4_hex "$6" "$8" 17 "$(udp_hex "$7" "$9" 77686f3f0a)")
	frame_send "$1" "$2" "$3" "$(ipv4_hex "$5" "$6" 1 "$(too_big_hex "$4" "$quoted")")"
}

# path_mtu NAMESPACE ADDRESS: the path MTU that the namespace has learned
path_mtu() { ip -n "$1" -o route get "$2" | sed -n 's/.* mtu \([0-9]*\).*/\1/p'; }
has_path_mtu() { [ "$(path_mtu "$1" "$2")" = "$3" ]; }

expect_path_mtu() {
	wait_until 5 has_path_mtu "$@" || fail "$1: the path to $2 has an MTU of $3: $(path_mtu "$1" "$2")"
}

# A container `web` that `client` talks to by UDP past the IP stack, and one that the firewall
# blocks
victim_make() {
	fast_lists
	container_start web fast -p 8080:80/udp
	container_add hostile "${1:-fast}"
	nft -f - <<-RULES
	table inet bans {
		chain forward {
			type filter hook forward priority filter;
			ip saddr { $(address4 hostile), 192.0.2.66 } counter drop
			ip saddr 192.0.2.67 counter
		}
	}
	RULES
	talk_open in_udp4 client udp "$host4" 8080 --source-port 5000
	expect_skips_stack in_udp4
}

# The container's own error is accepted, and it comes last: all that was sent before has arrived.
expect_only_own_error() {
	too_big_send web eth0 "$1" 700 "$(address4 web)" "$client4" 5000 "$(address4 web)" 80
	expect_path_mtu client "$host4" 700
	expect_captured_nothing foreign
}

foreign_error() {
	local gateway
	victim_make "$1"
	gateway=$(mac_of "$([ "$1" = fast-ptp ] && host_veth hostile || echo cni0)")
	capture_start foreign client eth0 "icmp[0:2] = 0x0304 and icmp[6:2] = 600"
	too_big_send hostile eth0 "$gateway" 600 "$(address4 hostile)" "$client4" 5000 \
		"$(address4 web)" 80
	# As from a router of the same network, which is not an endpoint
	too_big_send hostile eth0 "$gateway" 600 10.88.0.250 "$client4" 5000 "$(address4 web)" 80
	expect_only_own_error "$(mac_of cni0)"
	expect_counted drop_foreign_error 2 "errors about another container's flow"
	expect_skips_stack in_udp4
}

# a container's ICMP error about another one's flow is dropped: it does not reach the client, whose
# path MTU does not change
test_foreign_errors_bridge() { foreign_error fast; }

# so is that of a container on a ptp link
test_foreign_errors_ptp() { foreign_error fast-ptp; }

# a container's ICMP error about what another one sends does not reach that one
test_foreign_errors_inwards() {
	fast_lists
	container_start web fast
	container_add hostile fast
	serve_in server 9000
	talk_open out_udp4 web udp "$server4" 9000 --source-port 5000
	expect_skips_stack out_udp4
	too_big_send hostile eth0 "$(mac_of cni0)" 600 "$(address4 hostile)" "$host4_second" 5000 \
		"$server4" 9000
	too_big_send server eth0 "$(mac_of eth1)" 700 "$server4" "$host4_second" 5000 "$server4" 9000
	expect_path_mtu web "$server4" 700
	expect_counted drop_foreign_error 1 "errors about another container's flow"
}

# an ICMP error from outside goes through the IP stack, whose firewall decides about it
test_foreign_errors_from_outside() {
	victim_make
	too_big_send client eth0 "$(mac_of eth0)" 600 192.0.2.66 "$host4" 8080 "$client4" 5000
	too_big_send client eth0 "$(mac_of eth0)" 700 192.0.2.67 "$host4" 8080 "$client4" 5000
	expect_path_mtu web "$client4" 700
	wait_until 5 each_seen_once || fail "each should be seen once: $(nft list chain inet bans forward)"
	expect_skips_stack in_udp4
}
each_seen_once() { [ "$(nft list chain inet bans forward | grep -c 'counter packets 1 ')" = 2 ]; }
