# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_tcp.sh - TCP from peers that mean no good: forged packets, refusals.

# Of all connections through the host, as the plugin's NAT sees them
established() {
	if [ "$plugin" = portmap ]; then
		conntrack -L -p tcp --state ESTABLISHED 2>/dev/null | wc -l
	else
		"$build/bpf-portmap" flows --json | jq '[.items[] | select(.state == "established")] | length'
	fi
}

# also with portmap
# blind packets do not close, half-close or age an idle connection, mapped or masqueraded
test_tcp_blind() {
	local flags port
	container_start web bridge -p 8080:80
	serve_in server 9000
	conversation_open in client tcp "$host4" 8080 --source-port 7000
	conversation_open out web tcp "$server4" 9000
	for _ in 1 2; do
		expect_says in web
		expect_says out server
	done
	[[ $(say out) =~ client=[^\ ]*:([0-9]+) ]] || fail "the server does not name its client"
	port=${BASH_REMATCH[1]}
	expect_equal 2 "$(established)" "connections before"
	for flags in FA F FAP SF SFA RF A S R RA SA FA; do
		forge client eth0 tcp "$client4" 7000 "$host4" 8080 --tcp-flags "$flags"
		forge server eth1 tcp "$server4" 9000 "$host4_second" "$port" --tcp-flags "$flags"
	done
	expect_equal 2 "$(established)" "connections after forged packets"
	expect_says in web
	expect_says out server
	conversation_close in
	conversation_close out
}

# limit 120 s
# also with portmap
# connections that were only refused do not use up ports: others reach that server afterwards
test_tcp_refused() {
	local name
	for name in one two three; do container_add "$name" bridge; done
	for name in one two; do
		herd_of "$name" tcp "$server4" 9000 28000 --seconds 3 --rate 14000 >/run/herd ||
			fail "herd: $(cat /run/herd)"
	done
	serve_in server 9000
	calls three tcp "$server4" 9000 40 --at-once 40 --timeout 900 ||
		fail "after refusals: $(cat /run/calls) $(drops)"
}
