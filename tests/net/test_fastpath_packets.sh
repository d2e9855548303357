# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fastpath_packets.sh - special packets of flows that skip the IP stack: fragments, too large
# ones, with an expiring TTL, errors about them. A firewall drops what conntrack calls invalid.

# Port 9000, in the container 80, echoes in fragments that are in order; 9009 (89) in reverse order.
echoes_start() {
	guard 'udp dport { 89, 9009 } ct state new accept'
	stack_watch
	container_add echo bridge -p 8080:80/udp -p 8089:89/udp
	in_namespace echo "$datagrams" echo 80 --background
	in_namespace echo "$datagrams" echo 89 $(pieces_by_hand backward cni0) --background
	in_namespace server "$datagrams" echo 9000 --background
	in_namespace server "$datagrams" echo 9009 $(pieces_by_hand backward eth1) --background
}

# fragments_skip NAMESPACE ADDRESS PORT HOW...: after three small datagrams
fragments_skip() {
	local who=$1 address=$2 port=$3
	shift 3
	expect_whole "$who" "$address" "$port" 10 --count 3 --source-port 5000
	expect_skips udp expect_whole "$who" "$address" "$port" 9000 --count 2 --source-port 5000 "$@"
}

# datagrams in fragments, in order, in reverse order and each one twice, in both directions, mapped
# and out: all fragments of a flow that skips the IP stack skip it
test_fastpath_fragments() {
	local order address
	echoes_start
	for order in forward backward twice; do
		for address in "$host4" "$host6"; do
			fragments_skip client "$address" 8080 $(pieces_by_hand "$order" eth0)
			fragments_skip client "$address" 8089 $(pieces_by_hand "$order" eth0)
		done
		for address in "$server4" "$server6"; do
			fragments_skip echo "$address" 9000 $(pieces_by_hand "$order" cni0)
			fragments_skip echo "$address" 9009 $(pieces_by_hand "$order" cni0)
		done
	done
	expect_no_invalid
}

# paused_datagram NAMESPACE ADDRESS PORT NEXT-HOP COMMAND...: sends the first fragment of a
# datagram, runs the command, then sends the other fragments
paused_datagram() {
	local who=$1 address=$2 port=$3 hop=$4 asks first
	shift 4
	mkfifo /run/paused
	capture_start first "$who" eth0 "(ip[6:2] & 0x3fff = 0x2000) or (ip6[6] = 44 and ip6[42:2] = 1)"
	in_namespace "$who" "$datagrams" ask "$address" "$port" 4000 --source-port 5000 --pause \
		--timeout 3000 $(pieces_by_hand forward "$hop") </run/paused >/run/answer &
	asks=$!
	exec {first}>/run/paused
	wait_until 5 test -s /run/first.capture || fail "no first fragment was sent"
	"$@"
	echo >&"$first"
	exec {first}>&-
	wait "$asks" || fail "$who to $(endpoint "$address" "$port") with $*: $(cat /run/answer)"
	capture_stop first >/dev/null
	rm /run/paused
}

# datagram_keeps_path NAMESPACE ADDRESS PORT NEXT-HOP
datagram_keeps_path() {
	connections_forget
	expect_whole "$1" "$2" "$3" 10 --count 3 --source-port 5000
	expect_skips udp expect_whole "$1" "$2" "$3" 10 --count 2 --source-port 5000
	paused_datagram "$1" "$2" "$3" "$4" flows_age 7
	flows_age 7
	paused_datagram "$1" "$2" "$3" "$4" flows_age -7
	expect_skips udp expect_whole "$1" "$2" "$3" 10 --count 2 --source-port 5000
}

# all fragments of a datagram take one path, though between them its flow returns to the IP stack or
# leaves it, because conntrack, which reassembles datagrams, would wait for the others in vain
test_fastpath_fragments_one_path() {
	echoes_start
	both datagram_keeps_path client @host 8080 eth0
	both datagram_keeps_path echo @server 9000 cni0
	expect_no_invalid
}

# bulk_open NAMESPACE ADDRESS PORT: 1 MB is echoed, then conntrack forgets the connection;
# bulk_go_on: the same amount again
bulk_open() {
	piped_open bulk in_namespace "$1" "$build/tests/bulk" ask tcp "$2" "$3" --bytes 2000000 --on-demand
	piped_send bulk
	expect_equal half "$(piped_read bulk 20)" "the first transfer"
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
}

bulk_go_on() {
	piped_send bulk
	piped_close bulk || fail "the second transfer: $(piped_read bulk 1)"
}

