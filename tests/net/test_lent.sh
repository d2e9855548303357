# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_lent.sh - the programs and maps that one test has from another (loaded.c).

# bytes_written PIN: how many bytes of an array's values are not zero
bytes_written() {
	bpftool -j map dump pinned "$1" |
		jq '[.[] | (.value // .values[].value)[] | select(. != "0x00")] | length'
}

# a test that gets another one's programs and maps finds nothing of its containers and flows
test_lent_is_empty() {
	local map again=/sys/fs/bpf/again
	conflist few bridge "$(with_ours '{maxFlows: 5}')"
	container_start web few -p 8080:80/tcp -p 8080:80/udp
	serve_in server 9000
	expect_answers client "$host4" 8080 web
	expect_answers host 127.0.0.1 8080 web
	expect_answers web "$server4" 9000 server
	[ "$(map_count connections)" -ge 4 ] || fail "no connections"
	devices_remove
	"$build/tests/loaded" keep "$pins" /sys/fs/bpf/kept
	"$build/tests/loaded" lend /sys/fs/bpf/kept "$again"
	for map in portmaps endpoints interfaces host_addresses policies networks \
		attachments veths connections aliases; do
		expect_equal 0 "$(map_count "$map")" "entries of $map"
	done
	for map in published_ports endpoint_addresses usage external_ports noticed counters; do
		expect_equal 0 "$(bytes_written "$again/$map")" "what is written in $map"
	done
	expect_count 0 slots
}
