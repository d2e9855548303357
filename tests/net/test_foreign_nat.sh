# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_foreign_nat.sh - host ports for which there already are iptables or nftables rules.

# served_by_portmap NAME -p ...: a container whose port the reference portmap has mapped
served_by_portmap() {
	local name=$1
	shift
	conflist old bridge "$other_network | $as_reference"
	container_start "$name" old "$@"
}

# said_by_add NAME LIST [-p ...]: what ADD prints on stderr
said_by_add() {
	local name=$1 list=$2
	shift 2
	[ -e "/run/netns/$name" ] || namespace_add "$name"
	runtime add "$list" "$name" "$@" 2>&1 >/run/results/"$name" ||
		fail "ADD of $name: $(cat /run/results/"$name")"
}

expect_silence() { expect_equal '' "$1" 'output of ADD'; }

# ADD of a port that portmap has mapped for the container `old` warns and takes the port; with
# refuseForeign it fails and changes nothing
expect_old_found() {
	local said state_before
	said=$(said_by_add web bridge -p 8080:80/tcp -p 8081:80/tcp)
	expect_contains "$said" 'host port 8080/tcp is mapped to '
	expect_contains "$said" 'id: "old"'
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web
	container_remove web bridge
	container_add_plain late
	state_before=$(state_show)
	expect_failure plugin_call ADD late '.refuseForeign = true'
	expect_code 101
	expect_contains "$output" 'id: \"old\"'
	expect_same_state "$state_before"
	expect_answer client tcp "$host4" 8080 old
	said=$(plugin_call ADD late ".refuseForeign = true | $(mapping 8081)" 2>&1 >/run/out)
	expect_silence "$said"
}

# ADD of a port that the reference portmap has mapped, by iptables on nftables, warns and names that
# container; with refuseForeign it fails with 101, and nothing is left
test_foreign_nat_portmap() {
	served_by_portmap old -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 old
	expect_old_found
	expect_silence "$(said_by_add web bridge -p 8080:80/udp)"
}

# the same with iptables-legacy
test_foreign_nat_portmap_legacy() {
	mkdir /run/legacy
	ln -s /usr/sbin/iptables-legacy /run/legacy/iptables
	ln -s /usr/sbin/ip6tables-legacy /run/legacy/ip6tables
	iptables-legacy -w -t nat -S >/dev/null 2>&1 || skip 'no iptables-legacy, or a kernel without it'
	PATH=/run/legacy:$PATH served_by_portmap old -p 8080:80/tcp
	expect_contains "$(iptables-legacy -t nat -S)" CNI-DN-
	expect_answer client tcp "$host4" 8080 old
	expect_old_found
}

# ADD prints nothing if iptables and nftables have no rule about the port
test_foreign_nat_silent() {
	expect_silence "$(said_by_add first bridge -p 8080:80/tcp -p 8080:80/udp)"
	container_remove first bridge
	nft -f - <<-'RULES'
	table ip nat {
		chain prerouting {
			type nat hook prerouting priority dstnat;
			tcp dport 8081 dnat to 10.0.0.5:80
			udp dport 8080 dnat to 10.0.0.5:80
			tcp sport 8080 dnat to 10.0.0.5:80
			tcp dport 8000-9000 tcp dport != 8080 dnat to 10.0.0.5:80
			ip daddr 10.96.0.1 tcp dport 8080 dnat to 10.0.0.5:80
			ip daddr 10.96.0.0/16 tcp dport 8080 dnat to 10.0.0.5:80
			ip saddr 192.0.2.1 ip daddr 10.96.0.1 tcp dport 8080 dnat to 10.0.0.5:80
			tcp dport 8080 jump counted
			ip daddr 10.96.0.1 jump service
			tcp dport { 22, 8000-8079, 8081 } dnat to 10.0.0.5
			dnat to tcp dport map { 22 : 10.0.0.5 }
			dnat to ip daddr . tcp dport map { 10.96.0.1 . 8080 : 10.0.0.5 }
			iifname eth7 dnat to 10.0.0.5
		}
		chain counted { counter
		}
		chain service { tcp dport 8080 dnat to 10.0.0.5:80
		}
		chain unused { tcp dport 8080 dnat to 10.0.0.5:80
		}
		chain output {
			type nat hook output priority -100;
			tcp dport 8080 dnat to 10.0.0.5:80
		}
		chain postrouting {
			type nat hook postrouting priority srcnat;
			tcp dport 8080 masquerade
		}
	}
	table inet filter {
		chain prerouting { type filter hook prerouting priority raw; tcp dport 8080 accept
		}
	}
	RULES
	expect_silence "$(said_by_add second bridge -p 8080:80/tcp)"
}

