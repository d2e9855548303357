# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_kubernetes.sh - `bpf-portmap doctor` on a node of Kubernetes: kube-proxy's own rules are
# no finding, and a fault beside them is one. The rules are as kube-proxy writes them, for a service
# with a node port that leads to the container, one without endpoints, and what is invalid.

# node: a host with a container at 8080, and whatever a node sets
node() {
	healthy_host
	bridge_netfilter 1
	web4=$(address4 web)
}

# kube_proxy_iptables FAMILY ADDRESS CLUSTER: its mode iptables, for iptables-restore
kube_proxy_iptables() {
	local endpoint="$2:80" length=32 icmp=icmp-port-unreachable
	[ "$1" = 4 ] || endpoint="[$2]:80" length=128 icmp=icmp6-port-unreachable
	cat <<-RULES
	*filter
	:KUBE-EXTERNAL-SERVICES - [0:0]
	:KUBE-FIREWALL - [0:0]
	:KUBE-FORWARD - [0:0]
	:KUBE-KUBELET-CANARY - [0:0]
	:KUBE-NODEPORTS - [0:0]
	:KUBE-PROXY-CANARY - [0:0]
	:KUBE-PROXY-FIREWALL - [0:0]
	:KUBE-SERVICES - [0:0]
	-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
	-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
	-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
	-A INPUT -j KUBE-FIREWALL
	-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
	-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
	-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
	-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
	-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
	-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
	-A OUTPUT -j KUBE-FIREWALL
	-A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment "default/none:http has no endpoints" -m addrtype --dst-type LOCAL -m tcp --dport 30081 -j REJECT --reject-with $icmp
	-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
	-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
	-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
	-A KUBE-SERVICES -d ${3}20/$length -p tcp -m comment --comment "default/none:http has no endpoints" -m tcp --dport 80 -j REJECT --reject-with $icmp
	COMMIT
	*nat
	:KUBE-EXT-A - [0:0]
	:KUBE-MARK-MASQ - [0:0]
	:KUBE-NODEPORTS - [0:0]
	:KUBE-POSTROUTING - [0:0]
	:KUBE-SEP-A - [0:0]
	:KUBE-SERVICES - [0:0]
	:KUBE-SVC-A - [0:0]
	-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
	-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
	-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
	-A KUBE-EXT-A -m comment --comment "masquerade traffic for default/web:http external destinations" -j KUBE-MARK-MASQ
	-A KUBE-EXT-A -j KUBE-SVC-A
	-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
	-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j KUBE-EXT-A
	-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
	-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
	-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
	-A KUBE-SEP-A -s $2/$length -m comment --comment "default/web:http" -j KUBE-MARK-MASQ
	-A KUBE-SEP-A -p tcp -m comment --comment "default/web:http" -m tcp -j DNAT --to-destination $endpoint
	-A KUBE-SERVICES -d ${3}10/$length -p tcp -m comment --comment "default/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-A
	-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
	-A KUBE-SVC-A -m comment --comment "default/web:http -> $endpoint" -j KUBE-SEP-A
	COMMIT
	RULES
}

# kube_proxy_nftables FAMILY ADDRESS CLUSTER NODE: its mode nftables, for nft
kube_proxy_nftables() {
	local ip=ip endpoint=$2:80 range=24
	[ "$1" = 4 ] || ip=ip6 endpoint="[$2]:80" range=112
	cat <<-RULES
	table $ip kube-proxy {
		set cluster-ips { type ipv${1}_addr; elements = { ${3}10 }
		}
		set nodeport-ips { type ipv${1}_addr; elements = { $4 }
		}
		set hairpin-connections { type ipv${1}_addr . ipv${1}_addr; elements = { $2 . $2 }
		}
		map firewall-ips { type ipv${1}_addr . inet_proto . inet_service : verdict
		}
		map no-endpoint-services { type ipv${1}_addr . inet_proto . inet_service : verdict
			elements = { ${3}20 . tcp . 80 comment "default/none:http" : goto reject-chain }
		}
		map no-endpoint-nodeports { type inet_proto . inet_service : verdict
			elements = { tcp . 30081 comment "default/none:http" : goto reject-chain }
		}
		map service-ips { type ipv${1}_addr . inet_proto . inet_service : verdict
			elements = { ${3}10 . tcp . 80 : goto service-A }
		}
		map service-nodeports { type inet_proto . inet_service : verdict
			elements = { tcp . 30080 : goto external-A }
		}
		chain filter-prerouting { type filter hook prerouting priority -110; ct state new jump firewall-check
		}
		chain filter-input { type filter hook input priority -110
			ct state new jump nodeport-endpoints-check
			ct state new jump service-endpoints-check
		}
		chain filter-forward { type filter hook forward priority -110
			ct state new jump service-endpoints-check
			ct state new jump cluster-ips-check
		}
		chain filter-output { type filter hook output priority -110; ct state new jump firewall-check
		}
		chain filter-output-post-dnat { type filter hook output priority -90
			ct state new jump service-endpoints-check
			ct state new jump cluster-ips-check
		}
		chain nat-prerouting { type nat hook prerouting priority dstnat; jump services
		}
		chain nat-output { type nat hook output priority -100; jump services
		}
		chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading
		}
		chain cluster-ips-check {
			$ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"
			$ip daddr ${3}0/$range drop comment "Drop traffic to unallocated ClusterIPs"
		}
		chain firewall-check { $ip daddr . meta l4proto . th dport vmap @firewall-ips
		}
		chain service-endpoints-check { $ip daddr . meta l4proto . th dport vmap @no-endpoint-services
		}
		chain nodeport-endpoints-check {
			$ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports
		}
		chain reject-chain { reject
		}
		chain mark-for-masquerade { meta mark set meta mark or 0x4000
		}
		chain masquerading {
			$ip saddr . $ip daddr @hairpin-connections masquerade fully-random
			meta mark & 0x4000 == 0 return
			meta mark set meta mark ^ 0x4000
			masquerade fully-random
		}
		chain services {
			$ip daddr . meta l4proto . th dport vmap @service-ips
			$ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
		}
		chain external-A {
			jump mark-for-masquerade
			goto service-A
		}
		chain service-A { numgen random mod 1 vmap { 0 : goto endpoint-A }
		}
		chain endpoint-A {
			$ip saddr $2 jump mark-for-masquerade
			meta l4proto tcp dnat to $endpoint
		}
	}
	RULES
}

