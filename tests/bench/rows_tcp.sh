# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_tcp.sh - TCP, from a client to the container and to the host.

row connect ms lower 'one connection by a program of its own'
measure quick "$everyone" 20 connect_once

connect_once() {
	local begin target=$host4 port=8080
	[ "$plugin" != none ] || { target=$(address4 web); port=80; }
	[ -e /run/served ] || { serve_in web 80; : >/run/served; }
	begin=${EPOCHREALTIME/./}
	in_namespace client timeout 2 bash -c "exec 3<>/dev/tcp/$target/$port"
	result connect "$(awk "BEGIN { print (${EPOCHREALTIME/./} - $begin) / 1000 }")"
}
