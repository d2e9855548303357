# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_uplinks.sh - which interfaces containers leave by and are reached by, and what they are.

serves_over_tunnel() {
	local list=$1
	container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
	expect_contains "$(attached tun0 ingress)" from_uplink_raw
	expect_contains "$(attached tun0 egress)" to_uplink_raw
	both expect_answers office @tunnel 8080 web @office
	both expect_answers web @office 9000 office @tunnel
	local address
	for address in "$office4" "$office6"; do
		in_namespace web busybox ping -c 1 -W 2 -q "$address" >/dev/null || fail "no echo from $address"
	done
}

# also with fastPath off, always
# an uplink without Ethernet headers serves a bridge's and a ptp's container both ways, IPv4 and IPv6;
# also with a strict firewall, and after DEL nothing is left but its programs
test_uplink_tunnel() {
	local list before
	tunnel_make
	serve_in office 9000
	for list in bridge ptp; do
		serves_over_tunnel "$list"
		container_remove web "$list"
	done
	firewall_strict
	before=$(state_show)
	for list in bridge ptp; do
		container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
		both expect_answers office @tunnel 8080 web @office
		container_check web "$list"
		container_remove web "$list"
		expect_no_answer office tcp "$tunnel4" 8080
		expect_same_state "$before"
	done
}

# a modem's interface, PPP, is like a tunnel
test_uplink_ppp() {
	tunnel_make 512
	serve_in office 9000
	serves_over_tunnel bridge
}

# an uplink with a link header that nobody here knows, InfiniBand's, lets no container out and
# serves no port
test_uplink_unknown_link_header() {
	tunnel_make 32
	serve_in office 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_equal '' "$(attached tun0 ingress)$(attached tun0 egress)"
	capture_start leak office tun0 "udp or tcp"
	expect_no_answer web udp "$office4" 9000
	expect_no_answer web tcp "$office6" 9000
	expect_captured_nothing leak
	[ "$(counted drop_unclassified_interface)" -gt 0 ] || fail "nothing was dropped"
	expect_no_answer office udp "$tunnel4" 8080
}

# errors cross a tunnel: a refused UDP port on either side is told to who asked; a container learns the MTU
# of a path behind a tunnel, and a file arrives whole both ways
test_uplink_tunnel_path_mtu() {
	tunnel_make
	namespace_add far
	ip link add behind netns office type veth peer name eth0 netns far
	ip -n office address add 10.99.0.1/24 dev behind
	ip -n office address add 2001:db8:9::1/64 dev behind nodad
	ip -n office link set behind up mtu 1300
	end_make far eth0 10.99.0.10/24 2001:db8:9::10/64
	ip -n far route add default via 10.99.0.1
	ip -n far route add default via 2001:db8:9::1
	in_namespace office sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip route add 10.99.0.0/24 via "$office4"
	ip route add 2001:db8:9::/64 via "$office6"
	container_add web bridge -p 8080:80/tcp -p 8081:81/udp
	errors_unlimited host office web
	local address
	for address in "$tunnel4" "$tunnel6"; do expect_refused office udp "$address" 8081 --connected; done
	for address in "$office4" "$office6"; do expect_refused web udp "$address" 9001 --connected; done
	file_serve web 80
	file_serve far 9000
	capture_start errors office tun0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	for address in "$tunnel4" "$tunnel6"; do expect_file far "$address" 8080; done
	for address in 10.99.0.10 2001:db8:9::10; do expect_upload web "$address" 9000; done
	address=$(capture_stop errors)
	expect_contains "$address" 'mtu 1300'
}

expect_upload() {
	local sum
	sum=$(in_namespace "$1" curl -sS -m $((20 * SLOWER)) -H Expect: --data-binary @/run/www/file \
		"http://$(endpoint "$2" "$3")/cgi-bin/sum") || fail "$1 could not send the file to $2"
	expect_equal "$(md5sum </run/www/file)" "$sum" "$1 sends the file to $2"
}

# policy_route ADDRESS GATEWAY: packets from ADDRESS to far go there
policy_route() {
	local far=$far4 family=-4
	case $1 in *:*) far=$far6 family=-6 ;; esac
	tables=$((${tables:-100} + 1))
	ip "$family" route add "$far" via "$2" table "$tables"
	ip "$family" rule add from "$1" lookup "$tables"
}

