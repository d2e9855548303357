# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: tests/net/world.sh
#
# test_upgrade.sh - from an older release, and from an older build of this one, while packets pass.
#
# nothing is loaded before these tests
#
# CONNECTIONS=5000 how many TCP connections are open meanwhile; PAUSE=0 sends datagrams to a mapped
# port as fast as they come back; RATE=100000 so many go one way a second; STEP=1 kills at every
# place.

# use_release VERSION|now: the plugin that cnirun runs
use_release() {
	local binary=$build/bpf-portmap
	[ "$1" = now ] || binary=$project/build/releases/$1/bpf-portmap
	[ -x "$binary" ] || skip "bpf-portmap $1 was not built: its commit is not in this clone"
	ln -sfn "$binary" /run/cni-plugins/bpf-portmap
}

upgrade() { "$build/bpf-portmap" upgrade "$@" >/run/upgrade.out 2>&1; }

# Everything that two containers need for connections of all kinds: to a mapped port, masqueraded,
# and through the socket hooks
world_of_release() {
	use_release "$1"
	conflist upgraded bridge "$(with_ours "{\"attach\": \"${2:-auto}\"}")"
	container_add web upgraded -p 8080:80/tcp -p 8081:81/udp -p 8082:82/tcp
	container_add other upgraded -p 9090:80/tcp
	serve_in other 80
	crowd_in web
	in_namespace web "$build/tests/bulk" serve 82 --background
	in_namespace web "$build/tests/datagrams" echo 81 --background
	crowd_in server
	in_namespace server "$build/tests/bulk" serve 82 --background
	in_namespace server "$build/tests/datagrams" echo 81 --background
}

# A server that closes a listener after its start: what came to that would be reset.
crowd_in() {
	in_namespace "$1" "$build/tests/crowd" serve 80 --background
	wait_until 5 crowd_listens "$1" || fail "crowd does not serve in $1"
}
crowd_listens() { [ "$(in_namespace "$1" ss -Hltn 'sport = :80' | wc -l)" = 6 ]; }

# hold NAME NAMESPACE ADDRESS PORT COUNT: connections that are asked once more when released, by the
# end of the process that keeps their standard input open: others would inherit it from this shell.
hold() {
	local name=$1
	mkfifo "/run/$name.hold"
	sleep 1000 >"/run/$name.hold" &
	eval "release_$name=$!"
	in_namespace "$2" "$build/tests/crowd" ask "$3" "$4" "$5" --hold \
		<"/run/$name.hold" >"/run/$name.held" 2>&1 &
	eval "held_$name=$!"
}

expect_held() {
	local name pid
	for name; do
		pid=release_$name
		kill "${!pid}"
		pid=held_$name
		wait "${!pid}" || fail "connections of $name: $(cat "/run/$name.held")"
		expect_contains "$(cat "/run/$name.held")" ok
	done
}

# Packets that leave untranslated, or with a port that nothing has
watch_wire() {
	capture_start client client eth0 "ip and (net 10.88.0.0/16 or
		(src host $host4 and not src port 8080 and not src port 8081 and not src port 8082 and
		not src port 9090 and not src port 7070))"
	capture_start server server eth0 "ip and (net 10.88.0.0/16 or icmp or
		(src host $host4_second and not dst port 80 and not dst port 81 and
		not dst port 82))"
}

expect_wire_clean() {
	expect_captured_nothing client
	expect_captured_nothing server
}

# Packets of others in a container, and errors about what came to somebody who has not asked. A RST
# that matters ends a connection, which is noticed.
watch_connections() {
	local name
	capture_start inside web eth0 "ip and (net 192.0.2.0/24 and not host $client4 or
		net 198.51.100.0/24 and not host $server4)"
	for name in client server web; do capture_start "errors_$name" "$name" eth0 icmp; done
}

expect_no_errors() {
	local name
	expect_captured_nothing inside
	for name in client server web; do expect_captured_nothing "errors_$name"; done
}

# churn NAMESPACE ADDRESS PORT: connections that begin, and end, all the time, until /run/stop
churn() {
	while [ ! -e /run/stop ]; do
		in_namespace "$1" "$build/tests/crowd" ask "$2" "$3" 30 || return 1
	done >"/run/$1.churn" 2>&1
}

