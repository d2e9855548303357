# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_own_processes.sh - what the host's own processes send to a mapped port and no program at
# sockets has sent to the container: it comes to lo, and is translated there. What those programs do is
# tested in test_localhost.sh.

socket_tool=$build/tests/local
both='-p 8080:80/tcp -p 8080:80/udp'

# on_host SOCKET STEP...: the result of the last step
on_host() { { "$socket_tool" "$@" 2>&1 || true; } | tail -n 1; }

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
