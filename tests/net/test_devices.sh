# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_devices.sh - uplinks that are built on other devices. Not every kernel has them; those of
# distributions do, and `make check-kernel` runs these tests there.

uplink4=203.0.113.1 uplink6=2001:db8:3::1

# kernel_needs KIND [ARGUMENT...]: skips unless an interface of this kind can be made
kernel_needs() {
	ip link add link eth0 name probe0 type "$@" 2>/dev/null || skip "the kernel has no $1"
	ip link delete probe0
}

# ends_up HOST-INTERFACE NAMESPACE INTERFACE: addresses for the two ends
ends_up() {
	end_make host "$1" "$uplink4/24" "$uplink6/64"
	end_make "$2" "$3" "$office4/24" "$office6/64"
}

# office_serves: the other end serves port 9000, and a capture looks for container addresses there.
office_serves() {
	serve_in "$1" 9000
	capture_start leak "$1" "$2" net 10.88.0.0/16 or net 10.89.0.0/16 or ip6 net fd00::/16
}

# expect_uplink_works NAMESPACE CONTAINER: mapped ports and masquerade over the uplink
expect_uplink_works() {
	local who=$1 container=$2
	both expect_answers "$who" @uplink 8080 "$container" @office
	both expect_answers "$container" @office 9000 "$who" @uplink
}

# A datagram and its answer are rewritten once each, whatever devices they pass through.
expect_rewritten_once() {
	local in out
	in=$(counted rewritten_destination) out=$(counted rewritten_source)
	expect_answer "$1" udp "$uplink4" 8080 "$2" "$office4"
	expect_counted rewritten_destination $((in + 1)) "destinations rewritten"
	expect_counted rewritten_source $((out + 1)) "sources rewritten"
}

vlan_make() {
	kernel_needs vlan id 5
	ip link add link eth0 name eth0.100 type vlan id 100
	ip -n client link add link eth0 name eth0.100 type vlan id 100
	ends_up eth0.100 client eth0.100
}

vlan_serves() {
	vlan_make
	ethtool -K eth0 txvlan "$1" rxvlan "$1" >/dev/null
	in_namespace client ethtool -K eth0 txvlan "$1" rxvlan "$1" >/dev/null
	office_serves client eth0.100
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	container_start two ptp -p 8081:80/udp
	expect_uplink_works client one
	expect_answer client udp "$uplink4" 8081 two "$office4"
	expect_answer two udp "$office4" 9000 client "$uplink4"
	expect_rewritten_once client one
	expect_answers client "$host4" 8080 one "$client4" # the untagged network goes on
	expect_captured_nothing leak
}

# a VLAN as uplink on a parent that is an uplink too: each packet is translated once, also where the
# device inserts and strips the tag
test_devices_vlan() { kernel_needs vlan id 5; vlan_serves on; }

# the same where the tag is already in the frame when the parent's programs see it
test_devices_vlan_in_frame() { kernel_needs vlan id 5; vlan_serves off; }

# bond_make MODE: two links between this host and `office`
bond_make() {
	local number
	ip link add bond0 type bond mode "$1" miimon 20
	namespace_add office
	ip -n office link add eth0 type bond mode "$1" miimon 20
	for number in 1 2; do
		ip link add "cable$number" type veth peer name "cable$number" netns office
		ip link set "cable$number" master bond0
		ip -n office link set "cable$number" master eth0
		ip link set "cable$number" up
		ip -n office link set "cable$number" up
	done
	ends_up bond0 office eth0
}

bond_serves() {
	kernel_needs bond
	bond_make "$1"
	wait_until 5 in_namespace office busybox ping -c 1 -W 1 -q "$uplink4" >/dev/null ||
		fail "the bond does not come up"
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	office_serves office eth0
	expect_equal 'from_uplink to_uplink' "$(attached bond0 ingress | sed 's/.* //') $(
		attached bond0 egress | sed 's/.* //')"
	expect_equal '' "$(attached cable1 ingress)$(attached cable2 egress)"
	expect_uplink_works office one
	expect_rewritten_once office one
}

