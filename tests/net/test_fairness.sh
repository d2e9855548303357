# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fairness.sh - what one client or container may use up, and what is left for others.
# FLOOD=20: seconds of each load.

least_flows=$((flow_entries / 2)) # that one table has room for, at the very least
load_seconds=${FLOOD:-3}
untouched_port=8080

# fair_world: the container victim, with a port and a server outside, and a small table
fair_world() {
	[ -x "$herd" ] || skip "no herd"
	herds_prepare
	small_table
	container_start victim small -p "$untouched_port:80" -p "$untouched_port:80/udp" -p 8081:81 \
		-p 8081:81/udp
	serve_crowd victim 81
	serve_in server 7000 server
	expect_untouched "before" victim "$untouched_port"
}

expect_none_refused() {
	local counter
	[ "$plugin" = bpf-portmap ] || return 0
	for counter in drop_flow_limit drop_table_full; do
		expect_equal 0 "$(counted "$counter")" "$counter"
	done
}

# ports_reusable NAMESPACE: a port can be used again as soon as its connection is closed.
ports_reusable() {
	in_namespace "$1" sysctl -qw net.ipv4.ip_local_port_range='1024 65535' \
		net.ipv4.tcp_max_tw_buckets=0
}

# limit 90 s
# one client that opens connections and falls silent closes the port for no other client
test_client_of_many_connections() {
	local said
	fair_world
	said=$(herd_outside tcp 100.64.0.1 8081 20000 --silent)
	echo "note: handshakes of one client: $said"
	expect_untouched "one client has opened connections, and is silent" victim "$untouched_port"
	expect_calls "one client has opened connections, and is silent" client tcp "$host4" 8081
	said=$(herd_outside tcp 100.64.0.1 8081 20000 --first 30000)
	echo "note: and with data: $said"
	expect_untouched "one client has opened more of them" victim "$untouched_port"
	# whose ends the client does not acknowledge
	processes_end victim
	serve_in victim 80
	serve_crowd victim 81
	expect_untouched "the server has closed them" victim "$untouched_port"
	expect_calls "the server has closed them" client tcp "$host4" 8081
}

# limit 90 s
# one client's datagrams from thousands of ports close the port for no other client
test_client_of_many_datagrams() {
	local said
	fair_world
	said=$(herd_outside udp 100.64.0.1 8081 20000)
	echo "note: answered datagrams of one client: $said"
	expect_untouched "one client has sent datagrams" victim "$untouched_port"
}

# limit 120 s
# a client that opens and closes thousands of connections is never refused
test_connections_by_the_thousand() {
	fair_world
	serve_crowd server 9000
	ports_reusable client
	ports_reusable victim
	calls client tcp "$host4" 8081 6000 --at-once 64 ||
		fail "6,000 connections one after another: $(cat /run/calls)"
	echo "note: a burst of connections: $(cat /run/calls)"
	calls client tcp "$host4" 8081 10000000 --at-once 64 --seconds "$load_seconds" ||
		fail "connections one after another: $(cat /run/calls)"
	echo "note: $load_seconds s of connections: $(cat /run/calls)"
	calls victim tcp "$server4" 9000 10000000 --at-once 64 --seconds "$load_seconds" ||
		fail "the container's own: $(cat /run/calls)"
	echo "note: $load_seconds s of the container's own: $(cat /run/calls)"
	expect_none_refused
	expect_untouched "connections by the thousand" victim "$untouched_port"
}

# limit 90 s
# a flow that another container opens to a container's own address is not charged to that one
test_pings_of_neighbour() {
	local said list
	fair_world
	conflist routed ptp "$(with_ours "{flowEntries: $flow_entries}")"
	for list in small routed; do
		container_add "$list" "$list"
		herd_hush "$list"
		said=$(herd_of "$list" icmp "$(address4 victim)" 0 6000)
		echo "note: pings of another container, $list: $said"
		expect_untouched "a neighbour has sent pings, $list" victim "$untouched_port"
		said=$(herd_of "$list" udp "$(address4 victim)" 81 20000)
		echo "note: datagrams of another container, $list: $said"
		expect_untouched "a neighbour has sent datagrams, $list" victim "$untouched_port"
	done
}

