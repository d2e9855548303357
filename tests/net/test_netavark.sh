# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_netavark.sh - the driver for Podman 5, called as netavark calls it. tests/engines has Podman
# itself.

names=/run/containers/networks/aardvark-dns

driver() { "$build/netavark-bpf-portmap" "$@"; }

# driver_error TEXT COMMAND...: it fails with that in its error, and says nothing else on stdout
driver_error() {
	local text=$1 status=0
	shift
	"$@" >/run/out 2>/run/err || status=$?
	expect_equal 1 "$status" "status of $*: $(cat /run/out /run/err)"
	expect_equal error "$(jq -r 'keys[]' /run/out)" "keys of $(cat /run/out)"
	expect_contains "$(jq -r .error /run/out)" "$text"
}

# network [FILTER]: what Podman hands to create, through a jq filter
network_text='"name": "web", "id": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	"driver": "bpf-portmap", "created": "2026-01-01",
	"subnets": [{"subnet": "10.89.0.0/24", "gateway": "10.89.0.1"},
		{"subnet": "fd00:89::/64", "gateway": "fd00:89::1"}], "ipv6_enabled": true,
	"internal": false, "dns_enabled": false, "labels": {"a": "b"}, "options": {}, "ipam_options": {}'
network() { jq "${1:-.}" <<<"{$network_text}"; }

# request NAME NUMBER PORTS [FILTER]: what netavark hands to setup and teardown. The container has
# the addresses with that number, PORTS are in JSON.
request() {
	local text="{\"container_id\": \"id-$1\", \"container_name\": \"$1\", \"port_mappings\": $3,
		\"network\": {$network_text, \"network_interface\": \"podman7\"}, \"network_options\": {
		\"interface_name\": \"eth0\", \"static_ips\": [\"10.89.0.$2\", \"fd00:89::$2\"],
		\"static_mac\": null, \"aliases\": null}}"
	if [ -n "${4:-}" ]; then jq --arg number "$2" "$4" <<<"$text"; else echo "$text"; fi
}

port() { # HOST-PORT CONTAINER-PORT [PROTOCOL [HOST-IP [RANGE]]]
	printf '{"host_port": %s, "container_port": %s, "protocol": "%s", "host_ip": "%s", "range": %s}' \
		"$1" "$2" "${3:-tcp}" "${4:-}" "${5:-1}"
}

# setup NAME NUMBER PORTS [FILTER]: its status is in /run/status
setup() {
	[ -e "/run/netns/$1" ] || namespace_add "$1"
	request "$@" >"/run/request.$1"
	driver setup "/run/netns/$1" <"/run/request.$1" >/run/status ||
		fail "setup of $1: $(cat /run/status)"
	wait_until 3 addresses_usable || true
}

teardown() {
	driver teardown "/run/netns/$1" <"/run/request.$1" >/run/out || fail "teardown: $(cat /run/out)"
	expect_equal '' "$(cat /run/out)" "teardown's output"
}

# Of a network only its lock's file stays, which is empty.
expect_nothing_left() {
	expect_count "0 0" 'portmaps attachments'
	[ ! -e /sys/class/net/podman7 ] || fail "the bridge is left"
	expect_equal '' "$(find /run/bpf-portmap-netavark -type f ! -path '*/locks/*')" \
		state
	expect_equal '' "$(rules_of_network)" "rules of iptables"
	[ ! -e "$names" ] || expect_equal '' "$(ls "$names")" "what aardvark-dns reads"
}

rules_of_network() { { iptables-save; ip6tables-save; } | grep -E 'podman7|10\.89\.0|fd00:89' || true; }

# aardvark-dns is not installed.
no_server() {
	local folder
	for folder in /usr/lib/podman /usr/libexec/podman; do
		[ ! -d "$folder" ] || mount -t tmpfs tmpfs "$folder"
	done
}

