# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_podman5.sh - what only Podman 5 has, beside the tests of any Podman.

. "$folder/test_podman.sh"

inspect() { podman network inspect web | jq -r ".[0] | $1"; }

# limit 180 s
# podman network create -d bpf-portmap: what it chooses, options with commas, an error's text, a
# subnet that is in use; what a container of it shows in podman inspect; no bridge is left with the
# last container, and the state may be lost
test_podman5_network() {
	podman_world 5
	network_create web --ipv6 -o mtu=1400 -o 'sourceRanges=192.0.2.0/24,2001:db8:1::/64' --label a=b
	expect_equal 'bpf-portmap b true podman 2 192.0.2.0/24,2001:db8:1::/64' \
		"$(inspect '"\(.driver) \(.labels.a) \(.dns_enabled) \(.network_interface[:6]) \(.subnets | length) \(
			.options.sourceRanges)"')" 'podman network inspect'
	expect_failure network_create bad -o fastPath=fast
	expect_contains "$output" 'bpf-portmap failed: netavark: "fastPath" is "fast", must be "off"'
	expect_refusal 'overlaps with that of interface eth0' network_create bad --subnet 192.0.2.0/25
	expect_failure podman network inspect bad
	podman_run web tcp/80 --network web -p 8080:80 --network-alias www --mac-address 02:00:00:00:00:07
	expect_equal "$(ip -n "$(basename "$(podman inspect -f '{{.NetworkSettings.SandboxKey}}' web)")" \
		-j address show eth0 | jq -r '.[0] | "\(.address) \(.mtu) \(.addr_info[0].local)"')" \
		"$(podman inspect web | jq -r '.[0].NetworkSettings.Networks.web |
			"\(.MacAddress) 1400 \(.IPAddress)"')" 'podman inspect'
	expect_answer client tcp "$host6" 8080 web "$client6"
	expect_no_answer server tcp "$host4_second" 8080
	rm -r /run/bpf-portmap-netavark
	podman restart -t 0 web >/dev/null || fail "podman restart"
	podman_serves web tcp/80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_nothing_left
	[ ! -e "/sys/class/net/$(inspect .network_interface)" ] || fail "the bridge is left"
	podman network rm web >/dev/null || fail "podman network rm"
}

netns_of() { basename "$(podman inspect -f '{{.NetworkSettings.SandboxKey}}' "$1")"; }

