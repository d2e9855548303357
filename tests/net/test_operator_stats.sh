# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_stats.sh - `bpf-portmap stats`: counters, how full tables are, metrics.

# counter NAME: as --json has it
counter() { item ".items[] | select(.type == \"counter\" and .name == \"$1\").value" stats; }

# metric SERIES: the value of a metric with its labels
metric() {
	by_hand 0 stats --prometheus
	awk -v series="bpf_portmap_$1" '$1 == series { print $2 }' /run/out
}

status_of() { sed -n "s/^bpf_portmap_check_status{check=\"$1\"} //p" /run/out; }

# counters and tables show what went on
test_operator_stats_counters() {
	web_as_pod -p 8080:80/tcp
	expect_equal 0 "$(counter flow_mapping)"
	conversation_with web one client tcp "$host4" 8080
	expect_says one web
	expect_equal 1 "$(counter flow_mapping)"
	expect_equal "$(counted rewritten_destination)" "$(counter rewritten_destination)"
	expect_equal '{"entries":1,"name":"assured"}' "$(item '.items[] |
		select(.type == "table" and .name == "assured") | {entries, name}' stats)"
	expect_contains "$(rows stats)" 'flow_mapping 1 new flows through a mapping'
	case $(rows stats) in *drop_no_tuple*) fail "a counter of 0 is shown" ;; esac
	expect_contains "$(rows stats --all)" 'drop_no_tuple 0 no free port could be found'
	by_hand 0 stats
	expect_contains "$(head -n 1 /run/out)" 'table 1 of '
	expect_equal "$(grep -c 'X(' "$project/include/counters.h")" \
		"$(($(item '[.items[] | select(.type == "counter")] | length' stats) + 1))" \
		"counters and the macro's own line"
	conversation_close one
}

# the metrics tell ports, hooks, flows, and every reason for a drop; --checks tells what doctor says of
# each check, where it is asked for
test_operator_stats_prometheus() {
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	expect_answer client tcp "$host4" 8080 web
	by_hand 0 stats --prometheus
	! grep check_status /run/out || fail "checks that nobody asked for"
	by_hand_warns 64 '--checks needs --prometheus' stats --checks
	by_hand 0 stats --prometheus --checks
	! command -v promtool >/dev/null || promtool check metrics </run/out || fail "$(cat /run/out)"
	[ "$(grep -c '^bpf_portmap_check_status{check=".*"} [012]$' /run/out)" -ge 30 ] ||
		fail "few checks: $(grep check_status /run/out)"
	expect_equal 0 "$(status_of way)"
	by_hand 0 stats --prometheus --per-port
	! command -v promtool >/dev/null || promtool check metrics </run/out || fail "$(cat /run/out)"
	expect_equal 2 "$(metric 'ports{network="bridge",protocol="tcp"}')"
	expect_equal 1 "$(metric 'attachments{network="bridge",state="ready"}')"
	expect_equal 1 "$(metric 'interface_attached{interface="eth0",hook="ingress"}')"
	expect_equal 1 "$(metric 'flows_created_total{kind="mapping"}')"
	expect_equal 0 "$(metric 'dropped_packets_total{reason="no_tuple"}')"
	expect_equal "$(grep -c 'X(drop_' "$project/include/counters.h")" \
		"$(grep -c '^bpf_portmap_dropped_packets_total{' /run/out)" "reasons"
	# Each counter is in one series.
	expect_equal "$(item '[.items[] | select(.type == "counter")] | length' stats --all)" "$(
		by_hand 0 stats --prometheus
		grep -cE '^bpf_portmap_(packets|flows_created|dropped_packets|masquerade_allocations|events)_total{' /run/out
	)" "series of counters"
	[ "$(metric map_memory_bytes)" -gt 1000000 ] || fail "memory: $(metric map_memory_bytes)"
	by_hand 0 stats --prometheus --per-port
	expect_equal 1 "$(sed -n 's/^bpf_portmap_port_flows_total{address="0.0.0.0",port="8080",protocol="tcp",namespace="shop",pod="web-0",container="web"} //p' /run/out)"
	detach_ours eth0 ingress from_uplink
	expect_equal 0 "$(metric 'interface_attached{interface="eth0",hook="ingress"}')"
	expect_equal 1 "$(metric 'interface_attached{interface="eth1",hook="ingress"}')"
	sysctl -qw net.ipv4.ip_forward=0
	ip link set cni0 address 02:00:00:00:00:77
	by_hand 0 stats --prometheus --checks
	expect_equal 2 "$(status_of way)"
	expect_equal 1 "$(status_of settled)"
}

# promtool accepts the metrics of damaged maps
test_operator_stats_promtool() {
	command -v promtool >/dev/null || skip "there is no promtool (package prometheus)"
	web_as_pod -p 8080:80/tcp
	"$build/tests/fill" damage "$pins" 4711 300
	binary=$build/sanitized/bpf-portmap by_hand 0 stats --prometheus --per-port
	promtool check metrics </run/out || fail "of damaged maps: $(cat /run/out)"
}

# a file for a collector is replaced as a whole, or left as it was; what is no file, as /dev/null, stays
test_operator_stats_file() {
	local name
	web_as_pod -p 8080:80/tcp
	mkdir /run/collector
	echo old >/run/collector/x.prom
	by_hand 0 stats --prometheus=/run/collector/x.prom
	expect_equal "" "$(cat /run/out)"
	expect_in /run/collector/x.prom 'bpf_portmap_info{version='
	expect_equal 644 "$(stat -c %a /run/collector/x.prom)"
	expect_equal x.prom "$(ls /run/collector)"
	by_hand 1 stats --prometheus=/run/nowhere/x.prom
	expect_in /run/err 'cannot write /run/nowhere/x.prom: No such file'
	mkdir /run/collector/y.prom
	by_hand 1 stats --prometheus=/run/collector/y.prom
	mknod /run/collector/null c 1 3
	ln -s x.prom /run/collector/z.prom
	for name in null z.prom y.prom; do
		by_hand 1 stats --prometheus="/run/collector/$name"
		expect_in /run/err "/run/collector/$name is no regular file"
	done
	expect_equal 'null x.prom y.prom z.prom' "$(ls /run/collector | xargs)"
	[ -c /run/collector/null ] && [ -L /run/collector/z.prom ] || fail "replaced: $(ls -l /run/collector)"
}