# of the driver for Podman: create completes the network, and refuses what setup would refuse, with
# what there is instead; what it does not know stays
test_netavark_create() {
	local filter chosen
	cp -a /etc /run/etc
	mount --bind /run/etc /etc
	mkdir -p /etc/containers/networks
	driver create <<<"$(network 'del(.subnets)')" >/run/out || fail "$(cat /run/out)"
	jq -e '(.name, .id, .driver, .created, .labels.a) as $x | .network_interface[:6] == "podman" and
		(.subnets | length == 2) and (.dns_enabled | not) and .ipam_options.driver == "host-local"' \
		/run/out >/dev/null || fail "$(cat /run/out)"
	chosen=$(jq -r .network_interface /run/out)
	network '.name = "first" | .network_interface = "podman7" | .subnets = [{subnet: "10.91.0.0/24"}]' \
		>/etc/containers/networks/first.json
	network '.name = "second" | .subnets = [] | .network_interface = "'"$chosen"'"' >/etc/containers/networks/second.json
	driver create <<<"$(network 'del(.subnets)')" >/run/out || fail "$(cat /run/out)"
	expect_contains "$(jq -r .network_interface /run/out)" podman
	[ "$(jq -r .network_interface /run/out)" != "$chosen" ] || fail "two networks have the bridge $chosen"
	rm /etc/containers/networks/second.json
	driver create <<<"$(network '.internal = true | .subnets[1].subnet = "10.90.0.0/24"')" >/run/out ||
		fail "$(cat /run/out)"
	driver create <<<"$(network '.options = {mtu: "1400", isolate: "1", ipMasq: "false",
		sourceRanges: "10.0.0.0/8,!10.1.0.0/16", neverPorts: "22,8000-8010", maxFlows: "10",
		fastPath: "off", uplinks: "[\"eth0\"]"} | .network_dns_servers = ["192.0.2.53"] | .dns_enabled = true')" >/run/out ||
		fail "$(cat /run/out)"
	# Where there is no aardvark-dns, containers get that server.
	expect_equal 'true podman' "$(jq -r '"\(.dns_enabled) \(.network_interface[:6])"' /run/out)"
	no_server
	driver create <<<"$(network 'del(.subnets) | .dns_enabled = true')" >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_equal false "$(jq .dns_enabled /run/out)" "names without a server"
	expect_in /run/err 'containers of network "web" will not find each other by name: there is no aardvark-dns in'
	while read -r filter; do
		driver_error "${filter#* # }" driver create <<<"$(network "${filter% # *}")"
	done <<-'ROWS'
		.options.foo = "x" # unknown option "foo": there are
		.options.backend = "x" # unknown option
		.options.mtu = "5" # "mtu" is 5, must be 68 to 65535
		.options.mtu = "x" # must be a number, 68 to 65535
		.options.mtu = "1279" # option mtu=1279: IPv6 needs 1280 or more
		.options.vlan = "7" # option vlan is not supported: the host ports
		.options.isolate = "strict" # isolate=strict: must be true or false
		.options.vrf = "x" # unknown option "vrf"
		.options.mode = "unmanaged" # unknown option "mode"
		.options = {mtu: "5", mode: "x"} # neverPorts; "mtu" is 5, must be 68 to 65535
		.options.fastPath = "fast" # must be "off", "established" or "always"
		.options.sourceRanges = "10.0.0.0/8,x" # "x", which is no range of addresses
		.options.neverPorts = "[1," # must be a list
		.options.reserveHostPorts = "true" # Podman itself listens
		.options.cni_path = "/nowhere" # there is no CNI plugin "bridge" in /nowhere
		.options.cni_path = "x" # absolute paths
		.options.cni_path = "/usr/lib/cni:x" # absolute paths
		.options.mtu = 1400 # must be a string
		.options = [] # "options" must be an object
		.network_interface = "eth0" # the name eth0 is that of an interface of the host
		.network_interface = "podman7" # the name podman7 is that of network first
		.network_interface = "../x" # network_interface
		.name = "../x" # name
		.subnets[0].subnet = "192.0.2.0/25" # overlaps with that of interface eth0
		.subnets[0].subnet = "x" # "x" is no subnet
		.subnets = [7] # subnets
		.subnets[1].subnet = "10.90.0.0/24" # 2 IPv4 subnets: the CNI plugin bridge gives
		.subnets[0].subnet = "fd00:89::/56" # overlaps with another one of this network
		.subnets[0].subnet = "10.91.0.128/25" # overlaps with that of network first
		.ipam_options.driver = "dhcp" # --ipam-driver dhcp is not supported
		.routes = [{destination: "10.0.0.0/8", gateway: "10.89.0.9", metric: 5}] # has a metric
		.routes = [{destination: "10.0.0.0/8", gateway: "x"}] # is no route
		.routes = [{destination: "10.0.0.0/8", gateway: "fd00:89::9"}] # routes[0]: the gateway fd00:89::9 is in no IPv4 subnet
		.routes = [{destination: "10.0.0.0/8", gateway: "10.90.0.9"}] # routes[0]: the gateway 10.90.0.9 is in no IPv4 subnet
	ROWS
}

