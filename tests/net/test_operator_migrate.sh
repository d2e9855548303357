# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_migrate.sh - `bpf-portmap migrate --from-portmap`: ports that the reference plugin
# portmap has mapped, of containers that go on running.

# migrate_world: no conflist of the machine's own is seen
migrate_world() {
	mkdir -p /etc/cni/net.d
	mount -t tmpfs tmpfs /etc/cni/net.d
}

# portmap_container NAME [-p ...]: a container whose ports the reference plugin has mapped
portmap_container() {
	[ -e /run/conf/old.conflist ] || conflist old bridge \
		"$other_network | $as_reference | .plugins[0].hairpinMode = true"
	local name=$1
	shift
	container_start "$name" old "$@"
}

# every rule of the host, without counters
rules_now() {
	iptables-save | sed '/^#/d; s/\[[0-9:]*\]//'
	ip6tables-save | sed '/^#/d; s/\[[0-9:]*\]//'
	nft list ruleset | sed '/table inet bpf_portmap_migrated/,/^}/d; /table ip6* nat/,/^}/d; s/counter packets.*bytes [0-9]*//'
}

without_portmap_of_containers() { sed '/CNI-DN-[0-9a-f]/d'; }

# of containers: the chains that these share stay, as after each DEL of portmap
expect_no_portmap_rules() {
	local rules
	rules=$(iptables-save; ip6tables-save; nft list ruleset 2>/dev/null)
	case $rules in *CNI-DN-* | *' dnat to '*) fail "left: $rules" ;; esac
}

maps_now() {
	[ -e "$pins" ] || return 0
	bpftool -j map dump pinned "$pins/portmaps"
	bpftool -j map dump pinned "$pins/attachments"
	bpftool -j map dump pinned "$pins/connections"
}

# new connections of every kind go to the container web, and not by conntrack's translation
expect_ours() {
	expect_serves web
	expect_answers server "$host4" 8080 web
	needs_cgroup
	expect_answers host 127.0.0.1 8080 web
	expect_answers host "$host4" 8080 web
	expect_equal 1 "$(item '[.items[] | select(.host.port == 8080 and .host.address == "0.0.0.0"
		and .protocol == "tcp")] | length' list)" 'mappings in list'
}

# a container that portmap serves becomes ours: nothing else of the rules changes
test_operator_migrate() {
	local before
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	iptables -t nat -A POSTROUTING -s 10.5.0.0/16 -j MASQUERADE -m comment --comment 'not "ours"'
	iptables -A FORWARD -m comment --comment 'CNI-like' -j ACCEPT
	expect_answers client "$host4" 8080 web
	before=$(rules_now | without_portmap_of_containers)
	rows migrate --from-portmap | grep '8080' >/run/rows
	expect_equal "*:8080 tcp other web $(address4 web):80 iptables 0 mapped
*:8080 udp other web $(address4 web):80 iptables 1 mapped
[::]:8080 tcp other web [$(address6 web)]:80 iptables 0 mapped
[::]:8080 udp other web [$(address6 web)]:80 iptables 0 mapped" "$(sed 's/ $//' /run/rows)"
	expect_no_portmap_rules
	expect_equal "$before" "$(rules_now)" 'other rules'
	expect_ours
	by_hand 0 migrate --from-portmap
	expect_equal 'Nothing to migrate: portmap has no rules here.' "$(head -n 1 /run/out)"
}

# go_on_to_the_end NAME...: each of these conversations ends as its client wants it
go_on_to_the_end() {
	local name in
	for name; do
		in=${name}_in
		echo bye >&"${!in}"
		piped_close "$name" || fail "$name ended with $?"
	done
}

# conversations_open: one of each kind, through portmap's rules
conversations_open() {
	conversation_with web tcp4 client tcp "$host4" 8080
	conversation_with web tcp6 client tcp "$host6" 8080
	conversation_with web udp4 client udp "$host4" 8080
	conversation_with web udp6 client udp "$host6" 8080 --connected
	conversation_with web second4 server tcp "$host4_second" 8080
	conversation_with web udpsecond4 server udp "$host4_second" 8080
	conversation_with web local4 host tcp 127.0.0.1 8080
	conversation_with web localudp4 host udp 127.0.0.1 8080 --connected
	conversation_with web own4 host tcp "$host4" 8080
	conversation_with web own6 host tcp "$host6" 8080
	conversation_with web hairpin web tcp "$host4" 8080
	conversation_with web hairpinudp web udp "$host4" 8080
	conversation_with web neighbour other tcp "$host4" 8080
	conversation_with web neighbour6 other tcp "$host6" 8080
}
conversations='tcp4 tcp6 udp4 udp6 second4 udpsecond4 local4 localudp4 own4 own6 hairpin hairpinudp
	neighbour neighbour6'

