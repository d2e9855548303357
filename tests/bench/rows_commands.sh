# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_commands.sh - how long the commands for people take on a large host: `fresh`, of which a
# container has 2,000 ports and answers, and whose maps are filled with 10,000 mappings of others and
# 100,000 connections. Each is the fastest of three.

for command in list who stats doctor; do
	row "command_$command" ms lower \
		"bpf-portmap $command beside 12,000 mappings and 100,000 connections"
	budget "command_$command" established at-most 500
done
row command_doctor_all ms lower 'bpf-portmap doctor without a port, on a host with 2,000 mapped ports'
budget command_doctor_all established at-most 1000
row command_doctor_rules ms lower "bpf-portmap doctor 20001/tcp, and beside 10,000 rules of others' NAT, too"
budget command_doctor_rules established at-most 500
row command_doctor_whole ms lower 'bpf-portmap doctor without a port beside all of these'
budget command_doctor_whole established at-most 1000

measure quick/1 established 120 commands

commands() {
	calls_begin
	fresh_make
	fresh_add '.runtimeConfig.portMappings |= [range(2000) as $i |
		.[0] + {hostPort: (20001 + 2 * $i), containerPort: 80}]' >/dev/null
	fresh_uplink
	in_namespace guest "$build/tests/peer" serve tcp any 80 --background </dev/null >/dev/null
	command_takes doctor_all doctor
	"$build/tests/fill" many "$pins"/netns-* 10000 100000
	command_takes list list
	command_takes who who 20001
	command_takes stats stats
	command_takes doctor doctor 20001/tcp
	in_namespace fresh nft -f - < <(many_rules)
	command_takes doctor_rules doctor 20001/tcp
	command_takes doctor_whole doctor
	fresh_remove
	calls_end
}

# A client that doctor makes up comes by this uplink, and is behind its gateway.
fresh_uplink() {
	ip -n fresh link add eth0 type veth peer name beyond
	ip -n fresh link set beyond up
	ip -n fresh link set eth0 up
	ip -n fresh address add 192.0.2.201/24 dev eth0
	ip -n fresh neighbour add 192.0.2.202 lladdr 02:00:00:00:00:01 dev eth0 nud permanent
	ip -n fresh route add default via 192.0.2.202
	in_namespace fresh "$build/bpf-portmap" repair >/dev/null
}

many_rules() {
	local number
	printf 'table ip others {\nchain c {\ntype nat hook prerouting priority dstnat;\n'
	for ((number = 0; number < 10000; number++)); do
		echo "ip daddr 10.$((number / 256)).$((number % 256)).1 tcp dport $((30000 + number)) dnat to 10.1.1.1:80"
	done
	printf '}\n}\n'
}

# command_takes ROW ARGUMENT...
command_takes() {
	local row=$1 took fastest=
	shift
	for _ in 1 2 3; do
		in_namespace fresh "$build/tests/fill" measure "$build/bpf-portmap" "$@" \
			2>/run/commands >/dev/null || true
		read -r took _ < <(tail -n 1 /run/commands)
		[ -n "$fastest" ] && [ "$took" -ge "$fastest" ] || fastest=$took
	done
	result "command_$row" "$fastest"
}
