# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_errors.sh - ICMP errors about translated packets: refused ports, path MTU, traceroute.

size=4194304

files_serve() { file_serve "$1" "$2" "$size"; }

url() { echo "http://$(endpoint "$1" "$2")"; }

# expect_download NAMESPACE ADDRESS PORT [CURL-OPTION...], and expect_upload with the same arguments
expect_download() {
	local who=$1 where got
	where=$(url "$2" "$3")
	shift 3
	got=$(in_namespace "$who" curl -sS --max-time $((15 * SLOWER)) -o /dev/null -w '%{size_download}' "$@" \
		"$where/file") || fail "$who got $got bytes of $where/file"
	expect_equal "$size" "$got" "bytes of $where/file"
}

expect_upload() {
	local who=$1 where got
	where=$(url "$2" "$3")
	shift 3
	got=$(in_namespace "$who" curl -sS --max-time $((15 * SLOWER)) -H Expect: --data-binary @/run/www/file \
		"$@" "$where/cgi-bin/count") || fail "$who could not send to $where"
	expect_equal "$size" "$(tr -d ' \n' <<<"$got")" "bytes sent to $where"
}

# Each transfer has to discover the path MTU again: what far has learned shows in its MSS.
expect_transfers() {
	local transfer
	for transfer in expect_download expect_upload; do
		ip -n far route flush cache
		ip -n far -6 route flush cache
		"$transfer" "$@"
	done
}

# A container's address quoted in an ICMP error, or as its sender or receiver
quoted_leak='(icmp and (icmp[20:2] = 0x0a58 or icmp[20:2] = 0x0a59 or icmp[24:2] = 0x0a58 or
	icmp[24:2] = 0x0a59)) or (ip6[6] = 58 and (ip6[56:2] = 0xfd00 or ip6[72:2] = 0xfd00)) or
	net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16'

# refused_through_mapping LIST...
refused_through_mapping() {
	local list address
	for list; do
		container_add web "$list" -p 8080:80/tcp -p 8080:80/udp
		errors_unlimited web
		for address in "$host4" "$host6"; do
			expect_refused client udp "$address" 8080 --connected
			expect_refused client tcp "$address" 8080
		done
		container_remove web "$list"
	done
}

# also with fastPath off, always
# a client of a mapped UDP port that is closed is told so, IPv4 and IPv6, of a bridge's container and of
# a ptp's; also with a strict firewall and bridge netfilter, where the error belongs to the flow
test_errors_refused_through_mapping() {
	capture_start wire client eth0 "$quoted_leak"
	refused_through_mapping bridge ptp
	expect_captured_nothing wire
	bridge_netfilter 1
	firewall_strict
	refused_through_mapping bridge
}

# also with fastPath off
# a masqueraded container is told of a closed UDP port outside, with its port kept or changed
test_errors_refused_through_masquerade() {
	errors_unlimited server
	container_add one bridge
	container_add two ptp
	capture_start wire server eth0 "$quoted_leak"
	local name address
	for name in one two; do
		for address in "$server4" "$server6"; do
			expect_refused "$name" udp "$address" 9999 --connected
			expect_refused "$name" udp "$address" 9998 --connected --source-port 5000
			expect_refused "$name" udp "$address" 9998 --connected --source-port 40000
		done
	done
	expect_captured_nothing wire
}

# so are another container on the bridge, the container itself, and one on another network
test_errors_refused_to_neighbour() {
	conflist other bridge "$other_network"
	container_add web bridge -p 8080:80/udp
	container_add near bridge
	container_add routed ptp
	container_add apart other
	local name address
	for name in near routed apart web; do
		errors_unlimited "$name"
		for address in "$host4" "$host6"; do
			expect_refused "$name" udp "$address" 8080 --connected
		done
	done
	for name in near routed apart; do
		expect_refused "$name" udp "$(address4 web)" 80 --connected
		expect_refused "$name" udp "$(address6 web)" 80 --connected
	done
}

