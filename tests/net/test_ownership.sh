# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_ownership.sh - the owner of a port: conflicts, DEL, a second ADD, generations.

# add_as ID NAME: the ADD of NAME with another container ID; its warnings are in /run/warnings.
add_as() {
	plugin_config "$2" "$(mapping 8080)" |
		NETNS=/run/netns/$2 plugin_run ADD "$1" >/run/out 2>/run/warnings || fail "$(cat /run/out)"
}

# the error for a taken port is one line that names network, container, interface, since when, and
# commands that free the port; the commands do so. An ID that belongs to no engine gets none of theirs
test_ownership_conflict_text() {
	local id now text details
	id=4c01db0b339c$(printf '%052d' 7)
	container_add_plain first
	container_add_plain second
	add_as first first
	expect_failure plugin_call ADD second
	expect_equal "choose another host port or hostIP, or remove that container; as a last resort, where no\
 engine knows it any more: \`ip link delete $(host_veth first)\`" "$(jq -r .details <<<"$output")"
	plugin_call DEL first || fail DEL
	now=$(date +%s)
	add_as "$id" first
	expect_error 101 '' plugin_call ADD second
	text=$(jq -r .msg <<<"$output")
	expect_equal "host port 8080/tcp of any IPv4 address is taken by container $id, interface eth0,\
 network bridge, since" "${text% *}"
	[ "$(($(date +%s --date "${text##* }") - now))" -le 60 ] || fail "since when: $text"
	details=$(jq -r .details <<<"$output")
	expect_equal "choose another host port or hostIP, or remove that container (\`podman rm -f\
 4c01db0b339c\`); as a last resort, where no engine knows it any more: \`ip link delete\
 $(host_veth first)\`" "$details"
	eval "$(grep -o 'ip link delete [a-z0-9]*' <<<"$details")"
	add_as second second
	expect_in /run/warnings "host port 8080/tcp of any IPv4 address is taken over from\
 container $id, interface eth0, network bridge, whose veth is gone"
	expect_equal 1 "$(grep -c 'taken over' /run/warnings)" "lines about what was taken over"
}

# pod_as ID NAME POD: the ADD of NAME with another container ID, for a pod in the namespace shop
pod_as() { CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=$3" add_as "$1" "$2"; }

# the error for a taken port names the pod whose sandbox has it, with the commands for Kubernetes,
# and so does the line about a port that is taken over; bpftool shows the names
test_ownership_conflict_text_pod() {
	local id text
	id=106d2c0b339c$(printf '%052d' 7)
	container_add_plain first
	container_add_plain second
	pod_as "$id" first web-0
	text=$(bpftool -j map dump pinned "$pins/attachments" |
		jq -c '.[].formatted.value.workload | [.kind, .namespace, .name]')
	expect_equal '["WORKLOAD_POD","shop","web-0"]' "$text" "names in the map"
	expect_error 101 '' plugin_call ADD second
	text=$(jq -r .msg <<<"$output")
	expect_equal "host port 8080/tcp of any IPv4 address is taken by pod shop/web-0 (sandbox $id),\
 interface eth0, network bridge, since" "${text% *}"
	expect_equal "choose another host port or hostIP, or delete that pod (\`kubectl delete pod -n shop\
 web-0\`; \`crictl inspectp 106d2c0b339c\` shows its sandbox); as a last resort, where no engine knows\
 it any more: \`ip link delete $(host_veth first)\`" "$(jq -r .details <<<"$output")"
	ip link delete "$(host_veth first)"
	pod_as second second web-1
	expect_in /run/warnings "is taken over from pod shop/web-0 (sandbox $id),"
}

pods='IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME='

# pod_waits PID: its ADD waits for the old sandbox, or has ended.
pod_waits() { [ ! -e "/proc/$1" ] || grep -qs nanosleep "/proc/$1/wchan"; }

# successor_gets_port SECONDS: ADD of `second`, while the sandbox that has its port is deleted, which
# takes so long. On a machine that stands still for five seconds ADD does not wait that long.
successor_gets_port() {
	local adding code=0
	plugin_config second >/run/config
	NETNS=/run/netns/second plugin_run_exec ADD new </run/config >/run/out 2>&1 &
	adding=$!
	wait_until 10 pod_waits "$adding" || fail "ADD neither waits nor ends"
	sleep "$1"
	NETNS=/run/netns/first plugin_call DEL first 2>/run/err || fail "DEL: $(cat /run/err)"
	wait "$adding" || code=$?
	return "$code"
}

# plugin_run_exec COMMAND NAME: this process itself becomes the plugin.
plugin_run_exec() {
	exec env -u CNI_PATH CNI_COMMAND="$1" CNI_CONTAINERID="$2" CNI_IFNAME=eth0 \
		CNI_NETNS="$NETNS" "$build/bpf-portmap"
}

# successor_of POD: `second`, of the pod web-0, gets the port of `first`, of this pod
successor_of() {
	local round
	container_add_plain first
	container_add_plain second
	for round in 1 2 3 4 5; do
		CNI_ARGS=$pods$1 plugin_call ADD first >/run/first || fail "$(cat /run/first)"
		! CNI_ARGS=${pods}web-0 successor_gets_port 3 || break
		[ "$round" -lt 5 ] || fail "$(cat /run/out)"
	done
	serve_in second 80
	expect_answer client tcp "$host4" 8080 second "$client4"
	expect_count 1 attachments
}

# a pod that is created again under its name gets the port of its old sandbox, which is just being
# stopped
test_ownership_successor_of_pod() { successor_of web-0; }

# so does one with another name, as a Deployment's pods have
test_ownership_successor_of_another_pod() { successor_of web-1; }

# the port of a pod that stays is refused in the end; nobody waits for what is no pod, nor does
# anything else than a pod
test_ownership_successor_refused() {
	local since
	container_add_plain first
	container_add_plain second
	CNI_ARGS=${pods}web-1 plugin_call ADD first >/run/out || fail "$(cat /run/out)"
	CNI_ARGS=${pods}web-0 expect_error 101 '' plugin_call ADD second
	expect_contains "$output" 'is taken by pod shop/web-1 (sandbox first)'
	serve_in first 80
	expect_waits_not '' second
	NETNS=/run/netns/first plugin_call DEL first || fail DEL
	plugin_call ADD first >/run/out || fail "$(cat /run/out)"
	expect_waits_not "${pods}web-0" second
}

# the clsact qdisc that a refused ADD has made stays where somebody has put a filter on it meanwhile
test_ownership_refused_leaves_others_filter() {
	local veth adding code=0
	container_add_plain first
	container_add_plain second
	CNI_ARGS=${pods}web-1 plugin_call ADD first >/run/out || fail "$(cat /run/out)"
	veth=$(host_veth second)
	plugin_config second '.attach = "clsact"' >/run/config
	# It waits for the DEL of the pod that has the port.
	CNI_ARGS=${pods}web-0 NETNS=/run/netns/second plugin_run_exec ADD second </run/config >/run/out 2>&1 &
	adding=$!
	wait_until 10 pod_waits "$adding" || fail "ADD neither waits nor ends"
	expect_contains "$(attached "$veth" ingress)" from_container
	tc filter add dev "$veth" ingress prio 9 protocol all u32 match u32 0 0 flowid 1:1
	wait "$adding" || code=$?
	expect_equal 1 "$code" "ADD's exit status"
	expect_contains "$(tc filter show dev "$veth" ingress)" u32
	expect_equal '' "$(attached "$veth" ingress)" "programs at the veth"
}

# expect_waits_not CNI-ARGS NAME: its ADD is refused without a pause
expect_waits_not() {
	CNI_ARGS=$1 expect_error 101 '' plugin_call_traced ADD "$2"
	case $(cat /run/trace) in *nanosleep*) fail 'ADD waits' ;; esac
}

plugin_call_traced() {
	plugin_config "$2" >/run/config
	NETNS=/run/netns/$2 strace -f -o /run/trace -e trace=nanosleep,clock_nanosleep \
		env -u CNI_PATH CNI_COMMAND="$1" CNI_CONTAINERID="$2" CNI_IFNAME=eth0 \
		CNI_NETNS="/run/netns/$2" "$build/bpf-portmap" </run/config
}

# the error for a taken port names a Nomad job; what a caller puts into a name harms neither a
# terminal nor a person who copies a command
test_ownership_conflict_text_others() {
	local id=f27f98b1-2ae0-46fc-809f-74723ed3260f
	container_add_plain first
	container_add_plain second
	CNI_ARGS="NOMAD_NAMESPACE=prod;NOMAD_JOB_ID=shop;NOMAD_GROUP_NAME=web" add_as "$id" first
	expect_failure plugin_call ADD second
	expect_contains "$output" "is taken by Nomad job prod/shop/web (allocation $id), interface eth0"
	expect_contains "$output" "stop that allocation (\`nomad alloc stop f27f98b1\`)"
	plugin_config first | plugin_run DEL "$id" || fail DEL
	pod_as evil first $'web\e]0,x\a$(reboot)`reboot`'
	expect_failure plugin_call ADD second
	expect_contains "$output" 'is taken by pod shop/web?]0,x?$(reboot)`reboot` (sandbox evil)'
	case $output in *kubectl*) fail "a command with a name that no pod has: $output" ;; esac
}

# the error for a taken port does not offer to delete the veth of a container that has processes; who
# says of portmap's container whether it runs
test_ownership_conflict_text_running() {
	needs_cgroup
	local id=4c01db0b339c0000000000000000000000000000000000000000000000000000
	mkdir "$cgroup/libpod-$id"
	sleep 600 &
	echo $! >"$cgroup/libpod-$id/cgroup.procs"
	container_add_plain first
	container_add_plain second
	add_as "$id" first
	expect_failure plugin_call ADD second
	expect_equal 'choose another host port or hostIP, or remove that container (`podman rm -f 4c01db0b339c`)' \
		"$(jq -r .details <<<"$output")"
	nft "table ip cni_hostport { chain hostports { type nat hook prerouting priority dstnat;
		tcp dport 9090 dnat to 10.88.0.8:80 comment \"$id\"; }; }"
	by_hand_says 1 '(container 4c01db0b339c, running)' who 9090
	kill -9 $!
	wait_until 5 cgroup_is_empty "$cgroup/libpod-$id" || fail "its process stays"
	by_hand_says 1 '(container 4c01db0b339c)' who 9090
	expect_failure plugin_call ADD second
	expect_contains "$(jq -r .details <<<"$output")" 'ip link delete'
}

cgroup_is_empty() { [ -z "$(cat "$1/cgroup.procs")" ]; }

# ADD and CHECK warn of a hostIP that the host does not have, and the port is reachable there as
# soon as it has it
test_ownership_host_address_absent() {
	local address command
	container_start_plain web
	plugin_config web '.runtimeConfig.portMappings = [("203.0.113.7", "2001:db8:9::7",
		"192.0.2.1" | {"hostIP": ., "hostPort": 8080, "containerPort": 80, "protocol": "TCP"},
		{"hostIP": ., "hostPort": 8080, "containerPort": 80, "protocol": "UDP"})]' >/run/config
	plugin_run ADD web </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
	for command in ADD CHECK; do
		plugin_run "$command" web </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
		expect_in /run/err '"hostIP": the host does not have 203.0.113.7 now'
		expect_in /run/err '"hostIP": the host does not have 2001:db8:9::7 now'
		expect_equal 2 "$(grep -c warning /run/err)" "warnings of $command"
	done
	ip address add 203.0.113.7/32 dev eth1
	ip address add 2001:db8:9::7/128 dev eth1 nodad
	for address in 203.0.113.7 2001:db8:9::7; do
		expect_answers client "$address" 8080 web
	done
	plugin_run CHECK web </run/config 2>/run/err || fail CHECK
	expect_equal "" "$(cat /run/err)" "standard error of CHECK"
	plugin_run DEL web </run/config || fail DEL
	maps_are_empty
}

