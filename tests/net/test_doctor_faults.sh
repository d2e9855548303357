# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_faults.sh - faults of hosts and containers, one after the other in one world: the port is
# dead, `bpf-portmap doctor PORT` fails, and its first line has the cause.

# sick_host: a healthy host; the addresses of its container are $web4 and $web6, its veth is $veth
sick_host() {
	healthy_host
	web4=$(address4 web) web6=$(address6 web) veth=$(host_veth web)
}

# dead WORDS [ARGUMENT...]: doctor's first line has the words, and the client that is named gets no
# answer; by default the one of IPv4
dead() {
	local words=$1 address=$host4
	shift
	[ $# -gt 0 ] || set -- --from "$client4" 8080/tcp
	case $2 in *:*) address=$host6 ;; esac
	begins 'FAIL  probe' "$@"
	expect_contains "$(head -n 1 /run/out)" "$words"
	expect_no_answer client tcp "$address" 8080
}

# dead_for_all WORDS: without a client who is named doctor has the same cause, as a failure and once
dead_for_all() {
	begins 'FAIL  probe' 8080/tcp
	expect_equal 1 "$(grep -c "$1" /run/out)" "$(cat /run/out)"
}

# alive [ARGUMENT...]: doctor finds nothing
alive() { by_hand 0 doctor "${@:-8080/tcp}"; }

