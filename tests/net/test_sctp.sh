# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_sctp.sh - SCTP through mapped ports and masquerade; each receiver checks the packet's CRC32c.

# sizes_of CLIENT ADDRESS PORT: packets of every kind of length, also an odd one and the longest
expect_sctp_sizes() {
	local size
	[ "$sctp" != "$peer" ] || return 0 # the kernel's own choose theirs
	for size in 36 61 600 1400 1480 4711 9001 33333 65001; do
		expect_answer "$1" sctp "$2" "$3" "$4" - --size "$size"
	done
}

# A long packet is not fragmented on its way.
long_frames() {
	local name
	ip link set eth0 mtu 65535
	ip link set eth1 mtu 65535
	ip -n client link set eth0 mtu 65535
	ip -n server link set eth0 mtu 65535
	for name; do
		ip link set "$(host_veth "$name")" mtu 65535
		ip -n "$name" link set eth0 mtu 65535
	done
}

# sctp_through_mapping LIST...
sctp_through_mapping() {
	local list address
	for list; do
		container_add web "$list" -p 9999:3868/sctp
		serve_sctp_in web 3868
		long_frames web
		for address in "$host4" "$host6"; do
			expect_sctp_sizes client "$address" 9999 web
		done
		both expect_answer client sctp @host 9999 web @client
		container_remove web "$list"
	done
}

# a mapped SCTP port with another number inside answers, IPv4 and IPv6, packets of 36 bytes to 64 kB, of
# a bridge's container and of a ptp's; also with a strict firewall and bridge netfilter
test_sctp_mapping() {
	capture_start leak client eth0 net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16
	sctp_through_mapping bridge ptp
	expect_captured_nothing leak
	bridge_netfilter 1
	firewall_strict
	sctp_through_mapping bridge
}

# associations begun by containers leave with the host's address, two from the same port with two
# ports, IPv4 and IPv6
test_sctp_masquerade() {
	container_add one bridge
	container_add two ptp
	serve_sctp_in server 3868
	long_frames one two
	capture_start leak server eth0 net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16
	local name port
	for name in one two; do
		both expect_sctp_sizes "$name" @server 3868 server
		for port in 5000 25000; do
			expect_answer "$name" sctp "$server4" 3868 server "$host4_second" \
				--source-port "$port"
			expect_answer "$name" sctp "$server6" 3868 server "$host6_second" \
				--source-port "$port"
		done
	done
	expect_captured_nothing leak
}

# another container on the bridge, one on a ptp link and the container itself reach a mapped SCTP
# port; the one on the bridge keeps its address
test_sctp_neighbours() {
	container_add web bridge -p 9999:3868/sctp
	container_add near bridge
	container_add routed ptp
	serve_sctp_in web 3868
	long_frames web near routed
	local name
	for name in near routed web; do
		both expect_sctp_sizes "$name" @host 9999 web
	done
	expect_answer near sctp "$host4" 9999 web "$(address4 near)"
	expect_answer near sctp "$host6" 9999 web "$(address6 near)"
	both expect_answer web sctp @host 9999 web @bridge
}

# a process of the host reaches a mapped SCTP port at each address of the host and at loopback, and
# packets of every length pass
# also with portmap
test_sctp_from_host() {
	container_add web bridge -p 9999:3868/sctp
	container_add routed ptp -p 9998:3868/sctp
	serve_sctp_in web 3868
	serve_sctp_in routed 3868
	local address
	for address in "$host4" "$host4_second" 10.88.0.1 127.0.0.1 "$host6" "$host6_second" ::1; do
		[ "$plugin$address" != portmap::1 ] || continue # it has no localhost by IPv6
		expect_answer host sctp "$address" 9999 web
		expect_answer host sctp "$address" 9998 routed
		expect_answer host sctp "$address" 9999 web - --count 3
	done
	[ "$plugin" = bpf-portmap ] || return 0
	long_frames web
	both expect_sctp_sizes host @host 9999 web
	expect_answer host sctp "$host4" 9999 web "$host4"
	expect_answer host sctp 127.0.0.1 9999 web "$bridge4"
	expect_answer host sctp ::1 9999 web "$bridge6"
	expect_no_answer host sctp "$host4" 9997
}

