# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_probe.sh - `bpf-portmap doctor PORT` sends a packet, and its first line says where that
# ended; firewalls that let clients in are left alone, and nothing stays of the packet.

# a port that is answered has no finding: IPv4, IPv6, both uplinks; the client named gets no packet.
# --no-probe sends nothing, and neither do --quick and the metrics of the timer
test_doctor_probe_healthy() {
	local name
	healthy_host
	for name in client server; do
		in_namespace "$name" nft 'table inet none { chain c {
			type filter hook prerouting priority raw; tcp sport 8080 tcp flags & (syn | rst) != 0 counter;
			icmp type destination-unreachable counter; }; }'
	done
	good
	good --from "$client4" 8080
	good --from "$client6" 8080/tcp
	good --from "$server4" 8080/tcp
	expect_in /run/err 'sends a packet to'
	good --send 5353/udp
	for name in client server; do
		expect_equal 2 "$(in_namespace "$name" nft list table inet none | grep -c 'packets 0 ')" \
			"$(in_namespace "$name" nft list table inet none)"
	done
	expect_answer client tcp "$host4" 8080 web
	in_namespace web nft 'table inet c { chain c { type filter hook input priority raw; tcp flags syn counter; }; }'
	by_hand 0 doctor --no-probe 8080
	by_hand 0 doctor --quick
	by_hand 0 stats --prometheus --checks
	expect_contains "$(in_namespace web nft list table inet c)" 'packets 0 '
	by_hand 0 doctor 8080/tcp
	[[ ! $(in_namespace web nft list table inet c) =~ packets\ 0\  ]] || fail "no packet is sent"
}

# a blocklist at prerouting; a drop for the second uplink alone, also where no client is named; an XDP
# program at the uplink, native and generic; a drop in the bridge family, beside ports of containers
# that were added without us; nobody who listens
test_doctor_probe_drops() {
	local mode
	healthy_host
	nft 'table ip cs { set bl { type ipv4_addr; elements = { '"$server4"' }; };
		chain c { type filter hook prerouting priority raw; ip saddr @bl drop; }; }'
	good
	says 'dropped by the host: nft ip cs, chain c, rule handle' --from "$server4" 8080/tcp
	expect_contains "$(head -n 1 /run/out)" '(ip saddr @bl drop)'
	good --from "$client4" 8080/tcp
	nft delete table ip cs
	nft 'table inet f { chain c { type filter hook forward priority 0; iifname "eth1" drop; }; }'
	says 'dropped by the host: nft inet f, chain c, rule handle'
	expect_contains "$(head -n 1 /run/out)" 'by eth1'
	says 'dropped by the host: nft inet f, chain c, rule handle' --from "$server4" 8080/tcp
	good --from "$client4" 8080/tcp
	nft delete table inet f
	xdp_pin
	for mode in xdpdrv xdpgeneric; do
		ip link set eth0 "$mode" pinned /sys/fs/bpf/xdp
		says 'dropped by the XDP program somebody_elses at eth0'
		ip link set eth0 "$mode" off
	done
	good
	conflist without bridge "$only_main"
	container_add other without
	good
	nft 'table bridge b { chain c { type filter hook prerouting priority 0; ip protocol tcp drop; }; }'
	nft 'table bridge b { chain o { type filter hook output priority 0; ip protocol tcp drop; }; }'
	says 'nft bridge b, chain'
	nft delete table bridge b
	processes_end web
	says 'refused: nobody listens at tcp port 10.88.0.'
	by_hand_says 2 'nobody listens' doctor --send 5353/udp
}

# a firewall inside the container, of nftables and of iptables
test_doctor_probe_inside() {
	healthy_host
	in_namespace web nft 'table inet f { chain i { type filter hook input priority 0; policy drop;
		meta l4proto ipv6-icmp accept; }; }'
	says "dropped in the container's own firewall: nft inet f, chain i, policy drop"
	says "dropped in the container's own firewall: nft inet f" --from "$client6" 8080/tcp
	in_namespace web nft delete table inet f
	in_namespace web iptables-nft -A INPUT -p tcp --dport 80 -j REJECT
	says "dropped in the container's own firewall: nft ip filter, chain INPUT, rule handle"
	in_namespace web iptables-nft -F
	good
	if iptables-legacy -nL >/dev/null 2>&1; then
		in_namespace web iptables-legacy -A INPUT -p tcp --dport 80 -j DROP
		says "dropped in the container's own firewall: by iptables-legacy"
	fi
}

