# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_conntrack.sh - what netfilter's NAT and conntrack promise, where no other file shows it.

. "$here/test_fastpath_change.sh"

# seen_from NAMESPACE PROTOCOL PORT SOURCE-PORT: the endpoint as which the server sees it
seen_from() { field_of client "$(ask "$1" "$2" "$server4" "$3" --source-port "$4")"; }

masqueraded_make() {
	fast_lists
	serve_in server 9000
	container_add one fast
}

# also with portmap
# a source port below 1024, which NFS servers demand, stays below 1024, also if another container has
# the same one. One socket is seen with the same port by every server, as whoever asks a STUN server for
# it relies on, also if that is not its own. What a server sends first, from its published port, comes
# from the same port of the host
test_conntrack_source_ports() {
	local name protocol port first
	masqueraded_make
	container_add two fast
	container_add web fast -p 5182:5182/udp -p 5182:5182/tcp
	serve_in server 9001
	serve_in server 9002
	for protocol in tcp udp; do
		for name in one two; do
			port=$(seen_from "$name" "$protocol" 9000 700)
			port=${port##*:}
			[ "$port" -lt 1024 ] || fail "$name: $protocol from port 700 becomes $port"
		done
		first=$(seen_from one "$protocol" 9000 40000)
		for port in 9001 9002; do
			expect_equal "$first" "$(seen_from one "$protocol" "$port" 40000)" "$protocol"
		done
		expect_equal "$host4_second:5182" "$(seen_from web "$protocol" 9000 5182)" "as the server sees it"
	done
}

# marked_routes GATEWAY4 GATEWAY6: marked packets to far are routed there.
marked_routes() {
	ip route add "$far4" via "$1" table 100
	ip route add "$far6" via "$2" table 100
	ip rule add fwmark 7 lookup 100
	ip -6 rule add fwmark 7 lookup 100
}

# expect_none NAMESPACE FILTER TALK...: they go on, and nothing of the kind arrives there.
expect_none() {
	local who=$1 filter=$2
	shift 2
	capture_start wrong "$who" eth0 "$filter"
	expect_steady "$@"
	expect_captured_nothing wrong
}

# also with portmap
# replies that the firewall's mark ties to the uplink of the request leave there
test_conntrack_mark_of_replies() {
	far_make server client
	marked_routes "$server4" "$server6"
	firewall_marks 'iifname "eth1" ct mark set 7' 'iifname "cni0" meta mark set ct mark'
	fast_lists
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in server "$host4_second" "$host6_second" 8080 "--from $far4" "--from $far6"
	expect_none client "host $far4 or host $far6" $(talks in)
}

# also with portmap
# of two routers on one uplink, packets go to the one that the firewall's mark chooses, or a rule that
# goes by the type of service, masqueraded and from a mapped port
test_conntrack_mark_of_router() {
	far_make server
	router_make
	far_by server
	marked_routes "$router4" "$router6"
	firewall_marks 'iifname "cni0" meta mark set 7'
	masqueraded_make
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in server "$host4_second" "$host6_second" 8080 "--from $far4" "--from $far6"
	talks_open out one "$far4" "$far6" 9000
	expect_none server "(dst $far4 or dst $far6) and ether dst $(mac_in server eth0)" $(talks in out)
	nft delete table inet marks
	ip rule add tos 0x10 lookup 100
	talk_open tos_tcp one tcp "$far4" 9000 --tos 16
	talk_open tos_udp one udp "$far4" 9000 --tos 16
	# The connection's first packet may go before the socket has its type of service.
	expect_goes_on tos_tcp tos_udp
	expect_none server "dst $far4 and ether dst $(mac_in server eth0)" tos_tcp tos_udp
}

# Two conversations with a mapped port and two of a container, past the stack where ours translates
conversations_make() {
	masqueraded_make
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	conversation_open in_tcp client tcp "$host4" 8080 --timeout 300
	conversation_open in_udp client udp "$host4" 8080 --timeout 300
	conversation_open out_tcp one tcp "$server4" 9000 --timeout 300
	conversation_open out_udp one udp "$server4" 9000 --timeout 300
	talks='in_tcp in_udp out_tcp out_udp'
	expect_goes_on $talks
	[ "$plugin" != bpf-portmap ] || expect_skips_stack $talks
}

# also with portmap
# nothing reaches a container whose veth is down; one that is taken off its bridge is cut off, its TCP
# connections too
test_conntrack_taken_off_the_bridge() {
	local name
	conversations_make
	hits_count web eth0 80
	arrives_in_web || fail "what arrives is not counted"
	ip link set "$(host_veth web)" down
	try_often nothing_arrives_in_web || fail "packets still reach the container"
	ip link set "$(host_veth web)" up
	for name in web one; do ip link set "$(host_veth "$name")" nomaster; done
	expect_stops $talks
}

arrives_in_web() {
	local before
	before=$(hits web)
	goes_on in_tcp || goes_on in_udp || true
	[ "$(hits web)" != "$before" ]
}
nothing_arrives_in_web() { ! arrives_in_web; }

# The permanent neighbour entries, which a link loses with its addresses, or are old
neighbours_again() {
	local address
	for address in "$client4" "$client6"; do
		ip neighbour replace "$address" lladdr "$(mac_in client eth0)" dev eth0 nud permanent
	done
	for address in "$host4" "$host6"; do
		ip -n client neighbour replace "$address" lladdr "$(mac_of eth0)" dev eth0 nud permanent
	done
}

conversations6_make() {
	conversations_make
	conversation_open in_tcp6 client tcp "$host6" 8080 --timeout 300
	conversation_open in_udp6 client udp "$host6" 8080 --timeout 300
	talks+=' in_tcp6 in_udp6'
	expect_goes_on $talks
}

# also with portmap
# connections go on, and skip the stack as before, after the uplink was down, and when it has another
# MAC
test_conntrack_uplink_down_and_up() {
	conversations6_make
	ip link set eth0 down
	expect_stops in_udp in_udp6
	ip link set eth0 address 02:00:00:00:07:05
	ip link set eth0 up
	address6_add "$host6/64" eth0
	neighbours_again
	bridge_follows true
}

# bridge_makes BRIDGE VETH...: makes it, with the gateway's addresses, and puts the veths into it
bridge_makes() {
	local bridge=$1 name
	shift
	ip link add "$bridge" type bridge
	sysctl -qw "net.ipv4.conf.$bridge.forwarding=1" "net.ipv6.conf.$bridge.forwarding=1"
	ip link set "$bridge" up
	for name; do ip link set "$name" master "$bridge"; done
	ip address add "$bridge4/16" dev "$bridge"
	address6_add "$bridge6/64" "$bridge"
	for name in web one; do ip -n "$name" neighbour flush dev eth0; done
}

# bridge_follows COMMAND...: after the command conversations go on and new ones begin.
bridge_follows() {
	[ "$plugin" != bpf-portmap ] || "$@" >/run/out || fail "$*: $(cat /run/out)"
	expect_goes_on $talks
	expect_serves web
	[ "$plugin" != bpf-portmap ] || expect_skips_stack $talks
}

# also with portmap
# the bridge is made again, by hand, and the containers' veths are put into it: mended by attach, and
# by the next ADD
test_conntrack_bridge_again() {
	local veths command
	conversations6_make
	for command in "$build/bpf-portmap attach" "container_add three fast"; do
		veths="$(host_veth web) $(host_veth one)"
		ip link delete cni0
		bridge_makes cni0 $veths
		bridge_follows $command
	done
}

# also with portmap
# the containers' veths are put into another bridge: mended by attach
test_conntrack_other_bridge() {
	local name veths
	conversations6_make
	veths="$(host_veth web) $(host_veth one)"
	for name in $veths; do ip link set "$name" nomaster; done
	[ "$plugin" != bpf-portmap ] || "$build/bpf-portmap" attach >/run/out
	ip address flush dev cni0
	bridge_makes other0 $veths
	bridge_follows "$build/bpf-portmap" attach
}

# What the programs know of web's gateway: the bridge's number and MAC
expect_gateway() {
	local slot
	slot=$(slot_of bridge/web/eth0)
	expect_equal "$(cat /sys/class/net/cni0/ifindex) $(mac_of cni0)" "$(
		bpftool -j map lookup pinned "$pins/slots" key $((slot & 255)) $((slot >> 8)) 0 0 |
			jq -r '.formatted.value | "\(.gateway) \(.gateway_mac | join(" "))"' |
			{ read -r number mac && echo "$number" $(printf ':%02x' $mac | cut -c 2-); }
	)" "web's gateway after $1"
}

