# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fragments.sh - datagrams larger than the MTU, with fragments in order and out of order.

large=65000

# watch_wire: looks for a container's address on an uplink, where none may ever be.
leak='net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16'

# echo_in NAMESPACE|host PORT [HOW...]
echo_in() {
	local who=$1
	shift
	if [ "$who" = host ]; then
		"$datagrams" echo "$@" --background
	else
		in_namespace "$who" "$datagrams" echo "$@" --background
	fi
}

# in_every_order NAMESPACE ADDRESS PORT NEXT-HOP
in_every_order() {
	local order
	expect_whole "$1" "$2" "$3" "$large" --count 3
	for order in forward backward twice; do
		expect_whole "$1" "$2" "$3" "$large" --count 3 $(pieces_by_hand "$order" "$4")
	done
}

# Both directions, mapped and masqueraded. The server answers in order on port 9000 (80 in the
# container), in reverse order on 9001 (81).
fragments_everywhere() {
	local list=$1 gateway port
	container_add one "$list" -p 8080:80/udp -p 8081:81/udp
	gateway=$(host_veth one)
	[ "$list" = ptp ] || gateway=cni0
	echo_in one 80
	echo_in one 81 $(pieces_by_hand backward "$gateway")
	echo_in server 9000
	echo_in server 9001 $(pieces_by_hand backward eth1)
	capture_start client_wire client eth0 "$leak"
	capture_start server_wire server eth0 "$leak"
	for port in 8080 8081; do
		both in_every_order client @host "$port" eth0
	done
	for port in 9000 9001; do
		both in_every_order one @server "$port" "$gateway"
	done
	expect_captured_nothing client_wire
	expect_captured_nothing server_wire
}

# also with fastPath off, always
# limit 90 s
# 64 kB of UDP in both directions, mapped and masqueraded, IPv4 and IPv6, in order and in reverse
# order, without conntrack's defragmentation
test_fragments_bare() {
	fragments_everywhere bridge
}

# also with fastPath off
# limit 180 s
# the same where conntrack reassembles datagrams and the stack fragments them again, then with bridge
# netfilter
test_fragments_conntrack() {
	firewall_strict
	fragments_everywhere bridge
	container_remove one bridge
	processes_end server
	bridge_netfilter 1
	fragments_everywhere bridge
}

# limit 90 s
# the same for a ptp container
test_fragments_ptp() {
	fragments_everywhere ptp
}

expect_echo() {
	local who=$1
	shift
	in_namespace "$who" busybox ping "$@" >/run/ping || fail "$who: ping $*: $(cat /run/ping)"
}

pings_larger_than_the_mtu() {
	local size
	capture_start wire server eth0 "$leak"
	for size in 1473 4000 60000; do
		expect_echo one -c 2 -i 0.1 -W 1 -s "$size" "$server4"
		expect_echo one -6 -c 2 -i 0.1 -W 1 -s "$size" "$server6"
		expect_echo one -c 1 -W 1 -s "$size" "$host4"
		expect_echo one -6 -c 1 -W 1 -s "$size" "$host6"
		expect_echo one -c 1 -W 1 -s "$size" "$bridge4"
		expect_echo server -c 1 -W 1 -s "$size" "$host4_second"
		expect_echo server -6 -c 1 -W 1 -s "$size" "$host6_second"
	done
	expect_captured_nothing wire
}

# pings larger than the MTU: masqueraded, to the host, and from outside to the host, without conntrack
# and with it
test_fragments_ping() {
	container_add one bridge -p 8080:80
	pings_larger_than_the_mtu
	firewall_strict
	pings_larger_than_the_mtu
}

# an error about a fragmented masqueraded ping reaches the container
test_fragments_error() {
	container_add one bridge
	in_namespace server sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip route add 203.0.113.0/24 via "$server4"
	ip route add 2001:db8:9::/64 via "$server6"
	local seen
	capture_start errors one eth0 "icmp[0] == 3 or icmp6[0] == 1"
	in_namespace one busybox ping -c 1 -W 1 -s 4000 203.0.113.10 >/dev/null || true
	in_namespace one busybox ping -6 -c 1 -W 1 -s 4000 2001:db8:9::10 >/dev/null || true
	seen=$(capture_stop errors)
	expect_contains "$seen" "$server4 > $(address4 one): ICMP net 203.0.113.10 unreachable"
	expect_contains "$seen" "$server6 > $(address6 one): ICMP6, destination unreachable"
}

