# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_checksums.sh - transport checksums in every state in which a device can leave them to the
# programs. 1 MB of known bytes goes both ways, and no IP stack may count a wrong checksum.

bulk=$build/tests/bulk
tcx=$build/tests/tcx

# web has a mapped port, one is masqueraded; each is a server and a client in every test.
checksums_make() {
	watch_sums eth0 from_client
	watch_sums eth1 from_server
	container_add web "$1" -p 8080:80/tcp -p 8080:80/udp -p 8081:81/udp
	container_add one "$1"
	in_namespace web "$bulk" serve 80 --background
	in_namespace server "$bulk" serve 9000 --background
}

# watch_sums DEVICE NAME: attached before our program, because a program after ours does not see
# what skips the IP stack
watch_sums() {
	"$tcx" sums "/sys/fs/bpf/$2-program" "/sys/fs/bpf/$2"
	"$tcx" attach "$1" ingress "/sys/fs/bpf/$2-program" 2>/dev/null || {
		tc qdisc add dev "$1" clsact 2>/dev/null || true # ours, where ADD has been
		tc filter add dev "$1" ingress prio 1 handle 9 bpf direct-action \
			object-pinned "/sys/fs/bpf/$2-program"
	}
}

# features WHERE FEATURE on|off ...: at the senders outside, at the host's uplinks, at the
# containers' ends of the veths, at the host's ends of them; or everywhere
features() {
	local where=$1 end
	shift
	for end in $(ends_of "$where"); do
		local run=(in_namespace "${end%/*}")
		[ "${end%/*}" != host ] || run=()
		"${run[@]}" ethtool -K "${end#*/}" "$@" >/run/ethtool 2>&1 ||
			fail "ethtool -K ${end#*/} $*: $(cat /run/ethtool)"
	done
}

senders_compute() {
	features outside tx off tso off gso off
	features containers tx off tso off gso off
}

# Without a delay every packet on a veth is an interrupt of its own, and GRO has nothing to join.
gro_waits() {
	local end
	for end in $(ends_of uplinks) $(ends_of veths); do
		echo 1000000 >"/sys/class/net/${end#*/}/gro_flush_timeout"
	done
}

ends_of() {
	case $1 in
	outside) echo client/eth0 server/eth0 ;;
	uplinks) echo host/eth0 host/eth1 ;;
	containers) echo web/eth0 one/eth0 ;;
	veths) echo "host/$(host_veth web)" "host/$(host_veth one)" ;;
	everywhere) for end in outside uplinks containers veths; do ends_of "$end"; done ;;
	esac
}

expect_bulk() {
	local who=$1 answer
	shift
	answer=$(in_namespace "$who" "$bulk" ask "$@" 2>&1) || true
	expect_equal ok "$answer" "$who: $*"
}

expect_tcp() {
	local address
	for address in "$host4" "$host6"; do expect_bulk client tcp "$address" 8080 "$@"; done
	for address in "$server4" "$server6"; do expect_bulk one tcp "$address" 9000 "$@"; done
}

expect_udp() {
	local address
	for address in "$host4" "$host6"; do expect_bulk client udp "$address" 8080 "$@"; done
	for address in "$server4" "$server6"; do expect_bulk one udp "$address" 9000 "$@"; done
}

expect_udp_without_checksum() {
	expect_bulk client udp "$host4" 8080 --plain --without-checksum
	expect_bulk one udp "$server4" 9000 --plain --without-checksum
}

expect_transfers_whole() {
	expect_tcp
	expect_udp
	expect_udp --plain
	expect_udp_without_checksum
	expect_no_checksum_errors
}

# expect_no_checksum_errors [WHO...]: that every IP stack on the path has counted: TCP, UDP, UDP over
# IPv6, ICMP
expect_no_checksum_errors() {
	local name errors run
	[ $# != 0 ] || set -- host client server web one
	for name; do
		run=(in_namespace "$name")
		[ "$name" != host ] || run=()
		errors=$("${run[@]}" nstat -asz 2>/dev/null | awk '/CsumErrors/ && $2 > 0 { print $1 "=" $2 }')
		expect_equal "" "$errors" "checksum errors seen by $name"
	done
}

# sums_seen DEVICE-WATCH: how many packets were in each state of foreign.bpf.c
sums_seen() {
	bpftool -j map dump pinned "/sys/fs/bpf/$1" | jq -r '[map(.formatted.value), ["complete",
		"unnecessary", "other", "complete_gso", "unnecessary_gso", "other_gso"]] |
		transpose | map("\(.[1])=\(.[0])") | join(" ")'
}