# also with portmap
# the bridge has another MAC, as when the port goes that had its own: connections go on, without a
# command, after attach, and after the next ADD
test_conntrack_bridge_mac() {
	local command number=0 name
	conversations6_make
	for command in true "$build/bpf-portmap attach" "container_add three fast"; do
		ip link set cni0 address "02:00:00:00:08:0$((++number))"
		for name in web one; do ip -n "$name" neighbour flush dev eth0; done
		bridge_follows $command
		[ "$plugin" != bpf-portmap ] || expect_gateway "$command"
	done
}

# CHECK of one container mends what others have, too: the bridge was made again, or got another MAC
test_conntrack_bridge_check() {
	local name veths
	serve_in server 9000
	for name in web one; do container_add_plain "$name"; done
	serve_in web 80
	plugin_call ADD web "$(mapping 8080) | .runtimeConfig.portMappings += [
		.runtimeConfig.portMappings[0] | .protocol = \"udp\"]" >/run/out || fail "$(cat /run/out)"
	plugin_call ADD one "$(mapping 8081)" >/run/out || fail "$(cat /run/out)"
	veths="$(host_veth web) $(host_veth one)"
	ip link delete cni0
	bridge_makes cni0 $veths
	plugin_call CHECK one "$(mapping 8081)" || fail CHECK
	expect_serves web
	expect_gateway "CHECK, the bridge being another one"
	ip link set cni0 address 02:00:00:00:08:08
	for name in web one; do ip -n "$name" neighbour flush dev eth0; done
	plugin_call CHECK one "$(mapping 8081)" || fail CHECK
	expect_serves web
	expect_gateway "CHECK, the bridge having another MAC"
}

