# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_host.sh - the host's own traffic, its settings, and what others have set up there, stay as
# they are.

# also with fastPath off, always
# the host's own socket whose source port is published receives its replies; a client that uses a port
# again, after such a socket has talked to it and was closed, reaches the container
test_host_socket_on_published_port() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	serve_in client 9000
	serve_in server 9000
	expect_answers client "$host4" 8080 web "$client4"
	local address
	for address in "$client4" "$client6" "$server4" "$server6"; do
		local who=client
		case $address in "$server4" | "$server6") who=server ;; esac
		expect_answers host "$address" 9000 "$who" - --source-port 8080 --connected
	done
	expect_answers client "$host4" 8080 web "$client4"
	processes_end client
	expect_answers client "$host4" 8080 web "$client4" --source-port 9000
}

# also with fastPath off
# a socket of the host that begins later, with the source port of a container's flow to the same
# server, receives its replies; the flow continues with another port
test_host_socket_after_masquerade() {
	serve_in server 9000
	container_add one bridge
	local port
	conversation_open theirs one udp "$server4" 9000 --source-port 5000
	expect_contains "$(say theirs)" "client=$host4_second:5000 "
	expect_answer host udp "$server4" 9000 server "$host4_second" --source-port 5000 --connected
	sleep 1.1
	port=$(field_of client "$(say theirs)")
	expect_equal "$host4_second" "$(address_part <<<"$port")" "the flow's address afterwards"
	[ "$port" != "$host4_second:5000" ] || fail "the host's port is still the flow's"
	expect_contains "$(say theirs)" "client=$port "
}

# the host's other services and pings work as before; a connection to a listener of the host that was there
# first survives the ADD that publishes its port
test_host_services() {
	serve_on_host 9999
	serve_on_host 8080
	container_add first bridge
	conversation_with host old client tcp "$host4" 8080
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_answer client tcp "$host4" 8080 web
	expect_says old host
	expect_says old host
	serve_in client 9000
	expect_serves host 9999
	both expect_answers host @client 9000 client @host
	in_namespace client busybox ping -c 1 -W 1 "$host4" >/dev/null
	in_namespace client busybox ping -6 -c 1 -W 1 "$host6" >/dev/null
	busybox ping -c 1 -W 1 "$client4" >/dev/null
	busybox ping -c 1 -W 1 "$(address4 web)" >/dev/null
}

settings_show() {
	# That of procps 4.0.7 fails on keys that cannot be read.
	{ sysctl -a 2>/dev/null || true; } | grep -E '^(net|kernel\.bpf|kernel\.unpriv)' |
		grep -vE 'nf_conntrack_(count|buckets)|\.stable_secret|random|uuid'
	nft list ruleset
	iptables-save | sed '/^#/d'
	ip6tables-save | sed '/^#/d'
	ip rule
	ip -6 rule
	ip route show table all
}

# ADD, CHECK and DEL change no sysctl, no firewall rule, no policy rule, no route
test_host_settings_unchanged() {
	container_add_plain web
	iptables-save >/dev/null
	ip6tables-save >/dev/null
	settings_show >/run/before
	plugin_call ADD web >/run/result || fail "$(cat /run/result)"
	settings_show | diff /run/before - || fail "ADD changed the host's settings"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web
	plugin_call CHECK web || fail "CHECK"
	settings_show | diff /run/before - || fail "CHECK changed the host's settings"
	plugin_call DEL web || fail "DEL"
	settings_show | diff /run/before - || fail "DEL changed the host's settings"
}

# also with fastPath off, always
# no packet ever carries a mark
test_host_no_mark() {
	# (The kernel's own IGMP and MLD reports do, now and then, with or without us.)
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	serve_in server 9000
	# TCP and UDP only: the kernel's multicast listener reports keep something else in that
	# field.
	nft -f - <<-'RULES'
	table inet watch {
		counter marked {}
		counter seen {}
		chain in {
			type filter hook prerouting priority raw
			counter name seen
			meta l4proto { tcp, udp } meta mark != 0 counter name marked
		}
		chain out {
			type filter hook postrouting priority 300
			counter name seen
			meta l4proto { tcp, udp } meta mark != 0 counter name marked
		}
	}
	RULES
	expect_answers client "$host4" 8080 web
	expect_answers web "$host4" 8080 web
	expect_answers web "$server4" 9000 server
	[ "$(nft list counter inet watch seen | sed -n 's/.*packets \([0-9]*\).*/\1/p')" -gt 10 ] ||
		fail "the watch saw nothing"
	expect_equal 0 "$(nft list counter inet watch marked | sed -n 's/.*packets \([0-9]*\).*/\1/p')" \
		"packets with a mark"
}

# also with fastPath off
# unrelated UDP flows keep their path and their ports through ADD and DEL of other containers
test_host_unrelated_flows_survive() {
	container_start web bridge -p 8080:80/udp
	serve_in server 9000
	serve_on_host 9999
	conversation_open mapped client udp "$host4" 8080
	conversation_open masqueraded web udp "$server4" 9000 --source-port 40000
	conversation_open forwarded client udp "$server4" 9000
	conversation_open own client udp "$host4" 9999
	local before after name
	before=$(for name in mapped masqueraded forwarded own; do say "$name"; done)
	container_start other bridge -p 8081:80/udp -p 9001:80/tcp
	expect_answer client udp "$host4" 8081 other
	after=$(for name in mapped masqueraded forwarded own; do say "$name"; done)
	expect_equal "$before" "$after" "the flows after ADD of another container"
	container_remove other bridge
	after=$(for name in mapped masqueraded forwarded own; do say "$name"; done)
	expect_equal "$before" "$after" "the flows after DEL of another container"
	expect_contains "$before" "name=host"
	case $before in *timeout*) fail "$before" ;; esac
}

# realtime VALUE: what a kernel of PREEMPT_RT tells
realtime() {
	mount -t tmpfs tmpfs /run/kernel
	mkdir /run/kernel/btf
	cp /sys/kernel/btf/vmlinux /run/kernel/btf/
	echo "$1" >/run/kernel/realtime
	mount --bind /run/kernel /sys/kernel
}

# a kernel of PREEMPT_RT may let packets interrupt each other, of which STATUS, doctor, and the ADD
# that loads the programs warn; other kernels do not
test_host_realtime() {
	local said='this kernel is PREEMPT_RT'
	[ "$(kernel_or 6.12)" = 6.12 ] || skip 'before 6.12 they do not interrupt each other'
	mkdir /run/kernel
	realtime 0
	status 2>/run/err || fail STATUS
	expect_equal 0 "$(grep -c "$said" /run/err)" "warnings of STATUS"
	umount /sys/kernel
	realtime 1
	status 2>/run/err || fail STATUS
	expect_in /run/err "$said"
	rm -r "$pins"
	container_add web bridge -p 8080:80 2>/run/err
	expect_in /run/err "$said"
	expect_contains "$("$build/bpf-portmap" doctor --quick 2>&1)" "$said"
}
