# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What turns the fast path off, and how user space tells the programs.

# slot NAME FILTER [ATTACHMENT]: a container's slot as bpftool prints it, through a jq filter
slot() {
	local number
	number=$(slot_of "${3:-bridge/$1/eth0}")
	bpftool -j map lookup pinned "$pins/slots" key hex $(printf '%02x %02x 00 00' \
		$((number & 255)) $((number >> 8))) | jq -c ".formatted.value | $2"
}

mac_as_json() { jq -cRn --arg mac "$1" '$mac | split(":") | map(. as $hex | "0123456789abcdef" |
	index($hex[:1]) * 16 + index($hex[1:]))'; }

expect_fast_path() {
	local mode
	mode=$(slot "$1" .fast_path "${3:-}")
	[ "$(without_fast_path "$(host_veth "$1")")" = 0 ] || mode='"FAST_PATH_OFF"'
	expect_equal "\"$2\"" "$mode" "fast_path of $1"
}

# the slot has the list's fastPath, by default established, and the MAC of frames to the gateway:
# the bridge's, or with ptp that of the veth itself
test_bypass_slots() {
	local value
	unset FAST_PATH
	conflist bridge bridge .
	container_add web bridge
	expect_fast_path web FAST_PATH_ESTABLISHED
	expect_equal "$(mac_as_json "$(mac_of cni0)")" "$(slot web .gateway_mac)" "gateway_mac"
	expect_equal "$(mac_as_json "$(mac_of "$(host_veth web)")")" "$(slot web .host_mac)" host_mac
	container_add routed ptp
	expect_equal "$(slot routed .host_mac ptp/routed/eth0)" \
		"$(slot routed .gateway_mac ptp/routed/eth0)" "gateway_mac behind ptp"
	for value in off established always; do
		conflist "$value" bridge "$(with_ours "{\"fastPath\": \"$value\"}")"
		container_add "$value" "$value"
		expect_fast_path "$value" "FAST_PATH_${value^^}"
	done
}

# without_fast_path INTERFACE: whether the map interfaces bars the fast path there
without_fast_path() {
	local number
	number=$(cat "/sys/class/net/$1/ifindex")
	bpftool -j map lookup pinned "$pins/interfaces" key hex $(printf '%02x %02x 00 00' \
		$((number & 255)) $((number >> 8))) | jq '.formatted.value |
			if .without_fast_path + .watched > 0 then 1 else 0 end'
}

# third_party_add DEVICE ingress|egress PRIORITY: a third-party filter that passes everything on
third_party_add() {
	[ -e /sys/fs/bpf/program ] || "$build/tests/tcx" pin /sys/fs/bpf/program /sys/fs/bpf/count
	tc qdisc add dev "$1" clsact 2>/dev/null || true
	tc filter add dev "$1" "$2" prio "$3" protocol all bpf direct-action pinned /sys/fs/bpf/program
}

third_party_remove() { tc filter del dev "$1" "$2" prio "$3"; }

# bypass_world: the container web is connected, but our plugin has not been called for it.
bypass_world() {
	export FAST_PATH=always
	container_add_plain web
	veth=$(host_veth web)
}

# expect_added_as STATE: the state after an ADD of web, and after a CHECK
expect_added_as() {
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_fast_path web "FAST_PATH_$1"
	plugin_call CHECK web >/run/out || fail "$(cat /run/out)"
	expect_fast_path web "FAST_PATH_$1"
}

