# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_podman.sh - the real Podman: version 4 with its CNI backend and our plugin in place of portmap,
# version 5 with networks of our driver for netavark.

. "$folder/engine.sh"

podman_list=/etc/cni/net.d/87-podman-bridge.conflist

podman() {
	command podman --root /run/podman/storage --runroot /run/podman/run --storage-driver vfs \
		"$@" </dev/null
}

podman_version() { command podman --version 2>/dev/null | sed 's/.* //'; }

# podman_world [VERSION]: skips the test where it is another one's
podman_world() {
	case $(podman_version) in
	${1:-*}.*) ;;
	'') engine_missing podman ;;
	*) skip "this is podman $(podman_version), the test is for podman $1" ;;
	esac
	engine_world
	mkdir -p /run/podman/networks /run/netavark-plugins
	case $(podman_version) in
	4.*) podman_backend='network_backend = "cni"
		cni_plugin_dirs = ["/run/cni-plugins"]' ;;
	*)
		podman_backend='network_backend = "netavark"
		netavark_plugin_dirs = ["/run/netavark-plugins"]'
		cp "$build/netavark-bpf-portmap" /run/netavark-plugins/bpf-portmap ;;
	esac
	cat >/run/podman/containers.conf <<-CONF
		[containers]
		pids_limit = 0
		seccomp_profile = "unconfined"
		apparmor_profile = "unconfined"
		default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
		[network]
		$podman_backend
		network_config_dir = "/run/podman/networks"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		runtime = "runc"
	CONF
	export CONTAINERS_CONF=/run/podman/containers.conf
}

is_netavark() { [ -e /run/netavark-plugins/bpf-portmap ]; }

# network_create NAME [OPTION...]: a network of our driver, or Podman's conflist with portmap's type
# changed
network_create() {
	local name=$1
	shift
	if is_netavark; then
		podman network create -d bpf-portmap "$@" "$name" >/dev/null
	else
		podman network create "$@" "$name" >/dev/null
		type_change "$name"
	fi
}

type_change() {
	sed -i 's/"type": "portmap"/"type": "bpf-portmap"/' "/run/podman/networks/$1.conflist"
	grep -q bpf-portmap "/run/podman/networks/$1.conflist" || fail "no portmap in $1"
}

# network_reserves NAME: from now on its conflist has the option reserveHostPorts
network_reserves() {
	sed -i 's/"type": "bpf-portmap",/& "reserveHostPorts": true,/' "/run/podman/networks/$1.conflist"
}

# podman_run NAME "PROTOCOL/PORT..." OPTION...: a container that serves these ports
podman_run() {
	local name=$1 ports=$2
	shift 2
	podman run -d --name "$name" "$@" --rootfs "$rootfs" \
		/bin/sh -c "$(serving "$name" $ports)" >/run/results/"$name" 2>&1 ||
		fail "podman run $name: $(cat /run/results/"$name")"
	podman_serves "$name" $ports || fail "$name does not serve: $(podman logs "$name" 2>&1)"
}

podman_pid() { podman inspect -f '{{.State.Pid}}' "$1"; }

# podman_serves NAME PROTOCOL/PORT...: waits until NAME's process listens.
podman_serves() {
	local pid port
	pid=$(podman_pid "$1")
	shift
	for port; do
		wait_until 10 listens "$pid" "${port%/*}" "${port#*/}" || return 1
	done
}

# Not by podman exec, which leaves a chroot that the test runs in
ask_from() {
	local name=$1
	shift
	nsenter --net=/proc/"$(podman_pid "$name")"/ns/net "$peer" ask "$@" 2>&1
}

listens() { nsenter --net=/proc/"$1"/ns/net ss -Hln "--$2" "sport = $3" | grep . >/dev/null; }

podman_remove() { podman rm -f -t 0 "$1" >/dev/null || fail "podman rm $1"; }

podman_kill_all_of() {
	local pid pids
	pids=$(podman inspect -f '{{.State.ConmonPid}} {{.State.Pid}}' "$1")
	kill -9 $pids
	for pid in $pids; do
		wait_until 10 no_process "$pid" || fail "process $pid of $1 stays"
	done
}

no_process() { [ ! -e "/proc/$1" ]; }

nothing_left() {
	[ "$(map_count portmaps attachments slots)" = "0 0 0" ]
}

expect_nothing_left() {
	expect_count "0 0 0" 'portmaps attachments slots'
}

