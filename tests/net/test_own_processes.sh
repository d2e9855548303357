# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_own_processes.sh - what the host's own processes send to a mapped port and no program at
# sockets has sent to the container: it comes to lo, and is translated there. What those programs do is
# tested in test_localhost.sh.

socket_tool=$build/tests/local
both='-p 8080:80/tcp -p 8080:80/udp'

# on_host SOCKET STEP...: the result of the last step
on_host() {
	local said
	said=$("$socket_tool" "$@" 2>&1) || true
	echo "${said##*$'\n'}"
}

# expect_said NAME LINE WHAT
expect_said() {
	case $2 in "name=$1 "*) ;; *) fail "$3: expected $1, got: $2" ;; esac
}

# client_open NAME SOCKET ADDRESS PORT [BIND-ADDRESS]: a connected UDP socket that asks whenever it is
# told to (says), and never connects again
client_open() {
	local steps=() round
	[ $# -lt 5 ] || steps+=(bind "$5" 0)
	steps+=(connect "$3" "$4")
	for round in $(seq 30); do steps+=(wait ask); done
	piped_open "$1" "$socket_tool" "$2" "${steps[@]}"
	[ $# -lt 5 ] || expect_equal "bind ok" "$(piped_read "$1" 5)" "$1"
	expect_equal "connect ok" "$(piped_read "$1" 5)" "$1"
}

says() {
	piped_send "$1"
	piped_read "$1" 6
}

# The reference plugin serves 127.0.0.1 and the host's own addresses; not ::1, nor another loopback
# address as the source.
clients_open() {
	clients='local4 own4 own6'
	client_open local4 udp4 127.0.0.1 8080
	client_open own4 udp4 "$host4" 8080
	client_open own6 udp6 "$host6" 8080
	[ "$plugin" = bpf-portmap ] || return 0
	clients+=' mapped local6 other4'
	client_open mapped udp6 127.0.0.1 8080
	client_open local6 udp6 ::1 8080
	client_open other4 udp4 127.0.0.1 8080 127.0.0.5
}

expect_all() {
	local name
	for name in $clients; do expect_said "$1" "$(says "$name")" "$name"; done
}

expect_all_refused() {
	local name
	for name in $clients; do
		expect_equal "ask: Connection refused" "$(says "$name")" "$name"
	done
}

# also with portmap
# sockets that are bound to a loopback address reach mapped ports at 127.0.0.1, ::1 and the host's own
# addresses by TCP, connected UDP and sendto, and are answered from the address that they asked
test_own_bound_to_loopback() {
	local source asked socket answer
	container_start web bridge $both
	for source in 127.0.0.1 127.0.0.5 ::1; do
		for asked in 127.0.0.1 127.0.0.5 ::1 "$host4" "$host4_second" "$bridge4" "$host6" \
			"$host6_second" "$bridge6"; do
			case $source$asked in ::1*:* | 127*[0-9].*[0-9].*) ;; *) continue ;; esac
			case $source$asked in *:*.* | *.*:*) continue ;; esac
			# The reference plugin masquerades 127.0.0.1 alone.
			[ "$plugin" = bpf-portmap ] || [ "$source" = 127.0.0.1 ] || continue
			socket=4
			case $asked in *:*) socket=6 ;; esac
			expect_said web "$(on_host "tcp$socket" bind "$source" 0 connect "$asked" 8080 ask)" \
				"TCP from $source to $asked"
			expect_said web "$(on_host "udp$socket" bind "$source" 0 connect "$asked" 8080 ask)" \
				"UDP from $source to $asked"
			answer=$(on_host "udp$socket" bind "$source" 0 sendto "$asked" 8080 recvfrom)
			expect_said web "$answer" "sendto from $source to $asked"
			expect_contains "$answer" "from=$(endpoint "$asked" 8080)"
		done
	done
}

