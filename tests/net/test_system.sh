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

# udev_runs ACTION INTERFACE: the programs that the rule has udev run. Of udev's language it knows what
# the rule uses, and fails at anything else.
udev_runs() {
	local action=$1 interface=$2 line key operator value skip_to=
	while read -r line; do
		[ -z "$skip_to" ] || [ "$line" = "LABEL=\"$skip_to\"" ] || continue
		skip_to=
		[ "${line:0:1}" != '#' ] || continue
		while [ -n "$line" ]; do
			[[ $line =~ ^([A-Z]+)(==|!=|\+=|=)\"([^\"]*)\"(, *|$) ]] || fail "udev: $line"
			line=${line#"${BASH_REMATCH[0]}"}
			key=${BASH_REMATCH[1]} operator=${BASH_REMATCH[2]} value=${BASH_REMATCH[3]}
			case $key$operator in
			RUN+=) echo "$value" ;;
			GOTO=) skip_to=$value ;;
			LABEL=) ;;
			*) udev_matches || break ;;
			esac
		done
	done </run/system/90-bpf-portmap.rules
	[ -z "$skip_to" ] || fail "udev: no label $skip_to"
}

udev_matches() {
	local is_one=1
	case $key in
	ACTION) [[ $action =~ ^($value)$ ]] && is_one=0 ;;
	SUBSYSTEM) [ "$value" = net ] && is_one=0 ;;
	KERNEL) [[ $interface =~ ^(${value//'*'/.*})$ ]] && is_one=0 ;;
	TEST) [ -e "$value" ] && is_one=0 ;;
	*) fail "udev: $key" ;;
	esac
	[ "$operator" != '!=' ] || is_one=$((1 - is_one))
	return "$is_one"
}

# uplink_make_again: eth1 is deleted, and made again under its name, with other MACs
uplink_make_again() {
	ip link delete eth1
	network_make server eth1 "$host4_second" "$host6_second" "$server4" "$server6" \
		"192.0.2.0/24 via $host4_second" "2001:db8:1::/64 via $host6_second"
}

expect_uplink_serves() {
	expect_answers server "$host4_second" 8080 web "$server4"
	expect_answers server "$host6_second" 8080 web "$server6"
	[ "$plugin" = bpf-portmap ] || return 0
	expect_gets_out web
}

# also with portmap
# an uplink that is deleted and made again under its name works again by what the udev rule runs, with
# systemd and without: mapped ports, masquerade, and the connections that clients have
test_system_uplink_made_again() {
	local run
	install_system
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	for run in "$build/bpf-portmap repair" \
		"/usr/bin/systemd-run --no-block --collect --quiet --on-active=2 --timer-property=AccuracySec=100ms $build/bpf-portmap repair"; do
		conversation_with web tcp4 server tcp "$host4_second" 8080
		conversation_with web tcp6 server tcp "$host6_second" 8080
		uplink_make_again
		if [ "$plugin" = bpf-portmap ]; then
			expect_equal "$run" "$(udev_runs add eth1)" 'what udev runs'
			# systemd-run does this two seconds later.
			"$build/bpf-portmap" repair >/run/out || fail repair
			expect_contains "$(tr -s ' ' </run/out)" 'eth1 attached'
		fi
		expect_says tcp4 web
		expect_says tcp6 web
		conversation_close tcp4
		conversation_close tcp6
		expect_uplink_serves
		mkdir -p /run/systemd/system
	done
}

# the udev rule leaves containers' veths, lo and interfaces that go alone, and does nothing where the
# plugin was never used
test_system_udev_leaves_alone() {
	install_system
	expect_equal "$build/bpf-portmap repair" "$(udev_runs move eth1)"
	expect_equal '' "$(udev_runs add vethd4c0ffee)$(udev_runs add lo)$(udev_runs remove eth1)$(udev_runs change eth1)"
	umount /sys/fs/bpf
	expect_equal '' "$(udev_runs move eth1)" 'where nothing was ever added'
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