maps_are_empty() {
	expect_count "0 0 0 0" 'portmaps attachments endpoints slots'
}

# an ADD that fails at its last port leaves none of the others, and DEL removes its bridge port
test_ownership_conflict_at_last_port() {
	container_start first bridge -p 8085:80/tcp
	namespace_add second
	local before
	before=$(state_show)
	expect_refusal first runtime add bridge second -p 8081:80/tcp -p 8082:80/udp -p 8085:80/tcp
	expect_same_state "$before"
	container_start second bridge -p 8081:80/tcp -p 8082:80/udp
	expect_answer client tcp "$host4" 8081 second
	expect_answer client udp "$host4" 8082 second
	expect_answer client tcp "$host4" 8085 first
}

# ports of several removed owners are taken over with a line for each owner
test_ownership_take_over_of_many() {
	container_add first bridge -p 8080:80/tcp -p 8082:80/tcp
	container_add second bridge -p "$host4:8081:80/tcp"
	container_die first
	container_die second
	container_add_plain third
	plugin_call ADD third '.runtimeConfig.portMappings = [8080, 8081, 8082, 8083 |
		{"hostPort": ., "containerPort": 80, "protocol": "tcp"}] + [{"hostIP": "'"$host4"'",
		"hostPort": 8081, "containerPort": 80, "protocol": "tcp"}]' >/run/out 2>/run/warnings ||
		fail "$(cat /run/out)"
	expect_equal 2 "$(grep -c 'taken over' /run/warnings)" "lines: $(cat /run/warnings)"
	expect_in /run/warnings 'address is taken over from container first,'
	expect_in /run/warnings "host port 8081/tcp of $host4 is taken over from\
 container second,"
	expect_count 1 attachments
}

