# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_services.sh - ports that the host's own NAT takes before port mappers are asked: Services of
# kube-proxy at an address of the node (externalIPs, a load balancer's address, node ports), and
# rules of an administrator.
#
# The reference's jump stands behind kube-proxy's. Only in test_services_legacy it does not: the
# reference runs iptables-nft, whose chain is younger there than kube-proxy's table, so what comes
# meets it first. A host whose programs share one iptables does not have that.

# iptables_services IPTABLES BACKEND ADDRESS PORT: the rules of kube-proxy in its mode iptables for a
# Service with this external address; ADDRESS node: with this node port
iptables_services() {
	local iptables=$1 backend=$2 address=$3 port=$4 protocol
	{
		echo '*nat'
		printf ':%s -\n' KUBE-SERVICES KUBE-NODEPORTS KUBE-EXT-WEB KUBE-SVC-WEB KUBE-SEP-WEB \
			KUBE-MARK-MASQ KUBE-POSTROUTING
		echo '-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
		echo '-I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
		echo '-I POSTROUTING -j KUBE-POSTROUTING'
		echo '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN'
		echo '-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0'
		echo '-A KUBE-POSTROUTING -j MASQUERADE --random-fully'
		echo '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000'
		for protocol in tcp udp; do
			if [ "$address" = node ]; then
				echo "-A KUBE-NODEPORTS -p $protocol -m comment --comment default/web:http" \
					"-m $protocol --dport $port -j KUBE-EXT-WEB"
			else
				echo "-A KUBE-SERVICES -d $address -p $protocol -m comment --comment" \
					"\"default/web:http external IP\"" \
					"-m $protocol --dport $port -j KUBE-EXT-WEB"
			fi
			echo "-A KUBE-SEP-WEB -p $protocol -m $protocol -j DNAT --to-destination $backend"
		done
		echo '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS'
		echo '-A KUBE-EXT-WEB -j KUBE-MARK-MASQ'
		echo '-A KUBE-EXT-WEB -j KUBE-SVC-WEB'
		echo '-A KUBE-SVC-WEB -m statistic --mode random --probability 0.5 -j KUBE-SEP-WEB'
		echo '-A KUBE-SVC-WEB -j KUBE-SEP-WEB'
		echo COMMIT
	} | "$iptables-restore" -w --noflush
}

# nft_services FAMILY BACKEND ADDRESS PORT: the same in its mode nftables
nft_services() {
	local family=$1 backend=$2 address=$3 port=$4 type=ipv4_addr here="$host4, $host4_second"
	local map=service-ips key protocol
	[ "$family" = ip ] || { type=ipv6_addr here="$host6, $host6_second"; }
	[ "$address" != node ] || map=service-nodeports
	nft -f - <<-RULES
	table $family kube-proxy {
		map service-ips { type $type . inet_proto . inet_service : verdict
		}
		map service-nodeports { type inet_proto . inet_service : verdict
		}
		set nodeport-ips { type $type; elements = { $here }
		}
		chain mark-for-masquerade { meta mark set mark or 0x4000
		}
		chain masquerading {
			meta mark & 0x4000 == 0 return
			meta mark set mark xor 0x4000
			masquerade fully-random
		}
		chain services {
			$family daddr . meta l4proto . th dport vmap @service-ips
			$family daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
		}
		chain nat-prerouting {
			type nat hook prerouting priority dstnat; policy accept;
			jump services
		}
		chain nat-output {
			type nat hook output priority -100; policy accept;
			jump services
		}
		chain nat-postrouting {
			type nat hook postrouting priority srcnat; policy accept;
			jump masquerading
		}
	}
	RULES
	for protocol in tcp udp; do
		key="$protocol . $port"
		[ "$address" = node ] || key="$address . $key"
		nft -f - <<-RULES
		table $family kube-proxy {
			chain endpoint-WEB-default/web/$protocol/http {
				meta l4proto $protocol dnat to $backend
			}
			chain service-WEB-default/web/$protocol/http {
				numgen random mod 2 vmap { 0 : goto endpoint-WEB-default/web/$protocol/http, 1 : goto endpoint-WEB-default/web/$protocol/http }
			}
			chain external-WEB-default/web/$protocol/http {
				jump mark-for-masquerade
				goto service-WEB-default/web/$protocol/http
			}
		}
		add element $family kube-proxy $map { $key : goto external-WEB-default/web/$protocol/http }
		RULES
	done
}

# services_make MODE ADDRESS4|node ADDRESS6|node PORT: a Service of both families. MODE is nftables,
# iptables-nft or iptables-legacy
services_make() {
	if [ "$1" = nftables ]; then
		nft_services ip "$server4:80" "$2" "$4"
		nft_services ip6 "[$server6]:80" "$3" "$4"
	else
		iptables_services "$1" "$server4:80" "$2" "$4"
		iptables_services "ip6${1#ip}" "[$server6]:80" "$3" "$4"
	fi
}