# the host's IP stack: forwarding, routes and rules, neighbours, links
# limit 120 s
test_doctor_faults_host() {
	sick_host
	sysctl -qw net.ipv4.ip_forward=0
	dead 'the host does not forward IPv4 packets that come in by eth0'
	sysctl -qw net.ipv4.ip_forward=1
	sysctl -qw net.ipv6.conf.all.forwarding=0
	dead 'the host does not forward IPv6' --from "$client6" 8080/tcp
	# Which does not cost the host the routes that routers tell it.
	mend_fault
	expect_equal '2 2' "$(sysctl -n net.ipv6.conf.eth0.accept_ra net.ipv6.conf.eth1.accept_ra | xargs)"
	alive
	sysctl -qw net.ipv4.conf.cni0.forwarding=0
	dead 'the host does not forward IPv4 packets that come in by cni0'
	sysctl -qw net.ipv4.conf.cni0.forwarding=1
	ip route add "$web4/32" dev eth1
	dead "the host's route to $web4 leads to eth1, not to cni0"
	ip route del "$web4/32" dev eth1
	ip route add "$web4/32" dev eth1 table 77
	ip rule add lookup 77 pref 100
	dead "the host's route to $web4 leads to eth1, not to cni0: ip rule 100: lookup 77"
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	ip rule del pref 100
	ip route add blackhole "$web4/32"
	dead "the host's route to $web4 leads to nowhere"
	ip route del blackhole "$web4/32"
	ip rule add iif eth0 to "$web4" prohibit pref 100
	dead "the host does not forward what comes in by eth0: ip rule 100: to $web4 iif eth0 prohibit"
	ip rule del pref 100
	ip rule add iif cni0 from "$web4" blackhole pref 100
	dead "the host does not forward what comes in by cni0: ip rule 100: from $web4 iif cni0 blackhole"
	dead_for_all "from $web4 iif cni0 blackhole"
	ip rule del pref 100
	nft "table inet f { chain c { type filter hook prerouting priority mangle; tcp dport 80 meta mark set 9; }; }"
	ip route add blackhole default table 99
	ip rule add fwmark 9 lookup 99 pref 100
	dead 'or one that refuses (ip rule, ip route), perhaps ip rule 100: fwmark 0x9 lookup 99'
	ip rule del pref 100
	nft delete table inet f
	ip -6 rule add iif cni0 unreachable pref 100
	dead 'the host does not forward what comes in by cni0: ip rule 100: iif cni0 unreachable' --from "$client6" 8080/tcp
	ip -6 rule del pref 100
	# Routing would answer by eth1 what comes in by eth0.
	ip route add default via "$server4" dev eth1 table 100
	ip rule add from 10.88.0.0/16 lookup 100 pref 100
	dead 'dropped by the host: the reverse path filter at eth0'
	ip rule del pref 100
	ip neighbour replace "$web4" lladdr 02:00:00:00:00:99 dev cni0 nud permanent
	dead "at cni0 another MAC than the container's is known for $web4"
	ip neighbour del "$web4" dev cni0
	container_add twin bridge
	ip neighbour replace "$web4" lladdr "$(mac_in twin eth0)" dev cni0 nud permanent
	dead "twin and shop/web-0 both have the address $web4"
	ip neighbour del "$web4" dev cni0
	# One whom nobody has added: to forget it would help until it is asked for again. The container does
	# not ask for its gateway meanwhile, by which the host would learn its MAC again.
	ip -n web neighbour replace "$bridge4" lladdr "$(mac_of cni0)" dev eth0 nud permanent
	namespace_add stranger
	ip link add stranger0 type veth peer name eth0 netns stranger
	ip link set stranger0 master cni0 up
	end_make stranger eth0 "$web4/16"
	ip neighbour replace "$web4" lladdr "$(mac_in stranger eth0)" dev cni0 nud reachable
	wait_until 5 stranger_is_known
	dead "somebody behind stranger0, a port of cni0, has the address $web4 of shop/web-0, too"
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	ip link del stranger0
	ip neighbour del "$web4" dev cni0
	ip -n web neighbour del "$bridge4" dev eth0
	ip route replace default via 192.0.2.77
	begins 'answered, but nobody at eth0 answers for 192.0.2.77, the next hop towards 203.0.113.9' \
		--from 203.0.113.9 8080/tcp
	ip route replace default via "$client4"
	ip address del "$bridge4/16" dev cni0
	ip route add 10.88.0.0/16 dev cni0
	ip -n web neighbour flush dev eth0
	dead "the host does not have $bridge4, the gateway of shop/web-0"
	expect_in /run/out "ip address add $bridge4/16 dev cni0"
	ip route del 10.88.0.0/16 dev cni0
	ip address add "$bridge4/16" dev cni0
	bridge link set dev "$veth" state 0
	ip neighbour flush dev cni0
	dead "nobody at cni0 answers for $web4: its port $veth does not forward"
	bridge link set dev "$veth" state 3
	ip link set "$veth" nomaster
	dead "$veth is no port of cni0 any more"
	ip link set "$veth" master cni0
	ip link set "$veth" down
	dead "$veth is down"
	ip link set "$veth" up
	wait_until 5 alive_again
}
stranger_is_known() {
	ip neighbour replace "$web4" lladdr "$(mac_in stranger eth0)" dev cni0 nud reachable
	ip netns exec stranger bash -c "exec 3<>/dev/udp/$bridge4/9; echo >&3" 2>/dev/null || true
	bridge fdb show br cni0 | grep "$(mac_in stranger eth0).*stranger0" >/dev/null
}
alive_again() { "$build/bpf-portmap" doctor 8080/tcp >/run/out; }

# programs and queues of others
# limit 120 s
test_doctor_faults_programs() {
	sick_host
	# They drop what asks for MACs, too.
	ip neighbour replace "$web4" lladdr "$(mac_in web eth0)" dev cni0 nud permanent
	ip -n web neighbour replace "$bridge4" lladdr "$(mac_of cni0)" dev eth0 nud permanent
	xdp_pin
	ip link set "$veth" xdpdrv pinned /sys/fs/bpf/xdp
	dead 'the answer is dropped by the kernel: an XDP program of others at the veth'
	ip link set "$veth" xdpdrv off
	in_namespace web ip link set eth0 xdpdrv pinned /sys/fs/bpf/xdp
	dead 'dropped by the kernel in the container: an XDP program of others at the veth'
	in_namespace web ip link set eth0 xdpdrv off
	tc qdisc replace dev "$veth" root tbf rate 8bit burst 10 limit 10
	dead 'dropped by the kernel: a queue has no room (tc qdisc)'
	tc qdisc del dev "$veth" root
	if tcx_is_there; then
		"$build/tests/tcx" drop "$veth" egress /sys/fs/bpf/filter
		dead 'dropped by the kernel: a tc program of others, perhaps the TCX program '
		"$build/tests/tcx" detach "$veth" egress somebody_elses
		rm /sys/fs/bpf/filter
		in_namespace web "$build/tests/tcx" drop eth0 ingress /sys/fs/bpf/filter
		dead 'dropped by the kernel in the container: a tc program of others'
		in_namespace web "$build/tests/tcx" detach eth0 ingress somebody_elses
	fi
	wait_until 5 alive_again # neighbours that were silent meanwhile are asked anew
}
tcx_is_there() { [ "$(kernel_or 6.6)" = 6.6 ]; }