# client_of NAME: the client that the container sees in this conversation
client_of() { field_of client "$(say "$1")"; }

# limit 120 s
# connections through portmap's rules go on, and the container sees the same client: TCP and UDP,
# IPv4 and IPv6, from outside, from the host, from containers; what a client begins from the same
# port afterwards is ours
test_operator_migrate_connections() { connections_go_on; }

# limit 120 s
# the same on a host that bpf-portmap already runs on, with all its programs
test_operator_migrate_beside_ours() {
	container_start ours bridge -p 9999:80/tcp
	expect_answer client tcp "$host4" 9999 ours
	connections_go_on
}

connections_go_on() {
	local name seen
	local -A seen_before
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	portmap_container other -p 9090:80/tcp
	conversations_open
	for name in $conversations; do seen_before[$name]=$(client_of "$name"); done
	by_hand 0 migrate --from-portmap
	cat /run/out
	expect_no_portmap_rules
	for round in 1 2 3; do
		for name in $conversations; do
			seen=$(client_of "$name")
			expect_equal "${seen_before[$name]}" "$seen" "$name, $round"
		done
		wait_until 5 second_is_over "$(seconds_of_uptime)"
	done
	go_on_to_the_end $conversations
	expect_ours
	expect_answers web "$host4" 8080 web
	both expect_answers other @host 8080 web
}

# limit 120 s
# while it migrates a download goes on, no datagram of a stream is lost, and no connection of a
# client that opens one after the other
test_operator_migrate_under_load() {
	local result count
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8081:81/tcp -p 8082:82/udp -p 8083:83/tcp
	mkdir -p /run/www
	head -c 60000000 /dev/urandom >/run/www/file
	in_namespace web busybox httpd -p 81 -h /run/www
	in_namespace web busybox httpd -p "[::]:83" -h /run/www || true
	in_namespace web "$build/tests/datagrams" echo 82 --background
	in_namespace client curl -sS --limit-rate 12M -o /run/got "http://$host4:8081/file" &
	local download=$!
	in_namespace client "$build/tests/stream" ask "$host4" 8082 4000 >/run/stream4 &
	local stream4=$!
	in_namespace client "$build/tests/stream" ask "$host6" 8082 4000 >/run/stream6 &
	local stream6=$!
	(
		count=0
		while [ ! -e /run/enough ]; do
			in_namespace client "$peer" ask tcp "$host4" 8080 --timeout 10000 >/run/asked 2>&1 || {
				echo "$count: $(cat /run/asked)"
				exit 1
			}
			count=$((count + 1))
			echo "$count" >/run/count
		done
	) >/run/loop 2>&1 &
	local loop=$!
	wait_until 20 [ -s /run/count ] || fail 'no connection'
	sleep 1
	by_hand 0 migrate --from-portmap
	echo "note: $(cat /run/count) connections before it ended"
	count=$(cat /run/count)
	wait_until 20 eval '[ "$(cat /run/count)" -gt $((count + 50)) ]' || fail "the loop: $(cat /run/loop)"
	touch /run/enough
	wait "$loop" || fail "a connection was lost: $(cat /run/loop)"
	wait "$stream4" "$stream6" || fail 'a stream ended'
	cat /run/stream4 /run/stream6
	expect_in /run/stream4 'lost=0 '
	expect_in /run/stream6 'lost=0 '
	wait "$download" || fail "the download ended: $?"
	cmp /run/www/file /run/got
	expect_no_portmap_rules
}

# --dry-run says the same, and changes neither rules nor maps
test_operator_migrate_dry_run() {
	local rules before
	migrate_world
	portmap_container web -p 8080:80/tcp
	conversation_with web tcp4 client tcp "$host4" 8080
	rules=$(rules_now)
	expect_equal "*:8080 tcp other web $(address4 web):80 iptables 1 map
[::]:8080 tcp other web [$(address6 web)]:80 iptables 0 map" \
		"$(rows migrate --from-portmap --dry-run | sed 's/ $//')"
	expect_equal "$rules" "$(rules_now)"
	container_start ours bridge -p 9090:80/tcp
	before=$(maps_now)
	expect_equal '["map","map"]' "$(item '[.items[].result]' migrate --from-portmap --dry-run)"
	expect_equal "$rules" "$(rules_now)"
	expect_equal "$before" "$(maps_now)"
	expect_says tcp4 web
}

