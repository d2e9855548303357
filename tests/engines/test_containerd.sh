# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_containerd.sh - the real containerd, called like kubelet calls it, with conf/bridge.conflist.

. "$folder/engine.sh"
. "$folder/cri.sh"
. "$folder/containerd.sh"

# sandbox_add NAME PORT...: its ID is in $id
sandbox_add() {
	local output
	output=$(sandbox_run "$@") || fail "RunPodSandbox of $1: $output"
	id=$output
	wait_until 10 sandbox_serves "$id" || fail "$1 does not serve"
}

sandbox_process() { containerd_ctr -n k8s.io task ls | awk -v id="$1" '$1 == id { print $2 }'; }

# A sandbox starts before its servers listen.
sandbox_serves() {
	local process listening
	process=$(sandbox_process "$1")
	listening=$(nsenter --target "$process" --net ss -Hltun 'sport = 80' | wc -l)
	[ "$listening" -ge 2 ]
}

sandbox_delete() {
	local output
	output=$(sandbox_stop "$1") || fail "StopPodSandbox: $output"
	output=$(sandbox_remove "$1") || fail "RemovePodSandbox: $output"
}

# Stores in $before the state of a host after its first sandbox is removed.
state_without_sandbox() {
	sandbox_add first 8080:80/tcp
	sandbox_delete "$id"
	before=$(state_show)
}

expect_nothing_left() {
	expect_same_state "$before"
	expect_count "0 0" 'portmaps attachments'
	expect_equal '' "$(find /run/netns -name 'cni-*')" "namespaces of sandboxes"
}

# limit 180 s
# a pod's sandbox with hostPort, TCP and UDP, through containerd's CRI: reached from outside and
# from the host itself, by IPv4 and IPv6; after stop there is no answer, after remove nothing is
# left
test_containerd_sandbox() {
	local before id
	containerd_world
	state_without_sandbox
	sandbox_add web 8080:80/tcp 8080:80/udp
	expect_serves web
	expect_answers server "$host4_second" 8080 web "$server4"
	expect_answers host 127.0.0.1 8080 web
	expect_answers host ::1 8080 web
	sandbox_stop "$id" || fail StopPodSandbox
	expect_no_answers client "$host4" 8080
	expect_no_answers host 127.0.0.1 8080
	sandbox_stop "$id" || fail "StopPodSandbox once more"
	sandbox_remove "$id" || fail RemovePodSandbox
	expect_nothing_left
}

# limit 180 s
# a sandbox's hostIP: the port answers at that address only; another sandbox can have the port at
# another address; only processes of the host reach one at 127.0.0.1; containerd's log has the
# warnings of an ADD that succeeds
test_containerd_host_address() {
	local before id first
	containerd_world
	state_without_sandbox
	sandbox_add here "8080:80/tcp@$host4" "8080:80/udp@$host4"
	first=$id
	expect_answers client "$host4" 8080 here "$client4"
	expect_no_answer client tcp "$host6" 8080
	expect_no_answer server tcp "$host4_second" 8080
	expect_no_answer host tcp 127.0.0.1 8080
	expect_answers host "$host4" 8080 here
	sandbox_add there "8080:80/tcp@$host4_second" "8080:80/tcp@$host6" 8080:80/tcp@203.0.113.9
	expect_contains "$(grep 'bpf-portmap: warning: ' "$containerd_home/log")" 203.0.113.9
	expect_answer server tcp "$host4_second" 8080 there "$server4"
	expect_answer client tcp "$host6" 8080 there "$client6"
	expect_answers client "$host4" 8080 here "$client4"
	sandbox_delete "$id"
	sandbox_add inside 8080:80/tcp@127.0.0.1
	expect_answer host tcp 127.0.0.1 8080 inside
	expect_no_answer client tcp "$host6" 8080
	expect_answers client "$host4" 8080 here "$client4"
	sandbox_delete "$id"
	sandbox_delete "$first"
	expect_nothing_left
}

# limit 180 s
# a second sandbox with a hostPort that is taken: kubelet receives our error with the owner in it,
# nothing of the second one is left, the first one still serves; after its removal the second gets
# it. Of four at once with one hostPort one gets it, the others an error each
test_containerd_conflict() {
	local before id first
	containerd_world
	state_without_sandbox
	sandbox_add web 8080:80/tcp
	first=$id
	expect_refusal 'failed to setup network for sandbox' sandbox_run second 9090:80/tcp 8080:80/tcp
	expect_contains "$output" 'plugin type="bpf-portmap" failed (add): host port 8080/tcp '
	expect_contains "$output" "taken by pod default/web (sandbox $first), interface eth0, network bridge, since 20"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_no_answer client tcp "$host4" 9090
	expect_equal 1 "$(find /run/netns -name 'cni-*' | wc -l)" "namespaces of sandboxes"
	sandbox_delete "$first"
	sandbox_add second 9090:80/tcp 8080:80/tcp
	expect_answer client tcp "$host4" 8080 second "$client4"
	expect_answer client tcp "$host4" 9090 second "$client4"
	sandbox_delete "$id"
	expect_nothing_left
	four_want_one_port
}

