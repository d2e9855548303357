# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_add_del.sh - the time of ADD and DEL from the process's start to its exit, and the memory of
# ADD. Only the port mapper is called, with the result of the real bridge plugin.
#
# The reference runs iptables many times for each port, and searches conntrack once for each UDP
# port: measures that take it minutes are left out, or done once.

mappers=portmap,nftables,established

ports_word() { if [ "$1" = 1 ]; then echo port; else echo ports; fi; }

for ports in 0 1 10 100 1000 10000; do
	row "add_tcp_$ports" ms lower "ADD, $ports TCP $(ports_word "$ports")"
	row "del_tcp_$ports" ms lower "DEL, $ports TCP $(ports_word "$ports")"
done
row add_udp_1000 ms lower 'ADD, 1000 UDP ports'
row del_udp_1000 ms lower 'DEL, 1000 UDP ports'
row add_fresh ms lower 'ADD, 1 TCP port, to a veth that has just been made'
row add_fresh_filters ms lower 'ADD, 1 TCP port, to a veth that has just been made, "attach": "clsact"'
row add_nothing ms lower 'a static program that does nothing, for comparison'
row add_over_nothing ms lower 'ADD, 1 TCP port, over what a static program that does nothing takes'
row add_first ms lower 'the first ADD after boot, which loads the programs'
row add_resident_first KiB lower 'memory of the process, the first ADD after boot'
for ports in 1 1000 10000; do
	row "add_resident_$ports" KiB lower "memory of the process, ADD, $ports TCP $(ports_word "$ports")"
done
row add_50_in_turn ms lower '50 ADD of one port, one after another'
row add_50_at_once ms lower '50 ADD of one port, all at once'
row del_50_in_turn ms lower '50 DEL of one port, one after another'
row del_50_at_once ms lower '50 DEL of one port, all at once'
row add_50_ratio times lower '50 ADD all at once, to one after another'
row del_50_ratio times lower '50 DEL all at once, to one after another'
for mappings in 1 1000 10000; do
	row "add_beside_mappings_$mappings" ms lower "ADD, 1 TCP port, another container has $mappings"
	row "del_beside_mappings_$mappings" ms lower "DEL, 1 TCP port, another container has $mappings"
done
for containers in 1 100 1000; do
	row "add_beside_containers_$containers" ms lower \
		"ADD, 1 TCP port, $containers other containers have one each"
	row "del_beside_containers_$containers" ms lower \
		"DEL, 1 TCP port, $containers other containers have one each"
done
for command in add del; do
	row "${command}_beside_interfaces" ms lower "${command^^}, 1 TCP port, beside 100 other interfaces"
done

budget add_tcp_1 established at-most 1
budget del_tcp_1 established at-most 1
budget add_tcp_1 established times 25 nftables
budget del_tcp_1 established times 25 nftables
budget add_over_nothing established at-most 0.4
budget add_50_ratio established at-most 0.7
budget add_tcp_1000 established at-most 5
budget add_tcp_10000 established at-most 40

measure quick established 20 add_nothing
measure quick established 20 add_over_nothing
measure quick/1 established 30 add_first
measure quick "$mappers" 20 add_del tcp 0
measure quick "$mappers" 20 add_del tcp 1
measure quick "$mappers" 20 add_del tcp 10
measure quick nftables,established 30 add_del tcp 100
measure quick/1 portmap 30 add_del tcp 100
measure quick nftables,established 30 add_del tcp 1000
measure full/1 portmap 240 add_del tcp 1000
measure quick established 30 add_del tcp 10000
measure full/1 nftables 120 add_del tcp 10000
measure quick established 30 add_del udp 1000
measure full/1 portmap,nftables 240 add_del udp 1000
measure quick "$mappers" 20 add_fresh add_fresh
measure quick established 20 add_fresh add_fresh_filters '.attach="clsact"'
measure quick established 20 add_many
measure full/1 portmap,nftables 120 add_many
for mappings in 1 1000 10000; do
	measure quick established 30 add_beside_mappings "$mappings"
done
measure quick nftables 30 add_beside_mappings 1
measure full/1 nftables 120 add_beside_mappings 1000
measure full/1 nftables 120 add_beside_mappings 10000
measure full portmap 30 add_beside_mappings 1
measure full/1 portmap 240 add_beside_mappings 1000
for containers in 1 100; do
	measure quick established 30 add_beside_containers "$containers"
	measure full/1 portmap,nftables 60 add_beside_containers "$containers"
done
measure full established 60 add_beside_containers 1000
measure quick established 30 add_beside_interfaces

# --- containers that another plugin has connected ---------------------------------------

mapper_program() {
	if is_ours; then echo "$build/bpf-portmap"; else echo "$reference_plugins/portmap"; fi
}

# unmapped_make CONTAINER: connects it by the conflist without its last plugin, only once
unmapped_make() {
	[ ! -e "/run/results/$1" ] || return 0
	jq '.plugins |= map(select(.type != "portmap" and .type != "bpf-portmap"))' \
		/run/conf/bench.conflist >/run/conf/unmapped.conflist
	container_add "$1" unmapped
	neighbours_known "$1"
	mkdir -p /run/calls
}

