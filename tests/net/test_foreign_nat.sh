# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_foreign_nat.sh - host ports for which port mappers already have rules of iptables or nftables.

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
	expect_contains "$said" 'host port 8080/tcp is mapped to ' 'id: "old"'
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web
	container_remove web bridge
	container_add_plain late
	state_before=$(state_show)
	expect_error 101 'id: \"old\"' plugin_call ADD late '.refuseForeign = true'
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
	legacy_iptables
	PATH=/run/legacy:$PATH served_by_portmap old -p 8080:80/tcp
	expect_contains "$(iptables-legacy -t nat -S)" CNI-DN-
	expect_answer client tcp "$host4" 8080 old
	expect_old_found
}

# what others write, kube-proxy or an administrator, gets what comes; chains that nothing jumps to get
# nothing
test_foreign_nat_others() {
	nft -f - <<-'RULES'
	table ip foreign {
		chain DOCKER { tcp dport 8080 dnat to 10.0.0.5:80
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			tcp dport 8080 dnat to 10.0.0.5:80
		}
	}
	RULES
	iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 10.0.0.6:80
	expect_contains "$(said_by_add web bridge -p 8080:80/tcp)" 'host port 8080/tcp is mapped to 10.0.0.' \
		'from outside is left to it'
	by_hand_says 1 10.0.0.5:80 who 8080
	expect_in /run/out 10.0.0.6:80
	nft add rule ip foreign DOCKER tcp dport 8081 dnat to 10.0.0.5:80
	expect_silence "$(said_by_add other bridge -p 8081:80/tcp)"
}

# the chains of Docker, netavark and portmap's nftables backend; a rule's comment is printed as printable
# text only
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
	table ip6 docker-bridges {
		chain nat-prerouting-and-output {
			tcp dport 8084 counter dnat to [fd00::7]:80
		}
		chain nat-PREROUTING {
			type nat hook prerouting priority dstnat;
			fib daddr type local counter jump nat-prerouting-and-output
		}
	}
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
	said=$(said_by_add other bridge -p 8081:80/tcp -p 8082:80/tcp -p 8083:80/udp -p 8084:80/tcp)
	expect_contains "$said" 'host port 8081/tcp is mapped to 10.88.0.9:80 by a rule in chain '
	expect_contains "$said" 'host port 8082/tcp is mapped to 10.88.0.8:80 by a rule in chain hostports'
	expect_contains "$said" 'host port 8083/udp is mapped to 10.88.0.8:80 by a rule in chain hostip_hostports'
	expect_contains "$said" '(comment: c0ffee)'
	expect_contains "$said" 'host port 8084/tcp is mapped to [fd00::7]:80 by a rule in chain nat-prerouting-and-output'
	expect_equal 4 "$(grep -c . <<<"$said")" "lines in: $said"
	nft add rule ip cni_hostport hostports tcp dport 8085 dnat to 10.0.0.5:80 comment "\"$(printf 'red \033[31m')\""
	expect_contains "$(said_by_add third bridge -p 8085:80/tcp)" '(comment: red ?[31m)'
}

# a mapping at one address of the host does not conflict with a rule for another address
test_foreign_nat_addresses() {
	local said
	iptables -t nat -N DOCKER
	iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
	iptables -t nat -A DOCKER -d "$host4" -p tcp -m multiport --dports 80,8000:8100 -j DNAT \
		--to-destination 10.0.0.5
	expect_silence "$(said_by_add web bridge -p "$host4_second:8080:80/tcp" -p 127.0.0.1:8080:80/tcp)"
	said=$(said_by_add other bridge -p "$host4:8080:80/tcp")
	expect_contains "$said" 'host port 8080/tcp is mapped to 10.0.0.5:8080' \
		"what comes to $host4 from outside is left to it"
}

