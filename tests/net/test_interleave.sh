# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_interleave.sh - one command runs while another one is stopped half-way: neither of them fails
# for that reason, nor does a later command. At some of the places where it matters; STEP=1: at all.

# meanwhile COMMAND NAME: writes the script that runs while another command is stopped
meanwhile() {
	cat >/run/meanwhile <<-SCRIPT
		#!/bin/sh
		export CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_IFNAME=eth0 CNI_NETNS=/run/netns/$2
		exec $build/bpf-portmap $([ "$1" != attach ] || echo attach) \
			</run/config.$2 >/run/out.meanwhile 2>&1
	SCRIPT
	chmod +x /run/meanwhile
}

stopped_at() { PREFIX="$build/tests/traced stop $1 /run/meanwhile" plugin_run "$2" "$3"; }

attach_stopped_at() {
	"$build/tests/traced" stop "$1" /run/meanwhile "$build/bpf-portmap" attach
}

# `late` is a container whose veth has an address on the host, and whose ADD comes later.
two_containers() {
	conflist plain_ptp ptp "$only_main"
	container_add_plain one
	plugin_config one '.cniVersion = "1.1.0"' >/run/config.one
	plugin_run ADD one </run/config.one >/run/out || fail "$(cat /run/out)"
	container_add_plain late plain_ptp
	plugin_config late ".name = \"ptp\" | $(mapping "${1:-9090}")" >/run/config.late
	late_veth=$(host_veth late)
	late_index=$(cat "/sys/class/net/$late_veth/ifindex")
	late_index="$((late_index & 255)) $((late_index >> 8)) 0 0"
	in_order at first
}

# The state right after its main plugin has made it.
late_again() {
	plugin_run DEL late </run/config.late || fail "DEL of late"
	strip "$late_veth"
	bpftool map delete pinned "$pins/interfaces" key $late_index 2>/dev/null || true
}

expect_plugin() {
	plugin_run "$1" "$2" <"/run/config.$2" >/run/out 2>/run/err ||
		fail "$1 of $2 after ${*:3}: $(cat /run/out /run/err)"
}

in_order() {
	expect_plugin CHECK one "$@"
	expect_plugin STATUS one "$@"
}

# each_step STRIDE COMMAND...: runs the command with the number of the call to stop at, in steps of
# STRIDE, until there is no such call. `before` sets the state up for each, `afterwards` checks the
# exit code and the state.
each_step() {
	local step code steps=0 stride=${STEP:-$1}
	shift
	for ((step = RANDOM % stride + 1; ; step += stride)); do
		late_again
		"$before"
		code=0
		"$1" "$step" "${@:2}" >/run/out.stopped 2>&1 </run/config.stopped || code=$?
		[ "$code" != 99 ] || break
		steps=$((steps + 1))
		"$afterwards" "$code" "step $step of $*"
	done
	[ "$steps" -ge 4 ] || fail "only $steps steps of $*"
	echo "note: $SECONDS s, $steps steps of $*, meanwhile $(sed -n 's/.*CNI_COMMAND=\([^ ]*\).*/\1/p' /run/meanwhile)"
}

both_succeeded() {
	[ "$1" = 0 ] || fail "$2 ended with $1: $(cat /run/out.stopped /run/out.meanwhile)"
	in_order "$2"
}

late_is_in_order() {
	both_succeeded "$@"
	expect_plugin CHECK late "$2"
	expect_contains "$(bpftool -j map dump pinned "$pins/networks" | jq -r '.[].formatted.key.name')" ptp
}

late_is_in_order_silently() {
	late_is_in_order "$@"
	! grep -v "^$late_veth *attached\( again\)\?\$" /run/out.stopped || fail "output of attach, $2"
}

one_is_in_order() { in_order "$2"; }

late_add() { plugin_run ADD late </run/config.late >/run/out || fail "$(cat /run/out)"; }

# attach has taken it for an uplink, and what it has attached was removed.
late_lost_uplink() {
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	strip "$late_veth"
}

# limit 120 s
# attach, ADD, CHECK and STATUS are stopped at every place for a container's ADD: none of them
# fails, nor does CHECK of any container afterwards
test_interleave_add() {
	local before=true afterwards late_veth late_index
	two_containers
	meanwhile ADD late
	cp /run/config.late /run/config.stopped
	afterwards=late_is_in_order_silently
	each_step 19 attach_stopped_at
	before=late_lost_uplink
	each_step 29 attach_stopped_at
	before=true afterwards=late_is_in_order
	cp /run/config.one /run/config.stopped
	each_step 23 stopped_at ADD one
	each_step 101 stopped_at CHECK one
	each_step 83 stopped_at STATUS one
}

# limit 120 s
# a container's ADD is stopped at every place for attach, and for CHECK and ADD of another one
test_interleave_stopped_add() {
	local before=true afterwards=late_is_in_order late_veth late_index command
	two_containers
	cp /run/config.late /run/config.stopped
	for command in attach ADD CHECK; do
		meanwhile "$command" one
		each_step 23 stopped_at ADD late
	done
}

# limit 120 s
# a container's ADD that is refused, stopped for attach or during it, harms no other one
test_interleave_refused_add() {
	local before=true afterwards=one_is_in_order late_veth late_index
	two_containers 8080
	cp /run/config.late /run/config.stopped
	meanwhile attach one
	each_step 11 stopped_at ADD late
	meanwhile ADD late
	each_step 23 attach_stopped_at
	cp /run/config.one /run/config.stopped
	each_step 97 stopped_at CHECK one
}

