# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2086,SC2046 # the world's names; conversations are words
#
# test_conntrack.sh - what netfilter's NAT and conntrack promise, where no other file shows it.

# shellcheck source=tests/net/test_fastpath_change.sh
. "$here/test_fastpath_change.sh"

# seen_from NAMESPACE PROTOCOL PORT SOURCE-PORT: the endpoint as which the server sees it
seen_from() { field_of client "$(ask "$1" "$2" "$server4" "$3" --source-port "$4")"; }

masqueraded_make() {
	fast_lists
	serve_in server 9000
	container_add one fast
}

# also with portmap
# a source port below 1024, which NFS servers demand, stays below 1024, also if another container has
# the same one
test_conntrack_privileged_port() {
	local name protocol port
	masqueraded_make
	container_add two fast
	for protocol in tcp udp; do
		for name in one two; do
			port=$(seen_from "$name" "$protocol" 9000 700)
			port=${port##*:}
			[ "$port" -lt 1024 ] || fail "$name: $protocol from port 700 becomes $port"
		done
	done
}

# also with portmap
# one socket is seen with the same port by every server, as whoever asks a STUN server for it relies
# on, also if that is not its own
test_conntrack_port_for_all_servers() {
	local port protocol first
	masqueraded_make
	serve_in server 9001
	serve_in server 9002
	for protocol in tcp udp; do
		first=$(seen_from one "$protocol" 9000 40000)
		for port in 9001 9002; do
			expect_equal "$first" "$(seen_from one "$protocol" "$port" 40000)" "$protocol"
		done
	done
}

# marked_routes GATEWAY4 GATEWAY6: marked packets to far are routed there.
marked_routes() {
	ip route add "$far4" via "$1" table 100
	ip route add "$far6" via "$2" table 100
	ip rule add fwmark 7 lookup 100
	ip -6 rule add fwmark 7 lookup 100
}

# expect_none NAMESPACE FILTER TALK...: they go on, and nothing of the kind arrives there.
expect_none() {
	local who=$1 filter=$2
	shift 2
	capture_start wrong "$who" eth0 "$filter"
	expect_steady "$@"
	expect_captured_nothing wrong
}

# also with portmap
# replies that the firewall's mark ties to the uplink of the request leave there
test_conntrack_mark_of_replies() {
	far_make server
	far_by client
	marked_routes "$server4" "$server6"
	nft -f - <<-'RULES'
	table inet marks {
		chain marks {
			type filter hook prerouting priority mangle
			iifname "eth1" ct mark set 7
			iifname "cni0" meta mark set ct mark
		}
	}
	RULES
	fast_lists
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in server "$host4_second" "$host6_second" 8080 "--from $far4" "--from $far6"
	expect_none client "host $far4 or host $far6" $(talks in)
}

# also with portmap
# of two routers on one uplink, packets go to the one that the firewall's mark chooses, masqueraded
# and from a mapped port
test_conntrack_mark_of_router() {
	far_make server
	router_make
	far_by server
	marked_routes "$router4" "$router6"
	nft -f - <<-'RULES'
	table inet marks {
		chain marks {
			type filter hook prerouting priority mangle
			iifname "cni0" meta mark set 7
		}
	}
	RULES
	masqueraded_make
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	talks_open in server "$host4_second" "$host6_second" 8080 "--from $far4" "--from $far6"
	talks_open out one "$far4" "$far6" 9000
	expect_none server "(dst $far4 or dst $far6) and ether dst $(mac_in server eth0)" $(talks in out)
}

# also with portmap
# the same for a rule that goes by the type of service
test_conntrack_router_by_tos() {
	far_make server
	router_make
	far_by server
	ip route add "$far4" via "$router4" table 100
	ip rule add tos 0x10 lookup 100
	masqueraded_make
	talk_open out_tcp one tcp "$far4" 9000 --tos 16
	talk_open out_udp one udp "$far4" 9000 --tos 16
	# The connection's first packet may go before the socket has its type of service.
	expect_goes_on out_tcp out_udp
	expect_none server "dst $far4 and ether dst $(mac_in server eth0)" out_tcp out_udp
}

# Two conversations with a mapped port and two of a container, past the stack where ours translates
conversations_make() {
	masqueraded_make
	container_start web fast -p 8080:80/tcp -p 8080:80/udp
	conversation_open in_tcp client tcp "$host4" 8080 --timeout 300
	conversation_open in_udp client udp "$host4" 8080 --timeout 300
	conversation_open out_tcp one tcp "$server4" 9000 --timeout 300
	conversation_open out_udp one udp "$server4" 9000 --timeout 300
	talks='in_tcp in_udp out_tcp out_udp'
	expect_goes_on $talks
	[ "$plugin" != bpf-portmap ] || expect_skips_stack $talks
}

# also with portmap
# a container that is taken off its bridge is cut off, its TCP connections too
test_conntrack_taken_off_the_bridge() {
	local name
	conversations_make
	for name in web one; do ip link set "$(host_veth "$name")" nomaster; done
	expect_stops $talks
}

arrives_in_web() {
	local before
	before=$(hits web)
	goes_on in_tcp || goes_on in_udp || true
	[ "$(hits web)" != "$before" ]
}
nothing_arrives_in_web() { ! arrives_in_web; }

# also with portmap
# nothing reaches a container whose veth is down
test_conntrack_veth_down() {
	conversations_make
	hits_count web eth0 80
	arrives_in_web || fail "what arrives is not counted"
	ip link set "$(host_veth web)" down
	try_often nothing_arrives_in_web || fail "packets still reach the container"
}
