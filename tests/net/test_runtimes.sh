# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_runtimes.sh - called as container runtimes really call, and by callers that make mistakes.

# A process in the container's namespace, as an engine's container is one: in $process
container_process() {
	nsenter --net=/run/netns/"$1" sleep 1000 &
	process=$!
	wait_until 5 grep -q sleep "/proc/$process/comm" || fail "no process in $1"
}

# as containerd's CRI calls: its own keys, hostIP empty, DEL repeated by kubelet with netns empty
# [s146][s152]
test_runtimes_containerd() {
	container_add_plain pod
	serve_in pod 80
	export CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=7'
	local ports='.runtimeConfig.portMappings = [{"HostPort": 8080, "ContainerPort": 80,
		"Protocol": "tcp", "HostIP": ""}, {"HostPort": 8080, "ContainerPort": 80,
		"Protocol": "udp", "HostIP": ""}]'
	plugin_call ADD pod "$ports" >/run/out || fail "$(cat /run/out)"
	expect_answers client "$host4" 8080 pod "$client4"
	expect_answers client "$host6" 8080 pod "$client6"
	plugin_call DEL pod "$ports" || fail DEL
	NETNS='' plugin_call DEL pod "$ports" || fail "DEL again"
	NETNS='' plugin_call DEL pod "$ports" || fail "DEL a third time"
	expect_no_answer client tcp "$host4" 8080
}

# as nerdctl calls: DEL before each ADD, hostIP 0.0.0.0, netns of a process, DEL with netns empty
# after the exit [s147][s152]
test_runtimes_nerdctl() {
	container_add_plain default-1234
	serve_in default-1234 80
	local ports='.runtimeConfig.portMappings = [{"HostPort": 8080, "ContainerPort": 80,
		"Protocol": "tcp", "HostIP": "0.0.0.0"}]'
	local process round
	container_process default-1234
	for round in 1 2 3; do
		NETNS='' plugin_call DEL default-1234 "$ports" || fail "DEL before ADD $round"
		NETNS=/proc/$process/ns/net plugin_call ADD default-1234 "$ports" >/run/out ||
			fail "$(cat /run/out)"
		expect_answer client tcp "$host4" 8080 default-1234 "$client4"
		expect_no_answer client tcp "$host6" 8080
	done
	kill "$process"
	wait "$process" 2>/dev/null || true
	NETNS='' plugin_call DEL default-1234 "$ports" || fail "DEL after the exit"
	expect_no_answer client tcp "$host4" 8080
	expect_equal 0 "$(map_count attachments)" attachments
}

# as Nomad calls: every port as tcp and udp at an address of the host, ADD repeated without DEL,
# CHECK after the agent restarts [s148][s44]
test_runtimes_nomad() {
	container_add_plain task
	serve_in task 80
	local ports=".runtimeConfig.portMappings = [\"tcp\", \"udp\" | {\"HostPort\": 25000,
		\"ContainerPort\": 80, \"Protocol\": ., \"HostIP\": \"$host4\"}]" round
	for round in 1 2 3; do
		plugin_call ADD task "$ports" >/run/out || fail "ADD $round: $(cat /run/out)"
		expect_equal 2 "$(map_count portmaps)" portmaps
	done
	expect_answers client "$host4" 25000 task "$client4"
	plugin_call CHECK task "$ports" || fail CHECK
	plugin_call DEL task "$ports" || fail DEL
	expect_equal 0 "$(map_count portmaps)" portmaps
}

# as Podman calls: a list of 0.4.0 with firewall and tuning, DEL with the cached result, once more
# after the namespace is gone, and after an ADD that failed [s149]
test_runtimes_podman() {
	conflist podman bridge '.cniVersion = "0.4.0" | .name = "podman" | .plugins[0].ipMasq = true
		| .plugins[0].hairpinMode = true | del(.plugins[1].ipMasq)
		| .plugins += [{"type": "firewall", "backend": ""}, {"type": "tuning"}]'
	container_start web podman -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers web "$host4" 8080 web "$bridge4"
	namespace_add second
	expect_failure runtime add podman second -p 8080:80/tcp
	expect_contains "$output" 'taken by container web'
	runtime del podman second || fail "DEL after the failed ADD"
	expect_answer client tcp "$host4" 8080 web "$client4"
	container_die web
	runtime del podman web || fail "DEL of what is gone"
	runtime del podman web || fail "DEL once more"
	expect_equal "0 0" "$(map_count portmaps) $(map_count attachments)" "portmaps, attachments"
}

