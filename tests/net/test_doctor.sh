# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor.sh - `bpf-portmap doctor`: a healthy host has no finding; each fault has its own, and
# the remedy that is printed mends it.

# nothing is wrong on a healthy host, and the last line says how many things were looked at; a port is not
# mapped; maps of another layout
test_doctor_healthy() {
	healthy_host
	healthy
	healthy 8080
	healthy 8080/tcp --from "$client4"
	by_hand 0 doctor
	expect_equal 1 "$(wc -l </run/out)" "lines of: $(cat /run/out)"
	expect_in /run/out "ok; not probed: 2 of 4 mapped ports   (--all shows them)"
	expect_equal '4 2' "$(item '.summary | "\(.ports) \(.ports_probed)"' doctor)"
	by_hand_says 0 'ok   (--all shows them)' doctor 8080/tcp
	by_hand_says 0 'ok; not probed: no packet was sent ' doctor --no-probe
	by_hand 0 doctor --all
	[ "$(grep -c '^ok ' /run/out)" -ge 30 ] || fail "few checks: $(cat /run/out)"
	by_hand 64 doctor 8080 9090
	by_hand 64 doctor --from no:where
	by_hand 64 doctor 0
	finds owner 'no container has port 9' 2 9
	meta_set 0 63
	doctor 2
	expect_contains "$(jq -r 'select(.check == "version").found' /run/doctor)" 'layout'
}

# --quick, for liveness: 0 on a host without containers and on a healthy one, 1 where programs are
# missing or where it cannot look; what concerns one port is left out. Without rights doctor could not
# look
test_doctor_quick() {
	by_hand 0 doctor --quick
	healthy_host
	by_hand 0 doctor --quick
	PREFIX="setpriv --reuid 1000 --clear-groups" by_hand_warns 3 'could not look at maps' doctor
	PREFIX="setpriv --reuid 1000 --clear-groups" doctor 3
	expect_equal rights "$(jq -r .check /run/doctor)"
	expect_equal '# run doctor as root' "$(jq -r .remedy /run/doctor)"
	nft 'table inet closed { chain forward { type filter hook forward priority filter; policy drop; }; }'
	by_hand 0 doctor --quick
	strip eth0
	by_hand_says 1 eth0 doctor --quick
	by_hand 0 attach
	PREFIX="setpriv --reuid 1000 --clear-groups" by_hand 1 doctor --quick
}

# the way to the container and back: forwarding that is off, routes, a neighbour with another MAC than
# the container's, a bridge, or the container's veth, that is down
test_doctor_way() {
	healthy_host
	breaks way 'does not forward IPv4' 2 sysctl -qw net.ipv4.ip_forward=0
	breaks way 'does not forward IPv6' 2 sysctl -qw net.ipv6.conf.all.forwarding=0
	breaks way 'come in by cni0' 2 sysctl -qw net.ipv4.conf.cni0.forwarding=0
	breaks way 'come in by eth0' 2 sysctl -qw net.ipv4.conf.eth0.forwarding=0
	breaks way "$(address4 web)" 2 ip route add "$(address4 web)/32" dev eth1
	breaks way 'no IPv4 route' 2 ip -n web route del default
	breaks way 'another MAC' 2 ip neighbour replace "$(address4 web)" \
		lladdr 02:00:00:00:00:99 dev cni0 nud permanent
	breaks way "$(host_veth web) is down" 2 ip link set "$(host_veth web)" down
	ip link set cni0 down
	doctor 2
	expect_contains "$(jq -r 'select(.check == "way").found' /run/doctor)" 'cni0 is down'
}

# nobody listens in the container, or only at a loopback address; one with a network stack of its own is
# not said to be broken: gVisor takes the addresses, Kata Containers hand the frames to a virtual machine
test_doctor_listener() {
	healthy_host
	healthy
	processes_end web
	finds listener 'nobody listens at tcp port' 2
	in_namespace web "$peer" serve tcp 127.0.0.1 80 --name web --background
	finds listener 'listens at tcp port 127.0.0.1:80 only' 2 8080
	serve_in_family
	healthy
	processes_end web
	ip -n web tuntap add tap0_kata mode tap
	finds way 'network stack of its own (gVisor' 3
	ip -n web link del tap0_kata
	ip -n web address flush dev eth0
	finds way 'network stack of its own (gVisor' 3
}
serve_in_family() {
	processes_end web
	serve_in web 80
}