# also with fastPath off
# a reply that routing would send into a tunnel leaves by the Ethernet uplink that its address belongs
# to, and the other way round
test_uplink_reroute_and_tunnel() {
	local name
	far4=192.0.113.9 far6=2001:db8:9::9
	tunnel_make
	for name in office server; do
		ip -n "$name" address add "$far4/32" dev lo
		ip -n "$name" address add "$far6/128" dev lo nodad
	done
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	reverse_path_loose
	ip route add "$far4" via "$office4"
	ip route add "$far6" via "$office6"
	policy_route "$host4_second" "$server4"
	policy_route "$host6_second" "$server6"
	expect_answers server "$host4_second" 8080 web "$far4" --from "$far4"
	expect_answers server "$host6_second" 8080 web "$far6" --from "$far6"
	ip route replace "$far4" via "$server4"
	ip route replace "$far6" via "$server6"
	policy_route "$tunnel4" "$office4"
	policy_route "$tunnel6" "$office6"
	both expect_answers office @tunnel 8080 web @far --from @far
}

# attach_by_hand [INTERFACE...]: prints what it changed
attach_by_hand() { "$build/bpf-portmap" attach "$@"; }

role_of() {
	bpftool -j map dump pinned "$pins/interfaces" | jq -r \
		".[].formatted | select(.key == $(cat "/sys/class/net/$1/ifindex")).value.role"
}

# service_make INTERFACE ADDRESS...: an interface that has services' addresses; a process of the
# host listens there, as the service's proxy would
service_make() {
	local interface=$1 address
	shift
	ip tuntap add "$interface" mode tun
	ip link set "$interface" up
	for address; do ip address add "$address" dev "$interface"; done
}

# the addresses of kube-ipvs0 and nodelocaldns are never mapped, whoever asks, and both are never
# attached to; one that comes later is excluded by CHECK, by ADD and by attach, and one that goes is
# forgotten
test_uplink_services_not_mapped() {
	service_make kube-ipvs0 10.96.0.10/32
	service_make nodelocaldns 169.254.20.10/32
	serve_on_host 8080
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_add other bridge
	expect_equal ROLE_LEFT_ALONE "$(role_of kube-ipvs0)"
	expect_equal '' "$(attached kube-ipvs0 ingress)$(attached nodelocaldns ingress)"
	local address
	for address in 10.96.0.10 169.254.20.10; do
		expect_answers client "$address" 8080 host "$client4"
		expect_answers other "$address" 8080 host
		expect_answers web "$address" 8080 host
	done
	expect_answers client "$host4" 8080 web "$client4"
	ip address add 10.96.0.11/32 dev kube-ipvs0
	container_check web bridge
	expect_answer client tcp 10.96.0.11 8080 host
	ip address add 10.96.0.12/32 dev kube-ipvs0
	container_add third bridge
	expect_answer client tcp 10.96.0.12 8080 host
	ip address add 10.96.0.13/32 dev kube-ipvs0
	"$build/bpf-portmap" attach
	expect_answer client tcp 10.96.0.13 8080 host
	ip address del 10.96.0.13/32 dev kube-ipvs0
	ip address add 10.96.0.13/32 dev eth0
	"$build/bpf-portmap" attach
	expect_answer client tcp 10.96.0.13 8080 web
	ip link delete kube-ipvs0
	ip address add 10.96.0.10/32 dev eth0
	"$build/bpf-portmap" attach
	expect_answer client tcp 10.96.0.10 8080 web
}

# a frame to this host whose destination is the subnet's broadcast address is not mapped
test_uplink_broadcast_not_mapped() {
	container_start web bridge -p 8080:80/udp
	capture_start web web eth0 "udp port 80 and src host $client4"
	forge client eth0 udp "$client4" 7001 192.0.2.255 8080
	forge client eth0 udp "$client4" 7002 10.88.255.255 8080
	forge client eth0 udp "$client4" 7003 "$host4" 8080
	local seen
	seen=$(capture_stop web)
	expect_contains "$seen" "$client4.7003"
	case $seen in *700[12]*) fail "a broadcast was taken: $seen" ;; esac
}

# excludeInterfaces takes names and globs in place of the default
test_uplink_exclude_interfaces() {
	conflist only-vip bridge "$other_network | $(with_ours '{"excludeInterfaces": ["vip*"]}')"
	service_make vip0 10.96.0.10/32
	service_make kube-ipvs0 10.96.0.20/32
	serve_on_host 8080
	container_start web only-vip -p 8080:80/tcp
	expect_answer client tcp 10.96.0.10 8080 host
	expect_answer client tcp 10.96.0.20 8080 web
	expect_equal '' "$(attached vip0 ingress)$(attached vip0 egress)"
	container_add second bridge
	attach_by_hand
	expect_answer client tcp 10.96.0.10 8080 host
	expect_equal 'vip0            attached' "$(attach_by_hand vip0)"
	expect_answer client tcp 10.96.0.10 8080 web
}