# expect_seen DEVICE-WATCH STATE...: packets in each of these states were seen
expect_seen() {
	local seen state
	seen=$(sums_seen "$1")
	shift
	for state; do
		[ "$(field_of "$state" "$seen")" -gt 0 ] || fail "no packet was $state: $seen"
	done
}

expect_not_seen() {
	local seen state
	seen=$(sums_seen "$1")
	shift
	for state; do expect_equal 0 "$(field_of "$state" "$seen")" "$state, of $seen"; done
}

# also with fastPath off, always
# devices as they are by default: checksums left to the receiver, packets of up to 64 kB
test_checksums_partial() {
	checksums_make bridge
	expect_transfers_whole
	expect_seen from_client other_gso
	expect_seen from_server other_gso
}

# the same for a ptp container
test_checksums_partial_ptp() {
	checksums_make ptp
	expect_transfers_whole
}

# every sender computes its checksums, one packet at a time
test_checksums_none() {
	checksums_make bridge
	features everywhere tx off tso off gso off gro off
	expect_transfers_whole
	expect_seen from_client other
	expect_not_seen from_client other_gso unnecessary complete
}

# computed by senders, and verified on arrival by GRO, which joins packets
test_checksums_unnecessary() {
	checksums_make bridge
	senders_compute
	features uplinks gro on
	features veths gro on
	gro_waits
	expect_transfers_whole
	expect_seen from_client unnecessary other_gso
	expect_seen from_server unnecessary other_gso
}

# no segmentation offload anywhere: only checksums are left to the receiver; and the kernel segments in
# software, after our programs on the way out
test_checksums_without_segmentation() {
	checksums_make bridge
	features everywhere tso off gso off tx-udp-segmentation off
	expect_transfers_whole
	features everywhere tx off sg off tso off gso on tx-udp-segmentation off
	expect_transfers_whole
}

# GRO makes lists of whole packets, of which programs see only the first
test_checksums_fraglist() {
	checksums_make bridge
	features uplinks gro on rx-gro-list on
	features veths gro on rx-gro-list on
	gro_waits
	expect_udp --plain
	# Without it GRO does not join datagrams that are forwarded.
	expect_seen from_client other_gso
	expect_transfers_whole
	senders_compute
	expect_transfers_whole
}

# such lists segmented in software towards every receiver
test_checksums_fraglist_segmented() {
	checksums_make ptp
	features uplinks gro on rx-gro-list on
	features veths gro on rx-gro-list on
	gro_waits
	features everywhere tx off tso off
	expect_transfers_whole
	expect_seen from_client unnecessary
}

# datagrams joined by GRO while they are forwarded
test_checksums_udp_forwarding() {
	checksums_make bridge
	features uplinks gro on rx-udp-gro-forwarding on
	features veths gro on rx-udp-gro-forwarding on
	gro_waits
	expect_udp --plain
	expect_seen from_client other_gso
	expect_transfers_whole
	senders_compute
	expect_transfers_whole
}

# receivers without any checksum offload
test_checksums_receivers_verify() {
	checksums_make bridge
	features everywhere rx off
	features outside tx off
	features containers tx off
	features uplinks tx off
	features veths tx off
	expect_transfers_whole
}

# wire_start NAMESPACE...: captures on the wire, where every checksum is computed again
wire_start() {
	local name
	for name; do
		CAPTURE=-vv capture_start "wire_$name" "$name" eth0 "ip or ip6"
	done
}

wire_expect_right() {
	local name
	for name; do
		capture_stop "wire_$name" >"/run/$name.wire"
		# tcpdump decodes a datagram's bytes by its port: 49151 as a switch's header (BCM-LI) and an
		# IP packet, 6635 as MPLS and an IP packet.
		! sed '/BCM-LI-SHIM/,+1d; /^\t(label /,+1d' "/run/$name.wire" |
			grep -B 1 -E '\bbad\b|incorrect|wrong' | head -n 6 | grep . ||
			fail "a wrong checksum on the wire to $name"
		grep -qE 'cksum.*correct' "/run/$name.wire" || fail "no TCP seen by $name"
		grep -q 'udp sum ok' "/run/$name.wire" || fail "no UDP seen by $name"
	done
}

# The last sender before a wire computes the checksums that were left to it.
wires_computed() {
	local where
	for where in outside uplinks containers veths; do features "$where" tx off; done
}

ping_for() {
	case $1 in *:*) echo ping6 ;; *) echo ping ;; esac
}

