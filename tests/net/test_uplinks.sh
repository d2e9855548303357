# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_uplinks.sh - which interfaces containers leave by and are reached by, and what they are.

tunnel4=203.0.113.1 tunnel6=2001:db8:3::1
office4=203.0.113.10 office6=2001:db8:3::10

# tunnel_make [ARPHRD]: a VPN to another place: tun0 here, tun0 in `office`
tunnel_make() {
	namespace_add office
	"$build/tests/tun" tun0 /run/netns/office tun0 "$@"
	ip address add "$tunnel4/24" dev tun0
	ip address add "$tunnel6/64" dev tun0 nodad
	ip link set tun0 up
	ip -n office address add "$office4/24" dev tun0
	ip -n office address add "$office6/64" dev tun0 nodad
	ip -n office link set tun0 up
}

serves_over_tunnel() {
	local list=$1
	tunnel_make
	serve_in office 9000
	container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
	expect_contains "$(attached tun0 ingress)" from_uplink_raw
	expect_contains "$(attached tun0 egress)" to_uplink_raw
	expect_answers office "$tunnel4" 8080 web "$office4"
	expect_answers office "$tunnel6" 8080 web "$office6"
	expect_answers web "$office4" 9000 office "$tunnel4"
	expect_answers web "$office6" 9000 office "$tunnel6"
	local address
	for address in "$office4" "$office6"; do
		in_namespace web busybox ping -c 1 -W 2 -q "$address" >/dev/null || fail "no echo from $address"
	done
}

# an uplink without Ethernet headers serves a bridge container both ways, IPv4 and IPv6 [T19]
test_uplink_tunnel_bridge() { serves_over_tunnel bridge; }

# an uplink without Ethernet headers serves a ptp container both ways, IPv4 and IPv6 [T19]
test_uplink_tunnel_ptp() { serves_over_tunnel ptp; }

# an uplink without Ethernet headers serves with a strict firewall, and after DEL nothing is left
# but its programs [T19][i04]
test_uplink_tunnel_strict() {
	firewall_strict
	tunnel_make
	local before list
	for list in bridge ptp; do
		container_start first "$list" -p 8080:80/tcp
		container_remove first "$list"
	done
	before=$(state_show)
	for list in bridge ptp; do
		container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
		expect_answers office "$tunnel4" 8080 web "$office4"
		expect_answers office "$tunnel6" 8080 web "$office6"
		container_check web "$list"
		container_remove web "$list"
		expect_no_answer office tcp "$tunnel4" 8080
		expect_same_state "$before"
	done
}

# a modem's interface, PPP, is like a tunnel [T19]
test_uplink_ppp() {
	tunnel_make 512
	serve_in office 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answers office "$tunnel4" 8080 web "$office4"
	expect_answers web "$office6" 9000 office "$tunnel6"
}

# an uplink with a link header that nobody here knows, InfiniBand's, lets no container out and
# serves no port [i04][i13][T19]
test_uplink_unknown_link_header() {
	tunnel_make 32
	serve_in office 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_equal '' "$(attached tun0 ingress)$(attached tun0 egress)"
	capture_start leak office tun0 "udp or tcp"
	expect_no_answer web udp "$office4" 9000
	expect_no_answer web tcp "$office6" 9000
	expect_captured_nothing leak
	expect_count_above 0 drop_unclassified_interface
	expect_no_answer office udp "$tunnel4" 8080
}

# expect_count_above N COUNTER
expect_count_above() {
	local count
	count=$(bpftool -j map dump pinned "$pins/counters" |
		jq "[.[0].formatted.values[].value.$2] | add")
	[ "$count" -gt "$1" ] || fail "$2 is $count, expected more than $1"
}

# errors cross a tunnel: a refused UDP port on either side is told to who asked [T16][T19]
test_uplink_tunnel_refused() {
	tunnel_make
	container_add web bridge -p 8081:81/udp
	errors_unlimited office web
	local address
	for address in "$tunnel4" "$tunnel6"; do expect_refused office udp "$address" 8081; done
	for address in "$office4" "$office6"; do expect_refused web udp "$address" 9001; done
}

