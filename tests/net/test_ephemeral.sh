# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_ephemeral.sh - all of the ports that the kernel chooses for the host's own sockets are
# mapped: neither the host's connections nor the container's clients are affected.

hold=$build/tests/hold
socket_tool=$build/tests/local
first=20000 last=20009
talks=()

# ephemeral_world: ten ephemeral ports on every host; and ports: the options that map them all
ephemeral_world() {
	local port
	sysctl -qw net.ipv4.ip_local_port_range="$first $last"
	ports=()
	for ((port = first; port <= last; port++)); do
		ports+=(-p "$port:80/tcp" -p "$port:80/udp")
	done
	serve_in client 9000
	serve_in server 9000
}

# talk_open NAME SOCKET ADDRESS PORT: a socket of the host that is connected without bind, as most
# are; talk_expect NAME WHO: which server answers it now
talk_open() {
	local name=$1 socket=$2 line
	shift 2
	piped_open "$name" "$socket_tool" "$socket" connect "$@" names \
		wait ask wait ask wait ask wait ask wait ask wait
	talk_read "$name" "connect ok"
	talk_read "$name" "own="
	line=${line#*own=}
	line=${line##*:}
	[ "$line" -ge "$first" ] && [ "$line" -le "$last" ] || fail "$name has port $line"
	talks+=("$name")
}

# Reads the next line into $line; it must contain this text.
talk_read() {
	local taken
	piped_take "$1" 5
	line=$taken
	expect_contains "$line" "$2"
}

talk_expect() {
	local line
	piped_send "$1"
	talk_read "$1" "name=$2 "
}

# talks_open PREFIX WHO ADDRESS4 ADDRESS6: four sockets of each kind, so that most ports are in use.
talks_open() {
	local kind number address
	for number in 1 2 3 4; do
		for kind in tcp4 tcp6 udp4 udp6; do
			address=$3
			case $kind in ???6) address=$4 ;; esac
			talk_open "$1_${kind}_$number" "$kind" "$address" 9000
		done
	done
}

talks_expect() {
	local name
	for name in "${talks[@]}"; do talk_expect "$name" "$1"; done
}

# Every client outside reaches the container by each of the ports.
clients_expect_web() {
	local port
	for ((port = first; port <= last; port += 3)); do
		expect_serves web "$port"
	done
	expect_answers server "$host4_second" "$last" web "$server4"
}

# connections of the host from mapped ports, to a client of these ports: both receive their answers,
# across DEL and ADD
# limit 120 s
test_ephemeral_mapping_first() {
	ephemeral_world
	container_start web bridge "${ports[@]}"
	talks_open to_client client "$client4" "$client6"
	talks_expect client
	clients_expect_web
	talks_expect client
	container_del web bridge
	talks_expect client
	container_add web bridge "${ports[@]}"
	clients_expect_web
	talks_expect client
}

# the same with connections that exist before the ports are mapped
# limit 120 s
test_ephemeral_connections_first() {
	ephemeral_world
	container_start first bridge
	talks_open to_server server "$server4" "$server6"
	talks_expect server
	container_start web bridge "${ports[@]}"
	talks_expect server
	clients_expect_web
	talks_expect server
	container_del web bridge
	talks_expect server
}

# connections from mapped ports to containers: to their own address, and to another one's mapped
# port at any address of the host
test_ephemeral_to_containers() {
	ephemeral_world
	container_start web bridge "${ports[@]}"
	container_start other bridge -p 8080:80/tcp -p 8080:80/udp
	container_start routed ptp -p 8081:80/tcp -p 8081:80/udp
	local name kind number address
	for number in 1 2; do # ten connections to a server are possible in a minute
		for kind in tcp udp; do
			for name in web other routed; do
				expect_told "${kind}4" "$(address4 "$name")" 80 "$name"
				expect_told "${kind}6" "$(address6 "$name")" 80 "$name"
			done
			for address in 127.0.0.1 "$host4" "$bridge4"; do
				expect_told "${kind}4" "$address" 8080 other
				expect_told "${kind}6" "$address" 8081 routed
			done
			expect_told "${kind}6" ::1 8080 other
			expect_told "${kind}6" "$host6" 8081 routed
			expect_told "${kind}4" "$host4" "$first" web
		done
	done
	clients_expect_web
}

expect_told() {
	local said
	said=$("$socket_tool" "$1" connect "$2" "$3" ask 2>&1) || fail "$1 to $2 $3: $said"
	expect_contains "$said" "name=$4 "
}

# a process that listens on a port that the kernel chooses gets one, reserved or not, and no traffic
# from outside: the container receives it
test_ephemeral_listener() {
	ephemeral_world
	needs_cgroup
	conflist reserved bridge "$(with_ours '{"reserveHostPorts": true}')"
	container_start web reserved "${ports[@]}"
	local protocol port
	for protocol in tcp udp; do
		"$hold" "$protocol" 0.0.0.0 0 --background >/run/hold || fail "$(cat /run/hold)"
		port=$(sed -n 's/^0.0.0.0 //p' /run/hold)
		[ "$port" -ge "$first" ] && [ "$port" -le "$last" ] || fail "port $port"
		expect_answer client "$protocol" "$host4" "$port" web "$client4"
	done
}