# expect_found TEXT RULE...: ADD of port 8080 prints TEXT if these are NAT rules before routing, in
# a table of the family $family
expect_found() {
	local expected=$1 family=${family:-ip} rule
	shift
	nft -f - <<-RULES
	table $family foreign
	delete table $family foreign
	table $family foreign {
		set ports { type inet_service; flags interval; elements = { 8000-8100, 9000 }
		}
		set open { type inet_service; flags interval; elements = { 1024-65535 }
		}
		chain target { $target
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			$(for rule; do echo "$rule"; done)
		}
	}
	RULES
	said=$(said_by_add web bridge -p 8080:80/tcp)
	runtime del bridge web
	expect_contains "$said" 'host port 8080/tcp is mapped'
	expect_contains "$said" "$expected"
}

# limit 120 s
# nftables rules are found whatever form they have the port in: alone, in a range, in a set, in a
# map, at an address of the host, behind jumps
test_foreign_nat_nftables() {
	local target='' said
	namespace_add web
	expect_found ' to 10.0.0.5:80 by a rule in chain prerouting of iptables or nftables (comment: my rule)' \
		'tcp dport 8080 counter dnat to 10.0.0.5:80 comment "my rule"'
	expect_found ' to 10.0.0.5:8080 by' 'tcp dport 8000-8080 dnat to 10.0.0.5'
	expect_found ' to 10.0.0.5:80 by' 'tcp dport { 80, 8080 } dnat to 10.0.0.5:80'
	expect_found ' to 10.0.0.5:80 by' 'tcp dport @ports dnat to 10.0.0.5:80'
	expect_found ' to 10.0.0.5:80 by' 'tcp dport @open dnat to 10.0.0.5:80'
	expect_found ' by a rule' 'dnat to tcp dport map { 22 : 10.0.0.4, 8080 : 10.0.0.5 }'
	expect_found ' by a rule' "dnat to ip daddr . tcp dport map { $host4 . 8080 : 10.0.0.5 }"
	expect_found ' by a rule' 'tcp dport 8080 redirect to :80'
	expect_found ' by a rule' "ip daddr $host4_second tcp dport 8080 dnat to 10.0.0.5:80"
	expect_found ' by a rule' 'ip daddr 192.0.0.0/13 tcp dport 8080 dnat to 10.0.0.5:80'
	target='tcp dport 8080 dnat to 10.0.0.7:80'
	expect_found ' to 10.0.0.7:80 by a rule in chain target' 'fib daddr type local jump target'
	target='meta l4proto tcp dnat to 10.0.0.7:80'
	expect_found ' to 10.0.0.7:80 by a rule in chain prerouting' 'tcp dport 8080 goto target'
	family=inet
	target=''
	expect_found ' to 10.0.0.5:80 by' 'tcp dport 8080 dnat ip to 10.0.0.5:80'
	expect_found ' to [fd00::5]:80 by' 'meta l4proto { tcp, udp } th dport 8080 dnat ip6 to [fd00::5]:80'
	expect_found ' by a rule' "ip6 daddr $host6 tcp dport 8080 dnat ip6 to [fd00::5]:80"
}

# the chains of Docker, netavark and portmap's nftables backend
test_foreign_nat_engines() {
	local said
	iptables -t nat -N DOCKER
	iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
	iptables -t nat -A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT \
		--to-destination 172.17.0.2:80
	said=$(said_by_add web bridge -p 8080:80/tcp)
	expect_contains "$said" 'is mapped to 172.17.0.2:80 by a rule in chain DOCKER'
	iptables -t nat -F
	nft -f - <<-'RULES'
	table inet netavark {
		chain nv_2f259bab_10_88_0_0_nm16_dnat {
			tcp dport 8081 dnat ip to 10.88.0.9:80
		}
		chain NETAVARK-HOSTPORT-DNAT { tcp dport 8081 jump nv_2f259bab_10_88_0_0_nm16_dnat
		}
		chain PREROUTING {
			type nat hook prerouting priority dstnat;
			fib daddr type local jump NETAVARK-HOSTPORT-DNAT
		}
	}
	table ip cni_hostport {
		chain hostports { tcp dport 8082 dnat to 10.88.0.8:80 comment "c0ffee"
		}
		chain hostip_hostports {
			ip daddr 192.0.2.1 udp dport 8083 dnat to 10.88.0.8:80 comment "c0ffee"
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			jump hostip_hostports
			jump hostports
		}
	}
	RULES
	said=$(said_by_add other bridge -p 8081:80/tcp -p 8082:80/tcp -p 8083:80/udp)
	expect_contains "$said" 'host port 8081/tcp is mapped to 10.88.0.9:80 by a rule in chain '
	expect_contains "$said" 'host port 8082/tcp is mapped to 10.88.0.8:80 by a rule in chain hostports'
	expect_contains "$said" 'host port 8083/udp is mapped to 10.88.0.8:80 by a rule in chain hostip_hostports'
	expect_contains "$said" '(comment: c0ffee)'
	expect_equal 3 "$(grep -c . <<<"$said")" "lines in: $said"
}