# a bond as uplink: programs on the bond only; when one link fails the other one serves, also an
# existing connection
test_devices_bond() {
	bond_serves active-backup
	conversation_with one talk office tcp "$uplink4" 8080
	ip link set "$(cat /sys/class/net/bond0/bonding/active_slave)" down
	wait_until 5 bond_answers || fail "no answer through the other link"
	expect_says talk one
	expect_uplink_works office one
	expect_captured_nothing leak
}

bond_answers() { ask office udp "$uplink4" 8080 >/dev/null; }

# a bond that uses both links at once
test_devices_bond_both() {
	bond_serves balance-rr
	expect_uplink_works office one
	expect_captured_nothing leak
}

# fast_over_uplink NAMESPACE: opens four conversations with a mapped port and four of a container,
# over the uplink
fast_over_uplink() {
	fast_lists
	container_start one fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in "$1" "$uplink4" "$uplink6" 8080
	talks_open out one "$office4" "$office6" 9000
	flows=$(talks in out)
}

# flows over a VLAN skip the IP stack, and no packet arrives without its tag
test_devices_vlan_fast() {
	kernel_needs vlan id 5
	vlan_make
	office_serves client eth0.100
	capture_start untagged client eth0 "not vlan and (port 8080 or port 9000)"
	fast_over_uplink client
	expect_skips_stack $flows
	expect_captured_nothing untagged
	expect_captured_nothing leak
}

# flows over a bond skip the IP stack, and move to the other link with it
test_devices_bond_fast() {
	kernel_needs bond
	bond_make active-backup
	wait_until 5 in_namespace office busybox ping -c 1 -W 1 -q "$uplink4" >/dev/null ||
		fail "the bond does not come up"
	office_serves office eth0
	fast_over_uplink office
	expect_skips_stack $flows
	ip link set "$(cat /sys/class/net/bond0/bonding/active_slave)" down
	expect_goes_on $flows
	expect_skips_stack $flows
	expect_captured_nothing leak
}

# flows over WireGuard, which has no Ethernet header, never skip the IP stack
test_devices_wireguard_slow() {
	kernel_needs wireguard
	command -v wg >/dev/null || skip "no wg (package wireguard-tools)"
	wireguard_make
	office_serves client wg0
	fast_over_uplink client
	expect_passes_stack $flows
	expect_captured_nothing leak
}

# an address on lo, as a router announces it, or on a dummy interface, as a load balancer's, is an
# address of the host: its mapped ports answer clients outside and other containers on the bridge
test_devices_extra_address() {
	serve_in server 9000
	extra_address_serves lo
	ip address flush dev lo scope global
	! ip link add vip0 type dummy 2>/dev/null || extra_address_serves vip0
}

extra_address_serves() {
	end_make host "$1" "$uplink4/32" "$uplink6/128"
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	container_start exact ptp -p "$uplink4:8081:80/udp" -p "[$uplink6]:8081:80/udp"
	container_start near bridge
	local who
	for who in client near; do
		both expect_answers "$who" @uplink 8080 one
		both expect_answer "$who" udp @uplink 8081 exact
		expect_no_answer "$who" udp "$host4" 8081
	done
	expect_gets_out one
	expect_answers one "$uplink4" 8080 one "$bridge4"
	for who in one near; do container_remove "$who" bridge; done
	container_remove exact ptp
}

# wireguard_make: a tunnel between this host and the client
wireguard_make() {
	local ours theirs
	ours=$(wg genkey) theirs=$(wg genkey)
	ip link add wg0 type wireguard
	ip -n client link add wg0 type wireguard
	wg set wg0 listen-port 51820 private-key <(echo "$ours") \
		peer "$(wg pubkey <<<"$theirs")" endpoint "$client4:51820" allowed-ips 0.0.0.0/0,::/0
	in_namespace client wg set wg0 listen-port 51820 private-key <(echo "$theirs") \
		peer "$(wg pubkey <<<"$ours")" endpoint "$host4:51820" allowed-ips 0.0.0.0/0,::/0
	ends_up wg0 client wg0
}

