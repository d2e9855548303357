# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_who.sh - `bpf-portmap who`: everybody who could have a port, and who gets what comes
# to it. Each verdict is compared with who answers.

# who CODE OPERAND: the table without titles, a blank between columns, without times and numbers
who() {
	by_hand "$1" who "$2"
	sed -E '1{/^STATE/d}; s/  +/ /g; s/ +$//; s/since [^ ]+/since NOW/; s/pid [0-9]+/pid N/' /run/out
}

# a mapped port names the pod, its sandbox and since when; JSON has the same; a port that nobody has is
# free; what is no port is refused; who needs one
test_operator_who_mapping() {
	local operand
	expect_equal 'free nobody has port 8080' "$(who 0 8080)"
	expect_equal '[]' "$(item .items who 8080/tcp)"
	by_hand 64 who
	for operand in 0 65536 80/icmp 80/gre 80/quic 80@ 80@host tcp/80 80@192.0.2.1/24 '80@[192.0.2.1'; do
		by_hand 64 who "$operand"
		expect_in /run/err 'invalid port "'
	done
	by_hand 64 who 80 81
	web_as_pod -p 8080:80/tcp
	expect_equal 'free nobody has port 8081' "$(who 0 8081)"
	expect_equal 'free nobody has port 8080/udp' "$(who 0 8080/udp)"
	expect_equal 'taken bpf-portmap *:8080/tcp pod shop/web-0, sandbox web, since NOW
taken bpf-portmap [::]:8080/tcp pod shop/web-0, sandbox web, since NOW' "$(who 1 8080)"
	by_hand 1 who 8080@"$host4" --json
	expect_equal '["bpf-portmap","0.0.0.0","tcp","shop/web-0","all","all",null]' "$(jq -c '.items[] |
		[.by, .host.address, .protocol, .container.name, .from_outside, .from_host, .remark]' /run/out)"
	expect_equal true "$(jq '.items[0].since | fromdate | . > 1700000000' /run/out)"
	expect_contains "$(who 1 8080@192.0.2.77)" 'note that is no address of this host'
}

# a process that listens gets nothing from outside; where the mapping is not for this host's
# processes it still gets what these send
test_operator_who_process() {
	serve_on_host 8080
	expect_contains "$(who 1 8080)" 'taken process [::]:8080/tcp peer (pid N) listens'
	expect_contains "$(who 1 8080)" 'taken process [::]:8080/udp peer (pid N) has a socket'
	conflist quiet bridge "$(with_ours '{"localhost": false}')"
	container_start web quiet -p 8080:80/tcp
	expect_contains "$(who 1 8080/tcp)" 'taken bpf-portmap *:8080/tcp container web, since NOW'
	expect_contains "$(who 1 8080/tcp)" \
		'also process [::]:8080/tcp peer (pid N) listens <- overruled from outside'
	expect_equal 'none all' "$(from process 8080/tcp)"
	expect_answer client tcp "$host4" 8080 web
	expect_answer host tcp "$host4" 8080 host
	expect_answer client udp "$host4" 8080 host
	container_remove web quiet
	container_start db bridge -p 8080:80/tcp
	expect_contains "$(who 1 8080/tcp)" \
		'also process [::]:8080/tcp peer (pid N) listens <- overruled'
	expect_equal 'none none' "$(from process 8080/tcp)"
	expect_answer client tcp "$host4" 8080 db
	expect_answer host tcp "$host4" 8080 db
	expect_answer host tcp 127.0.0.1 8080 db
}

# from BY OPERAND: what this claimant gets from outside, and from this host
from() {
	by_hand 1 who "$2" --json
	jq -r --arg by "$1" '.items[] | select(.by == $by) | "\(.from_outside) \(.from_host)"' /run/out
}

