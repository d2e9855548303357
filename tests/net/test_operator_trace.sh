# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_trace.sh - `bpf-portmap trace`: what the programs do with packets that come, and
# what the kernel does.

# live_begin [ARGUMENT...]: the words go to /run/live. PREFIX: a command before ours
live_begin() {
	rm -f /run/live-err
	${PREFIX:-} "$build/bpf-portmap" trace "$@" >/run/live 2>/run/live-err &
	live=$!
	wait_until 10 file_says tracing /run/live-err || fail "no trace: $(cat /run/live-err)"
}

# live_end: as Ctrl-C ends it
live_end() {
	kill -INT "$live"
	wait "$live" || fail "trace: $? $(cat /run/live-err)"
}

# live_says WORDS: within a few seconds
live_says() {
	wait_until 10 grep -q -e "$1" /run/live ||
		fail "no \"$1\" in $(cat /run/live /run/live-err)"
}

live_is_over() { ! kill -0 "$live" 2>/dev/null; }

# a connection is seen at each hook, both ways, with what the hook does, and an ICMP error with the
# packet that it quotes
test_operator_trace_live_connection() {
	local web
	web_as_pod -p 8080:80/tcp -p 5353:81/udp
	web=$(address4 web)
	live_begin --port 8080/tcp
	expect_answer client tcp "$host4" 8080 web
	live_says "eth0 in from_uplink  tcp S $client4:[0-9]* > $host4:8080 => $web:80  translated, new mapping, shop/web-0"
	live_says "eth0 out to_uplink  tcp S. $web:80 > $client4:[0-9]* => $host4:8080 > $client4:[0-9]*  translated, mapping, shop/web-0"
	live_end
	! grep -q to_container /run/live || fail "port 8080 is not there any more: $(cat /run/live)"
	live_begin --host "$web"
	expect_answer client tcp "$host4" 8080 web
	live_says "cni0 out to_container  tcp S $client4:[0-9]* > $web:80  unchanged, mapping, shop/web-0"
	live_says "veth[0-9a-f]* in from_container  tcp S. $web:80 > $client4:[0-9]*  unchanged, mapping"
	live_end
	expect_in /run/live-err ' shown, 0 lost'
	live_begin --port 5353
	expect_refused client udp "$host4" 5353 --connected
	live_says "eth0 in from_uplink  udp $client4:[0-9]* > $host4:5353 => $web:81  translated, new mapping"
	live_says "eth0 out to_uplink  icmp error about udp $client4:[0-9]* > $web:81 => $host4:5353  translated, mapping, shop/web-0"
	live_end
}

# datagrams_begin: from now on the client sends some to port 8080, of one CPU and each from another port
datagrams_begin() {
	mkfifo /run/pause
	touch /run/go-on
	in_namespace client taskset -c 0 bash -c "exec 3<>/run/pause; while [ -e /run/go-on ]; do
		echo >/dev/udp/$host4/8080; read -r -t 0.005 <&3 || true; done" &
	sender=$!
}

datagrams_end() {
	rm /run/go-on
	wait "$sender"
}

live_shows_drops() { [ "$(grep -c 'kernel .* DROPPED' /run/live)" -ge "$1" ]; }

# expect_whole_ways: of what the kernel drops the line of from_uplink was shown, and before it
expect_whole_ways() {
	awk -v client="$client4" '{ match($0, client ":[0-9]+"); way = substr($0, RSTART, RLENGTH) }
		/ in from_uplink / { seen[way] = 1 }
		/ kernel / && !seen[way] { print NR ": " $0; wrong = 1 }
		END { exit wrong }' /run/live >/run/wrong ||
		fail "the kernel's drop without or before from_uplink's line, $(wc -l </run/wrong) of $(wc -l </run/live): $(head -n 4 /run/wrong; tail -n 1 /run/live-err)"
}

# each dropped packet is shown from where it came in, in order, also one that came while trace began, and
# where another CPU drops it
test_operator_trace_live_whole() {
	web_as_pod -p 8080:81/udp
	datagrams_begin
	nft 'table inet broken { chain forward { type filter hook forward priority 0; policy drop; }; }'
	for _ in 1 2 3; do
		live_begin --port 8080
		wait_until 30 live_shows_drops 50 || fail "few drops: $(cat /run/live /run/live-err)"
		live_end
		expect_whole_ways
	done
	nft delete table inet broken
	[ ! -e /sys/devices/system/cpu/cpu1 ] || in_namespace web bash -c 'echo 2 >/sys/class/net/eth0/queues/rx-0/rps_cpus'
	live_begin --port 8080
	wait_until 30 live_shows_drops 500 || fail "few drops: $(cat /run/live /run/live-err)"
	live_end
	datagrams_end
	expect_whole_ways
}