# a process of the host that answers in the container's place is not taken for it
test_doctor_probe_host_answers() {
	healthy_host
	serve_on_host 8080
	good
	sysctl -qw net.ipv6.conf.all.forwarding=0
	expect_answer client tcp "$host6" 8080 host
	says 'the host does not forward IPv6 packets that come in by eth0' --from "$client6" 8080/tcp
}

# a server that accepts no connections
test_doctor_probe_backlog() {
	local i
	healthy_host
	processes_end web
	in_namespace web "$build/tests/hold" tcp 0.0.0.0 80 --background
	# No more than there is room for: one more may wait half-open, which is not the probe's.
	for ((i = 0; i < 17; i++)); do
		in_namespace client bash -c 'exec 3<>/dev/tcp/192.0.2.1/8080; exec sleep 1000' \
			2>/dev/null &
	done
	wait_until 10 queue_is_full
	says 'delivered, no answer: the accept queue of '
	expect_contains "$(head -n 1 /run/out)" 'is full (17 of 16)'
}
queue_is_full() { [ "$(in_namespace web ss -Hltn 'sport = 80' | awk '{ print $2 }')" = 17 ]; }

# an uplink whose frames begin with the IP header: TCP and UDP, IPv4 and IPv6, with a client that is
# named, and with somebody behind the default route, which has no gateway
test_doctor_probe_tunnel() {
	local from to port
	healthy_host
	namespace_add office
	"$build/tests/tun" tun0 /run/netns/office tun0
	ip link set tun0 up
	ip -n office link set tun0 up
	ip address add 100.64.0.1/24 dev tun0
	ip address add 2001:db8:64::1/64 dev tun0 nodad
	ip -n office address add 100.64.0.10/24 dev tun0
	ip -n office address add 2001:db8:64::10/64 dev tun0 nodad
	by_hand 0 attach
	sleep 1.1 # Of two clients who were seen in one second neither is the last.
	for to in 100.64.0.1 2001:db8:64::1; do
		expect_answer office tcp "$to" 8080 web
		expect_answer office udp "$to" 5353 web
	done
	for from in 100.64.0.10 2001:db8:64::10; do
		good --from "$from" 8080/tcp
		good --from "$from" --send 5353/udp
	done
	ip route replace default dev tun0
	ip -6 route replace default dev tun0
	nft 'table inet f { chain c { type filter hook forward priority 0; iifname "tun0" drop; }; }'
	for port in 8080/tcp 5353/udp; do
		says 'dropped by the host: nft inet f, chain c, rule handle' --send "$port"
		expect_contains "$(head -n 1 /run/out)" "[*:$port, from 100.64.0.10, seen lately, by tun0"
		expect_contains "$(head -n 1 /run/out)" "[::]:$port, from 2001:db8:64::10, seen lately, by tun0]"
	done
	nft delete table inet f
	processes_end web
	says 'refused: nobody listens at udp port 10.88.0.' --send 5353/udp
}

# no way back
test_doctor_probe_way_back() {
	healthy_host
	ip route add blackhole 203.0.113.64/26
	says 'no route back to 203.0.113.70' --from 203.0.113.70 8080/tcp
	in_namespace client ip link set eth0 down
	says 'eth0 has no carrier'
	# Which removes the default route, too.
	ip link set eth0 down
	says 'eth0 is down: no client comes in there'
}

# what netfilter's older users drop, and what a policy does
test_doctor_probe_forward() {
	healthy_host
	nft 'table inet f { chain forward { type filter hook forward priority 0; policy drop; }; }'
	says 'dropped by the host: nft inet f, chain forward, policy drop'
	expect_in /run/out 'nft add rule'
	nft delete table inet f
	# What somebody closes by a rule of his own is not opened by what doctor prints.
	nft 'table inet f { chain close { type filter hook forward priority 0; tcp dport 80 reject with tcp reset; }; }'
	says 'dropped by the host: nft inet f, chain close, rule handle'
	nft flush chain inet f close
	nft add rule inet f close reject
	says 'dropped by the host: nft inet f, chain close, rule handle'
	case $(cat /run/out) in *'add rule'*) fail "a remedy opens it: $(cat /run/out)" ;; esac
	nft delete table inet f
	iptables-nft -A FORWARD -p tcp --dport 80 -j DROP
	says 'dropped by the host: nft ip filter, chain FORWARD, rule handle'
	iptables-nft -F
	if iptables-legacy -nL >/dev/null 2>&1; then
		iptables-legacy -A FORWARD -p tcp --dport 81 -j DROP
		iptables-legacy -A FORWARD -p tcp --dport 80 -m comment --comment other -j DROP
		says 'dropped by the host: by iptables-legacy or another user of netfilter, at FORWARD'
		# Of two rules the one that has counted the packet.
		expect_in /run/out '--comment other -j DROP'
		! grep -e '--dport 81' /run/out || fail "a rule of another port: $(cat /run/out)"
		iptables-legacy -F
	fi
	good
}

