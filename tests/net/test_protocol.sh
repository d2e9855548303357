# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_protocol.sh - the CNI protocol with the real binary: versions, CHECK, GC, STATUS, and invalid
# input.

# serves_in_version VERSION: the bridge list in that version, from ADD to DEL
serves_in_version() {
	local version=$1
	conflist "v$1" bridge ".cniVersion = \"$1\" | .name = \"v$1\""
	namespace_add web
	runtime add "v$version" web -p 8080:80/tcp -p 8080:80/udp >/run/out 2>&1 ||
		fail "$version: $(cat /run/out)"
	expect_equal "$version" "$(jq -r .cniVersion /run/out)" "cniVersion of the result"
	serve_in web 80
	expect_serves web
	case $version in
	0.[123].*) expect_failure runtime check "v$version" web ;;
	*) runtime check "v$version" web || fail "CHECK, $version" ;;
	esac
	runtime del "v$version" web || fail "DEL, $version"
	expect_no_answer client tcp "$host4" 8080
	expect_count "0 0" 'portmaps attachments' "$version"
	container_die web
	# Each network begins with the same address. An entry may end meanwhile.
	ip neighbour flush dev cni0 || ip neighbour flush dev cni0
}

# a list of each CNI version up to 1.0.0 works from ADD to DEL, from 0.4.0 on with CHECK
test_protocol_versions() {
	local version
	for version in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0; do serves_in_version "$version"; done
}