# of the driver for Podman: what setup gives a container, of both families: addresses, MTU, routes,
# MAC address, host ports, masquerade; its status; teardown leaves nothing, also a second one and
# where the namespace is gone
test_netavark_setup() {
	local before
	# As Podman, which listens on each port before it calls the driver.
	"$peer" serve tcp any 8080 --name podman --background
	setup web 5 "[$(port 8080 80 tcp)]" 2>/run/err
	expect_equal '' "$(cat /run/err)" warnings
	teardown web
	before=$(state_show)
	setup web 5 "[$(port 8080 80 tcp,udp),$(port 8081 80 tcp "$host4_second"),$(port 9000 80 tcp '' 3)]" \
		'.network_options.static_mac = "02:00:00:00:00:07" | .network.options.mtu = "1400" |
		.network.network_dns_servers = ["192.0.2.53"] |
		.network.routes = [{destination: "10.99.0.0/16", gateway: "10.89.0.9"}]'
	cat >/run/expected <<-'JSON'
	{"dns_search_domains":[],"dns_server_ips":["192.0.2.53"],"interfaces":{"eth0":{"mac_address":"02:00:00:00:00:07","subnets":[{"gateway":"10.89.0.1","ipnet":"10.89.0.5/24"},{"gateway":"fd00:89::1","ipnet":"fd00:89::5/64"}]}}}
	JSON
	expect_same_json /run/expected /run/status
	serve_in web 80
	expect_serves web
	expect_answer client tcp "$host4_second" 8081 web "$client4"
	expect_no_answer client tcp "$host4" 8081
	in_namespace web "$peer" serve tcp any 82 --name web --background
	expect_answer client tcp "$host4" 9002 web "$client4"
	expect_contains "$(ip -n web link show eth0)" 'mtu 1400'
	expect_contains "$(ip -n web route)" '10.99.0.0/16 via 10.89.0.9'
	serve_in server 80
	expect_answer web tcp "$server4" 80 server "$host4_second"
	expect_answer web tcp "$server6" 80 server "$host6_second"
	expect_contains "$(bpf-portmap_list)" 'web'
	teardown web
	expect_nothing_left
	expect_same_state "$before"
	teardown web
	setup gone 6 "[$(port 8080 80)]"
	ip netns delete gone
	teardown gone
	expect_nothing_left
	setup gone 6 "[$(port 8080 80)]"
	umount /run/netns/gone
	teardown gone
	expect_nothing_left
	# Whose namespace has gone without a teardown is removed with the next one of the network.
	setup lost 6 "[$(port 8080 80)]" '.network.options.isolate = "true"'
	touch /run/bpf-portmap-netavark/results/.cnirun-web,killed,eth0
	setup web 5 '[]'
	teardown web
	expect_contains "$(bpf-portmap_list)" lost
	setup web 5 '[]'
	ip netns delete lost
	teardown web
	expect_nothing_left
}

bpf-portmap_list() { "$build/bpf-portmap" list; }

# of the driver for Podman: an internal network has no default route and no ports; one that is
# isolated does not reach another one that is
test_netavark_internal_and_isolated() {
	setup one 5 '[]'
	teardown one
	setup inner 9 "[$(port 8080 80)]" '.network.internal = true | del(.network.subnets[].gateway)'
	expect_equal '' "$(ip -n inner route show default)$(ip -n inner -6 route show default)" routes
	expect_no_answer client tcp "$host4" 8080
	teardown inner
	expect_nothing_left
	setup one 5 "[$(port 8080 80)]" '.network.options.isolate = "true"'
	serve_in one 80
	setup two 5 '[]' '.network |= (.name = "other" | .network_interface = "podman8" |
		.options.isolate = "true" | .subnets = [{subnet: "10.90.0.0/24", gateway: "10.90.0.1"}]) |
		.network_options.static_ips = ["10.90.0.5"]'
	expect_no_answer two tcp 10.89.0.5 80
	expect_answer client tcp "$host4" 8080 one "$client4"
	setup three 6 '[]' '.network.options.isolate = "true"'
	teardown one
	expect_contains "$(rules_of_network)" '-i podman7 ! -o podman7'
	teardown three
	teardown two
	expect_nothing_left
	expect_equal '' "$(iptables-save | grep podman8 || true)" "rules of the other network"
}

