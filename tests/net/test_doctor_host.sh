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

# a user namespace
test_doctor_rootless() {
	needs_user_namespaces
	healthy_host
	PREFIX="unshare --user --map-root-user" finds rights 'rootless' 2
}

# a kernel that is locked down
test_doctor_locked_down() {
	healthy_host
	mkdir -p /run/security
	echo 'none integrity [confidentiality]' >/run/security/lockdown
	mount --bind /run/security /sys/kernel/security
	finds rights 'locked down' 2
}

# the memory that the service which runs plugins may have is less than the maps need; a process of
# a user, or of a cgroup that is no service, is not that service, whatever its name
test_doctor_memory() {
	local limits=$cgroup/memory group other made=
	needs_cgroup
	grep -q '^memory.*1$' /proc/cgroups || skip "no cgroup can limit memory"
	healthy_host
	mkdir "$limits"
	mount -t cgroup -o memory cgroup "$limits" 2>/dev/null || skip "memory is limited by cgroup2"
	[ -d "$limits/system.slice" ] || made=$limits/system.slice
	mkdir -p "$limits/system.slice"
	group=$(mktemp -d "$limits/system.slice/doctor.XXXXXX.service")
	other=$(mktemp -d "$limits/system.slice/;reboot;.XXXXXX")
	# shellcheck disable=SC2064
	trap "kill_service; rmdir '$group' '$other' $made" EXIT
	echo 16M >"$other/memory.limit_in_bytes"
	cp /bin/sleep /run/containerd
	/run/containerd 60 &
	service=$!
	echo "$service" >"$group/cgroup.procs"
	healthy
	echo 16M >"$group/memory.limit_in_bytes"
	finds memory "/${group##*/} may have 16 MB of memory" 1
	expect_contains "$(jq -r .remedy /run/doctor)" "systemctl set-property ${group##*/} "
	echo "$service" >"$other/cgroup.procs"
	healthy
	kill_service
	setpriv --reuid 1000 --clear-groups /run/containerd 60 &
	service=$!
	wait_until 5 grep -qx containerd "/proc/$service/comm" || fail "the service did not start"
	echo "$service" >"$group/cgroup.procs"
	healthy
}
kill_service() {
	kill "$service"
	wait "$service" || true
}

# a process keeps the lock
test_doctor_lock() {
	healthy_host
	"$build/tests/locker" --name holder /sys/bus/platform/drivers_probe >/run/held &
	holder=$!
	wait_until 10 grep -q ready /run/held || fail "the holder did not start"
	finds lock "ADD and DEL wait for process $holder (holder)" 1
	kill -9 "$holder"
	wait "$holder" 2>/dev/null || true
	healthy
}

# a udev rule that runs a program which has moved
test_doctor_udev() {
	healthy_host
	mkdir -p /etc/udev/rules.d
	mount -t tmpfs tmpfs /etc/udev/rules.d
	breaks udev '/gone/bpf-portmap, which is not there' 1 install_rule
	expect_contains "$(cat /etc/udev/rules.d/90-bpf-portmap.rules)" "$build/bpf-portmap attach"
}
install_rule() {
	sed 's|/opt/cni/bin/|/gone/|g' "$project/conf/system/90-bpf-portmap.rules" \
		>/etc/udev/rules.d/90-bpf-portmap.rules
}

# --all says why interfaces are left alone, and whether the kernel has TCX
test_doctor_information() {
	conflist other bridge "$(with_ours '{"excludeInterfaces": ["eth1"]}')"
	container_start web other -p 8080:80/tcp
	by_hand 0 doctor --all
	expect_contains "$(cat /run/out)" 'left alone on purpose: eth1 (excludeInterfaces)'
	[ "$(kernel_or 6.6)" != 6.6 ] || expect_contains "$(cat /run/out)" 'the kernel has TCX'
}

# a hook of the root cgroup is nearly full
test_doctor_cgroup_room() {
	needs_cgroup
	healthy_host
	"$build/tests/sockhook" fill "$cgroup" connect6 61
	finds cgroup-room '2 more programs have room at the hook connect6' 1
	mend
	expect_contains "$(cat /run/mend)" connect6
}

# an uplink that takes smaller packets than containers send, itself or by a route
test_doctor_mtu() {
	healthy_host
	breaks mtu 'MTU of 1500, eth0 of 1400' 1 ip link set eth0 mtu 1400
	breaks mtu 'where it is locked' 1 ip route replace default via "$client4" mtu lock 1300
}

# ports of the bridge that are isolated from each other
test_doctor_isolation() {
	healthy_host
	container_add near bridge
	ip link set dev "$(host_veth web)" type bridge_slave isolated on
	breaks isolation 'are isolated' 1 \
		ip link set dev "$(host_veth near)" type bridge_slave isolated on
}

# a container that the plugin was not run for, on a bridge whose packets pass iptables, which drops
# INVALID
test_doctor_bridge_netfilter() {
	healthy_host
	bridge_netfilter 0
	container_add_plain plain
	nft 'table inet f { chain forward { type filter hook forward priority 0;
		ct state invalid drop; }; }'
	healthy
	bridge_netfilter 1
	finds bridge-netfilter "$(host_veth plain) at cni0" 1
	container_add_plain plain2
	finds bridge-netfilter '(and 1 more) at cni0' 1
	expect_equal 1 "$(wc -l </run/doctor)" 'findings of one bridge'
	# The setting is the administrator's: Services of Kubernetes need it.
	! jq -r .remedy /run/doctor | grep -v '^#' || fail 'the remedy is a command'
	nft 'insert rule inet f forward iifname "cni0" oifname "cni0" accept'
	healthy
	expect_answer plain tcp "$host4" 8080 web
}