# in CNI version 1.1.0 the plugin works from ADD to CHECK, STATUS, GC and DEL
test_protocol_version_1_1_0() {
	container_add_plain web
	local newest='.cniVersion = "1.1.0" | .prevResult.cniVersion = "1.1.0"'
	plugin_call ADD web "$newest" >/run/out || fail "$(cat /run/out)"
	expect_equal 1.1.0 "$(jq -r .cniVersion /run/out)" "cniVersion of the result"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_call CHECK web "$newest" || fail CHECK
	plugin_call STATUS web "$newest" || fail STATUS
	plugin_call GC web "$newest | .\"cni.dev/valid-attachments\" =
		[{\"containerID\": \"web\", \"ifname\": \"eth0\"}]" || fail GC
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_call DEL web "$newest" || fail DEL
	expect_no_answer client tcp "$host4" 8080
}

# the previous result is passed on with every key, unknown ones too; VERSION and a run without
# CNI_COMMAND answer without configuration
test_protocol_result_passes_through() {
	output=$(CNI_COMMAND=VERSION "$build/bpf-portmap" </dev/null)
	expect_equal '["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]' \
		"$(jq -c .supportedVersions <<<"$output")"
	output=$(env -u CNI_COMMAND "$build/bpf-portmap" 2>&1 >/run/out </dev/null)
	expect_contains "$output" bpf-portmap 1.1.0
	expect_equal "" "$(cat /run/out)" "stdout of a run by hand"
	container_add_plain web
	local foreign='.prevResult.dns = {"nameservers": ["192.0.2.53"]}
		| .prevResult.example = {"a": [1, null]}
		| .prevResult.interfaces[0].color = "blue" | .prevResult.big = 9007199254740993'
	plugin_config web "$foreign" | jq -c .prevResult >/run/expected
	plugin_call ADD web "$foreign" >/run/out || fail "$(cat /run/out)"
	jq -se '.[0] == .[1]' /run/expected /run/out >/run/equal || diff /run/expected /run/out ||
		fail "the result differs"
}

# CHECK succeeds right after ADD, and a second time
test_protocol_check() {
	container_start web bridge -p 8080:80/tcp -p "$host4:8080:80/udp"
	container_add routed ptp -p 8081:80/tcp
	container_check web bridge
	container_check routed ptp
	local before
	before=$(state_show)
	container_check web bridge
	expect_same_state "$before"
}

# CHECK finds a mapping, an endpoint or an attachment's record that was removed
test_protocol_check_entry_removed() {
	local map word
	container_add_plain web
	plugin_config web >/run/config
	while read -r map word; do
		plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		plugin_run CHECK web </run/config || fail "CHECK before $map"
		map_empty "$map"
		expect_refusal "$word" plugin_run CHECK web </run/config
	done <<-MAPS
		portmaps 8080
		endpoints $(address4 web)
		attachments web
	MAPS
}

# CHECK compares the given mappings with the recorded ones; it accepts a MAC and an interface that a
# later plugin changed or added; it finds that the veth is gone; without prevResult it is an error with
# code 7
test_protocol_check_other_mappings() {
	container_add_plain web
	plugin_call ADD web "$(mapping 8080)" >/run/out || fail "$(cat /run/out)"
	plugin_call CHECK web "$(mapping 8080)" || fail CHECK
	expect_refusal 9090 plugin_call CHECK web "$(mapping 9090)"
	expect_refusal 8080 plugin_call CHECK web "$(mapping 8080 81)"
	plugin_call CHECK web '.prevResult.interfaces += [{"name":"bwp1234"}] |
		(.prevResult.interfaces[] | select(.name == "eth0")).mac = "02:11:22:33:44:55"' || fail CHECK
	expect_error 7 '' plugin_call CHECK web 'del(.prevResult)'
	ip link delete "$(host_veth web)"
	expect_failure plugin_call CHECK web
}

gc() {
	plugin_run GC any <<<"{\"cniVersion\":\"1.1.0\",\"name\":\"bridge\",\"type\":\"bpf-portmap\"$1}"
}

# GC removes invalid attachments of its own network only; with null all of the network, without a
# list only those without a veth
test_protocol_gc() {
	conflist other bridge "$other_network"
	container_start one bridge -p 8081:80/tcp
	container_start two bridge -p 8082:80/tcp
	container_start three other -p 8083:80/tcp
	gc ',"cni.dev/valid-attachments":[{"containerID":"one","ifname":"eth0"}]' || fail GC
	expect_answer client tcp "$host4" 8081 one
	expect_no_answer client tcp "$host4" 8082
	expect_answer client tcp "$host4" 8083 three
	gc ',"cni.dev/attachments":[{"containerID":"one","ifname":"eth1"}]' || fail GC
	expect_no_answer client tcp "$host4" 8081
	container_start four bridge -p 8081:80/tcp
	container_start five bridge -p 8082:80/tcp
	container_die five
	gc '' || fail GC
	expect_answer client tcp "$host4" 8081 four
	expect_count 2 attachments
	gc ',"cni.dev/valid-attachments":null' || fail GC
	expect_no_answer client tcp "$host4" 8081
	expect_answer client tcp "$host4" 8083 three
	expect_count "1 2" 'attachments portmaps'
}

# cnirun gc removes cached attachments whose namespace is gone
test_protocol_gc_by_runtime() {
	container_start one bridge -p 8081:80/tcp
	container_start two bridge -p 8082:80/tcp
	container_die two
	"$cnirun" gc /run/conf/bridge.conflist || fail GC
	expect_answer client tcp "$host4" 8081 one
	expect_count 1 attachments
	container_start three bridge -p 8082:80/tcp
}

# nothing is loaded
# STATUS reports before the first ADD that it would work, and changes nothing; without the privilege
# to use BPF, and in a user namespace, it fails with code 50 and says why, as does ADD, which leaves
# nothing
test_protocol_status() {
	local before
	container_add_plain web
	before=$(state_show)
	status || fail STATUS
	PREFIX='setpriv --bounding-set -all --inh-caps -all --reuid 65534 --clear-groups' \
		expect_failure status
	expect_code 50
	PREFIX='setpriv --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin' \
		expect_failure plugin_call ADD web
	expect_contains "$output" 'not permitted'
	if has_user_namespaces; then
		PREFIX='unshare --user --map-root-user' expect_error 50 '' status
		expect_contains "$output" 'rootless, in a user namespace'
		PREFIX='unshare --user --map-root-user' expect_failure plugin_call ADD web
		expect_contains "$output" 'rootless, in a user namespace'
	fi
	expect_same_state "$before"
}

# beside a container STATUS succeeds; with attachments whose hooks are gone it fails with code 51
test_protocol_status_of_hooks() {
	web_added
	status || fail STATUS
	detach_ours eth0 ingress from_uplink
	expect_error 51 eth0 status
}

# refuses CODE FILTER: ADD with this configuration must fail with the code. A test's refusals are
# followed by one look at whether any of them has left something.
refuses() {
	plugin_config web "$2" >/run/config
	refuses_input "$1" </run/config
}

# refuses_input CODE: ADD with this standard input must fail with the code, also under ASan and
# UBSan.
refuses_input() {
	local binary text output input=/run/input
	cat >"$input"
	for binary in "$build/bpf-portmap" "$build/sanitized/bpf-portmap"; do
		[ -x "$binary" ] || continue
		if plugin_run ADD web <"$input" >/run/out 2>/run/err; then
			fail "accepted: $(head -c 500 "$input")"
		fi
		file_read /run/err
		[[ ! $text =~ Sanitizer|runtime\ error ]] || fail "$text, of: $(head -c 500 "$input")"
		file_read /run/out
		output=$text
		expect_code "$1"
	done
}

bad_world() {
	container_add_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	state_before=$(state_show)
}

# an invalid mapping, a previous result that is missing or broken, and an option with an invalid value
# are refused with code 7, what has the wrong type with code 6, a firewall condition with code 2; nothing
# is left
test_protocol_bad_configurations() {
	# One of each kind: all others are rows of conf_request_test, cni_result_test and conf_*_test.
	bad_world
	refuses 7 "$(mapping 0)"
	refuses 7 "$(mapping 8080 65536)"
	refuses 6 "$(mapping '"80"')"
	refuses 7 '.runtimeConfig.portMappings[0].protocol = "icmp"'
	refuses 7 '.runtimeConfig.portMappings[0].hostIP = "localhost"'
	refuses 7 '.runtimeConfig.portMappings += [.runtimeConfig.portMappings[0] | .containerPort = 81]'
	refuses 6 '.runtimeConfig = []'
	refuses 7 'del(.prevResult)'
	refuses 6 '.prevResult.ips = [null]'
	refuses 7 '.localhost = false | .runtimeConfig.portMappings[0].hostIP = "127.0.0.1"'
	refuses 7 '.fastPath = "on"'
	refuses 6 '.ipMasq = "true"'
	refuses 2 '.conditionsV4 = ["-s", "192.0.2.0/24"]'
	expect_same_state "$state_before"
}

# limit 120 s
# input that is not a configuration is refused, whatever its size and depth, and nothing is left
test_protocol_bad_json() {
	# What is small is in rows of cni_network_config_test and cni_json_test.
	bad_world
	refuses_input 6 </dev/null
	refuses_input 6 <<<'{'
	head -c 1000000 /dev/urandom >/run/garbage
	refuses_input 6 </run/garbage
	head -c 1000000 /dev/zero | tr '\0' '[' >/run/garbage
	refuses_input 6 </run/garbage
	{ printf '{"cniVersion":"1.0.0","name":"x","a":'; head -c 100000 /dev/zero | tr '\0' '['
		head -c 100000 /dev/zero | tr '\0' ']'; printf '}'; } >/run/garbage
	refuses_input 6 </run/garbage
	refuses_input 1 <<<'{"cniVersion":"2.0.0","name":"x"}'
	refuses_input 7 <<<'{"cniVersion":"1.0.0"}'
	expect_same_state "$state_before"
}

# a network namespace that does not exist, or has no such interface, is refused; invalid environment
# variables are refused with code 4
test_protocol_bad_environment() {
	bad_world
	NETNS=/run/netns/nowhere refuses 8 .
	NETNS=/etc/passwd refuses 8 .
	IFNAME=eth7 refuses 7 .
	NETNS=/proc/self/ns/net refuses 8 .
	expect_error 4 '' plugin_run ADD 'a/b' <<<'{"cniVersion":"1.0.0","name":"x"}'
	IFNAME=a/b expect_error 4 '' plugin_run ADD web <<<'{"cniVersion":"1.0.0","name":"x"}'
	NETNS='' expect_error 4 '' plugin_run ADD web <<<'{"cniVersion":"1.0.0","name":"x"}'
	expect_error 4 '' plugin_run add web <<<'{"cniVersion":"1.0.0","name":"x"}'
	expect_same_state "$state_before"
}

# keys and protocol are case-insensitive; the same entry twice is one mapping; a hostIP written as
# ::ffff:a.b.c.d is that IPv4 address
test_protocol_spelling() {
	container_start_plain web
	plugin_call ADD web '.runtimeConfig.portMappings =
		[{"HostPort": 8080, "CONTAINERPORT": 80, "Protocol": "TCP", "HostIP": ""}] |
		.runtimeConfig.portMappings += .runtimeConfig.portMappings' >/run/out || fail "$(cat /run/out)"
	both expect_answer client tcp @host 8080 web
	plugin_call DEL web || fail DEL
	plugin_call ADD web ".runtimeConfig.portMappings[0].hostIP = \"::ffff:$host4\"" >/run/out ||
		fail "$(cat /run/out)"
	expect_answer client tcp "$host4" 8080 web
	expect_no_answer client tcp "$host4_second" 8080
}

# a container without a veth is refused with code 7 that names its kind of device
test_protocol_no_veth() {
	bad_world
	namespace_add other
	ip link add mv0 link eth0 type macvlan 2>/dev/null || skip "the kernel has no macvlan"
	ip link set mv0 netns other name eth0
	cp /run/results/web /run/results/other
	state_before=$(state_show)
	expect_error 7 macvlan plugin_call ADD other
	expect_contains "$output" 'remove the port mappings from this network, or use bridge'
	expect_same_state "$state_before"
}

# a container's veth that leads to another namespace is refused with code 7, also where the host has a
# pair of veths with the same numbers, one of which would be taken for its other end
test_protocol_veth_leads_elsewhere() {
	bad_world
	namespace_add outer
	namespace_add inner
	ip -n outer link add name inner0 index 900 type veth peer name eth0 index 901 netns inner
	ip link add name pair0 index 900 type veth peer name pair1 index 901
	cp /run/results/web /run/results/inner
	state_before=$(state_show)
	expect_error 7 "run it on the host" plugin_call ADD inner
	expect_same_state "$state_before"
}

# bpftool shows the maps in readable form: named fields, ports as numbers
test_protocol_maps_read_well() {
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	output=$(bpftool map dump pinned "$pins/portmaps")
	expect_contains "$output" '"host_port": 8080' '"container_port": 80' PROTOCOL_TCP
	output=$(bpftool map dump pinned "$pins/attachments")
	expect_contains "$output" ATTACHMENT_READY
	local map
	for map in slots endpoints interfaces connections counters meta; do
		output=$(bpftool map dump pinned "$pins/$map" | sed -n 1,20p)
		case $output in *'"value'*) ;; *) fail "$map has no BTF: $output" ;; esac
	done
}