# an interface that another list made an uplink stays one, but its addresses are not mapped where
# excludeInterfaces names it; nor are those of a containers' bridge, which goes on serving
test_uplink_exclude_what_is_one() {
	conflist exclude bridge "$other_network | $(with_ours '{"excludeInterfaces": ["eth1", "cni0"]}')"
	container_start web bridge -p 8080:80/tcp
	expect_answer server tcp "$host4_second" 8080 web
	expect_answer client tcp "$bridge4" 8080 web
	container_add other exclude
	expect_no_answer server tcp "$host4_second" 8080
	expect_no_answer client tcp "$bridge4" 8080
	expect_answer server tcp "$host4" 8080 web
	container_check web bridge
	container_add third bridge
	expect_no_answer server tcp "$host4_second" 8080
	expect_no_answer client tcp "$bridge4" 8080
	expect_answer third tcp "$host4" 8080 web
	expect_equal ROLE_UPLINK "$(role_of eth1)"
	detach_ours eth1 ingress from_uplink
	container_add fourth bridge
	expect_contains "$(attached eth1 ingress)" from_uplink
	container_check fourth bridge
	expect_no_answer server tcp "$host4_second" 8080
	expect_answer server tcp "$host4" 8080 web
}

# an uplink that has the number of a dead container's veth is served like any other, and STATUS does not
# miss the container's program there; DEL of the dead one leaves it alone
test_uplink_number_reused() {
	container_start web bridge -p 8080:80/tcp
	container_start dead bridge -p 8081:80/tcp
	local number
	number=$(<"/sys/class/net/$(host_veth dead)/ifindex")
	container_die dead
	namespace_add far
	ip link add up0 index "$number" type veth peer name eth0 netns far
	end_make host up0 203.0.113.1/24
	end_make far eth0 203.0.113.10/24
	status || fail STATUS
	container_add other bridge -p 8082:80/tcp
	expect_answer far tcp 203.0.113.1 8080 web 203.0.113.10
	runtime del bridge dead || fail "DEL of the dead container"
	container_check other bridge
	expect_answer far tcp 203.0.113.1 8080 web 203.0.113.10
}

# of an excluded lo, too, no address is mapped, also when a mapped SCTP port has a program there
test_uplink_exclude_lo() {
	ip address add 10.99.99.1/32 dev lo
	conflist exclude bridge "$(with_ours '{"excludeInterfaces": ["lo"]}')"
	container_start web exclude -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_no_answer client tcp 10.99.99.1 8080
	container_add sctp exclude -p 9090:90/sctp
	container_add last exclude -p 8081:80/tcp
	expect_no_answer client tcp 10.99.99.1 8080
	container_remove sctp exclude
	container_remove last exclude
	container_remove web exclude
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp 10.99.99.1 8080 web "$client4"
}

# what a conflist excludes is excluded as long as it has a container: afterwards an interface is what
# the others want, without a command that names it
test_uplink_excluded_while_it_lives() {
	conflist exclude bridge "$other_network | $(with_ours '{"excludeInterfaces": ["eth1"]}')"
	container_add first exclude
	expect_equal ROLE_LEFT_ALONE "$(role_of eth1)"
	container_remove first exclude
	container_start web bridge -p 8080:80/tcp
	expect_equal ROLE_UPLINK "$(role_of eth1)"
	expect_answer server tcp "$host4_second" 8080 web
	container_check web bridge
}

# two conflists that differ about an interface: whoever was added last, the one that names it in
# "uplinks" prevails, and the ADD and CHECK of both say so
test_uplink_conflict() {
	conflist exclude bridge "$other_network | $(with_ours '{"excludeInterfaces": ["eth1"]}')"
	conflist named bridge "$(with_ours '{"uplinks": ["eth0", "eth1"]}')"
	local list
	container_add first exclude
	container_start web named -p 8080:80/tcp
	expect_answer server tcp "$host4_second" 8080 web
	for list in exclude named exclude; do
		container_add "another-$list-$RANDOM" "$list" 2>/run/said
		expect_in /run/said 'conflists differ about interface eth1: network '
		expect_in /run/said 'for all networks it is an uplink'
		expect_answer server tcp "$host4_second" 8080 web
	done
	container_check web named 2>/run/said
	expect_in /run/said 'conflists differ about interface eth1'
}

# with "uplinks" only those named are uplinks; elsewhere ports are not reached, and containers
# leave as they are
test_uplink_named() {
	conflist named bridge "$(with_ours '{"uplinks": ["eth0", "ppp*"]}')"
	ip -n server route add 10.88.0.0/16 via "$host4_second"
	serve_in server 9000
	serve_in client 9000
	container_start web named -p 8080:80/tcp -p 8080:80/udp
	expect_equal ROLE_LEFT_ALONE "$(role_of eth1)"
	expect_equal '' "$(attached eth1 ingress)$(attached eth1 egress)"
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers web "$client4" 9000 client "$host4"
	expect_no_answers server "$host4_second" 8080
	expect_answers web "$server4" 9000 server "$(address4 web)"
	container_check web named
}