# netavark_maps PORT ADDRESS4 ADDRESS6: to the port 80 of these, by the rules of a container of Podman's own
# network, and from then on what follows them
netavark_maps() {
	nft -f - <<-RULES
	table inet netavark {
		chain nv_2f259bab_10_87_0_0_nm16_dnat {
			tcp dport $1 dnat ip to $2:80
			tcp dport $1 dnat ip6 to [$3]:80
		}
		chain NETAVARK-HOSTPORT-DNAT { tcp dport $1 jump nv_2f259bab_10_87_0_0_nm16_dnat
		}
		chain PREROUTING {
			type nat hook prerouting priority dstnat;
			fib daddr type local jump NETAVARK-HOSTPORT-DNAT
		}
		chain OUTPUT {
			type nat hook output priority -100;
			fib daddr type local jump NETAVARK-HOSTPORT-DNAT
		}
	}
	RULES
}

# on_foreign_network NAME INTERFACE: the container is on a network of Podman's own, and netavark has
# written that down.
on_foreign_network() {
	local folder=/run/containers/networks/firewall/ports
	conflist plain bridge "$other_network | $only_main | .plugins[0].ipam.routes = []"
	[ -e "/run/netns/$1" ] || namespace_add "$1"
	runtime add plain "$1" --ifname "$2" >/run/out || fail "$(cat /run/out)"
	mkdir -p "$folder"
	jq -n --arg ipv4 "$(address4 "$1" "$2")" --arg ipv6 "$(address6 "$1" "$2")" '{"port_mappings": null,
		"network_name": "own", "container_ip_v4": $ipv4, "container_ip_v6": $ipv6}' >"$folder/2f259bab_$1"
	wait_until 3 addresses_usable || true
}

# Servers that tell by which address they are asked
serve_by_address() {
	local address
	for address in "$(address4 web)" "$(address6 web)"; do
		in_namespace web "$peer" serve tcp "$address" 80 --name ours --background
	done
	for address in "$(address4 web eth1)" "$(address6 web eth1)"; do
		in_namespace web "$peer" serve tcp "$address" 80 --name theirs --background
	done
}

# a rule to an address that the same container has on another network takes nothing from our mapping, as
# netavark's of a container that is on a network of Podman's own, too: ADD, CHECK, who, doctor and repair
# say so; a rule to another port of it, or that shares its connections out, has what comes
test_foreign_nat_same_container() {
	local said ports='-p 8080:80/tcp -p 8081:80/tcp -p 8082:80/tcp' from
	on_foreign_network web eth1
	netavark_maps 8080 "$(address4 web eth1)" "$(address6 web eth1)"
	nft -f - <<-RULES
	table ip foreign {
		chain shared {
			meta l4proto tcp numgen random mod 2 0 dnat to $(address4 web eth1):80
			meta l4proto tcp dnat to 10.0.0.6:80
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			tcp dport 8081 dnat to $(address4 web eth1):81
			tcp dport 8082 jump shared
		}
	}
	RULES
	said=$(said_by_add web bridge $ports)
	expect_equal 2 "$(grep -c 'is left to it' <<<"$said")" "rules that take ports: $said"
	expect_equal '' "$(grep 8080 <<<"$said" || true)" 'what ADD says of the port'
	serve_by_address
	for from in client host; do
		both expect_answer "$from" tcp @host 8080 ours
	done
	by_hand 0 repair
	expect_equal '' "$(cat /run/out)" 'output of repair'
	expect_answer client tcp "$host4" 8080 ours
	expect_equal '' "$(runtime check bridge web $ports 2>&1 | grep 8080 || true)" 'what CHECK says of the port'
	by_hand_says 1 '<- overruled' who 8080
	expect_equal '' "$(grep 'until the next' /run/out || true)" 'what who awaits'
	"$build/bpf-portmap" doctor >/run/out 2>&1 || true
	expect_equal '' "$(grep 8080 /run/out || true)" 'what doctor says of the port'
	container_del web bridge
	conflist refusing bridge "$(with_ours '{"refuseForeign": true}')"
	expect_silence "$(said_by_add web refusing -p 8080:80/tcp)"
}

# expect_theirs: what comes to port 8080 goes where the host's rule leads it
expect_theirs() {
	both expect_answer client tcp @host 8080 theirs
}