# our own programs' reasons; somebody whom sourceRanges let in is taken where none is named
test_doctor_probe_source_ranges() {
	conflist limited bridge "$(with_ours '{sourceRanges: ["192.0.2.0/24"]}')"
	container_add web limited -p 8080:80/tcp
	serve_in web 80
	probe_is_good
	expect_contains "$(jq -r '.items[].found' /run/out)" \
		'no packet is sent to [::]:8080/tcp: sourceRanges let no client of its family in'
	says 'dropped by bpf-portmap (from_uplink): source_range' --from "$server4" 8080/tcp
}

# no packet comes in where excludeCIDRs cover the uplink's address, which is as the conflist says; at
# another address of it that they leave out one does
test_doctor_probe_excluded() {
	healthy_host
	conflist without bridge "$(with_ours '{excludeCIDRs: ["198.51.100.0/24", "2001:db8:2::/64"]}')"
	container_start other without -p 9090:80/tcp
	good 9090
	unsent --from "$server4" 9090
	expect_in /run/out \
		"no packet is sent as from $server4, which comes by eth1: at no address of that is the port mapped"
	ip address add 203.0.113.1/24 dev eth1
	ip route add 203.0.114.0/24 via "$server4"
	nft 'table inet f { chain c { type filter hook forward priority 0; iifname "eth1" drop; }; }'
	says 'dropped by the host: nft inet f, chain c, rule handle' 9090
	expect_contains "$(head -n 1 /run/out)" '[*:9090/tcp, from'
}

# an address of lo or a bridge is reached by uplinks; to one that the host does not have nothing is sent
test_doctor_probe_other_address() {
	healthy_host
	ip address add 203.0.113.50/32 dev lo
	container_start other bridge -p 203.0.113.50:9090:80/tcp -p 203.0.113.77:9091:80/tcp
	good 9090
	! grep 'no packet is sent' /run/out || fail "nothing is sent: $(cat /run/out)"
	nft 'table inet f { chain c { type filter hook forward priority 0; iifname "eth0" drop; }; }'
	says 'dropped by the host: nft inet f, chain c, rule handle' 9090
	nft delete table inet f
	begins 'FAIL  host-ip            203.0.113.77:9091/tcp' 9091
	expect_in /run/out 'no packet is sent to 203.0.113.77:9091/tcp: no uplink has an address at which'
	expect_in /run/out 'ip address add 203.0.113.77/32 dev eth0'
	ip -n client address add 203.0.113.77/32 dev lo
	by_hand_says 2 'the host does not have the address 203.0.113.77, which somebody else has' doctor 9091
	! grep 'ip address add' /run/out || fail "the address of somebody else: $(cat /run/out)"
}

# firewalls that drop others: fail2ban's chain, a set of banned addresses, a rate limit, kube-proxy's
# rules for what is invalid and for hairpins, one that accepts what it should
test_doctor_probe_healthy_firewalls() {
	healthy_host
	iptables-nft -N f2b-web
	iptables-nft -A f2b-web -s 198.51.100.77 -j REJECT
	iptables-nft -A f2b-web -j RETURN
	iptables-nft -I FORWARD -p tcp -j f2b-web
	probe_is_good
	iptables-nft -F && iptables-nft -X
	nft 'table ip cs { set bl { type ipv4_addr; flags interval; elements = { 198.18.0.0/15 }; };
		chain c { type filter hook forward priority 0; ip saddr @bl drop; }; }'
	probe_is_good
	nft delete table ip cs
	nft 'table inet r { chain c { type filter hook forward priority 0;
		tcp dport 80 ct state new limit rate over 100/second burst 50 packets drop; }; }'
	probe_is_good
	nft delete table inet r
	iptables-nft -A FORWARD -m conntrack --ctstate INVALID -j DROP
	probe_is_good
	iptables-nft -F
	firewall_strict
	probe_is_good
}
probe_is_good() {
	local code=0
	"$build/bpf-portmap" doctor 8080/tcp --json >/run/out 2>/run/err || code=$?
	expect_equal '' "$(jq -r '.items[] | select(.check == "probe" and .verdict != "ok" and
		(.found | contains("[::]") | not)).found' /run/out)"
	expect_in /run/err 'sends a packet to'
}