# a container whose veth has a third-party qdisc, filter or TCX program at ADD is never offloaded;
# one whose veth has an empty clsact is, and so is one whose bridge has only our programs. CHECK reports
# a list whose fastPath differs from that of ADD. A bridge with a third-party qdisc or program keeps all
# its containers from being offloaded
test_bypass_veth() {
	bypass_world
	expect_added_as ALWAYS
	FAST_PATH=off expect_refusal fastPath plugin_call CHECK web
	plugin_call CHECK web || fail CHECK
	tc qdisc add dev "$veth" root tbf rate 100mbit burst 100k latency 50ms 2>/dev/null ||
		tc qdisc add dev "$veth" root pfifo
	expect_added_as OFF
	tc qdisc del dev "$veth" root
	expect_added_as ALWAYS
	local hook
	for hook in ingress egress; do
		third_party_add "$veth" "$hook" 1
		expect_added_as OFF
		third_party_remove "$veth" "$hook" 1
		expect_added_as ALWAYS
	done
	plugin_call DEL web || fail DEL
	tc qdisc add dev "$veth" clsact 2>/dev/null || true
	expect_added_as ALWAYS
	tc qdisc add dev cni0 root pfifo
	expect_added_as OFF
	tc qdisc del dev cni0 root
	third_party_add cni0 egress 1
	expect_added_as OFF
	third_party_remove cni0 egress 1
	expect_added_as ALWAYS
}

# the same with a filter on an ingress qdisc, and with a third-party TCX program at either hook
test_bypass_veth_tcx() {
	tcx_needed
	bypass_world
	local hook
	tc qdisc add dev "$veth" ingress
	tc filter add dev "$veth" parent ffff: prio 1 protocol all u32 match u32 0 0 flowid 1:1
	expect_added_as OFF
	plugin_call DEL web || fail DEL
	tc qdisc del dev "$veth" ingress
	expect_added_as ALWAYS
	for hook in ingress egress; do
		"$build/tests/tcx" count "$veth" "$hook" "/sys/fs/bpf/$hook"
		expect_added_as OFF
		"$build/tests/tcx" detach "$veth" "$hook" somebody_elses
		expect_added_as ALWAYS
	done
}

# CHECK, and `attach` for all containers, find what was added to a veth or a bridge after ADD
test_bypass_later() {
	export FAST_PATH=established
	conflist bridge bridge .
	conflist ptp ptp .
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_start other bridge -p 9090:80/tcp
	container_start routed ptp -p 9091:80/tcp
	expect_answers client "$host4" 8080 web "$client4"
	local attachment
	tc qdisc add dev "$(host_veth web)" root pfifo
	tc qdisc add dev "$(host_veth routed)" root pfifo
	expect_equal "" "$("$build/bpf-portmap" attach | grep -v ' without the fast path: ')"
	expect_fast_path web FAST_PATH_OFF
	expect_fast_path routed FAST_PATH_OFF ptp/routed/eth0
	expect_fast_path other FAST_PATH_ESTABLISHED
	expect_equal "" "$("$build/bpf-portmap" attach)" "what a second attach changes"
	expect_equal 1 "$(slot web .live)" "live"
	expect_answers client "$host4" 8080 web "$client4"
	tc qdisc del dev "$(host_veth web)" root
	container_check web bridge || fail CHECK
	expect_fast_path web FAST_PATH_ESTABLISHED
	tc qdisc add dev cni0 root pfifo
	expect_contains "$("$build/bpf-portmap" attach)" "a qdisc that is not ours is at cni0"
	for attachment in web other; do expect_fast_path "$attachment" FAST_PATH_OFF; done
	tc qdisc del dev cni0 root
	for attachment in web other; do
		container_check "$attachment" bridge || fail CHECK
		expect_fast_path "$attachment" FAST_PATH_ESTABLISHED
	done
}

