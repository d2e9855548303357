# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# expect.sh - what a test may check. A check that fails prints what it has seen instead.

fail() {
	echo "$*" >&2
	exit 1
}

skip() {
	[ -z "${LENT:-}" ] || devices_remove
	echo "$*"
	exit 77
}

# host:port, with brackets where IPv6 needs them
endpoint() {
	case $1 in *:*) echo "[$1]:$2" ;; *) echo "$1:$2" ;; esac
}

# ask NAMESPACE|host tcp|udp|sctp ADDRESS PORT [OPTION...]: sends a request and prints the answer.
ask() {
	ask_command "$@"
	"${asking[@]}" 2>&1
}

# ask_command: $asking is the command that does so, which a shell runs without one more process
ask_command() {
	local who=$1 tool=$peer
	shift
	if [ "$1" = sctp ]; then
		tool=$sctp
		[ "$sctp" != "$peer" ] || set -- "$@" --from "$(source_towards "$who" "$2")"
	fi
	asking=("$tool" ask "$@")
	[ "$who" = host ] || asking=("$build/tests/world" in "$who" "${asking[@]}")
}

# field_of NAME TEXT: the value of the last NAME=VALUE; field_read sets $field to it.
field_of() {
	local field
	field_read "$@"
	[ -z "$field" ] || echo "$field"
}
field_read() {
	field=
	[[ ! " $2" =~ .*[^a-zA-Z0-9_]$1=([^[:space:]]*) ]] || field=${BASH_REMATCH[1]}
}

# The host part of host:port; host_read ENDPOINT sets $part to it.
address_part() {
	local endpoint='' part
	read -r endpoint || true
	host_read "$endpoint"
	echo "$part"
}
host_read() {
	part=${1%:*}
	part=${part#[}
	part=${part%]}
}

