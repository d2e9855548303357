# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_firewalls.sh - beside the firewalls that hosts have, and what they do to live connections.

# The shape of what firewalld writes: zones by incoming interface, INVALID dropped, everything
# that no zone accepts rejected. firewalld_like [RULE of the zone public...]
firewalld_like() {
	local rule
	nft -f - <<-RULES
	table inet firewalld
	delete table inet firewalld
	table inet firewalld {
		chain forward {
			type filter hook forward priority filter + 10; policy accept;
			ct state { established, related } accept
			ct status dnat accept
			iifname "lo" accept
			ct state invalid counter drop
			iifname { "eth0", "eth1" } goto public
			iifname "cni0" goto trusted
			reject with icmpx admin-prohibited
		}
		chain trusted { accept
		}
		chain public { $(for rule; do echo "$rule"; done)
			reject with icmpx admin-prohibited
		}
	}
	RULES
}

# Both ends of a forwarded connection are judged by what the container has, so what the
# administrator allows is the container's port.
to_container_port='oifname "cni0" tcp dport 80 accept
	oifname "cni0" udp dport 80 accept'

expect_no_invalid() {
	expect_contains "$(nft list chain inet firewalld forward)" 'invalid counter packets 0 '
}

# also with fastPath off
# firewalld's way: a published port is open only if a rule opens it, replies and ICMP errors
# belong to their flow, nothing is INVALID, containers get out
test_firewalls_firewalld() {
	serve_in server 9000
	firewalld_like
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp -p 8081:81/udp
	container_add near bridge
	expect_no_answer client tcp "$host4" 8080
	expect_no_answer client udp "$host6" 8080
	firewalld_like "$to_container_port" 'oifname "cni0" udp dport 81 accept'
	local address
	for address in "$host4" "$host6"; do
		expect_answers client "$address" 8080 web
		expect_answers near "$address" 8080 web
		expect_contains "$(ask client udp "$address" 8081 --connected || true)" refused
	done
	expect_gets_out web
	expect_no_invalid
}

# also with fastPath off
# a firewall's reload, once with conntrack's table flushed, changes nothing for live connections
# in either direction, mapped or masqueraded, TCP or UDP
test_firewalls_reload() {
	local each
	serve_in server 9000
	firewalld_like "$to_container_port"
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversation_open in_tcp client tcp "$host4" 8080
	conversation_open in_udp client udp "$host6" 8080
	conversation_open out_tcp web tcp "$server6" 9000
	conversation_open out_udp web udp "$server4" 9000
	says_all() {
		for each in in_tcp in_udp; do expect_says "$each" web; done
		for each in out_tcp out_udp; do expect_says "$each" server; done
	}
	says_all
	firewalld_like "$to_container_port"
	says_all
	nft flush ruleset
	conntrack -F 2>/dev/null
	says_all
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers web "$server4" 9000 server "$host4_second"
	firewalld_like "$to_container_port"
	says_all
	expect_no_invalid
	for each in in_tcp in_udp out_tcp out_udp; do conversation_close "$each"; done
}

ufw_like() {
	local command
	for command in iptables ip6tables; do
		"$command" -P FORWARD DROP
		"$command" -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
		"$command" -A FORWARD -m conntrack --ctstate INVALID -j DROP
	done
}

# also with fastPath off
# ufw's way: default drop, established accepted; `ufw route allow` is what opens a published port
test_firewalls_ufw() {
	local command
	serve_in server 9000
	ufw_like
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_no_answer client tcp "$host4" 8080
	expect_no_answer web tcp "$server4" 9000
	for command in iptables ip6tables; do
		"$command" -A FORWARD -i eth0 -o cni0 -p tcp --dport 80 -j ACCEPT
		"$command" -A FORWARD -i eth0 -o cni0 -p udp --dport 80 -j ACCEPT
		"$command" -A FORWARD -i cni0 -j ACCEPT
	done
	expect_serves web
	expect_gets_out web
}

# the reference's `firewall` plugin before and after us in the list, on a host that drops what is
# forwarded: containers get out, and come back; new connections to them are for the administrator to
# accept, as with portmap
test_firewalls_plugin() {
	local order list=0
	serve_in server 9000
	ufw_like
	for order in '[.plugins[0], {"type": "firewall", "backend": "iptables"}, .plugins[1]]' \
		'[.plugins[0, 1], {"type": "firewall", "backend": "iptables"}]'; do
		list=$((list + 1))
		conflist "firewall$list" bridge ".name = \"firewall$list\" | .plugins = $order"
		container_start "web$list" "firewall$list" -p "808$list:80/tcp"
		expect_gets_out "web$list"
		# The plugin accepts what a container sends and what answers that, no more.
		expect_no_answer client tcp "$host4" "808$list"
		iptables -I FORWARD -o cni0 -p tcp --dport 80 -j ACCEPT
		expect_answer client tcp "$host4" "808$list" "web$list" "$client4"
		iptables -D FORWARD -o cni0 -p tcp --dport 80 -j ACCEPT
		container_check "web$list" "firewall$list"
		container_remove "web$list" "firewall$list"
	done
}

