# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_run_before.sh - third-party programs that run before ours are named.

. "$project/tests/net/test_bypass.sh"

# What each command prints on stderr about programs that run before ours
said_by() {
	"$@" 2>&1 >/run/stdout | grep 'runs before' || true
}

# expect_named TEXT: by CHECK, STATUS and attach
expect_named() {
	expect_contains "$(said_by container_check web bridge)" "$1"
	expect_contains "$(said_by status)" "$1"
	expect_contains "$(said_by "$build/bpf-portmap" attach)" "$1"
}

expect_none_named() {
	expect_equal "" "$(said_by container_check web bridge)" "output of CHECK"
	expect_equal "" "$(said_by status)" "output of STATUS"
	expect_equal "" "$(said_by "$build/bpf-portmap" attach)" "output of attach"
}

status() { plugin_call STATUS web 'del(.prevResult, .runtimeConfig) | .cniVersion = "1.1.0"'; }

# a third-party TCX program that ends the chain before ours at an uplink cuts the port off: ADD,
# CHECK, STATUS and attach name it and its hook
test_run_before_tcx() {
	tcx_needed
	local named='eth0: the TCX program somebody_elses (id '
	conflist bridge bridge .
	"$build/tests/tcx" end eth0 ingress /sys/fs/bpf/end
	expect_contains "$(said_by container_add web bridge -p 8080:80/tcp)" "$named"
	serve_in web 80
	expect_no_answer client tcp "$host4" 8080
	expect_named "$named"
	expect_named ') runs before from_uplink at ingress'
	"$build/tests/tcx" detach eth0 ingress somebody_elses
	expect_answer client tcp "$host4" 8080 web
	expect_none_named
	"$build/tests/tcx" count eth0 ingress /sys/fs/bpf/behind
	expect_none_named
}

# the same for filters: at the container's veth and, where ours is a filter too, at an uplink;
# filters after ours are not named
test_run_before_filters() {
	conflist bridge bridge "$(with_ours '{"attach": "clsact"}')"
	third_party_add eth1 egress 1
	expect_contains "$(said_by container_add web bridge -p 8080:80/tcp)" \
		'eth1: the tc program somebody_elses (id '
	expect_named ') runs before to_uplink at egress'
	third_party_remove eth1 egress 1
	expect_none_named
	third_party_add "$(host_veth web)" ingress 1
	expect_named ') runs before from_container at ingress'
	third_party_remove "$(host_veth web)" ingress 1
	tc filter add dev "$(host_veth web)" ingress prio 1 protocol all u32 match u32 0 0 flowid 1:1
	expect_named "$(host_veth web): a tc filter (u32, priority 1) runs before"
	third_party_remove "$(host_veth web)" ingress 1
	third_party_add eth0 ingress 60000
	expect_none_named
}
