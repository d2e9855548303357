# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_beside_nat.sh - other NAT of the same host: what it translates stays its own. PLUGIN=portmap
# runs the same rows with the reference.

# nat_rule CHAIN RULE...: in a table of both families; nat_forget deletes all of them
nat_rule() {
	local chain=$1
	shift
	nft -f - <<-RULES
		table inet foreign {
			chain prerouting { type nat hook prerouting priority dstnat; }
			chain postrouting { type nat hook postrouting priority srcnat; }
		}
		add rule inet foreign $chain $*
	RULES
}
nat_forget() { nft delete table inet foreign; }

# each_bridge_netfilter COMMAND...: without and with br_netfilter, where the kernel has it
each_bridge_netfilter() {
	local on
	"$@"
	[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || return 0
	for on in 1 0; do
		bridge_netfilter "$on"
		"$@"
	done
}

# `victim` has the host port 20089, `web` does not; the host translates connections to its port 31081
# to web, and gives their clients the port 20089.
node_port_make() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start victim bridge -p 20089:80/tcp -p 20089:80/udp
	for protocol in tcp udp; do
		nat_rule prerouting "iifname eth0 meta nfproto ipv4 $protocol dport 31081 dnat ip to $(address4 web):80"
		nat_rule prerouting "iifname eth0 meta nfproto ipv6 $protocol dport 31081 dnat ip6 to [$(address6 web)]:80"
		nat_rule postrouting "ip saddr $client4 ip daddr $(address4 web) $protocol dport 80 masquerade to :20089"
		nat_rule postrouting "ip6 saddr $client6 ip6 daddr $(address6 web) $protocol dport 80 masquerade to :20089"
	done
}

expect_node_port() {
	both expect_answers client @host 31081 web @bridge
	expect_answers server "$host4_second" 20089 victim
	conntrack -F 2>/dev/null
}

# also with portmap
# answers to clients that the host masquerades with a port which is another container's host port reach
# these clients
test_beside_nat_masquerade_to_host_port() {
	node_port_make
	each_bridge_netfilter expect_node_port
}

# also with portmap
# the same in another of conntrack's zones
test_beside_nat_zone() {
	zone_set 7
	node_port_make
	each_bridge_netfilter expect_node_port
}

# also with portmap
# the same beside more chains than the programs look at
test_beside_nat_many_chains() {
	local number
	node_port_make
	for number in {1..17}; do
		nft add chain inet foreign "raw$number" '{ type filter hook prerouting priority raw; }'
	done
	expect_node_port
}

# stranger_make DEVICE: `stranger` has no port of ours, and the host masquerades what it sends by the device
# with the port 20089
stranger_make() {
	conflist stranger bridge "$only_main | $other_network | .plugins[0].ipMasq = false"
	container_start victim bridge -p 20089:80/tcp -p 20089:80/udp
	container_add stranger stranger
	stranger_masquerade "$1"
}

stranger_masquerade() {
	nat_rule postrouting "meta nfproto ipv4 oifname $1 meta l4proto { tcp, udp } masquerade to :20089"
	nat_rule postrouting "meta nfproto ipv6 oifname $1 meta l4proto { tcp, udp } masquerade to :20089"
}

# also with portmap
# in such a zone, an answer from outside to a container that only the host masquerades, with a port which is
# another one's host port
test_beside_nat_zone_outside() {
	zone_set 7
	stranger_make eth1
	serve_in server 9000
	expect_answers stranger "$server4" 9000 server "$host4_second"
	expect_answers stranger "$server6" 9000 server "$host6_second"
	expect_answers client "$host4" 20089 victim
}

# also with portmap
# the same answer out of a tunnel of the host, whose packets have no Ethernet header
test_beside_nat_tunnel() {
	tunnel_make
	stranger_make tun0
	serve_in office 9000
	both expect_answers stranger @office 9000 office @tunnel
	expect_answers office "$tunnel4" 20089 victim
}

expect_own_address() {
	local protocol
	for protocol in tcp udp; do
		expect_answer client "$protocol" "$(address4 web)" 80 web "$bridge4"
		expect_answer client "$protocol" "$(address6 web)" 80 web "$bridge6"
	done
	conntrack -F 2>/dev/null
}

# also with portmap
# a client that the host masquerades reaches a container at its own address
test_beside_nat_own_address() {
	container_start web bridge
	nat_rule postrouting 'oifname cni0 masquerade'
	each_bridge_netfilter expect_own_address
	nat_forget
	nat_rule postrouting 'masquerade'
	each_bridge_netfilter expect_own_address
	zone_set 7
	each_bridge_netfilter expect_own_address
}