four_want_one_port() {
	local number process processes='' winner=''
	for number in 1 2 3 4; do
		sandbox_run "pod$number" 8080:80/tcp >"/run/results/pod$number" &
		processes="$processes $!"
	done
	for process in $processes; do
		number=$((number % 4 + 1))
		if wait "$process"; then
			expect_equal '' "$winner" "the other winner"
			winner=pod$number
		else
			expect_in "/run/results/pod$number" 'host port 8080/tcp '
		fi
	done
	[ -n "$winner" ] || fail "none: $(cat /run/results/pod1)"
	id=$(cat "/run/results/$winner")
	wait_until 10 sandbox_serves "$id" || fail "$winner does not serve"
	expect_answer client tcp "$host4" 8080 "$winner" "$client4"
	sandbox_delete "$id"
	expect_nothing_left
}

# limit 180 s
# a sandbox whose process was killed with -9: kubelet stops it and creates its successor, which has
# the port at once; the removal of the dead one later does not affect the successor. containerd is
# killed with -9: sandboxes still serve; after a restart it knows them, and what it removes leaves
# nothing
test_containerd_killed() {
	local before id first
	containerd_world
	state_without_sandbox
	sandbox_add web 8080:80/tcp 8080:80/udp
	first=$id
	kill -9 "$(sandbox_process "$first")"
	wait_until 10 sandbox_is_dead "$first" || fail "$(sandboxes)"
	expect_no_answer client tcp "$host4" 8080
	sandbox_stop "$first" || fail StopPodSandbox
	attempt=1 sandbox_add web 8080:80/tcp 8080:80/udp
	expect_answers client "$host4" 8080 web "$client4"
	sandbox_remove "$first" || fail RemovePodSandbox
	first=$id
	containerd_kill
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers host 127.0.0.1 8080 web
	containerd_start
	expect_contains "$(sandboxes)" "$first"
	expect_answers client "$host6" 8080 web "$client6"
	expect_refusal "taken by pod default/web (sandbox $first)" sandbox_run second 8080:80/tcp
	sandbox_delete "$first"
	sandbox_add second 8080:80/tcp
	expect_answer client tcp "$host4" 8080 second "$client4"
	sandbox_delete "$id"
	expect_nothing_left
}

sandbox_is_dead() {
	case $(sandboxes | sed -n "/$1/,/^}/p") in *'state: 1'*) ;; *) false ;; esac
}

# limit 180 s
# containerd is killed with -9 during our ADD: the next sandbox gets the port as soon as the first
# one's namespace is gone, whether containerd calls DEL for it (1.6) or not (1.7)
test_containerd_killed_during_add() {
	local before id veth
	containerd_world
	state_without_sandbox
	plugin_waits_after_add
	sandbox_run web 8080:80/tcp >/dev/null 2>&1 &
	wait_until 20 test -e /run/added || fail "no ADD"
	expect_count "1 2" 'attachments portmaps'
	veth=$(cd /sys/class/net && ls -d veth*)
	containerd_kill
	plugin_waits_no_more
	containerd_start
	remove_sandboxes
	wait_until 10 no_interface "$veth" || fail "$veth stays"
	sandbox_add web 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web "$client4"
	sandbox_delete "$id"
	expect_count 0 portmaps
	expect_equal '' "$(find /run/netns -name 'cni-*')" "namespaces of sandboxes"
}

# A plugin that does ours' work, but does not return from ADD
plugin_waits_after_add() {
	mkfifo /run/go-on
	mv /run/cni-plugins/bpf-portmap /run/waiting-plugin
	cat >/run/cni-plugins/bpf-portmap <<-'SH'
	#!/bin/sh
	/run/waiting-plugin || exit
	[ "$CNI_COMMAND" != ADD ] || { touch /run/added; read -r _ </run/go-on; }
	SH
	chmod +x /run/cni-plugins/bpf-portmap
}

plugin_waits_no_more() {
	mv /run/waiting-plugin /run/cni-plugins/bpf-portmap
	timeout $((5 * SLOWER)) sh -c 'echo >/run/go-on' || true
}

# Removes all sandboxes, as kubelet does if they are not ready.
remove_sandboxes() {
	for id in $(sandboxes | sed -n 's/^ *id: "\(.*\)"$/\1/p'); do
		sandbox_delete "$id"
	done
}