# the same port number over TCP, UDP and SCTP is three ports
test_sctp_own_port_space() {
	container_start one bridge -p 9999:80/tcp
	container_start two bridge -p 9999:80/udp
	container_add three bridge -p 9999:80/sctp
	serve_sctp_in three 80
	expect_answer client tcp "$host4" 9999 one
	expect_answer client udp "$host4" 9999 two
	expect_answer client sctp "$host4" 9999 three
	expect_refusal three container_add four bridge -p 9999:80/sctp
	container_del three bridge
	expect_no_answer client sctp "$host4" 9999
}

# a client of a closed port is told so from the host's address, IPv4 and IPv6
test_sctp_refused() {
	[ "$sctp" != "$peer" ] || skip "the kernel's own SCTP refuses by ABORT"
	container_add web bridge -p 9999:3868/sctp
	# "Protocol unreachable" and "unrecognized next header", about a packet to the host's port
	capture_start told client eth0 "(icmp[0:2] = 0x0302 and icmp[24:4] = 0xc0000201 and
		icmp[30:2] = 9999) or (ip6[6] = 58 and ip6[40:2] = 0x0401 and
		ip6[72:4] = 0x20010db8 and ip6[90:2] = 9999)"
	capture_start leak client eth0 "net 10.88.0.0/16 or ip6 net fd00::/16 or
		(icmp and icmp[24:2] = 0x0a58) or (ip6[6] = 58 and ip6[72:2] = 0xfd00)"
	both expect_no_answer client sctp @host 9999
	expect_captured_nothing leak
	local seen
	seen=$(capture_stop told)
	expect_contains "$seen" "$host4 > $client4: ICMP" "$host6 > $client6: ICMP6"
}

# the receivers do check: a CRC32c with one wrong bit has no answer
test_sctp_ends_check() {
	[ "$sctp" != "$peer" ] || skip "the kernel's own SCTP makes no mistakes"
	container_add web bridge
	serve_sctp_in web 3868
	local address
	for address in "$(address4 web)" "$(address6 web)"; do
		expect_answer client sctp "$address" 3868 web -
		expect_no_answer client sctp "$address" 3868 --damaged
	done
}

sctp_checksum_left() {
	local setting=$1 name
	shift
	for name; do
		if [ "$name" = host ]; then
			ethtool -K eth0 tx-checksum-sctp "$setting"
			ethtool -K eth1 tx-checksum-sctp "$setting"
			ethtool -K "$(host_veth web)" tx-checksum-sctp "$setting"
		else
			in_namespace "$name" ethtool -K eth0 tx-checksum-sctp "$setting"
		fi
	done >/dev/null
}

expect_sctp_everywhere() {
	local address name
	for address in "$host4" "$host6"; do
		expect_answer client sctp "$address" 9999 web - --timeout 5000
		expect_answer web sctp "$address" 9999 web - --timeout 5000
	done
	for address in "$server4" "$server6"; do
		expect_answer web sctp "$address" 3868 server - --timeout 5000
	done
	for name in client server web; do
		expect_equal 0 "$(in_namespace "$name" awk '$1 == "SctpChecksumErrors" { print $2 }' \
			/proc/net/sctp/snmp)" "wrong CRCs that $name saw"
	done
}

# limit 120 s
# the kernel's own SCTP, its CRC32c left to the receiver, computed by the sender, and left by the
# sender to be computed on the host's way out
test_sctp_offloads() {
	[ "$sctp" = "$peer" ] || skip "the kernel has no SCTP"
	container_add web bridge -p 9999:3868/sctp
	serve_sctp_in web 3868
	serve_sctp_in server 3868
	expect_sctp_everywhere
	sctp_checksum_left off client server web
	expect_sctp_everywhere
	sctp_checksum_left off host
	expect_sctp_everywhere
	sctp_checksum_left on client server web
	expect_sctp_everywhere
}
