# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fastpath_again.sh - flows that skip the IP stack and end, and new flows with the same tuple.

# again NAMESPACE ADDRESS PORT ANSWER [OPTION...]: a connection from port 7000 that begins through
# the IP stack, then skips it, and ends
again() {
	local who=$1 address=$2 port=$3 name=$4 before
	shift 4
	before=$(forwarded tcp)
	conversation_with "$name" again "$who" tcp "$address" "$port" --source-port 7000 "$@"
	[ "$(forwarded tcp)" -ge $((before + 2)) ] || fail "SYN or SYN-ACK skipped the IP stack"
	expect_fast again "$name" tcp
	conversation_close again
	wait_until 5 no_connection "$who" "$name" || fail "the connection has not ended"
}

# each new connection from the same client port begins through the IP stack and then skips it, after
# FIN and after RST, while conntrack still has the one before; one that the firewall refuses by now is
# refused
test_fastpath_same_port_again() {
	local name
	guarded_world
	for name in client web server; do
		in_namespace "$name" sysctl -qw net.ipv4.tcp_max_tw_buckets=0
	done
	for _ in 1 2; do
		again client "$host4" 8080 web
		again client "$host4" 8080 web --reset
		again web "$server6" 9000 server
		again web "$server6" 9000 server --reset
	done
	expect_no_invalid
	conntrack -F 2>/dev/null
	conntrack_times tcp_timeout_syn_recv=1
	again client "$host4" 8080 web
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	guard 'tcp dport 80 ct state new drop'
	hits_count web eth0 80
	expect_no_answer client tcp "$host4" 8080 --source-port 7000
	expect_equal 0 "$(hits web)" "packets that got through"
}

# a forged RST or SYN neither ends a connection that skips the IP stack nor makes it return to the
# stack
test_fastpath_forged_packets() {
	local flags address source
	guarded_world
	for address in "$host4" "$host6"; do
		source=$client4
		[ "$address" = "$host4" ] || source=$client6
		conversation_with web talk client tcp "$address" 8080 --source-port 7000
		expect_fast talk web tcp
		for flags in R RA FA; do
			forge client eth0 tcp "$source" 7000 "$address" 8080 --tcp-flags "$flags"
			ROUNDS=2 expect_fast talk web tcp # the forged packet may pass late
		done
		forge client eth0 tcp "$source" 7000 "$address" 8080 --tcp-flags S
		ROUNDS=2 expect_fast talk web tcp
		conversation_close talk
	done
}

# flows_open NAME: opens conversations with the container; they skip the IP stack
flows_open() {
	conversation_open tcp client tcp "$host4" 8080 --timeout 500
	conversation_open udp client udp "$host6" 8080 --timeout 500
	for _ in 1 2; do
		expect_says tcp "$1"
		expect_says udp "$1"
	done
	expect_fast tcp "$1" tcp
	expect_fast udp "$1" udp
}

# No connection to a removed container has answers any more.
expect_ended() {
	local answer
	answer=$(say "$1" 2>&1) || true # its process may have gone, and the pipe with it
	case $answer in *name=*) fail "$1 still has an answer: $answer" ;; esac
}

# flows that skip the IP stack end with DEL, and the next container with the port receives the
# client's datagrams, also if it has the old one's address
test_fastpath_again_other_container() {
	local address old
	guard
	stack_watch
	container_start first bridge -p 8080:80/tcp -p 8080:80/udp
	address=$(address4 first)
	flows_open first
	container_del first bridge
	expect_ended udp
	expect_ended tcp
	ip netns delete first
	rm /var/lib/cni/networks/bridge/last_reserved_ip.*
	container_start second bridge -p 8080:80/tcp -p 8080:80/udp
	expect_equal "$address" "$(address4 second)"
	expect_says udp second
	expect_says udp second
	expect_fast udp second udp
	expect_ended tcp
	expect_answer client tcp "$host4" 8080 second "$client4"
}

# after a container dies together with its veth, no packet of its flows skips to anywhere; the late
# DEL does not affect its successor's flows
test_fastpath_late_del() {
	guard
	stack_watch
	container_start first bridge -p 8080:80/tcp -p 8080:80/udp
	flows_open first
	container_die first
	expect_ended udp
	container_start second bridge -p 8080:80/tcp -p 8080:80/udp
	expect_says udp second
	expect_says udp second
	expect_fast udp second udp
	conversation_with second later client tcp "$host4" 8080
	expect_fast later second tcp
	runtime del bridge /run/netns/first --id first
	plugin_run DEL first <<<'{"cniVersion":"1.0.0","name":"bridge","type":"bpf-portmap"}'
	container_check second bridge
	expect_answers client "$host6" 8080 second
	expect_fast udp second udp
	expect_fast later second tcp
}