# also with fastPath off, always
# "uplinks" of a network hold beside a network without it, which is served everywhere: there its ports are
# not reached and its containers leave as they are; the host, and containers of both, reach it
test_uplink_of_another_list() {
	local address
	conflist named bridge "$(with_ours '{"uplinks": ["eth0"]}')"
	conflist other bridge "$other_network"
	ip -n server route add 10.88.0.0/16 via "$host4_second"
	ip -n server route add fd00:88::/64 via "$host6_second"
	serve_in server 9000
	serve_in client 9000
	container_start web named -p 8080:80/tcp -p 8080:80/udp 2>/run/said
	container_start second other -p 8081:80/tcp -p 8081:80/udp 2>>/run/said
	container_start third named -p 8082:80/tcp 2>>/run/said
	! grep 'conflists differ' /run/said || fail "a warning"
	expect_equal ROLE_UPLINK "$(role_of eth1)"
	container_check web named
	for address in "$host4_second" "$host6_second"; do
		expect_no_answers server "$address" 8080
		expect_no_answer server tcp "$address" 8082
		expect_answers server "$address" 8081 second
		expect_answers client "$address" 8080 web
		expect_answer host tcp "$address" 8080 web
		expect_answer second tcp "$address" 8080 web
		expect_answer third tcp "$address" 8080 web
	done
	expect_no_answer server tcp "$host4" 8080
	expect_answers web "$server4" 9000 server "$(address4 web)"
	expect_answers web "$server6" 9000 server "$(address6 web)"
	both expect_answers web @client 9000 client @host
	expect_answers second "$server4" 9000 server "$host4_second"
	container_remove second other
	attach_by_hand >/run/out
	expect_answer client tcp "$host4" 8080 web
	expect_no_answers server "$host4_second" 8080
}

# where two networks have different "uplinks" each has its own, one that comes later too, whatever another
# network names; a connection that was there goes on
test_uplink_each_network_its_own() {
	conflist named bridge "$(with_ours '{"uplinks": ["eth0", "vpn*"]}')"
	conflist other bridge "$other_network | $(with_ours '{"uplinks": ["eth1"]}')"
	container_start web named -p 8080:80/tcp
	conversation_with web one client tcp "$host4" 8080
	container_start second other -p 8081:80/tcp
	network_make office vpn0 203.0.113.1 2001:db8:3::1 203.0.113.10 2001:db8:3::10
	attach_by_hand >/run/out
	expect_says one web
	conversation_close one
	expect_answer client tcp "$host4" 8080 web
	expect_answer office tcp 203.0.113.1 8080 web
	expect_answer server tcp "$host4_second" 8081 second
	expect_no_answer server tcp "$host4_second" 8080
	expect_no_answer client tcp "$host4" 8081
	expect_no_answer office tcp 203.0.113.1 8081
	attach_by_hand eth1 >/run/out
	expect_answer server tcp "$host4_second" 8080 web
	# The next network gets the number of one that has gone.
	container_remove second other
	conflist third bridge "$other_network | $(with_ours '{"uplinks": ["eth0"]}')"
	container_start last third -p 8083:80/tcp
	expect_answer client tcp "$host4" 8083 last
	expect_no_answer office tcp 203.0.113.1 8083
	expect_answer office tcp 203.0.113.1 8080 web
}

# a bridge that one list leaves alone serves the containers of the list whose bridge it is
test_uplink_bridge_left_alone_before() {
	conflist named bridge "$(with_ours '{"uplinks": ["eth0"]}')"
	conflist other bridge "$other_network"
	conflist other-plain bridge "$other_network | $only_main"
	container_add_plain stranger other-plain
	container_add first named
	expect_equal ROLE_LEFT_ALONE "$(role_of cni1)"
	container_start web other -p 8080:80/tcp
	container_add neighbour other
	expect_equal ROLE_BRIDGE "$(role_of cni1)"
	expect_answer neighbour tcp "$host4" 8080 web
	expect_answer stranger tcp "$host4" 8080 web
	container_add second named
	expect_equal ROLE_BRIDGE "$(role_of cni1)"
}

