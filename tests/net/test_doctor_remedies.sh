# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_remedies.sh - each remedy of `bpf-portmap doctor PORT` that opens a firewall, run in a
# copy of the situation: the client that was asked about, or the port, gets through afterwards, and
# strangers are refused as before; whom an administrator lets in is left to him.

# sick: a host with a container of two ports, one of which is asked about
sick() {
	healthy_host
	container_add two bridge -p 8090:80/tcp -p 8091:81/tcp
	serve_in two 80
	serve_in two 81
	two4=$(address4 two) two6=$(address6 two)
	in_namespace client "$peer" serve tcp any 9000 --name out --background
}

# mends [ARGUMENT...]: doctor 8090 fails with a remedy, after which it is good
mends() {
	local code=0
	"$build/bpf-portmap" doctor 8090/tcp --json "$@" >/run/out 2>/run/err || code=$?
	expect_equal 2 "$code" "$(cat /run/out)"
	jq -c '.items[] | select(.verdict != "ok")' /run/out >/run/doctor
	mend
	cp /run/mend /run/mended
	by_hand 0 doctor 8090/tcp --json "$@"
	! jq -r '.items[].remedy // empty' /run/out | grep accept || fail "a rule that is there already"
}

# leaves CODE [ARGUMENT...]: doctor 8090 ends with this status, and prints nothing to open anything
leaves() {
	by_hand "$1" doctor 8090/tcp "${@:2}"
	! grep -E 'remedy|nft (add|insert)|iptables' /run/out || fail "a remedy: $(cat /run/out)"
}

# strangers_are_refused: another port of the same container, and another container
strangers_are_refused() {
	both expect_no_answer client tcp @host 8091
	expect_no_answer client tcp "$host4" 8080
	expect_no_answer two tcp "$client4" 9000
}

policy='type filter hook forward priority 0; policy drop;'
drop_policies=(
	"table inet f { chain forward { $policy }; }"
	"table inet f { chain forward { $policy ct state established,related accept; }; }"
	"table inet f { chain forward { $policy ct state vmap { established : accept, related : accept, invalid : drop }; tcp dport 22 accept; }; }"
	"table inet f { chain forward { $policy ct state established accept; oifname cni0 udp dport 80 accept; icmp type echo-request accept; ip daddr 10.99.0.0/16 accept; tcp dport { 22, 443 } ip saddr 192.0.2.0/24 accept; }; }"
	"table ip f { chain forward { $policy }; }; table ip6 f { chain forward { $policy }; }"
	"table inet f { chain other { ip saddr 192.0.2.0/24 tcp dport 8443 accept; }; chain forward { $policy jump other; }; }"
)

# nftables' policies, beside rules about other ports: the port is opened to all, or to the one client
# who is named
# limit 240 s
test_doctor_remedies_policy() {
	local rules
	sick
	for rules in "${drop_policies[@]}"; do
		nft "$rules"
		mends
		both expect_answer client tcp @host 8090 two
		expect_answer server tcp "$host4_second" 8090 two
		strangers_are_refused
		nft flush ruleset
		nft "$rules"
		mends --from "$client4"
		expect_answer client tcp "$host4" 8090 two
		expect_no_answer client tcp "$host6" 8090
		expect_no_answer server tcp "$host4_second" 8090
		strangers_are_refused
		nft flush ruleset
	done
}

# iptables' policy: the same
# limit 120 s
test_doctor_remedies_iptables() {
	local from
	sick
	for from in '' "--from $client4"; do
		iptables-nft -P FORWARD DROP
		ip6tables-nft -P FORWARD DROP
		mends $from
		expect_answer client tcp "$host4" 8090 two
		strangers_are_refused
		[ -z "$from" ] || expect_no_answer server tcp "$host4_second" 8090
		[ -n "$from" ] || expect_answer client tcp "$host6" 8090 two
		nft flush ruleset
	done
}