# also with portmap
# while the host does not forward nothing passes, and nothing of a container that a policy rule
# forbids to leave; connections go on when they may again, and after the bridge was down, and without
# its addresses
test_conntrack_forwarding_off_and_on() {
	conversations6_make
	sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
	expect_stops $talks
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	expect_goes_on $talks
	ip rule add from "$(address4 one)" to "$server4" prohibit
	expect_stops out_tcp out_udp
	ip rule del from "$(address4 one)" to "$server4" prohibit
	expect_goes_on out_tcp out_udp
	ip link set cni0 down
	expect_stops in_udp in_udp6
	ip address flush dev cni0
	ip link set cni0 up
	ip address add "$bridge4/16" dev cni0
	address6_add "$bridge6/64" cni0
	expect_goes_on $talks
}

# also with portmap
# ptp: the host's end of a container's link has another MAC
test_conntrack_ptp_mac() {
	local name
	fast_lists
	serve_in server 9000
	container_start web fast-ptp -p 8080:80/tcp -p 8080:80/udp
	talks_open in client "$host4" "$host6" 8080
	talks_open out web "$server4" "$server6" 9000
	expect_goes_on $(talks in out)
	ip link set "$(host_veth web)" address 02:00:00:00:07:09
	ip -n web neighbour flush dev eth0
	expect_goes_on $(talks in out)
	expect_answers client "$host4" 8080 web "$client4"
}

