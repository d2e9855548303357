# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_memory.sh - what the maps take of the kernel's memory, as it accounts for it. Rules of
# iptables and nftables are not accounted for.

row maps_memory MiB lower 'memory of all maps'
row maps_memory_largest MiB lower 'memory of all maps, "flowEntries": 524288, the most'
row flow_memory bytes lower 'memory of an answered flow: two entries of flows, one of flow_pairs'
row flow_memory_largest bytes lower 'the same, "flowEntries": 524288, the most'
row flow_new_memory bytes lower 'memory of a half-open flow: two entries of flows_new'

measure quick/1 established 60 maps_memory

# pinned_maps DIRECTORY: name, bytes and entries of each
pinned_maps() {
	local pin
	for pin in "$1"/*; do
		! bpftool -j map show pinned "$pin" 2>/dev/null |
			jq -r '"\(.name) \(.bytes_memlock) \(.max_entries)"' || true
	done
}

# maps_of SUFFIX: the maps of the lines it reads
maps_of() {
	awk -v suffix="$1" '
		{ all += $2; bytes[$1] = $2; entries[$1] = $3 }
		END {
			print "maps_memory" suffix, all / 1048576, entries["flows"] " entries"
			print "flow_memory" suffix, 2 * bytes["flows"] / entries["flows"] + \
				bytes["flow_pairs"] / entries["flow_pairs"]
			if (!suffix)
				print "flow_new_memory", 2 * bytes["flows_new"] / entries["flows_new"]
		}' | while read -r name value note; do result "$name" "$value" "$note"; done
}

maps_memory() {
	pinned_maps "$pins" | maps_of ''
	calls_begin
	fresh_make
	fresh_add '.flowEntries = 524288' >/dev/null
	pinned_maps "$pins"/netns-* | maps_of _largest
	fresh_remove
	calls_end
}
