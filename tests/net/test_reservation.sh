# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_reservation.sh - reserveHostPorts: no process of the host can have a mapped port.

hold=$build/tests/hold

# What bind(2) says where the program cannot give its reason: bpf_set_retval is there since 6.1.
bind_error() {
	local release
	IFS=. read -r -a release </proc/sys/kernel/osrelease
	if [ "${release[0]}" -gt 6 ] || { [ "${release[0]}" = 6 ] && [ "${release[1]%%-*}" -ge 1 ]; }; then
		echo EADDRINUSE
	else
		echo EPERM
	fi
}

reservation_world() {
	needs_cgroup
	conflist reserved bridge "$(with_ours '{"reserveHostPorts": true}')"
	conflist reserved4 bridge "($(with_ours '{"reserveHostPorts": true}')) | $only_ipv4"
}

# binds [PREFIX...] -- ARGUMENT...: of tests/hold; cannot_bind: the kernel refuses it
binds() {
	local said
	said=$("$hold" "$@" 2>&1) || fail "should bind: $*: $said"
}

cannot_bind() {
	local said
	! said=$("$hold" "$@" 2>&1) || fail "should not bind: $*: $said"
	expect_equal "$(bind_error)" "$said" "the error of: $*"
}

# a port that a process of the host has is an error that names the process; nothing stays
test_reservation_taken() {
	reservation_world
	local before protocol address option
	container_add web reserved -p 8081:80
	container_del web reserved
	container_add_plain web
	before=$(state_show)
	for protocol in tcp udp; do
		for address in 0.0.0.0 "$host4" 127.0.0.1 :: "$host6" ::1; do
			"$hold" "$protocol" "$address" 8080 --name taker --background >/run/hold
			expect_failure plugin_call ADD web \
				"$(mapping 8080 80 "$protocol") | .reserveHostPorts = true"
			expect_code 101
			expect_contains "$output" "taker (pid $(sed -n 's/^pid //p' /run/hold)) already holds\
 host port 8080/$protocol at $address, and \\\"reserveHostPorts\\\" is true: stop that process"
			expect_same_state "$before"
			kill "$(sed -n 's/^pid //p' /run/hold)"
			wait_until 5 binds_now "$protocol" "$address" 8080
		done
	done
	"$hold" tcp "$host4" 8080 --bound --name sleeper --background >/run/hold
	expect_refusal "sleeper (pid " plugin_call ADD web '.reserveHostPorts = true'
	expect_same_state "$before"
	plugin_call ADD web "$(mapping 8082) | .reserveHostPorts = true" >/dev/null
}

binds_now() { "$hold" "$@" >/dev/null; }

# from ADD to DEL no process of the host can bind to the port: TCP and UDP, any and specific
# addresses, both families, mapped, with SO_REUSEADDR or without; other ports and protocols are free
test_reservation_bind() {
	reservation_world
	local address option ports='-p 8080:80/tcp -p 8081:80/udp'
	container_start web reserved $ports
	for address in 0.0.0.0 "$host4" "$host4_second" 127.0.0.1 :: "$host6" ::1; do
		for option in '' --reuse; do
			{
				cannot_bind tcp "$address" 8080 $option
				cannot_bind udp "$address" 8081 $option
				binds udp "$address" 8080 $option
				binds tcp "$address" 8081 $option
				binds tcp "$address" 0 $option
				binds udp "$address" 0 $option
			}
		done
	done
	cannot_bind tcp "$host4" 8080 --mapped
	cannot_bind tcp 0.0.0.0 8080 --mapped
	cannot_bind tcp :: 8080 --both
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client udp "$host4" 8081 web "$client4"
	container_del web reserved
	for address in 0.0.0.0 "$host4" 127.0.0.1 :: ::1; do
		binds tcp "$address" 8080
		binds udp "$address" 8081
	done
}

# a mapping of one address: that address and any of its family cannot be bound, others can
test_reservation_one_address() {
	reservation_world
	local protocol
	for protocol in tcp udp; do
		container_add web reserved -p "$host4:8080:80/$protocol"
		cannot_bind "$protocol" "$host4" 8080
		cannot_bind "$protocol" "$host4" 8080 --mapped
		cannot_bind "$protocol" 0.0.0.0 8080
		cannot_bind "$protocol" 0.0.0.0 8080 --mapped
		cannot_bind "$protocol" :: 8080 --both
		binds "$protocol" :: 8080
		binds "$protocol" "$host4_second" 8080
		binds "$protocol" 127.0.0.1 8080
		binds "$protocol" "$host6" 8080
		binds "$protocol" 0.0.0.0 8081
		container_del web reserved
		container_add web reserved -p "[$host6]:8080:80/$protocol"
		cannot_bind "$protocol" "$host6" 8080
		cannot_bind "$protocol" :: 8080
		cannot_bind "$protocol" :: 8080 --both
		binds "$protocol" 0.0.0.0 8080
		binds "$protocol" "$host6_second" 8080
		container_del web reserved
		binds "$protocol" :: 8080 --both
	done
}