bulk_world() {
	guard
	stack_watch
	conntrack_times tcp_timeout_syn_recv=1
	container_add web bridge -p 8080:80/tcp
	in_namespace web "$build/tests/bulk" serve 80 --background
	in_namespace "$1" "$build/tests/bulk" serve 9000 --background
}

# TCP segments that a router has fragmented arrive after conntrack has forgotten the connection
test_fastpath_fragments_tcp() {
	local address
	path_make
	in_namespace far sysctl -qw net.ipv4.ip_no_pmtu_disc=1
	bulk_world far
	capture_start fragments client eth0 "tcp and ip[6:2] & 0x3fff != 0"
	bulk_open far "$host4" 8080
	bulk_go_on
	bulk_open web "$far4" 9000
	bulk_go_on
	address=$(capture_stop fragments)
	expect_contains "$address" "$far4"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_no_invalid
}

path_mtu_set() {
	ip -n client link set middle mtu "$1"
	ip -n hop link set eth0 mtu "$1"
}

# path_shrinks_for NAMESPACE ADDRESS PORT: during a connection
path_shrinks_for() {
	local name
	path_mtu_set 1500
	for name in far web; do
		ip -n "$name" route flush cache
		ip -n "$name" -6 route flush cache
	done
	bulk_open "$@"
	path_mtu_set 1300
	bulk_go_on
}

# The firewall decides about errors from outside; to conntrack they are invalid after it has
# forgotten the connection.
errors_allowed='meta l4proto { icmp, ipv6-icmp } ct state invalid accept'

# limit 90 s
# a router's error that packets are too large reaches the container after conntrack has forgotten
# the connection, mapped and out, where the firewall accepts it
test_fastpath_error_from_router() {
	local seen
	path_make
	bulk_world far
	guard "$errors_allowed"
	capture_start errors web eth0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	both path_shrinks_for far @host 8080
	both path_shrinks_for web @far 9000
	seen=$(capture_stop errors)
	expect_contains "$seen" "need to frag" "packet too big"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	[ "$(forwarded icmp)" -ge 4 ] || fail "errors through the IP stack: $(forwarded icmp)"
	expect_no_invalid
}

route_mtu_set() {
	ip route change 192.0.2.0/24 dev eth0 proto kernel scope link src "$host4" mtu lock "$1"
	ip -6 route change 2001:db8:1::/64 dev eth0 proto kernel metric 256 mtu lock "$1"
}

# route_shrinks_for NAMESPACE ADDRESS PORT: during a connection
route_shrinks_for() {
	route_mtu_set 1500
	ip -n web route flush cache
	ip -n web -6 route flush cache
	bulk_open "$@"
	route_mtu_set 1400
	sleep 2 # the route is looked up once a second
	bulk_go_on
}

# limit 90 s
# a packet larger than the route's MTU goes to the IP stack, which tells the container, and the
# connection continues past the stack, though conntrack has forgotten it
test_fastpath_larger_than_route() {
	local seen
	bulk_world client
	errors_unlimited host
	capture_start errors web eth0 "icmp[0:2] = 0x0304 or (ip6[6] = 58 and ip6[40] = 2)"
	both route_shrinks_for client @host 8080
	both route_shrinks_for web @client 9000
	seen=$(capture_stop errors)
	expect_contains "$seen" "need to frag (mtu 1400)" "packet too big, mtu 1400"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_no_invalid
}

