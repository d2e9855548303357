# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_listeners.sh - processes of the host that have a port which is mapped.

hold=$build/tests/hold

# listener NAME PROTOCOL ADDRESS FIRST [LAST] [OPTION...]: in the background; its number in
# $listener
listener() {
	local name=$1
	shift
	"$hold" "$@" --name "$name" --background >/run/hold || fail "hold $*: $(cat /run/hold)"
	listener=$(sed -n 's/^pid //p' /run/hold)
}

# The warnings of an ADD with these ports, and of its DEL: warnings_of [OPTION...] -p ...
warnings_of() {
	container_add web "${list:-bridge}" "$@" 2>/run/warnings
	container_del web "${list:-bridge}" 2>>/run/warnings
	sed -i "/is only a part of the host's cgroups/d" /run/warnings
}

expect_warning() {
	local text=$1
	shift
	warnings_of "$@"
	expect_equal 1 "$(grep -c warning /run/warnings)" "warnings in: $(cat /run/warnings)"
	expect_contains "$(cat /run/warnings)" "$text"
}

expect_no_warning() {
	warnings_of "$@"
	expect_equal '' "$(cat /run/warnings)" "warnings of $*"
}

# ADD names a process that listens at any address, TCP or UDP, IPv4 or IPv6, and what that means;
# the container has the port [B26]
test_listeners_any_address() {
	listener first tcp 0.0.0.0 8080
	expect_warning "first (pid $listener) already holds host port 8080/tcp at 0.0.0.0: what comes\
 from outside reaches the container from now on, not that process; stop it, or map another" \
		-p 8080:80
	listener second tcp :: 8081
	expect_warning "second (pid $listener) already holds host port 8081/tcp at ::: " -p 8081:80
	listener third udp 0.0.0.0 8080
	expect_warning "third (pid $listener) already holds host port 8080/udp at 0.0.0.0: " -p 8080:80/udp
	listener fourth udp :: 8081
	expect_warning "fourth (pid $listener) already holds host port 8081/udp at ::: " -p 8081:80/udp
	container_start web bridge -p 8080:80/tcp 2>/run/warnings
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# a socket at :: takes IPv4 too, unless it says otherwise
test_listeners_both_families() {
	conflist ipv4 bridge "$only_ipv4"
	local list=ipv4 protocol
	for protocol in tcp udp; do
		listener both "$protocol" :: 8080 --both
		expect_warning "both (pid $listener) already holds host port 8080/$protocol at ::: " \
			-p "8080:80/$protocol"
		listener six "$protocol" :: 8081
		expect_no_warning -p "8081:80/$protocol"
		listener mapped "$protocol" "$host4" 8082 --mapped
		expect_warning "mapped (pid $listener) already holds host port 8082/$protocol at $host4: " \
			-p "8082:80/$protocol"
	done
	conflist ipv6 bridge "$only_ipv6"
	list=ipv6
	listener four tcp 0.0.0.0 8083
	expect_no_warning -p 8083:80
	expect_warning "six (pid" -p 8081:80
}

# a specific address: the same one or any of its family, on either side
test_listeners_specific_address() {
	local protocol
	for protocol in tcp udp; do
		listener here "$protocol" "$host4" 8080
		expect_warning "here (pid $listener) already holds host port 8080/$protocol at $host4: " \
			-p "8080:80/$protocol"
		expect_warning "here (pid $listener)" -p "$host4:8080:80/$protocol"
		expect_no_warning -p "$host4_second:8080:80/$protocol"
		expect_no_warning -p "[::]:8080:80/$protocol"
		listener six "$protocol" "$host6" 8081
		expect_warning "six (pid $listener)" -p "[$host6]:8081:80/$protocol"
		expect_no_warning -p "[$host6_second]:8081:80/$protocol"
		listener any "$protocol" 0.0.0.0 8082
		expect_warning "any (pid $listener)" -p "$host4:8082:80/$protocol"
	done
}

# a listener at a loopback address loses the host's own processes, unless localhost is false
test_listeners_loopback() {
	listener resolver udp 127.0.0.53 53
	expect_warning "resolver (pid $listener) already holds host port 53/udp at 127.0.0.53: what comes\
 from the host reaches the container" -p 53:53/udp
	expect_no_warning -p "$host4:53:53/udp"
	conflist outside bridge "$(with_ours '{"localhost": false}')"
	list=outside expect_no_warning -p 53:53/udp
}

# servers that share their port (SO_REUSEADDR) are found too
test_listeners_reuse() {
	local protocol
	for protocol in tcp udp; do
		listener sharing "$protocol" 0.0.0.0 8080 --reuse
		expect_warning "sharing (pid $listener)" -p "8080:80/$protocol"
	done
}

# nothing is said of other ports, connected sockets, TCP that does not listen, other namespaces, and
# addresses where nothing is mapped
test_listeners_that_do_not_matter() {
	serve_in server 9000
	listener other tcp 0.0.0.0 8081
	listener other udp 0.0.0.0 8081
	listener talker tcp 0.0.0.0 8080 --connect "$server4,9000"
	listener talker udp 0.0.0.0 8080 --connect "$server4,9000"
	listener bound tcp "$host4" 8080 --bound
	serve_in client 8080
	listener multicast udp 224.0.0.251 8080
	expect_no_warning -p 8080:80/tcp -p 8080:80/udp
}

# addresses that excludeInterfaces and excludeCIDRs leave out have their own listeners
test_listeners_excluded_addresses() {
	ip link add nodelocaldns type veth peer name nothing
	ip address add 169.254.20.10/32 dev nodelocaldns
	ip link set nodelocaldns up
	listener cache udp 169.254.20.10 53
	expect_no_warning -p 53:53/udp
	conflist excluding bridge "$(with_ours "{\"excludeCIDRs\": [\"$host4_second\"]}")"
	listener own tcp "$host4_second" 80
	list=excluding expect_no_warning -p 80:80
	expect_warning "own (pid $listener)" -p 80:80
}

# a thousand ports of a process are one line, and so are several sockets of one port
test_listeners_many_ports() {
	listener server tcp 0.0.0.0 8000 8999
	expect_warning "server (pid $listener) already holds host ports 8000-8999/tcp at 0.0.0.0: " \
		-p 8000-8999:8000-8999
	listener workers tcp 0.0.0.0 7000 --reuse
	local first=$listener
	listener workers tcp 0.0.0.0 7000 --reuse
	warnings_of -p 7000:80
	expect_equal 2 "$(grep -c 'workers (pid .*) already holds host port 7000/tcp at 0.0.0.0: ' \
		/run/warnings)" "warnings in: $(cat /run/warnings)"
	expect_contains "$(cat /run/warnings)" "workers (pid $first)"
}

# two processes, both protocols: a line each; of very many ports apart not all are told
test_listeners_several() {
	local port ports=()
	for port in $(seq 1001 2 1041); do ports+=(-p "$port:80"); done
	listener each tcp 0.0.0.0 1000 1050
	local each=$listener
	listener named udp "$host4" 1003
	warnings_of -p 1002:80/udp -p 1003:80/udp "${ports[@]}"
	expect_equal 2 "$(grep -c warning /run/warnings)" "warnings in: $(cat /run/warnings)"
	expect_contains "$(cat /run/warnings)" "each (pid $each) already holds\
 host ports 1001/tcp, 1003/tcp, 1005/tcp, 1007/tcp, 1009/tcp, 1011/tcp, 1013/tcp, 1015/tcp at 0.0.0.0,\
 and 13 more: "
	expect_contains "$(cat /run/warnings)" "named (pid $listener) already holds host port 1003/udp at $host4: "
	# Those between are what a filter of a few ranges lets through.
	ports=()
	for port in $(seq 3000 2 3060); do ports+=(-p "$port:80"); done
	listener between tcp 0.0.0.0 3029
	expect_no_warning "${ports[@]}"
	listener among tcp 0.0.0.0 3030
	expect_warning "among (pid $listener)" "${ports[@]}"
}

# a process of a PID namespace that the plugin does not see
test_listeners_unseen() {
	container_add_plain web
	listener hidden tcp 0.0.0.0 8080
	PREFIX='unshare --pid --fork --mount-proc' plugin_call ADD web >/run/out 2>/run/warnings ||
		fail "$(cat /run/out)"
	expect_contains "$(cat /run/warnings)" \
		"a process that /proc does not show, or the kernel, already holds host port 8080/tcp at 0.0.0.0: "
}

# what the container's own engine holds is left out: its command line has the container's ID; a
# short ID may be any word
test_listeners_of_engine() {
	listener short tcp 0.0.0.0 8079 --argument web
	expect_warning "short (pid $listener)" -p 8079:80
	ip netns delete web
	local id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	container_add_plain web
	plugin_call ADD web >/run/out 2>/dev/null && plugin_call DEL web
	listener conmon tcp 0.0.0.0 8080 --argument "$id"
	plugin_config web "$(mapping 8080)" >/run/config
	NETNS=/run/netns/web plugin_run ADD "$id" </run/config >/run/out 2>/run/warnings ||
		fail "$(cat /run/out)"
	expect_equal '' "$(cat /run/warnings)" "warnings about an engine's own"
	NETNS=/run/netns/web plugin_run DEL "$id" </run/config
	NETNS=/run/netns/web plugin_run ADD "${id/0/1}" </run/config >/run/out 2>/run/warnings ||
		fail "$(cat /run/out)"
	expect_contains "$(cat /run/warnings)" "conmon (pid $listener) already holds"
}

# names are told as plain text
test_listeners_name() {
	listener $'a\nb\e[31m\xff"' tcp 0.0.0.0 8080 || true
	expect_warning 'a?b?[31m?" (pid ' -p 8080:80
}
