# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_replace.sh - a container with a static port is replaced by the next one of its workload, whose
# ADD comes before the other one's DEL: Nomad's allocations, static Pods, scripts on cnirun.

nomad='IgnoreUnknown=1;NOMAD_NAMESPACE=prod;NOMAD_JOB_ID=shop;NOMAD_GROUP_NAME=web'

# alloc_add NAME [ARGS]: the network of an allocation, in which no process runs yet
alloc_add() { container_add "$1" bridge -p 8080:80/tcp -p 8080:80/udp --args "${2:-$nomad}"; }

alloc_start() {
	alloc_add "$@"
	serve_in "$1" 80
}

expect_all() {
	expect_serves "$1"
	expect_answers host "$host4" 8080 "$1"
	expect_answers host 127.0.0.1 8080 "$1"
}

# conversations_open NAME: a connection of each kind that NAME answers; conversations_go_on NAME
conversations_open() {
	conversation_with "$1" tcp4 client tcp "$host4" 8080
	conversation_with "$1" tcp6 client tcp "$host6" 8080
	conversation_with "$1" udp4 client udp "$host4" 8080
	conversation_with "$1" local4 host tcp 127.0.0.1 8080
}
conversations_go_on() {
	local name
	for name in tcp4 tcp6 udp4 local4; do expect_says "$name" "$1"; done
}

# ports_show: the entries of portmaps, by their containers: now, and before
ports_show() {
	bpftool -j map dump pinned "$pins/portmaps" |
		jq -c '[.[].formatted.value | [.now.owner.slot, .before.owner.slot]] | unique'
}

# the next allocation of a Nomad group gets the port at its first ADD; new connections go to the old
# one until a process serves the port in the new one, and from then on to that; those of the old one
# go on until its DEL, which takes nothing of the new one's; TCP and UDP, IPv4 and IPv6, and
# processes of the host
test_replace_nomad() {
	alloc_start old
	conversations_open old
	alloc_add new
	expect_all old
	conversations_go_on old
	serve_in new 80
	expect_all new
	conversations_go_on old
	container_check old bridge
	container_check new bridge
	container_remove old bridge
	expect_all new
	container_check new bridge
	expect_count 1 slots
	container_remove new bridge
	expect_count 0 portmaps
}

# an old allocation that is being stopped, and serves its port no longer, gets no new connections,
# though the new one does not serve it yet; a virtual machine, whose sockets nobody sees, takes over
# at once
test_replace_old_stops() {
	alloc_start old
	processes_end old
	alloc_add new
	expect_refused client tcp "$host4" 8080
	expect_equal refused "$(ask host tcp 127.0.0.1 8080)"
	serve_in new 80
	expect_all new
	container_remove old bridge
	expect_all new
}

# a new allocation that maps the port at one address, where the old one has it at any: there, too, new
# connections go to the old one until the new one serves the port; elsewhere the old one keeps it; the
# DEL of either takes nothing of the other's
test_replace_other_address() {
	local ports="-p $host4:8080:80/tcp -p $host4:8080:80/udp"
	alloc_start old
	conversations_open old
	container_add new bridge $ports --args "$nomad"
	expect_all old
	conversations_go_on old
	container_check old bridge
	runtime check bridge new || fail "CHECK of the new one"
	container_remove new bridge
	expect_all old
	expect_count 4 portmaps
	container_add new bridge $ports --args "$nomad"
	serve_in new 80
	expect_answers client "$host4" 8080 new
	expect_answers client "$host6" 8080 old
	expect_answers host 127.0.0.1 8080 old
	conversations_go_on old
	container_remove old bridge
	expect_answers client "$host4" 8080 new
	expect_no_answers client "$host6" 8080
	runtime check bridge new || fail "CHECK after the old one's DEL"
	container_remove new bridge
	expect_count 0 portmaps
}

# a new allocation that fails gives the port back: its DEL, its death without DEL
test_replace_new_fails() {
	alloc_start old
	conversations_open old
	alloc_start new
	expect_all new
	container_remove new bridge
	conversations_go_on old
	expect_all old
	alloc_start new
	expect_all new
	container_die new
	container_add other bridge
	expect_all old
	conversations_go_on old
	container_check old bridge
	container_remove old bridge
	expect_count 0 portmaps
}

