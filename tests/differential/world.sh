#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# world.sh PLUGIN - one of the two worlds of the differential test: the network of ../net/world.sh
# with containers, made by real plugins. It then runs the commands that it reads, one a line, as the
# host, and answers each with `done`. It ends with its input.
#
# The stacks of client, server and containers answer ARP and neighbour solicitations only: all
# other packets are the test program's.
# Names come from files that shellcheck does not follow here.
# shellcheck disable=SC1091,SC2034,SC2154,SC2086
set -eEuo pipefail
export PLUGIN=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../net/world.sh"
. "$here/../net/expect.sh"
exec 3>&1 >&2
trap 'echo "failed: $BASH_COMMAND (${BASH_SOURCE[0]##*/}:$LINENO)" >&2' ERR
[ "$PLUGIN" = bpf-portmap ] || LENT=

containers='web victim named plain'
declare -A ports=(
	[web]='-p 8080:80/tcp -p 8080:80/udp -p 5353:53/udp'
	[victim]='-p 20089:80/tcp -p 20089:80/udp'
	[named]='-p 192.0.2.1:9090:80/tcp -p 192.0.2.1:9090:80/udp'
	[plain]=''
)

silent='table inet silent {
	chain everything {
		type filter hook prerouting priority -400; policy drop;
		icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
	}
}'

# What the test program has to know about a container's interface
tell() {
	echo "endpoint $1 $(mac_in "$1" eth0) $(mac_of cni0) $(address4 "$1") $(address6 "$1")" >&3
}

# A neighbour that has to be asked first answers when it answers.
container_make() {
	local address
	container_add "$1" bridge ${ports[$1]}
	for address in "$(address4 "$1")" "$(address6 "$1")"; do
		ip neighbour replace "$address" lladdr "$(mac_in "$1" eth0)" dev cni0 nud permanent
	done
	in_namespace "$1" nft list table inet silent >/dev/null 2>&1 ||
		in_namespace "$1" nft "$silent"
	tell "$1"
}

container_replace() {
	ip neighbour delete "$(address4 "$1")" dev cni0
	ip neighbour delete "$(address6 "$1")" dev cni0
	container_del "$1" bridge
	container_make "$1"
}

# Others' NAT rules, which take a packet before the reference's do.
before=-110 after=90
chain_before() { echo "chain before { type nat hook prerouting priority $before; $1; }"; }
chain_after() { echo "chain after { type nat hook postrouting priority $after; $1; }"; }
chain_output() { echo "chain output { type nat hook output priority $before; $1; }"; }

to_web() {
	chain_before "$1 meta nfproto ipv4 dnat ip to $(address4 web):80; \
		$1 meta nfproto ipv6 dnat ip6 to [$(address6 web)]:80"
}

from_client_to_web() {
	chain_after "ip saddr 192.0.2.0/24 ip daddr $(address4 web) $1; \
		ip6 saddr 2001:db8:1::/64 ip6 daddr $(address6 web) $1"
}

