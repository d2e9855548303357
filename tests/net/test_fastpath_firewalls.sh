# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_fastpath_firewalls.sh - packets that skip the IP stack, on a host whose firewall drops by
# default: it decides once about every flow.

# ask_in_vain NAMESPACE PROTOCOL ADDRESS PORT: several requests over one socket; none is answered
ask_in_vain() {
	local answers
	answers=$(ask "$@" --count 4 --timeout 150 --keep-going) || true
	case $answers in *name=*) fail "$* was answered: $answers" ;; esac
}

# all_in_vain CLIENT4-PORT... : ask_in_vain for both protocols and families at once, mapped and out
all_in_vain() {
	local mapped=$1 outside=$2 protocol pid pids=()
	for protocol in tcp udp; do
		ask_in_vain client "$protocol" "$host4" "$mapped" & pids+=($!)
		ask_in_vain client "$protocol" "$host6" "$mapped" & pids+=($!)
		ask_in_vain web "$protocol" "$server4" "$outside" & pids+=($!)
		ask_in_vain web "$protocol" "$server6" "$outside" & pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || fail "see above"; done
}

# a flow that the firewall refuses stays refused, however often it is tried: mapped and masqueraded,
# TCP and UDP, IPv4 and IPv6
test_fastpath_refused_new() {
	guard
	container_add web bridge -p 8081:81/tcp -p 8081:81/udp
	serve_in web 81
	serve_in server 9001
	hits_count web eth0 81
	hits_count server eth0 9001
	all_in_vain 8081 9001
	all_in_vain 8081 9001
	expect_equal "0 0" "$(hits web) $(hits server)" "packets that got through"
	expect_equal 0 "$(fast_packets)" "packets that skipped the IP stack"
	expect_no_invalid
}

refuse_replies() {
	nft -f - <<-'RULES'
	table inet one_way {
		chain forward {
			type filter hook forward priority filter;
			meta l4proto { tcp, udp } th sport { 80, 9000 } drop
		}
	}
	RULES
}

# a flow that the firewall accepts in one direction only never skips the IP stack: every packet that
# it accepts arrives, and no answer ever comes back
test_fastpath_refused_one_direction() {
	stack_watch
	refuse_replies
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	serve_in server 9000
	hits_count web eth0 80
	hits_count server eth0 9000
	all_in_vain 8080 9000
	expect_equal 0 "$(fast_packets)" "packets that skipped the IP stack"
	expect_equal 32 "$(forwarded udp)" "datagrams through the IP stack, 4 of each socket, both ways"
	[ "$(hits web)" -ge 10 ] && [ "$(hits server)" -ge 10 ] ||
		fail "arrived: $(hits web) in the container, $(hits server) at the server"
}

# the same where only replies are accepted: datagrams that a container sends from its mapped port
test_fastpath_refused_requests() {
	stack_watch
	nft -f - <<-'RULES'
	table inet one_way {
		chain forward {
			type filter hook forward priority filter;
			iifname { "eth0", "eth1" } drop
		}
	}
	RULES
	container_start web bridge -p 8080:80/udp
	serve_in server 9000
	hits_count web eth0 80
	ask_in_vain client udp "$host4" 8080
	ask_in_vain web udp "$server4" 9000
	ask_in_vain web udp "$server4" 9000 --source-port 80
	expect_equal 0 "$(hits web)" "packets that got through"
	expect_equal 0 "$(fast_packets)" "packets that skipped the IP stack"
}

# says NAME ANSWER PROTOCOL
says() { (expect_says "$@") 2>/dev/null; }

# As a UDP client does, it asks again: where the connection's turn in the IP stack comes between a
# request and its answer, the answer is new for a conntrack that has forgotten the connection, and the
# firewall drops it.
expect_says_or_again() {
	case $3 in
		tcp) expect_says "$@" ;;
		udp) says "$@" || expect_says "$@" ;;
	esac
}
expect_fast_or_again() { expect_skips "$3" expect_says_or_again "$@"; }