# neighbours_in_fragments [COMMAND...]: runs the command once they know each other's MAC, which a
# firewall on the bridge would not let them resolve
neighbours_in_fragments() {
	local address port
	container_add one bridge -p 8080:80/udp -p 8081:81/udp
	container_add two bridge
	echo_in one 80
	echo_in one 81 $(pieces_by_hand backward cni0)
	expect_whole two "$(address4 one)" 80 "$large"
	expect_whole two "$(address6 one)" 80 "$large"
	"$@"
	for address in "$host4" "$host6"; do
		for port in 8080 8081; do
			in_every_order two "$address" "$port" cni0
		done
		in_every_order one "$address" 8080 cni0
	done
}

# limit 90 s
# containers on one bridge, and the container itself, through the host's address
test_fragments_neighbours() {
	neighbours_in_fragments true
}

# limit 90 s
# containers on one bridge with a strict firewall and bridge netfilter
test_fragments_neighbours_strict() {
	bridge_netfilter 1
	neighbours_in_fragments firewall_strict
}

# the host's own large datagrams, sent and received, while a mapping exists
test_fragments_host() {
	container_add one bridge -p 8080:80/udp
	echo_in host 9000
	echo_in server 9000
	echo_in server 9001 $(pieces_by_hand backward eth1)
	both in_every_order client @host 9000 eth0
	local address port
	for address in "$server4" "$server6"; do
		for port in 9000 9001; do
			expect_whole host "$address" "$port" "$large" --count 3
			expect_whole host "$address" "$port" "$large" --source-port 8080
		done
	done
}

# a client of the container's own address receives large answers from that address
test_fragments_direct() {
	container_add one bridge
	echo_in one 80
	expect_whole client "$(address4 one)" 80 "$large" --count 3
	expect_whole client "$(address6 one)" 80 "$large" --count 3
	firewall_strict
	expect_whole client "$(address4 one)" 80 "$large" --count 3 --source-port 80
	expect_whole client "$(address6 one)" 80 "$large" --count 3 --source-port 80
}

# thousands of fragments without a first one, and overlapping ones: datagrams in order still pass,
# those out of order some seconds later; the host's own always
test_fragments_flood() {
	container_add one bridge -p 8080:80/udp
	echo_in one 80
	echo_in host 9000
	local orphans backward
	orphans="--count 14 $(pieces_by_hand first-lost eth0)"
	backward=$(pieces_by_hand backward eth0)
	in_namespace client "$datagrams" ask "$host4" 8080 "$large" $orphans
	in_namespace client "$datagrams" ask "$host6" 8080 "$large" $orphans
	both expect_whole client @host 8080 "$large" --count 3
	expect_whole client "$host4" 9000 "$large" --count 3 $backward
	in_namespace client "$datagrams" ask "$host4" 8080 "$large" $(pieces_by_hand overlapping eth0) || true
	sleep 7
	both expect_whole client @host 8080 "$large" --count 3 $backward
}

# piece_send NAMESPACE NEXT-HOP FRAGMENT BYTES: a fragment of a datagram from the client to port
# 8080
piece_send() {
	frame_send "$1" eth0 "$(mac_of "$2")" "$(ipv4_hex "$client4" "$host4" 17 "$4" 0x77 "$3")"
}

# a later fragment belongs to the interface on which it arrived: one that a container sends with the
# client's address does not become part of the client's datagram
test_fragments_of_another_interface() {
	local good=474f4f44474f4f44 evil=4556494c4556494c
	[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || bridge_netfilter 0
	container_add web bridge -p 8080:80/udp
	container_add hostile bridge
	echo_in web 80
	capture_start evil client eth0 "udp src port 8080 and udp[16:4] = 0x4556494c"
	capture_start good client eth0 "udp src port 8080 and udp[16:4] = 0x474f4f44"
	piece_send hostile cni0 2 "$evil"
	wait_until 5 fragments_held 1 || fail "the container's fragment is not held"
	piece_send client eth0 0x2000 "$(udp_hex 5000 8080 "$good" 24)"
	piece_send client eth0 2 "$good"
	wait_until 5 test -s /run/good.capture ||
		fail "not what the client has sent: $(capture_stop evil)"
	expect_captured_nothing evil
	expect_equal 0 "$(counted fragment_released)" "fragments that were sent in again"
}

fragments_held() { [ "$(counted fragment_held)" -ge "$1" ]; }
