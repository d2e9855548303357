# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_services.sh - ports that the host's own NAT takes before port mappers are asked: Services of
# kube-proxy at an address of the node (externalIPs, a load balancer's address, node ports), and
# rules of an administrator.
#
# PLUGIN=portmap shows what the reference does: its jump stands behind kube-proxy's.

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
		for protocol in tcp udp; do
			expect_answer "$who" "$protocol" "$2" "$3" "$1"
		done
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

# an external address of kube-proxy's mode iptables is the Service's for everybody: clients, the
# node, Pods of ours and Pods older than us; at other addresses the port is the container's
test_services_iptables() { expect_services iptables-nft; }

# the same in its mode nftables
test_services_nftables() { expect_services nftables; }