# source based routing (`sbr`) and `tuning` before and after us in the list: sbr leaves routes for
# bound sources only, tuning may change the MAC
test_firewalls_sbr_and_tuning() {
	local order list=0
	serve_in server 9000
	for order in '[.plugins[0], {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}},
		{"type": "sbr"}, .plugins[1]]' \
		'[.plugins[0, 1], {"type": "sbr"}, {"type": "tuning", "mac": "02:11:22:33:44:55"}]'; do
		list=$((list + 1))
		conflist "sbr$list" bridge ".name = \"sbr$list\" | .plugins = $order"
		container_start "web$list" "sbr$list" -p "808$list:80/tcp" -p "808$list:80/udp"
		expect_serves "web$list" "808$list"
		expect_answers "web$list" "$server4" 9000 server "$host4_second" \
			--from "$(address4 "web$list")"
		expect_answers "web$list" "$server6" 9000 server "$host6_second" \
			--from "$(address6 "web$list")"
		# bridge's own CHECK looks for the route that sbr has moved, so only ours runs.
		jq -c --slurpfile result "/run/results/web$list" '(.plugins[] | select(.type == "bpf-portmap")) +
			{cniVersion: "1.0.0", name: .name, prevResult: $result[0]}' \
			"/run/conf/sbr$list.conflist" >/run/config
		plugin_run CHECK "web$list" </run/config || fail CHECK
		container_remove "web$list" "sbr$list"
	done
}

# The reference for some containers of this host, us for the others.
reference_list() {
	conflist reference bridge '.name = "reference" | .plugins[0].ipMasq = true |
		.plugins[0].bridge = "cni1" |
		.plugins[0].ipam.ranges = [[{"subnet":"10.87.0.0/16"}],[{"subnet":"fd00:87::/64"}]] |
		(.plugins[] | select(.type == "bpf-portmap")) |=
		{"type": "portmap", "capabilities": {"portMappings": true}}'
}

# the reference portmap serves other containers of the same host at the same time: everybody is
# reached from outside and by each other, gets out, and goes without taking anything along
test_firewalls_beside_reference() {
	local address
	serve_in server 9000
	# With bridge netfilter, conntrack has seen what the reference's container answers to a
	# masqueraded neighbour before we have put the neighbour's address back (docs/security.md).
	[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || bridge_netfilter 0
	reference_list
	container_start old reference -p 9090:80/tcp -p 9090:80/udp
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	for address in "$host4" "$host6"; do
		expect_answers client "$address" 8080 web
		expect_answers client "$address" 9090 old
		expect_answers web "$address" 9090 old
		expect_answers old "$address" 8080 web
	done
	expect_answers web "$server4" 9000 server "$host4_second"
	expect_answers old "$server4" 9000 server "$host4_second"
	container_remove old reference
	expect_answers client "$host4" 8080 web "$client4"
	container_start old reference -p 9090:80/tcp -p 9090:80/udp
	container_remove web bridge
	expect_answers client "$host4" 9090 old "$client4"
	expect_no_answer client tcp "$host4" 8080
}

# somebody else's MASQUERADE with the same address: a container of ours does not take the port of
# a flow that it does not know, TCP and UDP, and both go on
test_firewalls_foreign_masquerade_first() {
	local protocol
	serve_in server 9000
	reference_list
	container_add old reference
	container_add web bridge
	for protocol in tcp udp; do
		conversation_open "old_$protocol" old "$protocol" "$server4" 9000 --source-port 5555
		expect_contains "$(say "old_$protocol")" "client=$host4_second:5555 "
		conversation_open "web_$protocol" web "$protocol" "$server4" 9000 --source-port 5555
		expect_says "web_$protocol" server
		expect_says "old_$protocol" server
		expect_says "web_$protocol" server
	done
}

# what docs/firewalls.md says of rules about the host port: in raw, nat and netdev they match nothing, nor
# does what conntrack knows of DNAT; the container's port in FORWARD closes it
test_firewalls_host_port() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	nft -f - <<-'RULES'
	table inet closed {
		chain raw { type filter hook prerouting priority raw; th dport 8080 counter drop
		}
		chain nat { type nat hook prerouting priority dstnat; tcp dport 8080 counter redirect to :9
		}
		chain forward {
			type filter hook forward priority filter;
			ct status dnat counter drop
			meta l4proto tcp ct original proto-dst 8080 counter drop
		}
	}
	table netdev closed {
		chain eth0 { type filter hook ingress device "eth0" priority -500; th dport 8080 counter drop
		}
	}
	RULES
	both expect_answers client @host 8080 web
	nft add rule inet closed forward oifname cni0 tcp dport 80 drop
	expect_no_answer client tcp "$host4" 8080
	expect_answer client udp "$host4" 8080 web
}
