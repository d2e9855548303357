# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_synproxy.sh - the host answers SYNs itself, in a container's name or in a server's. Its IP
# stack changes sequence numbers of such a connection from then on.

# synproxy INTERFACE PORT...: the firewall answers SYNs that arrive there for one of these ports. The
# reference's NAT comes after the chain "raw", so its SYNs to a mapped port are the host's own.
synproxy() {
	local interface=$1 ports
	shift
	ports=$(IFS=, && echo "$*")
	sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0
	nft -f - <<-RULES || skip "the kernel has no nftables synproxy"
	table inet shield {
		chain raw {
			type filter hook prerouting priority raw
			iifname "$interface" tcp dport { $ports } tcp flags syn notrack
		}
		chain answer {
			iifname "$interface" tcp dport { $ports } ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
			ct state invalid counter drop
		}
		chain input {
			type filter hook input priority filter
			jump answer
		}
		chain forward {
			type filter hook forward priority filter
			jump answer
		}
	}
	RULES
}

# How many handshakes the host has completed with a client: a line for each CPU, in hexadecimal
handshakes() {
	local valid sum=0
	while read -r _ _ _ valid _; do
		[ "$valid" = cookie_valid ] || sum=$((sum + 16#$valid))
	done </proc/net/stat/synproxy
	echo "$sum"
}

# expect_shielded COUNT TALK...: they go on, and the host has answered so many SYNs by now.
expect_shielded() {
	local count=$1
	shift
	expect_goes_on "$@"
	expect_steady "$@"
	expect_equal "$count" "$(handshakes)" "handshakes of the host"
	[ "$plugin" != bpf-portmap ] || expect_passes_stack "$@"
}

# also with portmap
# connections to a mapped port go on where SYNs are answered by the firewall (SYNPROXY), and those of a
# masqueraded container where its SYNs are
test_synproxy() {
	fast_lists
	serve_in server 9000
	container_start web fast -p 8080:80/tcp
	container_add one fast
	synproxy eth0 8080 80
	talk_open in4 client tcp "$host4" 8080
	talk_open in6 client tcp "$host6" 8080
	expect_shielded 2 in4 in6
	[ "$plugin" != bpf-portmap ] ||
		by_hand_says 0 'answered by the host itself, not by web, to which the packet was translated, as by a SYN proxy' \
			doctor 8080/tcp
	nft delete table inet shield
	synproxy cni0 9000
	talk_open out4 one tcp "$server4" 9000
	talk_open out6 one tcp "$server6" 9000
	expect_shielded 4 out4 out6
}