# hops_left NAMESPACE N PORT: the TTL of all that is sent to that port there; 0: the usual one
hops_left() {
	in_namespace "$1" nft -f - <<-RULES
	table inet hops
	delete table inet hops
	table inet hops {
		chain output {
			type filter hook output priority 0;
			$([ "$2" = 0 ] || echo "meta l4proto { tcp, udp } th dport $3 ip ttl set $2
				meta l4proto { tcp, udp } th dport $3 ip6 hoplimit set $2")
		}
	}
	RULES
}

# exceeded PROTOCOL-NUMBER ADDRESS PORT: a filter for "time exceeded" errors about packets to an
# IPv4 address and port, and for IPv6 to the port
exceeded() {
	printf '(icmp[0] = 11 and icmp[17] = %d and icmp[24:4] = 0x%02x%02x%02x%02x and icmp[30:2] = %d)' \
		"$1" $(tr . ' ' <<<"$2") "$3"
	printf ' or (ip6[6] = 58 and ip6[40] = 3 and ip6[54] = %d and ip6[90:2] = %d)' "$1" "$3"
}

# expect_exceeded NAME HOST4 HOST6 TO4 TO6: what capture NAME must have seen
expect_exceeded() {
	local seen
	seen=$(capture_stop "$1")
	expect_contains "$seen" "IP $2 > $4: ICMP time exceeded" "IP6 $3 > $5: ICMP6, time exceeded"
}

# limit 120 s
# the IP stack answers a packet whose TTL expires here, from the host's address, whatever conntrack
# knows; one with a hop left arrives
test_fastpath_last_hop() {
	guarded_world
	errors_unlimited host
	conntrack_times tcp_timeout_syn_recv=1
	conversations_open --timeout 700
	conversations_skip_stack
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	capture_start tcp_outside client eth0 "$(exceeded 6 "$host4" 8080)"
	capture_start udp_outside client eth0 "$(exceeded 17 "$host4" 8080)"
	capture_start tcp_inside web eth0 "$(exceeded 6 "$server4" 9000)"
	capture_start udp_inside web eth0 "$(exceeded 17 "$server4" 9000)"
	hops_left client 1 8080
	hops_left web 1 9000
	conversations_silent tcp udp
	hops_left client 2 8080
	hops_left web 2 9000
	conversations_each expect_fast_again tcp udp
	expect_exceeded tcp_outside "$host4" "$host6" "$client4" "$client6"
	expect_exceeded udp_outside "$host4" "$host6" "$client4" "$client6"
	expect_exceeded tcp_inside "$bridge4" "$bridge6" "$(address4 web)" "$(address6 web)"
	expect_exceeded udp_inside "$bridge4" "$bridge6" "$(address4 web)" "$(address6 web)"
	expect_no_invalid
}

servers_end() {
	local name pid
	for name; do
		for pid in $(ip netns pids "$name"); do
			case $(cat "/proc/$pid/cmdline" 2>/dev/null) in *serve*)
				kill -9 "$pid"
				wait_until 5 have_ended "$pid" || fail "server $pid of $name stays" ;;
			esac
		done
	done
}

expect_says_refused() { expect_contains "$(say "$1")" refused; }

# ports_close: closes the ports of four new UDP flows, and sets $errors to how many of the four errors
# about that have passed the IP stack.
ports_close() {
	local before
	conversations_open --connected
	conversations_each expect_says udp
	conversations_each expect_says udp
	conversations_each expect_fast udp
	servers_end web server
	before=$(forwarded icmp)
	conversations_each expect_says_refused udp
	errors=$(($(forwarded icmp) - before))
}

# a port that is closed during a UDP flow is reported to the sender: mapped past the IP stack (unless
# the flow has its turn in the stack just then: it is tried three times), and out through it
test_fastpath_error_from_end() {
	local errors
	guarded_world
	errors_unlimited web server
	ports_close
	for _ in 2 3; do
		[ "$errors" != 2 ] || break
		serve_in web 80
		serve_in server 9000
		ports_close
	done
	expect_equal 2 "$errors" "errors through the IP stack"
	expect_no_invalid
}

# administratively_prohibits NAMESPACE PORT: answers packets to that port with an ICMP error
administratively_prohibits() {
	in_namespace "$1" nft -f - <<-RULES
	table inet prohibits {
		chain input {
			type filter hook input priority 0;
			tcp dport $2 reject with icmpx admin-prohibited
		}
	}
	RULES
}

# an error about a TCP connection that conntrack has forgotten is delivered, and quotes the
# receiver's own packet: from the container past the IP stack, to it where the firewall accepts it
test_fastpath_error_forgotten() {
	local seen
	guarded_world
	guard "$errors_allowed"
	errors_unlimited web server
	conntrack_times tcp_timeout_syn_recv=1
	conversations_open --timeout 500
	conversations_each expect_says tcp
	conversations_each expect_fast tcp
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	capture_start outside client eth0 "icmp or (ip6[6] = 58 and ip6[40] = 1)"
	capture_start inside web eth0 "(icmp or (ip6[6] = 58 and ip6[40] = 1)) and not src net 10.88.0.0/16 and not src net fd00:88::/64"
	administratively_prohibits web 80
	administratively_prohibits server 9000
	conversations_each say tcp
	seen=$(capture_stop outside)
	expect_contains "$seen" "IP $host4 > $client4: ICMP host $host4 unreachable - admin prohibited"
	expect_contains "$seen" "IP6 $host6 > $client6: ICMP6, destination unreachable,  unreachable prohibited $host6"
	seen=$(capture_stop inside)
	expect_contains "$seen" "IP $server4 > $(address4 web): ICMP host $server4 unreachable - admin prohibited"
	expect_contains "$seen" "IP6 $server6 > $(address6 web): ICMP6, destination unreachable,  unreachable prohibited $server6"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	[ "$(forwarded icmp)" -ge 2 ] || fail "errors through the IP stack: $(forwarded icmp)"
	expect_no_invalid
}
