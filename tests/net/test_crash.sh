# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test_crash.sh - many at once, killed half-way, lost or broken pins, two hosts, long wear.

# parallel_add NUMBER: newer versions of the bridge plugin fail where somebody else changes an
# interface while they list addresses, and on a busy machine ours may wait for the lock for too long;
# runtimes repeat such an ADD.
parallel_add() {
	local out=/run/out.$1
	for _ in 1 2 3 4 5; do
		! runtime add bridge "c$1" -p "$((9000 + $1)):80/tcp" >"$out" 2>&1 || return 0
		grep -qE 'type="bridge".*interrupted system call|"code": 11,' "$out" || return 1
	done
	return 1
}

# limit 120 s
# 50 ADDs at once with ports of their own all succeed, and 50 DELs at once leave nothing
test_crash_parallel_own_ports() {
	container_add first bridge -p 9999:80/tcp # from now on there is a program at lo
	container_remove first bridge
	container_add first bridge
	local before number pids=()
	before=$(state_show)
	namespace_add c{1..50}
	for number in {1..50}; do
		parallel_add "$number" &
		pids+=($!)
	done
	for number in {1..50}; do
		wait "${pids[number - 1]}" || fail "ADD of c$number: $(cat "/run/out.$number")"
	done
	expect_equal 50 "$(map_count portmaps | awk '{print $1 / 2}')" "ports of 2 families each"
	for number in 1 17 50; do
		serve_in "c$number" 80
		expect_answer client tcp "$host4" "$((9000 + number))" "c$number" "$client4"
	done
	pids=()
	for number in {1..50}; do
		runtime del bridge "c$number" >"/run/out.$number" 2>&1 &
		pids+=($!)
	done
	for number in {1..50}; do
		wait "${pids[number - 1]}" || fail "DEL of c$number: $(cat "/run/out.$number")"
	done
	expect_same_state "$before"
}

# limit 120 s
# ptp containers whose ADDs run at once, each seeing the others' veths as interfaces with an
# address, get the programs of a container
test_crash_parallel_ptp() {
	local number round pids
	conflist plain_ptp ptp "$only_main"
	container_add first bridge
	namespace_add c{1..20}
	for number in {1..20}; do
		container_add_plain "c$number" plain_ptp
		plugin_config "c$number" ".name = \"ptp\" | $(mapping 9000 | tr -d '\n') |
			.runtimeConfig.portMappings[0].hostPort += $number" >"/run/config.$number"
	done
	for round in 1 2; do
		pids=()
		for number in {1..20}; do
			plugin_run ADD "c$number" <"/run/config.$number" >"/run/out.$number" 2>&1 &
			pids+=($!)
		done
		for number in {1..20}; do
			wait "${pids[number - 1]}" || fail "ADD of c$number: $(cat "/run/out.$number")"
		done
		for number in {1..20}; do
			plugin_run CHECK "c$number" <"/run/config.$number" >/run/out ||
				fail "CHECK of c$number, round $round: $(cat /run/out)"
		done
		for number in {1..20}; do
			plugin_run DEL "c$number" <"/run/config.$number" || fail DEL
			strip "$(host_veth "c$number")"
		done
	done
}

# add_until_told NUMBER: an ADD for one of ten ports, again as long as it is only told to try again,
# which runtimes do: on a busy machine the last one of a queue waits for the lock for too long.
add_until_told() {
	local code=0
	for _ in {1..10}; do
		code=0
		plugin_call ADD "c$1" "$(mapping $((9000 + $1 % 10)))" >"/run/out.$1" 2>/dev/null || code=$?
		[ "$code" != 0 ] && jq -e '.code == 11' "/run/out.$1" >/dev/null || break
	done
	return "$code"
}