# an ADD of 1,200 ports, one of them another container's, leaves nothing; after that container is
# removed it gets all
test_ownership_conflict_of_many() {
	container_add first bridge -p 9100:80/tcp
	container_add_plain second
	local before many='.runtimeConfig.portMappings = [range(600) | {"hostPort": (9000 + .),
		"containerPort": 80, "protocol": "tcp"}, {"hostPort": (9000 + .), "containerPort": 80,
		"protocol": "udp"}]'
	before=$(state_show)
	expect_error 101 "host port 9100/tcp" plugin_call ADD second "$many"
	expect_contains "$output" first
	expect_same_state "$before"
	container_die first
	plugin_call ADD second "$many" >/run/out 2>/run/warnings || fail "$(cat /run/out)"
	expect_in /run/warnings "9100/tcp of any IPv4 address is taken over"
	expect_count 2400 portmaps
	serve_in second 80
	expect_answer client tcp "$host4" 9100 second
	plugin_call DEL second || fail DEL
	expect_count 0 portmaps
	# where all are free
	plugin_call ADD second "$many" >/run/out || fail "$(cat /run/out)"
	plugin_call CHECK second "$many" || fail CHECK
	plugin_call DEL second || fail DEL
	expect_count 0 portmaps
}

# mappings with and without a hostIP do not conflict; two containers with the same hostIP do
test_ownership_conflict_by_host_ip() {
	container_add first bridge -p 8080:80/tcp
	container_add second bridge -p "$host4:8080:80/tcp"
	namespace_add third
	expect_refusal second runtime add bridge third -p "$host4:8080:80/tcp"
	expect_refusal first runtime add bridge third -p 0.0.0.0:8080:80/tcp
	container_add third bridge -p "$host4_second:8080:80/tcp"
}

