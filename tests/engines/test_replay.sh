# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_replay.sh - calls our plugin as engines have called it (data/), without an engine.

. "$folder/replay.sh"

# limit 240 s
# Podman 4.3.1's calls: conflists of 0.4.0, DEL with the cached result, or without one after an ADD
# that failed, DEL and ADD of a running container
test_replay_podman() {
	replay "$folder/data/podman-4.3.1.jsonl"
}

# limit 240 s
# the calls of the CRI of containerd 1.6 and 1.7: go-cni's keys, an empty hostIP, DEL repeated
# without a namespace and without a result
test_replay_containerd_1() {
	replay "$folder/data/containerd-1.6.20.jsonl"
}

# limit 240 s
# the calls of containerd 2's CRI, whose results have no dns
test_replay_containerd_2() {
	replay "$folder/data/containerd-2.1.9.jsonl"
}

# limit 240 s
# nerdctl's calls: DEL before each ADD, hostIP 0.0.0.0, the namespace of a process, none at DEL
test_replay_nerdctl() {
	replay "$folder/data/nerdctl-2.0.jsonl"
}

# limit 240 s
# Nomad's calls: every port as TCP and UDP at the address of a host network, CHECK after the agent's
# restart, DEL without arguments
test_replay_nomad() {
	replay "$folder/data/nomad-1.9.5.jsonl"
}

# limit 240 s
# the same, and each call is killed at some places first: two allocations of a group, one replacing the
# other, the agent's restart. Meanwhile the port is its owner's, and `list` and `who` say so
test_replay_nomad_killed() {
	local replay_killed_count=0 replay_kills=${STEP:+12}
	replay_kills=${replay_kills:-2}
	replay "$folder/data/nomad-1.9.5.jsonl"
	echo "note: killed $replay_killed_count of $((7 * replay_kills))"
	[ "$replay_killed_count" -ge "$replay_kills" ] || fail "$replay_killed_count were killed: nothing was tested"
}

# limit 240 s
# the calls of CRI-O, which maps host ports itself: CHECK right after every ADD, STATUS, GC also
# with no valid attachment
test_replay_crio() {
	replay "$folder/data/cri-o-1.31.jsonl" no-ports
}

# limit 240 s
# cri-dockerd's calls: a list of ports even if it is empty, the namespace of a process, none at DEL
test_replay_cri_dockerd() {
	replay "$folder/data/cri-dockerd-0.3.jsonl"
}