expect_same_ports() {
	local protocol
	expect_refused client udp "$(address4 web)" 5060 --source-port 5060 --connected
	expect_refused client udp "$(address6 web)" 5060 --source-port 5060 --connected
	expect_refused client tcp "$(address4 web)" 5060 --source-port 5060
	expect_refused client tcp "$(address6 web)" 5060 --source-port 5060
	serve_in client 5060
	for protocol in tcp udp; do
		both expect_answer web "$protocol" @client 5060 client @host --source-port 5060
	done
	processes_end client
	conntrack -F 2>/dev/null
}

# also with portmap
# a container begins a connection with the ports of one that such a client has begun with it: netfilter,
# which has these already, gives it another port before it is masqueraded
test_beside_nat_same_ports() {
	container_add web bridge
	errors_unlimited host web
	nat_rule postrouting 'oifname cni0 masquerade'
	each_bridge_netfilter expect_same_ports
}

expect_sibling() {
	local protocol
	for protocol in tcp udp; do
		both expect_answer asker "$protocol" @host 8080 web
		expect_answer asker "$protocol" "$bridge4" 8080 web
	done
	conntrack -F 2>/dev/null
}

# also with portmap
# a container gets the answer of another one's host port, also where the host masquerades the one towards
# the other and knows both neighbours
test_beside_nat_sibling() {
	local rule
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start asker bridge
	neighbours_learn
	for rule in masquerade \
		'ip saddr 10.88.0.0/16 masquerade' 'ip6 saddr fd00:88::/64 masquerade' \
		'ip daddr != 172.16.0.0/12 masquerade' 'ip saddr 10.88.0.0/16 meta l4proto { tcp, udp } snat ip to 10.88.0.1:30000-30100'; do
		nat_rule postrouting "$rule"
		each_bridge_netfilter expect_sibling
		nat_forget
	done
}
# also with portmap
# a container gets the SCTP answer of another one's host port, which the host masquerades towards it; about
# SCTP conntrack cannot be asked
test_beside_nat_sibling_sctp() {
	local rule
	container_start web bridge -p 8080:80/sctp
	serve_sctp_in web 80
	container_start asker bridge
	neighbours_learn
	for rule in masquerade "ip saddr 10.88.0.0/16 meta l4proto sctp snat ip to $host4_second"; do
		nat_rule postrouting "$rule"
		each_bridge_netfilter expect_sibling_sctp
		nat_forget
	done
}

expect_sibling_sctp() {
	local asked
	for asked in "$host4" "$host6" "$bridge4"; do expect_answer asker sctp "$asked" 8080 web; done
	conntrack -F 2>/dev/null
}

neighbours_learn() {
	local name
	for name in web asker; do
		expect_answer host udp "$(address4 "$name")" 80 "$name"
		expect_answer host udp "$(address6 "$name")" 80 "$name"
	done
}

expect_taken_elsewhere() {
	local asked
	for asked in "$(address4 web)" "$(address6 web)"; do
		expect_answer asker udp "$asked" 9000 "$1"
		expect_answer asker tcp "$asked" 9000 "$1"
	done
	conntrack -F 2>/dev/null
}

# also with portmap
# what the bridge would switch to another container, and br_netfilter lets a rule send to a server
# outside, arrives there, masqueraded, as the first packet and within a connection's second
test_beside_nat_sibling_elsewhere() {
	container_start web bridge
	container_start asker bridge
	serve_in web 9000
	serve_in server 9000
	nat_rule prerouting "iifname cni0 meta l4proto { tcp, udp } th dport 9000 dnat ip to $server4"
	nat_rule prerouting "iifname cni0 meta l4proto { tcp, udp } th dport 9000 dnat ip6 to $server6"
	bridge_netfilter 0
	expect_taken_elsewhere web
	bridge_netfilter 1
	expect_taken_elsewhere server
	expect_taken_elsewhere server
}