caller_make() {
	[ ! -e /run/caller ] || return 0
	unmapped_make caller
	namespace_add others
	in_namespace others sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	echo 0 >/run/caller
}

# others_make COUNT: makes interfaces eth0, eth1 ... of the namespace `others`, in place of as many
# containers: by ip, because the bridge plugin needs 50 ms for each, and without IPv6, because each
# would announce itself to all others.
others_make() {
	local number first
	first=$(cat /run/caller)
	[ "$first" -lt "$1" ] || return 0
	for ((number = first; number < $1; number++)); do
		echo "link add other$number type veth peer name eth$number netns others"
		echo "link set other$number master cni0 up"
	done >/run/links
	sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	ip -batch /run/links
	sysctl -qw net.ipv6.conf.default.disable_ipv6=0
	for ((number = first; number < $1; number++)); do echo "link set eth$number up"; done >/run/links
	ip -n others -batch /run/links
	echo "$1" >/run/caller
}

# call_config PROTOCOL FIRST COUNT [CONTAINER]: the configuration from a runtime for `caller` or
# another container, with COUNT ports
call_config() {
	jq -c --slurpfile result "/run/results/${4:-caller}" --arg protocol "$1" --argjson first "$2" \
		--argjson count "$3" '.plugins[-1] + {"cniVersion": "1.0.0", "name": "bridge",
			"prevResult": $result[0], "runtimeConfig": {"portMappings": [
				range($first; $first + $count) |
				{"hostPort": ., "containerPort": (. % 30000 + 1), "protocol": $protocol}]}}' \
		/run/conf/bench.conflist
}

# others_config COUNT PORTS: writes /run/calls/other0 ..., each with PORTS ports
others_config() {
	local number=0 line
	while read -r line; do
		echo "$line" >/run/calls/other$number
		number=$((number + 1))
	done < <(call_config tcp 20001 "$2" | jq -c --argjson count "$1" --argjson ports "$2" '
		range($count) as $number |
		.prevResult.interfaces[1].name = "other\($number)" |
		.prevResult.interfaces[2].name = "eth\($number)" |
		.prevResult.ips[0].address =
			"10.88.\(100 + ($number / 250 | floor)).\($number % 250 + 2)/16" |
		.prevResult.ips[1].address = "fd00:88::1:\($number)/64" |
		.runtimeConfig.portMappings[].hostPort += $number * $ports')
}

# --- calling the port mapper ------------------------------------------------------------

# call_words COMMAND[*COPIES|@COPIES] ID IFNAME NETNS CONFIG: sets `words`, the arguments for spawn
call_words() {
	words=("$1" CNI_COMMAND="${1%%[*@]*}" PATH="$PATH" CNI_PATH="$CNI_PATH" CNI_CONTAINERID="$2"
		CNI_IFNAME="$3" CNI_NETNS="/run/netns/$4" "<$5" "$(mapper_program)")
}

caller_is=(caller eth0 caller /run/calls/caller)
other_is=('other{}' 'eth{}' others '/run/calls/other{}')

# calls ROUNDS COPIES WHO [+ CASE...]: ADD and DEL alternately, and further cases for spawn; COPIES
# is empty, *N or @N
calls() {
	local -n who=$3
	local rounds=$1 copies=$2
	local words adds
	shift 3
	call_words "ADD$copies" "${who[@]}"
	adds=("${words[@]}")
	call_words "DEL$copies" "${who[@]}"
	"$tools/spawn" "$rounds" "${adds[@]}" + "${words[@]}" "$@"
}

# call COMMAND COPIES WHO: once
call() {
	local -n who=$3
	local words
	call_words "$1$2" "${who[@]}"
	"$tools/spawn" 1 "${words[@]}" >/dev/null
}

# Removes what is left of an ADD that was killed at its time limit.
calls_begin() {
	caller_make
	if [ -e /run/calls/unfinished ]; then
		read -r copies </run/calls/unfinished
		call DEL '' caller_is
		[ -z "$copies" ] || call DEL "$copies" other_is
	fi
	echo "${1:-}" >/run/calls/unfinished
}

calls_end() { rm -f /run/calls/unfinished; }

# Another host, `fresh`, with its own programs and maps on the same bpffs, and a container `guest`.
fresh_make() {
	fresh_remove
	namespace_add fresh
	namespace_add guest
	in_namespace fresh "$cnirun" add /run/conf/unmapped.conflist guest --id guest >/run/results/guest
}

# fresh_add [FILTER]: its first ADD, with a configuration changed by a jq filter
fresh_add() {
	local words
	call_config tcp 10001 1 | jq --slurpfile result /run/results/guest \
		".prevResult = \$result[0] | ${1:-.}" >/run/calls/guest
	call_words ADD guest eth0 guest /run/calls/guest
	in_namespace fresh "$tools/spawn" 1 "${words[@]}"
}

fresh_remove() {
	[ -e /run/netns/fresh ] || return 0
	in_namespace fresh "$cnirun" del /run/conf/unmapped.conflist guest --id guest || true
	ip netns delete guest || true
	ip netns delete fresh
	rm -rf "$pins"/netns-*
}

# The result of a round is the median of so many calls.
repeats() {
	if ! is_ours; then
		echo 1
	elif [ "$1" -le 1000 ]; then
		echo 20
	else
		echo 5
	fi
}

# times_of SUFFIX [FILE]: converts spawn's lines into results add_SUFFIX and del_SUFFIX, in
# milliseconds
times_of() {
	local command time
	while read -r command time; do
		result "${command,,}_$1" "$time"
	done < <(jq -r '"\(.name) \(.median_us / 1000)"' "${2:-/run/calls/measured}")
}

# --- measures ---------------------------------------------------------------------------

add_nothing() {
	result add_nothing "$("$tools/spawn" 200 ADD "$tools/nothing" | jq '.median_us / 1000')"
}

# Both alternately, so that other load on the machine affects both alike
add_over_nothing() {
	calls_begin
	call_config tcp 10001 1 >/run/calls/caller
	calls 100 '' caller_is + nothing "$tools/nothing" >/run/calls/measured
	calls_end
	result add_over_nothing "$(jq -s '(.[0].median_us - .[2].median_us) / 1000' /run/calls/measured)"
}

# add_del PROTOCOL PORTS
add_del() {
	calls_begin
	call_config "$1" 10001 "$2" >/run/calls/caller
	calls "$(repeats "$2")" '' caller_is >/run/calls/measured
	calls_end
	times_of "$1_$2"
	case $1_$2 in
	tcp_1 | tcp_1000 | tcp_10000)
		result "add_resident_$2" "$(jq 'select(.name == "ADD").max_rss_kib' /run/calls/measured)" ;;
	esac
}