# the third while the first and the second drain: connections of both go on, and the DEL of either
# takes nothing; a third that fails gives back to the second
test_replace_twice() {
	alloc_start first
	conversations_open first
	alloc_start second
	conversation_with second later client tcp "$host4" 8080
	alloc_add third
	expect_all second
	serve_in third 80
	expect_all third
	conversations_go_on first
	expect_says later second
	container_check first bridge
	container_check second bridge
	by_hand_says 1 'container first, since' who 8080
	expect_equal 'first 1
second 1
third 0' "$(item '[.items[] | select(.protocol == "tcp" and .host.address == "0.0.0.0")] | group_by(.container.id)[] |
		"\(.[0].container.id) \([.[].flows] | add)"' list)" flows
	container_remove second bridge
	expect_all third
	conversations_go_on first
	alloc_start fourth
	conversations_go_on first
	container_remove fourth bridge
	expect_all third
	container_remove third bridge
	expect_all first
	conversations_go_on first
	container_remove first bridge
	expect_count 0 portmaps
}

# a new one on two networks that fails: its ports go to its second network first, and from there back
# to the old one
test_replace_two_networks() {
	local ports=(-p 8080:80/tcp -p 8080:80/udp --args "$nomad")
	conflist second bridge "$other_network | .plugins[0].ipam.routes = []"
	reverse_path_loose
	alloc_start old
	conversations_open old
	container_add new bridge "${ports[@]}"
	runtime add second new --ifname eth1 "${ports[@]}" >/run/out 2>&1 || fail "$(cat /run/out)"
	in_namespace new sysctl -qw net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.eth1.rp_filter=2
	serve_in new 80
	expect_all new
	container_del new bridge
	expect_equal 2 "$(ports_show | jq '.[0] | length')" 'the new one has the ports, and the old one had'
	runtime del second new --ifname eth1 || fail "DEL of the second network"
	expect_all old
	conversations_go_on old
	container_remove old bridge
	expect_count 0 portmaps
}

# a fourth while three drain: the first one's connections end, and a warning says whose
test_replace_three_times() {
	alloc_start first
	conversations_open first
	alloc_start second
	alloc_start third
	namespace_add fourth
	runtime add bridge fourth -p 8080:80/tcp -p 8080:80/udp --args "$nomad" >/run/out 2>/run/err ||
		fail "$(cat /run/out)"
	expect_in /run/err 'connections of Nomad job prod/shop/web (allocation first)'
	expect_equal 1 "$(grep -c 'replaced three times' /run/err)" warnings
	expect_all third
	serve_in fourth 80
	expect_all fourth
	case $(say tcp4 || true) in *name=first*) fail "the first one's connection goes on" ;; esac
	container_remove first bridge
	container_remove third bridge
	expect_all fourth
	container_remove fourth bridge
	expect_all second
	container_remove second bridge
	expect_count 0 portmaps
}

# a static Pod, a container with a name, and one with a name in the list's args replace each other;
# what has another namespace, group or name, or none, does not
test_replace_workloads() {
	local pod='IgnoreUnknown=1;K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=web-node1' args
	conflist named bridge "$(with_ours '{"args": {"bpf-portmap": {"workload": "web"}}}')"
	for args in "$pod" 'IgnoreUnknown=1;K8S_POD_NAME=web'; do
		alloc_start old "$args"
		alloc_start new "$args"
		expect_all new
		container_remove old bridge
		expect_all new
		container_remove new bridge
	done
	container_start old named -p 8080:80/tcp -p 8080:80/udp
	container_start new named -p 8080:80/tcp -p 8080:80/udp
	expect_all new
	container_remove old named
	expect_all new
	namespace_add other
	for args in "$nomad" 'IgnoreUnknown=1;K8S_POD_NAME=web2' 'IgnoreUnknown=1'; do
		expect_failure runtime add bridge other -p 8080:80/tcp --args "$args"
		expect_contains "$output" 'is taken by container web (new), interface eth0'
	done
	expect_all new
}