# limit 120 s
# attach and CHECK are stopped at every place for a container's DEL, and DEL for them
test_interleave_del() {
	local before=late_add afterwards=both_succeeded late_veth late_index command
	two_containers
	meanwhile DEL late
	cp /run/config.one /run/config.stopped
	each_step 101 stopped_at CHECK one
	each_step 23 attach_stopped_at
	cp /run/config.late /run/config.stopped
	for command in attach CHECK; do
		meanwhile "$command" one
		each_step 5 stopped_at DEL late
	done
}

# what attach puts on a veth before its container's ADD does not get in the way of the bandwidth
# plugin, which comes later and needs its own qdisc there
test_interleave_bandwidth() {
	local before=true late_veth late_index
	two_containers
	attached cni0 ingress | grep -v clsact >/dev/null || skip "the kernel has no TCX"
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	expect_equal 'tcx from_uplink' "$(attached "$late_veth" ingress)"
	plugin_config late ".name = \"ptp\" | $(mapping 9090) | .capabilities.bandwidth = true |
		.runtimeConfig.bandwidth = {\"egressRate\": 8000000, \"egressBurst\": 80000}" >/run/config.late
	late_add
	tc qdisc add dev "$late_veth" ingress || fail "the bandwidth plugin could not add its qdisc"
	expect_plugin CHECK late
	in_order bandwidth
}

ports_know_their_bridge() {
	both_succeeded "$@"
	expect_equal "$(mac_of cni0)" "$(bpftool -j map dump pinned "$pins/interfaces" |
		jq -r '[.[].formatted.value | select(.role == "ROLE_PORT" or .role == "ROLE_BRIDGE") |
			.bridge_mac | join(" ")] | unique[]' | while read -r mac; do
			printf '%02x:%02x:%02x:%02x:%02x:%02x\n' $mac
		done)" "what is known of the bridge's MAC, $2"
}

# limit 120 s
# a bridge's MAC changes, and CHECK notices it, while a container's ADD is stopped that has read the
# old MAC: all ports use the new one
test_interleave_bridge_mac() {
	local before=true afterwards=ports_know_their_bridge late_veth late_index
	two_containers
	plugin_run DEL late </run/config.late || fail DEL
	container_add_plain port
	late_veth=$(host_veth port)
	late_index="$(cat "/sys/class/net/$late_veth/ifindex") 0 0 0"
	plugin_config port "$(mapping 9091)" >/run/config.stopped
	meanwhile CHECK one
	sed -i '1s/.*/#!\/bin\/bash/; 2i \
ip link set cni0 address 02:11:22:33:$(printf %02x:%02x $((RANDOM % 256)) $((RANDOM % 256)))' \
		/run/meanwhile
	each_step 11 stopped_at ADD port
}

# limit 120 s
# a container's veth with "attach": "tcx" goes while repair is stopped, at every place: repair does not
# fail, and an ADD for which it goes says what has happened
test_interleave_veth_goes() {
	tcx_needed
	local step code=0 repair_stride=${STEP:-8} add_stride=${STEP:-5}
	conflist tcx bridge "$(with_ours '{"attach": "tcx"}')"
	for ((step = RANDOM % repair_stride + 1; ; step += repair_stride)); do
		container_add late tcx
		veth_goes_meanwhile late
		code=0
		"$build/tests/traced" stop "$step" /run/meanwhile "$build/bpf-portmap" repair >/run/out 2>&1 || code=$?
		container_remove late tcx
		[ "$code" != 99 ] || break
		expect_equal 0 "$code" "repair, stopped before call $step: $(cat /run/out)"
	done
	[ "$step" -gt 20 ] || fail "only $step calls: nothing was tested"
	for ((step = RANDOM % add_stride + 1; step < 60; step += add_stride)); do
		container_add_plain late
		veth_goes_meanwhile late
		plugin_config late '.attach = "tcx"' >/run/config
		if ! stopped_at "$step" ADD late </run/config >/run/out 2>&1; then
			! grep -E 'needs Linux|Invalid argument' /run/out || fail "ADD, stopped before call $step"
		fi
		plugin_run DEL late </run/config || fail DEL
		container_remove late plain
	done
}

veth_goes_meanwhile() {
	printf '#!/bin/sh\nexec ip link delete %s\n' "$(host_veth "$1")" >/run/meanwhile
	chmod +x /run/meanwhile
}

# doctor, between whose looks a container ends: that is no finding
# limit 240 s
test_interleave_doctor() {
	local before=late_add afterwards=late_is_not_missed late_veth late_index
	two_containers
	meanwhile DEL late
	touch /run/config.stopped
	each_step 61 doctor_stopped_at
}

doctor_stopped_at() {
	"$build/tests/traced" stop "$1" /run/meanwhile "$build/bpf-portmap" doctor --no-probe
}

late_is_not_missed() {
	grep 'failure' /run/out.stopped >/dev/null || fail "$2 does not look at one: $(cat /run/out.stopped)"
	! grep '9090.* is gone' /run/out.stopped || fail "$2: $(cat /run/out.stopped)"
}
