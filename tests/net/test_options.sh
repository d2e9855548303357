# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_options.sh - options on their way into the map policies, and out of it.

all_options='. += {
	"masqPorts": ["3000-4000,1024-2000", 5000], "snatAddresses": ["198.51.100.1", "2001:db8:2::1"],
	"nonMasqueradeCIDRs": ["10.0.0.0/8", "!10.1.0.0/16", "fd00::/8"], "maxFlows": 1000,
	"sourceRanges": ["192.0.2.0/24", "192.0.2.66/32", "2001:db8::/32"], "excludeCIDRs": ["203.0.113.9"],
	"masqAll": true}'

# The one policy there is, as jq sees it
policy() {
	bpftool -j map dump pinned "$pins/policies" | jq -e "select(length == 1) | .[0].formatted | $1" ||
		fail "there is not one policy: $(bpftool map dump pinned "$pins/policies")"
}

# A list of ranges of the policy, in words
ranges() {
	policy "[.value as \$policy | \$policy.$1[:\$policy.$2][] |
		(if .exception == 1 then \"!\" else \"\" end) +
		([.address[], .prefix_length] | map(tostring) | join(\".\"))] | join(\" \")" | jq -r .
}

# A byte of the one policy, by its number, becomes 0x5a.
policy_damage() {
	local key value
	key=$(bpftool -j map dump pinned "$pins/policies" | jq -r '.[0].key | join(" ")' | sed 's/0x//g')
	value=$(bpftool -j map dump pinned "$pins/policies" |
		jq -r --argjson byte "$1" '.[0].value | .[$byte] = "0x5a" | join(" ")' | sed 's/0x//g')
	bpftool map update pinned "$pins/policies" key hex $key value hex $value
}

# slot_says NAME: has_policy of the slot of a container's eth0
slot_says() {
	bpftool -j map lookup pinned "$pins/slots" key "$(slot_of "bridge/$1/eth0")" 0 0 0 |
		jq .formatted.value.has_policy
}

# The record of the one attachment goes, as if it had never been written.
record_lose() {
	map_empty attachments
}

# every option is in policies after ADD, with its owner, and gone after DEL; CHECK agrees
test_options_all_of_them() {
	container_add_plain web
	plugin_config web "$all_options" >/run/config
	plugin_run ADD web </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_equal "" "$(cat /run/err)" "what ADD says on stderr"
	expect_equal "$(slot_of bridge/web/eth0)" "$(policy .key)" "the slot"
	expect_equal "$(bpftool -j map dump pinned "$pins/attachments" |
		jq -c '.[0].formatted.value.owner')" "$(policy .value.owner | jq -c .)" "the owner"
	expect_equal '[1000,1,0]' "$(policy '.value | [.max_flows, .masquerade_all,
		.keep_hairpin_source]' | jq -c .)" "maxFlows, masqAll, snat"
	expect_equal '["1024-2000","3000-4000","5000-5000"]' "$(policy '[.value.masquerade_ports[] |
		select(.last > 0) | "\(.first)-\(.last)"]' | jq -c .)" masqPorts
	expect_equal '[1,198,51,100,1,1,32,1]' "$(policy '.value | [.source4_count,
		.sources4[0][12:][], .source6_count, .sources6[0][0], .sources6[0][15]]' | jq -c .)" \
		snatAddresses
	expect_equal "!0.0.0.0.0.0.0.0.0.0.255.255.10.1.0.0.16 0.0.0.0.0.0.0.0.0.0.255.255.10.0.0.0.8 \
253.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8" "$(ranges unmasqueraded unmasqueraded_count)" nonMasqueradeCIDRs
	expect_equal "0.0.0.0.0.0.0.0.0.0.255.255.192.0.2.66.32 0.0.0.0.0.0.0.0.0.0.255.255.192.0.2.0.24 \
32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.0.32" "$(ranges source_ranges source_range_count)" sourceRanges
	expect_equal 0.0.0.0.0.0.0.0.0.0.255.255.203.0.113.9.32 "$(ranges excluded excluded_count)" \
		excludeCIDRs
	expect_equal 1 "$(slot_says web)" "has_policy of its slot"
	plugin_run CHECK web </run/config || fail CHECK
	plugin_run DEL web </run/config || fail DEL
	expect_count 0 policies "after DEL"
}