# an uplink that has a third-party filter at ingress after our program is marked by the ADD that
# attaches to it, by the next ADD, by CHECK and by attach; one that has a filter before ours, or at
# egress, is not; so is one without an address, however many interfaces there are
test_bypass_uplink() {
	export FAST_PATH=established
	local number
	ip link add bare type veth peer name bare-peer
	ip link set bare up
	conflist clsact bridge "$(with_ours '{"uplinks": ["eth*", "bare"], "attach": "clsact"}')"
	third_party_add eth0 ingress 60000
	third_party_add eth1 ingress 1
	third_party_add eth1 egress 60000
	container_add web clsact
	expect_equal "1 0" "$(without_fast_path eth0) $(without_fast_path eth1)" "at the first ADD"
	third_party_remove eth0 ingress 60000
	container_add second clsact
	expect_equal "0 0" "$(without_fast_path eth0) $(without_fast_path eth1)" "at the next ADD"
	third_party_add eth1 ingress 3
	container_check web clsact || fail CHECK
	expect_equal "0 1" "$(without_fast_path eth0) $(without_fast_path eth1)" "at CHECK"
	third_party_remove eth1 ingress 3
	third_party_add eth0 ingress 2
	expect_contains "$("$build/bpf-portmap" attach)" 'without the fast path'
	expect_equal "1 0" "$(without_fast_path eth0) $(without_fast_path eth1)" "at attach"
	expect_equal "" "$("$build/bpf-portmap" attach eth0)" "what a second attach changes"
	third_party_add bare ingress 60000
	for number in 1 2 3 4 5 6 7 8; do
		ip link add "many$number" type veth peer name "many-peer$number"
		ip address add "172.16.$number.1/24" dev "many$number"
	done
	third_party_remove eth0 ingress 2
	third_party_add eth1 ingress 60000
	container_add third clsact
	expect_equal "0 1 1" "$(without_fast_path eth0) $(without_fast_path eth1) $(without_fast_path bare)" \
		"one of many, and one without an address"
}

# the same with third-party TCX programs; where ours are attached by TCX, all filters come after
# them
test_bypass_uplink_tcx() {
	tcx_needed
	export FAST_PATH=established
	conflist bridge bridge .
	local tcx=$build/tests/tcx
	"$tcx" count eth0 ingress /sys/fs/bpf/before
	"$tcx" count eth1 ingress /sys/fs/bpf/before1
	"$tcx" count eth1 egress /sys/fs/bpf/before1_egress
	container_add web bridge
	expect_equal "0 0" "$(without_fast_path eth0) $(without_fast_path eth1)" "before ours"
	"$tcx" count eth0 ingress /sys/fs/bpf/behind
	"$tcx" count eth1 egress /sys/fs/bpf/behind1_egress
	container_add other bridge
	expect_equal "1 0" "$(without_fast_path eth0) $(without_fast_path eth1)" "behind ours"
	third_party_add eth1 ingress 1
	container_check web bridge || fail CHECK
	expect_equal "1 1" "$(without_fast_path eth0) $(without_fast_path eth1)" "a filter"
}

limits='bandwidth={"ingressRate":80000000,"ingressBurst":8000000,
	"egressRate":80000000,"egressBurst":8000000}'
bandwidth='{"type": "bandwidth", "capabilities": {"bandwidth": true}}'

# How many packets the bandwidth plugin's qdiscs have seen: the veth's, and that of the device to
# which the container's packets are redirected
limited() {
	local device
	for device in "$(host_veth web)" "$(ip -o link show type ifb | sed 's/^[0-9]*: \([^:@]*\).*/\1/')"; do
		tc -s -j qdisc show dev "$device" | jq '.[] | select(.kind == "tbf").packets'
	done | paste -sd ' '
}

# expect_limited CONVERSATION: each of its packets, in both directions, passes those qdiscs.
expect_limited() {
	local before after round
	for round in 1 2 3; do expect_says "$1" web; done
	before=$(limited)
	for round in 1 2 3 4 5 6 7 8 9 10; do expect_says "$1" web; done
	after=$(limited)
	[ "$(awk '{ print ($3 - $1 >= 10) && ($4 - $2 >= 10) }' <<<"$before $after")" = 1 ] ||
		fail "$1: the qdiscs have seen $before, and $after after ten questions and answers"
}

# keeps_limits LIST [OPTION...]: the limits of a container whose flows are old enough to be
# offloaded, in all modes
keeps_limits() {
	local list=$1 protocol
	shift
	[ -e /run/netns/web ] || namespace_add web
	runtime add "$list" web -p 8080:80/tcp -p 8080:80/udp --capability "$limits" "$@" >/run/out 2>&1 ||
		fail "ADD: $(cat /run/out)"
	runtime check "$list" web >>/run/out 2>&1 || fail "CHECK: $(cat /run/out)"
	expect_equal '' "$(grep 'fast path' /run/out)" "warnings of limits that were asked for"
	serve_in web 80
	for protocol in tcp udp; do
		conversation_open "$protocol" client "$protocol" "$host4" 8080
		expect_limited "$protocol"
		conversation_close "$protocol"
	done
	runtime del "$list" web || fail DEL
	container_die web
}