# who was made up, or is a neighbour, is not taken for somebody who was seen when doctor runs again
test_doctor_probe_again() {
	healthy_host
	good
	nft 'table inet f { chain c { type filter hook forward priority 0; tcp dport 80 drop; }; }'
	by_hand 2 doctor 8080/tcp
	expect_equal '' "$(grep -o '203[^ ]*, seen lately\|198[^ ]*, seen lately\|2001[^ ]*, seen lately' /run/out || true)"
	expect_in /run/out "from $client4, seen lately, by eth0"
}

# a range of ports is one: a packet to its first port, and a line where nobody listens; of many
# ports of one container those that there is time for, and the others are looked at
# limit 120 s
test_doctor_probe_range() {
	healthy_host
	container_add ftp bridge -p 20000-23999:20000-23999/tcp
	begins 'refused: nobody listens at tcp port 10.88.0.3:20000 in ftp'
	expect_in /run/out '*:20000-23999/tcp'
	! grep 'more   (--all' /run/out || fail "more than a line: $(cat /run/out)"
	doctor 2
	expect_equal '*:20000-23999/tcp [::]:20000-23999/tcp' \
		"$(jq -r .found /run/doctor | sed 's/.* \[\(.*\)\]$/\1/' | sort | paste -sd ' ')"
	by_hand 2 doctor --from "$client4" 20007/tcp
	expect_equal 2 "$(wc -l <<<"$(grep -v remedy /run/out)")" "$(cat /run/out)"
	expect_contains "$(head -n 1 /run/out)" '[*:20007/tcp, from'
	container_remove ftp bridge
	container_add many bridge $(printf -- '-p %d:80/tcp ' $(seq 25000 2 25070))
	by_hand 2 doctor
	expect_in /run/err 'sends a packet to 74 mapped ports'
	expect_in /run/out 'nobody listens at tcp port'
}

# a datagram would reach the program, so one is sent only if that is asked for; without, and where it is
# not answered, somebody who is bound is enough
test_doctor_probe_udp() {
	healthy_host
	unsent 5353/udp
	expect_in /run/out 'no packet is sent to *:5353/udp: a datagram would reach'
	good --send 5353/udp
	! grep 'no packet' /run/out || fail "it was sent: $(cat /run/out)"
	processes_end web
	in_namespace web "$build/tests/hold" udp 0.0.0.0 80 --background
	good --from "$client4" --send 5353/udp
	unsent --from "$client4" 5353/udp
	processes_end web
	in_namespace web "$peer" serve udp 127.0.0.1 80 --name web --background
	says 'refused: shop/web-0 listens at udp port 127.0.0.1:80 only' --send --from "$client4" 5353/udp
	begins 'FAIL  listener' 5353/udp
	expect_contains "$(head -n 1 /run/out)" 'listens at udp port 127.0.0.1:80 only'
}

# what no packet is sent to: SCTP, and what processes of the host alone reach; the way to it is looked up
test_doctor_probe_not() {
	healthy_host
	container_start local bridge -p 127.0.0.1:81:80/tcp -p 3868:3868/sctp
	unsent 3868/sctp
	expect_in /run/out 'no packet is sent to *:3868/sctp: what is sent is TCP or UDP'
	unsent 81
	expect_in /run/out 'no packet is sent to 127.0.0.1:81/tcp: processes of this host alone'
	processes_end local
	begins 'refused: nobody listens at tcp port 10.88.0.3:80 in local' 81
	ip -n local link set eth0 down
	begins 'FAIL  way                eth0 in local is down' 3868/sctp
}

# another list that runtimes take first, of any name that they read, while the port is not mapped
test_doctor_probe_other_list() {
	local name
	own_directory /etc/cni/net.d
	healthy_host
	cp /run/conf/bridge.conflist /etc/cni/net.d/10-net.conflist
	for name in 05-old.conflist 05-old.json 05-old.conf; do
		jq "$only_main" /run/conf/bridge.conflist >"/etc/cni/net.d/$name"
		begins "FAIL  conflist-first     runtimes take /etc/cni/net.d/$name" 9090
		expect_contains "$(head -n 1 /run/out)" 'so the port is not mapped'
		rm "/etc/cni/net.d/$name"
	done
	# One that is behind ours, or that nobody reads.
	jq "$only_main" /run/conf/bridge.conflist | tee /etc/cni/net.d/20-old.conf >/etc/cni/net.d/05-old.bak
	good
	begins 'no container has port 9090' 9090
}