# `old` is older than our plugin, `young` is not; the Service's backend is `server`
services_world() {
	# Of chains with one priority, packets come to the newest first; portmap's is in iptables'.
	iptables-nft -w -t nat -A PREROUTING -j ACCEPT && iptables-nft -w -t nat -F PREROUTING
	ip6tables-nft -w -t nat -A PREROUTING -j ACCEPT && ip6tables-nft -w -t nat -F PREROUTING
	iptables-nft -w -t nat -A OUTPUT -j ACCEPT && iptables-nft -w -t nat -F OUTPUT
	ip6tables-nft -w -t nat -A OUTPUT -j ACCEPT && ip6tables-nft -w -t nat -F OUTPUT
	conflist before bridge "$only_main"
	container_add old before
	serve_in server 80
}

# Everybody gets the same: expect_everywhere NAME ADDRESS PORT
expect_everywhere() {
	local who protocol
	for who in client old young host; do
		expect_answers "$who" "$2" "$3" "$1"
	done
}

# expect_services MODE: a Service at one address, and one at all, before and after the container
expect_services() {
	local mode=$1
	services_world
	services_make "$mode" "$host4" "$host6" 8080
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp -p 8081:80/tcp -p 8081:80/udp
	container_add young bridge
	local address
	for address in "$host4" "$host6"; do expect_everywhere server "$address" 8080; done
	for address in "$host4_second" "$host6_second"; do expect_everywhere web "$address" 8080; done
	for address in "$host4" "$host6"; do expect_everywhere web "$address" 8081; done
}

# also with portmap
# an external address of kube-proxy's mode iptables is the Service's for everybody: clients, the
# node, Pods of ours and Pods older than us; at other addresses the port is the container's
test_services_iptables() { expect_services iptables-nft; }

# also with portmap
# the same in its mode nftables
test_services_nftables() { expect_services nftables; }

# the same in its mode iptables, in iptables-legacy
test_services_legacy() {
	legacy_iptables
	expect_services iptables-legacy
}

# expect_node_ports MODE: a node port that is a hostPort, at each of the node's addresses
expect_node_ports() {
	local mode=$1 address
	services_world
	services_make "$mode" node node 8080
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp -p 8081:80/tcp -p 8081:80/udp
	container_add young bridge
	for address in "$host4" "$host6" "$host4_second"; do
		expect_everywhere server "$address" 8080
		expect_everywhere web "$address" 8081
	done
}

# also with portmap
# a node port of kube-proxy that is a hostPort, too, in its mode iptables
test_services_node_port_iptables() { expect_node_ports iptables-nft; }

# also with portmap
# the same in its mode nftables
test_services_node_port_nftables() { expect_node_ports nftables; }

