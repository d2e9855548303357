# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_transports.sh - what few programs send and netfilter's NAT translates too: ICMP timestamps and
# UDP-Lite. Not every kernel has sockets for the latter, so its packets are made by hand.

# query_hex TYPE IDENTIFIER: an ICMP echo or timestamp request
query_hex() {
	local rest
	rest=$(printf '%04x0001%024d' "$2" 0)
	printf '%02x00%s%s' "$1" "$(checksum_hex "$(printf %02x00 "$1")0000$rest")" "$rest"
}

# lite_hex SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT PAYLOAD COVERAGE: an IPv4 packet
lite_hex() {
	local head covered size=$((8 + ${#5} / 2))
	head=$(printf '%04x%04x%04x' "$3" "$4" "$6")
	covered=${5:0:$((($6 ? $6 - 8 : size) * 2))}
	ipv4_hex "$1" "$2" 136 "$head$(checksum_hex "$(address_hex "$1")$(address_hex "$2")0088$(
		printf %04x "$size"
	)${head}0000$covered")$5"
}

# captured_hex NAME: a line of digits for each packet
captured_hex() {
	capture_stop "$1" | awk '
		/^\t0x/ { sub(/^\t0x[0-9a-f]*: */, ""); gsub(/ /, ""); packet = packet $0; next }
		{ if (packet) print packet; packet = "" }
		END { if (packet) print packet }'
}

# expect_lite PACKET SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT PAYLOAD COVERAGE: all of the
# transport header and the addresses are right
expect_lite() {
	local packet=$1 wanted
	shift
	wanted=$(lite_hex "$@")
	expect_equal "${wanted:24}" "${packet:24:$((${#wanted} - 24))}" "UDP-Lite from $1:$3 to $2:$4"
}

# expect_query_answered NAMESPACE TYPE IDENTIFIER: the server answers to the container
expect_query_answered() {
	local reply=0
	[ "$2" = 8 ] || reply=14
	capture_start back "$1" eth0 "icmp[0] = $reply and icmp[4:2] = $3 and src host $server4"
	frame_send "$1" eth0 "$(mac_of cni0)" "$(ipv4_hex "$(address4 "$1")" "$server4" 1 "$(query_hex "$2" "$3")")"
	wait_until 5 test -s /run/back.capture || fail "no reply of type $reply to $1"
	expect_equal 1 "$(capture_stop back | grep -c "$server4 > $(address4 "$1"): ICMP")" replies
}

# also with portmap
# ICMP timestamp requests of two containers with one identifier are answered, and pings with it
test_transports_timestamp() {
	container_add one bridge
	container_add two bridge
	capture_start wire server eth0 "icmp[0] = 13"
	capture_start leak server eth0 "net 10.88.0.0/16"
	expect_query_answered one 13 77
	expect_query_answered two 13 77
	expect_query_answered two 8 77
	expect_query_answered one 8 77
	expect_query_answered one 13 77
	expect_equal 3 "$(capture_stop wire | grep -c "$host4_second > $server4: ICMP time stamp query")"
	expect_captured_nothing leak
}

# also with portmap
# a container answers a timestamp request and UDP-Lite to its own address with that
test_transports_direct() {
	local address packet
	container_add one bridge
	address=$(address4 one)
	ip -n client route add "$address" via "$host4"
	capture_start back client eth0 "icmp[0] = 14"
	frame_send client eth0 "$(mac_of eth0)" "$(ipv4_hex "$client4" "$address" 1 "$(query_hex 13 5)")"
	wait_until 5 test -s /run/back.capture || fail "no reply"
	expect_contains "$(capture_stop back)" "$address > $client4: ICMP time stamp reply"
	CAPTURE=-x capture_start back client eth0 "ip proto 136"
	frame_send client eth0 "$(mac_of eth0)" "$(lite_hex "$client4" "$address" 5000 9000 61626364 0)"
	frame_send one eth0 "$(mac_of cni0)" "$(lite_hex "$address" "$client4" 9000 5000 61626364 8)"
	wait_until 5 test -s /run/back.capture || fail "no UDP-Lite"
	packet=$(captured_hex back)
	expect_lite "${packet##*$'\n'}" "$address" "$client4" 9000 5000 61626364 8
}

# Netfilter translates UDP-Lite in kernels that have it, but Linux 6.18 finds right checksums wrong.
netfilter_knows_lite() {
	[ "$plugin" != bpf-portmap ] || return 0
	[ -e /proc/net/udplite ] || skip "the kernel has no UDP-Lite"
	sysctl -qw net.netfilter.nf_conntrack_checksum=0
}

# sends_lite NAMESPACE COVERAGE: prints what the server gets of UDP-Lite from port 25000
sends_lite() {
	CAPTURE=-x capture_start wire server eth0 "ip proto 136"
	frame_send "$1" eth0 "$(mac_of cni0)" "$(lite_hex "$(address4 "$1")" "$server4" 25000 9000 61626364 "$2")"
	wait_until 5 test -s /run/wire.capture || fail "the server has got nothing"
	captured_hex wire
}

# also with portmap
# UDP-Lite of two containers from one port leaves with the host's address, two ports and right
# checksums, and the answers come back; a container is told that nobody listens for its UDP-Lite
test_transports_udp_lite() {
	local name packet port ports='' coverage=8
	netfilter_knows_lite
	for name in one two; do
		container_add "$name" bridge
		packet=$(sends_lite "$name" $coverage)
		port=$((0x${packet:40:4}))
		ports+=" $port"
		expect_lite "$packet" "$host4_second" "$server4" "$port" 9000 61626364 $coverage
		CAPTURE=-x capture_start back "$name" eth0 "ip proto 136"
		frame_send server eth0 "$(mac_of eth1)" "$(lite_hex "$server4" "$host4_second" 9000 "$port" 6566 0)"
		wait_until 5 test -s /run/back.capture || fail "$name has got no answer"
		expect_lite "$(captured_hex back)" "$server4" "$(address4 "$name")" 9000 25000 6566 0
		coverage=10
	done
	expect_equal 2 "$(printf '%s\n' $ports | sort -u | wc -l)" "different ports of$ports"
	errors_unlimited server
	packet=$(lite_hex "$(address4 one)" "$server4" 26000 9000 61626364 10)
	CAPTURE=-x capture_start back one eth0 "icmp[0] = 3"
	frame_send one eth0 "$(mac_of cni0)" "$packet"
	wait_until 5 test -s /run/back.capture || fail "no error"
	expect_contains "$(captured_hex back)" "${packet:24}"
	[ "$plugin" != bpf-portmap ] || expect_contains \
		"$("$build/bpf-portmap" flows --protocol udplite)" "udplite"
}
