# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_operator_trace.sh - `bpf-portmap trace`: what the programs would do with a packet, and what
# they do with those that come.

# live_begin [ARGUMENT...]: the words go to /run/live
live_begin() {
	"$build/bpf-portmap" trace --live "$@" >/run/live 2>/run/live-err &
	live=$!
	wait_until 10 grep -q tracing /run/live-err || fail "no trace: $(cat /run/live-err)"
}

# live_end: as Ctrl-C ends it
live_end() {
	kill -INT "$live"
	wait "$live" || fail "trace --live: $? $(cat /run/live-err)"
}

# live_says WORDS: within a few seconds
live_says() {
	wait_until 5 grep -q -e "$1" /run/live ||
		fail "no \"$1\" in $(cat /run/live /run/live-err)"
}

live_is_over() { ! kill -0 "$live" 2>/dev/null; }

# a connection is seen at each hook, both ways, with what the hook does
test_operator_trace_live_connection() {
	local web
	web_as_pod -p 8080:80/tcp
	web=$(address4 web)
	live_begin --port 8080/tcp
	expect_answer client tcp "$host4" 8080 web
	live_says "eth0 in from_uplink  tcp S $client4:[0-9]* > $host4:8080 => $web:80  translated, new mapping, shop/web-0"
	live_says "eth0 out to_uplink  tcp S. $web:80 > $client4:[0-9]* => $host4:8080 > $client4:[0-9]*  translated, mapping, shop/web-0"
	live_end
	! grep -q to_container /run/live || fail "port 8080 is not there any more: $(cat /run/live)"
	live_begin --host "$web"
	expect_answer client tcp "$host4" 8080 web
	live_says "cni0 out to_container  tcp S $client4:[0-9]* > $web:80  unchanged, mapping, shop/web-0"
	live_says "veth[0-9a-f]* in from_container  tcp S. $web:80 > $client4:[0-9]*  unchanged, mapping"
	live_end
	expect_contains "$(cat /run/live-err)" "pwru --filter-track-skb --output-tuple 'host $web'"
}

# what a firewall drops in FORWARD is shown with the kernel's reason and function
test_operator_trace_live_forward() {
	local web
	web_as_pod -p 8080:80/tcp
	web=$(address4 web)
	nft 'table inet broken { chain forward { type filter hook forward priority 0; policy drop; }; }'
	live_begin --port 8080
	expect_no_answer client tcp "$host4" 8080
	live_says "kernel  tcp S $client4:[0-9]* > $web:80  DROPPED"
	live_end
	expect_contains "$(cat /run/live)" "new mapping"
	grep -q 'before 5.17' /run/live-err && skip "this kernel does not say why it drops"
	live_says "DROPPED: NETFILTER_DROP at [a-z_]*+0x[0-9a-f]* (FORWARD)"
	expect_contains "$(cat /run/live-err)" "bpf-portmap doctor 8080 tells which rule"
}

# story [ARGUMENT...]: the steps, a blank between columns
story() {
	by_hand 0 trace "$@"
	sed 's/  */ /g' /run/out
}

test_dry_a() {
	web_as_pod -p 8080:80/tcp
	ip route add default via "$client4"
	"$build/bpf-portmap" trace tcp 192.0.2.10 192.0.2.1:8080 >&2
	time "$build/bpf-portmap" trace tcp 192.0.2.10 192.0.2.1:8081 >&2
	"$build/bpf-portmap" trace tcp 10.88.0.2 198.51.100.10:80 >&2
	"$build/bpf-portmap" trace tcp 10.88.0.2 192.0.2.1:8080 >&2
	"$build/bpf-portmap" trace udp 10.88.0.2 198.51.100.10:53 --json >&2
	"$build/bpf-portmap" trace tcp  192.0.2.1 192.0.2.1:8080 >&2
	"$build/bpf-portmap" trace tcp 10.99.0.2 192.0.2.1:8080 >&2
	"$build/bpf-portmap" trace tcp [2001:db8:1::10]:77 [2001:db8:1::1]:8080 >&2
	"$build/bpf-portmap" trace icmp 10.88.0.2 198.51.100.10 >&2
	false
}
