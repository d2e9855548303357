# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_bypass_live.sh - the programs notice by themselves what is added to a container's veth or
# bridge, without an ADD, CHECK or `attach`.

. "$project/tests/net/test_bypass.sh"
# Needs the kernel's BTF.
sight_needed() {
	bpftool -j map dump pinned "$pins/meta" | jq -e '.[0].formatted.value.sees_devices == 1' \
		>/dev/null || skip "the programs cannot look at devices here"
}

# live_world LIST: the container web, with conversations that skip the IP stack
live_world() {
	export FAST_PATH=established
	conflist "$1" "$1" .
	container_start web "$1" -p 8080:80/tcp -p 8080:80/udp
	conversations_fast
	veth=$(host_veth web)
}

# A request and its answer are both directions.
one_conversation() { "$1" in_udp web udp; }

# expect_seen WHICH ADD DEL: between these two commands none of these conversations skips the stack
expect_seen() {
	eval "$2"
	"$1" expect_slow_soon
	eval "$3"
	"$1" expect_fast_soon
}

# a qdisc added to the veth by hand brings established flows back to the IP stack, in both
# directions, and when it is removed they skip the stack again; so does a filter at either hook, and
# a qdisc of the bridge
test_bypass_live_bridge() {
	live_world bridge
	sight_needed
	expect_seen each_conversation 'tc qdisc add dev "$veth" root pfifo' 'tc qdisc del dev "$veth" root'
	expect_seen one_conversation 'third_party_add "$veth" ingress 7' 'third_party_remove "$veth" ingress 7'
	expect_seen one_conversation 'third_party_add "$veth" egress 1' 'third_party_remove "$veth" egress 1'
	expect_seen one_conversation 'tc qdisc add dev cni0 root pfifo' 'tc qdisc del dev cni0 root'
	expect_equal "" "$("$build/bpf-portmap" attach)" "what attach finds to change"
}

# the same behind ptp
test_bypass_live_ptp() {
	live_world ptp
	sight_needed
	expect_seen one_conversation 'tc qdisc add dev "$veth" root pfifo' 'tc qdisc del dev "$veth" root'
	expect_seen one_conversation 'third_party_add "$veth" ingress 7' 'third_party_remove "$veth" ingress 7'
}

# skipped WAY: how many packets have skipped the stack on their way into a container, or out of one
skipped() {
	local into out
	fast_each_way
	case $1 in into) echo "$into" ;; out) echo "$out" ;; esac
}

# expect_none_skips WAY COMMAND: from the end of the command on no packet skips the stack on that
# way, neither of the conversations that had just done so nor of one that begins.
expect_none_skips() {
	local before talk
	each_conversation expect_fast_soon
	for talk in in_tcp in_udp out_tcp out_udp; do goes_on "$talk" || fail "$talk: $last_answer"; done
	eval "$2"
	before=$(skipped "$1")
	for talk in in_tcp in_udp out_tcp out_udp; do
		for _ in 1 2 3; do goes_on "$talk" || fail "$talk: $last_answer"; done
		expect_equal "$before" "$(skipped "$1")" "packets that skip the stack with $2: $talk"
	done
	talk_open fresh client tcp "$host4" 8080
	for _ in 1 2 3 4; do goes_on fresh || fail "fresh: $last_answer"; done
	expect_equal "$before" "$(skipped "$1")" "packets of a new connection that skip the stack with $2"
	conversation_close fresh
}

# first_packet_world LIST: a qdisc holds for what goes into the container, the first filter at the
# veth's ingress for what leaves it.
first_packet_world() {
	live_world "$1"
	sight_needed
	expect_none_skips into 'tc qdisc add dev "$veth" root pfifo'
	tc qdisc del dev "$veth" root
	tc qdisc add dev "$veth" ingress 2>/dev/null || return 0 # our own programs are filters there
	expect_none_skips out 'tc filter add dev "$veth" parent ffff: prio 1 protocol all u32 match u32 0 0 flowid 1:1'
}

# a qdisc or filter that comes to the veth of a busy container on a bridge holds from the next packet
# on, for connections that run and for new ones
test_bypass_live_first_packet_bridge() { first_packet_world bridge; }

# the same of a ptp container's
test_bypass_live_first_packet_ptp() { first_packet_world ptp; }

# with our program at TCX, and an ingress qdisc that redirects, as that of the bandwidth plugin
test_bypass_live_ingress() {
	tcx_needed
	export FAST_PATH=established
	conflist bridge bridge "$(with_ours '{"attach": "tcx"}')"
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversations_fast
	sight_needed
	veth=$(host_veth web)
	tc qdisc add dev "$veth" ingress
	one_conversation expect_fast_soon
	expect_seen one_conversation 'tc filter add dev "$veth" parent ffff: prio 1 protocol all u32 match u32 0 0 flowid 1:1' \
		'tc filter del dev "$veth" parent ffff: prio 1'
	# our own filters have this priority
	expect_seen one_conversation 'tc filter add dev "$veth" parent ffff: prio 2 protocol all u32 match u32 0 0 flowid 1:1' \
		'tc filter del dev "$veth" parent ffff: prio 2'
}

