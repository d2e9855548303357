# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
#
# rows_rules.sh - connections and ADD beside 10,000 rules of another NAT, as kube-proxy makes them,
# in front of all others: a new connection passes them, whoever translates it. These rows come after
# those of TCP and UDP, whose servers and containers they use.

each_family row tcp_connect_rules 'connections/s' higher \
	"TCP connect, request, answer, close; 16 at a time; beside 10,000 rules of others' NAT"
each_family row udp_in_new_rules 'packets/s' higher \
	"UDP to the container, new flows, 64 bytes, beside 10,000 rules of others' NAT"
for command in add del; do
	row "${command}_beside_rules" ms lower "${command^^}, 1 TCP port, beside 10,000 rules of others' NAT"
done

each_family measure full plain,portmap,established,off 30 beside_rules tcp_rules
each_family measure full plain,portmap,established,off 60 beside_rules udp_in_new_rules
measure quick established 30 add_beside_rules

service4=10.99.0.1 service6='[2001:db8:99::1]' # the backend of all; nobody asks for it

services_write() {
	local tables=iptables-nft
	[ "$family" = 4 ] || tables=ip6tables-nft
	"$tables-restore" --noflush
}

services_make() {
	local port
	{
		printf '*nat\n:KUBE-SERVICES - [0:0]\n-I PREROUTING -j KUBE-SERVICES\n'
		for ((port = 20000; port < 30000; port++)); do
			echo "-A KUBE-SERVICES -p tcp -m tcp --dport $port -j DNAT --to-destination $(of_family service):80"
		done
		echo COMMIT
	} | services_write
	sleep 2 # the kernel still works on so many new rules, and is slow to answer meanwhile
}

services_end() {
	printf '*nat\n-D PREROUTING -j KUBE-SERVICES\n-F KUBE-SERVICES\nCOMMIT\n' | services_write
	printf '*nat\n-X KUBE-SERVICES\nCOMMIT\n' | services_write
}

# beside_rules FUNCTION
beside_rules() {
	services_make
	"$1"
	services_end
}

tcp_rules() {
	tcp_prepare
	tcp_ask_container connect 16
	result tcp_connect_rules "$(tcp_said per_second)"
}

# A virtual machine's speed varies by a half within a second: of many short bursts the fastest counts.
udp_in_new_rules() {
	local first burst fastest=0
	udp_prepare
	first=$(udp_new_first)
	for burst in {0..29}; do
		generate_in --flows 600000 --first $((first + burst * 600000)) --sink datagrams \
			--arrivals 500
		fastest=$(printf '%s\n' "$fastest" "$(said arrived_per_second)" | sort -n | tail -n 1)
	done
	result udp_in_new_rules "$fastest"
}

add_beside_rules() {
	calls_begin
	services_make
	one_port beside_rules
	calls_end
	services_end
}
