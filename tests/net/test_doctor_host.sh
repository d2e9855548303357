# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_doctor_host.sh - what `bpf-portmap doctor` says of the kernel, the host's settings and tables.

# shellcheck source=tests/net/doctor.sh
. "$project/tests/net/doctor.sh"

# a kernel that is too old, as the personality UNAME26 shows it
test_doctor_kernel() {
	healthy_host
	PREFIX="setarch --uname-2.6" finds kernel 'is older than 5.15' 2
}

# BPF programs that are interpreted
test_doctor_jit() {
	healthy_host
	own_proc /proc/sys/net/core
	breaks jit 'interprets' 1 switch_jit_off
	expect_equal 1 "$(sysctl -n net.core.bpf_jit_enable)"
}
switch_jit_off() { echo 0 >/proc/sys/net/core/bpf_jit_enable; }

# conntrack's table is nearly full
test_doctor_conntrack() {
	healthy_host
	own_proc /proc/sys/net/netfilter
	echo 100 >/proc/sys/net/netfilter/nf_conntrack_max
	breaks conntrack '95 entries of 100' 1 fill_conntrack
}
fill_conntrack() { echo 95 >/proc/sys/net/netfilter/nf_conntrack_count; }

# cgroup2 is not mounted, or only a part of it is
test_doctor_cgroup() {
	needs_cgroup
	healthy_host
	breaks cgroup 'no cgroup2 is mounted' 1 umount "$cgroup"
	mkdir "$cgroup/part" /run/part
	mount --bind "$cgroup/part" /run/part
	umount "$cgroup"
	mount --move /run/part "$cgroup"
	finds cgroup 'is not the root of all cgroups' 1
	umount "$cgroup"
	mount -t cgroup2 cgroup2 "$cgroup"
	rmdir "$cgroup/part"
	healthy
}

# an interface whose frames begin with something else
test_doctor_link_header() {
	healthy_host
	namespace_add away
	# 778: GRE with many ends
	"$build/tests/tun" odd /run/netns/away odd 778
	ip link set odd up
	ip address add 203.0.113.1/24 dev odd
	finds link-header 'odd has frames that begin with neither' 1
}

# IPsec policies
test_doctor_ipsec() {
	[ -e /proc/sys/net/core/xfrm_larval_drop ] || skip "the kernel has no IPsec"
	healthy_host
	ip xfrm policy add src 10.88.0.0/16 dst 10.1.0.0/16 dir out \
		tmpl src 192.0.2.1 dst 192.0.2.99 proto esp mode tunnel
	finds ipsec 'IPsec policies' 1
	mend
	expect_contains "$(cat /run/mend)" '10.1.0.0/16'
	ip xfrm policy flush
	healthy
}

# the default route leads by an interface without an address
test_doctor_uplink_address() {
	healthy_host
	ip link add bare type veth peer name bare-peer
	ip link set bare up
	ip route replace default dev bare
	finds uplink-address 'bare, by which the default route leads, has no IPv4 address' 1
	# What the remedy says, with an address.
	expect_contains "$(jq -r .remedy /run/doctor)" 'ip address add ADDRESS dev bare'
	ip address add 203.0.113.1/24 dev bare
	"$build/bpf-portmap" attach >/dev/null
	healthy
}

# a table of connections that is nearly full; the remedy shows whose they are
test_doctor_tables() {
	conflist small bridge "$(with_ours '{"flowEntries": 16384}')"
	container_start web small -p 8080:80/tcp
	healthy
	record_set usage '' 0 0x00 0x3f
	finds tables '16128 of 16384' 1
	mend
}

# an ADD that was cut short
test_doctor_unfinished() {
	healthy_host
	# since: a moment in 1970; state: ATTACHMENT_ADDING
	record_set attachments web 8 0x10 0 0 0 0 0 0 0
	record_set attachments web 26 0x01
	finds unfinished 'of container web was cut short' 1
	expect_contains "$(jq -r .remedy /run/doctor)" 'cnirun del CONFLIST web'
	container_del web bridge
	container_add web bridge -p 8080:80/tcp -p 5353:80/udp
	healthy
}
