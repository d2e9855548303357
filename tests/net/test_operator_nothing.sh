# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_nothing.sh - the commands for people on a host where no container was ever added.
# All of them in one test, because none needs the programs, which take longer to load than they.

# nothing is loaded
# where nothing was ever added each command says so, or has nothing to tell; none is a failure but of
# what is asked for, and none loads anything
test_operator_nothing() {
	local directory
	. "$here/test_operator_support.sh"
	support_world
	by_hand 0 doctor
	by_hand 2 doctor 8080/tcp
	expect_contains "$(head -n 1 /run/out)" 'FAIL  owner              no container has port 8080/tcp'
	by_hand_warns 0 'no container was ever added on this host' list
	expect_equal '[]' "$(item .items list)"
	by_hand 0 gc
	expect_equal '' "$(cat /run/out)"
	by_hand_warns 1 'no container was ever added' trace --port 8080
	by_hand_says 0 'nothing to drop' drop-offload
	by_hand 0 support /run/out.tar
	directory=$(unpacked)
	expect_equal 0 "$(jq '.items | length' "$directory/bpf-portmap/list.json")"
	by_hand 0 stats --prometheus
	[ ! -e "$pins" ] || fail "it has loaded something"
	command -v promtool >/dev/null || return 0
	promtool check metrics </run/out || fail "promtool refuses: $(cat /run/out)"
}
