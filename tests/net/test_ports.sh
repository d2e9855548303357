# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_ports.sh - very many masqueraded flows to one destination.
#
# FLOWS=60000: how many flows there are where it says FLOWS below; the sets of ports grow with it. So
# many need LEND=off: the table of programs that are lent is smaller.

crowd=$build/tests/crowd
flows=${FLOWS:-4000}
crowds=

crowd_serve() {
	in_namespace "$1" sysctl -qw net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=8192
	in_namespace "$1" "$crowd" serve "$2" --background
}

# Containers choose source ports that nothing else chooses: from 1024 on.
crowd_container() {
	container_add "$@"
	in_namespace "$1" sysctl -qw net.ipv4.ip_local_port_range='1024 65535'
}

# crowd_ask NAMESPACE|host COUNT [OPTION...]: in the background, 10,000 connections per process at
# most
crowd_ask() {
	local who=$1 count=$2 part
	shift 2
	while [ "$count" -gt 0 ]; do
		part=$((count > 10000 ? 10000 : count)) count=$((count > 10000 ? count - 10000 : 0))
		if [ "$who" = host ]; then
			"$crowd" ask "$server4" 9000 "$part" "$@" >"/run/crowd.$who.$count" &
		else
			in_namespace "$who" "$crowd" ask "$server4" 9000 "$part" "$@" >"/run/crowd.$who.$count" &
		fi
		crowds+=" $!:$who.$count"
	done
}

# The connections begun since the last time have lost nothing.
crowds_expect_ok() {
	local one
	for one in $crowds; do
		wait "${one%%:*}" || fail "${one#*:}: $(cat "/run/crowd.${one#*:}"); $(port_counters)"
		echo "# ${one#*:}: $(cat "/run/crowd.${one#*:}")"
	done
	crowds=
}

port_counters() {
	bpftool -j map dump pinned "$pins/counters" | jq -c '[.[0].formatted.values[].value | to_entries[]] |
		group_by(.key) | map({(.[0].key): map(.value) | add}) | add |
		with_entries(select(.value > 0 and (.key | test("tries|drop|moved|evicted|displaced"))))'
}

# Two containers use the same server at once, and all connections send a second request.
crowds_of_two() {
	local list=$1
	crowd_serve server 9000
	crowd_container one "$list"
	crowd_container two "$list"
	crowd_ask one $((flows / 2)) --rounds 2
	crowd_ask two $((flows / 2)) --rounds 2
	crowds_expect_ok
	echo "# $(port_counters)"
	# A search ends after 64 ports. A flow without a port tries again, and finds others.
	[ "$(counted drop_no_tuple)" -le 40 ] || fail "$(counted drop_no_tuple) searches found no port"
}

# half of FLOWS at a time from each of two containers, on all CPUs at once, with the default ports
# limit 300 s
test_ports_default() {
	flows=$((flows / 2)) crowds_of_two bridge
}

# FLOWS at a time from two containers, with 93 % of all ports
# limit 300 s
test_ports_nearly_all() {
	conflist ports bridge "$(with_ours "{\"masqPorts\": \"1024-$((1023 + flows * 64512 / 60000))\"}")"
	crowds_of_two ports
	[ "$(counted masquerade_tries_5_to_16)" -gt 0 ] || fail "$(port_counters)"
}

# 3,000 connections of the host beside 1,000 of a container to one server: none lost; where the
# container may use the host's own ephemeral ports the host loses nothing either
# limit 120 s
test_ports_beside_the_host() {
	crowd_serve server 9000
	crowd_container one bridge
	crowd_ask host 3000 --rounds 5
	crowd_ask one 1000 --rounds 5
	crowds_expect_ok
	conflist ports bridge "$other_network | $(with_ours '{"masqPorts": "30000-40000"}')"
	sysctl -qw net.ipv4.ip_local_port_range='30000 40000'
	crowd_container two ports
	crowd_ask two 1000 --rounds 5
	crowds= # they may lose theirs
	crowd_ask host 3000 --rounds 5
	crowds_expect_ok
}

# after every port was used and its connection closed, new connections succeed before long
# limit 120 s
test_ports_closed_ones_again() {
	conflist ports bridge "$(with_ours '{"masqPorts": "30000-30149"}')"
	crowd_serve server 9000
	crowd_container one ports
	crowd_container two ports
	crowd_ask one 150
	crowds_expect_ok
	sleep 11
	crowd_ask two 150
	crowds_expect_ok
	expect_counted flow_evicted 150 "flows evicted"
}