# also with portmap
# a UDP socket of the host that was connected before the container came is served once it is there, by
# its successor too, whether it was deleted or died; after DEL it is refused, and served again by the
# next container, or by a process of the host that listens there
test_own_udp_connected_before() {
	clients_open
	expect_all_refused
	container_start web bridge -p 8080:80/udp
	expect_all web
	# As they are served doctor has nothing to say of them.
	[ "$plugin" = portmap ] || by_hand 0 doctor --send --from "$client4" 8080/udp
	container_remove web bridge
	# conntrack still sends them to the container that is gone, until the next ADD.
	[ "$plugin" = portmap ] || expect_all_refused
	container_start other bridge -p 8080:80/udp
	expect_all other
	container_die other
	container_start routed ptp -p 8080:80/udp
	[ "$plugin" = portmap ] || expect_all routed # the dead one's rules are still there
	container_remove routed ptp
	serve_on_host 8080
	[ "$plugin" = portmap ] || expect_all host
	container_start last bridge -p 8080:80/udp
	[ "$plugin" = portmap ] || expect_all last
}

# an address that came to the host after the last ADD is reached at once, by TCP and UDP
# also with portmap
test_own_new_address() {
	local socket
	container_start web bridge $both
	ip address add 203.0.113.5/32 dev eth1
	ip address add 2001:db8:113::5/128 dev eth1 nodad
	for socket in 4 6; do
		local asked=203.0.113.5
		[ "$socket" = 4 ] || asked=2001:db8:113::5
		expect_said web "$(on_host "tcp$socket" connect "$asked" 8080 ask)" "TCP to $asked"
		expect_said web "$(on_host "udp$socket" connect "$asked" 8080 ask)" "UDP to $asked"
		expect_said web "$(on_host "udp$socket" sendto "$asked" 8080 recvfrom)" "sendto $asked"
	done
}

# also with portmap
# where a rule masquerades all that leaves, by lo too, sockets of every kind reach the mapped port at the
# host's own addresses, at 127.0.0.1 and at ::1, the first one too, bound to any address, and are answered
# from the address that they asked
test_own_masqueraded() {
	container_start web bridge $both
	all_is_masqueraded
	expect_masqueraded_served
}

# also with portmap
# the same in another of conntrack's zones, about which it can be asked since Linux 6.11
test_own_masqueraded_in_zone() {
	[ "$(kernel_or 6.11)" = 6.11 ] || skip "the kernel says nothing about other zones than the default one"
	container_start web bridge $both
	zone_set 7
	all_is_masqueraded
	expect_masqueraded_served
}

all_is_masqueraded() {
	nft 'add table inet foreign; add chain inet foreign out { type nat hook postrouting priority srcnat + 1; };
		add rule inet foreign out masquerade'
}

expect_masqueraded_served() {
	local asked source
	for asked in 127.0.0.1 "$host4" "$host4_second" ::1 "$host6" "$host6_second"; do
		for source in 127.0.0.1 127.0.0.5 ::1 "$host4_second" "$host6_second" none; do
			[ "$plugin" = bpf-portmap ] || reference_serves "$source" "$asked" || continue
			case $source$asked in *.*:* | *:*.*) continue ;; esac
			expect_served "$source" "$asked"
		done
	done
}

# also with portmap
# under such a rule, what a process of the host has accepted before the container came stays its own
test_own_masqueraded_before() {
	all_is_masqueraded
	serve_on_host 8080
	conversation_with host before host tcp 127.0.0.1 8080
	conversation_with host before6 host tcp "$host6" 8080
	container_start web bridge $both
	expect_says before host
	expect_says before6 host
	expect_served 127.0.0.1 127.0.0.1
	expect_says before host
}

# It serves neither ::1, nor another loopback address as the source.
reference_serves() { [[ $1 != @(::1|127.0.0.5) && $2 != ::1 ]]; }

# expect_served SOURCE|none ADDRESS: by TCP, connected UDP and sendto, twice
expect_served() {
	local socket bind=(bind "$1" 0) protocol answer
	socket=$(family_of "$2")
	[ "$1" != none ] || bind=()
	for protocol in tcp udp; do
		expect_said web "$(on_host "$protocol$socket" "${bind[@]}" connect "$2" 8080 ask ask)" \
			"$protocol from $1 to $2"
	done
	answer=$(on_host "udp$socket" "${bind[@]}" sendto "$2" 8080 recvfrom sendto "$2" 8080 recvfrom)
	expect_said web "$answer" "sendto from $1 to $2"
	expect_contains "$answer" "from=$(endpoint "$2" 8080)"
}