# a node port of kube-proxy, whose rule for the port jumps to the one that translates
test_foreign_nat_node_port() {
	local said
	iptables-restore -w <<-'RULES'
	*nat
	:KUBE-SERVICES -
	:KUBE-NODEPORTS -
	:KUBE-EXT-A -
	:KUBE-SVC-A -
	:KUBE-SEP-A -
	:KUBE-MARK-MASQ -
	-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
	-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 30080 -j KUBE-SVC-A
	-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
	-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j KUBE-EXT-A
	-A KUBE-EXT-A -j KUBE-MARK-MASQ
	-A KUBE-EXT-A -j KUBE-SVC-A
	-A KUBE-SVC-A -j KUBE-SEP-A
	-A KUBE-SEP-A -s 10.88.0.2/32 -j KUBE-MARK-MASQ
	-A KUBE-SEP-A -p tcp -m tcp -j DNAT --to-destination 10.88.0.2:8080
	-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
	COMMIT
	RULES
	said=$(said_by_add web bridge -p 30080:80/tcp -p 8080:80/tcp)
	expect_contains "$said" 'host port 30080/tcp is mapped to 10.88.0.2:8080 by a rule in chain KUBE-NODEPORTS'
	expect_contains "$said" '(comment: default/web:http)'
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
}

# a mapping at one address of the host does not conflict with a rule for another address
test_foreign_nat_addresses() {
	local said
	iptables -t nat -A PREROUTING -d "$host4" -p tcp -m multiport --dports 80,8000:8100 -j DNAT \
		--to-destination 10.0.0.5
	expect_silence "$(said_by_add web bridge -p "$host4_second:8080:80/tcp" -p 127.0.0.1:8080:80/tcp)"
	said=$(said_by_add other bridge -p "$host4:8080:80/tcp")
	expect_contains "$said" 'host port 8080/tcp is mapped to 10.0.0.5:8080'
}

# a rule's comment is printed as printable text only
test_foreign_nat_comment() {
	local said
	nft -f - <<-RULES
	table ip foreign { chain prerouting {
		type nat hook prerouting priority dstnat;
		tcp dport 8080 dnat to 10.0.0.5:80 comment "$(printf 'red \033[31m')"
	} ; }
	RULES
	said=$(said_by_add web bridge -p 8080:80/tcp)
	expect_contains "$said" '(comment: red ?[31m)'
}

# rules of all kinds are read under the sanitizers, also those of iptables-legacy
test_foreign_nat_sanitized() {
	local binary=$build/sanitized/bpf-portmap said
	export ASAN_OPTIONS=detect_leaks=1
	container_add_plain web
	iptables-nft -t nat -A PREROUTING -p tcp -m tcp --dport 1 -m comment --comment one -j REDIRECT
	ip6tables-nft -t nat -A PREROUTING -p tcp -m multiport --dports 1,2:3 -j DNAT --to-destination fd00::5
	nft -f - <<-'RULES'
	table ip foreign {
		chain prerouting {
			type nat hook prerouting priority dstnat;
			tcp dport { 22, 8000-8100 } dnat to 10.0.0.5:80
			dnat to ip daddr . tcp dport map { 192.0.2.1 . 8080 : 10.0.0.5 }
		}
	}
	RULES
	iptables-legacy -t nat -A PREROUTING -p tcp --dport 1 -j DNAT --to-destination 10.0.0.5 || true
	ip6tables-legacy -t nat -A PREROUTING -p udp --dport 1:9 -j REDIRECT || true
	said=$(plugin_call ADD web 2>&1 >/run/out) || fail "$(cat /run/out) $said"
	expect_contains "$said" 'host port 8080/tcp is mapped to 10.0.0.5:80 by a rule in chain prerouting'
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
	plugin_call DEL web || fail DEL
	expect_failure plugin_call ADD web '.refuseForeign = true'
	expect_code 101
}
