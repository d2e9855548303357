# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# guarded.sh - what the tests of the fast path share: a firewall that drops by default,
# conversations through it, and checks of conntrack.

# guard [RULE...]: accepts packets of known flows, and new flows to port 80 of a container and 9000
# of a server; the rules come before that.
guard() {
	nft -f - <<-RULES
	table inet guard
	delete table inet guard
	table inet guard {
		chain forward {
			type filter hook forward priority filter; policy drop;
			$(for rule; do echo "$rule"; done)
			ct state invalid counter drop
			ct state established,related accept
			meta l4proto { tcp, udp } th dport { 80, 9000 } ct state new accept
		}
	}
	RULES
}

expect_no_invalid() {
	expect_contains "$(nft list chain inet guard forward)" 'invalid counter packets 0 '
}

# conversations_open [OPTION...]: eight, mapped and out, TCP and UDP, IPv4 and IPv6
conversations_open() {
	local protocol
	for protocol in tcp udp; do
		conversation_open "in4_$protocol" client "$protocol" "$host4" 8080 "$@"
		conversation_open "in6_$protocol" client "$protocol" "$host6" 8080 "$@"
		conversation_open "out4_$protocol" web "$protocol" "$server4" 9000 "$@"
		conversation_open "out6_$protocol" web "$protocol" "$server6" 9000 "$@"
	done
}

# conversations_each COMMAND PROTOCOL...: COMMAND NAME ANSWER PROTOCOL for each of them
conversations_each() {
	local command=$1 protocol
	shift
	for protocol; do
		"$command" "in4_$protocol" web "$protocol"
		"$command" "in6_$protocol" web "$protocol"
		"$command" "out4_$protocol" server "$protocol"
		"$command" "out6_$protocol" server "$protocol"
	done
}

# UDP skips it after a second answer.
conversations_skip_stack() {
	conversations_each expect_says tcp udp
	conversations_each expect_says udp
	conversations_each expect_fast tcp udp
}

# conversations_silent PROTOCOL...: all of them send a request at once, and none is answered
conversations_silent() {
	local protocol name names=() taken
	for protocol; do names+=({in,out}{4,6}_"$protocol"); done
	for name in "${names[@]}"; do piped_send "$name"; done
	for name in "${names[@]}"; do
		piped_take "$name" 5
		[ "$taken" = timeout ] || fail "$name: expected silence, got: $taken"
	done
}

# is_fast NAME ANSWER PROTOCOL
is_fast() { (expect_fast "$@") 2>/dev/null; }

expect_fast_again() { wait_until 10 is_fast "$@" || fail "$1 does not skip the IP stack again"; }

guarded_world() {
	guard
	stack_watch
	serve_in server 9000
	container_start web "${1:-bridge}" -p 8080:80/tcp -p 8080:80/udp
}

# conntrack_times NAME=SECONDS...
conntrack_times() {
	local each
	for each; do sysctl -qw "net.netfilter.nf_conntrack_${each%=*}=${each#*=}"; done
}

# conntrack_list PROTOCOL [OPTION...]
conntrack_list() {
	local family
	for family in ipv4 ipv6; do conntrack -L -f "$family" -p "$@" 2>/dev/null; done
}

no_conntrack() { [ -z "$(conntrack_list "$1")" ]; }

# no_connection NAMESPACE...: no TCP connection is there, except in TIME_WAIT
no_connection() {
	local name
	for name; do
		[ -z "$(in_namespace "$name" ss -Htn state connected exclude time-wait)" ] || return 1
	done
}

# ufw_start: ufw with its defaults; its configuration is the test's own, as is /run
ufw_start() {
	mkdir /run/ufw.copy /run/xtables
	cp -a /etc/ufw/. /run/ufw.copy
	mount --bind /run/ufw.copy /etc/ufw
	ufw --force enable >/run/ufw.log 2>&1 || fail "$(cat /run/ufw.log)"
}
