# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_operator_migrate.sh - `bpf-portmap migrate --from-portmap`: ports that the reference plugin
# portmap has mapped, of containers that go on running.

# migrate_world: no conflist of the machine's own is seen
migrate_world() {
	mkdir -p /etc/cni/net.d
	mount -t tmpfs tmpfs /etc/cni/net.d
}

# portmap_container NAME [-p ...]: a container whose ports the reference plugin has mapped
portmap_container() {
	[ -e /run/conf/old.conflist ] || conflist old bridge \
		"$other_network | $as_reference | .plugins[0].hairpinMode = true"
	local name=$1
	shift
	container_start "$name" old "$@"
}

# every rule of the host, without counters
rules_now() {
	iptables-save | sed '/^#/d; s/\[[0-9:]*\]//'
	ip6tables-save | sed '/^#/d; s/\[[0-9:]*\]//'
	nft list ruleset | sed '/table ip6* nat/,/^}/d; s/counter packets.*bytes [0-9]*//'
}

without_portmap() { sed '/CNI-HOSTPORT\|CNI-DN-[0-9a-f]/d'; }

expect_no_portmap_rules() {
	local rules
	rules=$(iptables-save; ip6tables-save; nft list tables)
	case $rules in *CNI-HOSTPORT* | *CNI-DN-* | *cni_hostport*) fail "left: $rules" ;; esac
}

maps_now() {
	[ -e "$pins" ] || return 0
	bpftool -j map dump pinned "$pins/portmaps"
	bpftool -j map dump pinned "$pins/attachments"
	bpftool -j map dump pinned "$pins/connections"
}

# new connections of every kind go to the container web, and not by conntrack's translation
expect_ours() {
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers client "$host6" 8080 web "$client6"
	expect_answers server "$host4" 8080 web
	needs_cgroup
	expect_answers host 127.0.0.1 8080 web
	expect_answers host "$host4" 8080 web
	expect_equal 1 "$(item '[.items[] | select(.host.port == 8080 and .host.address == "0.0.0.0"
		and .protocol == "tcp")] | length' list)" 'mappings in list'
}

# a container that portmap serves becomes ours: nothing else of the rules changes
test_operator_migrate() {
	local before
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	iptables -t nat -A POSTROUTING -s 10.5.0.0/16 -j MASQUERADE -m comment --comment 'not "ours"'
	iptables -A FORWARD -m comment --comment 'CNI-DN-like' -j ACCEPT
	expect_answers client "$host4" 8080 web
	before=$(rules_now | without_portmap)
	rows migrate --from-portmap | sort >/run/rows
	expect_equal "*:8080 tcp other web $(address4 web):80 iptables 0 mapped
*:8080 udp other web $(address4 web):80 iptables 1 mapped
[::]:8080 tcp other web [$(address6 web)]:80 iptables 0 mapped
[::]:8080 udp other web [$(address6 web)]:80 iptables 0 mapped" "$(sed 's/ $//' /run/rows)"
	expect_no_portmap_rules
	expect_equal "$before" "$(rules_now)" 'other rules'
	expect_ours
	by_hand 0 migrate --from-portmap
	expect_equal 'Nothing to migrate: portmap has no rules here.' "$(cat /run/out)"
}

# asked_on NAME NAMESPACE ...: a conversation that has begun
asked_on() {
	conversation_open "$@"
	expect_says "$1" web
}

# conversations_open: one of each kind, through portmap's rules
conversations_open() {
	asked_on tcp4 client tcp "$host4" 8080
	asked_on tcp6 client tcp "$host6" 8080
	asked_on udp4 client udp "$host4" 8080
	asked_on udp6 client udp "$host6" 8080 --connected
	asked_on second4 server tcp "$host4_second" 8080
	asked_on udpsecond4 server udp "$host4_second" 8080
	asked_on local4 host tcp 127.0.0.1 8080
	asked_on localudp4 host udp 127.0.0.1 8080 --connected
	asked_on own4 host tcp "$host4" 8080
	asked_on own6 host tcp "$host6" 8080
	asked_on hairpin web tcp "$host4" 8080
	asked_on hairpinudp web udp "$host4" 8080
	asked_on neighbour other tcp "$host4" 8080
	asked_on neighbour6 other tcp "$host6" 8080
}
conversations='tcp4 tcp6 udp4 udp6 second4 udpsecond4 local4 localudp4 own4 own6 hairpin hairpinudp
	neighbour neighbour6'