# WireGuard as uplink, for bridge and ptp containers
test_devices_wireguard() {
	kernel_needs wireguard
	command -v wg >/dev/null || skip "no wg (package wireguard-tools)"
	wireguard_make
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	container_start two ptp -p 8081:80/tcp
	office_serves client wg0
	expect_uplink_works client one
	expect_answer client tcp "$uplink4" 8081 two "$office4"
	expect_answer two tcp "$office6" 9000 client "$uplink6"
	expect_rewritten_once client one
	expect_answers client "$host4" 8080 one "$client4" # so does the network under it
	expect_captured_nothing leak
}

# ppp_make: a serial line between this host and `office`, a pair of pseudo-terminals
ppp_make() {
	local options="nodetach noauth local nodefaultroute noipdefault nopersist +ipv6 115200"
	namespace_add office
	pppd $options "$uplink4:$office4" ifname ppp0 pty \
		"exec nsenter --net=/run/netns/office pppd notty $options $office4:$uplink4 ifname ppp0" \
		>/run/pppd.log 2>&1 &
	pppd=$!
	wait_until 10 ppp_settled && ppp_up || fail "pppd: $(cat /run/pppd.log)"
	ip address add "$uplink6/64" dev ppp0 nodad
	ip -n office address add "$office6/64" dev ppp0 nodad
}

ppp_settled() { ppp_up || ! kill -0 "$pppd" 2>/dev/null; }

ppp_up() {
	ip -4 -o address show dev ppp0 2>/dev/null | grep "$uplink4" >/dev/null &&
		ip -n office -4 -o address show dev ppp0 2>/dev/null | grep "$office4" >/dev/null
}

# PPP over a serial line, by the real pppd, as uplink
test_devices_ppp() {
	command -v pppd >/dev/null || skip "no pppd (package ppp)"
	[ -e /dev/ppp ] || skip "the kernel has no PPP"
	ppp_make
	container_start one bridge -p 8080:80/tcp -p 8080:80/udp
	office_serves office ppp0
	expect_uplink_works office one
	expect_rewritten_once office one
	expect_captured_nothing leak
}

# disturb NAMESPACE: delays, reorders, loses and duplicates what it sends
disturb() {
	tc -n "$1" qdisc add dev eth0 root netem delay 3ms 2ms reorder 25% 50% loss 2% duplicate 2%
}

# limit 90 s
# on a network that loses, duplicates and reorders packets everything arrives intact: a file by TCP,
# and most of many large datagrams in fragments, in both directions
test_devices_bad_network() {
	tc qdisc add dev lo root netem delay 1ms 2>/dev/null || skip "the kernel has no netem"
	tc qdisc delete dev lo root
	local datagrams=$build/tests/datagrams
	container_add one bridge -p 8080:80/tcp -p 8080:80/udp
	in_namespace one "$datagrams" echo 80 --background
	in_namespace server "$datagrams" echo 9000 --background
	disturb client
	disturb server
	local address
	for address in "$host4" "$host6"; do expect_most client "$address" 8080; done
	for address in "$server4" "$server6"; do expect_most one "$address" 9000; done
	file_serve one 80 200000
	for address in "$host4" "$host6"; do expect_file client "$address" 8080; done
}

# expect_most NAMESPACE ADDRESS PORT: of 20 datagrams in 4 fragments each, 10 come back
expect_most() {
	local round whole=0
	for round in {1..20}; do
		! in_namespace "$1" "$build/tests/datagrams" ask "$2" "$3" 5000 >/dev/null 2>&1 ||
			whole=$((whole + 1))
	done
	[ "$whole" -ge 10 ] || fail "$1 got $whole of $round datagrams back from $2"
}
