# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_coexistence.sh - together with other plugins, other programs and other rules.


# on a kernel without TCX the qdisc of bandwidth leaves no room for us on a ptp container's veth:
# ADD reports that and leaves nothing behind
test_coexistence_bandwidth_ptp_without_tcx() {
	[ "$(kernel_or 6.6)" != 6.6 ] || skip "the kernel has TCX"
	conflist first ptp '.name = "first"'
	container_start first first -p 8080:80/tcp
	container_remove first first
	conflist ptp-before ptp '.name = "ptp-before" | .plugins |= [.[0],
		{"type": "bandwidth", "capabilities": {"bandwidth": true}}, .[1]]'
	namespace_add web
	local before
	before=$(map_count portmaps)
	expect_failure runtime add ptp-before web -p 8080:80/tcp --capability \
		'bandwidth={"ingressRate":8000000,"ingressBurst":800000,"egressRate":8000000,"egressBurst":800000}'
	expect_contains "$output" 'TCX (Linux 6.6'
	expect_count "$before" portmaps
}

# a list with bandwidth but without limits works the same; bandwidth 1.1.1 itself panics at CHECK
# then
test_coexistence_bandwidth_without_limits() {
	container_start web bridge-bandwidth -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web "$client4"
	container_remove web bridge-bandwidth
}

# As every CHECK does: the fast path is off for what was added since ADD.
look_around() { "$build/bpf-portmap" attach >/dev/null || fail attach; }

# third-party programs on the uplink, attached by TCX before and after ours, run and stay
test_coexistence_foreign_tcx() {
	tcx_needed
	local tcx=$build/tests/tcx hook
	for hook in ingress egress; do "$tcx" count eth0 "$hook" "/sys/fs/bpf/before_$hook"; done
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	for hook in ingress egress; do "$tcx" count eth0 "$hook" "/sys/fs/bpf/after_$hook"; done
	look_around
	local before after name
	before=$(for name in before after; do for hook in ingress egress; do
		map_counted "/sys/fs/bpf/${name}_$hook"; done; done)
	expect_answers client "$host4" 8080 web "$client4"
	after=$(for name in before after; do for hook in ingress egress; do
		map_counted "/sys/fs/bpf/${name}_$hook"; done; done)
	paste <(echo "$before") <(echo "$after") | while read -r was is; do
		[ "$was" != "$is" ] || fail "a third-party program saw nothing: $before, then $after"
	done
	container_remove web bridge
	expect_equal "2 2" "$(attached eth0 ingress | grep -c somebody) $(attached eth0 egress |
		grep -c somebody)" "third-party programs after DEL"
}

# third-party clsact filters on the uplink and on the veth run and stay, before and after ours
test_coexistence_foreign_clsact() {
	local tcx=$build/tests/tcx veth hook
	"$tcx" pin /sys/fs/bpf/program /sys/fs/bpf/count
	tc qdisc add dev eth0 clsact
	for hook in ingress egress; do
		tc filter add dev eth0 "$hook" prio 1 protocol all bpf direct-action \
			pinned /sys/fs/bpf/program
	done
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	local before
	before=$(map_counted /sys/fs/bpf/count)
	expect_answers client "$host4" 8080 web "$client4"
	[ "$before" != "$(map_counted /sys/fs/bpf/count)" ] || fail "the uplink's other filter saw nothing"
	veth=$(host_veth web)
	tc qdisc add dev "$veth" clsact 2>/dev/null || true
	tc filter del dev eth0 egress prio 1
	tc filter del dev eth0 ingress prio 1
	tc filter add dev "$veth" ingress prio 60000 protocol all bpf direct-action \
		pinned /sys/fs/bpf/program
	look_around
	before=$(map_counted /sys/fs/bpf/count)
	expect_answers client "$host4" 8080 web "$client4"
	[ "$before" != "$(map_counted /sys/fs/bpf/count)" ] || fail "the veth's other filter saw nothing"
	container_add other bridge -p 9090:80/tcp
	container_check web bridge
	expect_contains "$(attached "$veth" ingress)" somebody
	expect_contains "$(tc qdisc show dev eth0)" clsact
}

# a veth that already has a clsact qdisc is used as it is, and DEL leaves that qdisc
test_coexistence_foreign_clsact_on_veth_first() {
	container_add_plain web
	local veth
	veth=$(host_veth web)
	tc qdisc add dev "$veth" clsact
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_call DEL web || fail DEL
	expect_contains "$(tc qdisc show dev "$veth")" clsact
}

# a program that was removed by hand is attached again by the next ADD, exactly once
test_coexistence_programs_attached_once() {
	container_start web bridge -p 8080:80/tcp
	local hook
	for hook in ingress egress; do
		detach_ours eth0 "$hook" "$(attached eth0 "$hook" | awk '{print $2}')"
	done
	expect_no_answer client tcp "$host4" 8080
	container_start other bridge -p 9090:80/tcp
	container_start third bridge -p 9091:80/tcp
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
	expect_equal 1 "$(attached eth0 ingress | grep -c from_uplink)"
	expect_equal 1 "$(attached eth0 egress | grep -c to_uplink)"
}