# ADD with other options replaces the policy; ADD without any, or with what they are anyway, deletes it
test_options_added_again() {
	container_add_plain web
	plugin_call ADD web '.maxFlows = 5' >/run/out || fail "$(cat /run/out)"
	plugin_call ADD web '.masqPorts = 7' >/run/out || fail "$(cat /run/out)"
	expect_equal '[0,7]' "$(policy '.value | [.max_flows, .masquerade_ports[0].first]' | jq -c .)"
	expect_equal 1 "$(slot_says web)" "has_policy of its slot"
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_count 0 policies
	expect_equal 0 "$(slot_says web)" "has_policy of its slot without options"
	plugin_call ADD web '. += {"snat": true, "masqAll": false, "sourceRanges": [], "masqPorts": null,
		"excludeCIDRs": [], "nonMasqueradeCIDRs": [], "snatAddresses": []}' >/run/out ||
		fail "$(cat /run/out)"
	expect_count 0 policies
	plugin_call CHECK web || fail CHECK
}

# two containers have a policy each, DEL of one and GC leave the other's; the list that shows the options
# is a working one, and leaves nothing
test_options_two_containers() {
	local before
	conflist options options .
	container_add_plain web
	container_add_plain other
	plugin_call ADD web '.maxFlows = 5' >/run/out || fail "$(cat /run/out)"
	plugin_call ADD other "$(mapping 9090) | .maxFlows = 6" >/run/out || fail "$(cat /run/out)"
	expect_count 2 policies
	plugin_call DEL web || fail DEL
	expect_equal 6 "$(policy .value.max_flows)" "the other's maxFlows"
	plugin_call ADD web '.maxFlows = 5' >/run/out || fail "$(cat /run/out)"
	plugin_call GC web '.cniVersion = "1.1.0" | ."cni.dev/valid-attachments" =
		[{"containerID": "other", "ifname": "eth0"}]' || fail GC
	expect_equal 6 "$(policy .value.max_flows)" "the other's maxFlows"
	plugin_call CHECK other "$(mapping 9090) | .maxFlows = 6" || fail CHECK
	plugin_call DEL other || fail DEL
	container_add first options
	container_remove first options
	before=$(state_show)
	container_start listed options -p 8080:80/tcp -p 8080:80/udp
	expect_equal 10000 "$(policy .value.max_flows)" maxFlows
	expect_serves listed
	container_check listed options
	container_remove listed options
	expect_same_state "$before"
}

# the next user of a slot has its own policy or none, whatever a lost attachment left there
test_options_slot_used_again() {
	local slot
	container_add_plain web
	container_add_plain other
	plugin_call ADD web "$all_options" >/run/out || fail "$(cat /run/out)"
	slot=$(slot_of bridge/web/eth0)
	record_lose
	next_slot_set "$slot"
	plugin_call ADD other "$(mapping 9090) | .maxFlows = 7" >/run/out || fail "$(cat /run/out)"
	expect_equal "[$slot,7,0]" "$(policy '[.key, .value.max_flows, .value.masquerade_all]' | jq -c .)"
	plugin_call CHECK other "$(mapping 9090) | .maxFlows = 7" || fail CHECK
	record_lose
	next_slot_set "$slot"
	plugin_call ADD other "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	expect_equal "$slot" "$(slot_of bridge/other/eth0)" "the slot"
	expect_count 0 policies "policies of the slot's former users"
}

# a policy outlives its map's pin: the next ADD pins the same map again
test_options_pin_removed() {
	container_add_plain web
	container_add_plain other
	plugin_call ADD web "$all_options" >/run/out || fail "$(cat /run/out)"
	rm "$pins/policies"
	plugin_call ADD other "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
	expect_equal 1000 "$(policy .value.max_flows)" maxFlows
	rm -r "$pins"
	"$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	plugin_call CHECK web "$all_options" || fail CHECK
	expect_equal 1000 "$(policy .value.max_flows)" maxFlows
	plugin_call DEL web || fail DEL
	expect_count 0 policies
}