# four containers have one port: any IPv4, any IPv6 and one address of each family; the one with the
# address wins from outside and from the host, and after its DEL the other one serves
test_ownership_any_and_specific() {
	local host
	container_start four bridge -p 0.0.0.0:8080:80/tcp -p 0.0.0.0:8080:80/udp
	container_start six bridge -p '[::]:8080:80/tcp' -p '[::]:8080:80/udp'
	container_start one4 bridge -p "$host4:8080:80/tcp" -p "$host4:8080:80/udp"
	container_start one6 bridge -p "[$host6]:8080:80/tcp" -p "[$host6]:8080:80/udp"
	for host in client host; do
		expect_answers "$host" "$host4" 8080 one4
		expect_answers "$host" "$host6" 8080 one6
		expect_answers "$host" "$host4_second" 8080 four
		expect_answers "$host" "$host6_second" 8080 six
	done
	container_remove one4 bridge
	container_remove one6 bridge
	for host in client host; do
		expect_answers "$host" "$host4" 8080 four
		expect_answers "$host" "$host6" 8080 six
	done
}

# everything that a refused ADD attached is removed, its policy too: bridge and ptp, clsact and TCX
test_ownership_refused_leaves_nothing() {
	local before name list way
	container_start first bridge -p 8080:80/tcp
	conflist plain_ptp ptp "$only_main"
	for list in plain plain_ptp; do
		name=$list-container
		container_add_plain "$name" "$list"
		for way in clsact tcx; do
			before=$(state_show)
			expect_failure plugin_call ADD "$name" ".attach = \"$way\" | .maxFlows = 5 |
				.runtimeConfig.portMappings = [8079, 8080, 8081 |
				 {\"hostPort\": ., \"containerPort\": 80, \"protocol\": \"tcp\"}]"
			expect_code 101
			expect_same_state "$before"
		done
	done
	expect_answer client tcp "$host4" 8080 first
}

# also with fastPath off, always
# after DEL the port does not answer, is free at once, and DEL succeeds a second time; a client's TCP port
# that had a connection to the old container can connect to the new one
test_ownership_del() {
	container_start first bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 first
	expect_answer client tcp "$host4" 8080 first "$client4" --source-port 7000 --reset
	container_remove first bridge
	expect_no_answers client "$host4" 8080
	runtime del bridge /run/netns/first --id first
	container_start second bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 second
	expect_answer client tcp "$host4" 8080 second "$client4" --source-port 7000 --reset
}

# also with fastPath off, always
# a UDP stream of one client socket reaches the new container at once after DEL and ADD
test_ownership_udp_stream_moves() {
	local host
	for host in "$host4" "$host6"; do
		container_start first bridge -p 8080:80/udp
		conversation_with first talk client udp "$host" 8080 --timeout 300
		expect_says talk first
		container_del first bridge
		expect_contains "$(say talk)" timeout
		container_start second bridge -p 8080:80/udp
		expect_says talk second
		expect_says talk second
		container_remove second bridge
		conversation_close talk
		ip netns delete first
	done
}

# also with fastPath off
# a new container with the same address but without the port does not take over an old flow, also if it
# has the old one's slot, too
test_ownership_address_reused() {
	local slot same
	serve_in server 9000
	for same in address slot; do
		container_start first bridge -p 8080:80/udp
		slot=$(slot_of bridge/first/eth0)
		conversation_with first talk client udp "$host4" 8080 --timeout 300
		container_remove first bridge
		rm /var/lib/cni/networks/bridge/last_reserved_ip.*
		[ "$same" = address ] || next_slot_set "$slot"
		container_start second bridge -p 8081:80/udp
		[ "$same" = address ] || expect_equal "$slot" "$(slot_of bridge/second/eth0)" "the slot"
		expect_contains "$(say talk)" timeout
		expect_answer client udp "$host4" 8081 second
		expect_answers second "$server4" 9000 server "$host4_second"
		conversation_close talk
		container_remove second bridge
		rm /var/lib/cni/networks/bridge/last_reserved_ip.*
	done
}

# also with fastPath off
# the UDP streams of a client and of a container on the bridge to an unused port follow it: to a
# container once it is added, to a process of the host, and back
test_ownership_udp_stream_follows() {
	local who
	container_add near bridge
	for who in client near; do
		conversation_open "of_$who" "$who" udp "$host4" 8080 --timeout 300 --keep-going
		case $(say "of_$who") in *name=*) fail "$who has an answer" ;; esac
	done
	container_start first bridge -p 8080:80/udp
	each_says first
	container_remove first bridge
	serve_on_host 8080
	each_says host
	container_start second bridge -p 8080:80/udp
	each_says second
	container_remove second bridge
	container_start third bridge -p 8080:80/udp
	each_says third
}
each_says() {
	local _ who
	for who in client near; do
		for _ in 1 2; do expect_says "of_$who" "$1"; done
	done
}

# a dead container loses all its records to the container that takes one of its ports over, because
# DEL may never be called for it
test_ownership_dead_loses_all() {
	container_start stays bridge -p 8090:80/tcp
	local before
	before=$(map_count endpoints)
	container_start dead bridge -p 8080:80/tcp -p 8081:80/udp -p 8082:80/tcp
	container_die dead
	container_start next bridge -p 8081:80/udp 2>/run/warnings
	expect_equal 1 "$(grep -c 'is taken over from container dead' /run/warnings)" "lines on stderr"
	expect_answer client udp "$host4" 8081 next
	expect_answer client tcp "$host4" 8090 stays
	expect_count "2 4 $((2 * before)) 2" 'attachments portmaps endpoints slots'
	container_check next bridge
	container_check stays bridge
}

# a container's port is not taken over while its veth exists, though its namespace has lost its name,
# or its veth has got another MAC, as udev does with new veths
test_ownership_not_taken_while_alive() {
	container_add_plain first
	plugin_call ADD first >/run/out || fail "$(cat /run/out)"
	serve_in first 80
	ip link set "$(host_veth first)" address 02:11:22:33:44:55
	container_add_plain second
	expect_error 101 '' plugin_call ADD second
	plugin_run GC any <<<'{"cniVersion":"1.1.0","name":"bridge","type":"bpf-portmap"}' || fail GC
	plugin_call CHECK first || fail CHECK
	expect_answer client tcp "$host4" 8080 first
	umount -l /run/netns/first
	rm /run/netns/first
	expect_error 101 '' plugin_call ADD second
	expect_answer client tcp "$host4" 8080 first
}

# a second ADD without DEL replaces what the attachment had; one that fails removes it
test_ownership_add_again() {
	container_add first bridge -p 9191:80/tcp
	container_add_plain web
	local before added
	before=$(state_show | grep -E 'portmaps|live|attach')
	plugin_call ADD web "$(mapping 8080)" >/run/out || fail "$(cat /run/out)"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web
	added=$(state_show)
	plugin_call ADD web "$(mapping 8080)" >/run/out || fail "$(cat /run/out)"
	expect_same_state "$added"
	expect_answer client tcp "$host4" 8080 web
	plugin_call ADD web "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	expect_no_answer client tcp "$host4" 8080
	expect_answer client tcp "$host4" 9090 web
	expect_same_state "$added"
	expect_error 101 '' plugin_call ADD web "$(mapping 9191)"
	expect_no_answer client tcp "$host4" 9090
	plugin_call DEL web || fail DEL
	expect_equal "$before" "$(state_show | grep -E 'portmaps|live|attach')" "what the maps hold"
}

# DEL works without netns, prevResult and runtimeConfig, and finds everything; it does not read a
# broken prevResult or runtimeConfig
test_ownership_del_without_anything() {
	container_start_plain web
	plugin_call ADD web "$(mapping 8080)" >/run/out || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web
	NETNS='' plugin_run DEL web <<<'{"cniVersion":"1.0.0","name":"bridge","type":"bpf-portmap"}' ||
		fail DEL
	expect_no_answer client tcp "$host4" 8080
	maps_are_empty
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web '.prevResult = {"cniVersion": "0.2.0", "ips": 7} |
		.runtimeConfig.portMappings = [{"hostPort": 0}]' || fail DEL
	maps_are_empty
}

# DEL with another prevResult and other mappings than ADD finds everything, and removes nothing of
# others that these name
test_ownership_del_with_another_configuration() {
	container_add_plain web
	container_add_plain other
	plugin_call ADD other "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	local left='[.[].formatted.key.host_port] | sort' all='map(.formatted) | sort' addresses before
	before=$(bpftool -j map dump pinned "$pins/endpoints" | jq -c "$all")
	for addresses in web other; do
		plugin_call ADD web '.runtimeConfig.portMappings = [range(8080; 8084) |
			{"hostPort": ., "containerPort": 80, "protocol": "tcp"}]' >/run/out || fail "$(cat /run/out)"
		plugin_config "$addresses" '.runtimeConfig.portMappings = [8082, 9090, 9091 |
			{"hostPort": ., "containerPort": 80, "protocol": "tcp"}]' | plugin_run DEL web || fail DEL
		expect_equal '[9090,9090]' \
			"$(bpftool -j map dump pinned "$pins/portmaps" | jq -c "$left")" "host ports left"
		expect_equal "$before" \
			"$(bpftool -j map dump pinned "$pins/endpoints" | jq -c "$all")" endpoints
		expect_count 1 attachments
	done
}

