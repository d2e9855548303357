# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_neighbours.sh - from one container to another one's mapped port through the host's addresses,
# with each setting of br_netfilter and of the firewall that changes what the IP stack does.

# each_firewall COMMAND...: with br_netfilter off and on, without a firewall and with a strict one
each_firewall() {
	bridge_netfilter 0
	"$@"
	bridge_netfilter 1
	"$@"
	firewall_strict
	"$@"
	bridge_netfilter 0
	"$@"
	nft delete table inet strict
}

# asks_everywhere CONTAINER SEEN4 SEEN6: connects to every address of the host, the bridge's
# included
asks_everywhere() {
	local who=$1 seen4 seen6 address
	seen_set "$2" "$3"
	for address in "$host4" "$host4_second" "$bridge4"; do
		expect_answers "$who" "$address" 8080 web "$seen4"
	done
	for address in "$host6" "$host6_second" "$bridge6"; do
		expect_answers "$who" "$address" 8080 web "$seen6"
	done
}

# seen_set ADDRESS4 ADDRESS6: $seen4 and $seen6 are those, or any with the reference, which shows its
# bridge's address where we show that of the container.
seen_set() {
	seen4=$1 seen6=$2
	[ "$plugin" = bpf-portmap ] || seen4=- seen6=-
}

web_add() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
}

# each_asks CONTAINER...: each of them is seen with its own address.
each_asks() {
	local who
	for who; do asks_everywhere "$who" "$(address4 "$who")" "$(address6 "$who")"; done
}

everybody_asks() {
	each_asks near bare far routed unseen unseen-far unseen-routed
	asks_everywhere web "$bridge4" "$bridge6"
}

# also with fastPath off, always
# a mapped port is reached by containers on the same bridge, with ports of their own and without, on
# another bridge and with ptp, also by those for which this plugin was never called, and each is seen
# with its own address; the container itself sees the bridge's address as the client
test_neighbour_of_bridge() {
	conflist other bridge "$other_network"
	conflist plain bridge "$only_main"
	conflist plain-third bridge "$third_network | $only_main"
	conflist plain-ptp ptp "$only_main"
	container_add unseen plain
	container_add unseen-far plain-third
	container_add unseen-routed plain-ptp
	web_add
	container_add near bridge -p 7070:70/tcp
	container_add bare bridge
	container_add far other
	container_add routed ptp
	each_firewall everybody_asks
}

# also with fastPath off
# a ptp container's mapped port is reached by another ptp container, by a bridge's, and by itself,
# which sees its gateway's address as the client
test_neighbour_of_ptp() {
	local gateway4 gateway6
	container_start web ptp -p 8080:80/tcp -p 8080:80/udp
	container_add routed ptp
	container_add bridged bridge
	each_firewall each_asks routed bridged
	gateway4=$(ip -n web -4 route show default | sed 's/.*via \([^ ]*\).*/\1/')
	gateway6=$(ip -n web -6 route show default | sed 's/.*via \([^ ]*\).*/\1/')
	bridge4=$gateway4 bridge6=$gateway6
	each_firewall asks_everywhere web "$gateway4" "$gateway6"
}

# what kube-proxy does in its iptables mode, over iptables-nft and iptables-legacy
invalid_dropped() {
	local command
	bridge_netfilter 1
	for command in iptables ip6tables; do
		"$command-$1" -A FORWARD -m conntrack --ctstate INVALID -j DROP
	done
}

# where conntrack's INVALID is dropped and bridges have br_netfilter (kube-proxy's iptables mode),
# each container on a bridge reaches the host ports of its own node: one without ports from before
# the programs were loaded and one from after, and one of which only the bridge plugin knows
# also with portmap
# nothing is loaded
test_neighbour_invalid_dropped() {
	local who
	invalid_dropped nft
	conflist without bridge "$(with_ours '{ipMasq: false}')"
	conflist plain bridge "$only_main"
	container_add before without
	container_add unseen plain
	web_add
	container_add after without
	container_add later plain
	for who in before unseen after later; do
		asks_everywhere "$who" "$(address4 "$who")" "$(address6 "$who")"
	done
}

talks_for_long() {
	local protocol answer host
	for host in "$host4" "$host6"; do
		for protocol in tcp udp; do
			conversation_open talk near "$protocol" "$host" 8080
			for _ in 1 2 3 4 5; do
				answer=$(say talk)
				expect_contains "$answer" "name=web" "from=$(endpoint "$host" 8080)"
			done
			conversation_close talk
		done
	done
}

# the IP stack sees a long conversation between containers on one bridge consistently in both
# directions; a container on another bridge that was made after our last ADD reaches a mapped port
# after CHECK
test_neighbour_conversation() {
	web_add
	container_add near bridge
	each_firewall talks_for_long
	conflist other bridge "$other_network | $only_main"
	container_add far other
	container_check web bridge
	asks_everywhere far "$(address4 far)" "$(address6 far)"
}

# also with fastPath off, always
# a large file arrives intact through a mapped port, segmentation offload included, outside and at a
# container on the same bridge
test_neighbour_large_transfer() {
	local who address
	container_add web bridge -p 8080:80/tcp
	container_add near bridge
	file_serve web 80 5000000
	for who in client near; do
		for address in "$host4" "$host6"; do expect_file "$who" "$address" 8080; done
	done
}