# a process at a loopback address is beside a mapping that is not for this host's processes
test_operator_who_loopback() {
	"$peer" serve tcp 127.0.0.1 8080 --name host --background
	expect_equal 'taken process 127.0.0.1:8080/tcp peer (pid N) listens' "$(who 1 8080)"
	expect_contains "$(who 0 8080@"$host4")" 'free nobody has port 8080 at 192.0.2.1'
	conflist quiet bridge "$(with_ours '{"localhost": false}') | $only_ipv4"
	container_start web quiet -p 8080:80/tcp
	expect_equal 'taken bpf-portmap *:8080/tcp container web, since NOW
taken process 127.0.0.1:8080/tcp peer (pid N) listens' "$(who 1 8080)"
	expect_answer host tcp 127.0.0.1 8080 host
	expect_answer client tcp "$host4" 8080 web
	container_remove web quiet
	conflist four bridge "$only_ipv4"
	container_start db four -p 8080:80/tcp
	expect_contains "$(who 1 8080)" \
		'also process 127.0.0.1:8080/tcp peer (pid N) listens <- overruled'
	expect_answer host tcp 127.0.0.1 8080 db
}

# the mapping of an address goes before that of all, and so does a process's
test_operator_who_addresses() {
	conflist one bridge "$(with_ours '{"localhost": false}') | $only_ipv4"
	container_start any one -p 8080:80/tcp
	container_start exact one -p "$host4:8080:80/tcp"
	expect_equal 'taken bpf-portmap 192.0.2.1:8080/tcp container exact, since NOW
taken bpf-portmap *:8080/tcp container any, since NOW <- overruled at 192.0.2.1' \
		"$(who 1 8080/tcp | sort -t ' ' -k 3.2)"
	expect_answer client tcp "$host4" 8080 exact
	expect_answer client tcp "$host4_second" 8080 any
	expect_equal 'taken bpf-portmap *:8080/tcp container any, since NOW' \
		"$(who 1 8080/tcp@"$host4_second")"
	container_remove any one
	"$peer" serve tcp any 8080 --name host --background
	expect_answer client tcp "$host4" 8080 exact
	expect_answer client tcp "$host4_second" 8080 host
	expect_answer host tcp "$host4" 8080 host
	expect_contains "$(who 1 8080)" \
		'taken process [::]:8080/tcp peer (pid N) listens <- overruled at 192.0.2.1'
	expect_equal 'some all' "$(from process 8080)"
	expect_contains "$(who 1 8080@"$host4")" \
		'also process [::]:8080/tcp peer (pid N) listens <- overruled from outside'
}

# portmap's chain gets what comes until we have the port, and names its container; a process is
# behind both
test_operator_who_portmap() {
	conflist old bridge "$other_network | $as_reference | $only_ipv4"
	container_start efa1c2 old -p 8080:80/tcp
	local to
	to=$(address4 efa1c2)
	"$peer" serve tcp any 8080 --name host --background
	expect_answer client tcp "$host4" 8080 efa1c2
	expect_contains "$(who 1 8080/tcp | sed 's/CNI-DN-[0-9a-f]*/CNI-DN-HASH/')" \
		"taken portmap *:8080/tcp chain CNI-DN-HASH -> $to:80 (container efa1c2)"
	expect_contains "$(who 1 8080/tcp@"$host4")" 'listens <- overruled'
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	expect_contains "$(who 1 8080/tcp | sed 's/CNI-DN-[0-9a-f]*/CNI-DN-HASH/')" \
		"also portmap *:8080/tcp chain CNI-DN-HASH -> $to:80 (container efa1c2) <- overruled"
	expect_equal 1 "$(who 1 8080/tcp | grep -c ' portmap ')"
	expect_equal '["CNI-DN-","'"$to"'",80,"efa1c2"]' "$(item_of_rule)"
}

item_of_rule() {
	by_hand 1 who 8080/tcp --json
	jq -c '.items[] | select(.by == "portmap").rule |
		[.chain[:7], .to.address, .to.port, .container_id]' /run/out
}