# client_of NAME: the client that the container sees in this conversation
client_of() { field_of client "$(say "$1")"; }

# limit 120 s
# connections through portmap's rules go on, and the container sees the same client: TCP and UDP,
# IPv4 and IPv6, from outside, from the host, from containers; what a client begins from the same
# port afterwards is ours
test_operator_migrate_connections() {
	local name seen
	local -A seen_before
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8080:80/udp
	portmap_container other -p 9090:80/tcp
	conversations_open
	for name in $conversations; do seen_before[$name]=$(client_of "$name"); done
	by_hand 0 migrate --from-portmap
	cat /run/out
	expect_no_portmap_rules
	for round in 1 2 3; do
		for name in $conversations; do
			seen=$(client_of "$name")
			expect_equal "${seen_before[$name]}" "$seen" "$name, $round"
		done
		wait_until 5 second_is_over "$(seconds_of_uptime)"
	done
	for name in $conversations; do
		echo bye >&"$(eval echo "\$${name}_in")"
		piped_close "$name" || fail "$name ended with $?"
	done
	expect_ours
	expect_answers web "$host4" 8080 web
	expect_answers other "$host4" 8080 web
	expect_answers other "$host6" 8080 web
}

# limit 120 s
# while it migrates a download goes on, no datagram of a stream is lost, and no connection of a
# client that opens one after the other
test_operator_migrate_under_load() {
	local result count
	migrate_world
	portmap_container web -p 8080:80/tcp -p 8081:81/tcp -p 8082:82/udp -p 8083:83/tcp
	mkdir -p /run/www
	head -c 60000000 /dev/urandom >/run/www/file
	in_namespace web busybox httpd -p 81 -h /run/www
	in_namespace web busybox httpd -p "[::]:83" -h /run/www || true
	in_namespace web "$build/tests/datagrams" echo 82 --background
	in_namespace client curl -sS --limit-rate 12M -o /run/got "http://$host4:8081/file" &
	local download=$!
	in_namespace client "$build/tests/stream" "$host4" 8082 4000 >/run/stream4 &
	local stream4=$!
	in_namespace client "$build/tests/stream" "$host6" 8082 4000 >/run/stream6 &
	local stream6=$!
	(
		count=0
		while [ ! -e /run/enough ]; do
			in_namespace client "$peer" ask tcp "$host4" 8080 --timeout 10000 >/run/asked 2>&1 || {
				echo "$count: $(cat /run/asked)"
				exit 1
			}
			count=$((count + 1))
			echo "$count" >/run/count
		done
	) >/run/loop 2>&1 &
	local loop=$!
	wait_until 20 [ -s /run/count ] || fail 'no connection'
	sleep 1
	by_hand 0 migrate --from-portmap
	echo "note: $(cat /run/count) connections before it ended"
	count=$(cat /run/count)
	wait_until 20 eval '[ "$(cat /run/count)" -gt $((count + 50)) ]' || fail "the loop: $(cat /run/loop)"
	touch /run/enough
	wait "$loop" || fail "a connection was lost: $(cat /run/loop)"
	wait "$stream4" "$stream6" || fail 'a stream ended'
	cat /run/stream4 /run/stream6
	expect_contains "$(cat /run/stream4)" 'lost=0 '
	expect_contains "$(cat /run/stream6)" 'lost=0 '
	wait "$download" || fail "the download ended: $?"
	cmp /run/www/file /run/got
	expect_no_portmap_rules
}
