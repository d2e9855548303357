# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
#
# rows_10_tcp.sh - TCP from a client to the container, to the host, and from the host. The client
# runs on CPU 0, the server on CPU 1; the host's work is done on the CPU of the sender. Segmentation
# offload of the veths is on, and so is GRO at the host's end of the client's link.

each_family row tcp_stream 'Mbit/s' higher 'TCP stream to the container'
each_family row tcp_requests 'requests/s' higher 'TCP request and answer, one after the other'
each_family row tcp_requests_p50 'us' lower 'TCP request and answer, median'
each_family row tcp_requests_p99 'us' lower 'TCP request and answer, 99 %'
each_family row tcp_connect 'connections/s' higher 'TCP connect, request, answer, close; 16 at a time'
each_family row tcp_connect_p50 'us' lower 'TCP connect, request, answer, close; alone: median'
each_family row tcp_connect_p99 'us' lower 'TCP connect, request, answer, close; alone: 99 %'
each_family row tcp_connect_p999 'us' lower 'TCP connect, request, answer, close; alone: 99.9 %'
each_family row tcp_local 'connections/s' higher \
	'the same from the host itself to 127.0.0.1, over IPv6 to its own address (plain: to the container)'
each_family row tcp_local_stream 'Mbit/s' higher 'TCP stream from the host itself, likewise'
each_family row tcp_host 'connections/s' higher \
	"TCP to the host's own server, not ours: connect, request, answer, close"
each_family row tcp_host_stream 'Mbit/s' higher "TCP stream to the host's own server, not ours"

each_family budget tcp_connect established times 1.2 portmap
each_family budget tcp_connect established times 1.03 plain
each_family budget tcp_connect always times 1.3 portmap
each_family budget tcp_connect always times 1.1 plain
each_family budget tcp_host established times 0.98 plain
each_family budget tcp_stream established times 1.1 portmap
each_family budget tcp_requests established times 1.1 portmap
each_family budget tcp_requests_p99 established times 1 portmap
each_family budget tcp_connect_p99 established times 1 portmap

each_family measure quick "$everyone" 20 tcp_stream
each_family measure quick "$everyone" 20 tcp_requests
each_family measure quick "$everyone" 20 tcp_connect
each_family measure quick "$everyone" 20 tcp_latency
each_family measure quick "$everyone" 20 tcp_local
each_family measure full "$everyone" 20 tcp_local_stream
each_family measure quick "$everyone" 20 tcp_host
each_family measure full "$everyone" 20 tcp_host_stream

# tcp_serve NAMESPACE PORT: NAMESPACE `host` is the host itself
tcp_serve() {
	local who=$1 port=$2 enter=(in_namespace "$1")
	[ "$who" != host ] || enter=()
	[ ! -e "/run/tcp_serve.$who.$port" ] || return 0
	mkfifo "/run/tcp_serve.$who.$port"
	"${enter[@]}" taskset -c 1 chrt --fifo 50 "$tools/tcp" serve "$port" >"/run/tcp_serve.$who.$port" 2>&1 &
	read -r -t 5 _ <"/run/tcp_serve.$who.$port" || fail "no server in $who"
}

tcp_prepare() {
	tcp_serve web 80
	[ ! -e /run/tcp.ready ] || return 0
	ethtool -K eth0 gro on >/dev/null
	in_namespace client sysctl -qw net.ipv4.ip_local_port_range='1024 60000'
	: >/run/tcp.ready
}

tcp_said() { sed -n "s/.*\b$1=\([0-9.]*\).*/\1/p" /run/tcp.said; }

# tcp_ask NAMESPACE COMMAND ADDRESS PORT ARGUMENT...: runs a client on CPU 0
tcp_ask() {
	local who=$1 enter=(in_namespace "$1")
	shift
	[ "$who" != host ] || enter=()
	"${enter[@]}" taskset -c 0 chrt --fifo 50 "$tools/tcp" "$@" >/run/tcp.said
}

# tcp_ask_container COMMAND ARGUMENT...: through its mapping, if there is one
tcp_ask_container() {
	local command=$1
	shift
	tcp_ask client "$command" $(target web 8080) "$bench_seconds" "$@"
}

# target CONTAINER PORT [ADDRESS]: prints where its port 80 is reached: at this port of the host, or
# directly
target() {
	if [ "$plugin" = none ]; then
		echo "$(address_of_family "$1") 80"
	else
		echo "${3:-$(of_family host)} $2"
	fi
}

tcp_ask_localhost() {
	local command=$1 local4=127.0.0.1 local6=$host6
	shift
	tcp_ask host "$command" $(target web 8080 "$(of_family local)") "$bench_seconds" "$@"
}

megabits() { awk "BEGIN { printf \"%.0f\", $(tcp_said per_second) * 8 / 1e6 }"; }

tcp_stream() {
	tcp_prepare
	tcp_ask_container stream
	result tcp_stream "$(megabits)"
}

tcp_requests() {
	tcp_prepare
	tcp_ask_container requests
	result tcp_requests "$(tcp_said per_second)"
	result tcp_requests_p50 "$(tcp_said p50)"
	result tcp_requests_p99 "$(tcp_said p99)"
}

tcp_connect() {
	tcp_prepare
	tcp_ask_container connect 16
	result tcp_connect "$(tcp_said per_second)"
}

tcp_latency() {
	tcp_prepare
	tcp_ask_container connect 1
	result tcp_connect_p50 "$(tcp_said p50)"
	result tcp_connect_p99 "$(tcp_said p99)"
	result tcp_connect_p999 "$(tcp_said p999)"
}

tcp_local() {
	tcp_prepare
	tcp_ask_localhost connect 16
	result tcp_local "$(tcp_said per_second)"
}

tcp_local_stream() {
	tcp_prepare
	tcp_ask_localhost stream
	result tcp_local_stream "$(megabits)"
}

tcp_host() {
	tcp_prepare
	tcp_serve host 9000
	tcp_ask client connect "$(of_family host)" 9000 "$bench_seconds" 16
	result tcp_host "$(tcp_said per_second)"
}

tcp_host_stream() {
	tcp_prepare
	tcp_serve host 9000
	tcp_ask client stream "$(of_family host)" 9000 "$bench_seconds"
	result tcp_host_stream "$(megabits)"
}