# also with portmap
# the address of a load balancer on lo, with br_netfilter off and on
test_services_load_balancer() {
	local address number
	ip address add 203.0.113.5/32 dev lo
	ip address add 2001:db8:5::5/128 dev lo nodad
	ip -n client route add 203.0.113.5/32 via "$host4"
	ip -n client route add 2001:db8:5::5/128 via "$host6"
	services_world
	services_make iptables-nft 203.0.113.5 2001:db8:5::5 8080
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_add young bridge
	for number in 0 1; do
		[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || bridge_netfilter "$number"
		for address in 203.0.113.5 2001:db8:5::5; do expect_everywhere server "$address" 8080; done
		for address in "$host4" "$host6"; do expect_everywhere web "$address" 8080; done
	done
}

doctor_says() {
	"$build/bpf-portmap" doctor >/run/out 2>&1 || true
	expect_contains "$(tr -s ' \n' ' ' </run/out)" "$1"
}

# ADD names the rule and says that it gets what comes; a rule that comes later waits for `repair`, and
# so does the end of one; CHECK and `who` tell which it is
test_services_come_and_go() {
	local said
	services_world
	services_make nftables "$host4" "$host6" 8080
	namespace_add web
	said=$(runtime add bridge web -p 8080:80/tcp -p 8081:80/tcp 2>&1 >/run/results/web)
	expect_contains "$said" "host port 8080/tcp is mapped to $server4:80 by a rule in chain services" \
		"what comes to $host4 is left to it and does not reach this container"
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 server
	by_hand_says 1 "<- overruled at $host4" who 8080
	doctor_says "$host4:8080/tcp is mapped, and left to the host's NAT, of which a rule took it"
	expect_contains "$(runtime check bridge web -p 8080:80/tcp -p 8081:80/tcp 2>&1)" \
		"what comes to $host4 is left to it"
	nft delete table ip kube-proxy
	nft delete table ip6 kube-proxy
	expect_no_answer client tcp "$host4" 8080
	by_hand 0 repair --dry-run
	expect_no_answer client tcp "$host4" 8080
	doctor_says "$host4:8080/tcp: a rule of the host's NAT that took it is gone, and its container gets nothing before repair"
	doctor_says 'before repair remedy bpf-portmap repair'
	by_hand_says 0 "8080/tcp        given back to its container: no rule takes it at $host4 any more" repair
	expect_answer client tcp "$host4" 8080 web
	expect_answer host tcp "$host6" 8080 web
	by_hand 0 repair
	expect_equal '' "$(cat /run/out)" 'output of a second repair'
	services_make nftables node node 8081
	expect_answer client tcp "$host4" 8081 web
	expect_contains "$(runtime check bridge web -p 8080:80/tcp -p 8081:80/tcp 2>&1)" \
		'host port 8081/tcp is mapped' 'until the next `bpf-portmap repair`'
	by_hand_says 1 '<- overruled until the next `bpf-portmap repair`' who 8081
	doctor_says "$host4:8081/tcp: a rule of the host's NAT has come since the last ADD or repair"
	# To repair would take the port from whoever reaches the container.
	! grep remedy /run/out || fail "a remedy: $(cat /run/out)"
	by_hand_says 0 "8081/tcp        left to the host's NAT, whose rules take it at $host4" repair
	expect_answer client tcp "$host4" 8081 server
	expect_answer host tcp "$host6" 8081 server
	container_remove web bridge
	container_start next bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 next
}

# also with portmap
# rules of an administrator: the destination alone is enough, a redirection counts, and so do all
# interfaces but one that is none of ours; what only some packets meet takes nothing from a container
test_services_other_rules() {
	services_world
	serve_in server 81
	iptables-nft -w -t nat -A PREROUTING -d "$host4_second" -j DNAT --to-destination "$server4"
	iptables-nft -w -t nat -A PREROUTING ! -i docker0 -p tcp --dport 8081 -j DNAT --to-destination "$server4:80"
	iptables-nft -w -t nat -A PREROUTING -p tcp --dport 8082 -j REDIRECT --to-ports 9000
	iptables-nft -w -t nat -A PREROUTING -s 203.0.113.0/24 -p tcp --dport 8083 -j DNAT --to-destination "$server4:80"
	iptables-nft -w -t nat -A PREROUTING ! -i eth0 -p tcp --dport 8084 -j DNAT --to-destination "$server4:80"
	iptables-nft -w -t nat -A POSTROUTING -o eth1 -j MASQUERADE
	"$peer" serve tcp any 9000 --name host --background
	container_start web bridge -p 81:80/tcp -p 8081:80/tcp -p 8082:80/tcp -p 8083:80/tcp -p 8084:80/tcp
	expect_answer client tcp "$host4_second" 81 server
	expect_answer client tcp "$host4" 81 web
	expect_answer client tcp "$host4" 8081 server
	expect_answer client tcp "$host4" 8082 host
	expect_answer client tcp "$host4" 8083 web
	expect_answer client tcp "$host4" 8084 web
	# At OUTPUT there is none of these rules.
	expect_answer host tcp "$host4" 8081 web
	expect_answer host tcp "$host4_second" 81 web
	expect_answer client tcp "$host6" 8081 web
}

# of two chains with the same priority packets come to the younger first: `who` knows
test_services_order() {
	local name
	sysctl -qw net.ipv4.ip_forward=1
	serve_in server 80
	"$peer" serve tcp any 9000 --name host --background
	iptables-nft -w -t nat -A POSTROUTING -o eth1 -j MASQUERADE
	for name in elder younger; do
		nft -f - <<-RULES
		table ip $name { chain pre { type nat hook prerouting priority dstnat;
			tcp dport 8080 $([ "$name" = elder ] && echo redirect to :9000 || echo "dnat to $server4:80")
		} ; }
		RULES
	done
	expect_answer client tcp "$host4" 8080 server
	by_hand_says 1 "chain pre -> $server4:80" who 8080/tcp
	expect_equal taken "$(sed -n "s/^\([a-z]*\) .*$server4:80.*/\1/p" /run/out)" 'of the younger'
	nft delete table ip younger
	expect_answer client tcp "$host4" 8080 host
}

# with refuseForeign a Service at the port refuses the container
test_services_refused() {
	services_world
	services_make iptables-nft "$host4" "$host6" 8080
	container_add_plain web
	expect_error 101 'default/web:http external IP' plugin_call ADD web '.refuseForeign = true'
}

# also with portmap
# hostIP at an address of an interface that is excluded by default is meant: clients, containers and
# the host reach the port, with reserveHostPorts nobody can have it, and `who` says so
test_services_named_address() {
	local who protocol address
	ip link add nodelocaldns type veth peer name nothing
	end_make host nodelocaldns 203.0.113.20/32 2001:db8:20::1/128
	ip link set nothing up
	container_start web bridge -p 203.0.113.20:53:80/tcp -p 203.0.113.20:53:80/udp \
		-p '[2001:db8:20::1]:53:80/tcp' -p '[2001:db8:20::1]:53:80/udp' -p 54:80/tcp
	container_add young bridge
	for who in client young host; do
		for protocol in tcp udp; do
			expect_answer "$who" "$protocol" 203.0.113.20 53 web
			expect_answer "$who" "$protocol" 2001:db8:20::1 53 web
		done
	done
	[ "$plugin" = bpf-portmap ] || return 0
	for who in client young host; do expect_no_answer "$who" tcp 203.0.113.20 54; done
	by_hand 1 who 53
	expect_in /run/out 'taken  bpf-portmap  203.0.113.20:53/tcp'
	expect_equal 0 "$(grep -c 'no address of this host' /run/out)" 'false remarks'
}
