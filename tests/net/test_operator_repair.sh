# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_repair.sh - `bpf-portmap repair`: what containers without DEL have left is removed, and
# nothing of those that live; what is missing at interfaces is attached again. What it does there of
# its own accord, under its other name attach, other files test.

# gc [OPTION...]: what it says, under a name that scripts have
gc() {
	by_hand 0 gc "$@"
	cat /run/out
}

records() { map_count attachments portmaps endpoints slots; }

# published PORT: its bits in published_ports: mapped, mapped at a single address, taken by NAT
published() {
	local third number words=
	for third in 0 1 2; do
		number=$((third * 1024 + $1 / 64))
		words+=" $(($(bpftool -j map lookup pinned "$pins/published_ports" key $((number & 255)) \
			$((number >> 8)) 0 0 | jq -r .formatted.value) >> $1 % 64 & 1))"
	done
	echo $words
}

# marked: how many words of endpoint_addresses have a bit: of two addresses hardly the same one
marked() {
	bpftool -j map dump pinned "$pins/endpoint_addresses" | jq 'map(select(.formatted.value != 0)) | length'
}

# a port or an address that nobody has any more costs packets and sockets no look-up: repair forgets
# it, but not those of containers, nor ports taken by the host's NAT, which the next ADD gets as before
test_operator_repair_ports() {
	container_start web bridge -p 8080:80 -p "$host4:8082:80"
	container_add old bridge -p 8081:80 -p "$host4:8082:80/udp" -p "$host4:8083:80"
	nft -f - <<-'RULES'
		table ip other {
			chain prerouting {
				type nat hook prerouting priority dstnat
				tcp dport 8081 dnat to 203.0.113.9
			}
		}
	RULES
	by_hand 0 repair
	expect_equal '1 0 0, 1 0 1, 1 1 0, 1 1 0' \
		"$(published 8080), $(published 8081), $(published 8082), $(published 8083)"
	container_remove old bridge -p 8081:80 -p "$host4:8082:80/udp" -p "$host4:8083:80"
	by_hand 0 repair --dry-run
	expect_equal '1 1 0, 4' "$(published 8083), $(marked)"
	by_hand 0 repair
	expect_equal '1 0 0, 0 0 0, 1 1 0, 0 0 0, 2' \
		"$(published 8080), $(published 8081), $(published 8082), $(published 8083), $(marked)"
	nft delete table ip other
	container_start new bridge -p 8081:80 -p "$host4:8083:80"
	expect_equal '1 0 0, 1 1 0, 4' "$(published 8081), $(published 8083), $(marked)"
	expect_answer client tcp "$host4" 8080 web
	expect_answer client tcp "$host4" 8081 new
	expect_answer client tcp "$host4" 8082 web
	expect_answer client tcp "$host4" 8083 new
}

# nothing is there to remove while everybody lives
test_operator_repair_nothing() {
	web_as_pod -p 8080:80/tcp
	expect_equal '' "$(gc --dry-run)"
	expect_equal '' "$(gc)"
	expect_answer client tcp "$host4" 8080 web
	by_hand 1 repair nowhere0
	by_hand 64 gc --all
}

# a container that was killed with its namespace is removed with its ports, addresses and
# connections; the one beside it stays; --dry-run only says so
test_operator_repair_killed() {
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	container_start db bridge -p 5432:80/tcp
	conversation_open one client tcp "$host4" 8080
	conversation_open two client tcp "$host4" 5432
	expect_says one web
	expect_says two db
	container_die web
	local before said
	before=$(records)
	said=$(gc --dry-run)
	expect_equal 1 "$(wc -l <<<"$said")" "lines of: $said"
	expect_contains "$said" 'would remove pod shop/web-0 (sandbox web), interface eth0, network bridge: '
	expect_contains "$said" '*:8080/tcp, [::]:8080/tcp, *:8080/udp, [::]:8080/udp'
	expect_equal "$before" "$(records)"
	said=$(gc)
	expect_contains "$said" 'removed pod shop/web-0 (sandbox web), interface eth0, network bridge: '
	expect_equal '1 2 2 1' "$(records)"
	expect_equal '' "$(gc)"
	expect_equal 0 "$(item '[.items[] | select(.host.port == 8080)] | length' flows)"
	expect_says two db
	expect_answer client tcp "$host4" 5432 db
	container_start new bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 new
}