# a port that only some may reach is left, restriction and all: by portmap's own conditionsV4, by a
# rule of an administrator in its chain; the rules behind that one are left, and it stays, also where
# it is behind all ports
test_operator_migrate_restricted() {
	migrate_world
	portmap_container before -p 8085:80/tcp
	iptables -t nat -A CNI-HOSTPORT-DNAT ! -s 192.168.0.0/16 -j RETURN
	by_hand 0 migrate --from-portmap
	expect_contains "$(iptables-save -t nat)" '-A CNI-HOSTPORT-DNAT ! -s 192.168.0.0/16 -j RETURN'
	case $(iptables-save -t nat) in *CNI-DN-*) fail 'the rules of before stay' ;; esac
	expect_answer client tcp "$host4" 8085 before
	iptables -t nat -D CNI-HOSTPORT-DNAT ! -s 192.168.0.0/16 -j RETURN
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	portmap_container fenced -p 8081:80/tcp
	portmap_container marked -p 8084:80/tcp
	local jump
	jump=$(iptables-save -t nat | grep -- '-A CNI-HOSTPORT-DNAT .*--dports 8081 ')
	eval "iptables -t nat -D ${jump#-A}"
	eval "iptables -t nat ${jump/ -p tcp/ -s 192.168.0.0/16 -p tcp}"
	iptables -t nat -I "$(iptables-save -t nat | grep -o 'CNI-DN-[0-9a-f]* -p tcp -m tcp --dport 8084' |
		cut -d ' ' -f 1)" -s 192.0.2.3 -j RETURN
	iptables -t nat -A CNI-HOSTPORT-DNAT ! -s 192.168.0.0/16 -p tcp -m tcp --dport 8083 -j RETURN
	portmap_container behind -p 8083:80/tcp
	iptables-save -t nat
	by_hand 1 migrate --from-portmap --json
	expect_equal '[8080,"mapped"]
[8080,"mapped"]
[8081,"left"]
[8083,"left"]
[8084,"left"]' "$(jq -c '.items[] | select(.host.address == "0.0.0.0") | [.host.port, .result]' \
		/run/out | sort)"
	expect_equal '["its rules are not as portmap writes them, or another rule comes before them"]' \
		"$(jq -c '[.items[] | select(.result == "left") | .reason] | unique' /run/out)"
	iptables-save -t nat >/run/rules
	expect_in /run/rules '-A CNI-HOSTPORT-DNAT ! -s 192.168.0.0/16'
	expect_in /run/rules '-A CNI-HOSTPORT-DNAT -s 192.168.0.0/16'
	expect_in /run/rules '--dport 8083 -j DNAT'
	case $(cat /run/rules) in *'--dport 8080 '*) fail 'the rule of 8080 stays' ;; esac
	expect_answers client "$host4" 8080 web
	expect_no_answer client tcp "$host4" 8081
	expect_no_answer client tcp "$host4" 8083
}

# who_is_answered PORT: of clients of both uplinks, at two addresses of the host
who_is_answered() {
	local asked answered=''
	for asked in "client $host4" "client 192.0.2.99" "server $host4_second"; do
		! ask ${asked% *} tcp "${asked#* }" "$1" --timeout 200 >/dev/null || answered+=" ${asked% *}@${asked#* }"
	done
	echo "$answered"
}