# a container learns the MTU of a path behind a tunnel, and a file arrives whole both ways
# [T28][T16][T19]
test_uplink_tunnel_path_mtu() {
	tunnel_make
	namespace_add far
	ip link add behind netns office type veth peer name eth0 netns far
	ip -n office address add 10.99.0.1/24 dev behind
	ip -n office address add 2001:db8:9::1/64 dev behind nodad
	ip -n office link set behind up mtu 1300
	ip -n far address add 10.99.0.10/24 dev eth0
	ip -n far address add 2001:db8:9::10/64 dev eth0 nodad
	ip -n far link set eth0 up
	ip -n far route add default via 10.99.0.1
	ip -n far route add default via 2001:db8:9::1
	in_namespace office sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip route add 10.99.0.0/24 via "$office4"
	ip route add 2001:db8:9::/64 via "$office6"
	container_add web bridge -p 8080:80/tcp
	errors_unlimited office web
	file_serve web 80
	file_serve far 9000
	local address
	capture_start errors office tun0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	for address in "$tunnel4" "$tunnel6"; do expect_file far "$address" 8080; done
	for address in 10.99.0.10 2001:db8:9::10; do expect_upload web "$address" 9000; done
	address=$(capture_stop errors)
	expect_contains "$address" 'mtu 1300'
}

# Counted errors do not help who waits for one.
errors_unlimited() {
	local name
	sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
	for name; do
		in_namespace "$name" sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
	done
}

expect_refused() {
	local answer
	answer=$(ask "$@" --connected) || true
	expect_equal refused "$answer" "$1 asks $2 $(endpoint "$3" "$4")"
}

# file_serve NAMESPACE PORT: 1 MB to fetch, and somebody who counts what is sent
file_serve() {
	if [ ! -e /run/www ]; then
		mkdir -p /run/www/cgi-bin
		head -c 1000000 /dev/urandom >/run/www/file
		printf '#!/bin/sh\necho\nmd5sum\n' >/run/www/cgi-bin/sum
		chmod +x /run/www/cgi-bin/sum
	fi
	in_namespace "$1" busybox httpd -p "$2" -h /run/www
}

# expect_file NAMESPACE ADDRESS PORT: the file arrives as it is
expect_file() {
	in_namespace "$1" curl -sS -m 20 -o /run/got "http://$(endpoint "$2" "$3")/file" ||
		fail "$1 got no file from $2"
	cmp /run/www/file /run/got || fail "$1 got another file from $2"
}

expect_upload() {
	local sum
	sum=$(in_namespace "$1" curl -sS -m 20 -H Expect: --data-binary @/run/www/file \
		"http://$(endpoint "$2" "$3")/cgi-bin/sum") || fail "$1 could not send the file to $2"
	expect_equal "$(md5sum </run/www/file)" "$sum" "$1 sends the file to $2"
}

reverse_path_loose() {
	local path
	for path in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 2 >"$path"; done
}

# far is behind the tunnel and behind eth1; replies go where their new source's rule says
two_ways_to_far() {
	local name
	far4=192.0.113.9 far6=2001:db8:9::9
	tunnel_make
	for name in office server; do
		ip -n "$name" address add "$far4/32" dev lo
		ip -n "$name" address add "$far6/128" dev lo nodad
	done
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	reverse_path_loose
}

# policy_route ADDRESS GATEWAY: packets from ADDRESS to far go there
policy_route() {
	local far=$far4 family=-4
	case $1 in *:*) far=$far6 family=-6 ;; esac
	ip "$family" route add "$far" via "$2" table 100
	ip "$family" rule add from "$1" lookup 100
}

# a reply that routing would send into a tunnel leaves by the Ethernet uplink that its address
# belongs to [T20][T19]
test_uplink_reroute_from_tunnel() {
	two_ways_to_far
	ip route add "$far4" via "$office4"
	ip route add "$far6" via "$office6"
	policy_route "$host4_second" "$server4"
	policy_route "$host6_second" "$server6"
	expect_answers server "$host4_second" 8080 web "$far4" --from "$far4"
	expect_answers server "$host6_second" 8080 web "$far6" --from "$far6"
}

# a reply that routing would send out of an Ethernet uplink leaves by the tunnel that its address
# belongs to [T20][T19]
test_uplink_reroute_into_tunnel() {
	two_ways_to_far
	ip route add "$far4" via "$server4"
	ip route add "$far6" via "$server6"
	policy_route "$tunnel4" "$office4"
	policy_route "$tunnel6" "$office6"
	expect_answers office "$tunnel4" 8080 web "$far4" --from "$far4"
	expect_answers office "$tunnel6" 8080 web "$far6" --from "$far6"
}
