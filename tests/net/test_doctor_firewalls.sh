# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016 # the world's names: world.sh
#
# test_doctor_firewalls.sh - `bpf-portmap doctor` beside firewalls: the rule or chain that drops is
# named, and after the remedy packets get through, to the mapped port and out of the container.

# shellcheck source=tests/net/doctor.sh
. "$project/tests/net/doctor.sh"

# guarded_host: a healthy host, with a server that containers reach by the default route
guarded_host() {
	healthy_host
	in_namespace client "$peer" serve tcp any 9000 --name out --background
	expect_answer web tcp "$client4" 9000 out
}

# opens WORDS...: what is dropped is found by the check forward alone, with these words, and the
# remedy opens the way in and out
opens() {
	local words
	expect_no_answer client tcp "$host4" 8080
	expect_no_answer client tcp "$host6" 8080
	expect_no_answer web tcp "$client4" 9000
	for words; do finds forward "$words" 2; done
	mend
	healthy
	expect_open
}

expect_open() {
	local address
	for address in "$host4" "$host6"; do
		expect_answer client tcp "$address" 8080 web
		expect_answer client udp "$address" 5353 web
	done
	expect_answer web tcp "$client4" 9000 out
	expect_answer web tcp "$client6" 9000 out
}

# firewalld itself, as a host runs it: its daemon, the bus it is talked to by, and firewall-cmd;
# the zone public, with what its packages have for it
# limit 120 s
test_doctor_firewalls_firewalld() {
	command -v firewalld >/dev/null || skip "no firewalld"
	guarded_host
	firewalld_start
	opens 'inet firewalld filter_F' 'sends (cni0 to eth0)'
	# What was opened stays open.
	firewall-cmd --reload >/dev/null
	healthy
	expect_open
}

# Its configuration is the test's own, as is /run.
firewalld_start() {
	mkdir -p /run/dbus /run/firewalld.copy
	cp -a /etc/firewalld/. /run/firewalld.copy
	mount --bind /run/firewalld.copy /etc/firewalld
	mount -t tmpfs tmpfs /var/log
	dbus-daemon --system --nofork --nopidfile --nosyslog 2>/run/dbus.log &
	wait_until 20 test -S /run/dbus/system_bus_socket || fail "$(cat /run/dbus.log)"
	firewalld --nofork --nopid >/run/firewalld.log 2>&1 &
	wait_until 60 firewalld_runs || fail "$(cat /run/firewalld.log)"
}
firewalld_runs() { [ "$(firewall-cmd --state 2>&1)" = running ]; }

# ufw itself, enabled, with its defaults
# limit 120 s
test_doctor_firewalls_ufw() {
	command -v ufw >/dev/null || skip "no ufw"
	guarded_host
	mkdir /run/ufw.copy /run/xtables
	cp -a /etc/ufw/. /run/ufw.copy
	mount --bind /run/ufw.copy /etc/ufw
	ufw --force enable >/run/ufw.log 2>&1 || fail "$(cat /run/ufw.log)"
	opens 'ip filter FORWARD: policy drop' 'ip6 filter FORWARD: policy drop'
	expect_contains "$(ufw status)" '80/tcp'
	ufw reload >/dev/null
	healthy
	expect_open
}

# nftables with a policy
test_doctor_firewalls_nftables() {
	guarded_host
	nft 'table inet f { chain forward { type filter hook forward priority 0; policy drop; }; }'
	opens 'inet f forward: policy drop, no rule accepts *:8080/tcp' \
		"policy drop, no rule accepts what $(address4 web) sends"
}

# iptables' policies
test_doctor_firewalls_iptables() {
	guarded_host
	iptables-nft -P FORWARD DROP
	ip6tables-nft -P FORWARD DROP
	opens 'ip filter FORWARD: policy drop' 'ip6 filter FORWARD: policy drop'
}

# iptables-legacy's policies
test_doctor_firewalls_legacy() {
	iptables-legacy -nL >/dev/null 2>&1 || skip "no iptables-legacy"
	guarded_host
	iptables-legacy -P FORWARD DROP
	ip6tables-legacy -P FORWARD DROP
	opens 'ip filter (legacy) FORWARD: policy drop' 'ip6 filter (legacy) FORWARD: policy drop'
}

# a rule that rejects what containers send, and one that drops what answers: those that a container
# needs for its ports are no finding
test_doctor_firewalls_out() {
	guarded_host
	nft 'table inet f { chain forward { type filter hook forward priority 0; policy accept;
		iifname "cni0" ct state new reject; }; }'
	expect_no_answer web tcp "$client4" 9000
	expect_answer client tcp "$host4" 8080 web
	finds forward 'drops what' 1
	mend
	healthy
	expect_open
	# An administrator who lets some of it out has said so.
	nft flush chain inet f forward
	nft 'add rule inet f forward iifname "cni0" ct state new tcp dport != 9000 drop'
	healthy
}
