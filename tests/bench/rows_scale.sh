# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_scale.sh - one container while others have many mappings, while there are many others (see
# others_make), or while it has many flows itself. The measured container was added last: the
# references search their rules in order, and most of their users are in this position. These rows
# come after those of TCP and UDP, because the others' interfaces stay.

crowded=portmap,nftables,established

for ports in 1 100 1000 10000; do
	each_family row "tcp_connect_mappings_$ports" 'connections/s' higher \
		"TCP connect, request, answer, close; another container has $ports mappings"
done
for others in 100 1000; do
	each_family row "tcp_connect_containers_$others" 'connections/s' higher \
		"TCP connect, request, answer, close; $others other containers have one mapping each"
done
for many in mappings containers; do
	beside='with 10,000 mappings of another container, to 1'
	[ "$many" = mappings ] || beside='with 1,000 other containers, to 1'
	each_family row "flat_tcp_$many" % lower "TCP connections/s lost $beside"
	each_family row "flat_udp_$many" % lower "UDP packets/s of 30,000 flows lost $beside"
	row "flat_add_$many" % lower "time of ADD, 1 TCP port, more $beside"
	each_family budget "flat_tcp_$many" established at-most 3
	each_family budget "flat_udp_$many" established at-most 3
	budget "flat_add_$many" established at-most 3
done
each_family row tcp_beside_flows times higher \
	'TCP connections/s of a container with 30,000 live UDP flows, to one without'
each_family budget tcp_beside_flows established at-least 0.95

each_family measure full "$crowded" 60 crowd_connect mappings 1
each_family measure full "$crowded" 120 crowd_connect mappings 100
each_family measure full "$crowded" 240 crowd_connect mappings 1000
each_family measure full nftables,established 120 crowd_connect mappings 10000
each_family measure full "$crowded" 120 crowd_connect containers 100
each_family measure full "$crowded" 300 crowd_connect containers 1000
measure full/1 "$crowded" 60 crowd_end
measure quick/1 established 90 flat mappings
measure quick/1 established 180 flat containers
measure full off 120 flat mappings
measure full off 180 flat containers
measure full established 120 over_ipv6 flat mappings
measure full established 180 over_ipv6 flat containers
each_family measure quick/1 portmap,established 60 tcp_beside_flows

# Restores the rules from a copy, because DEL of many mappings takes the reference as long as ADD.
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

# crowd_make COUNT PORTS: COUNT other containers with PORTS ports each, and then `caller`, 8090 to
# 80. It stays for the next round.
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
	tcp_ask client connect "$(of_family host)" 8090 "$bench_seconds" 16
	tcp_said per_second
}

# crowd_connect mappings|containers COUNT
crowd_connect() {
	tcp_prepare
	if [ "$1" = mappings ]; then crowd_make 1 "$2"; else crowd_make "$2" 1; fi
	result "tcp_connect_$1_$2" "$(crowd_rate)"
}

flat_turns=5
[ "$bench" != quick ] || flat_turns=3

# flat mappings|containers: with the many and with one alternately, within one round
flat() {
	local what turn many="1 10000"
	[ "$1" = mappings ] || many='1000 1'
	tcp_prepare
	udp_prepare
	unmapped_make probe
	call_config tcp 8091 1 probe >/run/calls/probe
	rm -f /run/flat.*
	for ((turn = 0; turn < flat_turns; turn++)); do
		answered_flows datagrams 30000 generate_in
		# shellcheck disable=SC2086
		crowd_make $many
		flat_rates many
		crowd_make 1 1
		flat_rates one
	done
	crowd_end
	for what in tcp udp; do
		result "flat_${what}_$1" "$(flat_lost many one "$what")"
	done
	[ "$family" = 6 ] || result "flat_add_$1" "$(flat_lost one many add)"
}

# flat_rates many|one: for ADD the fastest of a hundred, because the medians themselves vary by more
# than a few percent
flat_rates() {
	crowd_rate >>"/run/flat.$1.tcp"
	generate_in --flows 30000 --seconds "$bench_seconds" --sink datagrams
	said arrived_per_second >>"/run/flat.$1.udp"
	calls 100 '' probe_is | jq 'select(.name == "ADD").min_us' >>"/run/flat.$1.add"
}

probe_is=(probe eth0 probe /run/calls/probe)

# flat_lost LESS MORE WHAT: by how many percent LESS is below MORE, the median of the turns
flat_lost() {
	jq -n --slurpfile less "/run/flat.$1.$3" --slurpfile more "/run/flat.$2.$3" \
		'[range($less | length) | 100 * (1 - $less[.] / $more[.])] | sort | .[length / 2 | floor]'
}

# connect_rate CONTAINER PORT SECONDS: writes /run/flat.CONTAINER
connect_rate() {
	# shellcheck disable=SC2046
	tcp_ask client connect $(target "$1" "$2") "$3" 16 || echo per_second=0 >/run/tcp.said
	tcp_said per_second >>"/run/flat.$1"
}

# Each may have 32,768 assured flows. It runs long enough to close more connections than that. Each
# family has other containers.
tcp_beside_flows() {
	local seconds loaded=loaded$family unloaded=unloaded$family port=80${family}0
	seconds=$(jq -n "[$bench_seconds, 3] | max")
	tcp_prepare
	udp_prepare
	if [ ! -e "/run/results/$loaded" ]; then
		! is_ours || bench_conflist '.maxFlows = 32768'
		container_plus "$loaded" "$port:80" "$port:80/udp"
		container_plus "$unloaded" "$((port + 1)):80"
		bench_conflist .
		in_namespace "$loaded" "$tools/sink" attach eth0 80 "$loaded"
	fi
	tcp_serve "$loaded" 80
	tcp_serve "$unloaded" 80
	answered_flows "$loaded" 30000 generate_to "$loaded" "$port"
	rm -f /run/flat.*
	for _ in 1 2; do
		connect_rate "$unloaded" "$((port + 1))" "$seconds"
		connect_rate "$loaded" "$port" "$seconds"
	done
	result tcp_beside_flows "$(jq -n --slurpfile loaded "/run/flat.$loaded" \
		--slurpfile unloaded "/run/flat.$unloaded" \
		'if ($unloaded | add) == 0 then 0 else ($loaded | add) / ($unloaded | add) end')"
}