# both_answer: the mapped port, and kube-proxy's node port; nothing is found, at this port or any
both_answer() {
	expect_answer client tcp "$host4" 8080 web
	expect_answer client tcp "$host4" 30080 web
	good --from "$client4" 8080/tcp
	good --from "$client6" 8080/tcp
	good
	by_hand 0 doctor
}

# faults_are_found: one in front of kube-proxy's rules, one behind, and one in the container
faults_are_found() {
	nft "table inet f { chain c { type filter hook prerouting priority raw; ip saddr $client4 drop; }; }"
	says 'dropped by the host: nft inet f, chain c, rule handle' --from "$client4" 8080/tcp
	nft delete table inet f
	nft 'table inet f { chain forward { type filter hook forward priority 10; policy drop;
		ct state established accept; }; }'
	says 'dropped by the host: nft inet f, chain forward, policy drop'
	nft delete table inet f
	in_namespace web nft 'table inet f { chain i { type filter hook input priority 0; policy drop;
		meta l4proto ipv6-icmp accept; }; }'
	says "dropped in the container's own firewall: nft inet f, chain i, policy drop"
	in_namespace web nft delete table inet f
	good
}

# beside_iptables nft|legacy WHAT REMEDY: what doctor says, and names, of a dropping policy beside
# kube-proxy's rules
beside_iptables() {
	node
	kube_proxy_iptables 4 "$web4" 10.96.0. | "iptables-$1-restore" -w
	kube_proxy_iptables 6 "$(address6 web)" 2001:db8:96:: | "ip6tables-$1-restore" -w
	both_answer
	faults_are_found
	# As Docker sets it: kube-proxy's rules let in what has its mark.
	"iptables-$1" -P FORWARD DROP
	says "dropped by the host: $2" --from "$client4" 8080/tcp
	expect_in /run/out "$3"
}

# beside kube-proxy in its mode iptables, over iptables-nft
# limit 120 s
test_doctor_kubernetes_iptables() {
	beside_iptables nft 'nft ip filter, chain FORWARD, policy drop' 'iptables-nft -A FORWARD'
	expect_answer client tcp "$host4" 30080 web
}

# the same over iptables-legacy, whose rules the kernel does not trace
# limit 120 s
test_doctor_kubernetes_iptables_legacy() {
	iptables-legacy -nL >/dev/null 2>&1 || skip "no iptables-legacy"
	beside_iptables legacy 'by iptables-legacy' ':FORWARD DROP'
}

# beside kube-proxy in its mode nftables
# limit 120 s
test_doctor_kubernetes_nftables() {
	node
	kube_proxy_nftables 4 "$web4" 10.96.0. "$host4" | nft -f -
	kube_proxy_nftables 6 "$(address6 web)" 2001:db8:96:: "$host6" | nft -f -
	both_answer
	faults_are_found
}

# a kernel before 6.6 has no TCX: programs are filters of clsact
test_doctor_probe_clsact() {
	conflist bridge bridge "$(with_ours '{attach: "clsact"}')"
	healthy_host
	[ -n "$(tc filter show dev eth0 ingress)" ] || fail "the programs are no filters of clsact"
	good --from "$client4" 8080/tcp
	good --from "$client6" 8080/tcp
	good --send --from "$client4" 5353/udp
	nft 'table inet f { chain c { type filter hook forward priority 0; tcp dport 80 drop; }; }'
	says 'dropped by the host: nft inet f, chain c, rule handle'
	nft delete table inet f
	processes_end web
	says 'refused: nobody listens at tcp port 10.88.0.'
}

# beside 2,000 ports in 20 containers and 10,000 rules of kube-proxy it takes seconds: with a port,
# without one, and for the timer
# limit 240 s
test_doctor_kubernetes_many() {
	local i ports words took computed
	healthy_host
	for ((i = 0; i < 20; i++)); do
		ports=$(printf -- '-p %d:80/tcp ' $(seq $((20000 + i * 300)) 3 $((20297 + i * 300))))
		container_add "many$i" bridge $ports
	done
	kube_proxy_rules | iptables-nft-restore -w
	for words in 'doctor 8080/tcp' 'doctor' 'stats --prometheus --checks'; do
		"$build/tests/fill" measure "$build/bpf-portmap" $words >/run/out 2>/run/err || true
		read -r took computed _ < <(tail -n 1 /run/err)
		echo "note: $words: $took ms, of which it computed $computed ms"
		[ "$computed" -le $((6000 * SLOWER)) ] || fail "bpf-portmap $words computed $computed ms"
	done
}