# also with portmap
# a virtual machine in the container has its address, and a MAC of its own
test_conntrack_machine_inside() {
	local own4 own6
	fast_lists
	container_add web fast -p 8080:80/tcp -p 8080:80/udp
	own4=$(address4 web) own6=$(address6 web)
	namespace_add machine
	ip link add eth0 netns machine type veth peer name tap netns web
	ip -n web -batch - <<-'LINES'
	address flush dev eth0
	link add inner type bridge
	link set inner up
	link set eth0 master inner
	link set tap master inner
	link set tap up
	LINES
	ip -n machine -batch - <<-LINES
	link set eth0 up
	address add $own4/16 dev eth0
	address add $own6/64 dev eth0 nodad
	route add default via $bridge4
	route add default via $bridge6
	LINES
	ip neighbour flush dev cni0
	serve_in machine 80
	serve_in server 9000
	talks_open in client "$host4" "$host6" 8080
	talks_open out machine "$server4" "$server6" 9000
	expect_goes_on $(talks in out)
	[ "$plugin" != bpf-portmap ] || expect_skips_stack $(talks in out)
	expect_goes_on $(talks in out)
}

# also with portmap
# the gateway has a link-local address, for IPv4 too (RFC 5549), or, for IPv4, is in no subnet of the
# host; conversations go on after the gateway's neighbour entries have gone
test_conntrack_gateway_onlink() {
	local all via name
	all=$(talks out in)
	far_make server
	ip -n server address add fe80::99/64 dev eth0 nodad
	ip -n server address add 172.31.1.1/32 dev eth0
	masqueraded_make
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	for via in 'inet6 fe80::99' 172.31.1.1; do
		ip route replace "$far4" via $via dev eth1 onlink
		ip -6 route replace "$far6" via fe80::99 dev eth1
		talks_open out one "$far4" "$far6" 9000
		talks_open in server "$host4_second" "$host6_second" 8080 "--from $far4" "--from $far6"
		expect_goes_on $all
		[ "$plugin" != bpf-portmap ] || expect_skips_stack $all
		ip neighbour flush dev eth1 nud all
		expect_goes_on $all
		for name in $all; do conversation_close "$name"; done
	done
}

# also with portmap
# flows follow a group of next hops when one of them goes
test_conntrack_nexthop_group() {
	local wrong
	far_make server
	router_make
	ip -batch - <<-LINES || skip "the kernel has no next hop objects"
	nexthop add id 1 via $server4 dev eth1
	nexthop add id 2 via $router4 dev eth1
	nexthop add id 10 group 1/2
	route add $far4 nhid 10
	nexthop add id 3 via $server6 dev eth1
	nexthop add id 4 via $router6 dev eth1
	nexthop add id 20 group 3/4
	route add $far6 nhid 20
	LINES
	masqueraded_make
	talks_open one one "$far4" "$far6" 9000
	talks_open two one "$far4" "$far6" 9000
	expect_goes_on $(talks one two)
	expect_steady $(talks one two)
	ip nexthop replace id 10 group 2
	ip nexthop replace id 20 group 4
	wrong="(dst $far4 or dst $far6) and ether dst $(mac_in server eth0)"
	try_often follow_group "$wrong" || fail "some packets go to the other router"
}

follow_group() {
	capture_start wrong server eth0 "$1"
	expect_goes_on $(talks one two)
	[ -z "$(capture_stop wrong)" ]
}

# also with portmap
# a macvlan over an uplink is an uplink of its own
test_conntrack_macvlan_uplink() {
	fast_lists
	ip link add link eth0 name shim type macvlan mode bridge
	end_make host shim 192.0.5.1/24
	ip -n client address add 192.0.5.10/24 dev eth0
	serve_in client 9000
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	capture_start leak client eth0 "$leak"
	talk_open in_tcp client tcp 192.0.5.1 8080
	talk_open in_udp client udp 192.0.5.1 8080
	talk_open out_tcp web tcp 192.0.5.10 9000
	talk_open out_udp web udp 192.0.5.10 9000
	expect_goes_on in_tcp in_udp out_tcp out_udp
	expect_steady in_tcp in_udp out_tcp out_udp
	expect_captured_nothing leak
}