# who waits: a container of an engine that has no process any more is being stopped, and its DEL is
# waited for; one that has a process is refused at once
test_replace_conflict_waits() {
	local adding since id
	id=default-4c01db0b339c$(printf '%052d' 7) # nerdctl's have their namespace before the digits
	container_add_plain first
	container_add_plain second
	plugin_config first | NETNS=/run/netns/first plugin_run ADD "$id" >/run/out || fail "$(cat /run/out)"
	serve_in first 80
	since=$SECONDS
	expect_error 101 '' plugin_call ADD second
	[ $((SECONDS - since)) -le $((2 * ${SLOWER:-1})) ] || fail "it took $((SECONDS - since)) s"
	processes_end first
	plugin_call ADD second >/run/out 2>&1 &
	adding=$!
	wait_until 10 add_waits || fail "ADD does not wait"
	plugin_config first | NETNS=/run/netns/first plugin_run DEL "$id" || fail DEL
	wait "$adding" || fail "$(cat /run/out)"
	serve_in second 80
	expect_answer client tcp "$host4" 8080 second
}
# Nomad before 1.9 names nothing but the allocation: its successor's first ADD waits for the old one's
# DEL, though tasks still run in it, and succeeds
test_replace_old_nomad() {
	local old=f27f98b1-2ae0-46fc-809f-74723ed3260f new=0b1e52c4-8d0b-4b5c-9a0e-2f6a3c1d7e88 adding
	container_add_plain first
	container_add_plain second
	plugin_config first | NETNS=/run/netns/first plugin_run ADD "$old" >/run/out || fail "$(cat /run/out)"
	serve_in first 80
	plugin_config second | NETNS=/run/netns/second plugin_run ADD "$new" >/run/out 2>&1 &
	adding=$!
	wait_until 10 add_waits || fail "ADD does not wait"
	expect_answer client tcp "$host4" 8080 first
	processes_end first
	plugin_config first | NETNS=/run/netns/first plugin_run DEL "$old" || fail DEL
	wait "$adding" || fail "$(cat /run/out)"
	serve_in second 80
	expect_answer client tcp "$host4" 8080 second
}

