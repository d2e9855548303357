# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_runtimes.sh - what runtimes may do, and callers that make mistakes. What each runtime really
# sends is in tests/engines.

# a namespace is the same under every name: CHECK and DEL with the path of a process in it, then of
# a process that has ended; unknown CNI_ARGS are ignored
test_runtimes_namespace_by_another_name() {
	container_add_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	"$build/tests/world" in web sleep 1000 &
	local process=$!
	wait_until 5 file_says sleep "/proc/$process/comm" || fail "no process in web"
	NETNS=/proc/$process/ns/net plugin_call CHECK web || fail "CHECK by another path"
	kill "$process"
	wait "$process" 2>/dev/null || true
	NETNS=/proc/$process/ns/net plugin_call DEL web || fail "DEL with the path of a process that has ended"
	expect_count 0 attachments
	serve_in web 80
	CNI_ARGS='garbage;;=' plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web "$client4"
	CNI_ARGS=';=;' plugin_call DEL web || fail DEL
}

# the plugin's own namespace as CNI_NETNS: ADD refuses it with code 8 before it does anything, DEL
# cleans up and then reports it, CNI_NETNS_OVERRIDE permits it
test_runtimes_own_namespace() {
	container_start_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	local before
	before=$(state_show)
	NETNS=/proc/self/ns/net expect_error 8 '' plugin_call ADD web
	expect_equal 1 "$(jq -s length <<<"$output")" "documents on stdout"
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	NETNS=/proc/self/ns/net expect_error 8 '' plugin_call DEL web
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	CNI_NETNS_OVERRIDE=TRUE NETNS=/proc/self/ns/net plugin_call DEL web || fail "DEL with override"
	expect_same_state "$before"
}

# CNI_NETNS_OVERRIDE permits ADD in the plugin's own namespace, also after an ADD in another one, from which on
# the kernel has a number for it
test_runtimes_own_namespace_override() {
	container_add_plain web
	ip link add inner0 type veth peer name outer0
	ip link set outer0 master cni0 up
	ip link set inner0 up
	local inner='(.prevResult.interfaces[] | select(.name == "eth0")).name = "inner0"'
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	export CNI_NETNS_OVERRIDE=TRUE NETNS=/proc/self/ns/net IFNAME=inner0
	plugin_call ADD web "$inner" >/run/out || fail "$(cat /run/out)"
	plugin_call CHECK web "$inner" || fail CHECK
	plugin_call DEL web "$inner" || fail DEL
}

# a UDP stream that began before ADD, without a receiver, reaches the container although netfilter's
# conntrack still has that entry
test_runtimes_conntrack_is_not_asked() {
	container_start_plain web
	nft -f - <<-'RULES'
	table ip watch { chain c { type filter hook prerouting priority 0; ct state new counter; }; }
	RULES
	conversation_open talk client udp "$host4" 8080 --keep-going
	say talk >/dev/null
	conntrack -L -p udp 2>/dev/null | grep "dport=8080 " >/dev/null || skip "the kernel has no conntrack"
	plugin_call ADD web "$(mapping 8080 80 udp)" >/run/out || fail "$(cat /run/out)"
	expect_says talk web
	plugin_call DEL web || fail DEL
	serve_on_host 8080
	expect_says talk host
}

# limit 120 s
# a lock that is held too long: ADD gives up with code 11 and names the holder,
# CHECK and STATUS do not wait, the next ADD works
test_runtimes_lock_is_held() {
	container_add_plain web
	container_add_plain other
	plugin_call ADD other "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	local before holder
	before=$(state_show)
	"$build/tests/locker" /sys/bus/platform/uevent >/run/held &
	holder=$!
	wait_until 5 file_says ready /run/held || fail "the holder did not start"
	plugin_call CHECK other "$(mapping 9090)" || fail "CHECK waited"
	plugin_call STATUS other 'del(.prevResult, .runtimeConfig) | .cniVersion = "1.1.0"' ||
		fail "STATUS waited"
	expect_error 11 "$holder" plugin_call ADD web
	kill "$holder"
	wait "$holder" || true
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
}

# a plugin of the list that hangs, and its child: cnirun kills both after --timeout and names the
# plugin, undoes what the other plugins have set up, and does not wait for a process that keeps
# stdout
test_runtimes_plugin_hangs() {
	local process seconds=$((5 * ${SLOWER:-1})) # bridge waits up to 2.6 seconds for its port
	mkdir /run/trap
	ln -s "$CNI_PATH"/* /run/trap/
	cat >/run/trap/hang <<-'END'
		#!/bin/sh
		[ "$CNI_COMMAND" = ADD ] || exit 0
		setsid sleep 1000 &
		echo $$ $! >/run/hanging
		wait
	END
	chmod +x /run/trap/hang
	conflist hanging bridge '.plugins += [{"type": "hang"}]'
	namespace_add web
	CNI_PATH=/run/trap expect_failure runtime add hanging web -p 8080:80/tcp \
		--timeout "$seconds"
	expect_contains "$output" \
		"type=\"hang\" name=\"bridge\" failed (add): did not end within $seconds seconds"
	for process in $(cat /run/hanging); do
		[ ! -e "/proc/$process" ] || fail "process $process is still there"
	done
	in_namespace web ip link show eth0 >/dev/null 2>&1 && fail "the failed ADD left eth0"
	expect_count 0 portmaps
	container_start web2 bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web2
}