# rules of nftables in all families and at all hooks, on the host and in the container
# limit 120 s
test_doctor_faults_rules() {
	sick_host
	nft "table inet f { chain c { type filter hook prerouting priority raw; tcp dport 80 reject with tcp reset; }; }"
	dead 'dropped by the host: nft inet f, chain c, rule handle 2 (tcp dport 80 reject with tcp reset)'
	nft delete table inet f
	nft "table inet f { chain c { type filter hook postrouting priority 0; oifname eth0 drop; }; }"
	dead 'the answer is dropped by the host: nft inet f, chain c, rule handle 2 (oifname "eth0" drop)'
	nft delete table inet f
	nft "table ip6 f { chain c { type filter hook forward priority 0; policy drop; }; }"
	dead 'dropped by the host: nft ip6 f, chain c, policy drop' --from "$client6" 8080/tcp
	alive --from "$client4" 8080/tcp
	nft delete table ip6 f
	nft "table netdev n { chain c { type filter hook ingress device eth0 priority 0; policy drop; }; }"
	dead 'dropped by the host: nft netdev n, chain c, policy drop'
	# A filter of one's own in front of everything is not for us to open.
	closed_stays_closed
	nft delete table netdev n
	nft "table netdev n { chain c { type filter hook egress device eth0 priority 0; policy drop; }; }"
	dead 'the answer is dropped by the host: nft netdev n, chain c, policy drop'
	closed_stays_closed
	nft delete table netdev n
	nft "table netdev n { chain c { type filter hook ingress device $veth priority 0; policy drop; }; }"
	dead 'the answer is dropped by the host: nft netdev n, chain c, policy drop'
	nft delete table netdev n
	# It drops what asks for the container's MAC, too.
	ip neighbour replace "$web4" lladdr "$(mac_in web eth0)" dev cni0 nud permanent
	in_namespace web nft "table netdev n { chain c { type filter hook ingress device eth0 priority 0; policy drop; }; }"
	dead "dropped in the container's own firewall: nft netdev n, chain c, policy drop"
	in_namespace web nft delete table netdev n
	ip neighbour del "$web4" dev cni0
	in_namespace web nft "table inet f { chain o { type filter hook output priority 0; policy drop; }; }"
	dead "the answer is dropped in the container's own firewall: nft inet f, chain o, policy drop"
	closed_stays_closed
	in_namespace web nft delete table inet f
	# Of what the container asks for itself the host would learn its MAC, too.
	nft "table bridge b { chain i { type filter hook input priority 0; ether type arp drop; };
		chain c { type filter hook output priority 0; ether type arp drop; }; }"
	ip neighbour flush dev cni0
	ip neighbour del "$web4" dev cni0 2>/dev/null || true
	dead "nobody at cni0 answers for $web4; rules that see ARP are in nft's table bridge b"
	nft delete table bridge b
	ip neighbour flush dev cni0
	nft "table inet f { set s { type ipv4_addr . inet_service; elements = { $client4 . 80 }; };
		chain c { type filter hook forward priority 0; ip saddr . tcp dport @s drop; }; }"
	dead 'dropped by the host: nft inet f, chain c, rule handle'
	closed_stays_closed
	nft delete table inet f
	alive
}
closed_stays_closed() {
	! grep -E 'remedy|accept|ACCEPT' /run/out || fail "a remedy opens it: $(cat /run/out)"
}

