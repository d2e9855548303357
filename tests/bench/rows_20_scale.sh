# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_20_scale.sh - new connections to one container while others have many mappings, or while
# there are many others (see others_make). The container asked is the one that was added last: the
# references look through their rules in order, and this is what most of their users see.

crowded=portmap,nftables,established

for ports in 1 100 1000 10000; do
	row "tcp_connect_mappings_$ports" 'connections/s' higher \
		"TCP connect, request, answer, close; another container has $ports mappings"
done
for others in 100 1000; do
	row "tcp_connect_containers_$others" 'connections/s' higher \
		"TCP connect, request, answer, close; $others other containers have one mapping each"
done
row flat_mappings % lower 'connections/s lost with 10,000 mappings of another container, to 1'
row flat_containers % lower 'connections/s lost with 1,000 other containers, to 1'
budget flat_mappings established at-most 3
budget flat_containers established at-most 3

measure full "$crowded" 60 crowd_connect mappings 1
measure full "$crowded" 120 crowd_connect mappings 100
measure full "$crowded" 240 crowd_connect mappings 1000
measure full nftables,established 120 crowd_connect mappings 10000
measure full "$crowded" 120 crowd_connect containers 100
measure full "$crowded" 300 crowd_connect containers 1000
measure full/1 "$crowded" 60 crowd_end
measure quick/1 established 60 flat mappings
measure full off 60 flat mappings
measure full established,off 120 flat containers

# The rules as they were: DEL of many mappings takes the reference as long as ADD.
rules_save() {
	[ ! -e /run/rules ] || return 0
	if [ "$contender" = portmap ]; then
		iptables-save >/run/rules
		ip6tables-save >/run/rules6
	else
		nft list ruleset >/run/rules
	fi
}

rules_restore() {
	if [ "$contender" = portmap ]; then
		iptables-restore </run/rules
		ip6tables-restore </run/rules6
	else
		nft flush ruleset
		nft -f /run/rules
	fi
}

# crowd_make COUNT PORTS: so many other containers with so many ports, and then `caller`, 8090
# to 80. It stays for the next round.
crowd_make() {
	[ "$(cat /run/crowd 2>/dev/null)" != "$1 $2" ] || return 0
	crowd_end
	caller_make
	is_ours || rules_save
	others_make "$1"
	others_config "$1" "$2"
	echo "$1 $2 unfinished" >/run/crowd
	call ADD "*$1" other_is
	call_config tcp 8090 1 | jq -c '.runtimeConfig.portMappings[].containerPort = 80' \
		>/run/calls/caller
	call ADD '' caller_is
	tcp_serve caller 80
	echo "$1 $2" >/run/crowd
}

crowd_end() {
	local count
	[ -e /run/crowd ] || return 0
	if is_ours; then
		read -r count _ </run/crowd
		call DEL '' caller_is
		call DEL "*$count" other_is
	else
		rules_restore
	fi
	rm /run/crowd
}

crowd_rate() {
	tcp_ask client connect "$host4" 8090 "$bench_seconds" 16
	tcp_said per_second
}

# crowd_connect mappings|containers COUNT
crowd_connect() {
	tcp_prepare
	if [ "$1" = mappings ]; then crowd_make 1 "$2"; else crowd_make "$2" 1; fi
	result "tcp_connect_$1_$2" "$(crowd_rate)"
}

# flat mappings|containers: the many and the one in turns, within one round
flat() {
	local many="1 10000"
	[ "$1" = mappings ] || many='1000 1'
	tcp_prepare
	: >/run/flat.many
	: >/run/flat.one
	for _ in 1 2 3; do
		# shellcheck disable=SC2086
		crowd_make $many
		crowd_rate >>/run/flat.many
		crowd_make 1 1
		crowd_rate >>/run/flat.one
	done
	crowd_end
	result "flat_$1" "$(jq -n --slurpfile many /run/flat.many --slurpfile one /run/flat.one \
		'100 * (1 - ($many | sort[1]) / ($one | sort[1]))')"
}