# connections that the firewall has accepted continue after conntrack has forgotten them: idle, with
# data, and their end by FIN, by RST and by the server's death reaches both sides; only two packets of
# each have passed the firewall, none of them invalid
test_fastpath_allowed_outlives_conntrack() {
	local each
	guarded_world
	conntrack_times tcp_timeout_syn_recv=1 tcp_timeout_established=1 \
		udp_timeout=1 udp_timeout_stream=1
	conversations_open
	conversation_open aborts client tcp "$host4" 8080 --reset
	conversation_open aborts_outward web tcp "$server6" 9000 --reset
	conversations_each expect_says_or_again tcp udp
	conversations_each expect_says_or_again udp
	expect_says aborts web
	expect_says aborts_outward server
	conversations_each expect_fast_or_again tcp udp
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	wait_until 10 no_conntrack udp || fail "conntrack keeps: $(conntrack_list udp)"
	conversations_each expect_says_or_again tcp udp
	conversations_each expect_says_or_again tcp udp
	for each in {in,out}{4,6}_tcp aborts aborts_outward; do conversation_close "$each"; done
	wait_until 10 no_connection client web server ||
		fail "still there: $(for each in client web server; do
			in_namespace "$each" ss -Htn state connected exclude time-wait; done)"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_no_invalid
	conversation_with web talk client tcp "$host4" 8080
	expect_fast talk web tcp
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	processes_end web
	expect_contains "$(say talk)" closed
	wait_until 5 no_connection client web || fail "one side has not ended"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
}

# limit 90 s
# 2 MB pass both ways after conntrack has forgotten the connection, mapped and masqueraded
test_fastpath_allowed_data_after_conntrack() {
	local address pid pids=() bulk="$build/tests/bulk"
	guarded_world
	container_add files bridge -p 8090:80/tcp
	in_namespace files "$bulk" serve 80 --background
	in_namespace client "$bulk" serve 9000 --background
	conntrack_times tcp_timeout_syn_recv=1
	for address in "$host4" "$host6"; do
		in_namespace client "$bulk" ask tcp "$address" 8090 --bytes 2000000 --pause 2500 & pids+=($!)
	done
	for address in "$client4" "$client6"; do
		in_namespace files "$bulk" ask tcp "$address" 9000 --bytes 2000000 --pause 2500 & pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || fail "not all bytes were echoed"; done
	no_conntrack tcp || fail "conntrack still knows: $(conntrack_list tcp)"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_no_invalid
}

# the last ACK of the handshake skips the IP stack: conntrack's entry of an offloaded connection stays
# half-open, and expires in a minute, not in five days. It never returns to the stack, however long
# ago its last packet there was: conntrack has missed its windows, and would call it invalid
test_fastpath_tcp_handshake() {
	guarded_world
	conversation_open in client tcp "$host4" 8080
	conversation_open out web tcp "$server4" 9000
	expect_says in web
	expect_says out server
	expect_equal "SYN_RECV SYN_RECV" "$(conntrack_list tcp | awk '{ print $4 }' | xargs)"
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_counted flow_offloaded 2 "flows offloaded"
	conversation_with server out6 web tcp "$server6" 9000
	flows_age 3600
	for _ in 1 2 3; do
		expect_fast in web tcp
		expect_fast out6 server tcp
		sleep 1.1 # the way is looked up again
	done
	expect_equal 0 "$(forwarded connected)" "TCP packets but SYN through the IP stack"
	expect_no_invalid
}

conntrack_ids() { conntrack_list udp -o id | grep -o ' id=[0-9]*' | sort; }