# what is configured on the way: MACs that were set by hand, the bridge's table of MACs, ARP, MTUs
# limit 120 s
test_doctor_faults_way() {
	local mac
	FAST_PATH=off conflist bridge bridge .
	sick_host
	mac=$(mac_in web eth0)
	ip neighbour replace "$client4" lladdr 02:00:00:00:00:77 dev eth0 nud permanent
	ip -6 neighbour replace "$client6" lladdr 02:00:00:00:00:77 dev eth0 nud permanent
	begins "FAIL  neighbours         at eth0 the MAC 02:00:00:00:00:77 is set for $client4, which answers with $(mac_in client eth0)" 8080/tcp
	expect_in /run/out "the MAC 02:00:00:00:00:77 is set for $client6, which answers with"
	mend_fault
	alive
	expect_answer client tcp "$host4" 8080 web
	ip -n client address add "$host4/32" dev lo
	begins "FAIL  neighbours         somebody else at eth0, with the MAC $(mac_in client eth0), has the address $host4 of this host, too" 8080/tcp
	ip -n client address del "$host4/32" dev lo
	ip link add stranger0 type veth peer name stranger1
	ip link set stranger0 master cni0 up
	ip link set stranger1 up
	ip neighbour replace "$web4" lladdr "$mac" dev cni0 nud permanent
	bridge fdb replace "$mac" dev stranger0 master static sticky
	dead "cni0 sends what is for the MAC of shop/web-0 to its port stranger0, not to $veth"
	mend_fault
	alive
	ip link del stranger0
	bridge link set dev "$veth" flood off learning off
	bridge fdb del "$mac" dev "$veth" master
	dead "cni0 does not know where the MAC of shop/web-0 is"
	mend_fault
	alive
	ip -n web neighbour del "$bridge4" dev eth0
	sysctl -qw net.ipv4.conf.cni0.arp_ignore=8
	dead "shop/web-0 asks for the MAC of its gateway $bridge4, and cni0 does not answer; what it ignores says the sysctl net/ipv4/conf/cni0/arp_ignore"
	mend_fault
	wait_until 5 alive_again
	ip -n web link set eth0 mtu 1400
	by_hand_says 2 "eth0 in shop/web-0 has an MTU of 1400, its end on the host, $veth, of 1500" doctor 8080/tcp
	mend_fault
	alive
	ip link set cni0 mtu 1400
	by_hand_says 1 "cni0 has an MTU of 1400, its port $veth of 1500" doctor 8080/tcp
	mend_fault
	alive
	# Which takes the host's address of IPv6 with it, and the container's route of IPv4.
	ip link set cni0 down
	dead 'cni0 is down'
	mend_fault
	dead "the host does not have $bridge6, the gateway of shop/web-0" --from "$client6" 8080/tcp
	mend_fault
	wait_until 5 alive_again
	sysctl -qw net.ipv6.conf.cni0.disable_ipv6=1
	dead "the host does not have $bridge6, the gateway of shop/web-0" --from "$client6" 8080/tcp
	mend_fault
	wait_until 5 alive_again
	# The container does not ask for its gateway meanwhile, by which the host would learn its MAC.
	ip -n web neighbour replace "$bridge4" lladdr "$(mac_of cni0)" dev eth0 nud permanent
	in_namespace web sysctl -qw net.ipv4.conf.eth0.arp_ignore=8
	ip neighbour del "$web4" dev cni0
	dead 'eth0 in shop/web-0 ignores some that ask (net.ipv4.conf.eth0.arp_ignore is 8)'
	in_namespace web sysctl -qw net.ipv4.conf.eth0.arp_ignore=0
	ip neighbour flush dev cni0
	alive
	ip -n web link set eth0 arp off
	ip neighbour flush dev cni0
	dead 'eth0 in shop/web-0 takes no part in ARP (NOARP)'
}
# Runs the remedies that were printed.
mend_fault() {
	sed -n 's/^      remedy *//p; s/^ \{25\}\([a-z#]\)/\1/p' /run/out | bash -e || fail "a remedy: $(cat /run/out)"
}