# limit 180 s
# podman run -p with Podman's own conflist and the type changed: the container answers a client
# outside and sees its address; its own connections get the host's address, and it reaches itself
# through its host port; after podman rm nothing is left
test_podman_run() {
	podman_world
	network_create web
	podman_run web tcp/80 --network web -p 8080:80
	podman_remove web
	local before answer
	before=$(state_show)
	podman_run web tcp/80 --network web -p 8080:80
	expect_answer client tcp "$host4" 8080 web "$client4"
	answer=$(ask_from web tcp "$host4" 8080) || fail "container to itself: $answer"
	expect_equal "$(podman network inspect -f '{{(index .Subnets 0).Gateway}}' web)" \
		"$(field_of client "$answer" | address_part)" "seen by itself"
	serve_in server 80
	answer=$(ask_from web tcp "$server4" 80) || fail "container to server: $answer"
	expect_equal "$host4_second" "$(field_of client "$answer" | address_part)" "seen by the server"
	podman_remove web
	expect_no_answer client tcp "$host4" 8080
	expect_same_state "$before"
	expect_nothing_left
}

# On the default network
podman_list_serves() {
	cp "$podman_list" /run/podman/networks/podman.conflist
	type_change podman
	podman_run web tcp/80 -p 8080:80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_no_answer client tcp "$host4" 8080
	expect_nothing_left
}

# limit 180 s
# podman run with the conflist of Debian's package and the type changed; TCP and UDP, a host
# address, a range, IPv6. Processes of the host reach a container's ports at 127.0.0.1, ::1 and the
# host's addresses, though conmon listens there; but not a port that is mapped at another address
test_podman_ports() {
	local address
	podman_world
	is_netavark || [ ! -e "$podman_list" ] || podman_list_serves
	network_create web --ipv6
	podman_run web 'tcp/80 udp/80 tcp/9001 tcp/9003' --network web -p 8080:80 -p 8080:80/udp \
		-p "$host4_second":8081:80 -p 9000-9003:9000-9003 -p "[$host6]":8082:80 -p '[::]:8083:80/udp' \
		-p 127.0.0.1:8084:80
	expect_serves web
	expect_answer client tcp "$host4_second" 8081 web "$client4"
	expect_no_answer client tcp "$host4" 8081
	expect_answer client tcp "$host4" 9001 web "$client4"
	expect_answer client tcp "$host4" 9003 web "$client4"
	expect_no_answer client tcp "$host4" 9002
	expect_answer client tcp "$host6" 8082 web "$client6"
	expect_no_answer client tcp "$host6_second" 8082
	expect_answer client udp "$host6" 8083 web "$client6"
	expect_no_answer client udp "$host4" 8083
	for address in 127.0.0.1 ::1 "$host4" "$host6"; do
		expect_answers host "$address" 8080 web
	done
	expect_answer host tcp 127.0.0.1 8084 web
	expect_no_answer host tcp "$host4" 8084
	expect_no_answer client tcp "$host4" 8084
	podman_remove web
	expect_no_answer client tcp "$host4" 9001
	expect_no_answer client udp "$host6" 8083
	expect_no_answer host tcp 127.0.0.1 8080
	expect_no_answer host tcp 127.0.0.1 8084
	expect_nothing_left
}

# limit 180 s
# podman restart, network reload, and stop and start many times: the container has another address
# each time, and a client's UDP stream reaches it
test_podman_restart() {
	podman_world
	network_create web
	podman_run web 'tcp/80 udp/80' --network web -p 8080:80 -p 8080:80/udp
	conversation_with web talk client udp "$host4" 8080 --keep-going
	local round
	for round in 1 2; do
		podman restart -t 0 web >/dev/null || fail "podman restart $round"
		podman_serves web tcp/80 udp/80 || fail "it does not serve after restart $round"
		expect_answer client tcp "$host4" 8080 web "$client4"
		expect_says talk web
	done
	podman network reload web >/dev/null || fail "podman network reload"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_says talk web
	for round in 1 2 3; do
		podman stop -t 0 web >/dev/null || fail "podman stop $round"
		expect_no_answer client tcp "$host4" 8080
		expect_nothing_left
		podman start web >/dev/null || fail "podman start $round"
	done
	podman_serves web tcp/80 udp/80 || fail "it does not serve after start"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_says talk web
	podman_remove web
	expect_nothing_left
}

# limit 180 s
# conmon, which listens on its container's port, does not prevent a reload of the network with
# reserveHostPorts
test_podman_listeners() {
	podman_world 4
	network_create web
	podman_run web tcp/80 --network web -p 8080:80
	ss -Hlntp sport = 8080 | grep conmon >/dev/null || fail "conmon does not listen"
	network_reserves web
	podman network reload web >/dev/null || fail "podman network reload"
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
}