# a program that somebody removed from an interface: --dry-run says what would be done and leaves it
# so; repair attaches it again and says so; then there is nothing to do. So it is with what hangs at no
# interface: programs at the host's sockets, the ports for masquerade, a container's MAC in its bridge
test_operator_repair_interfaces() {
	web_as_pod -p 8080:80/tcp
	detach_ours eth0 ingress from_uplink
	by_hand 0 repair --dry-run
	expect_equal 'eth0 would be: attached again' "$(tr -s ' ' </run/out)"
	! attached eth0 ingress | grep from_uplink || fail "--dry-run has attached it"
	by_hand 0 repair
	expect_equal 'eth0 attached again' "$(tr -s ' ' </run/out)"
	attached eth0 ingress | grep from_uplink >/dev/null || fail "it is not attached"
	by_hand 0 repair --dry-run
	expect_equal '' "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web
	local veth mac said
	veth=$(host_veth web)
	mac=$(mac_in web eth0)
	rm "$pins/connect4"
	bridge fdb delete "$mac" dev "$veth" master
	sysctl -qw net.ipv4.ip_local_port_range='20000 30000'
	by_hand 0 repair --dry-run
	said=$(tr -s ' ' </run/out | sort)
	expect_equal "masquerade would be: source ports chosen anew by net.ipv4.ip_local_port_range
sockets would be: programs of \"localhost\" attached
$veth would be: its MAC address put into the bridge's table" "$said"
	by_hand 0 repair
	expect_equal "${said//would be: /}" "$(tr -s ' ' </run/out | sort)"
	by_hand 0 repair --dry-run
	expect_equal '' "$(cat /run/out)"
	expect_contains "$(bridge fdb show dev "$veth")" "$mac sticky master cni0 static"
	expect_answer host tcp 127.0.0.1 8080 web
}

# names of interfaces are printable text only, by whatever changes them
test_operator_repair_untrusted() {
	local name=$'e\033[31m\377'
	web_as_pod -p 8080:80/tcp
	ip link add "$name" type veth peer name other
	ip link set "$name" up
	ip link set other up
	ip address add 203.0.113.1/24 dev "$name"
	by_hand 0 repair
	expect_equal 'e?[31m? attached' "$(grep 31m /run/out | tr -s ' ')"
	by_hand 0 uninstall --drop-ports
	expect_equal 'e?[31m?: detached' "$(grep 31m /run/out)"
}

# a veth that was renamed, moved to another bridge, or given another MAC is a living container's; another
# interface that has got the number of a dead container's veth does not keep its record
test_operator_repair_moved() {
	local veth index
	web_as_pod -p 8080:80/tcp
	veth=$(host_veth web)
	ip link add other0 type bridge
	ip link set "$veth" down
	ip link set "$veth" name renamed0
	ip link set renamed0 address 02:00:00:00:00:77 up
	ip link set renamed0 master other0
	expect_equal "renamed0 its MAC address put into the bridge's table" "$(gc | tr -s ' ')"
	ip link set renamed0 master cni0
	expect_equal "renamed0 its MAC address put into the bridge's table" "$(gc | tr -s ' ')"
	expect_equal '' "$(gc)"
	expect_equal '1 2 2 1' "$(records)"
	expect_answer client tcp "$host4" 8080 web
	index=$(cat /sys/class/net/renamed0/ifindex)
	container_die web
	ip link add reused0 index "$index" type bridge
	expect_contains "$(gc)" 'removed pod shop/web-0'
	expect_equal '0 0 0 0' "$(records)"
}

# limit 240 s
# 30 containers (LEAKS=200 for more) that went without DEL are removed while others are added, which all work
test_operator_repair_many() {
	local i pids=() leaks=${LEAKS:-30}
	container_start keeper bridge -p 7999:80/tcp
	for i in $(seq "$leaks"); do
		container_add "leak$i" bridge -p $((9000 + i)):80/tcp
	done
	for i in $(seq "$leaks"); do ip netns delete "leak$i"; done
	wait_until 20 no_leaks || fail "veths stay"
	namespace_add new{1..8}
	for i in {1..8}; do
		runtime add bridge "new$i" -p $((9000 + i)):80/tcp >/run/results/"new$i" 2>&1 &
		pids+=($!)
	done
	by_hand 0 gc
	cp /run/out /run/first
	for i in "${pids[@]}"; do wait "$i" || fail "ADD beside gc: $(cat /run/results/new*)"; done
	by_hand 0 gc
	# ADD takes over the ports of dead containers, and removes those itself.
	expect_equal 0 "$(cat /run/first /run/out | grep '^removed' | grep -vc 'container leak')"
	[ "$(cat /run/first /run/out | grep -c '^removed container leak')" -ge $((leaks - 8)) ] ||
		fail "removed: $(cat /run/first /run/out)"
	expect_equal '9 18 18 9' "$(records)"
	for i in {1..8}; do
		serve_in "new$i" 80
		expect_answer client tcp "$host4" $((9000 + i)) "new$i"
	done
	expect_answer client tcp "$host4" 7999 keeper
}

no_leaks() { [ "$(ip -o link show type veth master cni0 | wc -l)" = 1 ]; }