# also with portmap
# where the container does not listen, sockets are refused at once
test_own_refused() {
	local source
	container_add web bridge $both
	for source in 127.0.0.1 "$host4"; do
		expect_equal "connect: Connection refused" \
			"$(on_host tcp4 bind "$source" 0 connect "$source" 8080)" "TCP from $source"
		expect_equal "ask: Connection refused" \
			"$(on_host udp4 bind "$source" 0 connect "$source" 8080 ask)" "UDP from $source"
	done
	for source in ::1 "$host6"; do
		[ "$plugin$source" != portmap::1 ] || continue
		expect_equal "connect: Connection refused" \
			"$(on_host tcp6 bind "$source" 0 connect "$source" 8080)" "TCP from $source"
		expect_equal "ask: Connection refused" \
			"$(on_host udp6 bind "$source" 0 connect "$source" 8080 ask)" "UDP from $source"
	done
}

# by_loopback: no program at sockets takes the processes' connections to the container, as where there
# is no cgroup2
by_loopback() { ! has_cgroup || umount "$cgroup"; }

# files and datagrams of every size arrive unchanged in both directions, also such as the container
# answers in fragments, without a program at sockets
test_own_sizes() {
	local asked size
	by_loopback
	container_add web bridge -p 8080:80/tcp -p 8081:81/udp
	container_add routed ptp -p 8082:80/tcp -p 8083:81/udp
	for name in web routed; do
		file_serve $name 80
		in_namespace $name "$build/tests/datagrams" echo 81 --background
	done
	for asked in 127.0.0.1 "$host4" ::1 "$host6"; do
		for port in 8080 8082; do
			curl -sS -m $((30 * SLOWER)) -o /run/got "http://$(endpoint "$asked" $port)/file" || fail "from $asked"
			cmp /run/www/file /run/got || fail "a file from $asked port $port"
			expect_contains "$(curl -sS -m $((30 * SLOWER)) --data-binary @/run/www/file \
				"http://$(endpoint "$asked" $port)/cgi-bin/sum")" "$(md5sum </run/www/file)"
		done
		for size in 1 1472 1473 4000 60000; do
			for port in 8081 8083; do
				expect_equal whole "$("$build/tests/datagrams" ask "$asked" $port $size)" \
					"$size bytes to $asked port $port"
			done
		done
	done
}

# what the host's own processes say to each other with a mapped port as their source is not taken, nor
# is a connection to a listener of the host that was there before the container; a mapping goes before
# a listener that asks for more
test_own_answers_stay() {
	serve_on_host 8080
	serve_on_host 9999
	conversation_with host before host tcp 127.0.0.1 8080
	container_start web bridge $both
	expect_says before host
	local round source
	for round in 1 2; do
		for source in 127.0.0.1 "$host4"; do
			expect_said host "$(on_host udp4 bind "$source" 8080 connect "$source" 9999 ask)" UDP
		done
		for source in ::1 "$host6"; do
			expect_said host "$(on_host udp6 bind "$source" 8080 connect "$source" 9999 ask)" UDP
		done
	done
	expect_said host "$(on_host tcp4 bind 127.0.0.2 8080 connect 127.0.0.1 9999 ask)" TCP
	expect_said web "$(on_host udp4 bind 127.0.0.1 9998 connect 127.0.0.1 8080 ask)" UDP
	expect_said web "$(on_host udp4 bind 127.0.0.1 9999 connect 127.0.0.1 8080 ask)" UDP
	expect_said web "$(on_host tcp4 bind 127.0.0.1 9998 connect 127.0.0.1 8080 ask)" TCP
}

# with "localhost" false, at an excluded address, and where the mapping has another address, the host's
# own listener is reached
test_own_not_mapped() {
	local source socket
	conflist off bridge "$(with_ours '{"localhost": false}')"
	conflist excluded bridge "$(with_ours "{\"excludeCIDRs\": [\"127.9.0.0/16\"]}")"
	container_start any bridge -p 9000:80/tcp # so that lo has the program
	container_start web off $both
	container_start other excluded -p 8081:80/tcp -p 8081:80/udp
	container_start one bridge -p 127.0.0.1:8082:80/tcp -p 127.0.0.1:8082:80/udp
	for port in 8080 8081 8082; do serve_on_host $port; done
	for socket in tcp4 udp4; do
		for source in 127.0.0.1 127.9.9.9; do
			expect_said host "$(on_host $socket bind "$source" 0 connect "$source" 8080 ask)" "$socket"
		done
		expect_said host "$(on_host $socket bind 127.0.0.1 0 connect 127.9.9.9 8081 ask)" "$socket"
		expect_said other "$(on_host $socket bind 127.9.9.9 0 connect 127.0.0.1 8081 ask)" "$socket"
		expect_said one "$(on_host $socket bind 127.9.9.9 0 connect 127.0.0.1 8082 ask)" "$socket"
		expect_said host "$(on_host $socket bind 127.0.0.1 0 connect 127.9.9.9 8082 ask)" "$socket"
		expect_said host "$(on_host $socket bind 127.0.0.1 0 connect "$host4" 8082 ask)" "$socket"
	done
}