# UDP flows that are busy for longer than conntrack's time-out, which was lowered after the programs
# were loaded, keep their entries there, because one packet every few seconds goes through the IP
# stack, also of those that carry little; none is lost
test_fastpath_udp_refreshed() {
	local before pid pids=() address
	guarded_world
	conntrack_times udp_timeout=9 udp_timeout_stream=9
	container_add echo bridge -p 8090:80/udp
	in_namespace echo "$build/tests/datagrams" echo 80 --background
	in_namespace server "$build/tests/datagrams" echo 9002 --background
	nft insert rule inet guard forward udp dport 9002 ct state new accept
	in_namespace client "$build/tests/stream" ask "$host4" 8090 20000 20 >/run/stream.1 & pids+=($!)
	in_namespace client "$build/tests/stream" ask "$host6" 8090 20000 400 >/run/stream.2 & pids+=($!)
	in_namespace web "$build/tests/stream" ask "$server4" 9002 20000 20 >/run/stream.3 & pids+=($!)
	in_namespace web "$build/tests/stream" ask "$server6" 9002 20000 400 >/run/stream.4 & pids+=($!)
	udp_tracked() { [ "$(conntrack_ids | wc -l)" = 4 ]; }
	wait_until 5 udp_tracked || fail "conntrack knows: $(conntrack_list udp)"
	before=$(conntrack_ids)
	for pid in "${pids[@]}"; do wait "$pid" || fail "$(cat /run/stream.*)"; done
	expect_equal "$before" "$(conntrack_ids)" "conntrack's entries, by id"
	echo "note: $(sort /run/stream.* | xargs)"
	[ "$(fast_packets)" -gt $((20 * $(forwarded udp))) ] ||
		fail "$(forwarded udp) of $(fast_packets) went through the IP stack"
}

# a UDP flow goes through the IP stack, in both directions, when its last packet there was more than
# 5 s ago, and skips it again after that
test_fastpath_udp_back_when_old() {
	local before
	guarded_world
	conversation_open in client udp "$host4" 8080
	conversation_open out web udp "$server6" 9000
	for _ in 1 2; do
		expect_says in web
		expect_says out server
	done
	expect_fast in web udp
	expect_fast out server udp
	flows_age 7
	before=$(forwarded udp)
	expect_says in web
	expect_says out server
	expect_equal $((before + 4)) "$(forwarded udp)" "datagrams through the IP stack"
	expect_fast in web udp
	expect_fast out server udp
}

refuses_all='meta l4proto { tcp, udp } counter drop'

# says_for SECONDS NAME...: all of them send requests, answered or not
says_for() {
	local end each
	end=$(($(date +%s%N) + $1 * 1000000000))
	shift
	while [ "$(date +%s%N)" -lt "$end" ]; do
		for each; do say "$each" >/dev/null; done
		sleep 0.1
	done
}

# a rule that is added later ends busy UDP flows within 7 s, in both directions; TCP connections
# continue until they end, or until drop-offload, after which the rule applies at once
test_fastpath_rule_added_later() {
	guarded_world
	conversations_open --timeout 500
	conversations_skip_stack
	guard "$refuses_all"
	says_for 7 {in,out}{4,6}_udp
	conversations_silent udp
	conversations_each expect_fast tcp
	drop_offload
	conversations_silent tcp udp
}

# UDP flows whose packets the firewall has let through for a while, of which each has had its turn
# there again; then it sees none for five seconds, which is less than a turn of others takes
settled_flows() {
	local end=$((SECONDS + 60)) since=$SECONDS before='' now
	[ "$(kernel_or 6.18)" = 6.18 ] || skip 'the kernel does not tell that rules have changed'
	guarded_world
	conversation_open in4_udp client udp "$host4" 8080 --timeout 500
	conversation_open out6_udp web udp "$server6" 9000 --timeout 500
	while [ "$SECONDS" -lt "$end" ]; do
		now=$(forwarded udp)
		[ "$now" = "$before" ] || since=$SECONDS
		[ $((SECONDS - since)) -le 5 ] || return 0
		before=$now
		says_for 1 in4_udp out6_udp
	done
	fail "datagrams go through the IP stack all the time"
}

are_silent() {
	local name
	for name; do case $(say "$name") in *name=*) return 1 ;; esac done
}

# a UDP flow that goes on for long without the firewall is ended by a rule that is added later as soon
# as one that has just begun
test_fastpath_udp_settled() {
	settled_flows
	guard "$refuses_all"
	says_for 2 in4_udp out6_udp
	are_silent in4_udp out6_udp || fail 'a flow goes on'
}

