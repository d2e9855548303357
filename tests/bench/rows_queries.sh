# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# rows_queries.sh - single questions, as DNS asks them, of masqueraded containers to one server and
# port: each has a socket of its own and one answer. What limits them is how soon a port may be used
# again, so more are asked for most of a minute than netfilter's 64,512 ports with their 30 s allow.

queries_seconds=45

for many in 1 3 50; do
	each_family row "queries_$many" 'answers/s' higher \
		"questions of $many containers to one server, answered"
	each_family row "queries_least_$many" % higher \
		"answered, of the container that gets least of $many"
	each_family budget "queries_$many" established at-least 2150
	each_family budget "queries_least_$many" established at-least 98
	each_family measure full/1 portmap,established 120 queries "$many"
done

# asking CONTAINERS NUMBER: the callers of one container; 3,000 questions a second of all together
asking() {
	local interval=1 processes=1 process
	[ "$1" != 1 ] || processes=3
	[ "$1" != 50 ] || interval=17
	for ((process = 0; process < processes; process++)); do
		in_namespace "asking$2" taskset -c 0 "$build/tests/callers" udp \
			"$(of_family server)" 53 1000000 --at-once 1000 --timeout 900 --again 60000 \
			--interval "$interval" --seconds "$queries_seconds" >"/run/asked.$2.$process" &
	done
}

queries() {
	local many=$1 number
	in_namespace server taskset -c 1 "$build/tests/callers" serve 53
	for ((number = 0; number < many; number++)); do container_plus "asking$number"; done
	rm -f /run/asked.*
	for ((number = 0; number < many; number++)); do asking "$many" "$number"; done
	wait || true # a question without an answer is no failure
	for ((number = 0; number < many; number++)); do
		cat "/run/asked.$number."*
		container_remove "asking$number" bench
	done | queries_results "$many"
	processes_end server
}

# the second row: of the container with the smallest part of its questions answered
queries_results() {
	local answered least asked
	read -r answered least asked < <(sed 's/[a-z_]*=//g' | awk -v seconds="$queries_seconds" '
		{ answered += $1; asked += $2; part = $1 / $2 * 100
		  if (least == "" || part < least) least = part }
		END { printf "%d %.1f %d\n", answered / seconds, least, asked / seconds }')
	result "queries_$1" "$answered" "$asked asked"
	result "queries_least_$1" "$least"
}