# a port that the container has through another interface stays there, because engines request it on
# every network: ADD and CHECK of the second interface succeed, it gets the free ports, another
# owner's port is refused, and its DEL leaves the port
test_ownership_same_container_on_two_networks() {
	conflist four bridge "$only_ipv4"
	conflist other bridge "$other_network"
	container_add first other -p 9090:80/tcp
	container_add web four
	container_del web four
	local before
	before=$(state_show)
	container_start web four -p 8080:80/tcp
	two_networks_route_loosely web
	runtime add other web --ifname eth1 -p 8080:80/tcp -p 8081:80/tcp >/run/out || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_equal "$(address4 web):80" "$(field_of local "$(ask client tcp "$host4" 8080)")"
	expect_answer client tcp "$host6" 8080 web
	expect_answer client tcp "$host4" 8081 web
	runtime check four web -p 8080:80/tcp || fail "CHECK of eth0"
	runtime check other web --ifname eth1 -p 8080:80/tcp -p 8081:80/tcp || fail "CHECK of eth1"
	runtime del other web --ifname eth1 || fail "DEL of eth1"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_no_answer client tcp "$host4" 8081
	runtime check four web -p 8080:80/tcp || fail "CHECK after DEL of eth1"
	expect_failure runtime add other web --ifname eth1 -p 8080:80/tcp -p 9090:80/tcp
	expect_contains "$output" 'taken by container first, interface eth0, network other'
	runtime del other web --ifname eth1 || fail "DEL after the failed ADD"
	expect_answer client tcp "$host4" 8080 web "$client4"
	container_del web four
	expect_same_state "$before"
}