# nothing is loaded
# limit 120 s
# 50 ADDs at once for 10 ports, the first of all on this host: each port has exactly one owner
test_crash_parallel_same_ports() {
	local number pids=() port
	namespace_add c{1..50}
	for number in {1..50}; do container_add_plain "c$number"; done
	for number in {1..50}; do
		add_until_told "$number" &
		pids+=($!)
	done
	for number in {1..50}; do
		wait "${pids[number - 1]}" && echo "$number $((9000 + number % 10))"
	done >/run/winners || true
	jq -es 'map(.code == null or .code == 101) | all' /run/out.{1..50} >/dev/null ||
		fail "another code: $(grep '"code"' /run/out.{1..50})"
	expect_equal 10 "$(wc -l </run/winners)" "successful ADDs"
	expect_equal 10 "$(awk '{print $2}' /run/winners | sort -u | wc -l)" "ports with an owner"
	expect_count "10 20" 'attachments portmaps'
	while read -r number port; do
		serve_in "c$number" 80
		expect_answer client tcp "$host4" "$port" "c$number"
	done </run/winners
	for number in {1..50}; do plugin_call DEL "c$number" || fail "DEL of c$number"; done
	expect_count "0 0" 'portmaps slots'
}

maps_are_empty() {
	expect_count "0 0 0 0 0 0" 'portmaps attachments endpoints containers policies slots' \
		"portmaps, attachments, endpoints, containers, policies, live slots ($1)"
}

# What a process does to a container in the fight: one command, killed anywhere or not
fight() {
	RANDOM=$seed
	local command=(plugin_run) prefix=()
	case $((RANDOM % 16)) in
	0 | 1 | 2) command+=(DEL "c$1") ;;
	3) command+=(CHECK "c$1") ;;
	4) command+=(GC "c$1") ;;
	5) command=("$build/bpf-portmap" attach) ;;
	*) command+=(ADD "c$1") ;;
	esac
	[ $((RANDOM % 2)) = 0 ] || prefix=("$build/tests/traced" kill $((RANDOM % 16 + 1)))
	[ "${command[0]}" = plugin_run ] || exec "${prefix[@]}" "${command[@]}" >/dev/null 2>&1
	PREFIX=${prefix[*]} "${command[@]}" <"/run/config.$1" >/dev/null 2>&1
}

fighter_runs() { plugin_run "$1" "c$2" <"/run/config.$2" >"/run/out.$2" 2>/run/err; }

# all_at_once PROCESSES COMMAND...: each with the number of one of the 20 fighters; fills `codes`
all_at_once() {
	local process processes=$1 pids=()
	shift
	for process in $(seq "$processes"); do
		seed=$((seed + 1))
		"$@" $((process % 20)) &
		pids+=($!)
	done
	codes=()
	for process in $(seq "$processes"); do
		codes[process]=0
		wait "${pids[process - 1]}" 2>/dev/null || codes[process]=$?
	done
}

expect_one_owner() {
	local port=$1 number winners=()
	for number in "$((port - 9000))" "$((port - 8990))"; do
		[ "${codes[number]}" != 0 ] || winners+=("$number")
		jq -e '.code == null or .code == 101' "/run/out.$number" >/dev/null ||
			fail "seed $seed, ADD of c$number: $(cat "/run/out.$number")"
	done
	expect_equal 1 "${#winners[@]}" "seed $seed, owners of port $port"
	fighter_runs CHECK "${winners[0]}" || fail "CHECK: $(cat "/run/out.${winners[0]}")"
	serve_in "c${winners[0]}" 80
	expect_answer client tcp "$host4" "$port" "c${winners[0]}"
}

