# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_upgrade.sh - `bpf-portmap upgrade`: the programs of another version, on the same maps, are
# replaced while packets pass.
#
# RATE=20000 so many datagrams a second; STEP=1 kills at every place.

upgrade() { "$build/bpf-portmap" upgrade "$@" >/run/upgrade.out 2>&1; }

# From now on the programs that are loaded are those of version 0.0.0.
version_forget() {
	local offset
	for offset in 32 34 36; do meta_set "$offset" 30; done
}

# The program that is attached to uplinks and pinned
programs_now() { bpftool -j prog show pinned "$pins/from_uplink" | jq .id; }

# each program is replaced at its hook once, and maps and connections are kept; --dry-run says so and
# changes nothing; an ADD replaces them, too; an older binary puts its own back only if told to; maps of
# another layout are refused
test_upgrade_programs() {
	local before state maps
	container_start web bridge -p 8080:80/tcp
	conversation_with web talk client tcp "$host4" 8080
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_in /run/upgrade.out "nothing to do"
	version_forget
	before=$(programs_now) state=$(state_show) maps=$(bpftool -j map show pinned "$pins/connections" | jq .id)
	upgrade --dry-run || fail "$(cat /run/upgrade.out)"
	grep -qE '^would replace the programs of bpf-portmap 0.0.0 by' /run/upgrade.out ||
		fail "$(cat /run/upgrade.out)"
	expect_equal "$before" "$(programs_now)" "programs, after a dry run"
	expect_same_state "$state"
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_in /run/upgrade.out 'replaced the programs of bpf-portmap 0.0.0 by'
	[ "$before" != "$(programs_now)" ] || fail "the programs were not replaced"
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
	expect_equal "$maps" "$(bpftool -j map show pinned "$pins/connections" | jq .id)" "the map connections"
	expect_says talk web
	version_forget
	before=$(programs_now)
	container_start third bridge -p 9091:80/tcp
	[ "$before" != "$(programs_now)" ] || fail "ADD has not replaced the programs"
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice, after ADD"
	expect_says talk web
	container_check web bridge
	before=$(programs_now)
	meta_set 32 39
	container_start other bridge -p 9090:80/tcp
	expect_equal "$before" "$(programs_now)" "programs, after an ADD by an older plugin"
	upgrade || fail "$(cat /run/upgrade.out)"
	grep -qE '^replaced the programs of bpf-portmap 9' /run/upgrade.out || fail "$(cat /run/upgrade.out)"
	expect_says talk web
	container_check other bridge
	before=$(programs_now)
	meta_set 0 63
	expect_failure upgrade
	expect_in /run/upgrade.out 'have layout 99, and this bpf-portmap'
	expect_equal "$before" "$(programs_now)" "programs, after an upgrade that was refused"
	expect_says talk web
}

# stream_start NAME FROM ADDRESS PORT TO PORT SOURCE: numbered datagrams at half of RATE, from a
# namespace to a receiver in another one, to which they seem to come from SOURCE. Not by
# in_namespace, whose process would not be the one that is told to end.
stream_start() {
	"$build/tests/world" in "$5" "$build/tests/stream" receive "$6" "$7" >"/run/$1.received" 2>&1 &
	eval "receiver_$1=$!"
	wait_until 5 listens_to "$5" "$6" || fail "no receiver in $5: $(cat "/run/$1.received")"
	"$build/tests/world" in "$2" "$build/tests/stream" send "$3" "$4" $((${RATE:-20000} / 2)) \
		>"/run/$1.sent" 2>&1 &
	eval "sender_$1=$!"
}
listens_to() { [ -n "$(in_namespace "$1" ss -Hlun "sport = :$2")" ]; }

# stream_expect NAME...: all came, once, and from where they should, but for those that the machine
# has lost
stream_expect() {
	local name pid drops lost=0
	for name; do pid=sender_$name && kill "${!pid}" && wait "${!pid}"; done
	for name; do pid=receiver_$name && kill "${!pid}" && wait "${!pid}"; done
	drops=$(($(device_drops) - drops_before))
	for name; do
		local sent rate answers received twice strange full
		eval "$(cat "/run/$name.sent" "/run/$name.received")" || fail "$(cat "/run/$name".*)"
		echo "note: UDP $name: $sent sent, $rate a second; $((sent - received)) lost ($full at the" \
			"receiver's socket), $twice twice, $strange strange"
		[ "$answers" -gt 0 ] || fail "no answers: $(cat "/run/$name".*)"
		expect_equal "0 0" "$twice $strange" "datagrams that came twice, or from another address"
		lost=$((lost + sent - received - full))
	done
	[ "$drops" = 0 ] || echo "note: $drops lost at full queues of devices"
	[ "$lost" -le "$drops" ] || fail "$lost datagrams lost, $drops of them at queues of devices"
}

