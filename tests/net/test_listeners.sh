# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_listeners.sh - processes of the host that have a port before it is mapped: ADD takes it from
# them, as portmap does, and with reserveHostPorts it fails and names the process.

hold=$build/tests/hold

listeners_world() {
	needs_cgroup
	conflist reserved bridge "$(with_ours '{"reserveHostPorts": true}')"
}

# listener NAME PROTOCOL ADDRESS FIRST [LAST] [OPTION...]: in the background; its number in $listener
listener() {
	local name=$1
	shift
	"$hold" "$@" --name "$name" --background >/run/hold || fail "hold $*: $(cat /run/hold)"
	listener=$(sed -n 's/^pid //p' /run/hold)
}

# What ADD with reserveHostPorts says: expect_taken TEXT -p ...
expect_taken() {
	local text=$1
	shift
	[ -e /run/netns/web ] || namespace_add web
	expect_refusal "$text" runtime add "${list:-reserved}" web "$@"
	container_del web "${list:-reserved}"
}

# ADD with reserveHostPorts works: expect_free -p ...
expect_free() {
	container_add web "${list:-reserved}" "$@"
	container_del web "${list:-reserved}"
}

# without reserveHostPorts the container has the port, and ADD names the process that had it; where
# nobody has, ADD says nothing and looks at no process
test_listeners_without_reservation() {
	local protocol said
	listener first tcp 0.0.0.0 8080
	container_add_plain web
	plugin_call ADD web >/run/out 2>/run/said || fail "$(cat /run/out)"
	expect_in /run/said "first (pid $listener) holds host port 8080/tcp at 0.0.0.0, and"
	expect_equal 1 "$(grep -c . /run/said)" "lines in: $(cat /run/said)"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_call DEL web || fail DEL
	listener third udp 0.0.0.0 8083
	plugin_call ADD web "$(mapping 8083) | .runtimeConfig.portMappings[0] += {protocol: \"udp\", hostIP: \"$host4\"}" \
		>/run/out 2>/run/said || fail "$(cat /run/out)"
	expect_in /run/said "third (pid $listener) holds host port 8083/udp at 0.0.0.0, and"
	plugin_call DEL web || fail DEL
	PREFIX="strace -f -o /run/trace" plugin_call ADD web "$(mapping 8081)" >/run/out 2>/run/said ||
		fail "$(cat /run/out)"
	expect_equal '' "$(cat /run/said)" 'output of ADD'
	case $(cat /run/trace) in
	*'/fd"'*) fail 'it looked at processes' ;;
	esac
	plugin_call DEL web || fail DEL
	for protocol in tcp udp; do
		listener six "$protocol" "$host6" 8082
		namespace_add "of-$protocol"
		said=$(runtime add bridge "of-$protocol" -p "8082:80/$protocol" 2>&1 >/dev/null)
		expect_contains "$said" "six (pid $listener) holds host port 8082/$protocol at $host6, and"
	done
}

# a process that listens at any address, TCP or UDP, IPv4 or IPv6, also one that shares its port
# (SO_REUSEADDR); names are told as plain text
test_listeners_any_address() {
	listeners_world
	listener first tcp 0.0.0.0 8080
	expect_taken "first (pid $listener) already holds host port 8080/tcp at 0.0.0.0, and" -p 8080:80
	listener second tcp :: 8081
	expect_taken "second (pid $listener) already holds host port 8081/tcp at ::, and" -p 8081:80
	listener third udp 0.0.0.0 8080
	expect_taken "third (pid $listener) already holds host port 8080/udp at 0.0.0.0, and" -p 8080:80/udp
	listener fourth udp :: 8081
	expect_taken "fourth (pid $listener) already holds host port 8081/udp at ::, and" -p 8081:80/udp
	local protocol
	for protocol in tcp udp; do
		listener sharing "$protocol" 0.0.0.0 8082 --reuse
		expect_taken "sharing (pid $listener)" -p "8082:80/$protocol"
	done
	listener $'a\nb\e[31m\xff"' tcp 0.0.0.0 8083 || true
	expect_taken 'a?b?[31m?' -p 8083:80
}

# a socket at :: takes IPv4 too, unless it says otherwise
test_listeners_both_families() {
	listeners_world
	conflist ipv4 bridge "($(with_ours '{"reserveHostPorts": true}')) | $only_ipv4"
	local list=ipv4 protocol
	for protocol in tcp udp; do
		listener both "$protocol" :: 8080 --both
		expect_taken "both (pid $listener) already holds host port 8080/$protocol at ::, and" \
			-p "8080:80/$protocol"
		listener six "$protocol" :: 8081
		expect_free -p "8081:80/$protocol"
		listener mapped "$protocol" "$host4" 8082 --mapped
		expect_taken "mapped (pid $listener) already holds host port 8082/$protocol at $host4, and" \
			-p "8082:80/$protocol"
	done
	conflist ipv6 bridge "($(with_ours '{"reserveHostPorts": true}')) | $only_ipv6"
	list=ipv6
	listener four tcp 0.0.0.0 8083
	expect_free -p 8083:80
	expect_taken "six (pid" -p 8081:80
}

