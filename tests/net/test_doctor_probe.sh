# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016 # the world's names: world.sh
#
# test_doctor_probe.sh - `bpf-portmap doctor PORT` sends a packet, and its first line says where that
# ended; firewalls that let clients in are left alone, and nothing stays of the packet.

# shellcheck source=tests/net/doctor.sh
. "$project/tests/net/doctor.sh"

# probes CODE [ARGUMENT...]: what doctor prints is in /run/out; the container's clients have no
# packet of it
probes() {
	local code=$1
	shift
	by_hand "$code" doctor "$@"
}

# says WORDS [ARGUMENT...]: the first line is a failure with these words
says() {
	local words=$1
	shift
	probes 2 "${@:-8080/tcp}"
	expect_contains "$(head -n 1 /run/out)" "FAIL  probe"
	expect_contains "$(head -n 1 /run/out)" "$words"
}

in_web() { in_namespace web "$@"; }

# a port that is answered has no finding, and the client named gets no packet
test_doctor_probe_healthy() {
	healthy_host
	probes 0 8080 --from "$client4"
	probes 0
	probes 0 --from "$server4" 8080/tcp
	probes 0 --from "$client6" 8080/tcp
}

# rules that drop are named: in the host's tables, each family and hook
test_doctor_probe_rules() {
	healthy_host
	nft 'table ip cs { set bl { type ipv4_addr; elements = { 203.0.113.1 }; }; chain c { type filter hook prerouting priority raw; ip saddr @bl drop; }; }'
	says 'dropped by the host: nft ip cs, chain c, rule handle'
	expect_contains "$(cat /run/out)" '(ip saddr @bl drop)'
	nft delete table ip cs
}