# an uplink without an address of its own works where "uplinks" names it, by name or glob
# (BGP unnumbered)
test_uplink_unnumbered() {
	local list
	ip link add eth3 type veth peer name eth3peer
	ip link set eth3 up
	network_make fabric eth2 10.255.0.1 2001:db8:3::1 203.0.113.10 2001:db8:3::10
	ip address flush dev eth2 scope global
	ip route add 203.0.113.10 dev eth2 src "$host4"
	ip route add 2001:db8:3::10 dev eth2 src "$host6"
	ip -n fabric route add default dev eth0
	ip -n fabric neighbour replace "$host4" lladdr "$(mac_of eth2)" dev eth0 nud permanent
	serve_in fabric 9000
	conflist name bridge "$(with_ours '{"uplinks": ["eth0", "eth2"]}')"
	conflist glob bridge "$(with_ours '{"uplinks": ["eth[02]"]}')"
	for list in name glob; do
		container_start web "$list" -p 8080:80/tcp -p 8080:80/udp
		expect_contains "$(attached eth2 ingress)" from_uplink
		expect_equal '' "$(attached eth3 ingress)"
		expect_answers fabric "$host4" 8080 web 203.0.113.10
		expect_answers web 203.0.113.10 9000 fabric "$host4"
		container_check web "$list"
		container_remove web "$list"
		ip link set eth2 down
		detach_ours eth2 ingress from_uplink
		detach_ours eth2 egress to_uplink
		bpftool map delete pinned "$pins/interfaces" key \
			"$(cat /sys/class/net/eth2/ifindex)" 0 0 0
		ip link set eth2 up
		ip route replace 203.0.113.10 dev eth2 src "$host4"
	done
}

# nothing is loaded
# attach does nothing and says nothing where no container was ever added, save of interfaces that
# are none; attach --load loads the programs, as the units and the DaemonSet do when they start; twice
# is once
test_attach_nothing_loaded() {
	local before
	expect_equal '' "$(attach_by_hand 2>&1)"
	expect_equal '' "$(attach_by_hand eth0 2>&1)"
	expect_equal '' "$(attached eth0 ingress)"
	[ ! -e "$pins" ] || fail "something was pinned"
	expect_failure attach_by_hand nosuch0 eth0 lo
	expect_contains "$output" 'interface nosuch0 cannot be attached to: it does not exist'
	expect_contains "$output" 'interface lo cannot be attached to: it is the loopback interface'
	[ ! -e "$pins" ] || fail "something was pinned"
	expect_equal '' "$(attach_by_hand --load 2>&1)"
	expect_contains "$(ls "$pins")" from_container
	before=$(state_show)
	attach_by_hand --load || fail "attach --load"
	expect_same_state "$before"
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# attach obeys the "uplinks" of the lists whose containers run, and a name given to it before them; it
# goes on behind an interface that it cannot attach to, and fails in the end
test_attach_obeys_lists() {
	conflist named bridge "$(with_ours '{"uplinks": ["eth*"]}')"
	container_start web named -p 8080:80/tcp -p 8080:80/udp
	network_make office vpn0 203.0.113.1 2001:db8:3::1 203.0.113.10 2001:db8:3::10
	expect_equal '' "$(attach_by_hand)"
	expect_equal ROLE_LEFT_ALONE "$(role_of vpn0)"
	expect_no_answer office tcp 203.0.113.1 8080
	expect_equal 'vpn0            attached' "$(attach_by_hand vpn0)"
	expect_answers office 203.0.113.1 8080 web 203.0.113.10
	container_add second named
	expect_equal '' "$(attach_by_hand)"
	expect_answers office 203.0.113.1 8080 web 203.0.113.10
	expect_refusal 'is the loopback interface' attach_by_hand lo
	expect_refusal 'interface veth' attach_by_hand "$(host_veth web)"
	network_make late vpn1 203.0.114.1 2001:db8:4::1 203.0.114.10 2001:db8:4::10
	local code=0
	attach_by_hand nosuch0 vpn1 nosuch1 >/run/out 2>/run/err || code=$?
	expect_equal 1 "$code" "the exit status"
	expect_equal 'vpn1            attached' "$(cat /run/out)"
	expect_in /run/err 'interface nosuch0 cannot be attached to: it does not exist'
	expect_in /run/err 'interface nosuch1 cannot be attached to: it does not exist'
	expect_contains "$(attached vpn1 ingress)" from_uplink
}

# when the last container of a list is gone, attach forgets what the list said
test_attach_forgets_lists() {
	conflist other bridge "$other_network"
	conflist named bridge "$(with_ours '{"uplinks": ["eth*"]}')"
	container_add web named
	container_add second other
	container_remove second other
	network_make office vpn0 203.0.113.1 2001:db8:3::1 203.0.113.10 2001:db8:3::10
	expect_equal 'cni1            left: no network has it as an uplink' "$(attach_by_hand)"
	expect_count 1 networks
	expect_equal '' "$(attach_by_hand)"
}

# clsact or a program of ours that somebody removes: CHECK says so, and attach or the next ADD
# repairs it, on uplinks, bridges and containers' veths
test_attach_repairs() {
	local list hooks device hook program
	for list in clsact bridge ptp; do
		local of=$list
		case $list in clsact) of=bridge; conflist clsact bridge "$(with_ours '{"attach": "clsact"}')" ;; esac
		container_start web "$list" -p 8080:80/tcp
		hooks="eth0 ingress from_uplink:eth0 egress to_uplink:$(host_veth web) ingress from_container"
		[ "$of" = ptp ] || hooks="$hooks:cni0 egress to_container:cni0 ingress from_bridge"
		while read -r device hook program; do
			detach_ours "$device" "$hook" "$program"
			expect_refusal "$program is not attached" container_check web "$list"
			expect_contains "$(attach_by_hand)" "attached again"
			expect_contains "$(attached "$device" "$hook")" "$program"
			container_check web "$list"
		done <<<"${hooks//:/$'\n'}"
		expect_answer client tcp "$host4" 8080 web
		container_remove web "$list"
		detach_ours eth0 ingress from_uplink
		detach_ours eth0 egress to_uplink
		ip link delete cni0 2>/dev/null || true
	done
	container_start web clsact -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	tc qdisc del dev "$(host_veth web)" clsact
	expect_failure container_check web clsact
	attach_by_hand >/run/out
	container_check web clsact
	container_start two bridge -p 8081:80/tcp
	detach_ours eth0 ingress from_uplink
	container_add other bridge
	expect_answer client tcp "$host4" 8080 web
}

