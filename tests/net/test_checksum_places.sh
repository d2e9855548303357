# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_checksum_places.sh - a sender that leaves its checksum to the kernel says where it belongs: a
# container must not have it written over what it was judged by, and a tunnel's inner one must be.

# places_make LIST: a container evil; the uplinks write checksums themselves, as wires need it
places_make() {
	local uplink
	container_add evil "$1"
	container_start web "$1" -p 8080:80/udp
	serve_in server 7000
	serve_in client 7000
	for uplink in eth0 eth1; do ethtool -K "$uplink" tx off >/run/ethtool 2>&1 || fail "$(cat /run/ethtool)"; done
	wait_until 5 asked_by_evil || fail "no answer"
}
asked_by_evil() { ask evil udp "$server4" 7000 --source-port 5000 >/run/out; }

# sum_hex DIGITS...: the sum of their words in ones' complement
sum_hex() {
	local digits sum=0 i
	for digits; do
		for ((i = 0; i < ${#digits}; i += 4)); do sum=$((sum + 0x${digits:i:4})); done
	done
	sum=$(((sum & 0xffff) + (sum >> 16)))
	printf %04x $(((sum & 0xffff) + (sum >> 16)))
}
inverted() { printf %04x $((0xffff ^ 0x$1)); }

# place PACKET START FIELD [TYPE]: evil sends it to the gateway; both count from the IP header.
place() {
	[ -n "${macs:-}" ] || macs=$(mac_of cni0)$(mac_in evil eth0)
	in_namespace evil "$build/tests/frame" eth0 "${macs//:/}${4:-0800}$1" $((14 + $2)) $((14 + $3))
}

# forged_source: sets $forged to the beginning of a datagram of evil's flow, whose source becomes 203.0.100.1
# behind masquerade: the checksum that is written there has this value by the payload's first word, and
# the header's own is right only then.
forged_source() {
	local host peer word packet header
	host=$(address_hex "$host4_second") peer=$(address_hex "$server4")
	word=$(inverted "$(sum_hex cb00 "$host" "$peer" 13881b58000e 74657374)")
	packet=$(ipv4_hex "$(address4 evil)" "$server4" 17 "$(udp_hex 5000 7000 "${word}74657374")")
	header=$(sum_hex "$(inverted "${packet:20:4}")" cb00 "$(inverted "${host:0:4}")")
	forged=${packet:0:20}$(inverted "$header")${packet:24}
}

# also with portmap
# also with fastPath off, always
# no datagram leaves with a source of the container's choice, though its flow skips the IP stack; nor
# over IPv6, whose header has no checksum of its own, which portmap does not hold
test_checksum_place_source() {
	local try forged
	places_make bridge
	forged_source
	capture_start out server eth0 "udp and src net 203.0.0.0/16"
	for try in {1..15}; do
		asked_by_evil || fail "no answer"
		place "$forged" 12 12
		place "$forged" 12 12
		pause_for 100
	done
	expect_captured_nothing out
	asked_by_evil || fail "no answer"
	[ "$plugin" = bpf-portmap ] || return 0
	expect_counted drop_misplaced_checksum 30 dropped
	capture_start out server eth0 "ip6 and udp and not src net 2001:db8:2::/64"
	wait_until 5 ask evil udp "$server6" 7000 --source-port 5000 >/run/out || fail "no answer"
	local packet
	packet=$(printf '60000000%04x11ff' 12)$(address_hex "$(address6 evil)")$(address_hex "$server6")13881b58000c000074657374
	place "$packet" 8 8 86dd
	expect_captured_nothing out
	expect_counted drop_misplaced_checksum 31 dropped
}

# also with fastPath off, always
# a firewall that allows one port is not passed to another one, nor to another address; nor does a
# datagram come from another container's published port; portmap does not hold this
test_checksum_place_destination() {
	places_make bridge
	nft -f - <<-'RULES'
		table inet only {
			chain forward {
				type filter hook forward priority 0; policy drop;
				ct state established,related accept
				udp dport 7000 accept
			}
		}
	RULES
	drop_offload
	capture_start out server eth0 "udp and dst host $server4 and not dst port 7000 and not src port 7000"
	capture_start away server eth0 "udp and not host $server4"
	local payload
	payload=$(udp_hex 5000 7000 74657374)
	place "$(ipv4_hex "$(address4 evil)" "$server4" 17 "$payload")" 22 22
	place "$(ipv4_hex "$(address4 evil)" "$server4" 17 "$(udp_hex 5001 7000 74657374)")" 20 22
	place "$(ipv4_hex "$(address4 evil)" "$server4" 17 "$payload")" 16 18
	expect_captured_nothing out
	expect_captured_nothing away
	expect_counted drop_misplaced_checksum 3 dropped
	nft delete table inet only
	capture_start out client eth0 "udp and src host $host4 and src port 8080"
	local word
	word=$(inverted "$(sum_hex 1f90 138a1b61000e 74657374)")
	place "$(ipv4_hex "$(address4 evil)" "$client4" 17 "$(udp_hex 5002 7009 "${word}74657374")")" 20 20
	expect_captured_nothing out
	expect_counted drop_misplaced_checksum 4 dropped
}

# also with portmap
# a checksum in its own place, and one in the payload, leave as they are asked for
test_checksum_place_right() {
	places_make bridge
	capture_start out server eth0 "udp and dst port 7001"
	place "$(ipv4_hex "$(address4 evil)" "$server4" 17 "$(udp_hex 5000 7001 74657374)")" 20 26
	place "$(ipv4_hex "$(address4 evil)" "$server4" 17 "$(udp_hex 5000 7001 "$(printf '00%.0s' {1..40})")")" 48 64
	expect_equal 2 "$(capture_stop out | grep -c "$server4.7001")" "datagrams"
	[ "$plugin" != bpf-portmap ] || expect_equal 0 "$(counted drop_misplaced_checksum)" dropped
}

# tunnel NAME REMOTE LOCAL ADDRESS: VXLAN from a namespace's eth0
tunnel() {
	ip -n "$1" link add tunnel type vxlan id 7 remote "$2" local "$3" dstport 4789 dev eth0 2>/run/err ||
		skip "no VXLAN: $(cat /run/err)"
	end_make "$1" tunnel "$4"
}

# also with portmap
# also with fastPath off
# TCP in a tunnel from container to container, over IPv4 and over IPv6, where the tunnel has a checksum
# too: the checksum that is left to be written is the inner packet's
test_checksum_place_tunnel() {
	container_add one bridge
	container_add two bridge
	in_namespace two "$build/tests/bulk" serve 9000 --background
	tunnel one "$(address4 two)" "$(address4 one)" 10.9.0.1/24
	tunnel two "$(address4 one)" "$(address4 two)" 10.9.0.2/24
	tunnel_carries one 10.9.0.2
	ip -n one link delete tunnel
	ip -n two link delete tunnel
	tunnel one "$(address6 two)" "$(address6 one)" 10.9.0.1/24
	tunnel two "$(address6 one)" "$(address6 two)" 10.9.0.2/24
	tunnel_carries one 10.9.0.2
}

# tunnel_carries CLIENT ADDRESS
tunnel_carries() {
	local answer
	answer=$(in_namespace "$1" "$build/tests/bulk" ask tcp "$2" 9000 2>&1) || true
	expect_equal ok "$answer" "through the tunnel"
	[ "$plugin" != bpf-portmap ] || expect_equal 0 "$(counted drop_misplaced_checksum)" dropped
}

# TCP in a tunnel from a container to a client outside
test_checksum_place_tunnel_routed() {
	conflist plain bridge "$(with_ours '{"ipMasq": false}')"
	container_add one plain
	tunnel one "$client4" "$(address4 one)" 10.9.0.1/24
	tunnel client "$(address4 one)" "$client4" 10.9.0.2/24
	in_namespace client "$build/tests/bulk" serve 9000 --background
	tunnel_carries one 10.9.0.2
}