# policy routing that sends to lo what is for others, as for a transparent proxy, leaves that to the
# proxy, also on a mapped port
test_own_transparent_proxy() {
	container_start web bridge $both
	ip route add local default dev lo table 100
	ip rule add fwmark 7 lookup 100
	nft -f - <<-'END'
		table ip proxy {
			chain output {
				type route hook output priority mangle
				ip daddr 198.51.100.0/24 tcp dport 8080 meta mark set 7
			}
		}
	END
	capture_start taken web eth0 'tcp port 80'
	on_host tcp4 connect 198.51.100.7 8080 >/dev/null &
	sleep 0.5
	expect_captured_nothing taken
}

# no packet with a loopback address leaves lo, whatever the sysctls say
test_own_stays_in_lo() {
	local setting
	container_start web bridge $both
	for setting in /proc/sys/net/ipv4/conf/*/route_localnet; do echo 1 >"$setting"; done
	capture_start inside web eth0 'net 127.0.0.0/8 or host ::1'
	capture_start outside host cni0 'net 127.0.0.0/8 or host ::1'
	for asked in 127.0.0.1 "$host4"; do
		expect_said web "$(on_host tcp4 bind 127.0.0.5 0 connect "$asked" 8080 ask)" TCP
		expect_said web "$(on_host udp4 bind 127.0.0.5 0 connect "$asked" 8080 ask)" UDP
	done
	expect_said web "$(on_host udp6 bind ::1 0 connect ::1 8080 ask)" UDP
	expect_captured_nothing inside
	expect_captured_nothing outside
}

# a firewall in the container, with NAT and connection tracking of its own, sees a connection of its own
test_own_firewall_inside() {
	container_start web bridge -p 8080:8080/tcp -p 8080:8080/udp
	in_namespace web nft -f - <<-'END'
		table inet inside {
			chain nat {
				type nat hook prerouting priority dstnat
				tcp dport 8080 redirect to :80
				udp dport 8080 redirect to :80
			}
			chain input {
				type filter hook input priority filter; policy drop
				meta l4proto { icmp, icmpv6 } accept
				ct state established accept
				ct state new ct status dnat accept
			}
		}
	END
	nft add table inet host
	nft add chain inet host input '{ type filter hook input priority 0; }'
	nft add rule inet host input ct state invalid drop
	expect_said web "$(on_host tcp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 ask)" TCP
	expect_said web "$(on_host udp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 ask)" UDP
	expect_said web "$(on_host tcp6 bind ::1 0 connect ::1 8080 ask)" "TCP over IPv6"
	expect_said web "$(on_host udp6 connect "$host6" 8080 ask)" "UDP over IPv6"
}

# a server in the container is told that its client has gone
test_own_error_to_container() {
	local asked server seen
	container_add web bridge -p 8081:81/udp
	(exec "$build/tests/world" in web "$build/tests/datagrams" echo 81) &
	server=$!
	wait_until 5 "$build/tests/datagrams" ask 127.0.0.1 8081 100 >/run/said || fail "$(cat /run/said)"
	for asked in 127.0.0.1 "$host4" ::1 "$host6"; do
		capture_start errors web eth0 'icmp[icmptype] == icmp-unreach or icmp6[icmp6type] == 1'
		kill -STOP "$server"
		on_host "udp$(family_of "$asked")" bind "$asked" 0 connect "$asked" 8081 \
			sendmsg "$asked" 8081 >/run/said
		kill -CONT "$server"
		wait_until 3 file_says unreachable /run/errors.capture || fail "$asked: no error"
		seen=$(capture_stop errors)
		expect_contains "$seen" " $(address_of_family web "$(family_of "$asked")")"
	done
	kill "$server"
}

# family_of ADDRESS: 4 or 6
family_of() { case $1 in *:*) echo 6 ;; *) echo 4 ;; esac; }
address_of_family() { "address$2" "$1"; }
