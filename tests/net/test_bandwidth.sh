# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_bandwidth.sh - together with the reference `bandwidth` plugin, in both orders. Its egress
# limit needs an `ingress` qdisc on the veth, and redirects what the container sends to an ifb
# device.

# 8 Mbit/s with a burst of 100 kB
rates() {
	local ingress='"ingressRate": 8000000, "ingressBurst": 800000'
	case $1 in
	ingress) echo "{$ingress}" ;;
	egress) echo "{${ingress//ingress/egress}}" ;;
	both) echo "{$ingress, ${ingress//ingress/egress}}" ;;
	esac
}

# limited_list PLUGIN before|after entry|runtime|both LIMITS [OUR KEYS]: makes /run/conf/limited,
# whose limits (ingress, egress, both) are in bandwidth's own entry, in runtimeConfig or in both.
# The network keeps its name, so that containers without limits can be added to it. Sets
# $capability.
limited_list() {
	local entry='{"type": "bandwidth", "capabilities": {"bandwidth": true}}' place ours='.'
	[ "$3" = runtime ] || entry="($entry + $(rates "$4"))"
	capability=()
	[ "$3" = entry ] || capability=(--capability "bandwidth=$(rates "$4")")
	[ "$3" != entry ] || ours=$(with_ours '{"capabilities": {"portMappings": true}}')
	case $2 in before) place="[.[0], $entry, .[1]]" ;; after) place="[.[0], .[1], $entry]" ;; esac
	conflist limited "$1" "$ours | $(with_ours "${5:-{\}}") | .plugins |= $place"
}

limited_add() {
	local name=$1
	shift
	namespace_add "$name"
	runtime add limited "$name" "${capability[@]}" "$@" >/run/results/"$name" 2>&1 ||
		fail "ADD: $(cat /run/results/"$name")"
}

limited_remove() {
	runtime del limited "$1" || fail "DEL of $1"
	container_die "$1"
}

# The host port 8080 of the limited container `web`, and 8081 of `near`, from everywhere
expect_everybody_answered() {
	expect_answers client "$host4" 8080 web "$client4"
	expect_answer client tcp "$host6" 8080 web "$client6"
	expect_answer host tcp "$host4" 8080 web
	expect_answers near "$host4" 8080 web
	expect_answers web "$host4" 8080 web
	expect_answers web "$host4" 8081 near
	expect_answer near tcp "$host4" 8081 near
	expect_answer client tcp "$host4" 8081 near
	expect_answer web tcp "$server4" 9000 server "$host4_second"
}

near_start() {
	serve_in server 9000
	container_start near "$1" -p 8081:80/tcp -p 8081:80/udp
}

# works_with_limits PLUGIN PLACE WHERE LIMITS [OUR KEYS]
works_with_limits() {
	limited_list "$@"
	limited_add web -p 8080:80/tcp -p 8080:80/udp
	serve_in web 80
	expect_everybody_answered
	runtime check limited web >/run/out 2>&1 || fail "CHECK: $(cat /run/out)"
	# A limit that somebody wants is no surprise.
	! grep -h 'without the fast path' /run/results/web /run/out || fail "a warning of what is wanted"
	limited_remove web
}

# Every way to pass limits, before us and after us: ADD succeeds and every port answers everybody.
works_in_both_orders() {
	local place
	tcx_needed
	near_start "$1"
	for place in before after; do
		(works_with_limits "$1" "$place" entry both) || fail "$1, $place us, both limits of the entry"
		(works_with_limits "$1" "$place" entry egress) || fail "$1, $place us, egress of the entry"
		(works_with_limits "$1" "$place" runtime ingress) || fail "$1, $place us, ingress by runtime"
		(works_with_limits "$1" "$place" both both) || fail "$1, $place us, limits of both"
	done
}

# with the bandwidth plugin before us and after us, with limits in its own entry or from the
# runtime, ADD succeeds and every port answers everybody
test_bandwidth_orders_bridge() { works_in_both_orders bridge; }

# the same with ptp
test_bandwidth_orders_ptp() { works_in_both_orders ptp; }

# seconds_of NAME PORT: how long two megabytes there and back take
seconds_of() {
	local since=${EPOCHREALTIME/./} answer
	answer=$(in_namespace client "$build/tests/bulk" ask tcp "$host4" "$2" --bytes 2000000 2>&1) ||
		fail "$1: $answer"
	echo "$(((${EPOCHREALTIME/./} - since) / 1000))" >/run/took."$1"
}

