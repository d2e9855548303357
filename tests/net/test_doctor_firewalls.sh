# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_firewalls.sh - `bpf-portmap doctor` beside firewalls: the rule or chain that drops is
# named, and after the remedy packets get through, to the mapped port and out of the container.

# guarded_host: a healthy host, with a server that containers reach by the default route
guarded_host() {
	healthy_host
	in_namespace client "$peer" serve tcp any 9000 --name out --background
	expect_answer web tcp "$client4" 9000 out
}

# opens WORDS...: what is dropped is found, in and out, with these words, and the remedies open the
# way
opens() {
	local words
	both expect_no_answer client tcp @host 8080
	expect_no_answer web tcp "$client4" 9000
	probe 2
	cp /run/doctor /run/first
	for words; do expect_contains "$(jq -r .found /run/doctor)" "$words"; done
	mend
	probe 0
	expect_open
}

# probe CODE: what a probe of each port, and of what containers send, finds; UDP as well
probe() {
	local code=0
	"$build/bpf-portmap" doctor --send --json >/run/out 2>/run/err || code=$?
	jq -c '.items[] | select(.verdict != "ok")' /run/out >/run/doctor
	expect_equal "$1" "$code" "the exit status with $(cat /run/doctor)"
}

expect_open() {
	local address
	for address in "$host4" "$host6"; do
		expect_answer client tcp "$address" 8080 web
		expect_answer client udp "$address" 5353 web
	done
	both expect_answer web tcp @client 9000 out
}

# firewalld itself, as a host runs it: its daemon, the bus it is talked to by, and firewall-cmd;
# the zone public, with what its packages have for it
# limit 120 s
test_doctor_firewalls_firewalld() {
	command -v firewalld >/dev/null || skip "no firewalld"
	guarded_host
	firewalld_start
	opens 'dropped by the host: nft inet firewalld' 'sends, cni0 to eth0'
	# What was opened stays open.
	firewall-cmd --reload >/dev/null
	probe 0
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
	wait_until 60 firewalld_filters || fail "$(cat /run/firewalld.log)"
	wait_until 60 firewalld_runs || fail "$(cat /run/firewalld.log)"
}
# It has its table somewhat before it runs; to ask for that takes a thousandth of firewall-cmd, in Python.
firewalld_filters() { nft list table inet firewalld >/dev/null 2>&1; }
firewalld_runs() { [ "$(firewall-cmd --state 2>&1)" = running ]; }

# ufw itself, enabled, with its defaults
# limit 120 s
test_doctor_firewalls_ufw() {
	command -v ufw >/dev/null || skip "no ufw"
	guarded_host
	ufw_start
	opens 'nft ip filter, chain FORWARD, policy drop' \
		'nft ip6 filter, chain FORWARD, policy drop'
	expect_contains "$(ufw status)" '80/tcp'
	ufw reload >/dev/null
	probe 0
	expect_open
}

# nftables with a policy
test_doctor_firewalls_nftables() {
	guarded_host
	nft 'table inet f { chain forward { type filter hook forward priority 0; policy drop; }; }'
	opens 'dropped by the host: nft inet f, chain forward, policy drop [' '; *:8080/tcp, from' \
		"what $(address4 web) sends, cni0 to eth0"
	# One cause, once for the ports and once for what goes out.
	expect_equal 2 "$(wc -l </run/first)" "$(cat /run/first)"
}

# iptables' policies
test_doctor_firewalls_iptables() {
	guarded_host
	iptables-nft -P FORWARD DROP
	ip6tables-nft -P FORWARD DROP
	opens 'nft ip filter, chain FORWARD, policy drop' \
		'nft ip6 filter, chain FORWARD, policy drop'
}

# iptables-legacy's policies and rules: which one it was the kernel does not tell, so that those that
# have counted the packet are listed, and none is opened
test_doctor_firewalls_legacy() {
	iptables-legacy -nL >/dev/null 2>&1 || skip "no iptables-legacy"
	guarded_host
	iptables-legacy -P FORWARD DROP
	probe 2
	expect_contains "$(jq -r .found /run/doctor)" \
		'dropped by the host: by iptables-legacy or another user of netfilter, at FORWARD'
	expect_contains "$(jq -r .remedy /run/doctor)" '# -t filter :FORWARD DROP'
	iptables-legacy -A FORWARD -p tcp --dport 80 -d 10.88.0.0/16 -j REJECT
	iptables-legacy -A FORWARD -p tcp --dport 81 -j DROP
	iptables-legacy -A FORWARD -d 10.99.0.0/16 -j DROP
	by_hand 2 doctor 8080/tcp
	expect_in /run/out '# -t filter -A FORWARD -d 10.88.0.0/16 -p tcp -m tcp --dport 80 -j REJECT'
	expect_equal 1 "$(grep -c -- '# -t ' /run/out)" "$(cat /run/out)"
}

# a rule that rejects what containers send is found, and is not for us to open; one that lets some of
# it out is no finding
test_doctor_firewalls_out() {
	guarded_host
	nft 'table inet f { chain forward { type filter hook forward priority 0; policy accept;
		iifname "cni0" ct state new drop; }; }'
	expect_no_answer web tcp "$client4" 9000
	expect_answer client tcp "$host4" 8080 web
	probe 1
	expect_contains "$(jq -r .found /run/doctor)" '(iifname "cni0" ct state new drop) [what'
	expect_equal null "$(jq -r .remedy /run/doctor | sort -u)"
	nft flush chain inet f forward
	nft 'add rule inet f forward iifname "cni0" ct state new tcp dport != 443 drop'
	probe 0
}

# somebody else who masquerades what containers send is found
test_doctor_firewalls_masquerade() {
	guarded_host
	nft 'table ip m { chain p { type nat hook postrouting priority srcnat;
		ip saddr 10.88.0.0/16 oifname "eth0" masquerade; }; }'
	probe 1
	expect_contains "$(jq -r .found /run/doctor)" 'masqueraded by a rule of others'
}