# settled_legacy TABLE CHAIN
settled_legacy() {
	local before
	settled_flows
	iptables-legacy -t "$1" -nL "$2" >/dev/null 2>&1 || skip "no iptables-legacy"
	iptables-legacy -t "$1" -A "$2" -p tcp --dport 9 -j DROP
	says_for 2 in4_udp out6_udp
	before=$(forwarded udp)
	says_for 8 in4_udp out6_udp
	[ "$(forwarded udp)" -ge $((before + 4)) ] ||
		fail "$(($(forwarded udp) - before)) datagrams went through the IP stack"
	iptables-legacy -t "$1" -A "$2" -p udp -j DROP
	ip6tables-legacy -t "$1" -A "$2" -p udp -j DROP
	says_for 7 in4_udp out6_udp
	are_silent in4_udp out6_udp || fail 'a flow goes on'
}

# while iptables-legacy has a table, whose changes the kernel does not tell, no UDP flow goes on without
# the firewall for longer than usual
test_fastpath_udp_settled_legacy() { settled_legacy filter FORWARD; }

# so it is where it has the table raw alone
test_fastpath_udp_settled_legacy_raw() { settled_legacy raw PREROUTING; }

# drop-offload where the firewall still accepts: flows continue through the IP stack, and skip it
# again within seconds. A TCP connection is invalid to conntrack, which has seen only the handshake,
# until conntrack has forgotten it, or is configured otherwise
test_fastpath_drop_offload_accepted() {
	guarded_world
	conversations_open --timeout 500
	conversations_skip_stack
	drop_offload
	local tcp udp
	tcp=$(forwarded tcp) udp=$(forwarded udp)
	conversations_each expect_says udp
	conversations_silent tcp
	conntrack_forget_half_open
	conversations_each expect_answered_soon tcp
	[ "$(forwarded tcp)" -ge $((tcp + 8)) ] || fail "TCP still skips the IP stack"
	[ "$(forwarded udp)" -ge $((udp + 8)) ] || fail "UDP still skips the IP stack"
	conversations_each expect_fast_again tcp udp
}

# What docs/firewalls.md advises where rules drop invalid packets
conntrack_forget_half_open() {
	conntrack -D -f ipv4 -p tcp --state SYN_RECV >/dev/null 2>&1
	conntrack -D -f ipv6 -p tcp --state SYN_RECV >/dev/null 2>&1
}

is_answered() { case $(say "$1") in *name=*) ;; *) return 1 ;; esac; }
expect_answered_soon() { wait_until 10 is_answered "$1" || fail "$1 does not go on"; }

# after drop-offload a flow that the firewall accepts in one direction only stays in the IP stack
test_fastpath_drop_offload_one_direction() {
	stack_watch
	serve_in server 9000
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	conversations_open --timeout 300
	conversations_skip_stack
	refuse_replies
	drop_offload
	for _ in 1 2; do conversations_silent tcp udp; done
}

# drop-offload after conntrack has forgotten a TCP connection: its next packet begins a new one for
# conntrack and the firewall, so it continues if it may begin
test_fastpath_drop_offload_forgotten() {
	guarded_world
	conntrack_times tcp_timeout_syn_recv=1
	conversation_open in client tcp "$host4" 8080
	conversation_open out web tcp "$server6" 9000
	expect_says in web
	expect_says out server
	expect_fast in web tcp
	wait_until 10 no_conntrack tcp || fail "conntrack keeps: $(conntrack_list tcp)"
	drop_offload
	expect_says in web
	expect_says out server
	expect_fast_again in web tcp
	expect_fast_again out server tcp
	expect_no_invalid
}

# the reverse path filter and the firewall decide, as without the fast path, about a packet of a
# flow that skips the stack which arrives on another uplink than the flow
test_fastpath_forged_elsewhere() {
	local arrived
	sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.eth1.rp_filter=1
	guard 'iifname "eth1" ct direction original drop'
	conflist bridge bridge "$(with_ours '{"fastPath": "established"}')"
	stack_watch
	container_start web bridge -p 8080:80/udp
	hits_count web eth0 80
	conversation_open in client udp "$host4" 8080 --source-port 7000
	for _ in 1 2 3 4 5; do expect_says in web; done
	arrived=$(hits web)
	for _ in 1 2 3; do
		forge server eth1 udp "$client4" 7000 "$host4" 8080
	done
	expect_says in web
	expect_equal "$((arrived + 1))" "$(hits web)" "datagrams that have arrived"
}
