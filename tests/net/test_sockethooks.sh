# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_sockethooks.sh - the programs at sockets of the host's processes: where they are attached,
# together with which others, and what works where they cannot be. What they do is tested in
# test_localhost.sh.
#
# nothing is at sockets before these tests

socket_tool=$build/tests/local
both='-p 8080:80/tcp -p 8080:80/udp'

# The hooks with our programs, one line each
our_hooks="connect4 connect4
connect6 connect6
getpeername4 getpeername4
getpeername6 getpeername6
recvmsg4 recvmsg4
recvmsg6 recvmsg6
sendmsg4 sendmsg4
sendmsg6 sendmsg6"

# third_party_attach CGROUP HOOK PIN [multi]: a program that counts its calls, in the map at PIN
third_party_attach() { bpftool $(third_party_attached_by "$@"); }

# third_party_attached_by: the same, but prints what bpftool has to do
third_party_attached_by() {
	"$build/tests/tcx" pin "$3-program" "$3" "cgroup/$2" 1
	echo "cgroup attach $1 $2 pinned $3-program ${*:4}"
}

expect_our_hooks() {
	expect_equal "$our_hooks" "$(socket_hooks_show | grep -v somebody)" "programs at sockets"
}

# web_start: the standard error of its ADD is in /run/stderr.
web_start() {
	container_start web bridge $both 2>/run/stderr
}

expect_reached() {
	local address
	for address in 127.0.0.1 ::1 "$host4"; do expect_answers host "$address" 8080 "${1:-web}"; done
	# An IPv4 socket, which peer does not have
	expect_contains "$("$socket_tool" tcp4 connect 127.0.0.1 8080 ask)" "name=${1:-web} "
}

# ... by lo, where no program has changed the socket
expect_reached_by_lo() {
	local before
	before=$(counted local_connect)
	expect_reached "$@"
	expect_equal "$before" "$(counted local_connect)" "sockets that a program has changed"
}

# expect_warned WHAT: the ADD warned, and STATUS warns and succeeds.
expect_warned() {
	expect_in /run/stderr warning "$1"
	status >/run/out 2>/run/status || fail "STATUS: $(cat /run/out)"
	expect_in /run/status warning "$1"
}

expect_outside_works() {
	expect_serves web
}

# the first container with ports brings the programs, one at each hook, and later ones add none, nor
# do those without ports or with "localhost": false; a cgroup2 that is mounted read-only is enough
test_sockethooks_once() {
	needs_cgroup
	container_add none bridge
	conflist off bridge "$(with_ours '{"localhost": false}')"
	container_start quiet off -p 8082:80/tcp
	expect_equal "" "$(socket_hooks_show)" "programs at sockets without ports"
	container_check quiet off
	mount -o remount,bind,ro "$cgroup" 2>/dev/null || true
	web_start
	expect_equal "" "$(cat /run/stderr)" "standard error of ADD"
	expect_our_hooks
	expect_reached
	container_start other bridge -p 8081:80/tcp
	expect_our_hooks
	container_remove web bridge
	container_remove other bridge
	expect_our_hooks
	status >/run/out 2>&1 || fail "STATUS: $(cat /run/out)"
	expect_equal "" "$(cat /run/out)" "output of STATUS"
}

# no cgroup2 at all: ADD works with a warning, STATUS warns, traffic from outside works, and that of the
# host goes by lo; once there is one, the next ADD attaches
test_sockethooks_no_cgroup2() {
	needs_cgroup
	umount "$cgroup"
	web_start
	expect_warned 'processes on this host reach mapped ports on a slower way, by lo'
	expect_warned 'no cgroup2 is mounted; `mount -t cgroup2'
	expect_warned 'Everything works'
	expect_reached_by_lo
	expect_outside_works
	container_check web bridge 2>/run/out || fail "CHECK: $(cat /run/out)"
	mount -t cgroup2 cgroup2 "$cgroup"
	container_add other bridge -p 8081:80/tcp
	expect_our_hooks
	expect_reached
}

