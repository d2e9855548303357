# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_portmap_gone.sh - rules of the reference plugin portmap whose container has gone, by a list
# that has our plugin in its place by then: they would get the port's packets for ever.

# gone_world: `old` is the list with portmap, `new` the same with ours
gone_world() {
	conflist old bridge "$other_network | $as_reference | .plugins[0].hairpinMode = true"
	conflist new bridge "$other_network"
}

# gone_world_legacy: portmap's iptables is iptables-legacy
gone_world_legacy() {
	gone_world
	legacy_iptables
	PATH=/run/legacy:$PATH
}

# nat_save: the tables of iptables, where its programs have long names and where they have not
nat_save() {
	local family kind
	for family in iptables ip6tables; do
		for kind in nft legacy; do
			! command -v "$family-$kind-save" >/dev/null || "$family-$kind-save" -t nat
		done
		command -v "$family-nft-save" >/dev/null || "$family-save" -t nat
	done 2>/dev/null
}

# rules_of NAME: how many rules portmap has for the container, in both families of all its tables
rules_of() {
	{
		nat_save
		nft list table ip cni_hostport
		nft list table ip6 cni_hostport
	} 2>/dev/null | grep -cE "dnat name: .* id: .{1,2}$1[\\\"]|comment \"$1\"" || true
}

chains_of_containers() { nat_save | grep -c '^:CNI-DN-' || true; }

# mapped_by_portmap NAME PORT
mapped_by_portmap() {
	container_start "$1" old -p "$2:80/tcp"
	expect_answer client tcp "$host4" "$2" "$1"
	[ "$(rules_of "$1")" -gt 0 ] || fail "no rules of portmap: $(iptables-save)"
}

# after_gone NAME PORT: a container that portmap adds now has the port, and its neighbour keeps its own
after_gone() {
	container_start "$1" old -p "$2:80/tcp"
	both expect_answer client tcp @host "$2" "$1"
	expect_answer client tcp "$host4" 8081 stays
}

expect_gone() {
	expect_equal 0 "$(rules_of web)" "rules of portmap's for the container that is gone"
	[ "$(rules_of stays)" -gt 0 ] || fail 'rules of a container that lives have gone'
}

# removed_by_our_del: the container goes by the list that has our plugin by then
removed_by_our_del() {
	mapped_by_portmap stays 8081
	mapped_by_portmap web 8080
	container_remove web new
	expect_gone
	expect_equal 2 "$(chains_of_containers)" "portmap's chains of containers"
	after_gone next 8080
}

gone_world_nftables() {
	gone_world
	conflist plain bridge "$other_network | $only_main"
	container_start web plain
	container_start stays plain
	by_newer_portmap web 'tcp dport 8080'
	by_newer_portmap stays 'tcp dport 8081'
}

# the same with the rules of portmap's backend nftables, also of 9,000 ports of both families, more than
# one message and its answers have room for
test_portmap_gone_del_nftables() {
	local port
	gone_world_nftables
	for port in $(seq 20001 29000); do
		echo "add rule ip cni_hostport hostports tcp dport $port dnat to 10.87.0.2:$port comment \"web\""
		echo "add rule ip6 cni_hostport hostports tcp dport $port dnat to [fd00:87::2]:$port comment \"web\""
	done | nft -f -
	expect_answer client tcp "$host4" 8080 web
	container_remove web new
	expect_gone
	both expect_answer client tcp @host 8081 stays
	expect_no_answer client tcp "$host4" 8080
}

# the same with rules in both of portmap's tables, which the kernel counts from one each
test_portmap_gone_del_both_tables() {
	gone_world
	iptables-nft -t nat -N CNI-DN-0123
	iptables-nft -t nat -N CNI-HOSTPORT-DNAT
	iptables-nft -t nat -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8080 -m comment \
		--comment 'dnat name: "other" id: "web"' -j CNI-DN-0123
	iptables-nft -t nat -A CNI-DN-0123 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.87.0.2:80
	nft add table ip cni_hostport
	nft add chain ip cni_hostport hostports
	until [ "$(handle_of cni_hostport hostports web)" = "$(handle_of nat CNI-HOSTPORT-DNAT jump)" ]; do
		nft flush chain ip cni_hostport hostports
		nft add rule ip cni_hostport hostports tcp dport 8080 dnat to 10.87.0.2:80 comment web
	done
	conflist plain bridge "$other_network | $only_main"
	container_start web plain
	container_remove web new
	expect_equal 0 "$(rules_of web)" "rules of portmap's for the container that is gone"
}
handle_of() { nft -a list chain ip "$1" "$2" | sed -n "s/.*$3.* handle //p"; }