# addresses where nothing is mapped, and loopback ones without localhost, stay free; of IPv4 alone a
# socket at :: that takes IPv4 too is refused, one that does not is not; containers, and other hosts
# that share the cgroup, bind to what they want
test_reservation_addresses_left_out() {
	reservation_world
	local protocol
	conflist outside bridge \
		"$(with_ours "{\"reserveHostPorts\": true, \"localhost\": false, \"excludeCIDRs\": [\"$host4_second\"]}")"
	container_add web outside -p 8080:80
	binds tcp 127.0.0.1 8080
	binds tcp ::1 8080
	binds tcp "$host4_second" 8080
	cannot_bind tcp "$host4" 8080
	cannot_bind tcp 0.0.0.0 8080
	binds udp 224.0.0.251 8080
	serve_in web 8080
	serve_in client 8080
	container_add four reserved4 -p 8081:80/tcp -p 8081:80/udp
	for protocol in tcp udp; do
		cannot_bind "$protocol" :: 8081 --both
		binds "$protocol" :: 8081
		binds "$protocol" "$host6" 8081
		cannot_bind "$protocol" 0.0.0.0 8081
	done
}

# only who asks for it: another container's ports can be bound; the one who reserves keeps its own; ADD
# again of the same container is no conflict; a dead one keeps its port until DEL
test_reservation_is_the_containers_own() {
	reservation_world
	container_add first reserved -p 8080:80
	container_add second bridge -p 8081:80 -p "$host4:8080:80"
	cannot_bind tcp 0.0.0.0 8080
	cannot_bind tcp "$host4_second" 8080
	binds tcp "$host4" 8080
	binds tcp 0.0.0.0 8081
	container_del first reserved
	binds tcp 0.0.0.0 8080
	container_remove second bridge
	container_add web reserved -p 8080:80
	plugin_call ADD web '.reserveHostPorts = true' >/dev/null || fail "ADD again"
	cannot_bind tcp 0.0.0.0 8080
	container_check web reserved || fail "CHECK"
	container_die web
	cannot_bind tcp 0.0.0.0 8080
	container_del web reserved
	binds tcp 0.0.0.0 8080
}

# what a killed ADD or DEL left behind in the map reserves nothing
test_reservation_of_nobody() {
	reservation_world
	local entries address
	for address in 0.0.0.0 "$host4"; do
		container_add web reserved4 -p "$address:8080:80"
		cannot_bind tcp 0.0.0.0 8080
		entries=$(bpftool -j map dump pinned "$pins/portmaps" | jq -r '.[] |
			"key hex \(.key | join(" ")) value hex \(.value | join(" "))"' | sed 's/0x//g')
		container_del web reserved4
		bpftool map update pinned "$pins/portmaps" $entries
		expect_count 1 portmaps "entries of nobody"
		binds tcp 0.0.0.0 8080
		binds tcp "$host4" 8080
		map_empty portmaps
	done
}

# without cgroup2 ADD fails and says why, STATUS too; nothing stays
test_reservation_without_cgroup2() {
	reservation_world
	container_add_plain web
	plugin_call ADD web >/dev/null 2>&1 && plugin_call DEL web
	local before
	before=$(state_show)
	umount "$cgroup"
	expect_failure plugin_call ADD web '.reserveHostPorts = true | .localhost = false'
	expect_contains "$output" 'reserveHostPorts'
	expect_code 102
	expect_failure plugin_call STATUS web '.reserveHostPorts = true | .cniVersion = "1.1.0"'
	expect_contains "$output" 'reserveHostPorts'
	expect_same_state "$before"
}

# the hooks come with the first who asks for them, are attached again by ADD, missed by CHECK
test_reservation_hooks() {
	reservation_world
	container_add first bridge -p 8079:80
	expect_equal '' "$(bpftool cgroup show "$cgroup" | grep bind || true)"
	container_add web reserved -p 8080:80
	expect_equal 2 "$(bpftool cgroup show "$cgroup" | grep -c bind)" hooks
	rm "$pins/bind4"
	expect_failure container_check web reserved
	expect_contains "$output" "bind4 is not attached to the root of cgroup2: processes of the host can bind"
	"$build/bpf-portmap" attach
	container_check web reserved || fail "CHECK"
	cannot_bind tcp 0.0.0.0 8080
}
