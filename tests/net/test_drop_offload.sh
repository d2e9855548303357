# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `bpf-portmap drop-offload`, for an administrator who has changed a firewall's rules.

meta_field() { bpftool -j map dump pinned "$pins/meta" | jq -c ".[0].formatted.value | $1"; }

newest_flow() {
	bpftool -j map dump pinned "$pins/connections" | jq '[.[].formatted.value.last_seen] | max'
}

# drop-offload stores the current second, by the clock that the programs read, and nothing else; it
# reports what it did
test_drop_offload_writes() {
	local before rest
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	expect_equal 0 "$(meta_field .offload_dropped)" "offload_dropped"
	expect_answers client "$host4" 8080 web "$client4"
	rest=$(meta_field 'del(.offload_dropped)')
	before=$(newest_flow)
	expect_contains "$("$build/bpf-portmap" drop-offload)" "until its firewall has let it through"
	[ "$(meta_field .offload_dropped)" -ge "$before" ] || fail "before $before"
	expect_equal "$rest" "$(meta_field 'del(.offload_dropped)')" "the rest of meta"
	expect_answers client "$host4" 8080 web "$client4"
	[ "$(meta_field .offload_dropped)" -le "$(newest_flow)" ] || fail "in the future"
	before=$(meta_field .offload_dropped)
	container_add other bridge
	expect_equal "$before" "$(meta_field .offload_dropped)" "offload_dropped after an ADD"
}

# with maps of another layout drop-offload fails; a further argument is refused
test_drop_offload_refused() {
	local code=0
	"$build/bpf-portmap" drop-offload now >/run/out 2>&1 || code=$?
	expect_equal 64 "$code" "exit code with a word too much"
	expect_contains "$("$build/bpf-portmap" --help 2>&1)" "  drop-offload "
	container_add web bridge
	meta_set 0 63
	expect_refusal layout "$build/bpf-portmap" drop-offload
}