# ufw, with what it begins with
# limit 240 s
test_doctor_remedies_ufw() {
	command -v ufw >/dev/null || skip "no ufw"
	sick
	ufw_start
	mends --from "$client4"
	expect_answer client tcp "$host4" 8090 two
	expect_no_answer server tcp "$host4_second" 8090
	strangers_are_refused
	mends --from "$server4"
	expect_answer server tcp "$host4_second" 8090 two
	strangers_are_refused
}

# who is let in by rules is the administrator's decision: without a client nothing is opened and nothing
# is wrong, and a client who is named is let in alone
# limit 240 s
test_doctor_remedies_allow_list() {
	local rules code office='10.1.0.0/16'
	sick
	for rules in \
		"table inet f { chain forward { $policy ct state established,related accept; ip saddr $office tcp dport { 80, 443, 5432 } accept; }; }" \
		"table inet f { chain forward { $policy ct state established,related accept; ip saddr $office accept; }; }" \
		"table inet f { set s { type ipv4_addr; flags interval; elements = { $office }; }; chain forward { $policy ct state established,related accept; ip saddr @s tcp dport 80-90 accept; }; }" \
		"table inet f { chain office { ip saddr $office accept; }; chain forward { $policy ct state established,related accept; tcp dport vmap { 80 : jump office, 22 : accept }; }; }" \
		"table inet f { chain forward { $policy ct state established,related accept; iifname \"tun0\" oifname \"cni0\" accept; }; }" \
		"table inet f { chain forward { $policy ct state established,related accept; meta mark 0x7 ip daddr 10.88.0.0/16 accept; }; }" \
		"table inet f { chain forward { $policy ct state established,related accept; ip saddr $office ip daddr . tcp dport { $two4 . 80 } accept; }; }"; do
		nft "$rules"
		# Who sets a mark is not known: the port may be shut for all.
		case $rules in *mark*) code=2 ;; *) code=0 ;; esac
		leaves "$code"
		expect_in /run/out 'others are let in ('
		mends --from "$client4"
		expect_answer client tcp "$host4" 8090 two
		expect_no_answer server tcp "$host4_second" 8090
		expect_no_answer client tcp "$host6" 8090
		strangers_are_refused
		# The rule for one client opens nothing to the others either.
		leaves "$code"
		nft flush ruleset
	done
}

# a rule that drops is never opened, nor is a filter elsewhere than in forwarding, nor the container's own
# limit 120 s
test_doctor_remedies_none() {
	local rules code
	sick
	while read -r code rules; do
		nft "$rules"
		leaves "$code" --from "$client4"
		nft flush ruleset
	done <<-ROWS
		2 table inet f { chain c { type filter hook forward priority 0; tcp dport 80 drop; }; }
		2 table inet f { chain c { type filter hook forward priority 0; reject; }; }
		2 table inet f { chain c { type filter hook prerouting priority 0; policy drop; }; }
		2 table inet f { chain c { type filter hook postrouting priority 0; policy drop; }; }
		2 table netdev n { chain c { type filter hook ingress device eth0 priority 0; policy drop; }; }
	ROWS
	in_namespace two nft "table inet f { chain i { type filter hook input priority 0; policy drop; meta l4proto ipv6-icmp accept; }; }"
	leaves 2 --from "$client4"
}

# a chain whose rules for the port are there already, where packets are not tracked: no rule is printed
# again and again
test_doctor_remedies_untracked() {
	local round
	sick
	nft "table inet f { chain raw { type filter hook prerouting priority raw; tcp dport 8090 notrack; tcp sport 80 notrack; };
		chain forward { $policy }; }"
	for round in 1 2; do
		"$build/bpf-portmap" doctor 8090/tcp --json --from "$client4" >/run/out 2>/run/err || true
		jq -r '[.items[].remedy // empty] | .[]' /run/out >/run/remedy
		PATH=$build:$PATH bash -ec "$(cat /run/remedy)"
	done
	"$build/bpf-portmap" doctor 8090/tcp --json --from "$client4" >/run/out 2>/run/err || true
	expect_equal '' "$(jq -r '.items[].remedy // empty' /run/out)"
	strangers_are_refused
}