# a hook that is full of third-party programs, the first or the last of ours, or has one that does not
# share it: a warning names it, none of ours stays, the rest works; when there is room again, the next
# ADD attaches
test_sockethooks_full() {
	needs_cgroup
	local hook number
	for hook in connect4 getpeername6; do
		for number in {1..64}; do
			third_party_attached_by "$cgroup" "$hook" "/sys/fs/bpf/$hook$number" multi
		done >/run/attach
		bpftool batch file /run/attach >/dev/null
		web_start
		expect_warned "$hook"
		expect_outside_works
		expect_equal "" "$(socket_hooks_show | grep -v somebody)" "ours at sockets"
		container_check web bridge 2>/run/out || fail "CHECK: $(cat /run/out)"
		socket_hooks_empty "$hook"
		container_remove web bridge
		web_start
		expect_equal "" "$(cat /run/stderr)" "standard error of ADD"
		expect_our_hooks
		expect_reached
		container_remove web bridge
		rm "$pins"/*[46]
	done
	wait_until 5 no_hooks_of_ours || fail "left: $(socket_hooks_show)"
	third_party_attach "$cgroup" connect6 /sys/fs/bpf/alone
	web_start
	expect_warned connect6
	expect_outside_works
	expect_equal "connect6 somebody_elses" "$(socket_hooks_show)" "programs at sockets"
}

# socket_hooks_empty HOOK: removes the third-party programs
socket_hooks_empty() {
	bpftool -j cgroup show "$cgroup" | jq -r --arg at "$cgroup $1" '.[] |
		select(.name == "somebody_elses") | "cgroup detach \($at) id \(.id)"' >/run/detach
	bpftool batch file /run/detach >/dev/null
}

# third-party programs on the same hooks, attached before and after ours, are called, and stay
test_sockethooks_others() {
	needs_cgroup
	local name hook before
	for hook in connect4 sendmsg4 recvmsg4 getpeername4; do
		third_party_attach "$cgroup" "$hook" "/sys/fs/bpf/before_$hook" multi
	done
	web_start
	expect_equal "" "$(cat /run/stderr)" "standard error of ADD"
	for hook in connect4 sendmsg4 recvmsg4 getpeername4; do
		third_party_attach "$cgroup" "$hook" "/sys/fs/bpf/after_$hook" multi
	done
	expect_contains "$("$socket_tool" tcp4 connect 127.0.0.1 8080 names ask)" "name=web "
	expect_contains "$("$socket_tool" udp4 sendto 127.0.0.1 8080 recvmsg)" "name=web "
	for name in /sys/fs/bpf/{before,after}_{connect4,sendmsg4,recvmsg4,getpeername4}; do
		[ "$(map_counted "$name")" -gt 0 ] || fail "$name was not called"
	done
	container_remove web bridge
	rm -rf "$pins"
	wait_until 5 no_hooks_of_ours || fail "left: $(socket_hooks_show)"
	expect_equal 8 "$(socket_hooks_show | grep -c somebody)" "third-party programs"
	before=$(map_counted /sys/fs/bpf/after_connect4)
	"$socket_tool" tcp4 connect 127.0.0.1 8080 >/run/out || true
	[ "$(map_counted /sys/fs/bpf/after_connect4)" -gt "$before" ] || fail "no longer called"
}

no_hooks_of_ours() { ! socket_hooks_show | grep -v somebody >/dev/null; }

# as systemd mounts it: cgroup2 at /sys/fs/cgroup/unified beside version 1
test_sockethooks_hybrid() {
	needs_cgroup
	umount "$cgroup"
	mount -t tmpfs tmpfs "$cgroup"
	mkdir "$cgroup/unified" "$cgroup/systemd"
	mount -t cgroup2 cgroup2 "$cgroup/unified"
	web_start
	expect_equal "" "$(cat /run/stderr)" "standard error of ADD"
	expect_reached
	cgroup=$cgroup/unified expect_our_hooks
}

# several mounts of cgroup2, one with a space in its name, one of a part of the tree, one that
# another file system hides: attached once, to the highest
test_sockethooks_several_mounts() {
	needs_cgroup
	umount "$cgroup"
	mkdir -p "/run/a part" /run/hidden "/run/the whole"
	mount -t cgroup2 cgroup2 /run/hidden
	mkdir /run/hidden/part
	mount --bind /run/hidden/part "/run/a part"
	mount -t tmpfs tmpfs /run/hidden
	mount -t cgroup2 cgroup2 "/run/the whole"
	web_start
	expect_equal "" "$(cat /run/stderr)" "standard error of ADD"
	expect_reached
	cgroup="/run/the whole" expect_our_hooks
	expect_equal "" "$(socket_hooks_show "/run/a part")" "programs at the part"
}

# mount_part NAME: mounts only this part of cgroup2
mount_part() {
	mkdir -p "$cgroup/$1"
	mount --bind "$cgroup/$1" /mnt
	umount "$cgroup"
	mount --bind /mnt "$cgroup"
	umount /mnt
}

# where only a part of the tree is mounted, ADD warns that processes outside are not covered, and so does
# one in a cgroup namespace of its own, which the host's first process is not in
test_sockethooks_cgroup_namespace() {
	needs_cgroup
	namespace_add web
	mkdir "$cgroup/inner"
	(
		echo "$BASHPID" >"$cgroup/inner/cgroup.procs"
		exec unshare --cgroup --mount bash -c "
			umount '$cgroup' && mount -t cgroup2 cgroup2 '$cgroup' &&
			exec '$cnirun' add /run/conf/bridge.conflist web --id web $both"
	) >/run/out 2>/run/stderr || fail "ADD: $(cat /run/out)"
	expect_in /run/stderr "only a part"
	expect_equal "$our_hooks" "$(socket_hooks_show "$cgroup/inner")" "programs inside"
	expect_equal "" "$(socket_hooks_show)" "programs outside"
	rm "$pins"/*[46]
	container_remove web bridge
	mount_part part
	web_start
	expect_in /run/stderr "only a part"
	expect_reached_by_lo
	echo "$BASHPID" >"$cgroup/cgroup.procs"
	expect_reached
}

# a link that was removed or detached by hand: CHECK reports it, ADD and attach repair it
test_sockethooks_repaired() {
	needs_cgroup
	web_start
	local round=0 hook
	for hook in connect4 sendmsg6 recvmsg4 getpeername6; do
		round=$((round + 1))
		if [ $((round % 2)) = 0 ]; then
			rm "$pins/$hook"
		else
			bpftool link detach pinned "$pins/$hook"
		fi
		expect_refusal "$hook" container_check web bridge
		status >/run/out 2>&1 || fail "STATUS: $(cat /run/out)"
		expect_in /run/out "$hook"
		if [ "$round" -lt 3 ]; then
			container_start "other$round" bridge -p "$((8080 + round)):80/tcp"
		else
			"$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
		fi
		container_check web bridge
		expect_our_hooks
		expect_reached
	done
}

# all pins removed by hand: CHECK reports what is not attached any more; attach restores it, also
# the programs that keep reserved ports
test_sockethooks_pins_removed_then_attach() {
	needs_cgroup
	conflist reserving bridge "$(with_ours '{"reserveHostPorts": true}')"
	web_start
	container_add other reserving -p 9090:80/tcp
	rm -rf "$pins"
	wait_until 5 no_hooks_of_ours || fail "left: $(socket_hooks_show)"
	expect_refusal 'is not attached to the root of cgroup2' container_check web bridge
	"$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	container_check web bridge
	container_check other reserving
	expect_contains "$(socket_hooks_show)" 'bind4 bind4'
	expect_reached
}

hook_ids() { bpftool -j cgroup show "$cgroup" | jq -c 'map(.id) | sort'; }

# another object that is pinned in a link's place is replaced; where a program cannot be pinned, those
# before it do not stay at their hooks
test_sockethooks_something_else_pinned() {
	needs_cgroup
	container_add first bridge
	mkdir "$pins/connect4"
	web_start
	expect_in /run/stderr "cannot pin $pins/connect4"
	no_hooks_of_ours || fail "left: $(socket_hooks_show)"
	rmdir "$pins/connect4"
	container_remove web bridge
	web_start
	expect_our_hooks
	rm "$pins/connect4" "$pins/recvmsg6"
	bpftool map create "$pins/connect4" type array key 4 value 4 entries 1 name nonsense
	mkdir "$pins/recvmsg6"
	expect_failure container_check web bridge
	container_start other bridge -p 8081:80/tcp 2>/run/stderr
	if [ -d "$pins/recvmsg6" ]; then
		expect_in /run/stderr recvmsg6
		rmdir "$pins/recvmsg6"
		"$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	fi
	expect_our_hooks
	expect_reached
}

# a newer plugin's programs replace the older ones, one at each hook; connections continue, and what
# sockets were shown stays
test_sockethooks_upgrade() {
	needs_cgroup
	web_start
	conversation_open tcp host tcp 127.0.0.1 8080
	conversation_open udp host udp 127.0.0.1 8080 --connected
	expect_says tcp web
	expect_says udp web
	local before offset
	before=$(hook_ids)
	for offset in 32 34 36; do meta_set "$offset" 30; done
	container_start other bridge -p 8081:80/tcp
	[ "$before" != "$(hook_ids)" ] || fail "the programs were not replaced"
	expect_our_hooks
	container_check web bridge
	expect_says tcp web
	expect_contains "$(say udp)" "from=127.0.0.1:8080"
	expect_reached
}

# the cgroup that they are attached to is removed, and with it the programs: the next ADD attaches
# to the one there is
test_sockethooks_cgroup_gone() {
	needs_cgroup
	namespace_add web
	unshare --mount bash -c "
		set -e
		cgroup='$cgroup'
		$(declare -f mount_part)
		mount_part old
		exec '$cnirun' add /run/conf/bridge.conflist web --id web $both" >/run/out 2>&1 ||
		fail "ADD: $(cat /run/out)"
	expect_equal "$our_hooks" "$(socket_hooks_show "$cgroup/old")" "programs at the part"
	rmdir "$cgroup/old"
	serve_in web 80
	wait_until 5 check_fails || fail "CHECK does not notice that the cgroup is gone"
	container_start other bridge -p 8081:80/tcp
	expect_our_hooks
	expect_reached
}

check_fails() { ! container_check web bridge >/run/out 2>&1; }

# two hosts, network namespaces that share the bpffs and the cgroup, each have the same port at the
# same address, and do not interfere, neither from outside nor for their own processes
test_sockethooks_two_hosts() {
	needs_cgroup
	web_start
	second_host_make
	in_namespace host2 ip address add "$host4/32" dev lo
	in_namespace host2 "$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	expect_reached
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer outside2 tcp 192.0.3.1 8080 web2 192.0.3.10
	expect_answer host2 tcp 127.0.0.1 8080 web2
	expect_answer host2 tcp ::1 8080 web2
	expect_answer host2 tcp "$host4" 8080 web2
	expect_equal 16 "$(socket_hooks_show | wc -l)" "programs of both hosts"
	container_remove web bridge
	expect_no_answer client tcp "$host4" 8080
	expect_answer outside2 tcp 192.0.3.1 8080 web2 192.0.3.10
	web_start
	in_namespace host2 "$cnirun" del /run/conf/second.conflist web2 --id web2 ||
		fail "DEL in the second host"
	expect_no_answer host2 tcp 127.0.0.1 8080
	expect_no_answer outside2 tcp 192.0.3.1 8080
	expect_reached
}

# limit 180 s
# 48 ADDs, each with a hook to repair, are killed at random moments (KILLS=): a hook never has two of our
# programs, and the next ADD completes the hooks
test_sockethooks_killed() {
	needs_cgroup
	web_added
	expect_our_hooks
	local hooks=(connect4 connect6 sendmsg4 sendmsg6 recvmsg4 recvmsg6 getpeername4 getpeername6)
	local round rounds=${KILLS:-48} killed=0 kill_window=50000 kill_moment
	for round in $(seq "$rounds"); do
		rm -f "$pins/${hooks[round % 8]}"
		killed_at_random plugin_run ADD web </run/config >/run/out 2>/dev/null
		[ $((round % 9)) = 0 ] || continue
		expect_equal "" "$(socket_hooks_show | uniq -d)" "programs attached twice"
	done
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	expect_our_hooks
	[ "$killed" -ge $((rounds / 10)) ] || fail "only $killed of $rounds were killed: nothing was tested"
	echo "note: $killed killed"
}

# A second set of namespaces that attaches to the same hooks: its own network, mounts, processes
world_within() {
	exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private bash -c "
		set -e
		. '$project/tests/net/world.sh' && . '$project/tests/net/expect.sh'
		world_make
		container_start web bridge $both
		sleep 1"
}

# limit 120 s
# six such sets killed at random moments leave the hooks as they were, with third-party programs
test_sockethooks_world_killed() {
	needs_cgroup
	third_party_attach "$cgroup" connect4 /sys/fs/bpf/others multi
	local round pids=()
	for round in $(seq "${KILLS:-6}"); do
		(timeout --foreground --signal KILL "$((RANDOM % 5)).$((RANDOM % 10))1" \
			bash -c "$(declare -p project both); $(declare -f world_within); world_within" \
			>"/run/world.$round" 2>&1 || true) &
		pids+=($!)
		[ $((round % 2)) = 1 ] || wait "${pids[@]}"
	done
	wait "${pids[@]}"
	wait_until 10 no_hooks_of_ours || fail "left: $(socket_hooks_show)"
	expect_equal "connect4 somebody_elses" "$(socket_hooks_show)" "programs at sockets"
}

# what a killed run of these tests left in cgroup2 is removed by the next run, that of a live run is
# not
test_sockethooks_run_sweeps() {
	needs_cgroup
	. "$project/tests/net/cgroups.sh"
	mkdir -p "$cgroup/${cgroup_prefix}dead/test/below" "$cgroup/${cgroup_prefix}alive/test" \
		"$cgroup/others/test"
	exec {alive}<"$cgroup/${cgroup_prefix}alive"
	flock --shared "$alive"
	cgroups_open
	expect_equal "$cgroup" "${cgroup_of_run%/*}" "where a run has its cgroup"
	[ ! -e "$cgroup/${cgroup_prefix}dead" ] || fail "the dead run's cgroup is still there"
	[ -d "$cgroup/${cgroup_prefix}alive/test" ] || fail "the live run's cgroup is gone"
	[ -d "$cgroup/others/test" ] || fail "another cgroup is gone"
	exec {alive}<&-
	cgroups_sweep "$cgroup"
	[ ! -e "$cgroup/${cgroup_prefix}alive" ] || fail "the cgroup without a lock is still there"
	[ -d "$cgroup_of_run" ] || fail "our own cgroup is gone"
	cgroups_close
	[ ! -e "$cgroup_of_run" ] || fail "our own cgroup is still there"
}

# programs at sockets that the kernel refuses when all are loaded anew: those that are there stay, and
# a line says so
test_sockethooks_refused_when_loaded_anew() {
	local call
	container_start web bridge -p 8080:80/tcp
	expect_answer host tcp 127.0.0.1 8080 web
	container_add_plain other
	plugin_config other "$(mapping 9090)" >/run/config
	rm "$pins/counters"
	PREFIX='strace -o /run/trace -e trace=bpf' plugin_run ADD other </run/config >/run/out ||
		fail "$(cat /run/out)"
	call=$(awk '/^bpf\(/ { number++; if (!found && /BPF_PROG_LOAD.*"recvmsg4"/) found = number }
		END { print found }' /run/trace)
	[ "$call" ] || fail "the program was not loaded"
	plugin_run DEL other </run/config || fail DEL
	rm "$pins/counters"
	PREFIX="strace -o /dev/null -e trace=bpf -e inject=bpf:error=EINVAL:when=$call..$((call + 1))" \
		plugin_run ADD other </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_in /run/err "at the host's sockets are not replaced"
	expect_answer host tcp 127.0.0.1 8080 web
	[ -e "$pins/connect4" ] || fail "it was detached"
}