# Its ADD warns of a hostIP that the host does not have.
warned_of='.runtimeConfig.portMappings[0].hostIP = "203.0.113.7"'

# where standard error is closed no file gets its descriptor, and no warning is written; one that cannot
# be written does not affect ADD's work and its result; where standard output is closed, ADD fails and
# leaves nothing
test_protocol_streams_closed() {
	local before gone
	container_add_plain web
	exec {gone}> >(:)
	wait "$!"
	plugin_call ADD web "$warned_of" >/run/out 2>&"$gone" || fail "ADD: $? $(cat /run/out)"
	jq -e .ips /run/out >/dev/null || fail "no result: $(cat /run/out)"
	plugin_call DEL web || fail DEL
	before=$(state_show)
	PREFIX="strace -y -o /run/trace -e trace=write,writev" \
		plugin_call ADD web "$warned_of" >/run/out 2>&- || fail "$(cat /run/out)"
	expect_contains "$(grep warning /run/trace)" '(2</dev/null>,'
	plugin_call DEL web || fail DEL
	! plugin_call ADD web 2>/run/err >&- || fail "ADD without standard output"
	expect_same_state "$before"
}

# GC continues after an attachment that it cannot remove, and reports the reason for each one
# separately
test_protocol_gc_failures() {
	local name
	for name in one two; do
		container_add_plain "$name"
		plugin_call ADD "$name" '.runtimeConfig = null' >/run/out || fail "$(cat /run/out)"
	done
	! output=$(PREFIX="strace -o /dev/null -e trace=flock -e inject=flock:error=ENOLCK:when=2+" plugin_call \
		GC one '. + {"cniVersion": "1.1.0", "cni.dev/valid-attachments": []} | del(.prevResult)' \
		2>/dev/null) || fail "GC succeeded"
	output=$(jq -r .msg <<<"$output")
	expect_contains "$output" '; bridge/'
	expect_equal 2 "$(grep -o 'bridge/[a-z]*/eth0: cannot' <<<"$output" | wc -l)" "reasons in: $output"
}

# an entry that is deleted while cnirun lists, after it was found or asked for, is nothing to warn of
test_protocol_list_beside_del() {
	local entry=/var/lib/cni/results/bridge-web-eth0 call list
	command -v strace >/dev/null || skip "there is no strace"
	for call in newfstatat access; do
		container_start web bridge
		: >/run/trace
		strace -o /run/trace -P "$entry" -e "trace=$call" -e "inject=$call:signal=STOP:when=1" sh -c \
			'echo $$ >/run/list.pid; exec "$0" list /run/conf/bridge.conflist' "$cnirun" \
			>/run/listed 2>/run/warned &
		list=$!
		wait_until 5 grep -q -e 'stopped by SIGSTOP' -e exited /run/trace || fail "$(cat /run/trace)"
		container_remove web bridge
		kill -CONT "$(cat /run/list.pid)" 2>/dev/null || true
		wait $list || fail "list: $(cat /run/warned)"
		expect_equal '' "$(cat /run/warned)" "said by list, stopped at $call"
	done
}
