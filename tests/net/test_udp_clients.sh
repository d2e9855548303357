# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_udp_clients.sh - connected UDP sockets of the host's processes, when the port that they
# talk to changes hands. No hook is called when they send.

# Some kernels cannot end a socket: CONFIG_INET_DIAG_DESTROY.
needs_ending() {
	needs_cgroup
	"$build/tests/hold" udp 127.0.0.1 7000 --connect 127.0.0.1,7001 --background >/dev/null
	[ -n "$(ss -HKun sport = 7000)" ] || skip 'the kernel cannot end sockets (CONFIG_INET_DIAG_DESTROY)'
}

# expect_says_now CONVERSATION NAME FROM
expect_says_now() {
	local answer
	answer=$(say "$1")
	expect_contains "$answer" "name=$2 " "from=$3"
}

open_clients() {
	conversation_open ipv4 host udp 127.0.0.1 8080 --connected --timeout 300 --keep-going
	conversation_open ipv6 host udp ::1 8080 --connected --timeout 300 --keep-going
	conversation_open address host udp "$host4" 8080 --connected --timeout 300 --keep-going
}

expect_all_say() {
	expect_says_now ipv4 "$1" 127.0.0.1:8080
	expect_says_now ipv6 "$1" '[::1]:8080'
	expect_says_now address "$1" "$host4:8080"
}

# The kernel has ended them: their next question fails at once, and they connect again.
expect_all_ended() {
	local name
	for name in ipv4 ipv6 address; do expect_equal ended "$(say "$name")" "$name"; done
}

# a connected UDP socket of the host is ended when its port goes from one container to the next, also
# where that died without DEL and ADD takes the port over, and reaches the next one once it has
# connected again, also of a process in another PID namespace; where no container follows it is
# refused then, as at a port that nobody has
test_udp_clients_follow() {
	local name
	needs_ending
	printf '#!/bin/sh\nexec unshare --pid --fork --kill-child "%s" "$@"\n' "$peer" >/run/apart
	chmod +x /run/apart
	container_start web bridge -p 8080:80/udp
	open_clients
	peer=/run/apart conversation_open apart host udp 127.0.0.1 8080 --connected
	expect_all_say web
	expect_says_now apart web 127.0.0.1:8080
	container_remove web bridge
	container_start other bridge -p 8080:80/udp
	expect_all_ended
	expect_all_say other
	expect_equal ended "$(say apart)" "the client in another PID namespace"
	expect_says_now apart other 127.0.0.1:8080
	container_remove other bridge
	container_start routed ptp -p 8080:80/udp
	expect_all_ended
	expect_all_say routed
	container_die routed
	container_start last bridge -p 8080:80/udp
	expect_all_ended
	expect_all_say last
	container_remove last bridge
	expect_all_ended
	for name in ipv4 ipv6 address; do expect_equal refused "$(say "$name")" "$name"; done
}

# ... from a container to a process of the host; one that talks to that goes on when a container
# comes, as a connection does
test_udp_clients_from_the_host() {
	needs_ending
	container_start web bridge -p 8080:80/udp
	serve_on_host 8080
	open_clients
	expect_all_say web
	container_remove web bridge
	expect_all_ended
	expect_all_say host
	container_start web bridge -p 8080:80/udp
	expect_all_say host
	expect_answer host udp 127.0.0.1 8080 web
}

# sockets that have nothing to do with the port keep their peer and their own port, also one that
# the program connected to the container itself, and one to the same port elsewhere; nor does a
# container's own
test_udp_clients_unrelated() {
	needs_ending
	container_start web bridge -p 8080:80/udp
	container_start stays bridge -p 8081:80/udp
	conversation_open same host udp 127.0.0.1 8081 --connected --timeout 300
	conversation_open direct host udp "$(address4 stays)" 80 --connected --timeout 300
	conversation_open inside stays udp "$host4" 8080 --connected --timeout 300
	in_namespace server "$peer" serve udp any 8080 --name server --background
	conversation_open far host udp "$server4" 8080 --connected --timeout 300
	open_clients
	expect_all_say web
	expect_says inside web
	local name before after
	for name in same direct far; do eval "before_$name=\$(say $name)"; done
	container_remove web bridge
	container_start other bridge -p 8080:80/udp
	expect_all_ended
	expect_all_say other
	expect_says inside other
	for name in same direct far; do
		before=before_$name
		after=$(say "$name")
		expect_equal "${!before}" "$after" "$name"
	done
}

# nobody looks into processes for that, however many files they have open; where the kernel cannot
# end them a warning names the port, once; DEL works
test_udp_clients_that_stay() {
	needs_cgroup
	local first
	container_add_plain web
	plugin_call ADD web "$(mapping 8080 80 udp)" >/dev/null || fail "ADD"
	serve_in web 80
	open_clients
	expect_all_say web
	PREFIX="strace -f -o /run/trace" plugin_call DEL web "$(mapping 8080 80 udp)" || fail "DEL"
	case $(cat /run/trace) in *'/fd"'* | *pidfd*) fail "it looked at processes" ;; esac
	first=$(awk '/sendto\(/ { number++ } /SOCK_DESTROY/ && !found { found = number } END { print found }' \
		/run/trace)
	[ -n "$first" ] || fail "nothing was to be ended: $(cat /run/trace)"
	plugin_call ADD web "$(mapping 8080 80 udp)" >/dev/null || fail "ADD again"
	say ipv4 >/dev/null
	say ipv6 >/dev/null
	say address >/dev/null
	expect_all_say web
	PREFIX="strace -f -o /run/trace -e inject=sendto:error=EOPNOTSUPP:when=$first+" \
		plugin_call DEL web "$(mapping 8080 80 udp)" 2>/run/said || fail "DEL"
	expect_equal 1 "$(grep -c 'that had host port 8080 .*: the kernel cannot end sockets' /run/said)" \
		"warnings in: $(cat /run/said)"
}

# a socket that its program bound to a loopback address keeps its port: a conversation with the host's
# own server goes on
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