# expect_answer NAMESPACE PROTOCOL ADDRESS PORT NAME [CLIENT-ADDRESS] [OPTION...]: NAME answers from
# the address and port of the request, and has seen CLIENT-ADDRESS ("-": any).
expect_answer() {
	local who=$1 protocol=$2 address=$3 port=$4 name=$5 client=${6:--} answer
	shift $(($# < 6 ? $# : 6))
	ask_command "$who" "$protocol" "$address" "$port" "$@"
	answer=$("${asking[@]}" 2>&1) ||
		fail "$who asks $protocol $(endpoint "$address" "$port"): expected $name, got: $answer"
	answer_is_expected
}

# Of who, protocol, address, port, name, client and answer, the variables of its callers
answer_is_expected() {
	local asked=$address:$port field part
	[[ $address != *:* ]] || asked=[$address]:$port
	field_read name "$answer"
	[ "$field" = "$name" ] || fail "$who asks $protocol $asked: expected $name, got: $answer"
	field_read from "$answer"
	[ "$field" = "$asked" ] || fail "$who asks $protocol $asked: another address answers: $answer"
	[ "$client" != - ] || return 0
	field_read client "$answer"
	host_read "$field"
	[ "$part" = "$client" ] ||
		fail "$who asks $protocol $asked: should be seen as $client: $answer"
}

# expect_answers NAMESPACE ADDRESS PORT NAME [CLIENT-ADDRESS] [OPTION...]: the same over TCP and UDP, by one
# process
expect_answers() {
	local who=$1 address=$2 port=$3 name=$4 client=${5:--} protocol answer answers
	shift $(($# < 5 ? $# : 5))
	ask_command "$who" both "$address" "$port" "$@"
	mapfile -t answers <<<"$("${asking[@]}" 2>&1 || true)"
	for protocol in tcp udp; do
		answer=${answers[0]-}
		answer_is_expected
		answers=("${answers[@]:1}")
	done
}

# both COMMAND WORD...: runs it for IPv4, then for IPv6: @NAME is $NAME4, then $NAME6.
both() {
	local family_of_both word line
	for family_of_both in 4 6; do
		line=()
		for word; do
			[[ $word != @* ]] || { word=${word#@}$family_of_both && word=${!word}; }
			line+=("$word")
		done
		"${line[@]}"
	done
}

# expect_serves NAME [PORT]: the client reaches its host port, over IPv4 and IPv6, and is seen with its
# own address; expect_gets_out NAME: it reaches port 9000 of the server, which sees the host's addresses
expect_serves() {
	both expect_answers client @host "${2:-8080}" "$1" @client
}
expect_gets_out() {
	expect_answers "$1" "$server4" 9000 server "$host4_second"
	expect_answers "$1" "$server6" 9000 server "$host6_second"
}

# expect_no_answer NAMESPACE PROTOCOL ADDRESS PORT [OPTION...]: refused, or timed out
expect_no_answer() {
	local who=$1 protocol=$2 address=$3 port=$4 answer
	shift 4
	ask_command "$who" "$protocol" "$address" "$port" --timeout 300 "$@"
	! answer=$("${asking[@]}" 2>&1) ||
		fail "$who asks $protocol $(endpoint "$address" "$port"): expected no answer, got: $answer"
}

# The same over TCP and UDP, at the same time
expect_no_answers() {
	local who=$1 pid
	shift
	expect_no_answer "$who" tcp "$@" &
	pid=$!
	expect_no_answer "$who" udp "$@"
	wait "$pid" || exit 1
}

# expect_refused NAMESPACE PROTOCOL ADDRESS PORT [OPTION...]: refused at once; UDP needs --connected.
expect_refused() {
	local who=$1 protocol=$2 address=$3 port=$4 answer
	shift 4
	ask_command "$who" "$protocol" "$address" "$port" "$@"
	answer=$("${asking[@]}" 2>&1) || true
	[ "$answer" = refused ] ||
		fail "$who asks $protocol $(endpoint "$address" "$port"): expected to be refused, got: $answer"
}

# expect_same_json FILE OTHER [FILTER]: the same, whatever the order of keys, once the filter is applied
expect_same_json() {
	jq -ne --slurpfile one "$1" --slurpfile other "$2" \
		"(\$one | map(${3:-.})) == (\$other | map(${3:-.}))" >/dev/null ||
		fail "$1: $(cat "$1"), but $2: $(cat "$2")"
}

# expect_file NAMESPACE ADDRESS PORT: the file of file_serve arrives as it is.
expect_file() {
	in_namespace "$1" curl -sS -m $((30 * ${SLOWER:-1})) -o /run/got "http://$(endpoint "$2" "$3")/file" ||
		fail "$1 got no file from $2"
	cmp /run/www/file /run/got || fail "$1 got another file from $2"
}

expect_equal() {
	[ "$1" = "$2" ] || fail "${3:-values differ}: expected '$1', got '$2'"
}

# expect_contains TEXT PART...
expect_contains() {
	local text=$1 part
	shift
	for part; do
		case $text in *"$part"*) ;; *) fail "expected to find '$part' in: $text" ;; esac
	done
}

# expect_in FILE PART...: the same of a file, without a process
expect_in() {
	local text
	file_read "$1"
	expect_contains "$text" "${@:2}"
}

# expect_counted COUNTER NUMBER WHAT: the counter of our programs gets there. A packet that was sent
# past the IP stack may still be on its way.
expect_counted() {
	wait_until 5 has_counted "$1" "$2" || fail "$3: $1 is $(counted "$1"), expected $2"
}
has_counted() { [ "$(counted "$1")" = "$2" ]; }

# expect_failure COMMAND...: the command fails; its output is in $output.
expect_failure() {
	! output=$("$@" 2>&1) || fail "should have failed: $*: $output"
}

# expect_refusal TEXT COMMAND...: it fails, and says this.
expect_refusal() {
	local text=$1
	shift
	expect_failure "$@"
	expect_contains "$output" "$text"
}

# expect_error CODE TEXT COMMAND...: it fails with one CNI error that has this code, and says TEXT, "":
# whatever.
expect_error() {
	local code=$1 text=$2
	shift 2
	expect_refusal "$text" "$@"
	expect_code "$code"
}

expect_same_state() {
	local now
	now=$(state_show)
	[ "$1" = "$now" ] || fail "state differs:
$(diff <(echo "$1") <(echo "$now") || true)"
}

# A process whose standard input and output are FIFOs: piped_open NAME COMMAND... starts it, and its
# process ID is in $NAME; piped_send NAME sends an empty line; piped_read NAME SECONDS prints its
# next line, piped_take sets $taken to it; piped_close NAME waits for its end and returns its exit code.
# Each has FIFOs of its own, because a later one of that name would read what an earlier one has left.
piped_open() {
	local piped_name=$1 piped_fd fifo
	shift
	piped_count=$((${piped_count:-0} + 1))
	fifo=/run/$piped_name.$piped_count
	mkfifo "$fifo.in" "$fifo.out"
	"$@" <"$fifo.in" >"$fifo.out" 2>&1 &
	eval "$piped_name=\$!"
	exec {piped_fd}>"$fifo.in"
	eval "${piped_name}_in=$piped_fd"
	exec {piped_fd}<"$fifo.out"
	eval "${piped_name}_out=$piped_fd"
	trap : PIPE # who sends to a process that has ended gets an error
}

piped_send() {
	local in=$1_in
	echo >&"${!in}"
}

piped_read() {
	local taken
	piped_take "$@"
	echo "$taken"
}
piped_take() {
	local out=$1_out
	read -r -t $(($2 * ${SLOWER:-1})) taken <&"${!out}" || taken='no answer'
}

piped_close() { wait "${!1}"; }

# A conversation over one socket:
# conversation_open NAME NAMESPACE PROTOCOL ADDRESS PORT [OPTION...],
# then say NAME sends a request and prints the answer; say_take sets $taken to it.
conversation_open() {
	local name=$1 who=$2
	shift 2
	ask_command "$who" "$@" --on-demand
	piped_open "$name" "${asking[@]}"
}

say() {
	piped_send "$1"
	piped_read "$1" 5
}
say_take() {
	taken='its process has ended'
	piped_send "$1" 2>/dev/null && piped_take "$1" 5
}

expect_says() {
	local taken
	say_take "$1" || true
	case $taken in *"name=$2 "*) ;; *) fail "$1: expected $2, got: $taken" ;; esac
}

# conversation_with ANSWER NAME NAMESPACE ...: opens one, whose first answer is expected
conversation_with() {
	conversation_open "${@:2}"
	expect_says "$2" "$1"
}

conversation_close() {
	local in=$1_in
	echo bye >&"${!in}"
	piped_close "$1" || true
}

# expect_skips PROTOCOL COMMAND...: while it runs no packet goes through the IP stack (stack_watch).
# A packet of a UDP flow does every few seconds, so UDP has more rounds. ROUNDS=5: where there are
# other connections in the IP stack, whose acknowledgments may be counted.
expect_skips() {
	local protocol=$1 rounds=${ROUNDS:-1} before packets
	shift
	if [ "$protocol" = tcp ]; then protocol=connected; else rounds=5; fi
	while :; do
		packets_take inet watch "seen_$protocol"
		before=$packets
		"$@"
		packets_take inet watch "seen_$protocol"
		[ "$packets" != "$before" ] || return 0
		rounds=$((rounds - 1))
		[ "$rounds" -gt 0 ] || fail "$protocol goes through the IP stack: $*"
	done
}

# expect_fast NAME ANSWER PROTOCOL: the conversation continues, and skips the IP stack.
expect_fast() { expect_skips "$3" expect_says "$1" "$2"; }

# expect_slow NAME ANSWER PROTOCOL: every request and every answer goes through the IP stack.
expect_slow() {
	local before packets round
	packets_take inet watch "seen_$3"
	for round in 1 2 3 4; do
		before=$packets
		expect_says "$1" "$2"
		packets_take inet watch "seen_$3"
		[ $((packets - before)) -ge 2 ] || fail "$1 skips the IP stack, request $round"
	done
}

# capture_start NAME NAMESPACE|host INTERFACE FILTER: captures on an interface; capture_stop NAME
# prints the packets. Waiting for "listening" misses no packet at the beginning, immediate mode none
# at the end, because without it the kernel passes packets on after up to a second. CAPTURE: further
# options of tcpdump.
capture_start() {
	local name=$1 who=$2 interface=$3
	shift 3
	local command=(tcpdump --immediate-mode -n -l ${CAPTURE:-} -i "$interface" "$*")
	[ "$who" = host ] || command=("$build/tests/world" in "$who" "${command[@]}")
	rm -f "/run/$name.log"
	"${command[@]}" >"/run/$name.capture" 2>"/run/$name.log" &
	eval "capture_$name=\$!"
	wait_until 5 file_says 'listening on' "/run/$name.log" || fail "tcpdump: $(cat "/run/$name.log")"
}

capture_stop() {
	local pid=capture_$1
	for _ in 1 2 3; do pause_for "$((${SLOWER:-1} * 100))"; done # tcpdump may be behind
	kill -INT "${!pid}"
	wait "${!pid}" 2>/dev/null || true
	cat "/run/$1.capture"
}

expect_captured_nothing() {
	local seen
	seen=$(capture_stop "$1")
	[ -z "$seen" ] || fail "should never have been on the wire:
$seen"
}

# The error that expect_failure caught: expect_code CODE
expect_code() {
	local objects code complete
	read -r objects code complete < <(jq -rs '.[0] as $error | "\(length) \($error.code) " +
		"\($error.cniVersion != null and ($error.msg | length > 0))"' <<<"$output" 2>/dev/null) ||
		fail "expected one CNI error object with code $1, got: $output"
	expect_equal 1 "$objects" "how many objects there are: $output"
	expect_equal "$1" "$code" "the error code of: $output"
	[ "$complete" = true ] || fail "an error object lacks cniVersion or msg: $output"
}