# transfers_start BYTES: to a mapped port, and masqueraded; sets bulk_in and bulk_out, their processes
transfers_start() {
	in_namespace client "$build/tests/bulk" ask tcp "$host4" 8082 --bytes "$1" >/run/bulk.in 2>&1 &
	bulk_in=$!
	in_namespace web "$build/tests/bulk" ask tcp "$server4" 82 --bytes "$1" >/run/bulk.out 2>&1 &
	bulk_out=$!
}

# limit 180 s
# from 0.1, no connection is lost, and no packet goes anywhere untranslated or to another one
test_upgrade_connections() {
	local count=${CONNECTIONS:-300}
	world_of_release 0.1 "${ATTACH:-auto}"
	watch_wire
	watch_connections
	hold mapped client "$host4" 8080 "$count"
	hold masqueraded web "$server4" 80 "$count"
	wait_until 20 established "$count" ||
		fail "connections: $(cat /run/mapped.held /run/masqueraded.held)"
	in_namespace client "$build/tests/stream" "$host4" 8081 3000 "${PAUSE:-2}" >/run/udp.in 2>&1 &
	local udp_in=$!
	in_namespace web "$build/tests/stream" "$server4" 81 3000 >/run/udp.out 2>&1 &
	local udp_out=$!
	local bulk_in bulk_out
	transfers_start "${BYTES:-30000000}"
	churn client "$host4" 8080 &
	local churn_in=$!
	churn web "$server4" 80 &
	local churn_out=$!
	sleep 1
	use_release now
	upgrade || fail "upgrade: $(cat /run/upgrade.out)"
	container_add added upgraded -p 7070:80/tcp
	container_remove added upgraded
	touch /run/stop
	wait "$churn_in" || fail "new connections in: $(cat /run/client.churn)"
	wait "$churn_out" || fail "new connections out: $(cat /run/web.churn)"
	wait "$udp_in" || fail "UDP in: $(cat /run/udp.in)"
	wait "$udp_out" || fail "UDP out: $(cat /run/udp.out)"
	wait "$bulk_in" || fail "TCP in: $(cat /run/bulk.in)"
	wait "$bulk_out" || fail "TCP out: $(cat /run/bulk.out)"
	echo "note: $(tail -n 1 /run/upgrade.out), $(counted drop_taking_over) packets of theirs dropped"
	echo "note: UDP in $(cat /run/udp.in), out $(cat /run/udp.out)"
	expect_held mapped masqueraded
	expect_wire_clean
	expect_no_errors
	after_upgrade
}