# of the driver for Podman: when several containers of an isolated network start at once, the plugin
# firewall may write the rules for the bridge more than once; the last container takes all of them with
# it. A teardown that cannot read what setup has written down fails and keeps it: the next one needs it
test_netavark_isolated_at_once() {
	setup one 5 '[]' '.network.options.isolate = "true"'
	for_bridge_again iptables
	for_bridge_again ip6tables
	teardown one
	expect_nothing_left
	setup one 5 '[]' '.network.options.isolate = "true"'
	change one '.options = {} | .subnets = []'
	driver_error 'results/web-id-one-eth0: Too many open files' \
		strace -qq -o /dev/null -P /run/bpf-portmap-netavark/results/web-id-one-eth0 \
		-e inject=openat:error=EMFILE "$build/netavark-bpf-portmap" teardown /run/netns/one </run/request.one
	teardown one
	expect_nothing_left
}

# for_bridge_again PROGRAM: what it has of the rules for the bridge is there twice
for_bridge_again() {
	local rule
	"$1" -S | grep -e '-A CNI-ISOLATION-STAGE.* podman7' >/run/rules
	while read -r rule; do eval "$1 $rule"; done </run/rules
}

# of the driver for Podman: teardown undoes what setup has done, whatever the network has become since
# then; where the state is lost, by the network as it is
test_netavark_network_changed() {
	local isolated='.network.options.isolate = "true"'
	setup one 5 '[]' "$isolated"
	setup two 6 '[]' "$isolated"
	setup three 7 '[]' "$isolated"
	setup four 5 '[]' "$isolated"' | .network.network_interface = "podman9" |
		.network.subnets = [{subnet: "10.92.0.0/24", gateway: "10.92.0.1"}] |
		.network_options.static_ips = ["10.92.0.5"]'
	ip netns delete four
	change one '.options = {mtu: "x", isolate: "false", foo: "bar"} | .network_interface = "podman8"'
	teardown one
	[ ! -e /sys/class/net/podman9 ] || fail "the former bridge is left"
	expect_equal '' "$(iptables-save | grep podman9 || true)" "rules for the former bridge"
	change two 'del(.network_interface, .options) | .subnets = 7 | .internal = "x"'
	teardown two
	setup five 8 '[]' "$isolated"
	rm -r /run/bpf-portmap-netavark
	change three '.options = {foo: "bar", isolate: "true"}'
	driver teardown /run/netns/three </run/request.three 2>/run/err || fail "teardown without the state"
	expect_in /run/err 'unknown option "foo"'
	expect_contains "$(rules_of_network)" '-i podman7 ! -o podman7'
	teardown five
	[ ! -e /sys/class/net/podman7 ] || fail "the bridge is left"
	expect_equal '' "$(rules_of_network | grep podman7 || true)" "rules for the bridge"
}

change() {
	jq ".network |= ($2)" "/run/request.$1" >/run/changed
	mv /run/changed "/run/request.$1"
}

# of the driver for Podman: a port that a container has is refused with its name, and nothing of
# that is left; of four at once one has it; with four that are torn down at once the bridge goes
test_netavark_conflict() {
	local before name
	setup web 5 "[$(port 8080 80)]"
	before=$(state_show)
	namespace_add second
	request second 6 "[$(port 9090 80),$(port 8080 80)]" >/run/request.second
	driver_error 'host port 8080/tcp of any IPv4 address is taken by container web (id-web)' \
		driver setup /run/netns/second </run/request.second
	expect_equal '' "$(ip -n second -o link show type veth)" "interfaces of the second"
	expect_same_state "$before"
	teardown second
	teardown web
	for name in 11 12 13 14; do
		namespace_add "c$name"
		request "c$name" "$name" "[$(port 8080 80)]" >"/run/request.c$name"
		driver setup "/run/netns/c$name" <"/run/request.c$name" >"/run/out.$name" 2>/run/err &
	done
	wait
	expect_equal '1 3' "$(cat /run/out.* | jq -s -r '"\(map(select(.interfaces)) | length) \(
		map(select(.error | strings | contains("is taken by container"))) | length)"')" \
		"who has it, and who not: $(cat /run/out.*)"
	for name in 11 12 13 14; do
		driver setup "/run/netns/c$name" <<<"$(request "c$name" "$name" '[]')" >/run/out || fail "$(cat /run/out)"
	done
	for name in 11 12 13 14; do
		driver teardown "/run/netns/c$name" <"/run/request.c$name" >"/run/out.$name" 2>&1 &
	done
	wait
	expect_equal '' "$(cat /run/out.*)" "of four teardowns at once"
	expect_nothing_left
}