# what a firewall drops in FORWARD is shown with the kernel's reason and function
test_operator_trace_live_forward() {
	local web
	web_as_pod -p 8080:80/tcp
	web=$(address4 web)
	nft 'table inet broken { chain forward { type filter hook forward priority 0; policy drop; }; }'
	live_begin --port 8080
	expect_no_answer client tcp "$host4" 8080
	live_says "kernel  tcp S $client4:[0-9]* > $web:80  DROPPED"
	live_end
	expect_in /run/live "new mapping"
	grep -q 'before 5.17' /run/live-err && skip "this kernel does not say why it drops"
	live_says "DROPPED: NETFILTER_DROP at [a-z_]*+0x[0-9a-f]* (FORWARD)"
	expect_in /run/live-err "bpf-portmap doctor 8080 --from $client4 tells which rule"
}

# where a packet is dropped is looked up in the kernel's list of functions, of which those of BPF
# programs, thousands on some hosts, are left out: the kernel takes n^2 steps to say n of them
test_operator_trace_live_place() {
	local read others functions looks
	command -v strace >/dev/null || skip "there is no strace"
	container_start web bridge -p 8080:80/tcp
	nft 'table inet broken { chain forward { type filter hook forward priority 0; policy drop; }; }'
	PREFIX='strace -D -P /proc/kallsyms -e trace=openat,read -o /run/reads' live_begin --port 8080
	expect_no_answer client tcp "$host4" 8080
	live_says "DROPPED"
	live_end
	grep -q 'before 5.17' /run/live-err && skip "this kernel does not say why it drops"
	wait_until 10 file_says 'exited with' /run/reads || fail "strace does not end"
	looks=$(grep -c '^openat' /run/reads) || fail "no place is looked up: $(cat /run/live)"
	read=$(awk '/^read/ { sum += $NF } END { print sum + 0 }' /run/reads)
	read -r others functions < <(awk '/\[bpf\]$/ { if (++count == 300) exit; next }
		!count { others += length + 1 } END { print others, count + 0 }' /proc/kallsyms)
	[ "$read" -le $((looks * (others + 8192))) ] || fail "$looks looks read $read bytes, and others are $others"
	[ "$functions" = 300 ] || fail "only $functions functions of BPF programs: nothing was tested"
}

# what our programs drop has their reason, and is not said again as the kernel's
test_operator_trace_live_own_drop() {
	conflist ranges bridge "$(with_ours '{"sourceRanges": ["203.0.113.0/24"]}')"
	container_start web ranges -p 8080:80/tcp -p 8081:80/udp
	live_begin --drops
	expect_no_answer client tcp "$host4" 8080
	expect_no_answer client udp "$host4" 8081
	live_says "eth0 in from_uplink  tcp S $client4:[0-9]* > $host4:8080  DROPPED: source_range: a new flow to a mapped port"
	live_says "eth0 in from_uplink  udp $client4:[0-9]* > $host4:8081  DROPPED: source_range"
	live_end
	! grep -v 'source_range' /run/live || fail "more than our drops"
}

# a connection that skips the IP stack says where it goes
test_operator_trace_live_fast_path() {
	[ "${FAST_PATH:-}" != off ] || skip "there is no fast path"
	web_as_pod -p 8080:80/tcp
	conversation_with web one client tcp "$host4" 8080
	live_begin --port 8080
	wait_until 10 talked_fast || fail "not on the fast path: $(cat /run/live)"
	live_says "eth0 in from_uplink  tcp .* fast path into $(host_veth web), mapping, shop/web-0"
	live_says "$(host_veth web) in from_container  tcp .* fast path out of eth0, mapping, shop/web-0"
	live_end
	conversation_close one
}

talked_fast() {
	expect_says one web
	grep -q "fast path out" /run/live
}

# only what is asked for is shown: a protocol, an address, a port; --json: an object a line; --count and
# --seconds end it
test_operator_trace_live_filter() {
	local words web
	web_as_pod -p 8080:80/tcp -p 8080:80/udp -p 9090:80/tcp
	for words in "--host $client6 --protocol tcp --port 9090" "--port 9090/tcp --host $client6"; do
		live_begin $words
		expect_answer client tcp "$host4" 9090 web
		expect_answer client udp "$host6" 8080 web
		expect_answer client tcp "$host6" 8080 web
		expect_answer client tcp "$host6" 9090 web
		live_says "\[$client6\]:[0-9]* > \[$host6\]:9090"
		live_end
		! grep -vF "[$host6]:9090" /run/live || fail "with $words"
	done
	web=$(address4 web)
	live_begin --port 8080 --count 2 --json
	expect_answer client tcp "$host4" 8080 web
	wait_until 5 live_is_over || fail "it goes on after two packets"
	wait "$live" || fail "$(cat /run/live-err)"
	expect_equal 2 "$(wc -l </run/live)"
	expect_equal "[1,\"from_uplink\",\"in\",\"eth0\",\"tcp\",2,\"$client4\",8080,\"$web\",80,\"translated\",\"mapping\",true,\"shop/web-0\"]" \
		"$(head -n 1 /run/live | jq -c 'select((.host | length) > 0 and (.time | test("^20.*Z$"))) |
			[.version, .program, .direction, .interface, .protocol, .tcp_flags,
			.before.source.address, .before.destination.port, .after.destination.address,
			.after.destination.port, .outcome, .kind, .new, .container.name]')"
	live_begin --seconds 1
	wait_until 10 live_is_over || fail "it goes on after a second"
	wait "$live" || fail "$(cat /run/live-err)"
	expect_in /run/live-err "0 shown"
}

# programs_of_ours: how many programs use our maps
programs_of_ours() {
	local map
	map=$(bpftool -j map show pinned "$pins/endpoint_addresses" | jq .id)
	bpftool -j prog list | jq --argjson map "$map" \
		'[.[] | select((.map_ids // []) | index($map))] | length'
}

# asked_until: the word by which the programs are asked
asked_until() {
	local map
	for map in $(bpftool -j prog show pinned "$pins/from_uplink" | jq '.map_ids[]'); do
		bpftool -j map show id "$map" | jq -e '.name == ".data.trace"' >/dev/null ||
			continue
		bpftool -j map dump id "$map" | jq '.[0].formatted.value[".data.trace"][0].trace_settings.until'
	done
}

nobody_asks() {
	ask client tcp "$host4" 8080 >/dev/null
	[ "$(asked_until)" = 0 ]
}

programs_are() { [ "$(programs_of_ours)" = "$1" ]; }

# one that is killed leaves nothing: no program, and nothing is told any more; a second one is refused
# while the first runs, and works afterwards
test_operator_trace_live_killed() {
	local before state
	web_as_pod -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	before=$(programs_of_ours)
	state=$(state_show)
	expect_equal 0 "$(asked_until)"
	live_begin --port 8080
	expect_equal 1 "$(($(programs_of_ours) - before))" "programs more"
	[ "$(asked_until)" != 0 ] || fail "the programs are not asked"
	by_hand_warns 1 "another bpf-portmap trace runs" trace --seconds 1
	expect_answer client tcp "$host4" 8080 web
	live_says "new mapping"
	kill -KILL "$live"
	wait "$live" || true
	wait_until 30 nobody_asks || fail "the programs go on: until $(asked_until)"
	wait_until 10 programs_are "$before" || fail "programs are left"
	expect_same_state "$state"
	live_begin --port 8080
	expect_answer client tcp "$host4" 8080 web
	live_says "new mapping"
	live_end
	expect_equal 0 "$(asked_until)"
}

# one that goes on while the programs are replaced ends, and says why: it would hear nothing more
test_operator_trace_live_replaced() {
	web_as_pod -p 8080:80/tcp
	live_begin --port 8080
	rm -r "$pins"
	by_hand 0 attach
	wait_until 10 live_is_over || fail "it goes on"
	! wait "$live" || fail "the exit status is 0"
	expect_in /run/live-err 'the programs were replaced'
	live_begin --port 8080
	expect_answer client tcp "$host4" 8080 web
	live_says "new mapping"
	live_end
}

# refused CODE WORDS [ARGUMENT...]: one line
refused() {
	local code=$1 words=$2
	shift 2
	by_hand "$code" trace "$@"
	expect_equal 1 "$(wc -l </run/err)" "lines of: $(cat /run/err)"
	expect_in /run/err "$words"
	expect_equal '' "$(cat /run/out)"
}

# what cannot be traced gets a sentence
test_operator_trace_refused() {
	web_as_pod -p 8080:80/tcp
	refused 64 '"gre"' gre
	refused 64 'invalid --protocol "quic"' --protocol quic
	refused 64 'invalid --host "client": must be an IP address' --host client
	refused 64 'invalid --port "80x": must be a port' --port 80x
	refused 64 'invalid --count "0"' --count 0
	PREFIX="setpriv --reuid 1000 --clear-groups" refused 1 'Permission denied'
	PREFIX="setpriv --bounding-set -sys_admin --inh-caps -all" \
		refused 1 'cannot open the maps of the programs that run: Operation not permitted'
}