# also with portmap
# the type of service stays, congestion marks too, in both directions; a datagram from port 0, which
# asks for no answer, arrives
test_conntrack_tos_is_kept() {
	masqueraded_make
	container_start web fast -p 8080:80/udp
	CAPTURE=-v capture_start in web eth0 "udp dst port 80"
	CAPTURE=-v capture_start out server eth0 "udp dst port 9000"
	ask client udp "$host4" 8080 --tos 185 --count 6 >/run/out
	ask one udp "$server4" 9000 --tos 185 --count 6 >/run/out
	expect_equal 6 "$(capture_stop in | grep -c 'tos 0xb9')" "requests with it in web"
	expect_equal 6 "$(capture_stop out | grep -c 'tos 0xb9')" "requests with it at the server"
	capture_start in web eth0 "udp dst port 80"
	capture_start out server eth0 "udp dst port 9000"
	forge client eth0 udp "$client4" 0 "$host4" 8080
	forge one cni0 udp "$(address4 one)" 0 "$server4" 9000
	expect_contains "$(capture_stop in)" "IP $client4.0 > $(address4 web).80"
	expect_contains "$(capture_stop out)" "IP $host4_second."
}

# also with portmap
# a local route makes a whole subnet the host's: its ports answer there, to clients and neighbours
test_conntrack_local_route() {
	fast_lists
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	container_add one fast
	ip route add local 203.0.113.0/24 dev lo
	ip -6 route add local 2001:db8:77::/64 dev lo
	expect_answers client 203.0.113.77 8080 web "$client4"
	expect_answers client 2001:db8:77::5 8080 web "$client6"
	expect_answers one 203.0.113.77 8080 web
}

# also with portmap
# TCP packets that begin nothing reach no container: answers to forged packets, late ones
test_conntrack_backscatter() {
	local flags
	fast_lists
	container_start web fast -p 8080:80/tcp
	capture_start in web eth0 "tcp dst port 80"
	for flags in SA R RA FA; do
		forge client eth0 tcp "$client4" 7100 "$host4" 8080 --tcp-flags "$flags"
	done
	expect_captured_nothing in
}

# also with portmap
# interfaces get other names while connections go on: uplinks and a container's veth
test_conntrack_renamed() {
	conversations6_make
	ip link set eth0 name wan0 2>/dev/null || skip "the kernel renames no interface that is up"
	ip link set eth1 name wan1
	ip link set "$(host_veth web)" name renamed0
	bridge_follows "$build/bpf-portmap" attach
	container_add three fast
	expect_answers three "$server4" 9000 server "$host4_second"
	bridge_follows true
	container_remove web fast
	expect_no_answer client tcp "$host4" 8080
}

# uplink_moves FROM TO: the host's addresses towards the client, and its permanent neighbours
uplink_moves() {
	local address
	ip address flush dev "$1" scope global
	ip address add "$host4/24" dev "$2"
	address6_add "$host6/64" "$2"
	for address in "$client4" "$client6"; do
		ip neighbour replace "$address" lladdr "$(mac_in client eth0)" dev "$2" nud permanent
	done
}

uplink_is_followed() {
	wait_until 3 addresses_usable || true
	[ "$plugin" != bpf-portmap ] || "$build/bpf-portmap" attach >/dev/null
	expect_goes_on $talks
	expect_serves web
	expect_answers one "$client4" 9000 client "$host4"
}

# also with portmap
# an uplink is put into a bridge, which gets its addresses, and taken out again: after attach
# connections go on, and new ones begin
test_conntrack_uplink_into_bridge() {
	conversations6_make
	serve_in client 9000
	talk_open near_tcp one tcp "$client4" 9000
	talk_open near_udp one udp "$client4" 9000
	talks+=' near_tcp near_udp'
	expect_goes_on $talks
	ip link add br0 address "$(mac_of eth0)" type bridge
	sysctl -qw net.ipv4.conf.br0.forwarding=1 net.ipv6.conf.br0.forwarding=1
	ip link set br0 up
	ip link set eth0 master br0
	uplink_moves eth0 br0
	uplink_is_followed
	ip link set eth0 nomaster
	uplink_moves br0 eth0
	ip link delete br0
	uplink_is_followed
}