# limit 90 s
# pings from outside to a container's own address leave it all its flows
test_pings_from_outside() {
	local said
	fair_world
	said=$(in_namespace client "$herd" icmp eth0 "$(mac_of eth0)" 100.64.0.1 \
		"$(address4 victim)" 0 20000)
	echo "note: pings from outside: $said"
	expect_untouched "a client has sent pings" victim "$untouched_port"
}

# hog NUMBER: a container whose clients, or which itself, opens as many connections as it can
hog() {
	local said name=hog$1 port=$((9100 + $1))
	container_add "$name" small -p "$port:81"
	if [ $(($1 % 2)) = 1 ]; then
		serve_crowd "$name" 81
		said=$(herd_outside tcp "100.$((64 + $1)).0.0" "$port" $((2 * flow_entries)) \
			--sources 1024)
	else
		herd_hush "$name"
		said=$(herd_of "$name" tcp 198.51.100.20 9000 $((2 * flow_entries)) --destinations 16)
	fi
	[ "$(field_of answered "$said")" -gt $((least_flows / 16)) ] || fail "$name has too few connections: $said"
	echo "note: hog $1: $said"
}

# limit 180 s
# one, two, three containers that take all they can get leave enough for the next one
test_hogs() {
	local number share said last
	herds_prepare
	small_table
	for last in {20..35}; do ip -n server address add "198.51.100.$last/24" dev eth0; done
	serve_crowd server 9000
	serve_in server 7000 server
	for number in 1 2 3; do
		hog "$number"
		share=$((least_flows / (number + 1) / (number + 2)))
		container_start "next$number" small -p 8080:80 -p 8080:80/udp -p 8081:81
		serve_crowd "next$number" 81
		said=$(herd_outside tcp 100.80.0.0 8081 "$share" --sources 256)
		expect_equal "$share" "$(field_of answered "$said")" \
			"connections of the next one, beside $number that take all they get"
		expect_untouched "$number hogs" "next$number" 8080
		container_remove "next$number" small
	done
}

# limit 120 s
# one container's datagrams and SYNs from all its ports leave ports to that server for others
test_ports_towards_one_server() {
	local protocol pid
	fair_world
	container_add bad small
	herd_hush bad
	in_namespace server nft -f - <<-'RULES'
	table ip deaf {
		chain input {
			type filter hook input priority 0;
			udp length 10 counter drop comment "the herd's"
			tcp doff 5 tcp flags & (syn | ack) == syn counter drop comment "the herd's"
		}
	}
	RULES
	for protocol in udp tcp; do
		expect_calls "before, $protocol" victim "$protocol" "$server4" 7000
		herd_of bad "$protocol" "$server4" 7000 65535 --first 1 --seconds 6 --rate 30000 \
			>/run/herd &
		pid=$!
		sleep 3
		expect_calls "meanwhile" victim "$protocol" "$server4" 7000
		wait "$pid"
		echo "note: $protocol from 65,535 ports: $(cat /run/herd)"
		expect_calls "afterwards" victim "$protocol" "$server4" 7000
	done
	in_namespace server nft list table ip deaf >/run/deaf
	grep -q 'packets [1-9][0-9]\{4\}' /run/deaf || fail "the herds did not arrive: $(cat /run/deaf)"
}

# limit 120 s
# two containers whose questions a server has answered, for all ports towards it, leave some to a
# third one that has asked eight hundred times before; IPv4 and IPv6
# also with portmap
test_queries_towards_one_server() {
	local name pids=()
	[ -x "$herd" ] || skip "no herd"
	# fewer than there are places for what is half-open, so that ports are what is short
	conflist few bridge "$(with_ours '{masqPorts: "20000-27999"}')"
	serve_crowd server 9000
	for name in third greedy greedier; do container_add "$name" few; done
	calls third udp "$server4" 9000 800 --at-once 64 || fail "800 before: $(cat /run/calls)"
	for name in greedy greedier; do
		herd_hush "$name"
		herd_of "$name" udp "$server4" 9000 6000 --first 1024 --seconds 4 --rate 1500 \
			>"/run/herd.$name" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for name in greedy greedier; do
		echo "note: $name: $(cat "/run/herd.$name")"
		[ "$(field_of sent "$(cat "/run/herd.$name")")" -gt 5500 ] || skip "the machine is too slow"
	done
	calls third udp "$server4" 9000 300 --interval 3 ||
		fail "300 queries afterwards: $(cat /run/calls) $(drops)"
	calls third udp "$server6" 9000 300 --interval 3 || fail "IPv6: $(cat /run/calls) $(drops)"
}

