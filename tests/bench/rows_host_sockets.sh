# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_host_sockets.sh - the cost of the programs at socket hooks for processes of the host that do
# not use mapped ports. `plain` has no such programs.

row host_tcp_connect ns lower 'a process of the host: TCP connect, accept and close over loopback'
row host_udp_connect ns lower 'a process of the host: UDP socket, connect and close'
row host_udp_send ns lower 'a process of the host: UDP sendto and recvfrom over loopback'

for what in tcp_connect udp_connect udp_send; do
	budget "host_$what" established times 0.98 plain
done

measure quick plain,established 20 host_sockets tcp-connect
measure quick plain,established 20 host_sockets udp-connect
measure quick plain,established 20 host_sockets udp-send

host_sockets() {
	local name=host_${1//-/_}
	result "$name" "$("$tools/host_sockets" "$1" "$bench_seconds")"
}
