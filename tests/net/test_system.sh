# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_system.sh - what calls the plugin by itself: conf/system. tests/packages/units runs it beside a
# real systemd.

# install_system: conf/system in /run/system, with the path of the plugin under test
install_system() {
	local file
	mkdir -p /run/system
	for file in "$project"/conf/system/*; do
		sed "s|/opt/cni/bin|$build|; s|/usr/local/bin|$build|" "$file" >"/run/system/${file##*/}"
	done
	chmod +x /run/system/90-bpf-portmap
}

# hook [INTERFACE ACTION]: as NetworkManager calls it, or networkd-dispatcher; what it prints
hook() { /run/system/90-bpf-portmap "$@" 2>&1 || fail "the hook failed"; }

# where nothing was ever added, what a timer calls makes nothing, mounts nothing and says nothing
test_system_nothing() {
	install_system
	umount /sys/fs/bpf
	for command in gc attach "stats --prometheus=/run/out.prom"; do
		expect_equal '' "$(strace -f -o /run/calls "$build/bpf-portmap" $command 2>&1)" "$command"
		# For the lock sysfs is mounted, without a place where anybody sees it (fsmount).
		expect_equal '' "$(grep -E 'BPF_(MAP_CREATE|PROG_LOAD|OBJ_PIN|LINK_CREATE)|\<mount\(' /run/calls)"
	done
	expect_equal '' "$(hook eth0 up)"
	# mountpoint(1) would also find the machine's own, which the world's /sys hides.
	expect_equal sysfs "$(stat -f -c %T /sys/fs/bpf)" "what is mounted at /sys/fs/bpf"
}

# an interface that has got its address is an uplink as soon as the hook runs; what else the
# dispatchers report does nothing
test_system_hook() {
	install_system
	container_start web bridge -p 8080:80/tcp
	ip link add eth2 type veth peer name eth9
	ip link set eth2 up
	expect_equal '' "$(hook)" "no address yet"
	ip address add 203.0.113.1/24 dev eth2
	for action in pre-up down vpn-down hostname connectivity-change; do
		expect_equal '' "$(hook eth2 $action)" "$action"
	done
	expect_equal 'eth2 attached' "$(hook eth2 dhcp4-change | tr -s ' ')"
	expect_equal '' "$(hook)" "it is attached to"
}

# systemd finds no fault in the units, and little that they may do
test_system_units() {
	command -v systemd-analyze >/dev/null || skip "there is no systemd-analyze"
	install_system
	cd /run/system || return
	[ -x "$build/cni-ipam" ] || rm cni-ipam.*
	expect_equal '' "$(systemd-analyze verify --man=no ./*.service ./*.timer 2>&1)"
	systemd-analyze security --offline=true --threshold=30 ./bpf-portmap.service >/run/out ||
		fail "$(cat /run/out)"
	systemd-analyze security --offline=true --threshold=50 ./bpf-portmap-metrics.service >/run/out ||
		fail "$(cat /run/out)"
}