# what attach mends on a container's veth hangs there as its conflist asks for, and on an uplink or a
# bridge as the conflist asked for that was first, with its name or without
test_attach_repairs_as_asked() {
	tcx_needed
	local mode way device hook program names
	for mode in clsact tcx auto; do
		way=$mode
		[ "$mode" != auto ] || way=tcx
		conflist "$mode" bridge "$(with_ours "{\"attach\": \"$mode\"}")"
		container_start web "$mode" -p 8080:80/tcp
		expect_equal "$way from_container" "$(attached "$(host_veth web)" ingress)"
		expect_answer client tcp "$host4" 8080 web
		detach_ours "$(host_veth web)" ingress from_container
		attach_by_hand >/run/out
		expect_equal "$way from_container" "$(attached "$(host_veth web)" ingress)" "mended, $mode"
		expect_answer client tcp "$host4" 8080 web
		container_remove web "$mode"
	done
	container_start web clsact -p 8080:80/tcp
	for names in '' 'eth0 cni0'; do
		while read -r device hook program; do
			expect_equal "clsact $program" "$(attached "$device" "$hook")"
			detach_ours "$device" "$hook" "$program"
			attach_by_hand $names >/run/out
			expect_equal "clsact $program" "$(attached "$device" "$hook")" "mended by attach $names"
		done <<-HOOKS
			eth0 ingress from_uplink
			eth0 egress to_uplink
			cni0 egress to_container
		HOOKS
	done
	expect_answer client tcp "$host4" 8080 web
}

# an uplink that becomes a bridge's port hands over to the bridge, by attach or by the next ADD,
# and back
test_attach_uplink_becomes_port() {
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	ip link add br0 type bridge
	ip address flush dev eth1
	ip link set eth1 master br0
	end_make host br0 "$host4_second/24" "$host6_second/64"
	attach_by_hand >/run/out
	grep -q '^br0 *attached$' /run/out || fail "br0: $(cat /run/out)"
	grep -q '^eth1 *left' /run/out || fail "eth1: $(cat /run/out)"
	expect_equal '' "$(attached eth1 ingress)$(attached eth1 egress)"
	expect_gets_out web
	expect_answers server "$host4_second" 8080 web "$server4"
	ip link set eth1 nomaster
	ip link delete br0
	ip address add "$host4_second/24" dev eth1
	address6_add "$host6_second/64" eth1
	container_add other bridge
	expect_answers web "$server4" 9000 server "$host4_second"
	expect_answers server "$host6_second" 8080 web "$server6"
}

# what is too large for the uplink that a reply's address belongs to goes where routing sends it:
# a file arrives though the other uplink's MTU is smaller, joined by segmentation offload or not
test_uplink_reroute_smaller_mtu() {
	local far=192.0.113.9 far6=2001:db8:9::9
	link_make client shortcut "10.99.0.1/24 2001:db8:8::1/64" \
		server shortcut "10.99.0.2/24 2001:db8:8::2/64"
	ip -n server address add "$far/32" dev lo
	ip -n server address add "$far6/128" dev lo nodad
	ip -n client route add "$far" via 10.99.0.2
	ip -n client route add "$far6" via 2001:db8:8::2
	in_namespace client sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	container_add web bridge -p 8080:80/tcp
	file_serve web 80
	reverse_path_loose
	in_namespace server bash -c "$(declare -f reverse_path_loose); reverse_path_loose"
	ip link set eth1 mtu 1280
	ip -n server link set eth0 mtu 1280
	ip -n server route add "$host4_second" dev eth0 src "$far" advmss 1460
	ip -n server route add "$host6_second" dev eth0 src "$far6" advmss 1440
	ip route add "$far" via "$client4"
	ip route add "$far6" via "$client6"
	ip route add "$far" via "$server4" table 100
	ip rule add from "$host4_second" lookup 100
	ip -6 route add "$far6" via "$server6" table 100
	ip -6 rule add from "$host6_second" lookup 100
	local offload address
	for offload in on off; do
		in_namespace web ethtool -K eth0 tso "$offload" gso "$offload"
		for address in "$host4_second" "$host6_second"; do
			expect_file server "$address" 8080
		done
	done
	[ "$(counted rerouted)" -gt 0 ] || fail "nothing was rerouted"
}