# programs that are gone from interfaces, veths and sockets; an interface that came after the last
# container; a container that went without DEL
test_doctor_hooks() {
	healthy_host
	breaks programs 'eth0' 2 detach_ours eth0 ingress from_uplink
	breaks programs 'eth0' 2 detach_ours eth0 egress to_uplink
	breaks container-programs "$(host_veth web)" 2 \
		detach_ours "$(host_veth web)" ingress from_container
	if has_cgroup; then
		breaks socket-programs 'connect4' 2 rm "$pins/connect4"
	fi
	breaks settled 'since the last ADD or repair [late' 1 late_interface
	container_add near bridge
	breaks abandoned 'container near has gone without DEL' 1 container_die near
	# Where it had ports they are its no more.
	container_die web
	doctor 2
	expect_equal 'abandoned owner' "$(jq -r .check /run/doctor | sort -u | paste -sd ' ')"
	mend
	healthy
}
late_interface() {
	ip link add late type veth peer name late-peer
	ip link set late up
	ip address add 203.0.113.1/24 dev late
}

# a program of others before ours, or behind it
test_doctor_foreign_programs() {
	tcx_needed
	healthy_host
	strip eth1
	"$build/tests/tcx" count eth1 ingress /sys/fs/bpf/count
	"$build/bpf-portmap" attach >/dev/null 2>&1
	healthy
	strip eth1
	"$build/bpf-portmap" attach >/dev/null
	healthy
	"$build/tests/tcx" count eth1 ingress /sys/fs/bpf/count2
	finds settled 'since the last ADD or repair [eth1' 1
	"$build/bpf-portmap" attach >/dev/null
	finds runs-behind 'eth1' 1
}

# a veth that was moved, a bridge that has another MAC, and one that was made again
test_doctor_bridge() {
	local veth
	healthy_host
	veth=$(host_veth web)
	ip link set "$veth" nomaster
	finds way "$veth is no port of cni0" 2
	mend
	healthy
	breaks settled 'since the last ADD or repair [cni0' 1 ip link set cni0 address 02:00:00:00:00:77
	ip link delete cni0
	finds bridge "the bridge that $veth was a port of is gone" 2
	bridge_again "$veth"
	doctor 2
	expect_contains "$(jq -r .found /run/doctor)" "; $veth"
	mend
	healthy
}
bridge_again() {
	ip link add cni0 type bridge
	sysctl -qw net.ipv4.conf.cni0.forwarding=1 net.ipv6.conf.cni0.forwarding=1
	ip link set cni0 up
	ip link set "$1" master cni0
	ip address add "$bridge4/16" dev cni0
	address6_add "$bridge6/64" cni0
}

# addresses that the host does not have, or that another network's conflist excludes; "uplinks" that
# match nothing
test_doctor_addresses() {
	healthy_host
	conflist other bridge "$(with_ours '{"snatAddresses": ["203.0.113.9"]}') | $other_network"
	breaks snat-address '203.0.113.9' 2 container_add db other
	breaks host-ip '203.0.113.7' 2 container_start near bridge -p 203.0.113.7:5432:80/tcp
	conflist third bridge "$(with_ours '{"excludeInterfaces": ["eth1"]}') | $third_network"
	container_start third third -p 81:80/tcp
	container_start fourth bridge -p "$host4_second:82:80/tcp"
	expect_answer server tcp "$host4_second" 82 fourth # an address that is named is meant
	container_remove fourth bridge
	container_remove third third
	conflist named bridge "$(with_ours '{"uplinks": ["eth7"]}') | $third_network"
	container_start named named -p 83:80/tcp
	doctor 2
	expect_contains "$(jq -r 'select(.check == "uplinks").found' /run/doctor)" 'matches no interface'
}

# a port that the host's own connections may get; of several such ports the last remedy reserves all
test_doctor_ephemeral() {
	healthy_host
	breaks ephemeral '*:8080/tcp is among' 1 \
		sysctl -qw net.ipv4.ip_local_port_range='8000 9000'
	expect_equal 8080 "$(sysctl -n net.ipv4.ip_local_reserved_ports)"
	sysctl -qw net.ipv4.ip_local_reserved_ports=7000
	sysctl -qw net.ipv4.ip_local_port_range='5000 9000'
	finds ephemeral '*:5353/udp is among' 1
	# In their order, as somebody pastes them.
	bash -ec "$(jq -r .remedy /run/doctor)" >/run/mend
	expect_equal 5353,7000,8080 "$(sysctl -n net.ipv4.ip_local_reserved_ports)"
	healthy
}

