# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_gone.sh - containers that disappear without DEL: their ports are free from then on.

# Their conflist has portmap now; ours has the port from before. portmap needs route_localnet and
# OUTPUT for processes of the host.
by_reference() {
	conflist old bridge '.name = "old" | .plugins[0].bridge = "cni1" |
		.plugins[0].ipam.ranges = [[{"subnet":"10.87.0.0/16"}],[{"subnet":"fd00:87::/64"}]] |
		(.plugins[] | select(.type == "bpf-portmap")) |=
			{"type": "portmap", "capabilities": {"portMappings": true}}'
	container_start "$1" old -p 8080:80/tcp -p 8080:80/udp
}

# a container's veth is gone without DEL: portmap serves the same port for the next container, to
# clients, to other containers and to processes of the host
test_gone_port_is_portmaps() {
	[ "$plugin" = bpf-portmap ] || skip "about going back to portmap"
	container_start stays bridge -p 9090:80/tcp
	container_start dead bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 dead
	conversation_open before client udp "$host4" 8080 --source-port 40000 --keep-going --timeout 300
	expect_says before dead
	container_die dead
	by_reference next
	expect_answers host "$host4" 8080 next
	expect_answer host tcp 127.0.0.1 8080 next
	both expect_answers client @host 8080 next
	expect_answers stays "$host4" 8080 next
	# an old client continues from the same port
	answered_by_next() { say before | grep name=next >/dev/null; }
	wait_until 10 answered_by_next || fail "the old client's datagrams do not arrive"
	conversation_close before
	expect_answer client tcp "$host4" 9090 stays
}

# attach removes what a container left behind that disappeared without DEL; so does the next ADD or
# CHECK after a client has connected to its port
test_gone_is_cleared_away() {
	[ "$plugin" = bpf-portmap ] || skip "about our own maps"
	container_start stays bridge -p 9090:80/tcp
	for by in add check attach; do
		container_start "dead$by" bridge -p 8080:80/tcp
		container_die "dead$by"
		expect_no_answer client tcp "$host4" 8080
		expect_count 4 portmaps "before $by"
		case $by in
		add)
			container_add another bridge 2>/run/warnings
			container_remove another bridge
			;;
		check) container_check stays bridge 2>/run/warnings || fail CHECK ;;
		attach) "$build/bpf-portmap" attach >/run/warnings || fail attach ;;
		esac
		expect_count "2 1" 'portmaps attachments' "after $by"
		expect_in /run/warnings "container dead$by"
		expect_answer client tcp "$host4" 9090 stays
	done
}