# so is another container on the bridge under a strict firewall and bridge netfilter
test_errors_refused_to_neighbour_strict() {
	container_add web bridge -p 8080:80/udp
	container_add near bridge
	errors_unlimited web
	local setting
	for setting in 0 1; do
		bridge_netfilter "$setting"
		neighbour_is_refused
	done
	# Only now, because it also drops neighbour discovery, which the containers have done by
	# now.
	firewall_strict
	for setting in 1 0; do
		bridge_netfilter "$setting"
		neighbour_is_refused
	done
}

neighbour_is_refused() {
	both expect_refused near udp @host 8080 --connected
}

# path_errors_watch, expect_path_errors: errors of both families have passed, and none with an address of a
# container
path_errors_watch() {
	capture_start errors client eth0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	capture_start leak client eth0 "$quoted_leak"
}
expect_path_errors() {
	local seen
	seen=$(capture_stop errors)
	expect_contains "$seen" "need to frag" "packet too big"
	expect_captured_nothing leak
}

# also with fastPath off, always
# limit 120 s
# 4 MB pass both ways through a mapping over a path with a smaller MTU, IPv4 and IPv6
test_errors_path_mtu_mapping() {
	path_make
	container_add web bridge -p 8080:80/tcp
	files_serve web 80
	path_errors_watch
	both expect_transfers far @host 8080
	expect_path_errors
}

# limit 120 s
# 4 MB pass both ways through masquerade over a path with a smaller MTU, IPv4 and IPv6
test_errors_path_mtu_masquerade() {
	path_make
	files_serve far 80
	container_add one bridge
	container_add two ptp
	path_errors_watch
	local name
	for name in one two; do
		both expect_transfers "$name" @far 80
	done
	expect_path_errors
}

# also with fastPath off
# limit 120 s
# the same with a strict firewall: errors are related, not invalid
test_errors_path_mtu_strict() {
	bridge_netfilter 1
	firewall_strict
	path_make
	files_serve far 80
	container_add web bridge -p 8080:80/tcp
	files_serve web 80
	both expect_transfers web @far 80
	both expect_transfers far @host 8080
}

# mtu_shrink NAME: at both ends of a container's link; its bridge follows.
mtu_shrink() {
	ip link set "$(host_veth "$1")" mtu 1280
	ip -n "$1" link set eth0 mtu 1280
}

# shrinks_meanwhile NAME COMMAND...: the MTU shrinks while something is sent slowly between NAME and
# the client.
shrinks_meanwhile() {
	local name=$1 sent before
	shift
	before=$(carried)
	"$@" --limit-rate $((size / 2 / (1 + SLOWER / 8))) &
	sent=$!
	wait_until 10 has_carried $((before + size / 10)) || fail "nothing is sent"
	mtu_shrink "$name"
	wait "$sent"
}

# carried: bytes between the host and the client, both ways
carried() { echo $(($(</sys/class/net/eth0/statistics/rx_bytes) + $(</sys/class/net/eth0/statistics/tx_bytes))); }
has_carried() { [ "$(carried)" -gt "$1" ]; }

shrinks_in_mid_connection() {
	local list=$1 address number=0 name
	capture_start errors client eth0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	capture_start leak client eth0 "$quoted_leak"
	for address in "$host4" "$host6"; do
		number=$((number + 1)) name=web$number
		container_add "$name" "$list" -p "808$number:80/tcp"
		errors_unlimited "$name"
		files_serve "$name" 80
		shrinks_meanwhile "$name" expect_upload client "$address" "808$number"
		container_remove_hard "$name" "$list"
	done
	for address in "$client4" "$client6"; do
		number=$((number + 1)) name=one$number
		container_add "$name" "$list"
		shrinks_meanwhile "$name" expect_download "$name" "$address" 9000
		container_remove_hard "$name" "$list"
	done
	local seen
	seen=$(capture_stop errors)
	expect_contains "$seen" "$host4 > $client4: ICMP $host4 unreachable - need to frag"
	expect_contains "$seen" "$host6 > $client6: ICMP6, packet too big"
	expect_captured_nothing leak
}