# CHECK names the option whose part of the policy was changed, or that the policy is gone
test_options_check() {
	local byte option
	container_add_plain web
	plugin_config web "$all_options" >/run/config
	while read -r byte option; do
		plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		plugin_run CHECK web </run/config || fail "CHECK before byte $byte"
		policy_damage "$byte"
		expect_error 102 '' plugin_run CHECK web </run/config
		expect_contains "$output" "\\\"$option\\\" is not what the map policies says"
	done <<-'BYTES'
		8 maxFlows
		12 masqAll
		13 snat
		14 snatAddresses
		15 snatAddresses
		16 nonMasqueradeCIDRs
		17 sourceRanges
		18 excludeCIDRs
		87 masqPorts
		103 snatAddresses
		343 snatAddresses
		344 nonMasqueradeCIDRs
		1112 sourceRanges
		2647 excludeCIDRs
		0 maxFlows
	BYTES
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	map_empty policies
	expect_refusal maxFlows plugin_run CHECK web </run/config
	plugin_call ADD web '.maxFlows = 5' >/run/out || fail "$(cat /run/out)"
	expect_refusal maxFlows plugin_call CHECK web
}

# a snatAddresses that the host does not have is warned of by ADD and CHECK, until it has it
test_options_source_of_nobody() {
	container_add_plain web
	plugin_config web '.snatAddresses = ["203.0.113.7", "2001:db8::7", "198.51.100.1"]' >/run/config
	plugin_run ADD web </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_in /run/err 'the host does not have 203.0.113.7 now'
	expect_in /run/err 'the host does not have 2001:db8::7 now'
	expect_equal 2 "$(grep -c warning /run/err)" warnings
	plugin_run CHECK web </run/config 2>/run/err || fail CHECK
	expect_equal 2 "$(grep -c 'the host does not have' /run/err)" "warnings of CHECK"
	ip address add 203.0.113.7/32 dev lo
	ip -6 route add local 2001:db8::/64 dev lo
	plugin_run CHECK web </run/config 2>/run/err || fail CHECK
	expect_equal "" "$(cat /run/err)" "what CHECK says on stderr"
	ip address delete 203.0.113.7/32 dev lo
	ip route add unreachable 203.0.113.0/24
	plugin_run CHECK web </run/config 2>/run/err || fail CHECK
	expect_in /run/err 203.0.113.7
}

# an ADD that fails behind its policy takes the policy back
test_options_failed_add() {
	container_add_plain web
	container_add_plain other
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_error 101 '' plugin_call ADD other '.maxFlows = 5'
	expect_count 0 policies
	exec 7>/dev/full
	plugin_call ADD other "$(mapping 9090) | .maxFlows = 5" >&7 2>/dev/null &&
		fail "ADD that could not print its result"
	expect_count 0 policies
}

# limit 180 s
# ADD and DEL with options, killed before each change that they make in the kernel: whatever is live has
# its policy, a policy is found by its attachment, DEL leaves nothing, and neither does it to the next
# user of the slot
test_options_killed() {
	container_add_plain web
	container_add_plain other
	plugin_config web "$all_options" >/run/config
	plugin_config other "$(mapping 9090)" >/run/other_config
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
	plugin_run DEL web </run/config || fail DEL
	killed_at_each_change ADD
	killed_at_each_change DEL
}

killed_at_each_change() {
	local call=1 status
	while :; do
		[ "$1" = ADD ] || plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
		status=0
		PREFIX="$build/tests/traced kill $call" plugin_run "$1" web </run/config >/run/out || status=$?
		what_is_left_is_sound "$1 killed before call $call"
		plugin_run ADD other </run/other_config >/run/out || fail "$(cat /run/out)"
		plugin_run CHECK other </run/other_config || fail "CHECK, $1 killed before call $call"
		[ $((call % 2)) = 0 ] || plugin_run DEL other </run/other_config || fail DEL
		plugin_run DEL web </run/config || fail "DEL, $1 killed before call $call"
		plugin_run DEL other </run/other_config || fail DEL
		expect_count "0 0 0 0" 'policies attachments portmaps endpoints' "after DEL"
		[ "$status" = 137 ] || break
		call=$((call + 1))
	done
	expect_equal 0 "$status" "the $1 that was not killed"
	[ "$call" -gt 5 ] || fail "only $call calls: nothing was tested"
}