# Docker's, netavark's and kube-proxy's rules are told by their chains; the chain with the lower
# priority gets the packets
test_operator_who_engines() {
	local said
	iptables-restore -w <<-'RULES'
	*nat
	:DOCKER -
	:KUBE-NODEPORTS -
	:KUBE-EXT-A -
	-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
	-A PREROUTING -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
	-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
	-A DOCKER ! -i docker0 -p tcp -m tcp --dport 9999 -j DNAT --to-destination 172.17.0.3:80
	-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j KUBE-EXT-A
	-A KUBE-EXT-A -p tcp -m tcp -j DNAT --to-destination 10.88.0.2:8080
	COMMIT
	RULES
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
	RULES
	expect_equal 'taken docker *:8080/tcp chain DOCKER -> 172.17.0.2:80' "$(who 1 8080)"
	expect_equal 'taken kube-proxy *:30080/tcp chain KUBE-NODEPORTS -> 10.88.0.2:8080 (default/web:http)' \
		"$(who 1 30080)"
	said=$(who 1 8081/tcp@"$host4")
	expect_equal 'taken netavark *:8081/tcp chain nv_2f259bab_10_88_0_0_nm16_dnat -> 10.88.0.9:80' \
		"$said"
	# A chain that packets come to before iptables'
	container_start web bridge -p 9999:80/tcp
	# Docker's rule was there first, for what comes from outside.
	expect_equal 'taken bpf-portmap [::]:9999/tcp container web, since NOW
taken docker *:9999/tcp chain DOCKER -> 172.17.0.3:80
also bpf-portmap *:9999/tcp container web, since NOW <- overruled from outside' "$(who 1 9999)"
	nft -f - <<-RULES
	table ip first { chain pre { type nat hook prerouting priority -110;
		tcp dport 8080 dnat to $(address4 web):80 comment "mine"; }; }
	RULES
	expect_equal "taken nat *:8080/tcp chain pre -> $(address4 web):80 (mine)
also docker *:8080/tcp chain DOCKER -> 172.17.0.2:80 <- overruled" "$(who 1 8080)"
	expect_answer client tcp "$host4" 8080 web
}

# a port is free if no rule of nftables is about it, or packets come to none that is
test_operator_who_other_rules() {
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
	expect_equal 'free nobody has port 8080/tcp' "$(who 0 8080/tcp)"
	nft -f - <<-'RULES'
	table ip nat { chain output {
		type nat hook output priority -100;
		tcp dport 8080 dnat to 10.0.0.5:80
	} ; }
	RULES
	expect_equal 'taken nat *:8080/tcp chain output -> 10.0.0.5:80' "$(who 1 8080/tcp)"
}

# expect_found TEXT RULE...: `who` of port 8080 prints TEXT if these are NAT rules before routing, in
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
	expect_contains "$(who 1 8080/tcp)" "$expected"
}

# nftables rules are found whatever form they have the port in: alone, in a range, in a set, in a
# map, at an address of the host, behind jumps
test_operator_who_nftables() {
	local target=''
	expect_found 'chain prerouting -> 10.0.0.5:80 (my rule)' \
		'tcp dport 8080 counter dnat to 10.0.0.5:80 comment "my rule"'
	expect_found ' -> 10.0.0.5:8080' 'tcp dport 8000-8080 dnat to 10.0.0.5'
	expect_found ' -> 10.0.0.5:80' 'tcp dport { 80, 8080 } dnat to 10.0.0.5:80'
	expect_found ' -> 10.0.0.5:80' 'tcp dport @ports dnat to 10.0.0.5:80'
	expect_found ' -> 10.0.0.5:80' 'tcp dport @open dnat to 10.0.0.5:80'
	expect_found 'chain prerouting' 'dnat to tcp dport map { 22 : 10.0.0.4, 8080 : 10.0.0.5 }'
	expect_found 'chain prerouting' "dnat to ip daddr . tcp dport map { $host4 . 8080 : 10.0.0.5 }"
	expect_found 'redirect in table foreign, chain prerouting -> port 80 of this host' \
		'tcp dport 8080 redirect to :80'
	expect_found 'chain prerouting' "ip daddr $host4_second tcp dport 8080 dnat to 10.0.0.5:80"
	expect_found 'chain prerouting' 'ip daddr 192.0.0.0/13 tcp dport 8080 dnat to 10.0.0.5:80'
	target='tcp dport 8080 dnat to 10.0.0.7:80'
	expect_found 'chain target -> 10.0.0.7:80' 'fib daddr type local jump target'
	target='meta l4proto tcp dnat to 10.0.0.7:80'
	expect_found 'chain prerouting -> 10.0.0.7:80' 'tcp dport 8080 goto target'
	family=inet
	target=''
	expect_found ' -> 10.0.0.5:80' 'tcp dport 8080 dnat ip to 10.0.0.5:80'
	expect_found ' -> [fd00::5]:80' 'meta l4proto { tcp, udp } th dport 8080 dnat ip6 to [fd00::5]:80'
	expect_found 'chain prerouting' "ip6 daddr $host6 tcp dport 8080 dnat ip6 to [fd00::5]:80"
}

