# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Random packets, sockets and events in two worlds (README.md)

# limit 300 s
# nothing is at sockets
# also with fastPath off
# the same random packets, sockets and events arrive as with portmap
test_differential() {
	local options=(--episodes 3 --shrink 40)
	[ "${FAST_PATH:-}" = '' ] || options+=(--seed 100000)
	[ -z "${DIFFERENTIAL:-}" ] || eval "options=($DIFFERENTIAL)"
	ip link add barrier0 type veth peer name barrier1
	ip link set barrier0 up
	ip link set barrier1 up
	"$build/tests/differential" --script "$project/tests/differential/world.sh" \
		--near barrier0 --far barrier1 "${options[@]}"
}
