# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_outside.sh - from clients outside to a mapped port.

# a client outside reaches a bridge's container by TCP and UDP, IPv4 and IPv6, at every address of the
# host, also those of other interfaces and of the bridge, and one that the host gets after ADD, and a
# ptp's, and is seen with its own address
test_outside_every_address() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start routed ptp -p 8081:80/tcp -p 8081:80/udp
	local address
	for address in "$host4" "$host4_second" "$bridge4"; do
		expect_answers client "$address" 8080 web "$client4"
	done
	for address in "$host6" "$host6_second" "$bridge6"; do
		expect_answers client "$address" 8080 web "$client6"
	done
	expect_answers server "$host4_second" 8080 web "$server4"
	expect_answers server "$host6_second" 8080 web "$server6"
	expect_serves routed 8081
	expect_no_answer client tcp 192.0.2.7 8080
	ip address add 192.0.2.7/24 dev eth0
	address6_add 2001:db8:1::7/64 eth0
	ip -n client neighbour flush all # it has just learned that nobody has the address
	expect_answers client 192.0.2.7 8080 web "$client4"
	expect_answers client 2001:db8:1::7 8080 web "$client6"
}

# a port that is not mapped, and the other protocol of one that is, stay the host's
test_outside_unmapped_port() {
	container_start web bridge -p 8080:80/tcp -p 9090:80/udp
	serve_in web 8081
	expect_answer client tcp "$host4" 8080 web
	expect_answer client udp "$host4" 9090 web
	expect_no_answer client udp "$host4" 8080
	expect_no_answer client tcp "$host4" 9090
	expect_no_answer client tcp "$host4" 8081
	serve_on_host 8081
	expect_answers client "$host4" 8081 host "$client4"
}

# IPv4 and IPv6 of one host port belong to different containers
test_outside_families_apart() {
	conflist four bridge ".name = \"four\" | $only_ipv4"
	conflist six bridge ".name = \"six\" | .plugins[0].bridge = \"cni6\" | $only_ipv6"
	container_start one four -p 8080:80/tcp -p 8080:80/udp
	container_start two six -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 one "$client4"
	expect_answers client "$host6" 8080 two "$client6"
}

# hostIP 0.0.0.0 means every IPv4 address and :: every IPv6 address, not the other family; a
# mapping with another hostIP applies to that address only, and takes precedence over one without,
# whichever was added first
test_outside_host_ip() {
	container_start four bridge -p 0.0.0.0:8004:80/tcp
	container_start six bridge -p '[::]:8006:80/tcp'
	expect_answer client tcp "$host4" 8004 four
	expect_answer client tcp "$host4_second" 8004 four
	expect_no_answer client tcp "$host6" 8004
	expect_answer client tcp "$host6" 8006 six
	expect_answer client tcp "$host6_second" 8006 six
	expect_no_answer client tcp "$host4" 8006
	container_start web bridge -p "$host4:8007:80/tcp" -p "$host4:8007:80/udp" \
		-p "[$host6]:8007:80/tcp"
	expect_answers client "$host4" 8007 web "$client4"
	expect_answer client tcp "$host6" 8007 web "$client6"
	expect_no_answers client "$host4_second" 8007
	expect_no_answer client tcp "$host6_second" 8007
	container_start any1 bridge -p 8080:80/tcp -p 8080:80/udp
	container_start exact1 bridge -p "$host4:8080:80/tcp" -p "$host4:8080:80/udp"
	container_start exact2 bridge -p "$host4:9090:80/tcp" -p "$host4:9090:80/udp"
	container_start any2 bridge -p 9090:80/tcp -p 9090:80/udp
	expect_answers client "$host4" 8080 exact1
	expect_answers client "$host4_second" 8080 any1
	expect_answers client "$host6" 8080 any1
	expect_answers client "$host4" 9090 exact2
	expect_answers client "$host4_second" 9090 any2
}

# one container has many ports of both families, and each leads to the right port
test_outside_many_ports() {
	local port options=()
	for port in $(seq 9001 9020); do options+=(-p "$port:$((port - 1000))/tcp"); done
	container_add web bridge "${options[@]}"
	for port in $(seq 8001 8020); do
		in_namespace web "$peer" serve tcp any "$port" --name "port$port" --background
	done
	for port in $(seq 9001 9020); do
		expect_answer client tcp "$host4" "$port" "port$((port - 1000))" "$client4"
		expect_answer client tcp "$host6" "$port" "port$((port - 1000))" "$client6"
	done
}