# limit 120 s
# datagrams with forged sources, now and two seconds later, close no TCP port, nor the way out
# also with portmap
test_forged_datagrams() {
	local said
	fair_world
	for _ in now later; do
		said=$(herd_outside udp 100.64.0.1 8081 9500 --sources 9500)
		echo "note: forged datagrams: $said"
		[ "$(field_of answered "$said")" -gt 8000 ] || fail "not answered: $said"
		expect_calls "forged datagrams" client tcp "$host4" "$untouched_port"
		expect_calls "forged datagrams" client tcp "$host4" 8081
		expect_calls "forged datagrams" victim tcp "$server4" 7000
		sleep 2.1 # from then on they are assured
	done
}

# limit 120 s
# the table never counts as full while much of it is free, or was a removed container's
test_room_that_is_free() {
	local full
	herds_prepare
	small_table
	container_start three small -p 8080:80 -p 8080:80/udp -p 8083:81
	serve_crowd three 81
	serve_in server 7000 server
	ports_reusable client
	room_taken_by one 8081
	full=$(counted drop_table_full)
	# as many as replace all of the free rows
	calls client tcp "$host4" 8083 $flow_entries --at-once 64 ||
		fail "half of the table is free: $(cat /run/calls) $(drops)"
	expect_equal "$full" "$(counted drop_table_full)" "drop_table_full, half of the table free"
	room_taken_by two 8082
	container_remove two small
	full=$(counted drop_table_full)
	expect_untouched "a container has gone" three 8080
	expect_equal "$full" "$(counted drop_table_full)" "drop_table_full, a container was removed"
}

# room_taken_by NAME PORT: all that it can get
room_taken_by() {
	container_add "$1" small -p "$2:81"
	serve_crowd "$1" 81
	herd_outside tcp "100.$(($2 % 64 + 64)).0.0" "$2" $((2 * flow_entries)) --sources 1024 \
		>/run/herd
	echo "note: $1: $(cat /run/herd)"
}

# limit 120 s
# a container's half-open flows to everywhere evict no other one's whose answer takes long
test_half_open_of_neighbour() {
	local protocol pid slowly='--again 3500 --timeout 8000'
	fair_world
	container_add bad small
	container_add slow small -p 8090:90/udp
	in_namespace slow "$callers" serve 90 --delay 3000
	in_namespace server "$callers" serve 7001 --delay 3000
	for protocol in udp tcp; do
		herd_of bad "$protocol" 100.64.0.0 9 1000000 --destinations 1048576 \
			--seconds 9 --rate 30000 >/run/herd &
		pid=$!
		sleep 1
		expect_untouched "half-open $protocol" victim "$untouched_port"
		expect_calls "half-open $protocol" client udp "$host4" 8090 $slowly
		expect_calls "half-open $protocol" victim udp "$server4" 7001 $slowly
		wait "$pid"
		echo "note: half-open $protocol to everywhere: $(cat /run/herd)"
	done
}

# nothing is loaded
# limit 120 s
# a flood from everywhere to one container's port does not affect another container
test_flood_beside_others() {
	local pid kind protocol
	flood_prepare
	container_start victim bridge -p "$untouched_port:80" -p "$untouched_port:80/udp"
	container_start bad bridge -p 8090:80 -p 8090:80/udp
	serve_in server 7000 server
	for kind in tcp udp; do
		flood_from client eth0 "$kind" eth0 "$(mac_of eth0)" "$host4" 8090 \
			"$((load_seconds + 4))" >/run/flood.out &
		pid=$!
		flood_await eth0
		for protocol in tcp udp; do
			expect_calls "a flood, $kind" client "$protocol" "$host4" "$untouched_port" \
				--interval 10
			expect_calls "a flood, $kind" victim "$protocol" "$server4" 7000 --interval 10
		done
		[ "$kind" = udp ] || expect_flooded
		wait "$pid"
		cat /run/flood.out
	done
}

