# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_replay.sh - what engines really send (data/), to our plugin, where none is installed.

# shellcheck source=tests/engines/replay.sh
. "$folder/replay.sh"

# as Podman 4.3.1 calls: lists of 0.4.0, DEL with the cached result, after an ADD that failed
# without one, DEL and ADD of a container that runs [s149]
test_replay_podman() {
	replay "$folder/data/podman-4.3.1.jsonl"
}