# add_fresh ROW [FILTER]: a new veth for each ADD, as from an engine. For the other rows our programs
# stay where the first ADD attached them. The configuration is changed by a jq filter.
add_fresh() {
	local config ip
	ip=$(command -v ip)
	calls_begin '*1'
	others_make 1
	others_config 1 1
	config=$(jq -c "${2:-.}" /run/calls/other0)
	echo "$config" >/run/calls/other0
	printf '%s\n' 'link del other0' 'link add other0 type veth peer name eth0 netns others' \
		'link set other0 master cni0 up' >/run/fresh
	calls "$(repeats 1)" '' other_is + veth "$ip" -batch /run/fresh \
		+ peer "$ip" -n others link set eth0 up >/run/calls/measured
	calls_end
	result "$1" "$(jq 'select(.name == "ADD").median_us / 1000' /run/calls/measured)"
}

add_many() {
	local rounds=1 command value
	! is_ours || rounds=5
	calls_begin '*50'
	others_make 50
	others_config 50 1
	calls "$rounds" '*50' other_is >/run/calls/in_turn
	calls "$rounds" @50 other_is >/run/calls/at_once
	calls_end
	times_of 50_in_turn /run/calls/in_turn
	times_of 50_at_once /run/calls/at_once
	while read -r command value; do
		result "${command,,}_50_ratio" "$value"
	done < <(jq -rs '"ADD \(.[2].median_us / .[0].median_us)", "DEL \(.[3].median_us / .[1].median_us)"' \
		/run/calls/in_turn /run/calls/at_once)
}

# one_port SUFFIX: ADD and DEL of one port, between calls_begin and calls_end
one_port() {
	call_config tcp 10001 1 >/run/calls/caller
	calls "$(repeats 1)" '' caller_is >/run/calls/measured
	times_of "$1"
}

# add_beside COUNT PORTS SUFFIX: one port, while COUNT other containers have PORTS ports each
add_beside() {
	calls_begin "*$1"
	others_make "$1"
	others_config "$1" "$2"
	call ADD "*$1" other_is
	one_port "beside_$3"
	call DEL "*$1" other_is
	calls_end
}

add_beside_mappings() { add_beside 1 "$1" "mappings_$1"; }
add_beside_containers() { add_beside "$1" 1 "containers_$1"; }

add_beside_interfaces() {
	local number
	calls_begin
	for ((number = 0; number < 50; number++)); do
		echo "link add beside$number type veth peer name peer$number"
	done | ip -batch -
	one_port beside_interfaces
	calls_end
	for ((number = 0; number < 50; number++)); do echo "link delete beside$number"; done | ip -batch -
}

# On another host, with its own programs and maps on the same bpffs
add_first() {
	calls_begin
	fresh_make
	fresh_add >/run/calls/measured
	fresh_remove
	calls_end
	result add_first "$(jq '.median_us / 1000' /run/calls/measured)"
	result add_resident_first "$(jq .max_rss_kib /run/calls/measured)"
}