# also with portmap
# a connection that the host's NAT has begun at a port keeps to it when the port is mapped; a new one from
# the same client's port goes to the mapping, and so does UDP of an old client, as with portmap
test_beside_nat_before_mapping() {
	local protocol
	container_start old bridge
	for protocol in tcp udp; do
		nat_rule prerouting "iifname eth0 meta nfproto ipv4 $protocol dport 8080 dnat ip to $(address4 old):80"
		nat_rule prerouting "iifname eth0 meta nfproto ipv6 $protocol dport 8080 dnat ip6 to [$(address6 old)]:80"
	done
	conversation_open stays client tcp "$host4" 8080
	conversation_open stays6 client tcp "$host6" 8080
	expect_contains "$(say stays)" name=old
	expect_contains "$(say stays6)" name=old
	both expect_answers client @host 8080 old @client --source-port 5555
	nat_rule postrouting 'oifname lo masquerade' # without any rule, the kernel would translate no more
	nft flush chain inet foreign prerouting
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_contains "$(say stays)" name=old
	expect_contains "$(say stays6)" name=old
	both expect_answers client @host 8080 web @client --source-port 5555
	conversation_close stays
	conversation_close stays6
}

# also with portmap
# a connection through a mapping goes on when conntrack forgets everything, and when a client had asked the
# port before the container came, it is answered
test_beside_nat_forgotten() {
	local name
	both expect_no_answers client @host 8080 --source-port 5555
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	both expect_answers client @host 8080 web @client --source-port 5555
	conversation_open stays client tcp "$host4" 8080
	conversation_open stays6 client tcp "$host6" 8080
	for name in stays stays6 stays stays6; do
		expect_contains "$(say $name)" name=web
		conntrack -F 2>/dev/null
	done
	expect_contains "$(say stays)" name=web
	expect_contains "$(say stays6)" name=web
	conversation_close stays
	conversation_close stays6
}

# also with portmap
# SCTP that the host masquerades with a port that is another container's host port
test_beside_nat_sctp() {
	container_add web bridge -p 8080:80/sctp
	container_add victim bridge -p 20089:80/sctp
	serve_sctp_in web 80
	serve_sctp_in victim 80
	nat_rule prerouting "iifname eth0 meta nfproto ipv4 sctp dport 31081 dnat ip to $(address4 web):80"
	nat_rule prerouting "iifname eth0 meta nfproto ipv6 sctp dport 31081 dnat ip6 to [$(address6 web)]:80"
	nat_rule postrouting "ip saddr $client4 ip daddr $(address4 web) sctp dport 80 masquerade to :20089"
	nat_rule postrouting "ip6 saddr $client6 ip6 daddr $(address6 web) sctp dport 80 masquerade to :20089"
	each_bridge_netfilter expect_sctp
}

expect_sctp() {
	both expect_answer client sctp @host 31081 web @bridge
	expect_answer server sctp "$host4_second" 20089 victim
	conntrack -F 2>/dev/null
}

# also with portmap
# where br_netfilter has the host redirect a packet to a mapped port, it goes to the host's own process, as
# any connection that netfilter translates: a container without our programs asks
test_beside_nat_redirect() {
	local address
	bridge_netfilter 1
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conflist plain bridge "$only_main"
	container_start stranger plain
	for address in "$host4" "$host6"; do
		"$peer" serve both "$address" 8080 --name host --background
		expect_answers stranger "$address" 8080 web
	done
	nat_rule prerouting "iifname cni0 ip daddr $host4 meta l4proto { tcp, udp } th dport 9091 dnat ip to $host4:8080"
	nat_rule prerouting "iifname cni0 ip6 daddr $host6 meta l4proto { tcp, udp } th dport 9091 dnat ip6 to [$host6]:8080"
	both expect_answers stranger @host 9091 host
}

expect_errors() {
	expect_refused client udp "$host4" 31082 --connected
	conntrack -F 2>/dev/null
	expect_refused client udp "$(address4 web)" 81 --connected
	expect_refused client udp "$(address6 web)" 81 --connected
	conntrack -F 2>/dev/null
}

# also with portmap
# errors about connections that the host's NAT translates reach those whom they are for
test_beside_nat_errors() {
	container_add web bridge
	container_start victim bridge -p 20089:80/udp
	errors_unlimited host web
	nat_rule prerouting "iifname eth0 meta nfproto ipv4 udp dport 31082 dnat ip to $(address4 web):81"
	nat_rule postrouting "ip saddr $client4 ip daddr $(address4 web) udp dport 81 masquerade to :20089"
	nat_rule postrouting 'ip6 daddr fd00:88::/64 udp dport 81 masquerade to :20089'
	each_bridge_netfilter expect_errors
}