# as CRI-O calls: CHECK right after every ADD, then GC and STATUS with version 1.1.0 [s150][s53]
test_runtimes_crio() {
	container_add_plain pod
	serve_in pod 80
	local newest='.cniVersion = "1.1.0" | .prevResult.cniVersion = "1.1.0"' round
	local gc="$newest | del(.prevResult, .runtimeConfig) | .\"cni.dev/valid-attachments\" ="
	for round in 1 2 3; do
		plugin_call ADD pod "$newest" >/run/out || fail "$(cat /run/out)"
		plugin_call CHECK pod "$newest" || fail "CHECK right after ADD $round"
		plugin_call STATUS pod "$newest | del(.prevResult, .runtimeConfig)" || fail STATUS
		plugin_call GC pod "$gc [{\"containerID\": \"pod\", \"ifname\": \"eth0\"}]" || fail GC
		expect_answer client tcp "$host4" 8080 pod "$client4"
		plugin_call DEL pod "$newest" || fail DEL
	done
	# It maps host ports itself and passes none
	plugin_call ADD pod "$newest | del(.runtimeConfig)" >/run/out || fail "$(cat /run/out)"
	plugin_call CHECK pod "$newest | del(.runtimeConfig)" || fail "CHECK without ports"
	expect_no_answer client tcp "$host4" 8080
}

# as cri-dockerd calls: a list of ports even if it is empty, netns of a process, empty at DEL
# [s151][s152]
test_runtimes_cri_dockerd() {
	container_add_plain pod
	serve_in pod 80
	local process empty='.runtimeConfig.portMappings = []'
	container_process pod
	NETNS=/proc/$process/ns/net plugin_call ADD pod "$empty" >/run/out || fail "$(cat /run/out)"
	NETNS=/proc/$process/ns/net plugin_call CHECK pod "$empty" || fail CHECK
	NETNS='' plugin_call DEL pod "$empty" || fail DEL
	NETNS=/proc/$process/ns/net plugin_call ADD pod \
		"$(mapping 8080) | .runtimeConfig.portMappings[0].hostIP = \"\"" >/run/out ||
		fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 pod "$client4"
	# another name of the same namespace
	plugin_call CHECK pod || fail "CHECK by another path"
	kill "$process"
	wait "$process" 2>/dev/null || true
	NETNS=/proc/$process/ns/net plugin_call DEL pod "$empty" || fail "DEL with a netns that is gone"
	expect_no_answer client tcp "$host4" 8080
}

# CNI_ARGS that nobody understands disturb nothing [s152]
test_runtimes_garbage_arguments() {
	container_add_plain web
	serve_in web 80
	CNI_ARGS='garbage;;=' plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web "$client4"
	CNI_ARGS=';=;' plugin_call DEL web || fail DEL
}

# the plugin's own namespace as CNI_NETNS: ADD refuses with code 8 before it does anything, DEL
# cleans up and then says so, CNI_NETNS_OVERRIDE allows it [s12][s13][s15]
test_runtimes_own_namespace() {
	container_add_plain web
	serve_in web 80
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	local before
	before=$(state_show)
	NETNS=/proc/self/ns/net expect_failure plugin_call ADD web
	expect_code 8
	expect_equal 1 "$(jq -s length <<<"$output")" "documents on stdout"
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	NETNS=/proc/self/ns/net expect_failure plugin_call DEL web
	expect_code 8
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	CNI_NETNS_OVERRIDE=TRUE NETNS=/proc/self/ns/net plugin_call DEL web || fail "DEL with override"
	expect_same_state "$before"
}

# a UDP stream that began before ADD, when conntrack saw nobody there, reaches the container though
# netfilter's conntrack still has that entry [s85]
test_runtimes_conntrack_is_not_asked() {
	container_add_plain web
	serve_in web 80
	nft -f - <<-'RULES'
	table ip watch { chain c { type filter hook prerouting priority 0; ct state new counter; }; }
	RULES
	conversation_open talk client udp "$host4" 8080 --keep-going
	say talk >/dev/null
	conntrack -L -p udp 2>/dev/null | grep -q "dport=8080 " || skip "the kernel has no conntrack"
	plugin_call ADD web "$(mapping 8080 80 udp)" >/run/out || fail "$(cat /run/out)"
	expect_says talk web
	plugin_call DEL web || fail DEL
	serve_on_host 8080
	expect_says talk host
}

# a lock that somebody holds for more than 10 seconds: ADD gives up with code 11 and names the
# holder, CHECK and STATUS do not wait, the next ADD works [s17][s60]
test_runtimes_lock_is_held() {
	container_add_plain web
	container_add_plain other
	plugin_call ADD other "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	local before holder
	before=$(state_show)
	flock --no-fork /proc/self/ns/net sleep 100 &
	holder=$!
	wait_until 5 grep -q "FLOCK .* $holder " /proc/locks || fail "flock did not start"
	plugin_call CHECK other "$(mapping 9090)" || fail "CHECK waited"
	plugin_call STATUS other 'del(.prevResult, .runtimeConfig) | .cniVersion = "1.1.0"' ||
		fail "STATUS waited"
	expect_failure plugin_call ADD web
	expect_code 11
	expect_contains "$output" "$holder"
	kill "$holder"
	expect_same_state "$before"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
}