# packets to the same port elsewhere, through the host or from a container, are not translated
test_outside_forwarded_untouched() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	serve_in server 8080
	container_start other bridge
	serve_in other 8080
	expect_answers client "$host4" 8080 web "$client4"
	both expect_answers client @server 8080 server @client
	expect_answers client "$(address4 other)" 8080 other "$client4"
	expect_answers client "$(address6 other)" 8080 other "$client6"
	expect_answers other "$host4" 8080 web
	both expect_answers other @server 8080 server
	expect_answers web "$server4" 8080 server
}

# a frame with the mapped address and port but another MAC is not translated
test_outside_foreign_frame() {
	container_start web bridge -p 8080:80/udp
	capture_start web web eth0 "udp port 80 and src host $client4"
	forge client 02:00:00:00:00:99 udp "$client4" 7001 "$host4" 8080
	forge client ff:ff:ff:ff:ff:ff udp "$client4" 7002 "$host4" 8080
	forge client eth0 udp "$client4" 7003 "$host4" 8080
	local seen
	seen=$(capture_stop web)
	expect_contains "$seen" "$client4.7003"
	case $seen in *700[12]*) fail "a frame for another host was taken: $seen" ;; esac
	seen=$(bpftool map dump pinned "$pins/connections")
	expect_contains "$seen" 7003
	case $seen in *700[12]*) fail "a frame for another host made a flow: $seen" ;; esac
}

# a direct conversation with a container is never masqueraded while it lasts
test_outside_direct_conversation() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	local protocol answer
	for protocol in tcp udp; do
		conversation_open "direct_$protocol" client "$protocol" "$(address4 web)" 80
		for _ in 1 2 3; do
			answer=$(say "direct_$protocol")
			expect_contains "$answer" "from=$(address4 web):80"
		done
	done
}

# same_tuple_twice NAMESPACE PROTOCOL ADDRESS OTHER
same_tuple_twice() {
	local who=$1 protocol=$2 host=$3 container=$4 answer
	conversation_open mapped "$who" "$protocol" "$host" 80 --source-port 7000 --connected
	conversation_open direct "$who" "$protocol" "$container" 80 --source-port 7000 --connected
	for _ in 1 2 3; do
		answer=$(say mapped)
		expect_contains "$answer" "name=web" "from=$(endpoint "$host" 80)"
		answer=$(say direct)
		expect_contains "$answer" "name=web" "from=$(endpoint "$container" 80)"
	done
	conversation_close mapped
	conversation_close direct
}

# also with fastPath off
# the same tuple of a client, or of another container on the bridge, to the host port and to the
# container's address are two connections, and so are those of a client to two host addresses
test_outside_same_tuple_twice() {
	local who protocol
	container_start web bridge -p 80:80/tcp -p 80:80/udp
	container_add near bridge
	for who in client near; do
		for protocol in tcp udp; do
			same_tuple_twice "$who" "$protocol" "$host4" "$(address4 web)"
			same_tuple_twice "$who" "$protocol" "$host6" "$(address6 web)"
		done
	done
	for protocol in tcp udp; do same_tuple_twice client "$protocol" "$host4" "$host4_second"; done
}

# also with fastPath off, always
# each new connection from the same client port works
test_outside_same_client_port_again() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	in_namespace client sysctl -qw net.ipv4.tcp_max_tw_buckets=0
	port_is_free() { [ -z "$(in_namespace client ss -Htan sport = :7000)" ]; }
	for _ in 1 2 3 4; do
		expect_answer client tcp "$host4" 8080 web "$client4" --source-port 7000
		wait_until 5 port_is_free # the container's end closes too
		expect_answer client tcp "$host4" 8080 web "$client4" --source-port 7000 --reset
		wait_until 5 port_is_free
		expect_answer client udp "$host4" 8080 web "$client4" --source-port 7000
	done
}

# also with fastPath off
# a connection that was idle for long continues after its flows were lost
test_outside_flows_lost() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	local protocol
	for protocol in tcp udp; do
		conversation_with web "lost_$protocol" client "$protocol" "$host4" 8080
	done
	connections_forget
	for protocol in tcp udp; do
		expect_contains "$(say "lost_$protocol")" "from=$host4:8080"
		expect_contains "$(say "lost_$protocol")" "from=$host4:8080"
	done
}