# limit 180 s
# what podman network create and run can ask: name servers, two subnets, an internal network, fixed
# addresses and names of interfaces, SCTP; or it is refused with the reason
test_podman5_options() {
	local row
	podman_world 5
	network_create web --subnet 10.130.0.0/24 --ip-range 10.130.0.128/25 --gateway 10.130.0.254 \
		--subnet fd00:130::/64 --subnet fd00:131::/64 --dns 192.0.2.53 --disable-dns=false
	network_create inner --internal --disable-dns
	podman_run web tcp/80 --network inner --network \
		web:ip=10.130.0.200,ip6=fd00:130::99,mac=02:00:00:00:00:08,interface_name=foo \
		-p 8080:80 -p 9999:3868/sctp
	expect_equal '02:00:00:00:00:08 10.130.0.200 fd00:130::99 fd00:131::2' \
		"$(ip -n "$(netns_of web)" -j address show foo | jq -r '.[0] | "\(.address) \(
			[.addr_info[] | select(.scope == "global") | .local] | sort | join(" "))"')" addresses
	expect_equal 'default via 10.130.0.254 dev foo' "$(ip -n "$(netns_of web)" route show default | sed 's/ *$//')" \
		'default route'
	expect_equal '10.130.0.254 192.0.2.53' \
		"$(head -n 1 /run/containers/networks/aardvark-dns/web)" "where aardvark-dns listens, and whom it asks"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_answer client tcp "$host6" 8080 web "$client6"
	nsenter --net=/proc/"$(podman_pid web)"/ns/net "$sctp" serve sctp any 3868 --name web --background
	expect_answer client sctp "$host4" 9999 web "$client4"
	podman_remove web
	expect_nothing_left
	expect_failure podman run --rm --network web:host_interface_name=x --rootfs "$rootfs" /bin/sh -c true
	expect_contains "$output" 'unknown option "host_interface_name" for one container'
	while read -r row; do
		expect_refusal "${row#* # }" network_create bad ${row% # *}
	done <<-'ROWS'
		-o isolate=strict # option isolate=strict: must be true or false
		-o vrf=red # unknown option "vrf"
		-o mode=unmanaged # unknown option "mode"
		--subnet 10.131.0.0/24 --subnet 10.132.0.0/24 # 2 IPv4 subnets
		--ipam-driver none # --ipam-driver none is not supported
		--ipam-driver dhcp # --ipam-driver dhcp is not supported
		--interface-name eth0 # the name eth0 is that of an interface of the host
		--route 10.9.0.0/16,10.130.0.2,5 # has a metric
	ROWS
}

# limit 180 s
# a network of our driver beside one of Podman's own: a container on both, and one on each, keep their
# ports; networks that Podman creates later have other subnets
test_podman5_beside_bridge() {
	podman_world 5
	network_create web
	podman network create --disable-dns own >/dev/null
	[ "$(inspect .subnets[0].subnet)" != "$(podman network inspect -f '{{(index .Subnets 0).Subnet}}' own)" ] ||
		fail "both have one subnet"
	podman_run ours tcp/80 --network web -p 8080:80
	podman_run theirs tcp/80 --network own -p 8081:80
	expect_answer client tcp "$host4" 8080 ours "$client4"
	expect_answer client tcp "$host4" 8081 theirs
	podman network connect own ours || fail "podman network connect"
	podman network disconnect web ours || fail "podman network disconnect"
	podman network connect web ours || fail "podman network connect again"
	expect_answer client tcp "$host4" 8080 ours
	podman_remove ours
	podman_remove theirs
	expect_nothing_left
}

# kill_all_of SESSION: its processes, and conmon, which has left it and holds the port. There are only
# the test's own processes here.
kill_all_of() { wait_until 10 all_killed "$1" || fail "a process stays"; }

all_killed() {
	local pids
	pids=$(pgrep -s "$1"; pgrep -x 'conmon|runc' || true)
	[ -n "$pids" ] || return 0
	kill -9 $pids 2>/dev/null
	return 1
}

# Killed after setup, and before it has written down the namespace, Podman calls no teardown.
free_what_podman_forgot() {
	[ "$(map_count portmaps)" != 0 ] || return 0
	expect_refusal 'is taken by container half' podman_run web tcp/80 --network web -p 8080:80
	[[ $output =~ (ip link delete veth[0-9a-f]*) ]] || fail "no remedy in $output"
	${BASH_REMATCH[1]}
	podman_remove web
}

# limit 180 s
# podman run is killed with -9, with all that it has started, at several moments: podman rm and a
# further podman run put it right, or what the error says where Podman has forgotten its namespace
test_podman5_killed() {
	local delay
	podman_world 5
	network_create web
	podman_run web tcp/80 --network web -p 8080:80
	podman_remove web
	for delay in 0.05 0.1 0.15 0.2 0.3 0.4; do
		setsid bash -c 'exec podman --root /run/podman/storage --runroot /run/podman/run \
			--storage-driver vfs run -d --name half --network web -p 8080:80 --rootfs '"$rootfs"' \
			/bin/sh -c "exec sleep 99"' >/run/out 2>&1 </dev/null &
		sleep "$delay"
		kill_all_of $!
		wait 2>/dev/null
		podman rm -f -t 0 half >/run/out 2>&1 || podman rm -f -t 0 half >/run/out 2>&1 || true
		free_what_podman_forgot
		podman_run web tcp/80 --network web -p 8080:80
		expect_answer client tcp "$host4" 8080 web "$client4"
		podman_remove web
	done
	"$build/bpf-portmap" gc >/dev/null
	expect_nothing_left
}

# With its file system: not by podman exec, which leaves a chroot that the test runs in
container_runs() {
	nsenter --net --mount --root --wd=/ --target "$(podman_pid "$1")" /bin/busybox timeout $((10 * SLOWER)) \
		/bin/busybox "${@:2}"
}

# found_by CONTAINER NAME: the addresses that it gets for the name, sorted, by its own resolv.conf
found_by() {
	container_runs "$1" nslookup "$2" 2>/run/results/nslookup |
		sed -n '/^Name:/,$s/^Address[^:]*: *\([^ ]*\).*/\1/p' | sort -u | xargs
}

finds() { [ "$(found_by "$1" "$2")" = "$3" ]; }

# expect_found CONTAINER NAME [ADDRESSES]: the server reads its files some time after its signal.
expect_found() {
	wait_until 10 finds "$1" "$2" "${3:-}" ||
		fail "$1 asks for $2: $(found_by "$1" "$2"), not ${3:-nothing}; $(cat /run/results/nslookup)
$(head /run/containers/networks/aardvark-dns/* 2>&1)"
}

# addresses_in NETWORK NAME: of a container, sorted
addresses_in() {
	podman inspect -f '{{with index .NetworkSettings.Networks "'"$1"'"}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}' \
		"$2" | xargs -n 1 | sort -u | xargs
}

servers() { find /proc/[0-9]*/comm -exec grep -lx aardvark-dns {} + 2>/dev/null | wc -l; }
no_server() { [ "$(servers)" = 0 ]; }

# limit 180 s
# containers of a network find each other by name and alias, of both families, by the one aardvark-dns
# that Podman's own networks have too; on two networks they find those of both; after `podman stop`
# and `network disconnect` nobody finds them; an internal network has names, too
test_podman5_names() {
	podman_world 5
	network_create web --ipv6
	network_create other --internal
	podman network create own >/dev/null
	podman_run one tcp/80 --network web:alias=first -p 8080:80
	podman_run two tcp/80 --network web
	podman_run apart tcp/80 --network other
	podman_run theirs tcp/80 --network own
	expect_found two one "$(addresses_in web one)"
	expect_found two first "$(addresses_in web one)"
	expect_found apart one
	expect_found two apart
	podman_run both tcp/80 --network web,other,own
	expect_found both one "$(addresses_in web one)"
	expect_found both apart "$(addresses_in other apart)"
	expect_found both theirs "$(addresses_in own theirs)"
	expect_found theirs both "$(addresses_in own both)"
	expect_found apart both "$(addresses_in other both)"
	expect_equal 1 "$(servers)" "aardvark-dns runs so often"
	podman stop -t 0 one >/run/out 2>&1 || fail "podman stop: $(cat /run/out)"
	expect_found two one
	podman start one >/dev/null || fail "podman start"
	expect_found two first "$(addresses_in web one)"
	expect_equal '' "$(ip -n "$(netns_of apart)" route show default)" "default route of an internal network"
	podman network update --dns-add 192.0.2.53 web || fail "podman network update"
	podman network disconnect other both || fail "podman network disconnect"
	expect_found apart both
	expect_contains "$(head -n 1 /run/containers/networks/aardvark-dns/web)" ' 192.0.2.53'
	podman network connect --alias third other one || fail "podman network connect"
	expect_found apart third "$(addresses_in other one)"
	podman rm -f -t 0 one two apart theirs both >/run/out 2>&1 || fail "podman rm: $(cat /run/out)"
	expect_equal '' "$(grep -i 'error\|warn' /run/out || true)" "what podman rm says"
	wait_until 10 no_server || fail "aardvark-dns stays"
	expect_nothing_left
}
