# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Random packets, sockets and events beside those of the reference plugins (README.md)

# limit 600 s
# the same random packets, sockets and events arrive as with portmap
test_differential() {
	ip link add barrier0 type veth peer name barrier1
	ip link set barrier0 up
	ip link set barrier1 up
	"$build/tests/differential" --script "$project/tests/differential/world.sh" \
		--near barrier0 --far barrier1 --seed "${SEED:-1}" --steps "${STEPS:-400}" \
		--seconds "${SECONDS_TO_RUN:-0}" --shrink "${SHRINK:-0}" ${ONLY:+--only "$ONLY"} \
		${INSPECT:+--inspect "$INSPECT"} --verbose "${VERBOSE:-0}"
}