rule_text() {
	local l4='meta l4proto { tcp, udp }'
	case $1 in
	nodeport) to_web "$l4 th dport 31081" ;;
	nodeport_fixed) to_web "$l4 th dport 31081" && from_client_to_web "$l4 masquerade to :20089" ;;
	nodeport_range) to_web "$l4 th dport 31081" && from_client_to_web "$l4 masquerade to :20088-20090" ;;
	masquerade_all) chain_after masquerade ;;
	masquerade_subnet) chain_after 'ip saddr 10.88.0.0/16 masquerade; ip6 saddr fd00:88::/64 masquerade' ;;
	masquerade_leaving) chain_after 'ip saddr 10.88.0.0/16 ip daddr != 10.88.0.0/16 masquerade;
		ip6 saddr fd00:88::/64 ip6 daddr != fd00:88::/64 masquerade' ;;
	masquerade_not_net) chain_after 'ip daddr != 172.16.0.0/12 masquerade; ip6 daddr != fd01::/64 masquerade' ;;
	masquerade_bridge) chain_after 'oifname "cni0" masquerade' ;;
	masquerade_fixed) chain_after "oifname \"cni0\" $l4 masquerade to :20089" ;;
	redirect) chain_before "$l4 th dport 8081 redirect to :7000" ;;
	snat_client) chain_after "ip saddr 192.0.2.0/24 oifname \"cni0\" snat ip to $host4_second;
		ip6 saddr 2001:db8:1::/64 oifname \"cni0\" snat ip6 to $host6_second" ;;
	snat_container) chain_after "ip saddr $(address4 plain) oifname \"eth1\" snat ip to 198.51.100.7;
		ip6 saddr $(address6 plain) oifname \"eth1\" snat ip6 to 2001:db8:2::7" ;;
	dnat_container) chain_before "iifname \"cni0\" $l4 th dport 54 dnat ip to $server4:80;
		iifname \"cni0\" $l4 th dport 54 dnat ip6 to [$server6]:80" ;;
	service) to_web "ip daddr 10.96.0.10 $l4 th dport 80" && chain_output \
		"ip daddr 10.96.0.10 $l4 th dport 80 dnat ip to $(address4 web):80" ;;
	service_hairpin) to_web "ip daddr 10.96.0.10 $l4 th dport 80" && chain_after \
		"ip saddr 10.88.0.0/16 ip daddr 10.88.0.0/16 ct status dnat masquerade" ;;
	*) fail "no rule $1" ;;
	esac
}

rule_add() {
	local text
	text=$(rule_text "$1")
	printf 'table inet foreign_%s {\n%s\n}\n' "$1" "$text" | nft -f -
}

rule_delete() { nft delete table inet "foreign_$1"; }

bridge_netfilter_set() {
	echo "$1" >/proc/sys/net/bridge/bridge-nf-call-iptables
	echo "$1" >/proc/sys/net/bridge/bridge-nf-call-ip6tables
}

reverse_path() {
	local path
	for path in /proc/sys/net/ipv4/conf/*/rp_filter; do echo "$1" >"$path"; done
}

# The second addresses of the uplink
address_add() {
	ip address add 192.0.2.7/24 dev eth0
	ip address add 2001:db8:1::7/64 dev eth0 nodad
}

address_delete() {
	ip address del 192.0.2.7/24 dev eth0
	ip address del 2001:db8:1::7/64 dev eth0
}

# The server is behind the other uplink, by a router that is the client.
route_add() {
	ip route add "$server4" via "$client4"
	ip route add "$server6" via "$client6"
}

route_delete() {
	ip route del "$server4" via "$client4"
	ip route del "$server6" via "$client6"
}

# What the programs count is what a walk finds, after all that came.
counts_check() { [ "$PLUGIN" != bpf-portmap ] || "$build/tests/counts" "$pins"; }

world_make
errors_unlimited host
echo 1000000 >/proc/sys/net/ipv4/icmp_msgs_per_sec
echo 0 >/proc/sys/net/ipv4/tcp_invalid_ratelimit
echo 0 >/proc/sys/net/ipv4/conf/all/log_martians
bridge_netfilter_set 0
# Both hosts track connections, and decide about NAT, from the beginning: where nobody does, the first
# rule that comes finds every connection new.
nft -f - <<-'RULES'
table inet beginning {
	chain before { type nat hook prerouting priority dstnat; ct state new counter; }
	chain input { type nat hook input priority 100; }
	chain output { type nat hook output priority -100; }
	chain after { type nat hook postrouting priority srcnat; }
}
RULES
# More clients and servers at the same links
for number in 11 12; do
	ip neighbour replace "192.0.2.$number" lladdr "$(mac_in client eth0)" dev eth0 nud permanent
	ip neighbour replace "2001:db8:1::$number" lladdr "$(mac_in client eth0)" dev eth0 nud permanent
done
for name in client server; do in_namespace "$name" nft "$silent"; done
echo "endpoint client $(mac_in client eth0) $(mac_of eth0) $client4 $client6" >&3
echo "endpoint server $(mac_in server eth0) $(mac_of eth1) $server4 $server6" >&3
for name in $containers; do container_make "$name"; done
echo "done" >&3
while read -r command; do
	eval "$command"
	echo "done" >&3
done
