# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_udp_clients.sh - connected UDP sockets of the host's processes, when the port that they
# talk to changes hands. No hook is called when they send.

# expect_says_soon CONVERSATION NAME FROM: without the client doing anything but ask
expect_says_soon() {
	local answer
	answer=$(say "$1")
	expect_contains "$answer" "name=$2 "
	expect_contains "$answer" "from=$3"
}

open_clients() {
	conversation_open ipv4 host udp 127.0.0.1 8080 --connected --timeout 300 --keep-going
	conversation_open ipv6 host udp ::1 8080 --connected --timeout 300 --keep-going
	conversation_open address host udp "$host4" 8080 --connected --timeout 300 --keep-going
}

expect_all_say() {
	expect_says_soon ipv4 "$1" 127.0.0.1:8080
	expect_says_soon ipv6 "$1" '[::1]:8080'
	expect_says_soon address "$1" "$host4:8080"
}

# a connected UDP socket of the host follows its port from one container to the next, at once
test_udp_clients_follow() {
	needs_cgroup
	container_start web bridge -p 8080:80/udp
	open_clients
	expect_all_say web
	container_remove web bridge
	container_start other bridge -p 8080:80/udp
	expect_all_say other
	container_remove other bridge
	container_start routed ptp -p 8080:80/udp
	expect_all_say routed
}

# ... where no container follows it is refused, as at a port that nobody has
test_udp_clients_refused() {
	needs_cgroup
	container_start web bridge -p 8080:80/udp
	open_clients
	expect_all_say web
	container_remove web bridge
	local name
	for name in ipv4 ipv6 address; do expect_equal refused "$(say "$name")" "$name"; done
}

# ... from a process of the host to a container and back to it, and from before there was any
test_udp_clients_from_the_host() {
	needs_cgroup
	container_start first bridge -p 9999:80/udp
	serve_on_host 8080
	open_clients
	expect_all_say host
	container_start web bridge -p 8080:80/udp
	expect_all_say web
	container_remove web bridge
	expect_all_say host
}

# sockets that have nothing to do with the port keep their peer and their own port, also one that
# the program connected to the container itself, and one to the same port elsewhere
test_udp_clients_unrelated() {
	needs_cgroup
	container_start web bridge -p 8080:80/udp
	container_start stays bridge -p 8081:80/udp
	conversation_open same host udp 127.0.0.1 8081 --connected --timeout 300
	conversation_open direct host udp "$(address4 stays)" 80 --connected --timeout 300
	in_namespace server "$peer" serve udp any 8080 --name server --background
	conversation_open far host udp "$server4" 8080 --connected --timeout 300
	open_clients
	expect_all_say web
	local name before after
	for name in same direct far; do eval "before_$name=\$(say $name)"; done
	container_remove web bridge
	container_start other bridge -p 8080:80/udp
	expect_all_say other
	for name in same direct far; do
		before=before_$name
		after=$(say "$name")
		expect_equal "${!before}" "$after" "$name"
	done
}

# a socket that its program bound to a loopback address cannot be helped, and keeps its port too:
# a conversation with the host's own server goes on
test_udp_clients_bound() {
	needs_cgroup
	container_start first bridge -p 9999:80/udp
	serve_on_host 8080
	mkfifo /run/go
	"$build/tests/local" udp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 names ask wait names ask \
		</run/go >/run/said &
	local client=$! go
	exec {go}>/run/go
	wait_until 5 grep -q name=host /run/said
	container_start web bridge -p 8080:80/udp
	container_remove web bridge
	echo >&"$go"
	wait "$client"
	expect_equal "$(sed -n 3,4p /run/said)" "$(sed -n 5,6p /run/said)" "before and after"
}

# where no process of the host was ever connected to the port, nobody looks for one
test_udp_clients_not_looked_for() {
	needs_cgroup
	container_start web bridge -p 8080:80/udp
	expect_answer host udp 127.0.0.1 8080 web
	container_add_plain other
	PREFIX="strace -f -o /run/trace" plugin_call ADD other "$(mapping 8081 80 udp)" >/dev/null ||
		fail "ADD: $(cat /run/trace)"
	case $(cat /run/trace) in *NETLINK_SOCK_DIAG*) fail "it looked for sockets" ;; esac
}
