# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# What the fast path must not walk past, and how user space says so to the programs.

# A container's slot as bpftool prints it, through a jq filter: slot NAME FILTER [ATTACHMENT]
slot() {
	local number
	number=$(slot_of "${3:-bridge/$1/eth0}")
	# shellcheck disable=SC2046
	bpftool -j map lookup pinned "$pins/slots" key hex $(printf '%02x %02x 00 00' \
		$((number & 255)) $((number >> 8))) | jq -c ".formatted.value | $2"
}

mac_as_json() { jq -cRn --arg mac "$1" '$mac | split(":") | map(. as $hex | "0123456789abcdef" |
	index($hex[:1]) * 16 + index($hex[1:]))'; }

expect_fast_path() {
	expect_equal "\"$2\"" "$(slot "$1" .fast_path "${3:-}")" "fast_path of $1"
}

# fastPath stands in the slot, established where the list does not say, and so do the MACs that
# frames to the gateway have: the bridge's, or, behind ptp, the veth's own
test_bypass_slots() {
	local value
	unset FAST_PATH
	conflist bridge bridge .
	container_add web bridge
	expect_fast_path web FAST_PATH_ESTABLISHED
	expect_equal "$(mac_as_json "$(mac_of cni0)")" "$(slot web .gateway_mac)" "gateway_mac"
	expect_equal "$(mac_as_json "$(mac_of "$(host_veth web)")")" "$(slot web .host_mac)" host_mac
	container_add routed ptp
	expect_equal "$(slot routed .host_mac ptp/routed/eth0)" \
		"$(slot routed .gateway_mac ptp/routed/eth0)" "gateway_mac behind ptp"
	for value in off established always; do
		conflist "$value" bridge "$(with_ours "{\"fastPath\": \"$value\"}")"
		container_add "$value" "$value"
		expect_fast_path "$value" "FAST_PATH_${value^^}"
	done
}