# also with fastPath off
# every packet on every wire has the right checksums, ICMP errors and the packets they quote too
test_checksums_on_the_wire() {
	checksums_make bridge
	wires_computed
	wire_start client server web one
	expect_tcp --bytes 200000
	expect_udp --bytes 100000
	expect_udp --bytes 100000 --plain
	expect_udp_without_checksum
	local address
	for address in "$host4" "$host6"; do
		expect_refused client udp "$address" 8081 --connected
	done
	for address in "$server4" "$server6"; do
		expect_refused one udp "$address" 9999 --connected
		in_namespace one busybox "$(ping_for "$address")" -q -c 1 -W 1 "$address"
	done
	wire_expect_right client server web one
	expect_no_checksum_errors
}

# mtu_set BYTES: of both links outside
mtu_set() {
	ip link set eth0 mtu "$1"
	ip link set eth1 mtu "$1"
	ip -n client link set eth0 mtu "$1"
	ip -n server link set eth0 mtu "$1"
}

# an MTU of 9000, then of 1280, then of 1500 in the middle of transfers
test_checksums_mtu_changes() {
	checksums_make bridge
	local protocol address pids=() pid
	mtu_set 9000
	for protocol in tcp udp; do
		for address in "$host4" "$host6"; do
			expect_bulk client "$protocol" "$address" 8080 --pause 700 --bytes 4000000 &
			pids+=($!)
		done
		for address in "$server4" "$server6"; do
			expect_bulk one "$protocol" "$address" 9000 --pause 700 --bytes 4000000 &
			pids+=($!)
		done
	done
	sleep 0.4
	mtu_set 1280
	sleep 0.6
	mtu_set 1500
	for pid in "${pids[@]}"; do wait "$pid"; done
	expect_no_checksum_errors
}

# vxlan_make: another uplink, on which the client's packets arrive with a known sum, because the
# kernel had to compute it for the outer packet
vxlan_make() {
	local outer='id 7 dstport 4789 udpcsum noudp6zerocsumrx'
	ip link add vx0 type vxlan $outer local "$host4" remote "$client4" dev eth0
	ip -n client link add vx0 type vxlan $outer local "$client4" remote "$host4" dev eth0
	ip address add 172.31.0.1/24 dev vx0
	address6_add 2001:db8:31::1/64 vx0
	ip -n client address add 172.31.0.10/24 dev vx0
	ip -n client address add 2001:db8:31::10/64 dev vx0 nodad
	ip link set vx0 up
	ip -n client link set vx0 up
	ethtool -K vx0 gro off >/dev/null
}

# from a device that passes the sum of each packet on (CHECKSUM_COMPLETE), also for IPv6: a tunnel
# whose outer checksum was verified
test_checksums_complete() {
	vxlan_make
	checksums_make bridge
	in_namespace client "$bulk" serve 9001 --background
	features outside tx off
	watch_sums vx0 from_tunnel # not before: a multicast report's sum may still be the device's task
	local address
	for address in 172.31.0.1 2001:db8:31::1; do
		expect_bulk client tcp "$address" 8080
		expect_bulk client udp "$address" 8080
		expect_bulk client udp "$address" 8080 --plain
	done
	expect_bulk client udp 172.31.0.1 8080 --plain --without-checksum
	for address in 172.31.0.10 2001:db8:31::10; do
		expect_bulk one tcp "$address" 9001
		expect_bulk one udp "$address" 9001
	done
	expect_seen from_tunnel complete
	expect_not_seen from_tunnel other other_gso
	expect_no_checksum_errors
}

# also with fastPath off, always
# TCP through a container's own tunnel to the server, masqueraded one way and by a mapped port the
# other way: the tunnel's checksum is already complete, while the inner one is left to the uplink
test_checksums_tunnel() {
	local outer='type vxlan id 7 dstport 4789 udpcsum' way host server
	container_start web bridge -p 4789:4789/udp
	in_namespace server "$bulk" serve 9000 --background
	in_namespace web "$bulk" serve 9000 --background
	ethtool -K eth1 tx off >/run/ethtool # as wires need it
	features server tx off
	for way in 4 6; do
		host="host${way}_second" server="server$way"
		in_namespace web ip link add tunnel $outer remote "${!server}" local "$("address$way" web)" dev eth0 2>/run/err ||
			skip "no VXLAN: $(cat /run/err)"
		ip -n server link add tunnel $outer remote "${!host}" local "${!server}" dev eth0
		ip -n web address add 10.9.0.1/24 dev tunnel
		ip -n server address add 10.9.0.2/24 dev tunnel
		ip -n web link set tunnel up
		ip -n server link set tunnel up
		expect_bulk web tcp 10.9.0.2 9000
		expect_bulk server tcp 10.9.0.1 9000
		ip -n web link delete tunnel
		ip -n server link delete tunnel
	done
	expect_no_checksum_errors host server web
}