# containers on one bridge reach each other directly, untranslated, and so do a container's packets
# to its gateway and to the host's own services; a container reaches itself from the same source
# port as the mapped one
test_neighbour_direct() {
	web_add
	container_start near bridge
	expect_answers near "$(address4 web)" 80 web "$(address4 near)"
	expect_answers near "$(address6 web)" 80 web "$(address6 near)"
	expect_answers web "$(address4 near)" 80 near "$(address4 web)"
	expect_answers web "$(address6 near)" 80 near "$(address6 web)"
	serve_on_host 9999
	expect_answers near "$bridge4" 9999 host "$(address4 near)"
	expect_answers near "$host4" 9999 host "$(address4 near)"
	expect_answers near "$bridge6" 9999 host "$(address6 near)"
	in_namespace near busybox ping -c 1 -W 1 "$bridge4" >/dev/null
	in_namespace near busybox ping -c 1 -W 1 "$host4" >/dev/null
	in_namespace near busybox ping -c 1 -W 1 "$(address4 web)" >/dev/null
	in_namespace near busybox ping -6 -c 1 -W 1 "$bridge6" >/dev/null
	seen_set "$bridge4" "$bridge6"
	expect_answers web "$host4" 8080 web "$seen4" --source-port 8080
	expect_answers web "$host4" 8080 web "$seen4" --source-port 8081
	expect_answers web "$host6" 8080 web "$seen6" --source-port 8080
}

# bridge_world: web and near are on one bridge, whose entries age within a second; near counts what it
# is sent that is not its own
bridge_world() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start near bridge
	ip link set cni0 type bridge ageing_time 100
	in_namespace near nft -f - <<-'RULES'
	table netdev listen {
		chain seen {
			type filter hook ingress device eth0 priority 0;
			udp dport 80 counter
			tcp dport 80 counter
		}
	}
	RULES
}

overheard() { in_namespace near nft list table netdev listen | grep -c 'packets [1-9]' || true; }

# entry_of NAME [WORD...]: the bridge's entries for its MAC at its port that have these words
entry_of() {
	local said word
	said=$(bridge fdb show dev "$(host_veth "$1")" | grep -F "$(mac_in "$1" eth0)")
	shift
	for word; do said=$(grep -w -- "$word" <<<"$said") || true; done
	echo "$said"
}

# also with portmap
# a neighbour on the bridge does not read what a client sends to a container whose frames have not
# passed the bridge for longer than it remembers a MAC
test_neighbour_bridge_does_not_forget() {
	bridge_world
	conversation_open udp client udp "$host4" 8080
	conversation_open tcp client tcp "$host6" 8080
	for _ in 1 2 3 4 5 6 7 8; do
		expect_says udp web
		expect_says tcp web
		sleep 0.4
	done
	[ "$plugin" != bpf-portmap ] || drop_offload
	expect_says udp web
	expect_says tcp web
	expect_equal 0 "$(overheard)" 'kinds of packets that the neighbour has read'
}

# the bridge's entry for a container that has a VLAN is static there
test_neighbour_bridge_entry_vlan() {
	ip link add try type bridge vlan_filtering 1 2>/dev/null && ip link delete try ||
		skip 'the kernel has no VLANs of bridges'
	conflist tagged bridge "$other_network | .plugins[0].vlan = 7"
	container_add tagged tagged -p 8081:80/tcp
	expect_contains "$(entry_of tagged static)" 'vlan 7'
}

# it is there with macspoofchk of the bridge plugin, too
test_neighbour_bridge_entry_macspoofchk() {
	nft 'add table bridge try; add chain bridge try try { type filter hook prerouting priority -300; }' \
		2>/dev/null || skip 'the kernel has no nftables of bridges'
	conflist checked bridge "$other_network | .plugins[0].macspoofchk = true"
	container_start checked checked -p 8081:80/tcp
	expect_contains "$(entry_of checked static)" "$(mac_in checked eth0)"
	expect_answer client tcp "$host4" 8081 checked
	container_remove checked checked
}

# the bridge's entry for a container is static and stays at its port, whoever sends with its MAC; attach
# and CHECK restore it, but make none for a MAC that the container has given itself, such as the
# bridge's; DEL and uninstall remove it where the veth stays
test_neighbour_bridge_entry() {
	local veth mac
	container_start web bridge -p 8080:80/tcp
	veth=$(host_veth web) mac=$(mac_in web eth0)
	expect_contains "$(entry_of web static)" "$mac"
	bridge fdb del "$mac" dev "$veth" master
	"$build/bpf-portmap" attach >/dev/null
	expect_contains "$(entry_of web static)" "$mac"
	container_add thief bridge
	forge thief cni0 udp "$(address4 thief)" 5000 "$client4" 5001 --source-mac "$mac"
	expect_contains "$(entry_of web static)" "$mac"
	expect_equal '' "$(bridge fdb show dev "$(host_veth thief)" | grep "$mac" || true)"
	bridge fdb del "$mac" dev "$veth" master
	in_namespace web ip link set eth0 address "$(mac_of cni0)"
	plugin_call CHECK web || fail CHECK
	expect_contains "$(bridge fdb show dev "$veth" | grep static)" "$mac"
	expect_equal '' "$(bridge fdb show dev "$veth" | grep "$(mac_of cni0)" | grep static || true)"
	in_namespace web ip link set eth0 address "$mac"
	plugin_call DEL web || fail DEL
	expect_equal '' "$(entry_of web static)"
	plugin_call ADD web >/dev/null || fail ADD
	expect_contains "$(entry_of web static)" "$mac"
	mkdir -p /run/bin /run/lists
	by_hand 0 uninstall --drop-ports --bin-dir /run/bin --conf-dir /run/lists
	expect_equal '' "$(entry_of web static)"
}
