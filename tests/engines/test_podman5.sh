# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_podman5.sh - what only Podman 5 has, beside the tests of any Podman.

# shellcheck source=tests/engines/test_podman.sh
. "$folder/test_podman.sh"

inspect() { podman network inspect web | jq -r ".[0] | $1"; }

# limit 180 s
# podman network create -d bpf-portmap: what it chooses, options with commas, an error's text, a
# subnet that is in use; what a container of it shows in podman inspect; no bridge is left with the
# last container, and the state may be lost
test_podman5_network() {
	podman_world 5
	network_create web --ipv6 -o mtu=1400 -o 'sourceRanges=192.0.2.0/24,2001:db8:1::/64' --label a=b
	expect_equal 'bpf-portmap b false podman 2 192.0.2.0/24,2001:db8:1::/64' \
		"$(inspect '"\(.driver) \(.labels.a) \(.dns_enabled) \(.network_interface[:6]) \(.subnets | length) \(
			.options.sourceRanges)"')" 'podman network inspect'
	expect_failure network_create bad -o fastPath=fast
	expect_contains "$output" 'bpf-portmap failed: netavark: "fastPath" is "fast", must be "off"'
	expect_failure network_create bad --subnet 192.0.2.0/25
	expect_contains "$output" 'overlaps with that of interface eth0'
	expect_failure podman network inspect bad
	podman_run web tcp/80 --network web -p 8080:80 --network-alias www --mac-address 02:00:00:00:00:07
	expect_equal "$(ip -n "$(basename "$(podman inspect -f '{{.NetworkSettings.SandboxKey}}' web)")" \
		-j address show eth0 | jq -r '.[0] | "\(.address) \(.mtu) \(.addr_info[0].local)"')" \
		"$(podman inspect web | jq -r '.[0].NetworkSettings.Networks.web |
			"\(.MacAddress) 1400 \(.IPAddress)"')" 'podman inspect'
	expect_answer client tcp "$host6" 8080 web "$client6"
	expect_no_answer server tcp "$host4_second" 8080
	rm -r /run/bpf-portmap-netavark
	podman restart -t 0 web >/dev/null || fail "podman restart"
	podman_serves web tcp/80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_nothing_left
	[ ! -e "/sys/class/net/$(inspect .network_interface)" ] || fail "the bridge is left"
	podman network rm web >/dev/null || fail "podman network rm"
}

# limit 180 s
# a network of our driver beside one of Podman's own: a container on both, and one on each, keep their
# ports; networks that Podman creates later have other subnets
test_podman5_beside_bridge() {
	podman_world 5
	network_create web
	podman network create --disable-dns own >/dev/null
	[ "$(inspect .subnets[0].subnet)" != "$(podman network inspect -f '{{(index .Subnets 0).Subnet}}' own)" ] ||
		fail "both have one subnet"
	podman_run ours tcp/80 --network web -p 8080:80
	podman_run theirs tcp/80 --network own -p 8081:80
	expect_answer client tcp "$host4" 8080 ours "$client4"
	expect_answer client tcp "$host4" 8081 theirs
	podman network connect own ours || fail "podman network connect"
	podman network disconnect web ours || fail "podman network disconnect"
	podman network connect web ours || fail "podman network connect again"
	expect_answer client tcp "$host4" 8080 ours
	podman_remove ours
	podman_remove theirs
	expect_nothing_left
}

# kill_all_of SESSION: its processes, and conmon, which has left it and holds the port. There are only
# the test's own processes here.
kill_all_of() { wait_until 10 all_killed "$1" || fail "a process stays"; }

all_killed() {
	local pids
	pids=$(pgrep -s "$1"; pgrep -x 'conmon|runc' || true)
	[ -n "$pids" ] || return 0
	# shellcheck disable=SC2086
	kill -9 $pids 2>/dev/null
	return 1
}

# Killed after setup, and before it has written down the namespace, Podman calls no teardown.
free_what_podman_forgot() {
	[ "$(map_count portmaps)" != 0 ] || return 0
	expect_failure podman_run web tcp/80 --network web -p 8080:80
	expect_contains "$output" 'is taken by container half'
	[[ $output =~ (ip link delete veth[0-9a-f]*) ]] || fail "no remedy in $output"
	${BASH_REMATCH[1]}
	podman_remove web
}

# limit 180 s
# podman run is killed with -9, with all that it has started, at several moments: podman rm and a
# further podman run put it right, or what the error says where Podman has forgotten its namespace
test_podman5_killed() {
	local delay
	podman_world 5
	network_create web
	podman_run web tcp/80 --network web -p 8080:80
	podman_remove web
	for delay in 0.05 0.1 0.15 0.2 0.3 0.4; do
		setsid bash -c 'exec podman --root /run/podman/storage --runroot /run/podman/run \
			--storage-driver vfs run -d --name half --network web -p 8080:80 --rootfs '"$rootfs"' \
			/bin/sh -c "exec sleep 99"' >/run/out 2>&1 </dev/null &
		sleep "$delay"
		kill_all_of $!
		wait 2>/dev/null
		podman rm -f -t 0 half >/run/out 2>&1 || podman rm -f -t 0 half >/run/out 2>&1 || true
		free_what_podman_forgot
		podman_run web tcp/80 --network web -p 8080:80
		expect_answer client tcp "$host4" 8080 web "$client4"
		podman_remove web
	done
	"$build/bpf-portmap" gc >/dev/null
	expect_nothing_left
}
