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
