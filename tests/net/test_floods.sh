# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_floods.sh - how a flood, or very many connections, affect others.

# nothing is loaded
# limit 180 s
# idle connections survive floods of SYNs and of datagrams, a client's and a container's
test_flood_through_mapping() {
	local protocol
	flood_prepare
	container_start web bridge -p 8080:80 -p 8080:80/udp -p 8081:81
	container_add bad bridge
	ethtool -K "$(host_veth bad)" gro on >/dev/null
	in_namespace web "$crowd" serve 81 --background
	in_namespace server "$crowd" serve 9000 --background
	crowd_open mapped client "$host4" 8081 "$flood_crowd"
	expect_equal "$flood_crowd" "$crowd_size" "connections through the mapping"
	crowd_open masqueraded web "$server4" 9000 "$flood_crowd"
	expect_equal "$flood_crowd" "$crowd_size" "masqueraded connections"
	for protocol in tcp udp; do
		flood_from client eth0 "$protocol" eth0 "$(mac_of eth0)" "$host4" 8080 "$flood_seconds"
		flood_from bad "$(host_veth bad)" "$protocol" eth0 "$(mac_of cni0)" "$server4" 9 \
			"$flood_seconds" "$(address4 bad)"
	done
	expect_crowd mapped "$flood_crowd"
	expect_crowd masqueraded "$flood_crowd"
	expect_calls "after the floods" client udp "$host4" 8080
	expect_answers client "$host4" 8080 web "$client4"
}

# nothing is loaded
# limit 120 s
# a container's flood out to a server does not stop another container
test_flood_of_container() {
	local pid veth
	flood_prepare
	container_add bad bridge
	container_start good bridge -p 8080:80
	serve_in server 7000 server
	veth=$(host_veth bad)
	ethtool -K "$veth" gro on >/dev/null
	expect_answers good "$server4" 7000 server
	flood_from bad "$veth" tcp eth0 "$(mac_of cni0)" "$server4" 9 "$flood_seconds" \
		"$(address4 bad)" >/run/flood.out &
	pid=$!
	flood_await "$veth"
	# The queues of the kernel are full of the flood: SYNs and datagrams are sent again.
	for _ in 1 2 3; do
		expect_answer good tcp "$server4" 7000 server "$host4_second" --timeout 8000
		expect_calls "a flood" good udp "$server4" 7000
		expect_answer client tcp "$host4" 8080 good "$client4" --timeout 8000
	done
	wait "$pid"
	cat /run/flood.out
	expect_answers good "$server4" 7000 server "$host4_second"
}

# limit 180 s
# a full table refuses new connections and counts them; those in it continue
test_full_table() {
	local number full
	herds_prepare
	small_table
	container_add one small -p 8081:81
	in_namespace one "$crowd" serve 81 --background
	crowd_open one_crowd client "$host4" 8081 500
	expect_equal 500 "$crowd_size" "connections of one container"
	full=$(counted drop_table_full)
	for number in {2..20}; do
		container_add "number$number" small -p "$((8080 + number)):81"
		serve_crowd "number$number" 81
		herd_outside tcp "100.$((64 + number)).0.0" $((8080 + number)) $((2 * flow_entries)) \
			--sources 1024 >/run/herd
		[ "$(field_of answered "$(cat /run/herd)")" -gt 0 ] || break
	done
	[ "$(counted drop_flow_limit)" -gt 0 ] || fail "no flow met the limit"
	[ "$(counted drop_table_full)" -ge $((full + 500)) ] || fail "the table does not fill: $(drops)"
	expect_crowd one_crowd 500
	container_add last small -p 8079:81
	in_namespace last "$crowd" serve 81 --background
	crowd_open full_crowd client "$host4" 8079 20
	expect_equal 0 "$crowd_size" "connections when the table is full"
	container_del number2 small
	crowd_open room_crowd client "$host4" 8079 20
	expect_equal 20 "$crowd_size" "connections when there is room again"
	expect_crowd one_crowd 500
}
