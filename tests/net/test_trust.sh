# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_trust.sh - what the programs know is believed only for what made it true, and only as long as
# it is true: addresses of senders, addresses of the host, routes, ports. conntrack asks again at
# each packet; the reference runs the same attacks.

loose() {
	local path
	for path in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >"$path"; done
}

# a neighbour on an uplink's link that sends with a container's address, or a container of the same
# bridge for which we were never called, is not masqueraded in the container's name, and its packets do
# not leave with that address either
test_trust_neighbour_forges() {
	serve_in server 9000
	loose
	conflist plain bridge "$only_main"
	container_add evil plain
	container_start web bridge -p 8080:80/tcp
	capture_start out server eth0 "udp port 5001"
	forge client eth0 udp "$(address4 web)" 5000 "$server4" 5001
	forge client eth0 udp "$(address6 web)" 5000 "$server6" 5001
	forge evil cni0 udp "$(address4 web)" 5000 "$server4" 5001
	forge evil cni0 udp "$(address6 web)" 5000 "$server6" 5001
	expect_captured_nothing out
	expect_counted drop_forged_source 4 drop_forged_source
	ask evil udp "$server4" 9000 --timeout 200 >/dev/null || true
	expect_answers web "$server4" 9000 server "$host4_second"
}

# marks_set CONTAINER VALUE: what it sends has a tc_index of its choice
marks_set() {
	tc -n "$1" qdisc replace dev eth0 clsact
	tc -n "$1" filter replace dev eth0 egress prio 1 handle 800::800 protocol all \
		u32 match u32 0 0 flowid "1:$2"
}

# nor does a container of a bridge of somebody else's, or such a neighbour of the same bridge, get
# around that by what its own tc filter tells our hooks
test_trust_neighbour_sets_marks() {
	local mark
	loose
	conflist plain bridge "$only_main"
	conflist foreign bridge "$other_network | $only_main"
	container_add evil plain
	container_add stranger foreign
	container_start web bridge -p 8080:80/tcp
	capture_start out server eth0 "udp port 5001"
	for mark in 6201 6204 6205; do
		marks_set evil "$mark"
		forge_web evil cni0
		marks_set stranger "$mark"
		forge_web stranger cni1
	done
	expect_captured_nothing out
	expect_counted drop_forged_source 12 drop_forged_source
}

# forge_web CONTAINER BRIDGE: it sends in web's name
forge_web() {
	forge "$1" "$2" udp "$(address4 web)" 5000 "$server4" 5001
	forge "$1" "$2" udp "$(address6 web)" 5000 "$server6" 5001
}

# nor where the veth of the container has a filter of somebody else's
test_trust_neighbour_of_watched() {
	loose
	conflist plain bridge "$only_main"
	container_add evil plain
	container_start web bridge -p 8080:80/tcp
	tc qdisc add dev "$(host_veth web)" clsact 2>/dev/null || true
	tc filter add dev "$(host_veth web)" ingress prio 100 protocol all u32 match u32 0 0 flowid 1:1
	"$build/bpf-portmap" attach >/dev/null
	capture_start out server eth0 "udp port 5001"
	forge_web evil cni0
	expect_captured_nothing out
	expect_counted drop_forged_source 2 drop_forged_source
}

# a container that sends with an address of outside reaches no port that sourceRanges keeps from it, and
# answers no query of another one, even if it knows the port
test_trust_neighbour_forges_outside() {
	loose
	conflist some bridge "$(with_ours '{"sourceRanges": ["192.0.2.0/24", "2001:db8:1::/64"]}')"
	container_start web some -p 8080:80/udp
	container_add evil bridge
	container_add asker bridge
	capture_start in web eth0 "udp port 80"
	forge evil cni0 udp "$client4" 5000 "$host4" 8080
	forge evil cni0 udp "$client6" 5000 "$host6" 8080
	expect_captured_nothing in
	capture_start answers asker eth0 "udp src port 9000"
	ask asker udp "$server4" 9000 --source-port 3000 --timeout 200 >/dev/null || true
	ask asker udp "$server6" 9000 --source-port 3000 --timeout 200 >/dev/null || true
	forge evil cni0 udp "$server4" 9000 "$host4_second" 3000
	forge evil cni0 udp "$server6" 9000 "$host6_second" 3000
	expect_captured_nothing answers
	both expect_answer client udp @host 8080 web @client
}

# link_says CONTAINER DESTINATION-MAC ETHERTYPE PACKET: a frame of its own MAC
link_says() {
	local mac
	mac=$(mac_in "$1" eth0)
	in_namespace "$1" "$build/tests/frame" eth0 "${2//:/}${mac//:/}$3$4"
}