# routes and rules that refuse a client who was seen, and is not named: one address may be banned
test_doctor_faults_seen() {
	sick_host
	ip route add blackhole "$client4/32"
	by_hand_says 0 "no route back to $client4, seen lately: no answer gets there (ip route blackhole $client4/32)" doctor 8080/tcp
	begins "FAIL  probe              no route back to $client4: no answer gets there (ip route blackhole $client4/32)" --from "$client4" 8080/tcp
	ip route del blackhole "$client4/32"
	ip route add prohibit "${client4%.*}.0/28"
	begins "FAIL  probe              no route back to $client4, seen lately: no answer gets there (ip route prohibit ${client4%.*}.0/28)" 8080/tcp
	ip route del prohibit "${client4%.*}.0/28"
	ip rule add to "$client4" unreachable pref 100
	begins "FAIL  probe              no route back to $client4, seen lately: no answer gets there (ip rule 100: to $client4 unreachable)" 8080/tcp
	ip rule del pref 100
	reverse_path_loose
	ip route add "$client4/32" via "$server4" dev eth1
	by_hand_says 1 "$client4 is a neighbour at eth0, and the route to it leads to eth1" doctor --from "$client4" 8080/tcp
	ip route del "$client4/32" via "$server4" dev eth1
	alive
	# It sends to a MAC that the host had before.
	ip -n client neighbour replace "$host4" lladdr 02:00:00:00:00:78 dev eth0 nud permanent
	expect_no_answer client tcp "$host4" 8080
	by_hand_says 0 'packets came in by eth0 for another MAC than its own' doctor --from "$client4" 8080/tcp
}

# a firewall, of the host or of the container, that lets SYNs through alone, where nothing skips the stack
test_doctor_faults_data() {
	local hook part='the handshake passes, the data behind it does not:'
	FAST_PATH=off conflist bridge bridge .
	sick_host
	nft "table inet f { chain c { type filter hook forward priority 0; tcp dport 80 tcp flags & (syn | ack) == ack drop; }; }"
	dead "$part dropped by the host: nft inet f, chain c, rule handle 2 (tcp dport 80 tcp flags"
	closed_stays_closed
	nft delete table inet f
	nft "table inet f { chain c { type filter hook forward priority 0; tcp sport 80 tcp flags & (syn | ack) == ack drop; }; }"
	dead "$part the answer is dropped by the host: nft inet f"
	nft delete table inet f
	nft "table inet f { chain c { type filter hook prerouting priority 0; ip6 version 6 tcp dport 80 ct state established drop; }; }"
	dead "$part dropped by the host: nft inet f" --from "$client6" 8080/tcp
	nft delete table inet f
	in_namespace web nft "table inet f { chain c { type filter hook input priority 0; tcp dport 80 tcp flags & (syn | ack) == ack drop; }; }"
	dead "$part dropped in the container's own firewall: nft inet f"
	in_namespace web nft delete table inet f
	nft "table inet f { chain c { type filter hook forward priority 0; policy drop; ct state new accept; iifname cni0 accept; }; }"
	dead "$part dropped by the host: nft inet f, chain c, policy drop"
	mend_fault
	alive --from "$client4" 8080/tcp
	nft delete table inet f
	alive
}

# another NAT of the host that takes what was translated: to the host, to another container, to a
# server outside; IPv4 and IPv6
# limit 120 s
test_doctor_faults_nat() {
	local rule to
	sick_host
	container_start other bridge
	while read -r rule to; do
		nft "table ip n { chain c { type nat hook prerouting priority dstnat; tcp dport 80 ${rule//+/ }; }; }"
		begins 'FAIL  probe-nat' 8080/tcp --from "$client4"
		expect_contains "$(head -n 1 /run/out)" "and then taken to $to by another NAT of the host: nft ip n, chain c, rule handle 2 (tcp dport 80 ${rule//+/ })"
		nft flush ruleset
	done <<-ROWS
		redirect+to+:81 the host itself
		dnat+to+$(address4 other):81 $(address4 other):81
		dnat+to+$(address4 other) $(address4 other):80
		dnat+to+$server4:81 $server4:81
	ROWS
	nft "table ip6 n { chain c { type nat hook prerouting priority dstnat; tcp dport 80 dnat to $(address6 other); }; }"
	begins "and then taken to [$(address6 other)]:80 by another NAT of the host: nft ip6 n" 8080/tcp --from "$client6"
	nft flush ruleset
	alive
}