# nothing is loaded
# where nobody has loaded nf_conntrack, ports and masquerade work, and neither ADD nor repair loads it
test_beside_nat_not_loaded() {
	[ ! -e /proc/sys/net/netfilter/nf_conntrack_max ] || skip "nf_conntrack is in the kernel already"
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_serves web
	expect_gets_out web
	by_hand 0 repair
	[ ! -e /proc/sys/net/netfilter/nf_conntrack_max ] || fail "nf_conntrack is loaded now"
}

# modules_shown NAME...: what sysfs says to be in the kernel
modules_shown() {
	local name
	mount -t tmpfs tmpfs /sys/module
	for name; do mkdir "/sys/module/$name"; done
}

# conntrack_asked: prints when the programs ask it (enum conntrack_use).
conntrack_asked() {
	bpftool -j map dump pinned "$pins/meta" | jq -r '.[0].formatted.value.conntrack'
}

# Open vSwitch, or tc's action ct, comes after the programs: doctor says so, and the next ADD, or
# `repair`, loads programs that ask conntrack also where no rule translates
test_beside_nat_without_hook() {
	local said='Open vSwitch or tc'
	[ -e /proc/sys/net/netfilter/nf_conntrack_max ] || skip "nf_conntrack is not in the kernel"
	modules_shown nf_conntrack
	container_start web bridge -p 8080:80/tcp
	conversation_with web before client tcp "$host4" 8080
	case $(conntrack_asked) in
		1) ;;
		3) skip "Open vSwitch or tc's ct is a part of this kernel" ;;
		*) skip "conntrack is $(conntrack_asked)" ;;
	esac
	mkdir /sys/module/openvswitch
	expect_contains "$("$build/bpf-portmap" doctor --quick 2>&1)" "$said"
	container_add other bridge -p 8081:80/tcp
	expect_equal 3 "$(conntrack_asked)" 'when conntrack is asked'
	expect_says before web
	[[ $("$build/bpf-portmap" doctor --quick 2>&1) != *"$said"* ]] || fail "doctor still says so"
}

# table_fill ROOM: fills conntrack's table with assured entries, which it drops for no newer one
table_fill() {
	local room=$1 port=0
	while [ "$port" -lt "$room" ] && conntrack -I -p udp -s 192.0.2.77 -d 192.0.2.78 \
		--sport "$((port + 1))" --dport 9 -t 600 -u SEEN_REPLY,ASSURED >/dev/null 2>&1; do
		port=$((port + 1))
	done
	expect_equal "$room" "$(conntrack -C)" 'entries of conntrack'
}

all_go_on() {
	expect_says mapped victim
	expect_says mapped6 victim
	expect_says node web
	expect_says node6 web
}

# nothing is loaded
# also with portmap
# while conntrack's table is full, connections go on, those through a mapping and those that the
# host's own NAT takes to another container, and new ones get no answer; they do again once there is
# room
test_beside_nat_table_full() {
	local room name
	room=$(cat /proc/sys/net/netfilter/nf_conntrack_max 2>/dev/null || echo none)
	[ "$room" = 64 ] || skip "conntrack has room for another number of entries: $room"
	node_port_make
	conversation_with victim mapped client tcp "$host4" 20089
	conversation_with victim mapped6 client tcp "$host6" 20089
	conversation_with web node client tcp "$host4" 31081
	conversation_with web node6 client tcp "$host6" 31081
	table_fill "$room"
	both expect_no_answers client @host 8080
	all_go_on
	all_go_on
	expect_no_answers client "$host4" 31081
	expect_no_answers server "$host4_second" 20089
	all_go_on
	for name in mapped mapped6 node node6; do conversation_close $name; done
	conntrack -F 2>/dev/null
	expect_node_port
}

# also with portmap
# what a server sends while the host's rules are taken away for a moment, as for a reload, does not take its
# connection from a container that they masquerade with a port which is another one's host port
test_beside_nat_reload() {
	local server
	stranger_make eth1
	for server in "$server4 $host4_second" "$server6 $host6_second"; do
		serve_in server 9000
		conversation_with server talk stranger udp "${server% *}" 9000
		processes_end server
		nat_forget
		ask_command server udp "${server#* }" 20089 --source-port 9000 --timeout 300
		"${asking[@]}" >/run/answer 2>&1 || true # portmap keeps the kernel translating: the stranger gets it
		expect_equal '' "$(grep victim /run/answer)"
		stranger_masquerade eth1
		serve_in server 9000
		say talk >/run/answer || true
		expect_says talk server
		conversation_close talk
		processes_end server
	done
}
