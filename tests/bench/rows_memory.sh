# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_memory.sh - the kernel memory of the maps, as the kernel accounts for it. It does not account
# for rules of iptables and nftables.
#
# A connection has an entry in connections, one in assured or half_open, and if it is masqueraded
# one in aliases.

row maps_memory MiB lower 'memory of all maps, "flowEntries": 262144'
row maps_memory_largest MiB lower 'memory of all maps, "flowEntries": 524288, the most'
for kind in mapped masqueraded; do
	row "connection_values_$kind" bytes lower "a connection, $kind: the values of its entries"
	row "connection_keys_$kind" bytes lower "a connection, $kind: keys and values of its entries"
	row "connection_memory_$kind" bytes lower "a connection, $kind: kernel memory of its entries"
	row "connection_memory_${kind}_largest" bytes lower "the same, \"flowEntries\": 524288, the most"
done
row connection_memory_new bytes lower 'a half-open connection: kernel memory of its entries'

# 160 of the record and 64 of its place, a cache line. The place has the key and its container's slot, so that
# who looks for a place sees without the record that one of a removed container can be had; and TCP's numbers,
# so that packets past the IP stack need not touch the record.
budget connection_values_mapped established at-most 224

measure quick/1 established 60 maps_memory

# pinned_maps DIRECTORY: for each map its name, bytes, entries, bytes of a key and of a value, type
pinned_maps() {
	local pin
	for pin in "$1"/*; do
		! bpftool -j map show pinned "$pin" 2>/dev/null | jq -r \
			'"\(.name) \(.bytes_memlock) \(.max_entries) \(.bytes_key) \(.bytes_value) \(.type)"' || true
	done
}

# maps_of SUFFIX: results for the maps of its input lines. The index of an array needs no memory.
maps_of() {
	awk -v suffix="$1" '
		function add(kind, map, count) {
			if (!(map in memory)) return
			of_memory[kind] += count * memory[map]
			of_values[kind] += count * value[map]
			of_keys[kind] += count * (key[map] + value[map])
		}
		{
			all += $2
			if (!$3) next # sockets have its entries
			memory[$1] = $2 / $3
			key[$1] = $6 ~ /array/ ? 0 : $4
			value[$1] = $5
			entries[$1] = $3
		}
		END {
			add("mapped", "connections", 1); add("mapped", "assured", 1)
			add("masqueraded", "connections", 1); add("masqueraded", "assured", 1)
			add("masqueraded", "aliases", 1)
			add("new", "connections", 1); add("new", "half_open", 1)
			print "maps_memory" suffix, all / 1048576, entries["connections"] " entries of connections"
			for (kind in of_memory) {
				if (kind == "new" && suffix) continue
				print "connection_memory_" kind suffix, of_memory[kind]
				if (kind == "new" || suffix) continue
				print "connection_values_" kind, of_values[kind]
				print "connection_keys_" kind, of_keys[kind]
			}
		}' | while read -r name value note; do result "$name" "$value" "$note"; done
}

maps_memory() {
	pinned_maps "$pins" | maps_of _largest
	calls_begin
	fresh_make
	fresh_add '.flowEntries = 262144' >/dev/null
	pinned_maps "$pins"/netns-* | maps_of ''
	fresh_remove
	calls_end
}