# where our own programs are filters they do not count as third-party ones
test_bypass_live_clsact() {
	export FAST_PATH=established
	conflist bridge bridge "$(with_ours '{"attach": "clsact"}')"
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversations_fast
	sight_needed
	veth=$(host_veth web)
	one_conversation expect_fast_soon
	expect_seen one_conversation 'third_party_add "$veth" ingress 7' 'third_party_remove "$veth" ingress 7'
}

# shaped: how many packets the veth's root qdisc has seen
shaped() { tc -s -j qdisc show dev "$veth" root | jq '.[0].packets'; }

# datagrams COUNT: to the mapped port, each of a new flow
datagrams() {
	local number
	for ((number = 0; number < $1; number++)); do
		in_namespace client bash -c "echo hello >/dev/udp/$host4/8080"
	done
}

are_shaped() {
	local before
	before=$(shaped)
	datagrams 5
	[ $(($(shaped) - before)) -ge 5 ]
}

# a container that never sends anything is shaped as well, because its veth is also examined where
# its packets arrive
test_bypass_live_silent() {
	export FAST_PATH=always
	conflist bridge bridge .
	container_start web bridge -p 8080:80/udp
	sight_needed
	expect_answer client udp "$host4" 8080 web
	in_namespace web nft -f - <<-'RULES'
	table inet silent {
		chain output { type filter hook output priority 0; meta l4proto { udp, icmp } drop; }
	}
	RULES
	stack_watch
	datagrams 3
	expect_equal 0 "$(forwarded udp)" "datagrams through the IP stack"
	veth=$(host_veth web)
	tc qdisc add dev "$veth" root handle 1: pfifo
	wait_until 5 are_shaped || fail "datagrams are not seen by the qdisc"
}

# in Kubernetes the fast path is on whatever the list declares, and a limit that the bandwidth
# plugin adds later holds in both directions
test_bypass_live_kubernetes() {
	tcx_needed
	export FAST_PATH=established
	local untold protocol
	untold=$(with_ours '{"capabilities": {"portMappings": true}}')
	conflist after bridge-bandwidth ".name = \"after\" | .plugins = [.plugins[0, 2, 1]] | $untold"
	container_start web after -p 8080:80/tcp -p 8080:80/udp --args 'IgnoreUnknown=1;K8S_POD_NAME=web'
	sight_needed
	expect_fast_path web FAST_PATH_ESTABLISHED after/web/eth0
	conversations_fast
	runtime del after web || fail DEL
	container_die web
	keeps_limits after --args 'IgnoreUnknown=1;K8S_POD_NAME=web'
}

# policy add|delete: an IPsec policy for other addresses
policy() { ip xfrm policy "$1" src 198.51.100.1/32 dst 198.51.100.2/32 dir "${2:-out}" ${3:+action "$3"}; }

is_silent() { ! (expect_says "$@") 2>/dev/null; }

# while the host has IPsec policies for output or forwarding, every packet goes through the stack,
# which applies them, also to established flows; ADD, CHECK and attach report it
test_bypass_live_policies() {
	policy add out block 2>/run/out || skip "the kernel has no IPsec: $(cat /run/out)"
	policy delete
	live_world bridge
	sight_needed
	expect_equal "" "$(container_check web bridge 2>&1)" "output of CHECK without policies"
	policy add out block
	one_conversation expect_slow_soon
	expect_contains "$(container_check web bridge 2>&1)" "without the fast path: the host has IPsec policies"
	expect_contains "$(container_add other bridge 2>&1)" "without the fast path: the host has IPsec policies"
	expect_contains "$("$build/bpf-portmap" attach 2>&1)" "IPsec policies"
	policy add fwd allow
	policy delete out
	one_conversation expect_slow_soon
	policy delete fwd
	one_conversation expect_fast_soon
	ip xfrm policy add src "$(address4 web)" dst "$server4" dir out action block
	wait_until 10 is_silent out_udp server || fail "a policy does not apply to an established flow"
}

# nothing is loaded
# on a kernel without BTF the programs cannot look by themselves: what user space finds at ADD,
# CHECK and attach counts, and where limits can be added unnoticed the fast path is off
test_bypass_live_blind() {
	mount -t tmpfs none /sys/kernel/btf
	export FAST_PATH=established
	conflist bridge bridge "$(with_ours '{"localhost": false, "capabilities": {"portMappings": true}}')"
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_equal 0 "$(bpftool -j map dump pinned "$pins/meta" |
		jq '.[0].formatted.value.sees_devices')" "sees_devices"
	conversations_fast
	tc qdisc add dev "$(host_veth web)" root pfifo
	container_check web bridge >/run/out 2>&1 || fail "$(cat /run/out)"
	one_conversation expect_slow_soon
	tc qdisc del dev "$(host_veth web)" root
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	one_conversation expect_fast_soon
	container_add pod bridge --args 'IgnoreUnknown=1;K8S_POD_NAME=pod'
	expect_fast_path pod FAST_PATH_OFF
	# Nor do they see what conntrack knows.
	[ -e /proc/sys/net/netfilter/nf_conntrack_max ] || return 0
	local said='this kernel does not tell programs what conntrack knows (Linux 6.0 and BTF do)'
	expect_contains "$(status 2>&1)" "$said"
	"$build/bpf-portmap" doctor >/run/out 2>&1 || true
	expect_contains "$(tr -s ' \n' ' ' </run/out)" "$said"
}
