# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_series.sh - what one small packet does not show: loss, sizes that do not pass, answers that
# leave by another interface; and hosts on which nothing is wrong.

# half of the new connections are lost at random: the rule is named, with and without --count
test_doctor_series_loss() {
	healthy_host
	nft 'table inet f { chain c { type filter hook forward priority 0; tcp dport 80 tcp flags syn numgen random mod 2 == 0 drop; }; }'
	by_hand 2 doctor 8080/tcp --from "$client4" --count 40
	expect_in /run/out 'packets of 52 bytes are not answered'
	expect_in /run/out 'numgen random mod 2 0 drop'
	nft flush ruleset
	by_hand 0 doctor 8080/tcp --from "$client4" --count 40
	expect_in /run/out '20 of 20 small packets answered, 20 of 20 of 1500 bytes'
	nothing_stays
}

# packets that fill the MTU do not get in, or not out
test_doctor_series_mtu() {
	local veth
	healthy_host
	veth=$(host_veth web)
	ip link set "$veth" mtu 1400
	by_hand 2 doctor 8080/tcp --from "$client4"
	expect_in /run/out "eth0 in shop/web-0 has an MTU of 1500, its end on the host, $veth, of 1400"
	mend_by_hand
	by_hand 0 doctor 8080/tcp --from "$client4"
	nft 'table inet f { chain c { type filter hook forward priority 0; ip length > 1000 drop; }; }'
	by_hand 2 doctor 8080/tcp --from "$client4"
	expect_contains "$(head -n 1 /run/out)" '3 of 3 packets of 1500 bytes are not answered'
	expect_contains "$(head -n 1 /run/out)" '(ip length > 1000 drop)'
}
mend_by_hand() {
	{ "$build/bpf-portmap" doctor 8080/tcp --json || true; } | jq -r '.items[].remedy // empty' >/run/remedy
	PATH=$build:$PATH bash -ec "$(cat /run/remedy)" >/run/mend 2>&1 || fail "$(cat /run/remedy /run/mend)"
}

# a client that comes in by another uplink than the one by which answers leave: strict reverse path
# filters drop it, which only a packet that comes in there shows
test_doctor_series_in() {
	healthy_host
	by_hand 0 doctor 8080/tcp --from "$client4"
	by_hand 2 doctor 8080/tcp --from "$client4" --in eth1
	expect_contains "$(head -n 1 /run/out)" 'the reverse path filter at eth1'
	expect_in /run/out "answers to $client4 leave by eth0, not by eth1 where it comes in"
	reverse_path_loose
	by_hand 0 doctor 8080/tcp --from "$client4" --in eth1
	by_hand 3 doctor 8080/tcp --in eth7
	nothing_stays
}

# hosts on which nothing is wrong: filters of bogons, allow-lists of an office and of the container, rate
# limits of all kinds, banned clients, IPv6 that is off at one uplink, no IPv6 route
# limit 240 s
test_doctor_series_healthy() {
	local rules
	healthy_host
	while read -r rules; do
		nft "$rules"
		by_hand 0 doctor 8080/tcp
		by_hand 0 doctor
		nft flush ruleset
	done <<-ROWS
		table inet f { set b { type ipv4_addr; flags interval; elements = { 198.18.0.0/15, 203.0.113.0/24 }; }; chain c { type filter hook prerouting priority raw; ip saddr @b drop; ip6 saddr 2001:db8:ffff::/48 drop; }; chain o { type filter hook forward priority 0; ip daddr @b drop; ip6 daddr 2001:db8:ffff::/48 drop; }; }
		table inet f { chain c { type filter hook forward priority 0; policy drop; ct state established,related accept; ip saddr 10.1.0.0/16 tcp dport { 80, 443 } accept; iifname "cni0" accept; ip6 saddr fd01::/16 tcp dport 80 accept; }; }
		table inet f { chain c { type filter hook forward priority 0; tcp dport 80 ct state new limit rate over 2/second burst 3 packets drop; }; }
		table inet f { chain c { type filter hook forward priority 0; tcp flags syn tcp option maxseg missing drop; }; }
		table inet f { chain c { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname "cni0" accept; ct state new limit rate 5/second burst 5 packets accept; }; }
		table inet f { set m { type ipv4_addr; size 1000; flags dynamic; }; chain c { type filter hook forward priority 0; tcp flags syn tcp dport 80 ct state new add @m { ip saddr limit rate over 3/second } drop; }; }
		table inet f { chain c { type filter hook forward priority 0; ip saddr { $client4, $server4 } tcp dport 80 reject; ip6 saddr { $client6, $server6 } tcp dport 80 reject; }; }
	ROWS
	in_namespace web nft 'table inet f { chain i { type filter hook input priority 0; policy drop; ct state established accept;
		meta l4proto ipv6-icmp accept; ip saddr 10.1.0.0/16 tcp dport 80 accept; ip6 saddr fd01::/16 tcp dport 80 accept; }; }'
	by_hand 0 doctor 8080/tcp
	in_namespace web nft flush ruleset
	sysctl -qw net.ipv6.conf.eth1.disable_ipv6=1
	by_hand 0 doctor 8080/tcp
	by_hand 0 doctor
	ip -6 route del default
	by_hand 0 doctor
}

# a program of others behind ours, at the uplink's egress, that drops what leaves
test_doctor_series_behind() {
	[ "$(kernel_or 6.6)" = 6.6 ] || skip "the kernel has no TCX"
	healthy_host
	"$build/tests/tcx" drop eth0 egress /sys/fs/bpf/filter
	expect_no_answer client tcp "$host4" 8080
	by_hand 2 doctor 8080/tcp
	expect_in /run/out "at eth0's egress the TCX program "
	"$build/tests/tcx" detach eth0 egress somebody_elses
	by_hand 0 doctor 8080/tcp
}