# limit 120 s
# 50 at once fight three times for 10 ports by ADD, ADD again and DEL, beside CHECK, GC and attach,
# half of them killed anywhere: then an ADD of each leaves every port with exactly one owner, and a
# DEL of each nothing
test_crash_parallel_killed() {
	local before number port killed=0 seed=${SEED:-7} codes rounds=$(((${KILLS:-150} + 49) / 50))
	container_add warm bridge -p 8080:80/tcp
	container_remove warm bridge
	before=$(state_show)
	namespace_add c{0..19}
	for number in {0..19}; do
		container_add_plain "c$number"
		plugin_config "c$number" ".maxFlows = 5 | $(mapping $((9000 + number % 10)))" \
			>"/run/config.$number"
	done
	for _ in $(seq "$rounds"); do
		all_at_once 50 fight
		for number in "${codes[@]}"; do [ "$number" != 137 ] || killed=$((killed + 1)); done
	done
	[ "$killed" -gt $((rounds * 8)) ] || fail "only $killed of $rounds times 50 were killed: nothing was tested"
	all_at_once 20 fighter_runs ADD
	codes[0]=${codes[20]}
	for port in {9000..9009}; do expect_one_owner "$port"; done
	expect_count "10 20 20 10 10" 'attachments portmaps endpoints policies slots' \
		"seed $seed, attachments, portmaps, endpoints, policies, live slots"
	all_at_once 20 fighter_runs DEL
	expect_equal "" "$(cat /run/out.*)" "seed $seed, what DEL says"
	for number in {0..19}; do container_die "c$number"; done
	expect_same_state "$before"
}

# bits_of MAP: the numbers of the bits that are set, one a line
bits_of() { "$build/tests/tcx" bits "$pins/$1"; }