# limit 180 s
# a container on two networks: Podman requests its ports on both, and one network has them; a
# network is added and removed while it runs
test_podman_two_networks() {
	podman_world
	network_create web
	network_create six --ipv6
	sysctl -qw net.ipv4.conf.all.rp_filter=2
	podman_run web tcp/80 --network web,six -p 8080:80
	nsenter --net=/proc/"$(podman_pid web)"/ns/net sysctl -qw net.ipv4.conf.all.rp_filter=2
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host6" 8080 web "$client6"
	podman restart -t 0 web >/dev/null || fail "podman restart"
	podman_serves web tcp/80 || fail "it does not serve after restart"
	expect_answer client tcp "$host6" 8080 web "$client6"
	podman_remove web
	expect_no_answer client tcp "$host4" 8080
	expect_nothing_left
	network_create more
	podman_run web tcp/80 --network web -p 8080:80
	podman network connect more web || fail "podman network connect"
	podman network disconnect more web || fail "podman network disconnect"
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_nothing_left
}

# limit 180 s
# the port of a container on two networks answers a client, with data in both directions though the
# host drops what conntrack calls invalid; the container itself, and containers of both networks; and
# after `podman network disconnect` of the one that has the port
test_podman_two_networks_answer() {
	local asker
	podman_world
	network_create first
	network_create second
	sysctl -qw net.ipv4.conf.all.rp_filter=2
	nft 'add table inet strict; add chain inet strict forward { type filter hook forward priority 0; };
		add rule inet strict forward ct state invalid drop'
	podman_run web tcp/80 --network first,second -p 8160:80
	nsenter --net=/proc/"$(podman_pid web)"/ns/net sysctl -qw net.ipv4.conf.all.rp_filter=2
	podman_run of_first tcp/81 --network first
	podman_run of_second tcp/81 --network second
	conversation_open talk client tcp "$host4" 8160
	for asker in 1 2 3 4 5 6; do expect_says talk web; done
	for asker in web of_first of_second; do
		ask_from "$asker" tcp "$host4" 8160 >/run/out || fail "$asker: $(cat /run/out)"
		expect_in /run/out 'name=web '
	done
	podman network disconnect first web || fail "podman network disconnect"
	expect_answer client tcp "$host4" 8160 web
	podman rm -f -t 0 web of_first of_second >/dev/null || fail "podman rm"
	expect_nothing_left
}

# limit 180 s
# a second container with a port that is taken: the error names the owner, the first one still
# serves, what Podman leaves of the second one is removed; of four at the same time one has the port
test_podman_conflict() {
	podman_world
	network_create web
	network_create other
	podman_run web tcp/80 --network web -p 8080:80
	expect_failure podman_run second tcp/80 --network other -p 9090:80 -p 8080:80
	expect_names_owner "$output"
	expect_count 1 portmaps
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove second
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	podman_run second tcp/80 --network other -p 9090:80 -p 8080:80
	expect_answer client tcp "$host4" 8080 second "$client4"
	podman_remove second
	expect_nothing_left
	four_want_one_port
}

# Podman 5 binds the port before it calls us: its error is the kernel's then.
expect_names_owner() {
	if is_netavark; then
		expect_contains "$1" 'address already in use'
		return
	fi
	expect_contains "$1" "host port 8080/tcp of any IPv4 address is taken by container web \
($(podman inspect -f '{{.Id}}' web)), interface eth0, network web, since 20"
	expect_contains "$1" 'choose another host port' 'remove that container (`podman rm -f '
}

four_want_one_port() {
	local name pids=() succeeded=0
	for name in a b c d; do
		podman run -d --name "$name" --network web -p 8080:80 --rootfs "$rootfs" \
			/bin/peer serve tcp any 80 --name "$name" >/run/results/"$name" 2>&1 &
		pids+=($!)
	done
	for name in "${pids[@]}"; do
		! wait "$name" || succeeded=$((succeeded + 1))
	done
	expect_equal 1 "$succeeded" "containers that run: $(tail /run/results/[abcd])"
	expect_count 1 portmaps
	name=$(podman ps --format '{{.Names}}')
	podman_serves "$name" tcp/80
	expect_answer client tcp "$host4" 8080 "$name" "$client4"
	podman rm -f -t 0 a b c d >/dev/null
	expect_nothing_left
}

# limit 180 s
# two containers have the same port at two addresses of the host; the kernel refuses any address as
# well, because of conmon's sockets, and nothing of that is left. So does every port if the plugin
# reserves it from processes of the host
test_podman_host_addresses() {
	podman_world
	network_create web
	podman_run one tcp/80 --network web -p "$host4":8080:80
	podman_run two tcp/80 --network web -p "$host4_second":8080:80
	expect_answer client tcp "$host4" 8080 one "$client4"
	expect_answer client tcp "$host4_second" 8080 two "$client4"
	expect_refusal 'address already in use' podman_run any tcp/80 --network web -p 8080:80
	podman_remove any
	expect_count 2 portmaps
	podman_remove one
	expect_no_answer client tcp "$host4" 8080
	expect_answer client tcp "$host4_second" 8080 two "$client4"
	podman_remove two
	expect_nothing_left
	! is_netavark || return 0
	network_reserves web
	expect_refusal 'address already in use' podman_run reserved tcp/80 --network web -p 8080:80
	podman_remove reserved
	expect_nothing_left
}