# attach finds maps again whose pins were lost, and puts the programs of a tunnel right too
test_attach_after_pins_were_lost() {
	tunnel_make
	container_start web bridge -p 8080:80/tcp
	rm -r "$pins"
	detach_ours tun0 ingress from_uplink_raw
	attach_by_hand >/run/out
	expect_contains "$(attached tun0 ingress)" from_uplink_raw
	expect_answer office tcp "$tunnel4" 8080 web "$office4"
	container_check web bridge
	expect_refusal 'is taken by' container_add two bridge -p 8080:80/tcp
}

# interface_set INTERFACE BYTE VALUE...: changes the first bytes of an entry in interfaces
interface_set() {
	local index value
	index=$(printf '%02x 00 00 00' "$(cat "/sys/class/net/$1/ifindex")")
	value=$(bpftool -j map lookup pinned "$pins/interfaces" key hex $index |
		jq -r '.value | map(ltrimstr("0x")) | join(" ")')
	shift
	set -- $index value hex "$@" $(cut -d ' ' -f "$(($# + 1))-" <<<"$value")
	bpftool map update pinned "$pins/interfaces" key hex "$@"
}

# a container's veth that attach took for an uplink while its ADD was under way is no fault of the
# host in the eyes of CHECK and STATUS, but an uplink without its program is
test_attach_container_taken_for_uplink() {
	local veth status='{"cniVersion": "1.1.0", "name": "bridge", "type": "bpf-portmap"}'
	container_start one bridge -p 8080:80/tcp
	container_add under-way ptp -p 8081:80/tcp
	veth=$(host_veth under-way)
	interface_set "$veth" 00 00 00 00 00 00 00 00 01
	expect_equal ROLE_UPLINK "$(role_of "$veth")"
	container_check one bridge
	plugin_run STATUS '' <<<"$status" >/run/out || fail "STATUS: $(cat /run/out)"
	expect_equal "" "$(attach_by_hand)"
	expect_contains "$(attached "$veth" ingress)" from_container
	detach_ours eth0 ingress from_uplink
	expect_failure container_check one bridge
	expect_contains "$output" 'eth0 of the host: from_uplink is not attached at ingress'
	expect_refusal 'from_uplink is not attached at ingress' plugin_run STATUS '' <<<"$status"
}

# attach beside ADD and DEL of many containers disturbs none of them, and leaves nothing
test_attach_beside_containers() {
	local before round n pids
	container_start one bridge -p 8080:80/tcp
	container_add warm ptp
	container_remove warm ptp
	before=$(state_show)
	touch /run/go-on
	while [ -e /run/go-on ]; do attach_by_hand; done >/run/out 2>&1 &
	for round in 1 2 3; do
		pids=()
		for n in 1 2 3 4 5 6; do
			(
				list=bridge
				[ $((n % 2)) = 0 ] || list=ptp
				container_start "c$n" "$list" -p "$((9000 + n)):80/tcp"
				expect_answer client tcp "$host4" "$((9000 + n))" "c$n" "$client4"
				container_check "c$n" "$list"
				container_remove "c$n" "$list"
			) &
			pids+=($!)
		done
		for n in "${pids[@]}"; do wait "$n" || fail "round $round: a container failed"; done
	done
	rm /run/go-on
	wait
	# A container's veth may be seen before its ADD has come to it, or to the bridge's entry, or, where
	# it was taken for an uplink before, between the claim and the programs.
	! grep -vE "^veth.* (attached|attached again|its MAC address put into the bridge's table)$" /run/out || fail "attach changed something, or failed"
	expect_same_state "$before"
	expect_answer client tcp "$host4" 8080 one "$client4"
}

# plugin_status FILTER: STATUS of the list's entry
plugin_status() { plugin_call STATUS web "del(.prevResult) | .cniVersion = \"1.1.0\" | ${1:-.}"; }

