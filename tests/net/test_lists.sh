# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_lists.sh - the other plugins of a list, and the results that they pass to us.

# bridge with hairpinMode works like bridge without it, for other containers on the bridge and for
# the container itself; loopback before us passes the result on, and we find the same container
test_lists_hairpin_mode_and_loopback() {
	conflist hairpin bridge '.plugins[0].hairpinMode = true | .plugins |= [.[0], {"type": "loopback"}, .[1]]'
	container_start web hairpin -p 8080:80/tcp -p 8080:80/udp
	container_add near hairpin
	expect_equal 1 "$(cat "/sys/class/net/$(host_veth web)/brport/hairpin_mode")" hairpin_mode
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers near "$host4" 8080 web "$(address4 near)"
	expect_answers web "$host4" 8080 web "$bridge4"
	container_check web hairpin
	container_remove web hairpin
}

# bridge without ipam gives no address: no port is mapped, with a warning, as with portmap;
# without the capability in the list no port is mapped, even if the caller passes one;
# static gives the configured addresses, and the ports lead to them
test_lists_addresses_and_capability() {
	conflist bare bridge '.plugins[0] |= del(.ipam, .isGateway)'
	namespace_add web
	runtime add bare web >/run/out 2>&1 || fail "$(cat /run/out)"
	container_del web bare
	runtime add bare web -p 8080:80/tcp >/run/out 2>&1 || fail "$(cat /run/out)"
	[ "$plugin" != bpf-portmap ] ||
		expect_in /run/out 'no port is mapped: prevResult has no IP address'
	expect_refused client tcp "$host4" 8080
	container_del web bare
	conflist silent bridge "$(with_ours '{"capabilities": {}}')"
	runtime add silent web -p 8080:80/tcp >/run/out 2>&1 || true
	ip -n web link show eth0 >/dev/null 2>&1 && serve_in web 80
	expect_no_answer client tcp "$host4" 8080
	container_del web silent
	processes_end web
	ip link delete cni0
	conflist fixed bridge '.name = "fixed" | .plugins[0].ipam = {"type": "static", "addresses":
		[{"address": "10.84.0.7/24", "gateway": "10.84.0.1"}], "routes": [{"dst": "0.0.0.0/0"}]}'
	serve_in server 9000
	container_start web fixed -p 8080:80/tcp -p 8080:80/udp
	expect_equal 10.84.0.7 "$(address4 web)"
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers web "$server4" 9000 server "$host4_second"
}

# a container with IPv6 only: its ports are those of the host's IPv6 addresses, 0.0.0.0 is skipped
# with a warning, an IPv4 address of the host is refused; with IPv4 only it is the other way round
test_lists_one_family() {
	conflist six bridge "$only_ipv6"
	conflist four bridge "$other_network | $only_ipv4"
	container_start web six -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host6" 8080 web "$client6"
	expect_no_answer client tcp "$host4" 8080
	namespace_add other
	runtime add six other -p 0.0.0.0:8081:80/tcp >/run/out 2>&1 || fail "$(cat /run/out)"
	expect_in /run/out 'no IPv4 address'
	namespace_add third
	expect_refusal "$host4" runtime add six third -p "$host4:8082:80/tcp"
	container_start fourth four -p 8083:80/tcp -p 8083:80/udp
	expect_answers client "$host4" 8083 fourth "$client4"
	expect_no_answer client tcp "$host6" 8083
	container_check fourth four
}

# the veth is found by the container's interface: names in the result, of whatever kind, are hints
test_lists_names_are_hints() {
	container_start_plain web
	local before filter
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	before=$(state_show)
	for filter in \
		'.prevResult.interfaces |= map(select(.name == "eth0"))
			| .prevResult.ips |= map(.interface = 0)' \
		'(.prevResult.interfaces[] | select(.sandbox == null)).name = "nosuchdevice"' \
		'(.prevResult.interfaces[] | select(.sandbox == null)).name = "eth0"' \
		'(.prevResult.interfaces[] | select(.sandbox == null)).name = "eth1"' \
		'.prevResult.interfaces |= reverse | .prevResult.ips |= map(.interface = 0)' \
		'.prevResult.interfaces += [{"name": "ifb0"}, {"name": "eth0.7"}]' \
		'.prevResult |= del(.interfaces) | .prevResult.ips |= map(del(.interface))'; do
		plugin_call ADD web "$filter" >/run/out || fail "$filter: $(cat /run/out)"
		both expect_answer client tcp @host 8080 web @client
		plugin_call CHECK web "$filter" || fail "CHECK: $filter"
		plugin_call DEL web || fail "DEL: $filter"
		expect_same_state "$before"
	done
}