# A container with two default routes answers through either one, which strict reverse path filters
# drop.
two_networks_route_loosely() {
	in_namespace "$1" sysctl -qw net.ipv4.conf.all.rp_filter=2
	sysctl -qw net.ipv4.conf.all.rp_filter=2
}

# nothing is loaded
# a container without ports and without masquerade, and a DEL where nothing was ever loaded, leave no
# trace in the kernel
test_ownership_no_trace() {
	local before
	container_add_plain web
	before=$(state_show)
	plugin_call ADD web '.ipMasq = false | del(.runtimeConfig)' >/run/out || fail "$(cat /run/out)"
	expect_same_state "$before"
	expect_same_json /run/results/web /run/out
	NETNS='' plugin_run DEL ghost <<<'{"cniVersion":"1.0.0","name":"bridge","type":"bpf-portmap"}' ||
		fail DEL
	NETNS=/run/netns/gone plugin_run DEL ghost <<<'{"cniVersion":"0.2.0","name":"x","type":"y"}' ||
		fail DEL
	expect_same_state "$before"
}

# an ADD whose reply nobody reads leaves nothing, with ports or without any
test_ownership_reply_unread() {
	local before command
	container_add_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	before=$(state_show)
	for command in . '.ipMasq = false | del(.runtimeConfig)'; do
		plugin_config web "$command" >/run/config
		! plugin_run ADD web </run/config >/dev/full 2>/dev/null || fail "ADD succeeded: $command"
		expect_same_state "$before"
	done
}