# a program that was stopped, or whose container is paused: the kernel connects, and nobody answers
test_doctor_faults_paused() {
	local pid
	sick_host
	pid=$(in_namespace web ss -Hltnp 'sport = 80' | sed -n 's/.*pid=\([0-9]*\).*/\1/p' | head -n 1)
	kill -STOP "$pid"
	dead "(pid $pid) is stopped"
	kill -CONT "$pid"
	alive
	needs_cgroup
	mkdir "$cgroup/paused"
	echo "$pid" >"$cgroup/paused/cgroup.procs"
	echo 1 >"$cgroup/paused/cgroup.freeze"
	dead "(pid $pid) is frozen: its container is paused"
	echo 0 >"$cgroup/paused/cgroup.freeze"
	alive
	echo "$pid" >"$cgroup/cgroup.procs"
	rmdir "$cgroup/paused"
}

# the container: its interface, address, routes, neighbours, families, and its server
# limit 120 s
test_doctor_faults_container() {
	sick_host
	ip -n web route del default
	dead 'shop/web-0 has no IPv4 route to clients by its eth0'
	dead_for_all 'shop/web-0 has no IPv4 route to clients'
	ip -n web route add default via "$bridge4"
	ip -n web route replace default via 10.88.0.99
	dead 'the host does not have 10.88.0.99, the gateway of shop/web-0'
	expect_in /run/out "ip route replace default via $bridge4 dev eth0"
	ip -n web route replace default via "$bridge4"
	ip -n web rule add to "$client4" blackhole pref 100
	dead "shop/web-0 has no route to $client4 by its eth0: ip rule 100: to $client4 blackhole"
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	dead_for_all "ip rule 100: to $client4 blackhole"
	ip -n web rule del pref 100
	ip -n web route add blackhole "$client4/32"
	dead "shop/web-0 has no route to $client4 by its eth0: ip route blackhole $client4/32"
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	ip -n web route del blackhole "$client4/32"
	ip -n web link add d0 type veth peer name d1
	ip -n web link set d0 up
	ip -n web route add "$client4/32" dev d0
	dead "shop/web-0 has a route for $client4/32 that does not lead out by its eth0"
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	ip -n web link del d0
	# As with a netmask that is too short.
	ip -n web route add "$client4/32" dev eth0
	dead "shop/web-0 takes $client4 for a neighbour at its eth0 (a netmask"
	ip -n web route del "$client4/32" dev eth0
	processes_end web
	in_namespace web "$peer" serve tcp 127.0.0.1 80 --name web --background
	dead 'refused: shop/web-0 listens at tcp port 127.0.0.1:80 only'
	processes_end web
	in_namespace web "$peer" serve tcp "$web6" 80 --name web --background
	dead "refused: shop/web-0 listens at tcp port [$web6]:80 only, not at $web4:80"
	alive --from "$client6" 8080/tcp
	processes_end web
	serve_in web 80
	ip -n web address del "$web4/16" dev eth0
	ip neighbour flush dev cni0
	dead "nobody at cni0 answers for $web4: shop/web-0 does not have that address"
	ip -n web address add "$web4/16" dev eth0
	ip -n web route add default via "$bridge4"
	in_namespace web sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	dead "nobody at cni0 answers for $web6: shop/web-0 does not have that address" --from "$client6" 8080/tcp
	ip -n web link set eth0 down
	dead 'eth0 in shop/web-0 is down'
}