# limits_hold FIRST-PORT PLUGIN PLACE WHERE...: in each direction, from the first packet after ADD.
# All of two megabytes but the burst is delayed by the limit: two seconds, not some hundredths.
limits_hold() {
	local port=$1 main=$2 place=$3 where limits name names=() pids=() pid
	shift 3
	for where; do
		for limits in ingress egress; do
			name=$main-$place-$where-$limits port=$((port + 1))
			limited_list "$main" "$place" "$where" "$limits" "${ours:-}"
			limited_add "$name" -p "$port:80/tcp"
			in_namespace "$name" "$build/tests/bulk" serve 80 --background
			seconds_of "$name" "$port" &
			pids+=($!) names+=("$name")
		done
	done
	for pid in "${pids[@]}"; do wait "$pid" || fail "two megabytes did not come through"; done
	for name in "${names[@]}"; do
		[ "$(cat /run/took."$name")" -ge 1000 ] ||
			fail "$place us, $name: two megabytes took $(cat /run/took."$name") ms"
	done
}

# limit 120 s
# limits of a bandwidth plugin before us, or after us, where it adds its qdiscs after our ADD, hold in
# both directions, from the first packet on
test_bandwidth_limits() {
	tcx_needed
	limits_hold 8100 bridge before entry runtime
	limits_hold 8200 ptp before entry runtime
	limits_hold 8300 bridge after entry runtime
	limits_hold 8400 ptp after entry runtime
}

# CHECK does not need the limits that ADD received
test_bandwidth_check_without_limits() {
	container_add_plain web
	plugin_config web ".runtimeConfig.bandwidth = $(rates both)" >/run/config
	plugin_run ADD web </run/config >/run/out || fail "ADD: $(cat /run/out)"
	plugin_run CHECK web </run/config >/run/out || fail "CHECK with limits: $(cat /run/out)"
	plugin_call CHECK web >/run/out || fail "CHECK: $(cat /run/out)"
	plugin_call DEL web
}

# ADD warns of a bandwidth plugin after us that cannot add its qdisc beside our clsact
test_bandwidth_warning() {
	limited_list bridge after runtime egress "$(filters_asked)"
	namespace_add web
	expect_failure runtime add limited web "${capability[@]}" -p 8080:80/tcp
	expect_contains "$output" 'put it before bpf-portmap'
	limited_list bridge before runtime both "$(filters_asked)"
	limited_add second -p 8081:80/tcp
	! grep 'put it before' /run/results/second || fail "a warning although it comes before us"
}

# shaper_in_order: from_container is attached to the ifb device that the bandwidth plugin redirects
# to. If it is removed there, CHECK reports it and attach attaches it again.
shaper_in_order() {
	local device
	device=$(ip -o link show type ifb | sed 's/^[0-9]*: \([^:@]*\).*/\1/')
	expect_equal 'clsact from_container' "$(attached "$device" egress)"
	tc qdisc del dev "$device" clsact
	expect_refusal 'from_container is not attached there' runtime check limited web
	"$build/bpf-portmap" attach >/run/out || fail "$(cat /run/out)"
	runtime check limited web >/run/out 2>&1 || fail "CHECK: $(cat /run/out)"
	expect_everybody_answered
}

# Makes our programs filters on this kernel.
filters_asked() { [ "$(kernel_or 6.6)" != 6.6 ] || echo '{"attach": "clsact"}'; }

# where our programs are filters, as before Linux 6.6, and the bandwidth plugin's filter comes
# before them, every port answers everybody, there is no warning of that filter, and limits hold
test_bandwidth_filters() {
	near_start bridge
	limited_list bridge before entry both "$(filters_asked)"
	limited_add web -p 8080:80/tcp -p 8080:80/udp
	expect_equal '' "$(grep 'runs before' /run/results/web)" "ADD of the plugin's own filter"
	serve_in web 80
	expect_everybody_answered
	runtime check limited web >/run/out 2>&1 || fail "CHECK: $(cat /run/out)"
	expect_equal '' "$(grep 'runs before' /run/out)" "CHECK of the plugin's own filter"
	shaper_in_order
	limited_remove web
	expect_equal '' "$(ip -o link show type ifb)"
	ours=$(filters_asked) limits_hold 8100 bridge before entry
}