# behind_headers PACKET: the same ICMPv6 behind more destination options than the programs read
behind_headers() {
	local next size headers=
	for next in 3c 3c 3c 3c 3c 3c 3a; do headers+=${next}00010400000000; done
	printf -v size %04x $((${#headers} / 2 + (${#1} - 80) / 2))
	echo "${1:0:8}${size}3c${1:14:66}$headers${1:80}"
}

# claims CONTAINER ADDRESS: it says to the host, and to all of its link, that the address is at its MAC: an
# ARP answer and an ARP request, or five neighbour advertisements; $claims counts them.
claims() {
	local who=$1 address=$2 mac host own
	mac=$(mac_in "$who" eth0 | tr -d :) host=$(mac_of cni0)
	if [ "$address" != "${address#*:}" ]; then
		own=$(address6 "$who")
		address=20000000$(address_hex "$address")0201$mac
		link_says "$who" "$host" 86dd "$(icmp6_hex "$own" "$bridge6" 136 "$address")"
		link_says "$who" "$host" 86dd "$(icmp6_hex "$own" "$bridge6" 136 "$address" alert)"
		link_says "$who" "$host" 86dd "$(behind_headers "$(icmp6_hex "$own" "$bridge6" 136 "$address")")"
		link_says "$who" 33:33:00:00:00:01 86dd "$(icmp6_hex "$own" ff02::1 136 "$address")"
		link_says "$who" 33:33:00:00:00:01 86dd "$(icmp6_hex fe80::bad ff02::1 136 "$address")"
		claims=$((claims + 5))
		return 0
	fi
	address=$(address_hex "$address")
	link_says "$who" "$host" 0806 "0001080006040002$mac$address${host//:/}$(address_hex "$bridge4")"
	link_says "$who" ff:ff:ff:ff:ff:ff 0806 "0001080006040001$mac${address}000000000000$address"
	claims=$((claims + 2))
}

# neighbours_forget_fast: a claim is heard at once, and not only a second after the last one
neighbours_forget_fast() {
	sysctl -qw net.ipv4.neigh.cni0.locktime=0
	in_namespace web sysctl -qw net.ipv4.neigh.eth0.locktime=0
}

# mac_known NAMESPACE|host INTERFACE ADDRESS: the MAC of a neighbour
mac_known() {
	local said command=(ip -n "$1")
	[ "$1" != host ] || command=(ip)
	said=$("${command[@]}" neighbour show "$3" dev "$2")
	[[ $said =~ lladdr\ ([^ ]*) ]] && echo "${BASH_REMATCH[1]}"
}

# a container that claims a neighbour's address, or the bridge's, by ARP or by a neighbour advertisement,
# gets neither what the host sends to the neighbour nor what the neighbour sends to the bridge; of its own
# address everybody believes it, also with another MAC
test_trust_neighbour_claims_address() {
	local claims=0 address web_mac
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start evil bridge -p 8081:80/tcp -p 8081:80/udp
	expect_serves web
	expect_serves evil 8081
	for address in "$bridge4" "$bridge6"; do expect_no_answer web udp "$address" 9; done
	neighbours_forget_fast
	web_mac=$(mac_in web eth0)
	for address in "$(address4 web)" "$(address6 web)" "$bridge4" "$bridge6"; do claims evil "$address"; done
	[ "$plugin" != bpf-portmap ] || expect_counted drop_forged_source "$claims" 'claims that were dropped'
	for address in "$(address4 web)" "$(address6 web)"; do
		expect_equal "$web_mac" "$(mac_known host cni0 "$address")" "where the host has $address"
	done
	for address in "$bridge4" "$bridge6"; do
		expect_equal "$(mac_of cni0)" "$(mac_known web eth0 "$address")" "where web has $address"
	done
	expect_serves web
	ip -n evil link set eth0 address 02:00:00:00:07:06
	claims evil "$(address4 evil)"
	claims evil "$(address6 evil)"
	for address in "$(address4 evil)" "$(address6 evil)"; do
		wait_until 5 is_known_at "$address" 02:00:00:00:07:06 || fail "the host has $address at $(mac_known host cni0 "$address")"
	done
	expect_serves evil 8081
}
is_known_at() { [ "$(mac_known host cni0 "$1")" = "$2" ]; }

# a user of the host who sends with a container's address (IPv6 lets anyone do so) neither uses nor
# begins a masqueraded flow of it, nor does such a packet leave
test_trust_local_user() {
	local port
	serve_in server 9000
	container_add web bridge
	expect_answer web udp "$server6" 9000 server "$host6_second" --source-port 3000
	capture_start out server eth0 "udp port 9000"
	for port in 3000 3001; do
		setpriv --reuid 65534 --regid 65534 --clear-groups "$build/tests/local" udp6 freebind \
			bind "$(address6 web)" "$port" sendto "$server6" 9000 || true
	done
	expect_captured_nothing out
	expect_counted drop_forged_source 2 drop_forged_source
	expect_answer web udp "$server6" 9000 server "$host6_second" --source-port 3000
}

# IPv6 packets with the host's own address as their source, which the host forwards, neither take a
# UDP client from a mapped port nor a port from a container
test_trust_hosts_address_forwarded() {
	local port
	serve_in server 9000
	container_start web bridge -p 8080:80/udp
	for port in 5001 5002 5003; do
		forge server eth1 udp "$host6" 8080 "$client6" "$port"
		expect_answer client udp "$host6" 8080 web "$client6" --source-port "$port"
	done
	conflist narrow bridge "$other_network | $(with_ours '{masqPorts: "2000-2007"}')"
	container_start many narrow
	for port in {2000..2007}; do
		forge client eth0 udp "$host6_second" "$port" "$server6" 9000
	done
	for port in {3000..3007}; do
		expect_answer many udp "$server6" 9000 server - --source-port "$port"
	done
}

# the uplink gets another address: a UDP conversation through masquerade that never pauses goes on
# with the new one
# also with fastPath off, always
# also with portmap
test_trust_address_changes() {
	container_add web bridge
	serve_in server 9000
	pours_open web "$server4" "$server6"
	ip address del "$host4_second/24" dev eth1
	ip address add 198.51.100.2/24 dev eth1
	ip -6 address del "$host6_second/64" dev eth1
	ip -6 address add 2001:db8:2::2/64 dev eth1 nodad
	ip -n server neighbour replace 198.51.100.2 lladdr "$(mac_of eth1)" dev eth0 nud permanent
	ip -n server neighbour replace 2001:db8:2::2 lladdr "$(mac_of eth1)" dev eth0 nud permanent
	ip neighbour replace "$server4" lladdr "$(mac_in server eth0)" dev eth1 nud permanent
	ip neighbour replace "$server6" lladdr "$(mac_in server eth0)" dev eth1 nud permanent
	pours_seen_as 198.51.100.2 2001:db8:2::2
}

# the route moves to another uplink: such a conversation goes on by that uplink, with its address
# also with fastPath off, always
# also with portmap
test_trust_route_moves() {
	local far4=203.0.113.9 far6=2001:db8:9::9 name
	reverse_path_loose
	for name in client server; do
		ip -n "$name" address add "$far4/32" dev lo
		ip -n "$name" address add "$far6/128" dev lo nodad
		serve_in "$name" 9000
	done
	container_add web bridge
	ip route add "$far4" via "$server4"
	ip -6 route add "$far6" via "$server6"
	pours_open web "$far4" "$far6"
	ip route replace "$far4" via "$client4"
	ip -6 route replace "$far6" via "$client6"
	pours_seen_as "$host4" "$host6"
}

# pours_open CONTAINER ADDRESS4 ADDRESS6: two sockets send a datagram every PAUSE=20
# milliseconds, answered or not
pours_open() {
	local family=4 address
	for address in "$2" "$3"; do
		in_namespace "$1" "$peer" ask udp "$address" 9000 --count $((12000 / ${PAUSE:-20})) \
			--interval "${PAUSE:-20}" --timeout "${PAUSE:-20}" --keep-going >"/run/pour$family" 2>&1 &
		family=6
	done
	wait_until 10 pours_are_answered
}

pours_are_answered() {
	[ "$(grep -c name= /run/pour4)" -ge 10 ] && [ "$(grep -c name= /run/pour6)" -ge 10 ]
}

# pours_seen_as ADDRESS4 ADDRESS6: the server sees these addresses now, and answers
pours_seen_as() {
	wait_until 10 pour_is_seen_as 4 "$1" || fail "$1: $(tail -n 1 /run/pour4)"
	wait_until 10 pour_is_seen_as 6 "$2" || fail "$2: $(tail -n 1 /run/pour6)"
}
pour_is_seen_as() {
	field_read client "$(grep name= "/run/pour$1" | tail -n 1)"
	host_read "$field"
	[ "$part" = "$2" ]
}

# a user of the host that connects to a server from the ports of a container's established
# connections ends none of them, and is connected himself
# also with portmap
test_trust_host_takes_ports() {
	local port
	serve_in server 9000
	container_add web bridge
	for port in 2001 2002 2003; do
		conversation_open "tcp$port" web tcp "$server4" 9000 --source-port "$port"
		conversation_open "udp$port" web udp "$server4" 9000 --source-port "$port"
	done
	for port in 2001 2002 2003; do
		for _ in 1 2 3; do
			expect_says "tcp$port" server
			expect_says "udp$port" server
		done
	done
	for port in 2001 2002 2003; do
		expect_answer host tcp "$server4" 9000 server "$host4_second" --source-port "$port"
		expect_answer host udp "$server4" 9000 server "$host4_second" --source-port "$port"
	done
	for port in 2001 2002 2003; do
		expect_says "tcp$port" server
		expect_says "udp$port" server
	done
}

# while a container restarts, another one sends from the port that it publishes to its clients:
# afterwards they reach the container again
test_trust_port_taken_meanwhile() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_add evil bridge
	expect_answer client udp "$host4" 8080 web "$client4" --source-port 5001
	container_remove web bridge
	ask evil udp "$client4" 5001 --source-port 8080 --timeout 100 >/dev/null || true
	ask evil tcp "$client4" 5002 --source-port 8080 --timeout 100 >/dev/null || true
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answer client udp "$host4" 8080 web "$client4" --source-port 5001
	expect_answer client tcp "$host4" 8080 web "$client4" --source-port 5002
}

# a route to an interface that has come up since: no flow through the IP stack goes on there with a
# container's address
# also with portmap
test_trust_route_to_new_interface() {
	local far4=203.0.113.9 far6=2001:db8:9::9 leaked
	reverse_path_loose
	serve_in server 9000
	ip -n server address add "$far4/32" dev lo
	ip -n server address add "$far6/128" dev lo nodad
	ip route add "$far4" via "$server4"
	ip -6 route add "$far6" via "$server6"
	conflist slow bridge "$(with_ours '{fastPath: "off"}')"
	container_add web slow
	PAUSE=1 pours_open web "$far4" "$far6"
	network_make vpn eth2 192.0.3.1 2001:db8:3::1 192.0.3.10 2001:db8:3::10
	capture_start leak vpn eth0 'net 10.88.0.0/16 or ip6 net fd00::/16'
	ip route replace "$far4" via 192.0.3.10
	ip -6 route replace "$far6" via 2001:db8:3::10
	sleep 1.2 # the second for which something may be believed is over
	if [ "$plugin" != bpf-portmap ]; then
		expect_captured_nothing leak
		return
	fi
	# The route may change while a packet is between our program, which asks for it, and the stack.
	leaked=$(capture_stop leak)
	[ "$(grep -c . <<<"$leaked")" -le 2 ] || fail "more than a packet of each flow: $leaked"
}

# an unprivileged user of the host connects a UDP socket to a client of a mapped port: it takes
# nothing from the container
# also with portmap
test_trust_host_connects_udp() {
	container_start web bridge -p 8080:80/udp
	conversation_open theft host udp "$client4" 5001 --connected --from "$host4" \
		--source-port 8080
	wait_until 5 socket_is_connected || fail "$(ss -nu)"
	expect_answer client udp "$host4" 8080 web "$client4" --source-port 5001
}

socket_is_connected() { ss -Hnu | grep "$host4\]*:8080 .*$client4\]*:5001" >/dev/null; }

# a filter of somebody else's at a container's veth or at its bridge, which overwrites what our hooks
# tell each other, takes no masquerade away
# also with portmap
test_trust_filters_of_others() {
	local device
	serve_in server 9000
	container_add web bridge
	for device in "$(host_veth web)" cni0; do
		tc qdisc add dev "$device" clsact 2>/dev/null || true
		tc filter add dev "$device" ingress prio 100 protocol all u32 match u32 0 0 flowid 1:1
		expect_gets_out web
		tc filter del dev "$device" ingress prio 100
	done
}

# The gateway is a veth behind a port of the bridge, as the bridge plugin makes it for a VLAN.
gateway_behind_port() {
	bridge_netfilter 0
	# else the bridge answers for the address, too
	sysctl -qw net.ipv4.conf.all.arp_ignore=1
	ip link add cni0.7 type veth peer name behind
	ip link set behind master cni0 up
	ip address del "$bridge4/16" dev cni0
	ip link set cni0.7 up
	ip address add "$bridge4/16" dev cni0.7
	ip -n web neighbour flush dev eth0
	reverse_path_loose
	[ "$plugin" != bpf-portmap ] || "$build/bpf-portmap" attach >/dev/null
}

# where the gateway is a veth behind a port of the bridge, requests are masqueraded, too, also those
# whose destination is translated: to a mapped port of a container on another network, to a service
# also with portmap
test_trust_gateway_behind_port() {
	nft -f - <<-RULES
	table ip service {
		chain services {
			type nat hook prerouting priority dstnat
			ip daddr 10.96.0.1 dnat to $server4
		}
	}
	RULES
	serve_in server 9000
	container_add web bridge
	conflist other bridge "$other_network"
	container_start far other -p 8080:80/tcp -p 8080:80/udp
	gateway_behind_port
	expect_answers web "$server4" 9000 server "$host4_second"
	expect_answers web "$host4" 8080 far
	expect_answers web 10.96.0.1 9000 server "$host4_second"
}