# an ADD that may open too few files, whatever it has done by then, leaves nothing behind
test_ownership_few_files() {
	container_start first bridge -p 8081:80/tcp
	container_add_plain second
	plugin_config second >/run/config
	local files before refused=0
	before=$(state_show)
	for files in {8..40}; do
		if (ulimit -n "$files" && plugin_run ADD second </run/config >/run/out 2>&1); then break; fi
		refused=$((refused + 1))
		expect_same_state "$before"
	done
	[ "$refused" -gt 5 ] || fail "only $refused ADDs failed: nothing was tested"
	expect_equal true "$(jq 'has("ips")' /run/out)" "the ADD with enough files: $(cat /run/out)"
}

# an address that IPAM has given to two containers is the first one's again after the DEL of the second
test_ownership_address_given_twice() {
	local ips
	container_add_plain web
	container_add_plain twin
	serve_in web 80
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	ips=$(jq -c .ips /run/results/web)
	plugin_call ADD twin ".prevResult.ips = $ips | $(mapping 9090)" >/run/out 2>/run/warnings ||
		fail "$(cat /run/out)"
	expect_in /run/warnings 'belongs to container web'
	plugin_call DEL twin ".prevResult.ips = $ips | $(mapping 9090)" || fail DEL
	both expect_answer client tcp @host 8080 web
	plugin_call CHECK web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	expect_count 0 endpoints
}