# root in a container may add any address there: that of another engine's container gets it nothing of
# what the host's rule leads to that one, neither by repair nor by its own next ADD
test_foreign_nat_claimed_address() {
	local said
	on_foreign_network theirs eth0
	ip -n theirs route add default via 10.87.0.1
	ip -n theirs route add default via fd00:87::1
	serve_in theirs 80
	netavark_maps 8080 "$(address4 theirs)" "$(address6 theirs)"
	said=$(said_by_add web bridge -p 8080:80/tcp)
	expect_contains "$said" 'is left to it'
	serve_in web 80
	expect_theirs
	ip -n web address add "$(address4 theirs)/32" dev lo
	ip -n web address add "$(address6 theirs)/128" dev lo
	by_hand 0 repair
	expect_theirs
	container_del web bridge
	said=$(said_by_add web bridge -p 8080:80/tcp)
	expect_contains "$said" 'is left to it'
	expect_theirs
}

# rules are read under the sanitizers, by ADD and by who
test_foreign_nat_sanitized() {
	local binary=$build/sanitized/bpf-portmap said iptables
	export ASAN_OPTIONS=detect_leaks=1
	container_add_plain web
	nft -f - <<-'RULES'
	table ip cni_hostport {
		chain hostports {
			tcp dport { 22, 8000-8100 } dnat to 10.0.0.5:80
			dnat to ip daddr . tcp dport map { 192.0.2.1 . 8080 : 10.0.0.5 }
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			jump hostports
			tcp dport { 22, 8000-8100 } redirect to :80
		}
	}
	RULES
	for iptables in iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy; do
		"$iptables" -t nat -N DOCKER || continue
		"$iptables" -t nat -A PREROUTING -j DOCKER
		"$iptables" -t nat -A DOCKER -p tcp -m tcp --dport 1 -m comment --comment one -j REDIRECT
		"$iptables" -t nat -A DOCKER -p tcp -m multiport --dports 1,2:3 -j REDIRECT --to-ports 80
		"$iptables" -t nat -A DOCKER ! -i lo -p udp --dport 1:9 -j REDIRECT
	done
	said=$(plugin_call ADD web 2>&1 >/run/out) || fail "$(cat /run/out) $said"
	expect_contains "$said" 'host port 8080/tcp is mapped to 10.0.0.5:80 by a rule in chain hostports'
	expect_equal 1 "$(grep -c . <<<"$said")" "lines in: $said"
	by_hand 1 who 8080
	by_hand 1 who 3/tcp
	plugin_call DEL web || fail DEL
	expect_error 101 '' plugin_call ADD web '.refuseForeign = true'
}

# limit 120 s
# with refuseForeign no answer of the kernel may be lost unseen: whichever of them fails, ADD fails
test_foreign_nat_unread() {
	local number
	container_add_plain web
	nft -f - <<-'RULES'
	table ip cni_hostport {
		chain hostports { tcp dport { 22, 8000-8100 } dnat to 10.0.0.5:80
		}
		chain prerouting {
			type nat hook prerouting priority dstnat;
			jump hostports
		}
	}
	RULES
	for number in {1..99}; do
		PREFIX="strace -f -o /run/trace -e trace=recvmsg -e inject=recvmsg:error=ENOBUFS:when=$number" \
			expect_failure plugin_call ADD web '.refuseForeign = true'
		grep -q INJECTED /run/trace || break
	done
	echo "note: $number answers"
	expect_code 101
}

# asked_by_add: how many bytes the kernel tells ADD by netlink
asked_by_add() {
	PREFIX='strace -f -o /run/trace -e trace=recvmsg,recvfrom' plugin_call ADD web >/run/out 2>&1 ||
		fail "ADD: $(cat /run/out)"
	plugin_call DEL web || fail DEL
	sed -n '/NLM_F\|NLMSG/s/.* = \([0-9]*\)$/\1/p' /run/trace | awk '{ sum += $1 } END { print sum }'
}

# limit 120 s
# ADD reads as much beside 10,000 rules of kube-proxy as beside none
test_foreign_nat_many() {
	local few many
	container_add_plain web
	iptables-nft -t nat -N KUBE-SERVICES
	asked_by_add >/dev/null
	few=$(asked_by_add)
	kube_proxy_rules | iptables-nft-restore -w
	many=$(asked_by_add)
	echo "note: $few bytes beside one chain, $many beside 10,000 rules"
	[ "$many" -le $((few + 4096)) ] || fail "ADD reads $many bytes beside 10,000 rules, $few beside none"
}