# With a jq filter, as setup() has
named='.network.dns_enabled = true'

names_needed() {
	[ -x /usr/lib/podman/aardvark-dns ] || [ -x /usr/libexec/podman/aardvark-dns ] || skip "there is no aardvark-dns"
}

# found_by CONTAINER SERVER NAME: the addresses that it gets for the name, sorted
found_by() {
	in_namespace "$1" timeout $((10 * SLOWER)) busybox nslookup "$3" "$2" 2>&1 |
		sed -n '/^Name:/,$s/^Address[^:]*: *\([^ ]*\).*/\1/p' | sort -u | xargs
}

finds() { [ "$(found_by "$1" "$2" "$3")" = "${4:-}" ]; }

# expect_found CONTAINER SERVER NAME [ADDRESSES]: aardvark-dns reads its files some time after the
# signal.
expect_found() {
	wait_until 10 finds "$@" || fail "$1 asks $2 for $3: $(found_by "$1" "$2" "$3"), not ${4:-nothing}:
$(head "$names"/*)"
}

# of the driver for Podman: containers of a network find each other by name and alias, of both
# families, by aardvark-dns, which ends with the last of them; not those of another network. A
# container that is gone without a teardown loses its name with the next call; a server that was
# killed is started again; without one there is a warning, and the container works
test_netavark_names() {
	local other='.network.name = "other" | .network.network_interface = "podman8" | .network.internal = true |
		.network.subnets = [{subnet: "10.90.0.0/24", gateway: "10.90.0.1"}] |
		.network_options.static_ips = ["10.90.0." + $number]' name pid
	local only_six='.network.name = "six" | .network.network_interface = "podman9" |
		.network.subnets = [{subnet: "fd00:90::/64", gateway: "fd00:90::1"}] |
		.network_options.static_ips = ["fd00:90::" + $number]'
	names_needed
	# As on other hosts, where the bridge's IPv6 address cannot be used at once.
	sysctl -qw net.ipv6.conf.default.accept_dad=1 net.ipv6.conf.all.accept_dad=1
	setup one 5 '[]' "$named"' | .network_options.aliases = ["first", "a b"]'
	expect_equal '["dns.podman"] ["10.89.0.1"]' \
		"$(jq -c '.dns_search_domains, .dns_server_ips' /run/status | xargs -d '\n')" "what Podman gets"
	setup two 6 '[]' "$named"
	setup apart 7 '[]' "$named | $other"
	setup silent 8 '[]'
	for name in one first FIRST one.dns.podman; do
		expect_found two 10.89.0.1 "$name" '10.89.0.5 fd00:89::5'
	done
	setup six 5 '[]' "$named | $only_six"
	expect_equal '["fd00:90::1"]' "$(jq -c .dns_server_ips /run/status)" "what Podman gets with IPv6 only"
	expect_found six fd00:90::1 six fd00:90::5
	expect_found apart 10.90.0.1 apart 10.90.0.7
	expect_found apart 10.90.0.1 one
	expect_found two 10.89.0.1 apart
	expect_found two 10.89.0.1 silent
	cp /run/request.one /run/request.first
	teardown one
	expect_found two 10.89.0.1 one
	setup one 9 '[]' "$named"
	expect_found two 10.89.0.1 one '10.89.0.9 fd00:89::9'
	ip netns delete one
	setup three 10 '[]' "$named"
	expect_found two 10.89.0.1 one
	pid=$(cat "$names/aardvark.pid")
	kill -9 "$pid"
	wait_until 5 have_ended "$pid" || fail "aardvark-dns stays"
	setup four 11 '[]' "$named"
	expect_found three 10.89.0.1 two '10.89.0.6 fd00:89::6'
	for name in two three four six apart silent; do teardown "$name"; done
	expect_nothing_left
	no_server
	setup one 5 "[$(port 8080 80)]" "$named" 2>/run/err
	expect_in /run/err 'do not find this one by name, nor it them: there is no aardvark-dns in'
	expect_equal '[] []' "$(jq -c '.dns_search_domains, .dns_server_ips' /run/status | xargs)" "without a server"
	serve_in one 80
	expect_answer client tcp "$host4" 8080 one "$client4"
	teardown one
	expect_nothing_left
}

# killed_at CALL NUMBER COMMAND: kills the driver at its NUMBERth system call of that name. False: it
# made fewer.
killed_at() {
	local status=0
	strace -qq -o /dev/null -e "trace=$1" -e "inject=$1:signal=KILL:when=$2" \
		"$build/netavark-bpf-portmap" "$3" /run/netns/web </run/request.web >/run/out.killed 2>&1 || status=$?
	[ "$status" = 137 ]
}

# wrap PLUGIN: from now on it is a script, which is on stdin
wrap() {
	rm "/run/cni-plugins/$1"
	{ echo '#!/bin/sh' && cat; } >"/run/cni-plugins/$1"
	chmod +x "/run/cni-plugins/$1"
}

unwrap() { ln -sf "$reference_plugins/$1" "/run/cni-plugins/$1"; }

# The plugin goes on when the driver is killed, and teardown comes meanwhile: it waits. Other
# containers of the network do not.
killed_while_plugin_runs() {
	local driver_process teardown_process
	wrap bridge <<-SCRIPT
		[ "\$CNI_COMMAND \$CNI_CONTAINERID" != 'ADD id-web' ] ||
			{ touch /run/started; while [ ! -e /run/go ]; do sleep 0.02; done; }
		exec "$reference_plugins/bridge"
	SCRIPT
	request web 5 "[$(port 8080 80)]" >/run/request.web
	driver_start setup
	wait_until 10 test -e /run/started || fail "the plugin is not started"
	kill -9 "$driver_process"
	driver_start teardown
	teardown_process=$driver_process
	setup other 6 "[$(port 8081 80)]"
	teardown other
	! wait_until 1 test ! -e "/proc/$teardown_process" || fail "teardown does not wait"
	touch /run/go
	wait "$teardown_process" || fail "teardown: $(cat /run/out.start)"
	expect_nothing_left
	unwrap bridge
}

# Killed when the last plugin has done its work, and before that could be written down.
killed_after_last_plugin() {
	wrap firewall <<-SCRIPT
		"$reference_plugins/firewall" || exit
		[ "\$CNI_COMMAND" != ADD ] || { touch /run/firewall; kill -9 \$PPID; }
	SCRIPT
	rm -f /run/firewall
	request web 5 '[]' '.network.options.isolate = "true"' >/run/request.web
	! driver setup /run/netns/web </run/request.web >/run/out 2>&1 || fail "the driver is not killed"
	[ -e /run/firewall ] || fail "the plugin was not run"
	unwrap firewall
	setup web 7 '[]' '.network.options.isolate = "true"'
	expect_equal '' "$(rules_of_network | grep 10.89.0.5 || true)" "rules for the former address"
	teardown web
	expect_nothing_left
}

driver_start() {
	"$build/netavark-bpf-portmap" "$1" /run/netns/web </run/request.web >/run/out.start 2>&1 &
	driver_process=$!
}

# limit 120 s
# of the driver for Podman: killed with -9 at any of its system calls, what it leaves is put right by
# the next setup, or removed by the next teardown
test_netavark_killed() {
	local call number step=${STEP:+1}
	command -v strace >/dev/null || skip "there is no strace"
	setup web 5 "[$(port 8080 80)]" "$named"
	teardown web
	for call in rename unlink openat pidfd_open write ioctl flock kill; do
		for ((number = 1; number < 99; number += ${step:-1 + number / 2})); do
			killed_at "$call" "$number" setup || break
			[ $((number % 2)) = 0 ] || teardown web
			setup web 5 "[$(port 8080 80)]" "$named"
			killed_at "$call" "$number" teardown || true
			teardown web
			expect_nothing_left
		done
	done
	killed_while_plugin_runs
	killed_after_last_plugin
	ip netns delete web
	setup web 5 "[$(port 8080 80)]"
	ip netns delete web
	# The engine has forgotten that container's namespace, and starts it in a new one.
	setup web 5 "[$(port 8080 80)]"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	teardown web
	expect_nothing_left
}

# of the driver for Podman: whatever comes on stdin, it answers with an error in JSON, changes
# nothing, and does not take long
test_netavark_hostile() {
	local before filter
	setup web 5 "[$(port 8080 80)]"
	before=$(state_show)
	namespace_add evil
	for filter in '' '{' 'null' '[]' '"x"' '{}' '{"network":[]}' '{"network":{"name":"x"}}' $'\xff\xfe' \
		"$(printf '[%.0s' {1..3000})"; do
		driver_error '' driver setup /run/netns/evil <<<"$filter"
		driver_error '' driver create <<<"${filter/#\{\}/7}"
		driver_error '' driver teardown /run/netns/evil <<<"$filter"
	done
	while read -r filter; do
		driver_error "${filter#* # }" driver setup /run/netns/evil \
			<<<"$(request evil 7 "[$(port 9090 80)]" "${filter% # *}")"
	done <<-'ROWS'
		.container_id = "../../etc" # container
		.container_id = 7 # container_id
		.network_options.interface_name = "a/b" # interface
		.network.name = "a/../b" # name
		.network.network_interface = "" # has no network_interface
		.network_options.static_ips = [] # static_ips is empty
		.network_options.static_ips = ["10.88.0.7"] # is in no subnet
		.network_options.static_ips = ["10.89.0.7; rm"] # is no IP address
		.port_mappings[0].range = 65535 # ports are 1 to 65535
		.port_mappings[0].host_port = -1 # ports are 1 to 65535
		.port_mappings[0].protocol = "tcp,icmp" # "tcp", "udp" or "sctp"
		.port_mappings[0].host_ip = "localhost" # is no IP address
		.port_mappings = [range(9) | {host_port: 1, container_port: 1, range: 65535}] # more than
		.network.options = {reserveHostPorts: "true"} # Podman itself
		.network_options.static_mac = "\u001b[31m" # bridge
	ROWS
	request evil 7 "[$(port 9090 80)]" '.container_name = "a;K8S_POD_NAMESPACE=x\n"' >/run/request.evil
	driver setup /run/netns/evil </run/request.evil >/run/out || fail "$(cat /run/out)"
	teardown evil
	driver_error 'no network namespace' driver setup /etc/passwd </run/request.evil
	driver_error 'no network namespace' driver setup /run/netns/none </run/request.evil
	expect_same_state "$before"
	teardown web
	expect_nothing_left
}

# of the driver for Podman: info, --help and --version need no root; the rest is refused without it,
# and in a user namespace
test_netavark_rootless() {
	local command
	expect_equal "$(sed -n 's/^VERSION := //p' "$project/Makefile") 1.0.0" \
		"$(setpriv --reuid 65534 --clear-groups "$build/netavark-bpf-portmap" info |
			jq -r '"\(.version) \(.api_version)"')" info
	expect_contains "$(driver --help)" 'no_default_route'
	expect_contains "$(driver --version)" netavark-bpf-portmap
	driver_error 'unknown command "list"' driver list
	driver_error 'no command' driver
	driver_error 'usage: bpf-portmap setup NETNS' driver setup
	for command in create 'setup /run/netns/x' 'teardown /run/netns/x'; do
		driver_error 'rootless Podman cannot use' setpriv --reuid 65534 --clear-groups \
			"$build/netavark-bpf-portmap" $command <<<"$(network)"
		! has_user_namespaces || driver_error 'rootless Podman cannot use' \
			unshare --user --map-root-user "$build/netavark-bpf-portmap" $command <<<"$(network)"
	done
}

# of the driver for Podman: a container on two networks has each port by the first of them, and after
# `podman network disconnect` of that one by the other
test_netavark_disconnect() {
	local ports
	ports="[$(port 8080 80 tcp,udp)]"
	setup web 5 "$ports"
	cp /run/request.web /run/request.first
	setup web 6 "$ports" '.network.name = "other" | .network.network_interface = "podman8" |
		.network.id = ("fedcba9876543210" * 4) | .network_options.interface_name = "eth1" |
		.network.subnets = [{subnet: "10.90.0.0/24", gateway: "10.90.0.1"}] |
		.network_options.static_ips = ["10.90.0.6"]'
	serve_in web 80
	reverse_path_loose
	in_namespace web sysctl -qw net.ipv4.conf.all.rp_filter=2
	expect_answers client "$host4" 8080 web "$client4"
	driver teardown /run/netns/web </run/request.first >/run/out || fail "$(cat /run/out)"
	expect_answers client "$host4" 8080 web "$client4"
	teardown web
	expect_no_answer client tcp "$host4" 8080
}
