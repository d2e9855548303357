# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

# test_cost.sh - what an ADD and a DEL ask of the kernel, counted: a time would follow the machine.

# calls_of COMMAND PORT [FILTER]: how many system calls it makes of the container `other`
calls_of() {
	PREFIX='strace -f -o /run/trace' plugin_call "$1" other "$(mapping "$2") | ${3:-.}" >/run/out ||
		fail "$(cat /run/out)"
	grep -c '^[0-9]* *[a-z_0-9]*(' /run/trace
}

# nothing is loaded
# an ADD and a DEL of a container beside a running one need few system calls
test_cost_warm() {
	local added deleted
	container_start web bridge -p 8080:80/tcp
	container_add_plain other
	added=$(calls_of ADD 8081)
	deleted=$(calls_of DEL 8081)
	echo "note: ADD: $added system calls, DEL: $deleted"
	[ "$added" -le 179 ] || fail "ADD: $added"
	[ "$deleted" -le 77 ] || fail "DEL: $deleted"
}

# calls_beside: the ADD and DEL of `other`
calls_beside() { echo "$(calls_of ADD 8081) $(calls_of DEL 8081)"; }

# no more of them beside more containers, mappings and networks; each uplink is looked at, in six calls
# at most
test_cost_beside() {
	local before number after
	container_start web bridge -p 8080:80/tcp
	container_add_plain other
	before=$(calls_beside)
	for number in 1 2 3 4 5 6; do
		container_add "more$number" bridge -p "81${number}0-81${number}9:80-89/tcp"
	done
	networks_add 5
	# What the last one has left is forgotten once.
	calls_of ADD 8081 >/run/out
	calls_of DEL 8081 >/run/out
	after=$(calls_beside)
	# Memory is asked for now and then.
	[ "${after% *}" -le $((${before% *} + 10)) ] && [ "${after#* }" -le $((${before#* } + 10)) ] ||
		fail "ADD and DEL: $before, then $after"
	for number in 1 2 3 4 5 6 7 8 9 10; do
		ip link add "many$number" type veth peer name "many-peer$number"
		ip address add "172.16.$number.1/24" dev "many$number"
	done
	"$build/bpf-portmap" attach >/run/out
	after=$(calls_beside)
	echo "ADD and DEL: $before, with ten uplinks more: $after"
	[ "${after% *}" -le $((${before% *} + 60)) ] || fail "ADD: $before, then $after"
	[ "${after#* }" -le $((${before#* } + 10)) ] || fail "DEL: $before, then $after"
}

# an address on lo, as load balancers have them, is looked at like any other
test_cost_of_loopback_address() {
	local before after
	container_start web bridge -p 8080:80/tcp
	container_add_plain other
	calls_beside >/run/out
	before=$(calls_beside)
	ip address add 203.0.113.77/32 dev lo
	calls_beside >/run/out
	after=$(calls_beside)
	echo "ADD and DEL: $before, then $after"
	[ "${after% *}" -le $((${before% *} + 10)) ] || fail "ADD: $before, then $after"
}

# networks_add COUNT: as if so many networks had had a container once
networks_add() {
	local number
	for ((number = 0; number < $1; number++)); do
		plugin_call ADD other ".name = \"churn$number\" | .uplinks = [\"eth0\"] | .runtimeConfig = null" >/run/out || fail "$(cat /run/out)"
		plugin_call DEL other ".name = \"churn$number\"" >/run/out || fail "$(cat /run/out)"
	done
}

# names of networks that are gone cost nothing: no more is kept of them than of living ones
test_cost_of_networks() {
	container_start web bridge -p 8080:80/tcp
	container_add_plain other
	networks_add 20
	plugin_call ADD other "$(mapping 8081)" >/run/out || fail "$(cat /run/out)"
	expect_count 1 networks
}