# of several addresses of a family the first one gets the ports, and all of them are masqueraded,
# except within their own subnets
test_lists_several_addresses() {
	container_start_plain web
	serve_in server 9000
	container_add_plain near
	serve_in near 80
	ip address add 10.77.0.1/24 dev cni0
	ip -n web address add 10.77.0.2/24 dev eth0
	ip -n web address add 10.77.0.3/24 dev eth0
	ip -n near address add 10.77.0.9/24 dev eth0
	local more='.prevResult.ips += [{"address": "10.77.0.2/24", "interface": 2},
		{"address": "10.77.0.3/24", "interface": 2}]'
	plugin_call ADD web "$more" >/run/out || fail "$(cat /run/out)"
	expect_count 2 portmaps "one of each family"
	expect_answer client tcp "$host4" 8080 web "$client4"
	local address
	for address in "$(address4 web)" 10.77.0.2 10.77.0.3; do
		expect_answers web "$server4" 9000 server "$host4_second" --from "$address"
	done
	expect_answers web 10.77.0.9 80 near 10.77.0.2 --from 10.77.0.2
	expect_answers web "$(address4 near)" 80 near "$(address4 web)" --from "$(address4 web)"
	plugin_call CHECK web "$more" || fail CHECK
	plugin_call DEL web || fail DEL
	expect_count 0 endpoints
}

# two interfaces of one container on one network are two attachments, with ports of their own
test_lists_two_interfaces() {
	conflist bare-routes bridge '.plugins[0].ipam.routes = []'
	container_start web bridge -p 8080:80/tcp
	# host-local gives one container ID one address of a network, so the ID differs
	runtime add bare-routes web --id web-b --ifname eth1 -p 9090:80/tcp >/run/out 2>&1 ||
		fail "$(cat /run/out)"
	in_namespace web sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0
	expect_count 2 attachments
	expect_answer client tcp "$host4" 8080 web "$client4"
	runtime del bare-routes web --id web-b --ifname eth1 || fail "DEL of eth1"
	# eth1 has also answered ARP for eth0's address
	ip neighbour flush dev cni0
	expect_count 1 attachments
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# a chained plugin calls no IPAM plugin, even if its configuration has an ipam section
test_lists_no_ipam_called() {
	container_add_plain web
	mkdir /run/trap
	printf '#!/bin/sh\ntouch /run/called\n' >/run/trap/host-local
	chmod +x /run/trap/host-local
	plugin_config web '.ipam = {"type": "host-local", "subnet": "10.1.0.0/16"}' >/run/config
	local command
	for command in ADD CHECK DEL; do
		CNI_COMMAND=$command CNI_CONTAINERID=web CNI_IFNAME=eth0 CNI_NETNS=/run/netns/web \
			CNI_PATH=/run/trap PATH=/run/trap:$PATH "$build/bpf-portmap" </run/config \
			>/run/out || fail "$command: $(cat /run/out)"
	done
	[ ! -e /run/called ] || fail "the IPAM plugin was called"
}

# after DEL, and after a refused ADD, host-local has the address back, and gives it to another
# container in the end
test_lists_host_local_gets_address_back() {
	conflist narrow bridge '.name = "narrow" | .plugins[0].ipam.ranges =
		[[{"subnet": "10.85.0.0/29"}]]'
	local leases=/var/lib/cni/networks/narrow round address first=''
	container_add owner narrow -p 9090:80/tcp
	for round in $(seq 10); do
		container_start web narrow -p 8080:80/tcp -p 8080:80/udp
		address=$(address4 web)
		first=${first:-$address}
		[ "$round" = 1 ] || [ "$address" != "$first" ] || echo again >/run/again
		[ -e "$leases/$address" ] || fail "host-local does not know $address"
		# ARP keeps an entry for a second, whatever the new owner announces
		ip neighbour flush dev cni0
		expect_answers client "$host4" 8080 web "$client4"
		container_remove web narrow
		[ ! -e "$leases/$address" ] || fail "host-local still has $address"
		namespace_add web
		expect_failure runtime add narrow web -p 9090:80/tcp
		expect_equal 1 "$(find "$leases" -name '10.*' | wc -l)" "leases after a refused ADD"
		ip netns delete web
	done
	[ -e /run/again ] || fail "no address was given twice: nothing was tested"
}

# a configuration for portmap works with only its type changed: its options are accepted, and those
# that mean nothing here are reported on stderr
test_lists_portmap_options() {
	local old='{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true,
		"masqAll": false, "markMasqBit": 12, "externalSetMarkChain": "KUBE-MARK-MASQ",
		"backend": "iptables", "conditionsV4": null, "conditionsV6": []}'
	conflist swapped bridge ".name = \"swapped\" | .plugins[0].ipMasq = true
		| .plugins[1] = ($old | .type = \"bpf-portmap\")"
	namespace_add web
	runtime add swapped web -p 8080:80/tcp -p 8080:80/udp >/run/out 2>/run/err ||
		fail "$(cat /run/out /run/err)"
	local option
	for option in markMasqBit externalSetMarkChain backend; do
		expect_in /run/err "$option"
	done
	jq -e .ips /run/out >/dev/null || fail "stdout is no result: $(cat /run/out)"
	serve_in web 80
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers web "$host4" 8080 web "$bridge4"
	runtime check swapped web 2>/dev/null || fail CHECK
	runtime del swapped web 2>/dev/null || fail DEL
	expect_no_answer client tcp "$host4" 8080
}
