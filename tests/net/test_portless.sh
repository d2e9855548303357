# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_portless.sh - masqueraded protocols that have no ports: GRE (47), ESP (50), IP in IP (4).

portless=$build/tests/portless

# at NAMESPACE COMMAND...: also on the host
at() {
	if [ "$1" = host ]; then "${@:2}"; else in_namespace "$@"; fi
}

portless_serve() { at "$1" "$portless" serve "$2"; }

# expect_portless SAYS NAMESPACE PROTOCOL ADDRESS [SIZE]
expect_portless() {
	expect_equal "$1" "$(at "$2" "$portless" ask "${@:3}")" "${*:2}"
}

# GRE, ESP and IP in IP of a container leave with the host's address and are answered, IPv4 and
# IPv6, in fragments too; of one server and protocol each container's in its turn
# also with portmap
test_portless_masquerade() {
	local protocol
	container_add one bridge
	container_add two bridge
	for protocol in 47 50 4; do
		portless_serve server "$protocol"
		expect_portless "size=40 client=$host4_second" one "$protocol" "$server4"
		expect_portless "size=40 client=$host6_second" one "$protocol" "$server6"
		expect_portless "size=4000 client=$host4_second" one "$protocol" "$server4" 4000
		expect_portless "size=4000 client=$host6_second" one "$protocol" "$server6" 4000
		expect_portless timeout two "$protocol" "$server4"
	done
	portless_serve client 47
	expect_portless "size=40 client=$host4" two 47 "$client4"
	expect_portless "size=40 client=$host6" two 47 "$client6"
}

# a container cannot take the answers to the host's own GRE, nor what the host only receives
# also with portmap
test_portless_of_host() {
	portless_serve server 47
	portless_serve host 50
	container_add one bridge
	expect_portless "size=40 client=$host4_second" host 47 "$server4"
	expect_portless timeout one 47 "$server4"
	expect_portless "size=40 client=$host4_second" host 47 "$server4"
	expect_portless "size=40 client=$server6" server 50 "$host6_second"
	expect_portless timeout one 50 "$server6"
	expect_portless "size=40 client=$server6" server 50 "$host6_second"
}

# a container that starts again has its tunnel back, though its peer has gone on sending; the host
# gets its own as soon as it sends
test_portless_restart() {
	portless_serve server 47
	container_add one bridge
	expect_portless "size=40 client=$host4_second" one 47 "$server4"
	expect_equal "$server4 $host4_second $(address4 one)" \
		"$("$build/bpf-portmap" flows --protocol gre | awk '/^gre/ {print $4, $5, $7}')"
	container_remove one bridge
	for _ in 1 2 3; do expect_portless refused server 47 "$host4_second"; done
	container_add one bridge
	expect_portless "size=40 client=$host4_second" one 47 "$server4"
	expect_portless "size=40 client=$host4_second" host 47 "$server4"
	expect_portless timeout one 47 "$server4"
}

# the host's firewall drops without an error what the peer of a container sends while that starts
# again: the container has its tunnel back
test_portless_restart_silent() {
	nft -f - <<-'RULES'
	table inet silent {
		chain input {
			type filter hook input priority filter; policy drop
			icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
		}
	}
	RULES
	portless_serve server 47
	container_add one bridge
	expect_portless "size=40 client=$host4_second" one 47 "$server4"
	container_remove one bridge
	expect_portless timeout server 47 "$host4_second"
	container_add one bridge
	expect_portless "size=40 client=$host4_second" one 47 "$server4"
}