add_waits() { grep -qs nanosleep /proc/*/wchan; }

# what stands meanwhile: list has both containers, who says who comes and who goes, and doctor finds
# nothing wrong, before and after the new one serves the port
test_replace_who_and_list() {
	ip route add default via "$client4"
	ip route add default via "$client6"
	alloc_start old
	conversations_open old
	alloc_add new
	expect_equal 'new comes next: new connections go to it once it serves the port
old to be replaced: new connections go to it until its successor serves the port' \
		"$(item '.items[] | "\(.container.id) \(.remark)"' list | sort -u)"
	by_hand_says 1 'taken  bpf-portmap  *:8080/tcp     job prod/shop/web, container old, since' who 8080
	by_hand_says 1 'also   bpf-portmap  *:8080/tcp     job prod/shop/web, container new, since' who 8080
	expect_equal 4 "$(grep -c '<- comes next: ' /run/out)" remarks
	expect_equal 4 "$(grep -c '! to be replaced: ' /run/out)" remarks
	by_hand 0 doctor 8080
	serve_in new 80
	expect_equal "old 1 replaced: its connections go on until it is deleted
new 0 null" "$(item '.items[] | select(.protocol == "tcp" and .host.address == "0.0.0.0") |
		"\(.container.id) \(.flows) \(.remark)"' list | sort -r)"
	by_hand_says 1 'taken  bpf-portmap  *:8080/tcp     job prod/shop/web, container new, since' who 8080
	by_hand_says 1 'also   bpf-portmap  *:8080/tcp     job prod/shop/web, container old, since' who 8080
	expect_equal 4 "$(grep -c 'replaced: its connections go on until it is deleted$' /run/out)" remarks
	by_hand 0 doctor 8080
	container_remove old bridge
	expect_equal 4 "$(item '.items[] | .container.id' list | grep -c new)" rows
	by_hand_says 1 new who 8080
	! grep replaced /run/out || fail "still replaced"
}

# the same over SCTP, whose sockets cannot be looked up: the new one has the port from its ADD on
test_replace_sctp() {
	container_add old bridge -p 8080:80/sctp --args "$nomad"
	serve_sctp_in old 80
	container_add new bridge -p 8080:80/sctp --args "$nomad"
	serve_sctp_in new 80
	both expect_answer client sctp @host 8080 new
	container_remove old bridge
	expect_answer client sctp "$host4" 8080 new
}

# killed_at_each_change COMMAND NAME: the plugin's call is killed before each change that it makes in the
# kernel; each time the port answers, and one DEL of it takes nothing else
killed_at_each_change() {
	local status=137 call=1
	while [ "$status" = 137 ]; do
		status=0
		[ "$1" = ADD ] || CNI_ARGS=$nomad plugin_run ADD "$2" </run/config >/run/out || fail "$(cat /run/out)"
		CNI_ARGS=$nomad PREFIX="$build/tests/traced kill $call" plugin_run "$1" "$2" </run/config >/run/out ||
			status=$?
		expect_answer client tcp "$host4" 8080 old
		[ "$call" -gt 1 ] || CNI_ARGS=$nomad plugin_run ADD "$2" </run/config >/run/out || fail "$(cat /run/out)"
		plugin_run DEL "$2" </run/config || fail "DEL after a kill"
		expect_answer client tcp "$host4" 8080 old
		call=$((call + 1))
	done
	[ "$call" -gt 5 ] || fail "only $call calls: nothing was tested"
}

# limit 180 s
# ADD and DEL of the new one killed before each change in the kernel: the port answers at any instant,
# and one DEL gives it back; the old one's DEL killed: the new one keeps it
test_replace_killed() {
	local call status=137
	alloc_start old
	container_add_plain new
	plugin_config new >/run/config
	killed_at_each_change ADD new
	killed_at_each_change DEL new
	serve_in new 80
	CNI_ARGS=$nomad plugin_run ADD new </run/config >/run/out || fail "$(cat /run/out)"
	plugin_config old >/run/config.old
	for call in $(seq 60); do
		status=0
		PREFIX="$build/tests/traced kill $call" plugin_run DEL old </run/config.old || status=$?
		expect_answer client tcp "$host4" 8080 new
		[ "$status" = 137 ] || break
	done
	expect_equal 0 "$status" "the DEL that was not killed"
	plugin_run DEL new </run/config || fail DEL
	expect_equal '' "$(ports_show | tr -d '[]')" "ports"
}

# asked_all_the_time: asks the port, again and again, until /run/stop exists, and not while /run/pause
# does; the failures are counted in /run/failures, with the longest time without an answer. Who waits
# longer than a second has lost a segment
asked_all_the_time() {
	local failed=0 last longest=0 now
	last=$(date +%s%3N)
	while [ ! -e /run/stop ]; do
		if [ -e /run/pause ]; then
			touch /run/paused
			wait_until 10 test ! -e /run/pause
		elif ask client tcp "$host4" 8080 --timeout 900 >/dev/null; then
			echo >>/run/answered
			now=$(date +%s%3N)
			[ $((now - last)) -le "$longest" ] || longest=$((now - last))
			last=$now
		else
			failed=$((failed + 1))
		fi
	done
	echo "failed=$failed longest=$longest" >/run/failures
}

# asked_once_more: a request that begins now was answered
asked_once_more() {
	local before
	before=$(wc -l </run/answered)
	wait_until 10 answered $((before + 2)) || fail "nothing is answered any more"
}

answered() { [ "$(wc -l </run/answered)" -ge "$1" ]; }

# task_ends NAME: NAME's processes end between two requests: the kernel resets one that they have not
# accepted yet, whoever maps the port
task_ends() {
	rm -f /run/paused
	touch /run/pause
	wait_until 10 test -e /run/paused || fail "requests go on"
	processes_end "$1"
	rm /run/pause
}

# Nomad's own sequence, under clients that connect all the time: the new allocation's network, the end
# of the old one's task after its kill_timeout, while the new one's begins to serve, the old one's
# network; then a canary that is not promoted. Nobody is refused
test_replace_nobody_refused() {
	local asking
	: >/run/answered
	alloc_start old
	asked_all_the_time &
	asking=$!
	alloc_add new
	serve_in new 80
	asked_once_more
	processes_end old
	container_remove old bridge
	alloc_add canary
	serve_in canary 80
	asked_once_more
	task_ends canary
	asked_once_more
	container_remove canary bridge
	asked_once_more
	touch /run/stop
	wait "$asking"
	echo "# $(cat /run/failures)" >&2
	[ -z "${REPORT:-}" ] || cat /run/failures >>"$REPORT"
	expect_equal 0 "$(field_of failed "$(cat /run/failures)")" "connections that failed"
}