# what a transparent proxy takes, of nftables and of both forms of iptables
test_operator_who_tproxy() {
	local iptables
	nft -f - <<-RULES || skip 'a kernel without nft_tproxy'
	table inet mesh { chain prerouting {
		type filter hook prerouting priority mangle;
		meta l4proto tcp tcp dport 8080 tproxy ip to 127.0.0.1:15006 meta mark set 1
	} ; }
	RULES
	expect_equal 'taken nat *:8080/tcp tproxy in table mesh, chain prerouting -> 127.0.0.1:15006' "$(who 1 8080)"
	expect_equal '["mesh","tproxy"]' "$(by_hand 1 who 8080 --json; jq -c '.items[0].rule | [.table, .verdict]' /run/out)"
	nft delete table inet mesh
	for iptables in iptables-nft iptables-legacy; do
		"$iptables" -t mangle -A PREROUTING -p tcp --dport 8080 -j TPROXY --on-port 15006 --on-ip 127.0.0.1 \
			--tproxy-mark 1 || continue
		expect_equal 'taken nat *:8080/tcp tproxy in table mangle, chain PREROUTING -> 127.0.0.1:15006' "$(who 1 8080)"
		"$iptables" -t mangle -F
	done
}

# a node port of kube-proxy, whose rule for the port jumps to the one that translates
test_operator_who_node_port() {
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
	expect_equal 'taken kube-proxy *:30080/tcp chain KUBE-NODEPORTS -> 10.88.0.2:8080 (default/web:http)' \
		"$(who 1 30080)"
	expect_equal 'free nobody has port 8080' "$(who 0 8080)"
}

# a node port of kube-proxy in its mode nftables, which is in a verdict map; a mapping that comes later
# leaves it what it has
test_operator_who_node_port_nftables() {
	local target
	container_start web bridge -p 9999:80/tcp
	target=$(address4 web)
	nft -f - <<-RULES
	table ip kube-proxy {
		set nodeport-ips { type ipv4_addr; elements = { $host4 }
		}
		map service-ips {
			type ipv4_addr . inet_proto . inet_service : verdict
			elements = { 10.96.0.1 . tcp . 30080 : goto service-ULMVA6XW-default/web/tcp/http }
		}
		map service-nodeports {
			type inet_proto . inet_service : verdict
			elements = { tcp . 30080 : goto external-ULMVA6XW-default/web/tcp/http,
				tcp . 30081 : drop }
		}
		chain services {
			ip daddr . meta l4proto . th dport vmap @service-ips
			ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
		}
		chain external-ULMVA6XW-default/web/tcp/http {
			goto service-ULMVA6XW-default/web/tcp/http
		}
		chain service-ULMVA6XW-default/web/tcp/http {
			numgen random mod 2 vmap { 0 : goto endpoint-A, 1 : goto endpoint-B }
		}
		chain endpoint-A { meta l4proto tcp dnat to $target:80
		}
		chain endpoint-B { meta l4proto tcp dnat to $target:80
		}
		chain nat-prerouting {
			type nat hook prerouting priority dstnat;
			jump services
		}
	}
	RULES
	expect_answer client tcp "$host4" 30080 web
	expect_equal "taken kube-proxy $host4:30080/tcp chain services -> $target:80 (external-ULMVA6XW-default/web/tcp/http)" \
		"$(who 1 30080)"
	expect_contains "$(who 0 30081)" 'free nobody has port 30081'
	expect_contains "$(who 0 30080/udp)" 'free'
	container_start db bridge -p 30080:80/tcp
	expect_contains "$(who 1 30080)" "taken kube-proxy $host4:30080/tcp" \
		"taken bpf-portmap *:30080/tcp container db, since NOW <- overruled at $host4"
	expect_answer client tcp "$host4" 30080 web
	expect_answer client tcp "$host4_second" 30080 db
}

