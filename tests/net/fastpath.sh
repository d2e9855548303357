# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fastpath.sh - conversations that continue through every change, and checks whether they skip the
# IP stack.

# fast_lists [FILTER]: the lists of conf/ and one more bridge, with flows that skip the stack
# whatever the run's mode.
fast_lists() {
	local filter
	filter="$(with_ours '{"fastPath": "established"}') | ${1:-.}"
	conflist fast bridge "$filter"
	conflist fast-ptp ptp "$filter"
	conflist fast-other bridge "$other_network | $filter"
}

# Sets $into and $out to how many packets have skipped the stack: into containers, out through uplinks
fast_each_way() {
	read -r into out <<<"$("$build/tests/tcx" counters "$pins/counters" fast_into_container fast_out)"
}

# talk_open NAME NAMESPACE PROTOCOL ADDRESS PORT [OPTION...]: a conversation (expect.sh) with a
# short time limit for UDP
talk_open() {
	local timeout=4500
	[ "$3" != udp ] || timeout=300
	conversation_open "$@" --timeout "$timeout"
}

# talks_open NAME NAMESPACE IPV4 IPV6 PORT [OPTION4 OPTION6]: NAME_tcp4 ... NAME_udp6; an OPTION
# is one word, or two separated by a blank
talks_open() {
	local name=$1 who=$2 address4=$3 address6=$4 port=$5 protocol
	for protocol in tcp udp; do
		talk_open "${name}_${protocol}4" "$who" "$protocol" "$address4" "$port" ${6:-}
		talk_open "${name}_${protocol}6" "$who" "$protocol" "$address6" "$port" ${7:-}
	done
}

# talks NAME...: the names of the four of each
talks() {
	local name
	for name; do echo "${name}_tcp4 ${name}_tcp6 ${name}_udp4 ${name}_udp6"; done
}

goes_on() {
	local taken
	say_take "$1" || true
	last_answer=$taken
	case $last_answer in name=*) ;; *) return 1 ;; esac
}

# try_often COMMAND...: tries for a few seconds at least
try_often() {
	local try
	for try in {1..20}; do
		! "$@" || return 0
		[ "$try" -lt 5 ] || sleep 0.1
	done
	return 1
}

# expect_goes_on TALK...: they are answered, though packets may be lost.
expect_goes_on() {
	local name
	for name; do try_often goes_on "$name" || fail "$name: no answer any more: $last_answer"; done
}

# expect_steady TALK...: they are answered, and no packet is lost.
expect_steady() {
	local name
	for name; do
		for _ in 1 2 3 4 5; do goes_on "$name" || fail "$name: $last_answer"; done
	done
}

# expect_stops TALK...: they are not answered. All wait at the same time.
expect_stops() {
	local name try answered
	for try in {1..20}; do
		for name; do piped_send "$name"; done
		answered=()
		for name; do
			case $(piped_read "$name" 5) in name=*) answered+=("$name") ;; esac
		done
		[ "${#answered[@]}" -gt 0 ] || return 0
		set -- "${answered[@]}"
		[ "$try" -lt 5 ] || sleep 0.1
	done
	fail "$*: still answered"
}

# goes_on_counted TALK: three requests and their answers. It sets $into and $out to how many of them
# have skipped the stack, and adds to $tries what a failure shows. At a UDP flow's turn one
# packet each way passes the stack; on a slow machine every try may begin with a turn, and the other
# two requests and answers show the flow's path.
goes_on_counted() {
	local into_before out_before status=0
	fast_each_way
	into_before=$into out_before=$out
	for _ in 1 2 3; do goes_on "$1" || status=1; done
	fast_each_way
	into=$((into - into_before)) out=$((out - out_before))
	tries+="; after $SECONDS s $into into containers and $out out skipped it"
	tries+=", last answer: $last_answer"
	return "$status"
}

# skips_stack TALK: all requests and answers, between a container and outside, skip the stack, but
# for a turn's.
skips_stack() {
	local into out
	goes_on_counted "$1" && [ "$into" -ge 2 ] && [ "$out" -ge 2 ]
}

# skips_stack_inside TALK: the same between two containers: requests and answers go into one
skips_stack_inside() {
	local into out
	goes_on_counted "$1" && [ "$into" -ge 4 ]
}

# A UDP packet passes the stack every few seconds, and so do the first packets of each flow.
expect_skips_stack() { expect_path skips_stack "$@"; }

expect_skips_stack_inside() { expect_path skips_stack_inside "$@"; }

# expect_path CHECK TALK...: CHECK succeeds for each TALK in one of several tries.
expect_path() {
	local name check=$1 tries
	shift
	for name; do
		tries=''
		try_often "$check" "$name" || fail "$name passes the stack${tries}; flows: $(paths_show)"
	done
}

# fast_rests: no packet has skipped the stack for longer than an acknowledgment may be delayed, and a
# segment is repeated after (200 ms each).
fast_rests() {
	local before
	fast_each_way
	before="$into $out"
	sleep 0.5
	fast_each_way
	[ "$before" = "$into $out" ]
}

# expect_passes_stack TALK...: no packet skips the stack, in more packets than offloading needs. Other
# connections must be silent.
expect_passes_stack() {
	local name into out before
	wait_until 5 fast_rests || fail "other connections go on"
	before="$into $out"
	for name; do
		for _ in 1 2 3 4 5 6; do goes_on "$name" || fail "$name: $last_answer"; done
		fast_each_way
		expect_equal "$before" "$into $out" "packets of $name that have skipped the stack"
	done
}

# The recorded paths of every flow
paths_show() {
	bpftool -j map dump pinned "$pins/connections" | jq -c '.[].formatted | [.key.protocol,
		.key.inside_port, .key.outside_port, .value.kind, .value.path,
		.value.left_stack[], .value.next_hop[].ifindex]' 2>/dev/null || true
}

# hits_count NAMESPACE INTERFACE [PORT]: counts TCP and UDP packets that arrive there from now on;
# hits NAMESPACE prints how many.
hits_count() {
	in_namespace "$1" nft -f - <<-RULES
	table inet seen {
		chain seen {
			type filter hook prerouting priority raw
			iifname "$2" meta l4proto { tcp, udp } ${3:+th dport $3} counter
		}
	}
	RULES
}

# A counter without a name, because older kernels have named ones in a module of their own
hits() {
	local packets
	hits_take "$1" && echo "$packets"
}
hits_take() {
	local said
	said=$("$build/tests/world" in "$1" nft list chain inet seen seen)
	[[ $said =~ counter\ packets\ ([0-9]+) ]] && packets=${BASH_REMATCH[1]}
}

arrives_at() {
	local packets before
	hits_take "$1"
	before=$packets
	goes_on "$2" && hits_take "$1" && [ "$packets" -gt "$before" ]
}

# expect_arrives_at NAMESPACE TALK...: the requests pass where hits_count counts.
expect_arrives_at() {
	local who=$1 name
	shift
	for name; do try_often arrives_at "$who" "$name" || fail "$name does not pass $who"; done
}