what_is_left_is_sound() {
	local policies
	policies=$(map_count policies)
	[ "$(map_count slots)" = 0 ] || expect_equal "1 1" "$policies $(slot_says web)" \
		"policies of a live slot, and what that says of them, $1"
	[ "$(map_count attachments)" = 1 ] || expect_equal 0 "$policies" "policies of nobody, $1"
}

# an option that makes no sense is refused with code 7, one of the wrong type with code 6, and the
# message names key and value; STATUS says the same; nothing is left
test_options_bad() {
	# One of each parser: all others are rows of conf_policy_test, conf_interfaces_test and conf_options_test.
	local before filter code words
	container_add_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	plugin_call DEL web || fail DEL
	before=$(state_show)
	while IFS='|' read -r code filter words; do
		expect_error "$code" '' plugin_call ADD web ".$filter"
		expect_contains "$(jq -r .msg <<<"$output")" "$words"
		expect_failure plugin_call STATUS web ".cniVersion = \"1.1.0\" | .$filter"
		expect_contains "$(jq -r .msg <<<"$output")" "$words"
	done <<-'OPTIONS'
		7|masqPorts = "2000-1024"|"masqPorts": "2000-1024" ends before it begins
		6|maxFlows = "many"|"maxFlows" must be an integer, found the string "many"
		7|nonMasqueradeCIDRs = ["10.0.0.0/8", "!10.0.0.0/8"]|"nonMasqueradeCIDRs" has "10.0.0.0/8" and
		7|snatAddresses = ["192.0.2.1", "127.0.0.1"]|"snatAddresses"[1] is "127.0.0.1"
		7|uplinks = ["eth0/1"]|"uplinks"[0] is "eth0/1", which has a slash
	OPTIONS
	expect_same_state "$before"
	plugin_call DEL web '.masqPorts = {}' || fail "DEL must not look at options"
}

# the same options under the sanitizers, and huge and deep ones
test_options_bad_sanitized() {
	local filter
	container_add_plain web
	export ASAN_OPTIONS=detect_leaks=1
	local binary=$build/sanitized/bpf-portmap
	plugin_call ADD web "$all_options" >/run/out 2>/run/err || fail "$(cat /run/out /run/err)"
	plugin_call CHECK web "$all_options" || fail CHECK
	for filter in '.masqPorts = [range(20000) * 3 + 1]' '.snatAddresses = [range(9) | "1.0.0.\(.)"]' \
		'.sourceRanges = [range(50000) | "1.0.0.0/8"]' '.excludeCIDRs = [[[[[[[[[[]]]]]]]]]]' \
		'.uplinks = [range(50000) | "eth*"]' '.nonMasqueradeCIDRs = ["!" * 100000]' \
		'.nonMasqueradeCIDRs = ["10.0.0.0/8", "10.0.0.0/99"]' '.uplinks = ["eth0", "/"]'; do
		expect_failure plugin_call ADD web "$filter"
		jq -e '.code == 6 or .code == 7' <<<"$output" >/dev/null || fail "$filter: ${output:0:2000}"
	done
	plugin_call DEL web || fail DEL
}

# neverPorts: ADD of such a port is refused by name and leaves nothing; a container that has it from
# before is told by CHECK, and goes with DEL
test_options_never_ports() {
	local state_before
	container_add_plain web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
	expect_error 7 '' plugin_call CHECK web '.neverPorts = "8000-8100"'
	plugin_call DEL web '.neverPorts = "8000-8100"' || fail "DEL must not look at neverPorts"
	state_before=$(state_show)
	expect_error 7 '' plugin_call ADD web '.neverPorts = "8000-8100"'
	expect_contains "$output" '"hostPort\" is 8080, one of \"neverPorts\"'
	expect_same_state "$state_before"
	expect_equal '' "$(plugin_call ADD web '.neverPorts = 8081' 2>&1 >/run/out)" 'what ADD says'
}

# a warning that quotes the configuration hands no control characters on to a terminal
test_options_with_control_characters() {
	container_add_plain web
	plugin_call ADD web '. + {"snat\u001b[31m": true, "snat\u001b": true}' >/run/out 2>/run/err ||
		fail "$(cat /run/out)"
	expect_in /run/err 'unknown key "snat?" is ignored'
	expect_equal '' "$(tr -d '\n[:print:]' </run/err)" "control characters in warnings"
}