# Nearly all calls to the flooded port itself are answered, as with netfilter. Many datagrams
# overflow the queue of the port's socket, whatever translates.
expect_flooded() {
	calls client tcp "$host4" 8090 100 --at-once 100 --interval 10 || true
	echo "note: the flooded port itself: $(cat /run/calls)"
	[ "$(field_of answered "$(cat /run/calls)")" -ge 90 ] ||
		fail "calls to the flooded port: $(cat /run/calls)"
}

# limit 120 s
# connections that both ends close at the same moment leave nothing behind
test_ends_together() {
	local said
	conflist few bridge "$(with_ours '{maxFlows: 25}')" # the tool has 16 open at a time
	container_add web few -p 8080:80 -p 8081:81
	ports_reusable client
	ports_reusable web
	said=$(in_namespace client "$together" /run/netns/web 80 "$host4" 8080 3000)
	echo "note: both ends at once: $said"
	expect_equal 3000 "$(field_of closed "$said")" "connections, where 25 may be open"
	serve_in web 81 # port 80 has connections that wait for late segments
	expect_calls "afterwards" client tcp "$host4" 8081
}

# nothing is loaded
# limit 120 s
# beside 30,000 UDP flows, connections as fast as the machine can make them: none is refused
test_ordinary_load() {
	local said
	herds_prepare
	conflist ordinary bridge "$(with_ours '{flowEntries: 131072}')"
	container_start web ordinary -p 8081:81/udp -p 8081:81
	serve_crowd web 81
	ports_reusable client
	said=$(herd_outside udp 100.64.0.0 8081 30000 --sources 256)
	expect_equal 30000 "$(field_of answered "$said")" "UDP flows"
	calls client tcp "$host4" 8081 10000000 --at-once 64 --seconds "$load_seconds" ||
		fail "connections beside 30,000 UDP flows: $(cat /run/calls)"
	echo "note: beside 30,000 UDP flows: $(cat /run/calls)"
	expect_none_refused
}

# limit 180 s
# an address that was forged in a flood of half-open or half-closed connections is served soon after it
# also with portmap
test_forged_addresses_are_served_again() {
	local began pid
	fair_world
	container_start other small -p 8091:80 -p 8092:81
	serve_crowd other 81
	# As behind a firewall: nothing says of the server's FINs that nobody waits for them.
	in_namespace client nft 'table ip stateful { chain input {
		type filter hook input priority 0; ip daddr 100.64.0.2 ct state != established drop; }; }'
	for pid in $(ip netns pids victim); do
		[ "$(<"/proc/$pid/comm")" != crowd ] || kill -STOP "$pid" # does not close
	done
	half_closed 100.64.0.1 8081 --close
	half_closed 100.64.0.2 8092
	processes_end other
	serve_in other 80
	herd_outside tcp 100.64.0.3 8080 30000 --first 32768 --seconds 2 --rate 15000 >/run/herd
	echo "note: half-open: $(cat /run/herd)"
	began=$SECONDS
	expect_served_again 100.64.0.3 8080
	expect_served_again 100.64.0.1 8080
	expect_served_again 100.64.0.2 8091
	[ "$plugin" != bpf-portmap ] || [ "$(counted drop_flow_limit)" -gt 0 ] || fail 'the floods met no limit'
}

# half_closed SOURCE PORT [OPTION...]: as many connections as one client may have: a quarter of the table, and
# less beside others who have much
half_closed() {
	herd_outside tcp "$1" "$2" 5000 --silent "${@:3}" >/run/herd
	echo "note: $*: $(cat /run/herd)"
	[ "$(field_of answered "$(cat /run/herd)")" -gt 2500 ] || fail "not answered: $(cat /run/herd)"
}

# expect_served_again SOURCE PORT: a minute after $began, at the latest. The calls
# time out early and begin anew, because TCP would send refused data again only after 25 s, and then
# after a minute.
expect_served_again() {
	in_namespace client ip address add "$1/32" dev lo
	in_namespace client ip route replace "$host4/32" dev eth0 src "$1"
	until calls client tcp "$host4" "$2" 20 --at-once 20 --timeout 1000; do
		[ $((SECONDS - began)) -lt 60 ] ||
			fail "$1 is not served after $((SECONDS - began)) s: $(cat /run/calls) $(drops)"
		sleep 0.5
	done
	echo "note: $1 is served after $((SECONDS - began)) s"
}