# nothing is loaded
# limit 240 s
# install on a running node: containerd sees the list by inotify, without a restart, each time: after
# `install`, after `install --watch` has put right what an agent wrote, after `uninstall`. A sandbox
# that was there keeps portmap's rules and its DEL; a new one has ours; when both are gone, and it is
# uninstalled, neither rules nor anything of ours is left
test_containerd_installer() {
	local before id old new watcher rules
	containerd_world
	node_with_portmap
	rules=$(nat_rules)
	before=$(state_show)
	sandbox_add old 8080:80/tcp
	old=$id
	expect_contains "$(nat_rules)" 'dport 8080'
	node_runs install
	sandbox_add_with 1 new 9090:80/tcp
	new=$id
	expect_answer client tcp "$host4" 8080 old
	expect_answer client tcp "$host4" 9090 new "$client4"
	"$build/bpf-portmap" install --watch --bin-dir "$CNI_PATH" --conf-dir "$containerd_home/conflists" \
		>/run/watch 2>&1 &
	watcher=$!
	agent_rewrites
	wait_until 20 list_is_ours || fail "the agent's list stays: $(cat /run/watch)"
	sandbox_add_with 2 third 7070:80/tcp
	sandbox_delete "$id"
	kill -TERM "$watcher"
	wait "$watcher" || fail "$(cat /run/watch)"
	! node_runs uninstall || fail "it was removed under a container: $(cat /run/out)"
	expect_in /run/out 'pod default/new'
	sandbox_add_with 1 again 6060:80/tcp
	sandbox_delete "$id"
	sandbox_delete "$new"
	sandbox_delete "$old"
	node_runs uninstall
	expect_equal "$rules" "$(nat_rules)" "rules of portmap"
	sandbox_add last 8080:80/tcp
	sandbox_delete "$id"
	expect_same_state "$before"
}

# sandbox_add_with COUNT NAME PORT...: so many attachments are ours then. containerd may take a moment
# to read the list again.
sandbox_add_with() {
	local count=$1 i
	shift
	for i in {1..5}; do
		sandbox_add "$@"
		[ "$(map_count attachments)" != "$count" ] || return 0
		[ "$i" = 5 ] || sandbox_delete "$id"
	done
	fail "containerd does not see the list: $(map_count attachments) attachments are ours, not $count"
}

# As an agent leaves it: portmap in the list, our binary not there, and the bridge made once.
node_with_portmap() {
	rm "$CNI_PATH/bpf-portmap"
	agent_rewrites
	sandbox_add first 8080:80/tcp
	sandbox_delete "$id"
}

agent_rewrites() {
	jq "$as_reference" "$project/conf/bridge.conflist" >"$containerd_home/conflists/.new"
	mv "$containerd_home/conflists/.new" "$containerd_home/conflists/bridge.conflist"
}

list_is_ours() { grep -q '"bpf-portmap"' "$containerd_home/conflists/bridge.conflist"; }

node_runs() {
	"$build/bpf-portmap" "$1" --bin-dir "$CNI_PATH" --conf-dir "$containerd_home/conflists" \
		>/run/out 2>/run/err
}

nat_rules() { iptables-save -t nat | grep -v '^[#:]' | sort; }

# limit 180 s
# ctr run --cni, which has no ports: the container reaches a server outside with the host's address;
# the DEL after its end, for a process that is gone, leaves nothing
test_containerd_ctr() {
	containerd_world
	image_import default
	conflists_where_ctr_looks
	local before
	serve_in server 80
	ctr_runs first
	before=$(state_show)
	ctr_runs second
	expect_same_state "$before"
	expect_count 0 attachments
}

# ctr reads no other folder.
conflists_where_ctr_looks() {
	cp -a /etc /run/etc
	mount --bind /run/etc /etc
	mount -t tmpfs tmpfs /opt
	rm -rf /etc/cni
	mkdir -p /etc/cni /opt/cni
	ln -s "$containerd_home/conflists" /etc/cni/net.d
	ln -s "$CNI_PATH" /opt/cni/bin
}

# ctr_runs NAME: a container that uses the server and ends, and its interface with it
ctr_runs() {
	local answer
	answer=$(containerd_ctr run --rm --cni --snapshotter native "$image" "$1" \
		/bin/peer ask tcp "$server4" 80) || fail "ctr run: $answer"
	expect_contains "$answer" "name=server " "client=$host4_second:"
	wait_until 10 no_veth || fail "the interface of $1 stays"
}

no_veth() { [ -z "$(find /sys/class/net -name 'veth*')" ]; }

# limit 180 s
# containerd sends what data/ has, for machines without containerd
test_containerd_sends() {
	local id first data
	containerd_world
	case $(containerd_version) in
	1.6.* | 1.7.*) data=containerd-1.6.20 ;;
	2.*) data=containerd-2.1.9 ;;
	*) skip "what containerd $(containerd_version) sends is not in data/" ;;
	esac
	recorder_install
	during 'RunPodSandbox with hostPort, TCP and UDP' sandbox_add web 8080:80/tcp 8080:80/udp
	first=$id
	during 'RunPodSandbox with the same hostPort' expect_failure sandbox_run second 8080:80/tcp
	during 'StopPodSandbox of the first' sandbox_stop "$first"
	during 'StopPodSandbox once more' sandbox_stop "$first"
	during 'RemovePodSandbox of the first' sandbox_remove "$first"
	during 'RunPodSandbox with hostIP' sandbox_add third "8080:80/tcp@$host4_second"
	during 'StopPodSandbox of that' sandbox_stop "$id"
	during 'RunPodSandbox without ports' sandbox_add fourth
	during 'StopPodSandbox of that' sandbox_stop "$id"
	expect_recorded "$data"
}
