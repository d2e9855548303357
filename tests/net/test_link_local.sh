# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_link_local.sh - link-local and multicast addresses, and what lives on them, between container,
# host and neighbours: as without us.

# link_local NAMESPACE|host INTERFACE: its IPv6 link-local address
link_local() {
	local said command=(ip -n "$1")
	[ "$1" != host ] || command=(ip)
	said=$("${command[@]}" -6 -o address show dev "$2" scope link)
	[[ $said =~ \ inet6\ ([^/]*) ]] || fail "no link-local address at $2: $said"
	echo "${BASH_REMATCH[1]}"
}

# pings NAMESPACE|host ADDRESS%INTERFACE
pings() {
	local command=(busybox ping -6 -c 2 -i 0.1 -W 2 -q "$2")
	[ "$1" = host ] || command=(in_namespace "$1" "${command[@]}")
	"${command[@]}" >/run/ping 2>&1 || fail "$1 pings $2: $(cat /run/ping)"
}

# neighbour_probed NAMESPACE|host ADDRESS INTERFACE: what is known about a neighbour is confirmed by
# a probe, a solicitation to its unicast address.
neighbour_probed() {
	local neighbour=(ip -n "$1" neighbour)
	[ "$1" != host ] || neighbour=(ip neighbour)
	"${neighbour[@]}" change "$2" dev "$3" nud probe || fail "$1 does not know $2"
	wait_until 10 neighbour_is_reachable "${neighbour[@]}" show "$2" dev "$3" ||
		fail "$1 probes $2: $("${neighbour[@]}" show "$2" dev "$3")"
}
neighbour_is_reachable() { case $("$@") in *REACHABLE*) ;; *) return 1 ;; esac; }

# link_local_both_ways CONTAINER INTERFACE-OF-HOST
link_local_both_ways() {
	local mine host
	mine=$(link_local "$1" eth0)
	host=$(link_local host "$2")
	pings "$1" "$host%eth0"
	pings host "$mine%$2"
	pings host "$(address6 "$1")"
	neighbour_probed "$1" "$host" eth0
	neighbour_probed host "$mine" "$2"
	neighbour_probed host "$(address6 "$1")" "$2"
}

# udp6_hex SOURCE DESTINATION PORT: from and to this port
udp6_hex() { packet_hex "$1" "$2" 17 "$(printf '%04x%04x000c' "$3" "$3")" 74657374; }

# heard_start NAMESPACE|host: remembers which source MACs the IP stack sees.
heard_start() {
	local command=(nft -f -)
	[ "$1" = host ] || command=(in_namespace "$1" "${command[@]}")
	"${command[@]}" <<-'RULES'
		table inet hear {
			set heard { type ether_addr; size 1024; flags dynamic; }
			chain arrive {
				type filter hook prerouting priority -500;
				update @heard { ether saddr }
			}
		}
	RULES
}

# Sets $heard to the addresses that have been heard.
heard() {
	local command=(nft list set inet hear heard)
	[ "$1" = host ] || command=("$build/tests/world" in "$1" "${command[@]}")
	heard=$("${command[@]}" 2>/run/err)
}

# says NAME DESTINATION-MAC 0800|86dd PACKET: a frame from the container web. Each has its own source
# MAC, by which it is recognized.
says() {
	said=$((said + 1))
	printf -v says_mac '02:00:5e:10:00:%02x' "$said"
	in_namespace web "$build/tests/frame" eth0 "${2//:/}${says_mac//:/}$3$4"
}

# hears NAMESPACE|host WHAT: the last frame that web has sent arrived there.
hears() { wait_until 5 heard_last "$1" || fail "$1 does not get $2"; }
heard_last() {
	local heard
	heard "$1" && [[ $heard = *"$says_mac"* ]]
}

# everybody NAME DESTINATION-MAC ETHERTYPE PACKET: the host gets it, and the container near
everybody() {
	says "$@"
	hears host "$1"
	[ -z "$near" ] || hears near "$1"
}

to_host() {
	says "$1" "$gateway" "$2" "$3"
	hears host "$1"
}