# an interface that two networks know: the DEL of the newer leaves the older one's ports, and so do
# those of another network and of another interface
test_ownership_interface_in_two_networks() {
	local other
	other=".name = \"other\" | $(mapping 9090)"
	container_start_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call ADD web "$other" >/run/out 2>/run/warnings || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 9090 web
	plugin_call DEL web "$other" || fail DEL
	plugin_run DEL web <<<'{"cniVersion":"1.0.0","name":"elsewhere","type":"bpf-portmap"}' || fail DEL
	IFNAME=eth1 plugin_run DEL web <<<'{"cniVersion":"1.0.0","name":"bridge","type":"bpf-portmap"}' ||
		fail DEL
	both expect_answer client tcp @host 8080 web
	plugin_call CHECK web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	expect_count '0 0' 'endpoints attachments'
}

# what an engine has forgotten, and no process lives in: the error and who give the one command that
# frees the port, and it does, for the containers of each engine
test_ownership_forgotten() {
	local args what id
	id=4c01db0b339c$(printf '%052d' 7)
	container_add_plain second
	for args in 'IgnoreUnknown=1;NOMAD_JOB_ID=shop;NOMAD_GROUP_NAME=web' "${pods}web-0" \
		'IgnoreUnknown=1;K8S_POD_NAME=web' 'IgnoreUnknown=1'; do
		container_add_plain first
		CNI_ARGS=$args add_as "$id" first
		what="\`ip link delete $(host_veth first)\`"
		by_hand_says 1 "! no process runs in it: $what frees the port where its engine has forgotten it" who 8080
		expect_error 101 '' plugin_call ADD second
		expect_contains "$(jq -r .details <<<"$output")" "where no engine knows it any more: $what"
		serve_in first 80
		by_hand 1 who 8080
		! grep 'no process' /run/out || fail "$args: a process runs in it"
		processes_end first
		eval "$(by_hand 1 who 8080; grep -o 'ip link delete [a-z0-9]*' /run/out | head -n 1)"
		add_as second second
		expect_in /run/warnings 'is taken over from'
		NETNS=/run/netns/second plugin_call DEL second || fail DEL
		container_remove first plain
	done
}