# a specific address: the same one or any of its family, on either side
test_listeners_specific_address() {
	listeners_world
	local protocol
	for protocol in tcp udp; do
		listener here "$protocol" "$host4" 8080
		expect_taken "here (pid $listener) already holds host port 8080/$protocol at $host4, and" \
			-p "8080:80/$protocol"
		expect_taken "here (pid $listener)" -p "$host4:8080:80/$protocol"
		expect_free -p "$host4_second:8080:80/$protocol"
		expect_free -p "[::]:8080:80/$protocol"
		listener six "$protocol" "$host6" 8081
		expect_taken "six (pid $listener)" -p "[$host6]:8081:80/$protocol"
		expect_free -p "[$host6_second]:8081:80/$protocol"
		listener any "$protocol" 0.0.0.0 8082
		expect_taken "any (pid $listener)" -p "$host4:8082:80/$protocol"
	done
}

# a listener at a loopback address loses the host's own processes, unless localhost is false
test_listeners_loopback() {
	listeners_world
	listener resolver udp 127.0.0.53 53
	expect_taken "resolver (pid $listener) already holds host port 53/udp at 127.0.0.53, and" -p 53:53/udp
	expect_free -p "$host4:53:53/udp"
	conflist outside bridge "$(with_ours '{"reserveHostPorts": true, "localhost": false}')"
	list=outside expect_free -p 53:53/udp
}

# addresses that excludeInterfaces and excludeCIDRs leave out have their own listeners
test_listeners_excluded_addresses() {
	listeners_world
	ip link add nodelocaldns type veth peer name nothing
	end_make host nodelocaldns 169.254.20.10/32
	listener cache udp 169.254.20.10 53
	expect_free -p 53:53/udp
	conflist excluding bridge \
		"$(with_ours "{\"reserveHostPorts\": true, \"excludeCIDRs\": [\"$host4_second\"]}")"
	listener own tcp "$host4_second" 80
	list=excluding expect_free -p 80:80
	expect_taken "own (pid $listener)" -p 80:80
}

# one port among a thousand that are mapped, and one of a process that has a thousand; other ports and
# protocols, connected sockets, other namespaces, and addresses where nothing is mapped are in nobody's way
test_listeners_many_ports() {
	listeners_world
	listener one tcp 0.0.0.0 7777
	expect_taken "one (pid $listener) already holds host port 7777/tcp" -p 7000-7999:7000-7999
	listener server tcp 0.0.0.0 8000 8999
	expect_taken "server (pid $listener) already holds host port 8555/tcp" -p 8555:80
	expect_free -p 7000-7776:7000-7776 -p 9000-9099:9000-9099
	serve_in server 9000
	listener other tcp 0.0.0.0 10081
	listener other udp 0.0.0.0 10081
	listener another udp 0.0.0.0 10082
	listener talker tcp 0.0.0.0 10080 --connect "$server4,9000"
	listener talker udp 0.0.0.0 10080 --connect "$server4,9000"
	serve_in client 10080
	listener multicast udp 224.0.0.251 10080
	expect_free -p 10080:80/tcp -p 10080:80/udp -p 10082:80/tcp
}

# a process of a PID namespace that the plugin does not see
test_listeners_unseen() {
	needs_cgroup
	container_add_plain web
	listener hidden tcp 0.0.0.0 8080
	PREFIX='unshare --pid --fork --mount-proc' expect_failure plugin_call ADD web '.reserveHostPorts = true'
	expect_contains "$output" \
		"an unknown process already holds host port 8080/tcp at 0.0.0.0, and"
}

# what the container's own engine holds is left out: its command line has the container's ID; a
# short ID may be any word
test_listeners_of_engine() {
	listeners_world
	listener short tcp 0.0.0.0 8079 --argument web
	expect_taken "short (pid $listener)" -p 8079:80
	ip netns delete web
	local id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	export NETNS=/run/netns/web
	container_add_plain web
	listener conmon tcp 0.0.0.0 8080 --argument "$id"
	plugin_config web "$(mapping 8080) | .reserveHostPorts = true" >/run/config
	plugin_run ADD "$id" </run/config >/run/out 2>&1 || fail "$(cat /run/out)"
	plugin_run DEL "$id" </run/config
	! plugin_run ADD "${id/0/1}" </run/config >/run/out 2>&1 || fail 'ADD of another container'
	expect_in /run/out "conmon (pid $listener) already holds"
	listener second udp 0.0.0.0 8080
	plugin_config web '.reserveHostPorts = true | .runtimeConfig.portMappings =
		[("tcp", "udp") | {hostPort: 8080, containerPort: 80, protocol: .}]' >/run/config
	! plugin_run ADD "$id" </run/config >/run/out 2>&1 || fail "ADD beside the engine's"
	expect_in /run/out "second (pid $listener) already holds"
}