# Its servers end with it; they would keep the namespace and the small MTU.
container_remove_hard() {
	container_del "$1" "$2"
	processes_end "$1"
	ip netns delete "$1"
}

# limit 120 s
# a container's MTU that shrinks during a connection: the host sends errors of its own, with the
# addresses that the peer knows
test_errors_container_mtu_shrinks() {
	errors_unlimited host
	files_serve client 9000
	shrinks_in_mid_connection bridge
}

# limit 120 s
# the same for a ptp container
test_errors_container_mtu_shrinks_ptp() {
	errors_unlimited host
	files_serve client 9000
	shrinks_in_mid_connection ptp
}

# also with fastPath off
# traceroute through masquerade shows every hop, by UDP and by ping
test_errors_traceroute() {
	path_make
	local name list seen tool
	for list in bridge ptp; do
		name=from_$list
		container_add "$name" "$list"
		errors_unlimited "$name"
		capture_start "wire_$list" client eth0 "$quoted_leak"
		for tool in traceroute "traceroute -I"; do
			seen=$(in_namespace "$name" busybox $tool -n -q 1 -w $((2 * SLOWER)) -m 6 "$far4" 2>&1)
			expect_hops "$seen" "$client4" "$hop4" "$far4"
		done
		seen=$(in_namespace "$name" busybox traceroute6 -n -q 1 -w $((2 * SLOWER)) -m 6 "$far6" 2>&1)
		expect_hops "$seen" "$client6" "$hop6" "$far6"
		expect_captured_nothing "wire_$list"
	done
}

# Line 1 is the host, so line 2 is the first hop outside.
expect_hops() {
	local seen=$1 number=2 line
	shift
	while [ $# -gt 0 ]; do
		line=$(sed -n "s/^ *$number  //p" <<<"$seen")
		case $line in "$1 "*) ;; *) fail "hop $number should be $1: $seen" ;; esac
		number=$((number + 1))
		shift
	done
}

# also with fastPath off
# traceroute from outside to a mapped port ends at the host's own address
test_errors_traceroute_to_mapping() {
	path_make
	container_add web bridge -p 33000:33000/udp
	errors_unlimited web
	capture_start wire client eth0 "$quoted_leak"
	local answer ttl
	for ttl in 1 2 3 4 5; do
		answer=$(ask far udp "$host4" 33000 --connected --ttl "$ttl") || true
		echo "$ttl $answer"
	done >/run/answers
	expect_equal "1 broken: No route to host
2 broken: No route to host
3 broken: No route to host
4 refused
5 refused" "$(cat /run/answers)"
	expect_captured_nothing wire
}

# also with fastPath off
# what the firewall rejects after the destination was rewritten is reported from the host's address,
# by ICMP and by RST, which the kernel sends as if it were the container
test_errors_firewall_rejects() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	local address rejection
	errors_unlimited host
	capture_start leak client eth0 "$quoted_leak"
	for rejection in "" "with tcp reset"; do
		nft -f - <<-RULES
			table inet rejecting
			delete table inet rejecting
			table inet rejecting {
				chain forward {
					type filter hook forward priority filter;
					meta l4proto tcp reject $rejection
					meta l4proto udp reject
				}
			}
		RULES
		for address in "$host4" "$host6"; do
			# The error may arrive while the socket is still sending its first SYN:
			# then only the one about the second SYN counts.
			expect_refused client tcp "$address" 8080 --timeout 3000
			expect_refused client udp "$address" 8080 --connected
		done
	done
	expect_captured_nothing leak
}

# a capture that looks for a container's address in errors sees those of a container without
# masquerade
test_errors_leak_is_seen() {
	conflist open bridge "$(with_ours '{"ipMasq": false}')"
	container_add one open
	errors_unlimited one
	capture_start wire client eth0 "$quoted_leak"
	expect_refused client udp "$(address4 one)" 80 --connected
	expect_refused client udp "$(address6 one)" 80 --connected
	local seen
	seen=$(capture_stop wire)
	expect_contains "$seen" "$(address4 one) udp port 80 unreachable"
	expect_contains "$seen" "unreachable port, $(address6 one) udp port 80"
}