# where the host does not forward ADD warns, CHECK and STATUS fail, of the families that the
# container has ports or masquerade in, and say which sysctl does it
test_uplink_forwarding_off() {
	container_add_plain web
	sysctl -qw net.ipv4.ip_forward=0
	plugin_call ADD web >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_in /run/err 'this host does not forward IPv4'
	expect_in /run/err '`sysctl -w net.ipv4.ip_forward=1`'
	expect_equal 1 "$(grep -c warning /run/err)" "warnings"
	expect_error 102 'sysctl -w net.ipv4.ip_forward=1' plugin_call CHECK web
	expect_error 51 'sysctl -w net.ipv4.ip_forward=1' plugin_status
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=0
	expect_refusal 'this host does not forward IPv6' plugin_call CHECK web
	expect_contains "$output" 'sysctl -w net.ipv6.conf.all.forwarding=1'
	expect_failure plugin_status
	plugin_call DEL web || fail DEL
	plugin_status || fail "STATUS without containers: a plugin before us may turn it on"
	plugin_call ADD web '.ipMasq = false | .runtimeConfig.portMappings[0].hostIP = "0.0.0.0"' \
		>/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_equal '' "$(cat /run/err)" "what ADD says of a family that the container does not use"
	plugin_call CHECK web '.ipMasq = false | .runtimeConfig.portMappings[0].hostIP = "0.0.0.0"' ||
		fail CHECK
	plugin_status || fail "STATUS of a family that no container uses"
}

# forwarding that is off at the container's bridge, or at all uplinks, is found too; off at one of
# several uplinks is somebody's wish
test_uplink_forwarding_off_at_interface() {
	container_start web bridge -p 8080:80/tcp
	sysctl -qw net.ipv4.conf.eth1.forwarding=0
	container_check web bridge || fail CHECK
	sysctl -qw net.ipv4.conf.eth0.forwarding=0
	expect_refusal 'come in by eth0' container_check web bridge
	expect_contains "$output" 'sysctl -w net/ipv4/conf/eth0/forwarding=1'
	sysctl -qw net.ipv4.conf.eth0.forwarding=1 net.ipv4.conf.cni0.forwarding=0
	expect_refusal 'sysctl -w net/ipv4/conf/cni0/forwarding=1' container_check web bridge
	sysctl -qw net.ipv4.conf.cni0.forwarding=1
	container_check web bridge || fail CHECK
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# at uplinks where the host is no router, so that it takes router advertisements, it forwards IPv6 all
# the same: ports answer, masquerade works, CHECK and STATUS are content
test_uplink_forwarding_host_role() {
	serve_in server 9000 server
	container_start web bridge -p 8080:80
	container_start routed ptp -p 8081:80
	sysctl -qw net.ipv6.conf.eth0.forwarding=0 net.ipv6.conf.eth1.forwarding=0
	expect_answer client tcp "$host6" 8080 web "$client6"
	expect_answer client tcp "$host6" 8081 routed "$client6"
	expect_answers web "$server6" 9000 server "$host6_second"
	expect_answers routed "$server6" 9000 server "$host6_second"
	expect_equal 0 "$(counted forwarding_disabled)" forwarding_disabled
	container_check web bridge || fail CHECK
	plugin_status || fail STATUS
	sysctl -qw net.ipv6.conf.all.forwarding=0
	expect_no_answer client tcp "$host6" 8080
	[ "$(counted forwarding_disabled)" -gt 0 ] || fail 'it is not counted'
}

# "uplinks" that match nothing: ADD warns and names the interfaces there are, CHECK fails; once
# there is one, both are content
test_uplink_names_match_nothing() {
	local command filter='.uplinks = ["eht0", "bond*", "lo"]'
	container_add_plain web
	plugin_call ADD web "$filter" >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_in /run/err '"uplinks" ("eht0", "bond*", "lo") match no interface'
	expect_in /run/err 'there are eth0, eth1'
	expect_equal 1 "$(grep -c warning /run/err)" "warnings"
	expect_error 102 'match no interface' plugin_call CHECK web "$filter"
	# to a container without ports and masquerade it is no matter
	for command in ADD CHECK; do
		plugin_call "$command" web "$filter | .ipMasq = false | del(.runtimeConfig)" >/run/out \
			2>/run/err || fail "$command: $(cat /run/out)"
		expect_equal '' "$(cat /run/err)" "warnings"
	done
	# one without an address of its own (BGP unnumbered) is one
	ip link add bond7 type veth peer name eth9 netns server
	ip link set bond7 up
	plugin_call ADD web "$filter" >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_equal '' "$(cat /run/err)" "warnings"
	plugin_call CHECK web "$filter" || fail CHECK
	ip link delete bond7
	expect_failure plugin_call CHECK web "$filter"
	ip link set eth1 down
	ip link set eth1 name eht0
	ip link set eht0 up
	plugin_call CHECK web "$filter" || fail CHECK
}