# DEL asks for portmap's rules by their names: with many thousand rules of somebody else in the same
# table it reads none of them
test_portmap_gone_del_many_rules() {
	local reads
	gone_world
	{
		echo 'add table ip nat'
		echo 'add chain ip nat KUBE-SERVICES'
		seq 2000 | sed 's/.*/add rule ip nat KUBE-SERVICES tcp dport & counter/'
	} | nft -f -
	container_start stays new -p 8081:80/tcp
	container_start web new -p 8080:80/tcp
	strace -f -e trace=recvmsg,recvfrom -o /run/strace \
		"$cnirun" del /run/conf/new.conflist web --id web || fail DEL
	reads=$(grep -c 'recv.* = [1-9][0-9]\{4,\}' /run/strace || true)
	expect_equal 0 "$reads" "answers of 10 kB and more"
	expect_answer client tcp "$host4" 8081 stays
}

removed_by_gc() {
	mapped_by_portmap web 8082
	container_die web
	expect_contains "$(gc --dry-run)" "would remove portmap's rules of a container that is gone: web, network other"
	[ "$(rules_of web)" -gt 0 ] || fail '--dry-run has removed rules'
	expect_contains "$(gc)" "removed portmap's rules of a container that is gone: web, network other"
	expect_gone
	expect_equal '' "$(gc)"
	after_gone last 8082
}

gc() {
	by_hand 0 gc "$@"
	cat /run/out
}

# a container that portmap has added is removed by a list that has our plugin: nothing of portmap's is
# left of it, and who gets its port by portmap answers. gc removes what portmap has left of a
# container that went without DEL, and nothing of one that lives
test_portmap_gone() {
	gone_world
	removed_by_our_del
	removed_by_gc
}

# the same with iptables-legacy: the reference plugin does it
test_portmap_gone_legacy() {
	gone_world_legacy
	removed_by_our_del
	removed_by_gc
}

# the same with the rules of portmap's backend nftables, and where gc sees no namespace, no process and
# no program of the host, as in the DaemonSet's container
test_portmap_gone_gc_hidden() {
	gone_world_nftables
	hidden() {
		unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /run/netns
			mount -t tmpfs tmpfs /var/lib; PATH=/none exec "$@"' sh "$@"
	}
	local PREFIX=hidden
	expect_equal '' "$(gc)"
	expect_answer client tcp "$host4" 8080 web
	container_die web
	expect_contains "$(gc)" "removed portmap's rules of a container that is gone: web"
	expect_gone
	expect_answer client tcp "$host4" 8081 stays
}

# an address that another container has by now, ours or portmap's, does not keep the dead one's rules
test_portmap_gone_gc_address_reused() {
	gone_world
	mapped_by_portmap stays 8081
	mapped_by_portmap web 8080
	container_die web
	local address
	address=$(grep -oE '10\.87\.[0-9.]+' /run/results/web | head -n 1)
	conflist fixed bridge "$other_network | $only_ipv4 |
		.plugins[0].ipam.ranges[0][0] += {rangeStart: \"$address\", rangeEnd: \"$address\"} |
		.plugins[0].ipam.dataDir = \"/run/other-store\""
	container_start heir fixed -p 8082:80/tcp
	expect_equal "$address" "$(address4 heir)"
	ip neighbour flush dev cni1 # as time does
	gc >/dev/null
	expect_gone
	expect_no_answer client tcp "$host4" 8080
	expect_answer client tcp "$host4" 8082 heir
}

# a container that runtimes still know, but whose address is not seen, is not dead; nor is one that
# nobody knows, while a namespace has no address, which a virtual machine in it may have
test_portmap_gone_gc_careful() {
	gone_world
	mapped_by_portmap stays 8081
	in_namespace stays ip address flush dev eth0
	gc >/dev/null
	[ "$(rules_of stays)" -gt 0 ] || fail 'rules of a container that lives have gone'
	find /var/lib/cni -name '*stays*' ! -path '*/networks/*' -delete
	gc >/dev/null
	[ "$(rules_of stays)" -gt 0 ] || fail 'rules of a container without an address have gone'
	container_die stays
	gc >/dev/null
	expect_equal 0 "$(rules_of stays)"
}

# uninstall does it, too, before it says that nothing is left; the last container may be the one that
# is gone
test_portmap_gone_uninstall() {
	gone_world
	mapped_by_portmap web 8080
	container_die web
	mkdir -p /run/bin /run/lists
	by_hand 0 uninstall --bin-dir=/run/bin --conf-dir=/run/lists
	expect_in /run/out "removed portmap's rules of a container that is gone: web, network other"
	expect_equal 0 "$(rules_of web)"
	expect_contains "$(tail -n 1 /run/out)" 'nothing of bpf-portmap is left'
	container_start next old -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 next
}
