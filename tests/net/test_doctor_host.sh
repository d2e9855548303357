# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_host.sh - what `bpf-portmap doctor` says of the kernel, the host's settings and tables.

# conntrack's table is nearly full; an uplink takes smaller packets than containers send, itself or by
# a route; a process keeps the lock; a user namespace; a kernel that is locked down
test_doctor_settings() {
	healthy_host
	own_proc /proc/sys/net/netfilter
	echo 100 >/proc/sys/net/netfilter/nf_conntrack_max
	breaks conntrack '95 entries of 100' 1 fill_conntrack
	breaks mtu 'MTU of 1500, eth0 of 1400' 1 ip link set eth0 mtu 1400
	breaks mtu 'where it is locked' 1 ip route replace default via "$client4" mtu lock 1300
	# IPv6 would be off there.
	ip route replace default via "$client4" mtu lock 1200
	finds mtu 'where it is locked' 1
	expect_equal null "$(jq -r .remedy /run/doctor)"
	ip route replace default via "$client4"
	"$build/tests/locker" --name holder /sys/bus/platform/drivers_probe >/run/held &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
	finds lock "ADD and DEL wait for process $holder (holder)" 1
	kill -9 "$holder"
	wait "$holder" 2>/dev/null || true
	healthy
	! has_user_namespaces ||
		PREFIX="unshare --user --map-root-user" finds rights 'rootless' 2
	mkdir -p /run/security
	echo 'none integrity [confidentiality]' >/run/security/lockdown
	mount --bind /run/security /sys/kernel/security
	finds rights 'locked down' 2
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

# IPsec policies
test_doctor_ipsec() {
	[ -e /proc/sys/net/core/xfrm_larval_drop ] || skip "the kernel has no IPsec"
	healthy_host
	ip xfrm policy add src 10.88.0.0/16 dst 10.1.0.0/16 dir out \
		tmpl src 192.0.2.1 dst 192.0.2.99 proto esp mode tunnel
	"$build/bpf-portmap" attach >/dev/null # which turns the fast path off
	finds ipsec 'IPsec policies' 1
	ip xfrm policy flush
	"$build/bpf-portmap" attach >/dev/null
	healthy
}

# a queue behind our program, at the uplink's egress, that drops what leaves
test_doctor_queues() {
	local i
	healthy_host
	tc qdisc replace dev eth0 root tbf rate 8bit burst 10 limit 10
	for i in 1 2 3 4 5 6; do
		"$peer" ask udp "$client4" 9 --timeout 1 >/dev/null 2>&1 || true
	done
	finds queues 'the queue at eth0 (tbf; tc -s qdisc) has dropped' 1
	tc qdisc del dev eth0 root
	healthy
}

# packets that an interface drops meanwhile are a note, and none is said of one that drops nothing
test_doctor_drops() {
	local mac
	healthy_host
	by_hand_says 0 'no interface has dropped packets' doctor 8080/tcp --all
	mac=$(mac_of eth0)
	touch /run/sending
	# Of a protocol that nobody speaks
	while [ -e /run/sending ]; do
		in_namespace client "$build/tests/frame" eth0 "${mac//:/}02000000000188b5$(printf '%092d' 0)"
	done &
	by_hand_says 0 'note  drops              eth0 has dropped' doctor 8080/tcp --count 50
	rm /run/sending
	wait $!
}

# masquerade ports towards a server: most are in use, or enough are left
test_doctor_ports_left() {
	conflist narrow bridge "$(with_ours '{masqPorts: "30000-30009"}')"
	healthy_host
	container_start asker narrow
	serve_crowd server 9000
	crowd_open few asker "$server4" 9000 6
	healthy
	crowd_open more asker "$server4" 9000 3
	finds ports-left "9 of 10 ports (\"masqPorts\") of $host4_second are in use towards $server4:9000/tcp, most of them by asker" 1
}

# a resolver at a loopback address of the container, where nobody listens; Docker's, and one that the
# container runs
test_doctor_resolver() {
	echo 'nameserver 127.0.0.53' >/run/resolv.conf
	mount --bind /run/resolv.conf /etc/resolv.conf
	healthy_host
	finds resolver 'shop/web-0 asks for names at 127.0.0.53' 1
	in_namespace web "$build/tests/hold" udp 127.0.0.53 53 --background >/dev/null
	healthy
	printf 'nameserver 127.0.0.11\nnameserver 192.0.2.53\n' >/run/resolv.conf
	healthy
	# A container that has a pipe there keeps nobody waiting.
	umount /etc/resolv.conf
	mkfifo /run/pipe
	mount --bind /run/pipe /etc/resolv.conf
	container_start piped bridge -p 9191:80/tcp
	healthy
}

# a table of connections that is nearly full, or its places for those that nobody has answered yet
test_doctor_tables() {
	conflist small bridge "$(with_ours '{"flowEntries": 16384}')"
	container_start web small -p 8080:80/tcp
	healthy
	herds_prepare
	flood_until_told
	finds tables 'places for connections that nobody has answered yet are taken, as in a flood' 1
	record_set usage '' 0 0x00 0x3f
	finds tables '16128 of 16384' 1
	mend
}

# A slow machine sends fewer than it was told to.
flood_until_told() {
	local network
	for network in 64 65 66 67 68; do
		herd_of web udp "100.$network.0.0" 9 40000 --destinations 65536 --seconds 2 \
			--rate 20000 >/run/herd
		"$build/bpf-portmap" doctor --no-probe >/run/flooded 2>&1 || true
		! grep -q 'places for connections' /run/flooded || return 0
	done
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