# stream_start NAME FROM ADDRESS PORT TO PORT SOURCE: numbered datagrams at half of RATE, from a
# namespace to a receiver in another one, to which they seem to come from SOURCE. Not by
# in_namespace, whose process would not be the one that is told to end.
stream_start() {
	nsenter --net="/run/netns/$5" "$build/tests/stream" receive "$6" "$7" >"/run/$1.received" 2>&1 &
	eval "receiver_$1=$!"
	wait_until 5 listens_to "$5" "$6" || fail "no receiver in $5: $(cat "/run/$1.received")"
	nsenter --net="/run/netns/$2" "$build/tests/stream" send "$3" "$4" $((${RATE:-20000} / 2)) \
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

# limit 120 s
# from 0.1, no datagram of fast streams is lost, comes twice or from another address, while
# containers come and go
test_upgrade_datagrams() {
	local drops_before
	use_release 0.1
	conflist upgraded bridge .
	container_add web upgraded -p 8081:81/udp
	watch_wire
	drops_before=$(device_drops)
	stream_start in client "$host4" 8081 web 81 "$client4"
	stream_start out web "$server4" 81 server 81 "$host4_second"
	container_add before upgraded -p 7070:80/tcp
	use_release now
	upgrade || fail "upgrade: $(cat /run/upgrade.out)"
	container_add after upgraded -p 7071:80/tcp
	container_remove before upgraded
	container_remove after upgraded
	stream_expect in out
	echo "note: $(tail -n 1 /run/upgrade.out), $(counted drop_taking_over) packets of theirs dropped"
	expect_wire_clean
}

established() {
	[ "$(in_namespace client ss -Htn state established | awk '$4 ~ /:8080$/' | wc -l)" -ge "$1" ] &&
		[ "$(in_namespace web ss -Htn state established | awk -v server="$server4" \
			'index($4, server)' | wc -l)" -ge "$1" ]
}

# What the new release must find: each record, and room for more
after_upgrade() {
	expect_answer client tcp "$host4" 9090 other "$client4"
	container_add third upgraded -p 7070:80/tcp
	serve_in third 80
	expect_answer client tcp "$host4" 7070 third "$client4"
	local name
	for name in web other third; do container_check "$name" upgraded || fail "CHECK of $name"; done
	for name in web other third; do container_remove "$name" upgraded; done
	expect_equal "0 0 0 0" "$(map_count portmaps) $(map_count attachments) \
$(map_count endpoints) $(live_slots)" "what is left"
	expect_equal "" "$(compgen -G "$pins/flow*")"
}

# one_round STEP COMMAND...: from 0.1, an upgrade by COMMAND, which may be killed before call STEP;
# completed by `upgrade` or by ADD
one_round() {
	local step=$1 code=0 name
	shift
	use_release 0.1
	container_add web upgraded -p 8080:80/tcp
	crowd_in web
	hold mapped client "$host4" 8080 3
	hold masqueraded web "$server4" 80 3
	wait_until 20 established 3 || fail "step $step: $(cat /run/mapped.held /run/masqueraded.held)"
	use_release now
	"$@" "$build/bpf-portmap" upgrade >/run/upgrade.out 2>&1 || code=$?
	[ "$code" = 0 ] || [ "$code" = 137 ] || fail "step $step: $code: $(cat /run/upgrade.out)"
	[ $((step % 2)) = 0 ] || upgrade || fail "step $step: $(cat /run/upgrade.out)"
	container_add late upgraded -p 7070:80/tcp
	serve_in late 80
	expect_answer client tcp "$host4" 7070 late "$client4"
	expect_held mapped masqueraded
	expect_equal "" "$(compgen -G "$pins/flow*")" "step $step"
	for name in web late; do container_check "$name" upgraded || fail "step $step: CHECK"; done
	upgrade || fail "step $step: $(cat /run/upgrade.out)"
	expect_contains "$(cat /run/upgrade.out)" "nothing to do"
	for name in web late; do container_remove "$name" upgraded; done
	rm -r "$pins" /run/{mapped,masqueraded}.hold
	[ "$code" = 137 ]
}

counted_calls='bpf,sendmsg,rename,renameat,unlink'

# limit 900 s
# killed anywhere, an upgrade from 0.1 is completed by the next one, or by the next ADD, and
# connections go on all the time
test_upgrade_killed() {
	local first last step killed=0
	conflist upgraded bridge .
	watch_wire
	crowd_in server
	! one_round 1 strace -f -o /run/calls -e trace="$counted_calls" || fail "killed by strace"
	# Before it has frozen an old map it has changed nothing that others see.
	first=$(grep -v ' --- \| +++ ' /run/calls | grep -n BPF_MAP_FREEZE | tail -n +4 | head -n 1 | cut -d: -f1)
	last=$(grep -vc ' --- \| +++ ' /run/calls)
	for ((step = first - 4; step <= last; step += ${STEP:-(last - first) / 4})); do
		! one_round "$step" "$build/tests/killer" -a "$step" || killed=$((killed + 1))
	done
	expect_wire_clean
	[ "$killed" -ge 4 ] || fail "only $killed runs were killed, $first to $last"
	echo "note: killed at $killed places, calls $first to $last, each completed by the next command"
}

# from 0.1, the new table has room for as many connections as the old one, also where the list that
# the next ADD has asks for less
test_upgrade_table_size() {
	use_release 0.1
	conflist upgraded bridge "$(with_ours '{flowEntries: 131072}')"
	container_add web upgraded -p 8080:80/tcp
	expect_equal 131072 "$(entries_of flows)" "entries in the table of 0.1, two for each connection"
	use_release now
	conflist upgraded bridge "$(with_ours '{flowEntries: 16384}')"
	container_add other upgraded -p 9090:80/tcp
	expect_equal 65537 "$(entries_of assured)" "places in the new one"
}

entries_of() { bpftool -j map show pinned "$pins/$1" | jq .max_entries; }

# The program that is attached to uplinks and pinned
programs_now() { bpftool -j prog show pinned "$pins/from_uplink" | jq .id; }

# an upgrade within a layout replaces each program at its hook once, and keeps maps and connections;
# --dry-run says so and changes nothing; an older binary puts its own back only if told to
test_upgrade_programs() {
	local offset before state maps
	container_start web bridge -p 8080:80/tcp
	conversation_open talk client tcp "$host4" 8080
	expect_says talk web
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_contains "$(cat /run/upgrade.out)" "nothing to do"
	for offset in 24 26 28; do meta_set "$offset" 30; done
	before=$(programs_now) state=$(state_show) maps=$(bpftool -j map show pinned "$pins/connections" | jq .id)
	upgrade --dry-run || fail "$(cat /run/upgrade.out)"
	grep -qE '^would replace the programs of bpf-portmap 0.0.0 by' /run/upgrade.out ||
		fail "$(cat /run/upgrade.out)"
	grep -qE '^to_uplink +egress +(tcx|filter) +2$' /run/upgrade.out || fail "$(cat /run/upgrade.out)"
	expect_equal "$before" "$(programs_now)" "programs, after a dry run"
	expect_same_state "$state"
	upgrade --json || fail "$(cat /run/upgrade.out)"
	expect_equal '"0.0.0" true 0' "$(jq -r '.summary | "\"\(.from_version)\" \(.upgraded) \(.connections)"' \
		/run/upgrade.out)"
	[ "$before" != "$(programs_now)" ] || fail "the programs were not replaced"
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
	expect_equal "$maps" "$(bpftool -j map show pinned "$pins/connections" | jq .id)" "the map connections"
	expect_says talk web
	before=$(programs_now)
	meta_set 24 39
	container_start other bridge -p 9090:80/tcp
	upgrade || fail "$(cat /run/upgrade.out)"
	grep -qE '^replaced the programs of bpf-portmap 9' /run/upgrade.out || fail "$(cat /run/upgrade.out)"
	expect_says talk web
	container_check other bridge
	# Of a version that was never released
	meta_set 0 02
	expect_failure "$build/bpf-portmap" upgrade
	expect_contains "$output" 'layout 2, which no release of bpf-portmap before'
	container_del other bridge
	expect_says talk web
}

# a program that cannot be replaced makes `upgrade` fail, which names it and replaces the others, but
# not another container's ADD; the next one completes it. What an interface has brought from another
# host's namespace is not counted
test_upgrade_held() {
	local offset veth
	tcx_needed
	container_start web bridge -p 8080:80/tcp
	veth=$(host_veth web)
	second_host_make
	touch /run/netns/host1
	mount --bind /proc/self/ns/net /run/netns/host1
	ip -n host2 link set up2 netns host1
	expect_contains "$("$build/tests/tcx" show)" "up2 egress tcx to_uplink"
	"$build/tests/tcx" hold "$veth" ingress from_container /sys/fs/bpf/held
	for offset in 24 26 28; do meta_set "$offset" 30; done
	namespace_add other
	runtime add bridge other -p 9090:80/tcp >/run/out 2>&1 || fail "ADD: $(cat /run/out)"
	expect_contains "$(cat /run/out)" "cannot replace from_container at ingress of interface $veth: "
	serve_in other 80
	expect_failure "$build/bpf-portmap" upgrade
	expect_contains "$output" "cannot replace from_container at ingress of interface $veth: "
	expect_contains "$output" "run \`bpf-portmap upgrade\` again"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host4" 9090 other "$client4"
	rm /sys/fs/bpf/held
	"$build/bpf-portmap" attach
	upgrade || fail "$(cat /run/upgrade.out)"
	expect_contains "$(cat /run/upgrade.out)" "nothing to do"
	for offset in 24 26 28; do meta_set "$offset" 30; done
	upgrade || fail "$(cat /run/upgrade.out)"
	grep -qE '^to_uplink +egress +tcx +2$' /run/upgrade.out || fail "$(cat /run/upgrade.out)"
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# from 0.1, nothing but ADD, DEL and `upgrade` takes the maps over; --dry-run does not, nor does 0.1
# take ours
test_upgrade_refusals() {
	local before
	use_release 0.1
	conflist upgraded bridge .
	container_start web upgraded -p 8080:80/tcp
	before=$(programs_now)
	use_release now
	expect_failure container_check web upgraded
	expect_contains "$output" 'or the next ADD, takes them over'
	expect_failure "$build/bpf-portmap" list
	expect_contains "$output" 'bpf-portmap upgrade'
	upgrade --dry-run || fail "$(cat /run/upgrade.out)"
	expect_contains "$(cat /run/upgrade.out)" 'would come from maps of layout 1 to layout 4'
	expect_equal "$before" "$(programs_now)" "programs, after a dry run"
	namespace_add second
	runtime add upgraded second -p 9090:80/tcp >/run/out 2>&1 || fail "ADD: $(cat /run/out)"
	serve_in second 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host4" 9090 second "$client4"
	use_release 0.1
	namespace_add third
	expect_failure runtime add upgraded third -p 9091:80/tcp
	expect_contains "$output" 'is not laid out as bpf-portmap 0.1.0 (layout 1) needs it'
	use_release now
	expect_answer client tcp "$host4" 8080 web "$client4"
	container_check web upgraded
}

# downgrade_to VERSION [OPTION...]: the older binary is in its place first, as the page says
downgrade_to() {
	local version=$1
	shift
	use_release "$version"
	"$build/bpf-portmap" downgrade "$@" "$project/build/releases/$version/bpf-portmap" \
		>/run/downgrade.out 2>&1
}

# limit 120 s
# back to 0.1 while packets pass: containers have their ports and masquerade again, connections go on,
# and nothing leaves untranslated or to another one; then up again
test_upgrade_downgrade() {
	local count=${CONNECTIONS:-300}
	world_of_release now
	watch_wire
	hold mapped client "$host4" 8080 "$count"
	hold masqueraded web "$server4" 80 "$count"
	wait_until 20 established "$count" || fail "connections: $(cat /run/mapped.held /run/masqueraded.held)"
	local bulk_in bulk_out
	transfers_start "${BYTES:-200000000}"
	churn web "$server4" 80 &
	local churn_out=$!
	sleep 0.3
	downgrade_to 0.1 --dry-run || fail "downgrade: $(cat /run/downgrade.out)"
	expect_contains "$(cat /run/downgrade.out)" 'it would add 2 containers again'
	downgrade_to 0.1 || fail "downgrade: $(cat /run/downgrade.out)"
	expect_contains "$(cat /run/downgrade.out)" 'it has added 2 containers again'
	expect_answer client tcp "$host4" 9090 other "$client4"
	container_check web upgraded || fail "CHECK by 0.1"
	touch /run/stop
	wait "$churn_out" || true
	in_namespace web "$build/tests/crowd" ask "$server4" 80 30 || fail "masquerade by 0.1"
	echo "note: $(tr '\n' ' ' </run/downgrade.out)"
	wait "$bulk_in" || fail "TCP in: $(cat /run/bulk.in)"
	wait "$bulk_out" || fail "TCP out: $(cat /run/bulk.out)"
	expect_downgraded
	downgrade_to 0.1 || fail "downgrade once more: $(cat /run/downgrade.out)"
	expect_contains "$(cat /run/downgrade.out)" 'nothing to do: the programs are those of bpf-portmap 0.1'
	use_release now
	upgrade || fail "upgrade: $(cat /run/upgrade.out)"
	expect_held mapped masqueraded
	expect_wire_clean
	after_upgrade
}
established_in() {
	[ "$(in_namespace client ss -Htn state established | awk '$4 ~ /:8080$/' | wc -l)" -ge "$1" ]
}

expect_downgraded() {
	expect_equal "" "$(compgen -G "/run/bpf-portmap-downgrade*")" "the list of ADDs"
	expect_equal "" "$(nft list tables)" "tables of nftables"
	[ -e "$pins/flow_pairs" ] || fail "no maps of 0.1: $(ls "$pins")"
}

# fake_release CONDITION: 0.1 whose ADD fails unless the condition, which ends with ||, holds
fake_release() {
	printf '%s\n' '#!/bin/sh' "[ \"\$CNI_COMMAND\" != ADD ] || $1 exit 1" \
		"exec $project/build/releases/0.1/bpf-portmap \"\$@\"" >/run/conf/fails
	chmod 755 /run/conf/fails
}

# a downgrade changes nothing where it could not add each container again, or by another program
test_upgrade_downgrade_refusals() {
	local state
	use_release 0.1
	expect_equal false "$("$build/bpf-portmap" downgrade --json "$project/build/releases/0.1/bpf-portmap" |
		jq .summary.downgraded)" "downgraded, where nothing is loaded"
	use_release now
	conflist upgraded bridge .
	container_start web upgraded -p 8080:80/tcp
	state=$(state_show)
	mv /var/lib/cni/results/*-web-eth0 /run/cached
	expect_failure downgrade_to 0.1
	expect_contains "$(cat /run/downgrade.out)" 'no other version can add 1 container again'
	expect_contains "$(cat /run/downgrade.out)" 'container web, interface eth0, network bridge'
	expect_contains "$(cat /run/downgrade.out)" '/var/lib/cni/results says how'
	mv /run/cached /var/lib/cni/results/bridge-web-eth0
	# One whose namespace no process and no name shows
	use_release now
	container_add hidden upgraded -p 6060:80/tcp
	touch /run/hidden
	mount --bind /run/netns/hidden /run/hidden
	umount /run/netns/hidden
	expect_failure downgrade_to 0.1
	expect_contains "$(cat /run/downgrade.out)" 'container hidden, interface eth0, network bridge'
	use_release now
	mount --bind /run/hidden /run/netns/hidden
	umount /run/hidden
	container_remove hidden upgraded
	expect_failure "$build/bpf-portmap" downgrade /bin/true
	expect_contains "$output" '/true is no bpf-portmap'
	cp "$project/build/releases/0.1/bpf-portmap" /run/anybodys
	chmod 777 /run/anybodys
	expect_failure "$build/bpf-portmap" downgrade /run/anybodys
	expect_contains "$output" 'must be a file of root'
	mkdir -p /run/others/own
	chmod 777 /run/others
	cp "$project/build/releases/0.1/bpf-portmap" /run/others/own/
	expect_failure "$build/bpf-portmap" downgrade /run/others/own/bpf-portmap
	expect_contains "$output" 'all directories on the way'
	expect_failure "$build/bpf-portmap" downgrade "$build/bpf-portmap"
	expect_contains "$output" 'is not older than'
	expect_same_state "$state"
	expect_answer client tcp "$host4" 8080 web "$client4"
	# One that does not load, and one that fails half-way: the containers are ours again
	conversation_open talk client tcp "$host4" 8080
	expect_says talk web
	fake_release ''
	expect_failure "$build/bpf-portmap" downgrade /run/conf/fails
	expect_contains "$output" 'fails with CNI_COMMAND=ADD of container rehearsal'
	expect_says talk web
	expect_same_state "$state"
	use_release now
	container_start other upgraded -p 9090:80/tcp
	fake_release '[ "$CNI_CONTAINERID" != other ] ||'
	expect_failure "$build/bpf-portmap" downgrade /run/conf/fails
	expect_contains "$output" 'have bpf-portmap'
	expect_contains "$output" '/run/conf/fails fails with CNI_COMMAND=ADD of container other'
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host4" 9090 other "$client4"
	container_check other upgraded
	# Over the same layout it is the other binary's own upgrade
	printf '%s\n' '#!/bin/sh' '[ "$1" != --help ] || exec echo "bpf-portmap 0.2~rc1: a chained CNI plugin"' \
		"exec $build/bpf-portmap \"\$@\"" >/run/conf/fails
	expect_contains "$("$build/bpf-portmap" downgrade /run/conf/fails)" 'nothing to do: the programs are'
}

# one_downgrade STEP COMMAND...: one by COMMAND, which may be killed before call STEP; completed by
# the next one, or turned back by `upgrade`; then all is upgraded again
one_downgrade() {
	local step=$1 code=0
	shift
	hold mapped client "$host4" 8080 3
	wait_until 20 established_in 3 || fail "step $step: $(cat /run/mapped.held)"
	use_release 0.1
	"$@" "$build/bpf-portmap" downgrade "$project/build/releases/0.1/bpf-portmap" \
		>/run/downgrade.out 2>&1 || code=$?
	[ "$code" = 0 ] || [ "$code" = 137 ] || fail "step $step: $code: $(cat /run/downgrade.out)"
	if [ $((++rounds % 2)) = 1 ]; then
		[ "$code" = 0 ] || downgrade_to 0.1 || fail "step $step: $(cat /run/downgrade.out)"
		expect_downgraded
		container_check web upgraded || fail "step $step: CHECK by 0.1"
	fi
	use_release now
	upgrade || fail "step $step: $(cat /run/upgrade.out)"
	expect_equal " " "$(compgen -G "/run/bpf-portmap-downgrade*") $(nft list tables)" "step $step"
	for name in web other; do container_check "$name" upgraded || fail "step $step: CHECK $name"; done
	expect_answer client tcp "$host4" 9090 other "$client4"
	in_namespace web "$build/tests/crowd" ask "$server4" 80 3 || fail "step $step: masquerade"
	expect_held mapped
	rm /run/mapped.hold
	[ "$code" = 137 ]
}

# killed at its first ADD, while a veth that has an address keeps our programs; containers that the
# older version adds then are taken over like those that it has not added again
test_upgrade_downgrade_stopped() {
	local name
	use_release now
	conflist upgraded ptp .
	container_start web upgraded -p 8080:80/tcp
	fake_release '[ "$CNI_CONTAINERID" = rehearsal ] || { kill -9 $PPID; exit 1; } ||'
	expect_failure "$build/bpf-portmap" downgrade /run/conf/fails
	use_release 0.1
	container_start late upgraded -p 7070:80/tcp
	conversation_open talk client tcp "$host4" 7070
	expect_says talk late
	use_release now
	"$build/bpf-portmap" doctor >/run/out 2>&1 || true
	expect_contains "$(cat /run/out)" 'a downgrade was not completed (/run/bpf-portmap-downgrade-'
	upgrade || fail "upgrade: $(cat /run/upgrade.out)"
	grep -q '^the programs are those of bpf-portmap .* again$' /run/upgrade.out || fail "$(cat /run/upgrade.out)"
	expect_says talk late
	expect_answer client tcp "$host4" 7070 late "$client4"
	expect_answer client tcp "$host4" 8080 web "$client4"
	for name in web late; do container_check "$name" upgraded || fail "CHECK of $name"; done
	# Told to end, it completes first
	fake_release '{ kill -TERM $PPID; true; } ||'
	use_release 0.1
	expect_failure "$build/bpf-portmap" downgrade /run/conf/fails
	expect_downgraded
	container_check web upgraded || fail "CHECK by 0.1"
	use_release now
	upgrade || fail "upgrade: $(cat /run/upgrade.out)"
	fake_release '[ "$CNI_CONTAINERID" = rehearsal ] || { kill -9 $PPID; exit 1; } ||'
	expect_failure "$build/bpf-portmap" downgrade /run/conf/fails
	"$build/bpf-portmap" uninstall --drop-ports --purge --bin-dir /run/empty --conf-dir /run/empty >/run/out 2>&1 ||
		fail "uninstall: $(cat /run/out)"
	expect_equal " " "$(compgen -G "/run/bpf-portmap-downgrade*") $(nft list tables)"
}

# limit 900 s
# killed anywhere, a downgrade is completed by the next one, or turned back by `upgrade`, and no
# packet leaves untranslated
test_upgrade_downgrade_killed() {
	local last step killed=0 rounds=0 name
	world_of_release now
	watch_wire
	! one_downgrade 1 strace -o /run/calls -e trace="$counted_calls" || fail "killed by strace"
	last=$(grep -vc -e '^---' -e '^+++' /run/calls)
	for ((step = 2; step <= last; step += ${STEP:-last / 4})); do
		! one_downgrade "$step" "$build/tests/killer" -a "$step" || killed=$((killed + 1))
	done
	expect_wire_clean
	echo "note: killed at $killed places, calls 2 to $last, each completed or turned back"
	[ "$killed" -ge 4 ] || fail "only $killed runs were killed"
}