# limit 120 s
# a container with the bandwidth plugin keeps its limits in both directions, whether that plugin
# comes before or after us, on a bridge and with ptp; also where we receive no limits: with its qdiscs there before us, and in
# Kubernetes
test_bypass_bandwidth() {
	tcx_needed
	local FAST_PATH untold
	untold=$(with_ours '{"capabilities": {"portMappings": true}}')
	for FAST_PATH in established always; do
		conflist before bridge-bandwidth '.name = "before"'
		keeps_limits before
		conflist after bridge-bandwidth '.name = "after" | .plugins = [.plugins[0, 2, 1]]'
		keeps_limits after
		conflist before bridge-bandwidth ".name = \"before\" | $untold"
		keeps_limits before
		conflist after bridge-bandwidth \
			".name = \"after\" | .plugins = [.plugins[0, 2, 1]] | $untold"
		keeps_limits after --args 'IgnoreUnknown=1;K8S_POD_NAME=web'
		conflist before-ptp ptp ".name = \"before-ptp\" | .plugins |= [.[0], $bandwidth, .[1]]"
		keeps_limits before-ptp
		conflist after-ptp ptp ".name = \"after-ptp\" | .plugins += [$bandwidth]"
		keeps_limits after-ptp
	done
}

is_slow() { (expect_slow "$@") 2>/dev/null; }

# expect_slow_soon CONVERSATION ANSWER PROTOCOL: after a second at most
expect_slow_soon() { wait_until 5 is_slow "$@" || fail "$1 still skips the IP stack"; }

# conversations_fast: from outside and to outside; all of them skip the IP stack
conversations_fast() {
	local protocol
	stack_watch
	serve_in server 9000
	for protocol in tcp udp; do
		conversation_open "in_$protocol" client "$protocol" "$host4" 8080
		conversation_open "out_$protocol" web "$protocol" "$server4" 9000
		say "in_$protocol" >/dev/null
		say "out_$protocol" >/dev/null
	done
	each_conversation expect_fast
}

each_conversation() {
	local protocol
	for protocol in tcp udp; do
		"$1" "in_$protocol" web "$protocol"
		"$1" "out_$protocol" server "$protocol"
	done
}

# established flows return to the IP stack, in both directions, once `attach` has found a
# third-party qdisc at the container's veth, or a third-party program after ours at the ingress of the
# uplinks
test_bypass_living_flows() {
	export FAST_PATH=established
	conflist bridge bridge .
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversations_fast
	third_party_add eth0 ingress 60000
	third_party_add eth1 ingress 60000
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	each_conversation expect_slow_soon
	third_party_remove eth0 ingress 60000
	third_party_remove eth1 ingress 60000
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	each_conversation expect_fast_soon
	tc qdisc add dev "$(host_veth web)" root pfifo
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	each_conversation expect_slow_soon
}

is_fast() { (ROUNDS=5 expect_fast "$@") 2>/dev/null; }
expect_fast_soon() { wait_until 10 is_fast "$@" || fail "$1 does not skip the IP stack again"; }

# passes_stack_inside CONVERSATION: now neither its request nor its answer skips the stack
passes_stack_inside() {
	local into out before
	fast_each_way
	before="$into $out"
	goes_on "$1" && fast_each_way && [ "$before" = "$into $out" ]
}

# flows from a container to another one's host port return to the IP stack when a third-party qdisc
# is found at its veth, and skip it again when that is removed
test_bypass_living_flows_inside() {
	fast_lists
	container_add web fast -p 8080:80/udp
	serve_in web 80
	container_add asker fast-other
	talk_open inside asker udp "$host4" 8080
	expect_skips_stack_inside inside
	tc qdisc add dev "$(host_veth asker)" root pfifo
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	wait_until 5 passes_stack_inside inside || fail "still skips the stack: $(paths_show)"
	tc qdisc del dev "$(host_veth asker)" root
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	expect_skips_stack_inside inside
}