# limit 180 s
# a container is killed with -9: conmon cleans up, and podman start has the port again. With its
# conmon: there is no DEL, so it keeps the port until podman rm. With its namespace: the next one
# takes the port over, and keeps it when the first is removed
test_podman_killed() {
	podman_world
	network_create web
	killed_without_conmon
	killed_with_conmon
	killed_with_namespace
}

killed_without_conmon() {
	podman_run web tcp/80 --network web -p 8080:80
	kill -9 "$(podman_pid web)"
	podman wait web >/dev/null
	wait_until 30 nothing_left || fail "still mapped: $(bpftool map dump pinned "$pins/portmaps")"
	podman start web >/dev/null || fail "podman start"
	podman_serves web tcp/80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_nothing_left
}

killed_with_conmon() {
	podman_run web tcp/80 --network web -p 8080:80
	podman_kill_all_of web
	expect_no_answer client tcp "$host4" 8080
	expect_failure podman_run second tcp/80 --network web -p 8080:80
	expect_contains "$output" "taken by container web ($(podman inspect -f '{{.Id}}' web))"
	# Podman 5 removes a container without conmon at the second try.
	podman rm -f -t 0 second web >/dev/null 2>&1 || podman rm -f -t 0 second web >/dev/null
	expect_nothing_left
	podman_run web tcp/80 --network web -p 8080:80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_nothing_left
}

# Podman runs no DEL then.
killed_with_namespace() {
	local veth path
	podman_run web tcp/80 --network web -p 8080:80
	veth=$(ip -o link show type veth | sed -n 's/^[0-9]*: \(veth[^@:]*\).*/\1/p')
	path=$(podman inspect -f '{{.NetworkSettings.SandboxKey}}' web)
	podman_kill_all_of web
	umount "$path"
	rm "$path"
	wait_until 10 no_interface "$veth" || fail "$veth stays"
	podman_run second tcp/80 --network web -p 8080:80
	expect_answer client tcp "$host4" 8080 second "$client4"
	podman rm -f -t 0 web >/dev/null 2>&1 || true
	expect_answer client tcp "$host4" 8080 second "$client4"
	podman_remove second
	expect_count 0 portmaps
}

# limit 180 s
# Podman sends what data/ has, for machines without Podman
test_podman_sends() {
	podman_world 4
	[ "$(podman_version)" = 4.3.1 ] || skip "this is podman $(podman_version), the data is of 4.3.1"
	local published="-p 8080:80 -p 8080:80/udp -p $host4:8081:80 -p 9000-9001:9000-9001"
	recorder_install
	during 'podman network create' network_create web --ipv6 --subnet 10.89.0.0/24 --subnet fd00:89::/64
	during "podman run $published" podman_run web 'tcp/80 udp/80' --network web $published
	during 'podman restart' podman restart -t 0 web >/dev/null
	during 'podman network reload' podman network reload web >/dev/null
	during 'podman run -p 8080:80, which is taken' \
		expect_failure podman_run second tcp/80 --network web -p 8080:80
	during 'podman rm of that' podman_remove second
	during 'the container is killed' kill -9 "$(podman_pid web)"
	wait_until 30 nothing_left || fail "no DEL after the container's end"
	during 'podman start' podman start web >/dev/null
	during 'podman rm -f' podman_remove web
	during 'podman run -p 8082:80' podman_run third tcp/80 --network web -p 8082:80
	podman_kill_all_of third
	during 'podman rm -f of a container that was killed with its conmon' podman_remove third
	expect_recorded podman-4.3.1
	expect_equal '' "$(grep "^ADD during podman run $published" /run/recorder/listening)" \
		'who listens at ADD'
	expect_equal 'conmon' "$(sed -n 's/^ADD during podman network reload: .*:8080 .*"\(.*\)".*/\1/p' \
		/run/recorder/listening | sort -u)" 'who listens when it is added again'
	expect_equal '' "$(cat /run/recorder/stderr)" 'no warning, of conmon either'
}

# limit 120 s
# Podman loads the image and runs it, with a read-only root and no capability
test_image_podman() {
	image_needed
	podman_world
	podman load -i "$image_tar" >/run/out 2>&1 || fail "load: $(cat /run/out)"
	output=$(podman run --rm --read-only --cap-drop all --network none "$our_image" --version \
		2>/run/out) || fail "$(cat /run/out)"
	expect_equal "$("$build/bpf-portmap" --version)" "$output" version
}