# a container may name its interface as a command: pasting a remedy does not run it
test_doctor_interface_named_as_command() {
	local name=';>$PWNED;#'"'" address
	healthy_host
	address=$(address6 web)
	export PWNED=/run/pwned
	ip -n web link set eth0 down
	ip -n web link set eth0 name "$name"
	finds way "$name in shop/web-0 is down" 2
	mend
	[ ! -e /run/pwned ] || fail "the container had a command run: $(cat /run/doctor)"
	# Its address of IPv6 went with it, but not with a bridge plugin that sets keep_addr_on_down.
	ip -n web address replace "$address/64" dev "$name" nodad
	finds way 'no IPv6 route' 2
	mend
	healthy
	ip link set eth0 mtu 1400
	finds mtu 'MTU of 1500, eth0 of 1400' 1
	mend
	[ ! -e /run/pwned ] || fail "the container had a command run: $(cat /run/doctor)"
	expect_equal 1400 "$(ip -n web -j link show dev "$name" | jq '.[0].mtu')"
}

# pins that are gone, the BPF file system that is read-only, or not mounted
test_doctor_pins() {
	healthy_host
	healthy
	rm "$pins/half_open"
	finds pins 'are missing' 2
	mend
	healthy
	mount -o remount,ro /sys/fs/bpf
	finds bpffs 'read-only' 2
	mend
	healthy
	umount /sys/fs/bpf
	finds bpffs 'no BPF file system' 2
	mend
	healthy
	umount /sys/fs/bpf
	mount -t bpf bpf /sys/fs/bpf
	finds pins 'the pins of their maps are gone' 2
	mend
	healthy
}

# conflists that runtimes read: not JSON, without the capability, with portmap
test_doctor_conflists() {
	local file=/etc/cni/net.d/10-net.conflist
	own_directory /etc/cni/net.d
	healthy_host
	cp /run/conf/bridge.conflist "$file"
	breaks conflist-portmap 'has portmap as well' 2 \
		conflist_edit '.plugins += [{"type": "portmap"}]'
	breaks conflist-capability 'tell it no ports' 2 conflist_edit 'del(.plugins[].capabilities)'
	breaks conflist-masquerade 'bridge masquerades' 1 conflist_edit '.plugins[].ipMasq = true'
	breaks conflist-masquerade 'flannel masquerades' 1 conflist_edit \
		'.plugins[0] = {type: "flannel", delegate: {isDefaultGateway: true}} | .plugins[-1].ipMasq = true'
	healthy
	jq "$only_main"' | .plugins += [{"type": "portmap"}]' "$file" >/etc/cni/net.d/05-old.conflist
	finds conflist-first '05-old.conflist' 1
	rm /etc/cni/net.d/05-old.conflist
	echo '{' >"$file"
	finds conflist 'is no conflist' 2
}
conflist_edit() {
	jq "$1" /etc/cni/net.d/10-net.conflist >/run/edited
	cat /run/edited >/etc/cni/net.d/10-net.conflist
}

# with 50 containers it computes for less than a second; of many findings the first are shown, and
# how many more there are
# limit 180 s
test_doctor_many() {
	local number took computed kilobytes
	healthy_host
	namespace_add web{1..50}
	for number in {1..50}; do
		container_start "web$number" bridge -p $((9000 + number)):80/tcp
	done
	"$build/tests/fill" measure "$build/bpf-portmap" doctor >/run/out 2>/run/err ||
		fail "$(cat /run/out /run/err)"
	read -r took computed kilobytes < <(tail -n 1 /run/err)
	echo "note: doctor, 51 containers: $took ms, of which it computed $computed ms; $kilobytes KB"
	[ "$computed" -le $((1000 * SLOWER)) ] || fail "$computed ms"
	for number in {1..50}; do processes_end "web$number"; done
	finds listener 'nobody listens' 2
	expect_equal '8 92' "$(jq -rs '"\(length) \(map(.more) | add)"' /run/doctor)"
	by_hand_says 2 'more   (--all shows them)' doctor
	doctor 2 --all
	expect_equal '100 0' "$(jq -rs '"\(length) \(map(.more) | add)"' /run/doctor)"
}

# each code of a finding is explained, and docs/findings.md says the same; other words are refused
test_doctor_explain() {
	local code
	local said page
	healthy_host
	by_hand 0 doctor --all --json
	mkdir /run/page
	awk '/^## / { file = "/run/page/" $2; next } file && NF { print >file }' "$project/docs/findings.md"
	for code in $({ jq -r '.items[].code' /run/out; ls /run/page; } | sort -u); do
		by_hand 0 doctor --explain "$code"
		mapfile -t said </run/out
		mapfile -t page <"/run/page/$code"
		expect_equal "${page[*]} docs/findings.md#$code" "${said[*]}"
	done
	expect_equal '' "$(grep -o '"probe-[a-z]*"' "$project"/user/operator/doctor/*.c | sed 's/.*"\(.*\)"/\1/' | sort -u |
		while read -r code; do grep -q "^## $code$" "$project/docs/findings.md" || echo "$code"; done)"
	by_hand_warns 64 'no finding has the code "nonsense"' doctor --explain nonsense
}