# as a DaemonSet sees it: the image's files alone, no nft, nobody else's processes, and its own /run;
# nftables' rules and the kernel's drops are told by netlink and tracepoint
test_doctor_probe_in_image() {
	healthy_host
	nft 'table inet f { chain c { type filter hook forward priority 0; tcp dport 80 drop; }; }'
	in_image 2 8080/tcp
	expect_contains "$(head -n 1 /run/out)" 'dropped by the host: nft inet f, chain c, rule handle 2 [*:8080/tcp'
	nft delete table inet f
	in_image 0 8080/tcp
	in_namespace web nft 'table inet f { chain i { type filter hook input priority 0; policy drop; }; }'
	in_image 2 8080/tcp
	expect_contains "$(head -n 1 /run/out)" "dropped in the container's own firewall: by"
	in_namespace web nft delete table inet f
	processes_end web
	in_image 2 8080/tcp
	expect_contains "$(head -n 1 /run/out)" 'refused: shop/web-0 answers with a reset: nobody listens'
}
in_image() {
	local code=0
	mkdir -p /run/image/proc /run/image/sys
	cp "$build/static/bpf-portmap" /run/image/ 2>/dev/null || cp "$build/bpf-portmap" /run/image/
	unshare --mount --pid --fork bash -ec '
		mount -t proc proc /run/image/proc
		mount --rbind /sys /run/image/sys
		exec chroot /run/image /bpf-portmap doctor "$@"' - "${@:2}" >/run/out 2>/run/err || code=$?
	expect_equal "$1" "$code" "$(cat /run/out /run/err)"
}

no_doctors_tables() { ! { nft list tables; in_namespace web nft list tables; } | grep doctor >/dev/null; }

# killed when the packet is in: the client named gets no answer, also none that the container sends
# again, and the next run is as ever. A signal that asks it to end waits until that is cleared up
test_doctor_probe_killed_answer() {
	healthy_host
	in_namespace client nft "table inet none { chain c { type filter hook prerouting priority raw;
		tcp sport 8080 tcp flags & syn != 0 counter; }; }"
	strace -f -o /dev/null -e trace=epoll_wait -e inject=epoll_wait:signal=TERM:when=1 \
		"$build/bpf-portmap" doctor --from "$client4" 8080/tcp >/run/out 2>&1 || true
	nothing_stays
	strace -f -o /dev/null -e trace=epoll_wait -e inject=epoll_wait:signal=KILL:when=1 \
		"$build/bpf-portmap" doctor --from "$client4" 8080/tcp >/run/out 2>&1 || true
	[ -n "$(in_namespace web ss -Htan state syn-recv 'sport = 80')" ] || fail "it was not killed in between"
	wait_until 20 sent_again
	expect_contains "$(in_namespace client nft list table inet none)" 'packets 0 '
	by_hand 0 doctor --from "$client4" 8080/tcp
	expect_answer client tcp "$host4" 8080 web
}
sent_again() { in_namespace web ss -Htano state syn-recv 'sport = 80' | grep 'timer:(on,[^,]*,[2-9])' >/dev/null; }

# killed at any place, it leaves nothing that the next run, or two seconds, does not clear up
test_doctor_probe_killed() {
	local i pid
	healthy_host
	in_namespace web nft 'table inet f { chain i { type filter hook input priority 0; policy drop;
		meta l4proto ipv6-icmp accept; }; }'
	for i in 1 2 3 4 5 6 7 8; do
		"$build/bpf-portmap" doctor 8080/tcp >/dev/null 2>&1 &
		pid=$!
		sleep "0.0$i"
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
		wait_until 2 no_doctors_tables || fail "a table stays: $(nft list tables) $(in_namespace web nft list tables)"
	done
	says "dropped in the container's own firewall: nft inet f"
	in_namespace web nft delete table inet f
	good
	expect_answer client tcp "$host4" 8080 web
}

# a client at an interface that another network alone has as an uplink is told of the "uplinks" that keep it
# out, and no packet is sent there unasked
test_doctor_probe_other_uplinks() {
	conflist named bridge "$(with_ours '{"uplinks": ["eth0"]}')"
	conflist other bridge "$other_network"
	container_start web named -p 8080:80/tcp
	container_start second other -p 8081:80/tcp
	good 8080/tcp
	good --from "$client4" 8080/tcp
	good --from "$server6" 8081/tcp
	says "$server4 comes by eth1: network bridge maps its ports at eth0 only" --from "$server4" 8080/tcp
	says "$server6 comes by eth1: network bridge maps its ports at eth0 only" --from "$server6" 8080/tcp
	by_hand 0 list --port 8080
	expect_in /run/out 'from outside only by the "uplinks" of its network'
}
