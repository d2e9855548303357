# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# fastpath.sh - conversations that go on through all that changes, and whether they skip the IP
# stack.

# The lists of conf/ and one more bridge, with flows that skip the stack whatever the run's mode.
# fast_lists [FILTER]
fast_lists() {
	local filter
	filter="$(with_ours '{"fastPath": "established"}') | ${1:-.}"
	conflist fast bridge "$filter"
	conflist fast-ptp ptp "$filter"
	conflist fast-other bridge "$other_network | $filter"
}

# Packets that have skipped the stack: into containers, out of uplinks
fast_each_way() { "$build/tests/tcx" counters "$pins/counters" fast_into_container fast_out; }

# talk_open NAME NAMESPACE PROTOCOL ADDRESS PORT [OPTION...]: a conversation (expect.sh); UDP is
# quick to ask again
talk_open() {
	local timeout=4500
	[ "$3" != udp ] || timeout=300
	conversation_open "$@" --timeout "$timeout"
}

# talks_open NAME NAMESPACE IPV4 IPV6 PORT [OPTION4 OPTION6]: NAME_tcp4 ... NAME_udp6; an OPTION
# is one word, or two with a blank between them
talks_open() {
	local name=$1 who=$2 address4=$3 address6=$4 port=$5 protocol
	for protocol in tcp udp; do
		# shellcheck disable=SC2086
		talk_open "${name}_${protocol}4" "$who" "$protocol" "$address4" "$port" ${6:-}
		# shellcheck disable=SC2086
		talk_open "${name}_${protocol}6" "$who" "$protocol" "$address6" "$port" ${7:-}
	done
}

# The four of them: talks NAME...
talks() {
	local name
	for name; do echo "${name}_tcp4 ${name}_tcp6 ${name}_udp4 ${name}_udp6"; done
}

goes_on() {
	last_answer=$(say "$1" 2>&1)
	case $last_answer in name=*) ;; *) return 1 ;; esac
}

# try_often COMMAND...: a few seconds, where each try takes its time
try_often() {
	local try
	for try in {1..20}; do
		! "$@" || return 0
		[ "$try" -lt 5 ] || sleep 0.1
	done
	return 1
}

# Something may get lost, but not all: expect_goes_on TALK...
expect_goes_on() {
	local name
	for name; do try_often goes_on "$name" || fail "$name: nobody answers any more: $last_answer"; done
}

# Nothing gets lost: expect_steady TALK...
expect_steady() {
	local name
	for name; do
		for _ in 1 2 3 4 5; do goes_on "$name" || fail "$name: $last_answer"; done
	done
}

expect_stops() {
	local name
	for name; do
		try_often stops "$name" || fail "$name: still answered"
	done
}

stops() { ! goes_on "$1"; }

# A question and its answer skip the stack: of a container and somebody outside
skips_stack() {
	local before after
	read -ra before <<<"$(fast_each_way)"
	goes_on "$1" || return 1
	read -ra after <<<"$(fast_each_way)"
	[ "${after[0]}" -gt "${before[0]}" ] && [ "${after[1]}" -gt "${before[1]}" ]
}

# The same between two containers
skips_stack_inside() {
	local before after
	read -ra before <<<"$(fast_each_way)"
	goes_on "$1" || return 1
	read -ra after <<<"$(fast_each_way)"
	[ "${after[0]}" -ge $((before[0] + 2)) ]
}

# UDP passes the stack every few seconds, and so does each flow in the beginning.
expect_skips_stack() {
	local name
	for name; do
		try_often skips_stack "$name" || fail "$name passes the stack: $(paths_show)"
	done
}

expect_skips_stack_inside() {
	local name
	for name; do
		try_often skips_stack_inside "$name" || fail "$name passes the stack: $(paths_show)"
	done
}

# No packet skips the stack, in what would be enough to begin: expect_passes_stack TALK...
expect_passes_stack() {
	local name before
	before=$(fast_each_way)
	for name; do
		for _ in 1 2 3 4 5 6; do goes_on "$name" || fail "$name: $last_answer"; done
		expect_equal "$before" "$(fast_each_way)" "packets of $name that have skipped the stack"
	done
}

# What is known of every flow's ways
paths_show() {
	bpftool -j map dump pinned "$pins/connections" | jq -c '.[].formatted | [.key.protocol,
		.key.inside_port, .key.outside_port, .value.kind, .value.path,
		(.value.leave[] | .ifindex, .left_stack)]' 2>/dev/null || true
}

# hits_count NAMESPACE INTERFACE [PORT]: from now on, TCP and UDP that comes in there; hits prints it
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

# Older kernels have named counters in a module of their own.
hits() {
	in_namespace "$1" nft -j list chain inet seen seen |
		jq '.nftables[].rule? // empty | .expr[] | .counter? // empty | .packets'
}

arrives_at() {
	local before
	before=$(hits "$1")
	goes_on "$2" && [ "$(hits "$1")" -gt "$before" ]
}

# What one side says comes by where hits_count counts: expect_arrives_at NAMESPACE TALK...
expect_arrives_at() {
	local who=$1 name
	shift
	for name; do try_often arrives_at "$who" "$name" || fail "$name does not come by $who"; done
}