# container_with_conditions NUMBER CONDITIONS: a container of its own network, by portmap, whose list has
# these conditionsV4; its host port is 8100 and the number
container_with_conditions() {
	conflist "cond$1" bridge "$as_reference | $only_ipv4 | .name = \"cond$1\" | .plugins[0].bridge = \"cond$1\" |
		.plugins[0].ipam.ranges = [[{\"subnet\":\"10.84.$1.0/24\"}]] | .plugins[1].conditionsV4 = $2"
	container_add "cond$1" "cond$1" -p "$((8100 + $1)):80/tcp"
	in_namespace "cond$1" "$peer" serve tcp any 80 --name "cond$1" --background
}

# limit 120 s
# conditions of portmap become our options, and the same clients are answered as before; where no
# option does the same for that network alone, the reason has the words; where the rule has other conditions than the list,
# the container is left
test_operator_migrate_conditions() {
	local i jump rows before=() text
	migrate_world
	ip address add 192.0.2.99/32 dev eth0
	rows=(
		'["!", "-d", "192.0.2.99/32"]|mapped|"excludeCIDRs": ["192.0.2.99/32"]'
		'["-d", "192.0.2.99"]|mapped|"excludeCIDRs": ["0.0.0.0/0", "!192.0.2.99"]'
		'["-s", "198.51.100.0/24,203.0.113.7"]|mapped|"sourceRanges": ["198.51.100.0/24", "203.0.113.7", "::/0"]'
		'["!", "--source", "192.0.2.10"]|mapped|"sourceRanges": ["0.0.0.0/0", "!192.0.2.10", "::/0"]'
		'["-i", "eth0", "!", "-d", "192.0.2.99"]|mapped|"uplinks": ["eth0"], "excludeCIDRs": ["192.0.2.99"]'
		'["-i", "eth0+"]|mapped|"uplinks": ["eth0*"]'
		'["!", "-i", "eth1"]|left|put in its place: "excludeInterfaces": ["eth1"]'
		'["-m", "conntrack", "--ctstate", "NEW"]|left|remove the key: the options "sourceRanges"'
		'["-s", "192.0.2.0/24"]|left|its rules are not as portmap writes them'
		'[]|left|its rules are not as portmap writes them'
	)
	for i in "${!rows[@]}"; do container_with_conditions "$i" "${rows[i]%%|*}"; done
	for i in 8 9; do
		jump=$(iptables-save -t nat | grep -- "-A CNI-HOSTPORT-DNAT .*--dports 810$i ")
		eval "iptables -t nat -D ${jump#-A}"
		eval "iptables -t nat $(sed 's, -s 192.0.2.0/24,,; s, -p tcp, -d 192.0.2.1&,' <<<"$jump")"
	done
	for i in "${!rows[@]}"; do before[i]=$(who_is_answered "$((8100 + i))"); done
	expect_equal ' client@192.0.2.1 server@198.51.100.1' "${before[0]}" 'by portmap'
	by_hand 1 migrate --from-portmap --json
	for i in "${!rows[@]}"; do
		text=$(jq -r --arg id "cond$i" '.items[] | select(.container_id == $id) | "\(.result)|\(.reason)"' /run/out)
		expect_contains "$text" "$(cut -d '|' -f 2 <<<"${rows[i]}")|"
		expect_contains "$text" "${rows[i]##*|}"
		expect_equal "${before[i]}" "$(who_is_answered "$((8100 + i))")" "after migrate, ${rows[i]}"
	done
}

# rules of dead containers are removed: one whose namespace is gone, one whose address another has now
test_operator_migrate_dead() {
	migrate_world
	portmap_container gone -p 8080:80/tcp
	portmap_container web -p 8081:80/tcp
	container_die gone
	iptables -t nat -N CNI-DN-abcdef
	iptables -t nat -A CNI-DN-abcdef -p tcp --dport 8082 -j DNAT --to-destination "$(address4 web):80"
	iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8082 -m comment \
		--comment 'dnat name: "other" id: "before"' -j CNI-DN-abcdef
	expect_equal '[8080,"removed","its container is gone"]
[8080,"removed","its container is gone"]
[8081,"mapped",null]
[8081,"mapped",null]
[8082,"removed","its container is gone"]' "$(item '.items[] | [.host.port, .result, .reason]' migrate --from-portmap)"
	expect_no_portmap_rules
	expect_answer client tcp "$host4" 8081 web
	expect_no_answer client tcp "$host4" 8080
}

# hidden_from COMMAND ...: runs it where it sees no network namespace of a container
hidden_from() {
	unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /run/netns; exec "$@"' sh "$@"
}

# what is not seen is not dead: where no namespace is visible, and where the namespace of its ADD
# exists without the address; when that has gone, it is
test_operator_migrate_unseen() {
	local rules
	migrate_world
	portmap_container web -p 8080:80/tcp
	portmap_container hidden -p 8081:80/tcp
	rules=$(rules_now)
	PREFIX=hidden_from by_hand 1 migrate --from-portmap --json
	expect_equal '[["left","CNI_NETNS \"/run/netns/hidden\" does not open: No such file or directory"],["left","CNI_NETNS \"/run/netns/web\" does not open: No such file or directory"]]' \
		"$(jq -c '[.items[] | [.result, .reason]] | unique' /run/out)"
	expect_equal "$rules" "$(rules_now)" 'rules where nothing is seen'
	in_namespace hidden ip address flush dev eth0
	by_hand 1 migrate --from-portmap --json
	expect_equal '[8080,"mapped",null]
[8081,"left","no network namespace has its address"]' \
		"$(jq -c '.items[] | [.host.port, .result, .reason]' /run/out | sort -u)"
	expect_contains "$(iptables-save -t nat)" '--dport 8081 -j DNAT'
	container_die hidden
	by_hand 0 migrate --from-portmap
	expect_no_portmap_rules
}

# an earlier rule that is left counts too: it gets the packets of the port
test_operator_migrate_earlier_left() {
	migrate_world
	portmap_container web -p 8080:80/tcp
	portmap_container second -p 8080:80/tcp
	in_namespace web ip address flush dev eth0
	by_hand 1 migrate --from-portmap --json
	expect_equal '["second","left","an earlier rule maps host port 8080/tcp of any IPv4 address to container web of network other, and gets all packets"]
["web","left","no network namespace has its address"]' \
		"$(jq -c '.items[] | [.container_id, .result, .reason]' /run/out | sort -u)"
}

# what portmap adds while the rules are removed stays or becomes ours, and each port answers
test_operator_migrate_race() {
	local i adding
	migrate_world
	portmap_container web -p 8080:80/tcp
	for i in 1 2 3 4; do namespace_add "new$i"; done
	for i in 1 2 3 4; do runtime add old "new$i" -p "$((8080 + i)):80/tcp" >"/run/results/new$i"; done &
	adding=$!
	while kill -0 "$adding" 2>/dev/null; do
		"$build/bpf-portmap" migrate --from-portmap >/run/out 2>&1 || true
	done
	wait "$adding" || fail 'ADD by portmap'
	for i in 1 2 3 4; do serve_in "new$i" 80; done
	for i in 1 2 3 4; do expect_answer client tcp "$host4" "$((8080 + i))" "new$i"; done
	expect_answer client tcp "$host4" 8080 web
	by_hand 0 migrate --from-portmap
	expect_no_portmap_rules
	for i in 1 2 3 4; do expect_answer client tcp "$host4" "$((8080 + i))" "new$i"; done
}

# a container of which a port cannot be mapped is left as a whole, and the reason is said
test_operator_migrate_left() {
	migrate_world
	ip address add 192.0.2.77/24 dev eth0
	portmap_container moved -p 192.0.2.77:8081:80/tcp -p 8083:80/tcp
	ip address del 192.0.2.77/24 dev eth0
	portmap_container web -p 8080:80/tcp
	portmap_container second -p 8080:80/tcp
	portmap_container other -p 8082:80/tcp
	portmap_container unkept -p 8084:80/tcp
	rm /var/lib/cni/results/*-unkept-*
	container_start ours bridge -p 8082:80/tcp
	by_hand 1 migrate --from-portmap --json
	jq -r '.items[] | select(.host.address | contains(":") | not) |
		[.host.port, .container_id, .result, .reason] | @tsv' /run/out | sort >/run/rows
	expect_equal "8080	second	left	an earlier rule maps host port 8080/tcp of any IPv4 address to container web of network other, and gets all packets
8080	web	mapped	
8081	moved	left	its address 192.0.2.77 is not on this host
8082	other	left	bpf-portmap has mapped host port 8082/tcp of any IPv4 address to another: container ours, interface eth0, network bridge
8083	moved	left	its address 192.0.2.77 is not on this host
8084	unkept	left	no runtime has kept its ADD in /var/lib/cni/results: create the container anew, or remove its rules by hand: iptables-save -t nat | grep CNI-DN-" \
		"$(cat /run/rows)"
	expect_answer client tcp "$host4" 8080 web
	expect_answer client tcp "$host4" 8082 ours
	expect_answer client tcp "$host4" 8083 moved
	expect_answer client tcp "$host4" 8084 unkept
	iptables-save -t nat >/run/rules
	grep -- '--dport 8081 .*-j DNAT' /run/rules >/dev/null || fail "$(cat /run/rules)"
	! grep -- "--dport 8080 .*-j DNAT --to-destination $(address4 web):" /run/rules || fail 'it stays'
	ip address add 192.0.2.77/24 dev eth0
	by_hand 1 migrate --from-portmap
	expect_answer client tcp 192.0.2.77 8081 moved
}

# rules that are others than its runtime has asked for are left: somebody has closed a port
test_operator_migrate_others_asked() {
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8081:80/tcp
	eval "iptables -t nat $(iptables-save -t nat | grep -- '--dport 8081 .*-j DNAT' | sed 's/^-A/-D/')"
	by_hand 1 migrate --from-portmap --json
	expect_equal '["left","its rules are not those that its runtime has asked portmap for"]' \
		"$(jq -c '.items[] | [.result, .reason]' /run/out | sort -u)"
	expect_no_answer client tcp "$host4" 8081
	expect_answer client tcp "$host4" 8080 web
}

# what fails once the ports are claimed gives them back: here the veth's hook has as many programs as
# there can be
test_operator_migrate_gives_back() {
	local veth number
	tcx_needed
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	veth=$(host_veth web)
	for number in {1..63}; do
		"$build/tests/tcx" count "$veth" ingress "/sys/fs/bpf/count$number"
	done
	by_hand 1 migrate --from-portmap
	expect_in /run/out "cannot attach from_container by TCX to ingress of interface $veth"
	expect_answers client "$host4" 8080 web
	expect_equal '' "$(item '.items[].host.port' list)" 'mappings in list'
	"$build/tests/tcx" detach "$veth" ingress somebody_elses
	by_hand 0 migrate --from-portmap
	expect_answers client "$host4" 8080 web
	expect_no_portmap_rules
}

# "snat": false of portmap is kept: a container does not reach itself through its port
test_operator_migrate_options() {
	migrate_world
	conflist old bridge "$other_network | $as_reference |
		(.plugins[] | select(.type == \"portmap\")).snat = false"
	portmap_container web -p 8080:80/tcp
	by_hand 0 migrate --from-portmap
	expect_equal 1 "$(bpftool -j map dump pinned "$pins/policies" |
		jq '.[0].formatted.value.keep_hairpin_source')" keep_hairpin_source
	expect_equal 0 "$(bpftool -j map dump pinned "$pins/policies" |
		jq '.[0].formatted.value.source_range_count')" source_range_count
}

# the names of pods, as the runtime has kept them, are in list; a container that has renamed its
# interface is left alone, and keeps nobody else from being mapped
test_operator_migrate_names() {
	migrate_world
	portmap_container odd -p 8081:80/tcp
	in_namespace odd sh -c 'ip link set eth0 down && ip link set eth0 name "$1"' sh $'e\xff'
	export CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0'
	portmap_container web -p 8080:80/tcp
	unset CNI_ARGS
	by_hand_says 1 "no network namespace has its address" migrate --from-portmap
	expect_equal shop/web-0 "$(item '.items[0].container.name' list)"
}

# DEL afterwards: by a conflist that has our plugin, and by the old one, which leaves the port free
# for the next container
test_operator_migrate_del() {
	local state
	migrate_world
	container_start keeper bridge -p 9999:80/tcp
	state=$(state_show)
	portmap_container web -p 8080:80/tcp
	by_hand 0 migrate --from-portmap
	conflist old bridge "$other_network | $as_reference |
		(.plugins[] | select(.type == \"portmap\")).type = \"bpf-portmap\""
	container_check web old || fail 'CHECK by the new list'
	container_remove web old
	expect_equal '[9999,9999]' "$(item '[.items[].host.port]' list)"
	rm /run/conf/old.conflist
	portmap_container web -p 8080:80/tcp
	by_hand 0 migrate --from-portmap
	expect_answer client tcp "$host4" 8080 web
	container_remove web old
	container_start next bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 next
}

# newer_portmap_web: the container web, with the rules that a portmap with the backend nftables (1.6
# and newer; here 1.9.1) writes for -p 8080:80/tcp -p 8080:80/udp -p 192.0.2.1:8081:80/tcp. With
# NEWER_PORTMAP=/path/to/portmap that one writes them.
newer_portmap_web() {
	if [ -n "${NEWER_PORTMAP:-}" ]; then
		rm /run/cni-plugins/portmap
		ln -s "$NEWER_PORTMAP" /run/cni-plugins/portmap
		conflist old bridge "$other_network | $as_reference | .plugins[0].hairpinMode = true |
			(.plugins[] | select(.type == \"portmap\")).backend = \"nftables\""
		portmap_container web -p 8080:80/tcp -p 8080:80/udp -p "$host4:8081:80/tcp"
		return
	fi
	# The runtime keeps what it has asked for; what an older portmap makes of it goes.
	portmap_container web -p 8080:80/tcp -p 8080:80/udp -p "$host4:8081:80/tcp"
	iptables -t nat -F
	ip6tables -t nat -F
	iptables -t nat -X
	ip6tables -t nat -X
	by_newer_portmap web 'tcp dport 8080' 'udp dport 8080' "ip daddr $host4 tcp dport 8081"
}

# the rules of portmap's backend nftables: the same, and a table that others have rules in stays
test_operator_migrate_nftables() {
	local name
	migrate_world
	newer_portmap_web
	nft add table ip foreign
	for name in tcp4 tcp6 udp4; do
		conversation_with web "$name" client "${name%[46]}" "$(eval echo "\$host${name: -1}")" 8080
	done
	rows migrate --from-portmap | grep mapped | sed 's/ $//' >/run/rows
	expect_equal "*:8080 tcp other web $(address4 web):80 nftables 1 mapped
*:8080 udp other web $(address4 web):80 nftables 1 mapped
192.0.2.1:8081 tcp other web $(address4 web):80 nftables 0 mapped
[::]:8080 tcp other web [$(address6 web)]:80 nftables 1 mapped
[::]:8080 udp other web [$(address6 web)]:80 nftables 0 mapped" "$(cat /run/rows)"
	expect_no_portmap_rules
	expect_contains "$(nft list tables)" 'table ip foreign'
	for name in tcp4 tcp6 udp4; do expect_says "$name" web; done
	expect_ours
	expect_answer client tcp "$host4" 8081 web
	go_on_to_the_end tcp4 tcp6 udp4
}

# conntrack stays at work for connections that it translates, also where portmap's rules were the
# only ones; the table that sees to that is removed when they have ended
test_operator_migrate_keeper() {
	migrate_world
	conflist old bridge "$other_network | $as_reference | (.plugins[] | select(.ipMasq)).ipMasq = false"
	portmap_container web -p 8080:80/tcp
	conversation_with web tcp4 client tcp "$host4" 8080
	conversation_with web tcp6 client tcp "$host6" 8080
	by_hand_says 0 'conntrack still translates 2 connections' migrate --from-portmap
	expect_says tcp4 web
	expect_says tcp6 web
	by_hand_says 0 'conntrack still translates 2 connections' migrate --from-portmap
	expect_says tcp4 web
	go_on_to_the_end tcp4 tcp6
	by_hand 0 migrate --from-portmap
	expect_equal 'Nothing to migrate: portmap has no rules here.' "$(cat /run/out)"
	case $(nft list tables) in *bpf_portmap*) fail 'the table stays' ;; esac
}

# the same with iptables-legacy
test_operator_migrate_legacy() {
	migrate_world
	legacy_iptables
	PATH=/run/legacy:$PATH portmap_container web -p 8080:80/tcp -p 8080:80/udp
	expect_contains "$(iptables-legacy-save -t nat)" CNI-DN-
	conversation_with web tcp4 client tcp "$host4" 8080
	by_hand 1 migrate --from-portmap
	expect_in /run/err "portmap's DEL has left rules of container web"
	PATH=/run/legacy:$PATH by_hand 0 migrate --from-portmap --json
	expect_equal iptables-legacy "$(jq -r '.items[0].rules' /run/out)"
	case $(iptables-legacy-save -t nat; ip6tables-legacy-save -t nat) in
	*CNI-DN-*) fail "left: $(iptables-legacy-save)" ;;
	esac
	expect_says tcp4 web
	expect_ours
}

# nothing is loaded
# where portmap has no rules it says so, and which conflists name it; a user namespace has none; --dry-run
# loads nothing where it has some
test_operator_migrate_nothing() {
	migrate_world
	! has_user_namespaces ||
		PREFIX='unshare --user --map-root-user --net' by_hand 0 migrate --from-portmap
	by_hand 0 migrate --from-portmap
	expect_equal 'Nothing to migrate: portmap has no rules here.' "$(cat /run/out)"
	[ ! -e "$pins" ] || fail 'it has loaded the programs'
	by_hand_warns 64 '--from-portmap' migrate
	jq "$as_reference" "$project/conf/bridge.conflist" >/etc/cni/net.d/10-old.conflist
	cp "$project/conf/bridge.conflist" /etc/cni/net.d/20-new.conflist
	mkfifo /etc/cni/net.d/05-pipe.conflist
	PREFIX="timeout $((20 * SLOWER))" by_hand 0 migrate --from-portmap
	expect_equal '  /etc/cni/net.d/10-old.conflist' "$(tail -n +3 /run/out)"
	PREFIX="timeout $((20 * SLOWER))" by_hand_says 2 '/etc/cni/net.d/05-pipe.conflist is no conflist' doctor
	expect_equal '["/etc/cni/net.d/10-old.conflist"]' \
		"$(jq -c .summary.conflists_with_portmap <<<"$("$build/bpf-portmap" migrate --from-portmap --json)")"
	cp "$build/bpf-portmap" /run/bpf-portmap
	chmod 755 /run/bpf-portmap
	PREFIX='setpriv --reuid 65534 --regid 65534 --clear-groups' binary=/run/bpf-portmap \
		by_hand 1 migrate --from-portmap
	expect_in /run/err 'run it as root'
	portmap_container web -p 8080:80/tcp
	by_hand_says 0 8080 migrate --from-portmap --dry-run
	[ ! -e "$pins" ] || fail '--dry-run has loaded the programs'
}

migrate_once() {
	$PREFIX "$build/bpf-portmap" migrate --from-portmap >/run/out 2>&1
}

# nothing is loaded
# limit 240 s
# killed at any moment, it is completed when it runs again; connections outlive that
test_operator_migrate_killed() {
	local kill_window=400000 killed=0 round
	migrate_world
	for round in $(seq 1 "${KILLS:-6}"); do
		portmap_container web -p 8080:80/tcp -p 8080:80/udp
		conversation_with web tcp4 client tcp "$host4" 8080
		conversation_with web udp6 client udp "$host6" 8080
		killed_at_random migrate_once
		expect_says tcp4 web
		by_hand 0 migrate --from-portmap
		expect_no_portmap_rules
		expect_says tcp4 web
		expect_says udp6 web
		expect_answers client "$host4" 8080 web
		go_on_to_the_end tcp4 udp6
		container_remove web old
		"$build/bpf-portmap" attach >/dev/null 2>&1
	done
	echo "note: killed $killed of $round"
}

# nothing is loaded
# rules that others have written, and names that no plugin would accept, are read under the
# sanitizers
test_operator_migrate_sanitized() {
	local binary=$build/sanitized/bpf-portmap
	export ASAN_OPTIONS=detect_leaks=1
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 1,2:3 -m comment \
		--comment 'dnat name: "a\"b" id: "../.."' -j RETURN
	iptables -t nat -N CNI-DN-odd
	iptables -t nat -A CNI-DN-odd -p tcp --dport 7 -j DNAT --to-destination "$(address4 web):80-90"
	iptables -t nat -A CNI-DN-odd -p tcp --dport 8 -j DNAT --to-destination "$(address4 web)"
	iptables -t nat -A CNI-DN-odd -p icmp -j DNAT --to-destination "$(address4 web)"
	iptables -t nat -A CNI-DN-odd ! -d 10.0.0.0/8 -p udp --dport 9 -j DNAT --to-destination "$(address4 web):1"
	iptables -t nat -A CNI-HOSTPORT-DNAT -m comment --comment 'dnat name: "../" id: "o d"' -j CNI-DN-odd
	nft -f - <<-RULES
	table ip cni_hostport {
		chain hostports {
			tcp dport { 1, 2 } dnat to 10.87.0.2:80 comment "odd"
			tcp dport 3 dnat to 10.87.0.2 comment "odd"
			tcp dport 4 dnat to tcp dport map { 4 : 10.87.0.2 }
			dnat to 10.87.0.2
			tcp dport 5 dnat to 10.87.0.2:80 comment "$(printf 'e\033[31m')"
		}
		chain prerouting { type nat hook prerouting priority dstnat; jump hostports; }
	}
	RULES
	echo '{' >/var/lib/cni/results/broken
	echo '[[1]]' >/var/lib/cni/results/list
	echo '{"containerId": 3, "cniArgs": [1, [2]], "result": {"ips": {"a": 1}}}' >/var/lib/cni/results/other
	by_hand 0 migrate --from-portmap --dry-run --json
	by_hand 0 migrate --from-portmap
	! grep "$(printf '\033')" /run/out || fail 'a terminal would obey it'
	expect_answers client "$host4" 8080 web
	by_hand 0 support /run/out.tar
}