# What devices have dropped because the queue of the CPU was full
device_drops() {
	local name
	{
		ip -s -j link
		for name in client server web; do in_namespace "$name" ip -s -j link; done
	} | jq -s '[.[][].stats64 | .rx.dropped + .tx.dropped] | add'
}

# no datagram of fast streams is lost, comes twice or from another address, and TCP goes on, while the
# programs are replaced again and again
test_upgrade_traffic() {
	local drops_before bulk before
	container_add web bridge -p 8081:81/udp -p 8082:82/tcp
	in_namespace web "$build/tests/bulk" serve 82 --background
	capture_start client client eth0 "ip and (net 10.88.0.0/16 or
		(src host $host4 and not src port 8081 and not src port 8082))"
	capture_start server server eth0 "ip and (net 10.88.0.0/16 or
		(src host $host4_second and not dst port 81))"
	drops_before=$(device_drops)
	stream_start in client "$host4" 8081 web 81 "$client4"
	stream_start out web "$server4" 81 server 81 "$host4_second"
	in_namespace client "$build/tests/bulk" ask tcp "$host4" 8082 --bytes 100000000 >/run/bulk.out 2>&1 &
	bulk=$!
	for _ in 1 2; do
		version_forget
		before=$(programs_now)
		upgrade || fail "upgrade: $(cat /run/upgrade.out)"
		[ "$before" != "$(programs_now)" ] || fail "the programs were not replaced"
	done
	wait "$bulk" || fail "TCP: $(cat /run/bulk.out)"
	stream_expect in out
	expect_captured_nothing client
	expect_captured_nothing server
}

# limit 180 s
# killed anywhere, it is completed by the next one, or by the next ADD, and connections go on
test_upgrade_killed() {
	local calls=bpf,sendmsg,rename,renameat,unlink call step total killed=0 status
	container_start web bridge -p 8080:80/tcp
	conversation_with web talk client tcp "$host4" 8080
	version_forget
	strace -f -o /run/calls -e trace="$calls" "$build/bpf-portmap" upgrade >/run/upgrade.out ||
		fail "$(cat /run/upgrade.out)"
	# What traced counts
	total=$(grep -cE ' (sendmsg|rename|renameat|unlink)\(|BPF_(MAP_(UPDATE|DELETE|LOOKUP_AND)|OBJ_PIN|PROG_([AD]|TEST)|LINK_[CUD])' /run/calls)
	step=${STEP:-$((total / 2))}
	for ((call = RANDOM % step + 1; call <= total; call += step)); do
		version_forget
		status=0
		"$build/tests/traced" kill -a "$call" "$build/bpf-portmap" upgrade >/run/upgrade.out 2>&1 || status=$?
		[ "$status" = 137 ] || break
		killed=$((killed + 1))
		expect_says talk web
		if [ $((killed % 2)) = 0 ]; then
			upgrade || fail "after a kill before call $call: $(cat /run/upgrade.out)"
		else
			container_add other bridge -p 9090:80/tcp
			container_remove other bridge
		fi
		upgrade || fail "after a kill before call $call: $(cat /run/upgrade.out)"
		expect_in /run/upgrade.out "nothing to do"
		expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
		container_check web bridge
		expect_says talk web
	done
	[ "$killed" -ge 2 ] || fail "only $killed of $total calls: nothing was tested"
	echo "note: killed before $killed of $total calls"
}

attach() { "$build/bpf-portmap" attach >/run/out 2>&1; }

# a program that cannot be replaced makes `upgrade` fail, which names it and replaces the others, but
# not another container's ADD; the next one completes it. What an interface has brought from another
# host's namespace is not replaced
test_upgrade_held() {
	local veth
	tcx_needed
	container_start web bridge -p 8080:80/tcp
	veth=$(host_veth web)
	second_host_make
	touch /run/netns/host1
	mount --bind /proc/self/ns/net /run/netns/host1
	ip -n host2 link set up2 netns host1
	expect_contains "$("$build/tests/tcx" show)" "up2 egress tcx to_uplink"
	"$build/tests/tcx" hold "$veth" ingress from_container /sys/fs/bpf/held
	version_forget
	namespace_add other
	runtime add bridge other -p 9090:80/tcp >/run/out 2>&1 || fail "ADD: $(cat /run/out)"
	expect_in /run/out "cannot replace from_container at ingress of interface $veth: "
	serve_in other 80
	expect_failure "$build/bpf-portmap" upgrade
	expect_contains "$output" "cannot replace from_container at ingress of interface $veth: "
	expect_contains "$output" "run \`bpf-portmap upgrade\` again"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host4" 9090 other "$client4"
	rm /sys/fs/bpf/held
	wait_until 10 attach || fail "attach: $(cat /run/out)" # the kernel ends the link a little later
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_in /run/upgrade.out "nothing to do"
	version_forget
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_in /run/upgrade.out 'replaced the programs'
	expect_answer client tcp "$host4" 8080 web "$client4"
}
