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

each_family row queries_modest % higher \
	'answered, of a container that asks 30 times a second beside four that together ask 4,000 times'
each_family budget queries_modest established at-least 98
each_family measure full/1 portmap,established 120 queries_modest

queries_begin() {
	local number
	in_namespace server taskset -c 1 "$build/tests/callers" serve 53
	for ((number = 0; number < $1; number++)); do container_plus "asking$number"; done
	rm -f /run/asked.*
}

# asking NUMBER PROCESSES INTERVAL: the callers of one container, and the milliseconds between the
# questions of each
asking() {
	local process
	for ((process = 0; process < $2; process++)); do
		in_namespace "asking$1" taskset -c 0 "$build/tests/callers" udp \
			"$(of_family server)" 53 1000000 --at-once 1000 --timeout 900 --again 60000 \
			--interval "$3" --seconds "$queries_seconds" >"/run/asked.$1.$process" &
	done
}

queries_end() {
	local number
	wait || true # a question without an answer is no failure
	for ((number = 0; number < $1; number++)); do container_remove "asking$number" bench; done
	processes_end server
}

# 3,000 questions a second of all together
queries() {
	local many=$1 number processes=1 interval=1
	[ "$many" != 1 ] || processes=3
	[ "$many" != 50 ] || interval=17
	queries_begin "$many"
	for ((number = 0; number < many; number++)); do asking "$number" "$processes" "$interval"; done
	queries_end "$many"
	for ((number = 0; number < many; number++)); do cat "/run/asked.$number."*; done |
		queries_results "$many"
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

# Four, as the sockets of two have fewer ports than netfilter.
queries_modest() {
	local number
	queries_begin 5
	asking 0 1 33
	for number in 1 2 3 4; do asking "$number" 1 1; done
	queries_end 5
	result queries_modest "$(sed 's/[a-z_]*=//g' /run/asked.0.0 | awk '{ printf "%.1f", $1 / $2 * 100 }')" \
		"$(cat /run/asked.[1-4].* | sed 's/[a-z_]*=//g' | awk -v seconds="$queries_seconds" '
		{ answered += $1; asked += $2 }
		END { printf "of the others %d of %d a second", answered / seconds, asked / seconds }')"
}