# link_protocols INTERFACE-OF-HOST: what web sends to groups and to the host
link_protocols() {
	local mine host own own6 gateway solicited target said=0 groups=33:33:00:00:00
	mine=$(link_local web eth0) host=$(link_local host "$1") gateway=$(mac_of "$1")
	own=$(address4 web) own6=$(address6 web)
	target=$(address_hex "$mine")
	solicited=ff02::1:ff${target:26:2}:${target:28:4}
	everybody "VRRP" 01:00:5e:00:00:12 0800 "$(ipv4_hex "$own" 224.0.0.18 112 "$(printf '00%.0s' {1..20})")"
	everybody "VRRP over IPv6" $groups:12 86dd "$(ipv6_hex "$mine" ff02::12 112 3101640100000000)"
	everybody "OSPF" 01:00:5e:00:00:05 0800 "$(ipv4_hex "$own" 224.0.0.5 89 "$(printf '00%.0s' {1..24})")"
	everybody "OSPFv3" $groups:05 86dd "$(ipv6_hex "$mine" ff02::5 89 "$(printf '00%.0s' {1..16})")"
	everybody "mDNS" 01:00:5e:00:00:fb 0800 "$(ipv4_hex "$own" 224.0.0.251 17 "$(udp_hex 5353 5353 74657374)")"
	everybody "mDNS over IPv6" $groups:fb 86dd "$(udp6_hex "$mine" ff02::fb 5353)"
	everybody "DHCP" ff:ff:ff:ff:ff:ff 0800 "$(ipv4_hex 0.0.0.0 255.255.255.255 17 "$(udp_hex 68 67 74657374)")"
	everybody "DHCPv6" 33:33:00:01:00:02 86dd "$(udp6_hex "$mine" ff02::1:2 547)"
	everybody "a solicitation of routers" $groups:02 86dd "$(icmp6_hex "$mine" ff02::2 133 00000000)"
	everybody "an advertisement of a router" $groups:01 86dd \
		"$(icmp6_hex "$mine" ff02::1 134 "4000000000000000$(printf '00%.0s' {1..4})")"
	everybody "a solicitation of a neighbour" "33:33:ff:${target:26:2}:${target:28:2}:${target:30:2}" 86dd \
		"$(icmp6_hex "$mine" "$solicited" 135 "00000000$target")"
	everybody "detection of duplicate addresses" "33:33:ff:${target:26:2}:${target:28:2}:${target:30:2}" \
		86dd "$(icmp6_hex :: "$solicited" 135 "00000000$target")"
	everybody "MLD" $groups:16 86dd "$(icmp6_hex "$mine" ff02::16 143 "0000000004000000$(address_hex ff02::fb)" alert)"
	everybody "MLD from ::" $groups:16 86dd "$(icmp6_hex :: ff02::16 143 "0000000004000000$(address_hex ff02::fb)" alert)"
	everybody "IPv4 link-local" ff:ff:ff:ff:ff:ff 0800 \
		"$(ipv4_hex 169.254.7.7 169.254.255.255 17 "$(udp_hex 9 9 74657374)")"
	to_host "a probe of the host" 86dd "$(icmp6_hex "$mine" "$host" 135 "00000000$(address_hex "$host")")"
	to_host "a probe of a global address" 86dd \
		"$(icmp6_hex "$mine" "$(source6_of "$1")" 135 "00000000$(address_hex "$(source6_of "$1")")")"
	to_host "a probe from a global address" 86dd \
		"$(icmp6_hex "$own6" "$host" 135 "00000000$(address_hex "$host")")"
	to_host "OSPFv3 to the host" 86dd "$(ipv6_hex "$mine" "$host" 89 "$(printf '00%.0s' {1..16})")"
	to_host "DHCPv6 to the host" 86dd "$(udp6_hex "$mine" "$host" 547)"
	to_host "a datagram to a global address" 86dd "$(udp6_hex "$mine" "$(source6_of "$1")" 9)"
	to_host "IPv4 link-local to the host" 0800 \
		"$(ipv4_hex 169.254.7.7 "$(source4_of "$1")" 17 "$(udp_hex 9 9 74657374)")"
	[ "$plugin" != bpf-portmap ] || link_forged "$1"
}

source6_of() { ip -o -6 address show dev "$1" scope global | sed 's/.* inet6 \([^/]*\).*/\1/;q'; }
source4_of() { ip -o -4 address show dev "$1" scope global | sed 's/.* inet \([^/]*\).*/\1/;q'; }

# But not with the host's own addresses: those that it has on this link.
link_forged() {
	local source before
	before=$(counted drop_forged_source)
	expect_equal 0 "$before" "before any was forged"
	for source in "$host" "$(source6_of "$1")"; do
		says "forged" $groups:01 86dd "$(icmp6_hex "$source" ff02::1 134 "4000000000000000$(printf '00%.0s' {1..4})")"
		says "forged" "$gateway" 86dd "$(udp6_hex "$source" "$host" 547)"
	done
	expect_counted drop_forged_source 4 "drop_forged_source"
}

# also with portmap
# a container at a bridge and the host reach each other by link-local addresses, and probe each other;
# what routers and hosts say to each other on a link passes between it, its neighbours and the host
test_link_local_bridge() {
	local near=near
	container_add web bridge -p 8080:80/tcp
	container_add near bridge
	link_local_both_ways web cni0
	pings web "$(link_local near eth0)%eth0"
	neighbour_probed web "$(link_local near eth0)" eth0
	heard_start host
	heard_start near
	link_protocols cni0
}

# also with portmap
# so do a routed container and the host
test_link_local_ptp() {
	local near='' veth
	container_add web ptp -p 8080:80/tcp
	veth=$(host_veth web)
	link_local_both_ways web "$veth"
	heard_start host
	link_protocols "$veth"
}
