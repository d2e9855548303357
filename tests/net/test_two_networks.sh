# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A container on two networks: it answers through either one, whichever the mapping leads to.

# The second network: without a default route, for web; with one, for containers of its own
second_lists() {
	[ -e /run/conf/second-default.conflist ] || conflist second-default bridge "$other_network"
	jq '.plugins[0].ipam.routes = []' /run/conf/second-default.conflist >/run/conf/second.conflist
}

# two_networks [OPTION...]: web has eth0 on the first network, with its default route, and eth1 on
# the second, for which the OPTIONs are.
two_networks() {
	second_lists
	container_start web bridge
	runtime add second web --ifname eth1 "$@" >/run/out || fail "$(cat /run/out)"
	wait_until 3 addresses_usable || true
}

# Strict reverse path filters, also that of the container, drop what comes by another way than its
# reply would leave.
two_networks_loosely() {
	two_networks "$@"
	loosely
}
loosely() {
	reverse_path_loose
	in_namespace web sysctl -qw net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.eth1.rp_filter=2
}

# web sends with the second network's address through the second network.
answer_by_second() {
	ip -n web rule "$1" from 10.87.0.0/16 table 87
	ip -n web -6 rule "$1" from fd00:87::/64 table 87
	[ "$1" = add ] || return 0
	ip -n web route replace default via 10.87.0.1 dev eth1 table 87
	ip -n web -6 route replace default via fd00:87::1 dev eth1 table 87
}

second_ports() { printf -- '-p %s ' 8080:80/tcp 8080:80/udp; }

answers_through_firewall() {
	firewall_strict
	local talk
	talks_open out client "$host4" "$host6" 8080
	for talk in $(talks out); do
		for _ in {1..12}; do expect_says "$talk" web; done
	done
}

# a port that the first network had goes to the second when the first is disconnected, also where the
# first had given the container more addresses than the map has room for
test_two_networks_many_addresses() {
	container_add_plain web
	conflist second bridge "$other_network | $only_main"
	runtime add second web --ifname eth1 >/run/results/web1 || fail "$(cat /run/results/web1)"
	serve_in web 80
	loosely
	plugin_config web '.prevResult.ips += [range(8) | {"address": "fd00:88::a\(.)/64", "interface": 2}]' \
		>/run/config
	plugin_config web1 '.name = "other"' >/run/config1
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	IFNAME=eth1 plugin_run ADD web </run/config1 >/run/out || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_run DEL web </run/config || fail DEL
	expect_answer client tcp "$host4" 8080 web "$client4"
	IFNAME=eth1 plugin_run CHECK web </run/config1 || fail "CHECK of the second network"
	IFNAME=eth1 plugin_run DEL web </run/config1 || fail "DEL of the second network"
	expect_count "0 0" 'portmaps containers'
}

# such a port answers for longer where the network that has the default route is none of ours
# also with fastPath off
# also with portmap
test_two_networks_firewall_foreign() {
	conflist second bridge "$other_network | .plugins[0].ipam.routes = []"
	container_add_plain web
	runtime add second web --ifname eth1 $(second_ports) >/run/out || fail "$(cat /run/out)"
	serve_in web 80
	loosely
	answers_through_firewall
}

# a port of the network that has not the default route answers where a firewall drops what conntrack
# calls invalid, for longer than a handshake, also while the container's route moves to its other
# network and back
# also with fastPath off, always
# also with portmap
test_two_networks_route_moves() {
	local change talk
	two_networks_loosely $(second_ports)
	answers_through_firewall
	for change in add del add del; do
		answer_by_second "$change"
		for talk in $(talks out); do
			for _ in {1..8}; do expect_says "$talk" web; done
		done
	done
}

# connections that skip the stack go on skipping it when the container's route moves to its other
# network, and none begins to where the way is another one from the start
test_two_networks_paths() {
	fast_lists
	mv /run/conf/fast-other.conflist /run/conf/second-default.conflist
	two_networks_loosely $(second_ports)
	answer_by_second add
	stack_watch
	local talk
	talks_open out client "$host4" "$host6" 8080
	expect_skips_stack $(talks out)
	answer_by_second del
	expect_skips_stack $(talks out)
	talks_open slow client "$host4" "$host6" 8080
	expect_passes_stack $(talks slow)
}

# the port of a container on two networks answers the container itself and containers of both
# networks, and of a third one, whose address it sees
# also with fastPath off, always
# also with portmap
test_two_networks_clients() {
	two_networks $(second_ports)
	conflist third bridge "$third_network"
	container_add one bridge
	container_add two second-default
	container_add three third
	local name
	for name in web one two; do
		for _ in 1 2 3; do
			both expect_answers "$name" @host 8080 web
			expect_answers "$name" 10.88.0.1 8080 web
		done
	done
	[ "$plugin" = bpf-portmap ] || return 0
	expect_answers one "$host4" 8080 web 10.87.0.1
	expect_answers one "$host6" 8080 web fd00:87::1
	expect_answers two "$host4" 8080 web "$(address4 two)"
	loosely
	expect_answers three "$host4" 8080 web "$(address4 three)"
	expect_answers three "$host6" 8080 web "$(address6 three)"
}

# with the port on the network that has the default route, too
test_two_networks_clients_of_first() {
	second_lists
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	runtime add second web --ifname eth1 >/run/out || fail "$(cat /run/out)"
	container_add one bridge
	container_add two second-default
	local name
	for name in web one two; do
		both expect_answers "$name" @host 8080 web
	done
	loosely
	expect_answer web tcp "$host4" 8080 web - --from "$(address4 web eth1)"
}

# the port stays when the network that had it is disconnected and the other network was asked for it,
# too; after that it is gone with the other one
# also with portmap
test_two_networks_disconnect() {
	second_lists
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	runtime add second web --ifname eth1 -p 8080:80/tcp -p 8080:80/udp >/run/out ||
		fail "$(cat /run/out)"
	expect_answers client "$host4" 8080 web "$client4"
	runtime del bridge web || fail DEL
	ip -n web route replace default via 10.87.0.1
	ip -n web route replace default via fd00:87::1
	expect_serves web
	expect_answers host "$host4" 8080 web
	[ "$plugin" != bpf-portmap ] ||
		runtime check second web --ifname eth1 -p 8080:80/tcp -p 8080:80/udp || fail CHECK
	runtime del second web --ifname eth1 || fail DEL
	expect_no_answer client tcp "$host4" 8080
}