# endpoint_bits: of each endpoint the bit that address_hash() of include/abi.h says, one a line
endpoint_bits() {
	local high low hash factor=$((16#9e3779b97f4a7c15))
	while read -r high low; do
		hash=$((16#$high * factor ^ 16#$low))
		hash=$(((hash ^ (hash >> 32 & 0xffffffff)) * factor))
		echo $((hash >> 48 & 0xffff))
	done < <(bpftool -j map dump pinned "$pins/endpoints" | jq -r '.[].key | map(ltrimstr("0x")) |
		[.[:8], .[8:]] | map(reverse | join("")) | join(" ")')
}

# What is there has its bit: else the programs do not look for it.
bitmaps_are_sound() {
	local bit
	bits_of endpoint_addresses >/run/bits
	for bit in $(endpoint_bits); do
		grep -qx "$bit" /run/bits || fail "$1: an address has no bit $bit: $(cat /run/bits)"
	done
	[ "$(map_count portmaps)" = 0 ] || expect_equal 8080 "$(bits_of published_ports)" "ports, $1"
}

# limit 120 s
# ADD killed before each change that it makes in the kernel: a mapping or an endpoint that is there is in
# the bitmap that the programs ask first; of what was never added nothing is in there
test_crash_bitmaps() {
	local status=137 call=1
	web_added
	plugin_run DEL web </run/config || fail DEL
	while [ "$status" = 137 ]; do
		"$build/tests/tcx" clear "$pins/published_ports"
		"$build/tests/tcx" clear "$pins/endpoint_addresses"
		status=0
		PREFIX="$build/tests/traced kill $call" plugin_run ADD web </run/config >/run/out || status=$?
		bitmaps_are_sound "killed before call $call"
		call=$((call + 1))
	done
	expect_equal 0 "$status" "the ADD that was not killed"
	expect_equal "2 2" "$(map_count endpoints) $(bits_of endpoint_addresses | wc -l)" \
		"endpoints, and bits"
	[ "$call" -gt 10 ] || fail "only $call calls: nothing was tested"
}

# limit 180 s
# 60 ADDs killed at random moments (KILLS=): the DEL after each leaves nothing, the next ADD works
test_crash_add_killed() {
	container_start_plain web
	plugin_config web '.runtimeConfig.portMappings = [range(300) |
		{"hostPort": (8080 + .), "containerPort": 80, "protocol": "tcp"}]' >/run/config
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	plugin_run DEL web </run/config || fail DEL
	local before round rounds=${KILLS:-60} killed=0 kill_window=3000 kill_moment
	before=$(state_show)
	for round in $(seq "$rounds"); do
		killed_at_random plugin_run ADD web </run/config >/run/out 2>/dev/null
		if [ $((round % 4)) = 0 ]; then
			plugin_run ADD web </run/config >/run/out || fail "ADD again after a kill: $(cat /run/out)"
			expect_answer client tcp "$host4" 8080 web "$client4"
		fi
		plugin_run DEL web </run/config || fail "DEL after a kill"
		[ $((round % 10)) != 0 ] || expect_same_state "$before"
	done
	[ "$killed" -ge $((rounds / 10)) ] || fail "only $killed of $rounds were killed: nothing was tested"
	[ "$killed" -lt "$rounds" ] || fail "all were killed at the start: nothing was tested"
}

# limit 180 s
# 20 DELs killed at random moments (KILLS=): DEL again leaves nothing, and another container gets
# the port
test_crash_del_killed() {
	container_add_plain web
	container_add_plain other
	plugin_config web '.runtimeConfig.portMappings = [range(30) |
		{"hostPort": (8080 + .), "containerPort": 80, "protocol": "tcp"}]' >/run/config
	plugin_config other '.runtimeConfig.portMappings = [range(30) |
		{"hostPort": (8080 + .), "containerPort": 80, "protocol": "tcp"}]' >/run/other_config
	local round rounds=${KILLS:-20} killed=0 kill_window=2000 kill_moment
	for round in $(seq "$rounds"); do
		plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		killed_at_random plugin_run DEL web </run/config 2>/dev/null
		plugin_run DEL web </run/config || fail "DEL again"
		maps_are_empty "round $round"
		plugin_run ADD other </run/other_config >/run/out || fail "$(cat /run/out)"
		plugin_run DEL other </run/other_config || fail DEL
	done
	[ "$killed" -ge $((rounds / 10)) ] || fail "only $killed of $rounds were killed: nothing was tested"
}

# limit 120 s
# DEL of the interface that has a container's port, killed before each change that it makes in the kernel:
# the port answers before DEL comes again and after it, from then on by the other interface, which was
# asked for it, too
test_crash_del_of_two_networks() {
	local status=137 call=1
	container_add_plain web
	conflist other bridge "$other_network | $only_main"
	runtime add other web --ifname eth1 >/run/results/web1 || fail "$(cat /run/results/web1)"
	serve_in web 80
	reverse_path_loose
	in_namespace web sysctl -qw net.ipv4.conf.all.rp_filter=2
	plugin_config web >/run/config
	plugin_config web1 '.name = "other"' >/run/config1
	while [ "$status" = 137 ]; do
		plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		IFNAME=eth1 plugin_run ADD web </run/config1 >/run/out || fail "$(cat /run/out)"
		status=0
		PREFIX="$build/tests/traced kill $call" plugin_run DEL web </run/config || status=$?
		expect_answer client tcp "$host4" 8080 web "$client4"
		plugin_run DEL web </run/config || fail "DEL after a kill before call $call"
		expect_answer client tcp "$host4" 8080 web "$client4"
		IFNAME=eth1 plugin_run CHECK web </run/config1 || fail "CHECK, killed before call $call"
		IFNAME=eth1 plugin_run DEL web </run/config1 || fail "DEL of eth1"
		maps_are_empty "killed before call $call"
		call=$((call + 1))
	done
	expect_equal 0 "$status" "the DEL that was not killed"
	[ "$call" -gt 5 ] || fail "only $call calls: nothing was tested"
}

unload() {
	rm -rf "$pins"
	local device hook program
	programs_show | while read -r device hook _ program; do
		"$build/tests/tcx" detach "$device" "$hook" "$program" 2>/dev/null ||
			tc qdisc del dev "$device" clsact 2>/dev/null || true
	done
}

# nothing is loaded
# limit 180 s
# two first ADDs, which load everything, killed at moments that are spread over the time that one takes
# (KILLS=60 for more): the next ADD works, each hook has one program, DEL leaves no mapping
test_crash_first_add_killed() {
	container_start_plain web
	plugin_config web >/run/config
	local round=1 rounds=${KILLS:-2} tries killed=0 moment took since=${EPOCHREALTIME/./}
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	took=$((${EPOCHREALTIME/./} - since))
	# A round whose ADD ended before its moment is repeated, with an earlier one.
	for ((tries = 0; round <= rounds && tries < rounds + 6; tries++)); do
		unload
		moment=$((took * (round * 1000 - RANDOM % 1000) / rounds / 1000))
		if PREFIX="timeout --signal KILL $((moment / 1000000)).$(printf %06d $((moment % 1000000)))" \
			plugin_run ADD web </run/config >/run/out 2>/dev/null; then
			took=$((took / 2)) # the machine has become faster
		else
			killed=$((killed + 1)) round=$((round + 1))
		fi
		plugin_run ADD web </run/config >/run/out ||
			fail "ADD after a kill at $moment us: $(cat /run/out)"
		expect_answer client tcp "$host4" 8080 web "$client4"
		expect_equal "" "$(programs_show | grep -v somebody | sort | uniq -d)" \
			"programs attached twice after a kill at $moment us"
		expect_equal "bpf-portmap" \
			"$(find /sys/fs/bpf -maxdepth 1 -name '*portmap*' -printf '%f\n')" \
			"pins after a kill at $moment us"
		plugin_run DEL web </run/config || fail DEL
		maps_are_empty "killed at $moment us"
	done
	[ "$killed" = "$rounds" ] || fail "only $killed of $tries were killed: too little was tested"
	echo "note: $killed of $rounds were killed"
}

# limit 120 s
# pins removed by hand under a live mapping: traffic goes on, the next ADD adopts what runs, CHECK
# and DEL find it, also a DEL that comes first; nothing of ours is left at the sockets meanwhile
test_crash_pins_removed() {
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversation_with web talk client tcp "$host4" 8080
	rm -rf "$pins"
	expect_answers client "$host4" 8080 web "$client4"
	expect_says talk web
	wait_until 5 no_socket_hooks || fail "left: $(socket_hooks_show)"
	container_start other bridge -p 9090:80/tcp
	expect_says talk web
	expect_answers client "$host4" 8080 web "$client4"
	expect_answer client tcp "$host4" 9090 other
	! has_cgroup || expect_answers host 127.0.0.1 8080 web
	container_check web bridge
	container_check other bridge
	namespace_add thief
	expect_refusal web runtime add bridge thief -p 8080:80/tcp
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
	rm -rf "$pins"
	container_remove web bridge
	expect_no_answer client tcp "$host4" 8080
	expect_answer client tcp "$host4" 9090 other
}
no_socket_hooks() { [ -z "$(socket_hooks_show)" ]; }

# an ADD that does not see the pins, because it runs under another mount of bpffs, makes no
# second copy
test_crash_pins_not_seen() {
	container_start web bridge -p 8080:80/tcp
	container_add_plain second
	plugin_config second "$(mapping 9090)" >/run/config
	unshare --mount bash -c 'mount -t bpf bpf /sys/fs/bpf && exec env CNI_COMMAND=ADD \
		CNI_CONTAINERID=second CNI_IFNAME=eth0 CNI_NETNS=/run/netns/second "$0"' \
		"$build/bpf-portmap" </run/config >/run/out || fail "$(cat /run/out)"
	serve_in second 80
	expect_answer client tcp "$host4" 9090 second
	expect_answer client tcp "$host4" 8080 web
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
	plugin_run DEL second </run/config || fail DEL
	expect_no_answer client tcp "$host4" 9090
}

# some pins removed by hand: ADD repairs them or says clearly what is wrong; DEL works
test_crash_some_pins_removed() {
	local removed pin
	container_start web bridge -p 8080:80/tcp
	for removed in 'portmaps slots connections assured counters' meta; do
		for pin in $removed; do rm "$pins/$pin"; done
		container_start other bridge -p 9090:80/tcp
		expect_answer client tcp "$host4" 9090 other
		expect_answer client tcp "$host4" 8080 web
		container_remove other bridge
		expect_answer client tcp "$host4" 8080 web
		for pin in $removed; do
			[ -e "$pins/$pin" ] || fail "$pin was not pinned again"
		done
	done
}

# nothing is loaded
# a pin directory with something else in it is repaired or refused with a clear error, DEL does
# not fail
test_crash_corrupt_pins() {
	container_add_plain web
	mkdir "$pins"
	"$build/tests/tcx" pin "$pins/program" "$pins/portmaps"
	if plugin_call ADD web >/run/out; then
		serve_in web 80
		expect_answer client tcp "$host4" 8080 web
	else
		output=$(cat /run/out)
		expect_contains "$output" portmaps '"code"'
	fi
	plugin_call DEL web || fail "DEL: $output"
}

# nothing is loaded
# a loader's left-over directory is removed by the next loader; where no bpffs is mounted the plugin
# mounts one
test_crash_left_over_loading() {
	mkdir "$pins-loading"
	"$build/tests/tcx" pin "$pins-loading/from_uplink" "$pins-loading/portmaps"
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	[ ! -e "$pins-loading" ] || fail "$pins-loading is still there"
	container_remove web bridge
	umount /sys/fs/bpf
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	[ -e "$pins/portmaps" ] || fail "no pins"
	container_remove web bridge
	expect_count 0 portmaps
}

# nothing is loaded
# where the bpffs cannot be written ADD fails with a clear error and leaves nothing
test_crash_read_only_bpffs() {
	container_add_plain web
	mount -o remount,ro /sys/fs/bpf 2>/dev/null || mount -o remount,bind,ro /sys/fs/bpf
	! mkdir /sys/fs/bpf/probe 2>/dev/null || skip "bpffs cannot be made read-only"
	local before
	before=$(state_show)
	expect_error 102 'mount -o remount,rw /sys/fs/bpf' plugin_call ADD web
	expect_same_state "$before"
	plugin_call DEL web || fail DEL
}

# limit 900 s
# 100 ADD and DEL leave nothing: no entry, qdisc, program, pin or slot (CHURN=10000 for more)
test_crash_churn() {
	container_add_plain web
	plugin_config web '.runtimeConfig.portMappings +=
		[{"hostPort": 5353, "containerPort": 53, "protocol": "udp"}]' >/run/config
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	plugin_run DEL web </run/config || fail DEL
	maps_are_empty "after the first DEL"
	local before
	before=$(state_show)
	for _ in $(seq "${CHURN:-100}"); do
		plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		plugin_run DEL web </run/config || fail DEL
	done
	expect_same_state "$before"
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	serve_in web 80
	expect_answer client tcp "$host4" 8080 web "$client4"
}

# limit 120 s
# 16 whole lives of a container, bridge and ptp, leave nothing: no interface either
test_crash_churn_whole_list() {
	container_add first bridge -p 8080:80/tcp
	container_add second ptp
	container_remove first bridge
	container_remove second ptp
	local before number list
	before=$(state_show)
	for number in {1..8}; do
		for list in bridge ptp; do
			container_add "c$number" "$list" -p 8080:80/tcp -p 8080:80/udp
			container_remove "c$number" "$list"
		done
	done
	expect_same_state "$before"
}

# after a reboot, with a stale cache and an empty bpffs, DEL succeeds and the first ADD builds anew
test_crash_reboot() {
	container_start web bridge -p 8080:80/tcp
	unload
	ip netns delete web
	ip link delete cni0
	runtime del bridge /run/netns/web --id web || fail "DEL of a container from before the reboot"
	container_start again bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 again "$client4"
}