# what a dead container has left takes no port, and is shown
test_operator_who_left() {
	web_as_pod -p 8080:80/tcp
	container_die web
	expect_contains "$(who 0 8080)" 'free nobody has port 8080'
	expect_contains "$(who 0 8080)" 'left bpf-portmap *:8080/tcp pod shop/web-0'
	expect_contains "$(who 0 8080)" '! its container is gone: `bpf-portmap repair` tidies up'
	serve_on_host 8080
	expect_contains "$(who 1 8080)" 'taken process [::]:8080/tcp peer (pid N) listens'
	expect_answer client tcp "$host4" 8080 host
}

# excluded addresses, and those that the host does not have
test_operator_who_excluded() {
	conflist without bridge "$(with_ours '{"excludeCIDRs": ["198.51.100.0/24"]}') | $only_ipv4"
	container_start web without -p 8080:80/tcp -p 203.0.113.7:8081:80/tcp
	"$peer" serve tcp any 8080 --name host --background
	expect_answer client tcp "$host4_second" 8080 host
	expect_equal 'all all' "$(from process 8080@"$host4_second")"
	expect_equal 'all all' "$(from bpf-portmap 8080@"$host4")"
	expect_contains "$(who 1 8080)" 'listens <- overruled at'
	expect_contains "$(who 1 8081)" '! it is at no address of this host'
}

# without rights, or with maps of another layout, it says that it could not look
test_operator_who_blind() {
	web_as_pod -p 8080:80/tcp
	PREFIX="setpriv --reuid 1000 --clear-groups" by_hand_warns 3 'could not look' who 8080
	meta_set 0 63
	by_hand_warns 3 'layout 99' who 8080
	serve_on_host 8080
	by_hand 1 who 8080
}

# what cannot be printed is an error that is told, where it is one line, too; a port that is free does not
# seem to be taken
test_operator_who_unprinted() {
	local words code
	for words in 3:who\ 9 1:flows\ --count 1:upgrade 1:doctor\ --no-probe 1:--help 1:help\ list; do
		code=0
		"$build/bpf-portmap" ${words#*:} >/dev/full 2>/run/err || code=$?
		expect_equal "${words%%:*}" "$code" "the exit status of ${words#*:}"
		expect_in /run/err 'cannot write to standard output: No space left on device'
	done
}

# names of processes and comments of rules are printable text only; damaged maps do no harm
test_operator_who_untrusted() {
	local seed binary=$build/sanitized/bpf-portmap code
	web_as_pod -p 8080:80/tcp
	nft -f - <<-RULES
	table ip foreign { chain prerouting { type nat hook prerouting priority dstnat;
		tcp dport 8080 dnat to 10.0.0.5:80 comment "$(printf 'red \033[31m')"; }; }
	RULES
	expect_contains "$(who 1 8080)" '(red ?[31m)'
	for seed in 1 2 3 4; do
		"$build/tests/fill" damage "$pins" "$seed" $((seed % 2 ? 8 : 300))
		code=0
		"$binary" who 8080 >/run/out 2>/run/err || code=$?
		[ "$code" = 1 ] || [ "$code" = 0 ] || fail "exit status $code: $(cat /run/err)"
		! LC_ALL=C grep -q '[[:cntrl:]]' /run/out || fail "control characters"
	done
}
