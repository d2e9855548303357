# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# replay.sh - calls our plugin as recorded in a file of data/, in a test's namespaces. In place of
# the engine it makes namespaces, starts servers in them, and runs the real bridge plugin, whose
# result replaces the recorded one.

# The current call: its line of the file, and values from it
declare call call_command call_container call_interface call_network
# Not empty: containers have IPv6
declare replay_has_ipv6=
# Not empty: before each call of how many places in it a call of its own is killed
declare replay_kills=
# PROTOCOL HOST-IP HOST-PORT -> the container that has it; the recorded NETNS -> the one here
declare -A mapping_owner=() replay_netns=() replay_bridge=()

# replay FILE [no-ports]: FILE must map a port, unless its engine never does.
replay() {
	local line=0
	needs_cgroup
	replay_has_ipv6=$(jq -r '.stdin.prevResult?.ips[]?.address | select(contains(":"))' "$1")
	while read -r call; do
		line=$((line + 1))
		replay_read_call
		replay_call || fail "${1##*/}:$line ($call_command during $(of_call .during)): $(cat /run/answer)"
	done <"$1"
	[ "${#mapping_owner[@]}" -gt 0 ] || [ "${2:-}" = no-ports ] || fail "${1##*/} maps no port"
	expect_count "0 0" 'portmaps attachments' \
		"portmaps, attachments after all that $1 has"
}

of_call() { jq -r "$1" <<<"$call"; }

replay_read_call() {
	call_command=$(of_call .env.CNI_COMMAND)
	call_container=$(of_call .env.CNI_CONTAINERID)
	call_interface=$(of_call .env.CNI_IFNAME)
	# stdin is an object, or text that is not the shortest JSON
	call_network=$(of_call '.stdin | if type == "string" then fromjson else . end | .name')
}

replay_call() {
	: >/run/concerned
	[ "$call_command" != ADD ] || replay_connect
	[ -z "$replay_kills" ] || replay_killed
	if replay_plugin "$(replay_call_netns)" >/run/answer 2>&1; then
		replay_expect_exit 0 || return 1
		replay_succeeded
	else
		replay_expect_exit 1 || return 1
	fi
	expect_all_mappings
	[ "$call_command" != DEL ] || replay_disconnect
}

replay_expect_exit() { [ "$(of_call '.exit | if . == 0 then 0 else 1 end')" = "$1" ]; }

# replay_plugin NETNS: runs the plugin with the recorded environment and no other variable of CNI.
replay_plugin() {
	local variables
	mapfile -t variables < <(of_call '.env | del(.CNI_NETNS) | to_entries[] | "\(.key)=\(.value)"')
	replay_stdin >/run/stdin
	env -i PATH="$PATH" "${variables[@]}" CNI_NETNS="$1" ${PREFIX:-} "$build/bpf-portmap" </run/stdin
}

# The same call is killed at some of its calls into the kernel, first. After an ADD the engine calls DEL,
# and begins again. Meanwhile each port is its owner's, as clients, `list` and `who` see it.
replay_killed() {
	local i key protocol address port owner status changes=8
	[ "$call_command" != ADD ] || changes=13
	for ((i = 0; i < replay_kills; i++)); do
		status=0
		PREFIX="$build/tests/traced kill $((RANDOM % changes + 1))" replay_plugin "$(replay_call_netns)" \
			>/run/answer 2>&1 || status=$?
		[ "$status" != 137 ] || replay_killed_count=$((replay_killed_count + 1))
		"$build/bpf-portmap" list --json >/run/list || fail list
		for key in "${!mapping_owner[@]}"; do
			owner=${mapping_owner[$key]}
			[ -n "$owner" ] && [ "$owner $call_command" != "$call_container DEL" ] || continue
			read -r protocol address port <<<"$key"
			replay_questions "$address" | sed -n 1p >/run/questions
			expect_answers_of "$owner" "$protocol" "$port"
			jq -e --arg id "$owner" --arg protocol "$protocol" --argjson port "$port" '[.items[] | select(
				.container.id == $id and .protocol == $protocol and .host.port == $port)] | length == 1' \
				/run/list >/dev/null || fail "$key of $owner: $(cat /run/list)"
			by_hand_says 1 "${owner:0:12}" who "$port/$protocol@${address/#-/$host4}"
		done
		[ "$call_command" != ADD ] || PREFIX='env -u CNI_ARGS CNI_COMMAND=DEL' \
			replay_plugin "$(replay_call_netns)" || fail "DEL after a killed ADD"
	done
}

# The recorded bytes, except for the previous result
replay_stdin() {
	local result=/run/results/$call_container.$call_network.$call_interface
	[ -e "$result" ] || result=/dev/null
	of_call '.stdin | if type == "string" then . else tojson end' | if [ -s "$result" ] &&
		of_call .stdin | grep '"prevResult"' >/dev/null; then
		jq -c --slurpfile result "$result" '.prevResult = $result[0] + {cniVersion}'
	else
		cat
	fi | tr -d '\n'
}

# The engine's part of an ADD: a namespace, and the plugin before ours
replay_connect() {
	local netns name
	netns=$(of_call .env.CNI_NETNS)
	if [ -z "${replay_netns[$netns]:-}" ]; then
		name=container${#replay_netns[@]}
		namespace_add "$name"
		replay_netns[$netns]=$(replay_netns_path "$netns" "$name")
		replay_serve "$name"
	fi
	replay_bridge ADD "${replay_netns[$netns]}" \
		>/run/results/"$call_container.$call_network.$call_interface" ||
		fail "bridge: $(cat /run/results/"$call_container.$call_network.$call_interface")"
}

# In the recorded form: /proc/PID/ns/net, or a file elsewhere
replay_netns_path() {
	case $1 in
	/proc/*)
		"$build/tests/world" in "$2" sleep 1000 >/dev/null 2>&1 &
		wait_until 5 grep -q sleep "/proc/$!/comm" || fail "no process in $2"
		echo "/proc/$!/ns/net" ;;
	*)
		mkdir -p "$(dirname "$1")"
		touch "$1"
		mount --bind /run/netns/"$2" "$1"
		echo "$1" ;;
	esac
}

# Every port that the call maps, recorded with the container's ID
replay_serve() {
	local protocol address host_port port
	call_mappings | sort -u -k 1,1 -k 4,4 | while read -r protocol address host_port port; do
		in_namespace "$1" "$peer" serve "$protocol" any "$port" --name "$call_container" --background
	done
}

# PROTOCOL HOST-IP HOST-PORT CONTAINER-PORT, one line for each; Go's names or JavaScript's, "-": any
call_mappings() {
	of_call '.stdin | if type == "string" then fromjson else . end |
		.runtimeConfig.portMappings // [] | .[] | with_entries(.key |= ascii_downcase) |
		select(.hostport > 0) | [(.protocol // "tcp" | ascii_downcase),
		 (.hostip // "" | if . == "" then "-" else . end), .hostport, .containerport] | @tsv'
}

# replay_bridge ADD|DEL NETNS: the bridge plugin with the families of the recorded result. Debian's
# version does not support 1.1.0, whose results look the same.
replay_bridge() {
	local bridge=${replay_bridge[$call_network]:=${#replay_bridge[@]}}
	of_call '.stdin | if type == "string" then fromjson else . end' | jq -c --argjson bridge "$bridge" \
		--slurpfile list "$project/conf/bridge.conflist" '
		([.prevResult.ips // [] | .[].address | contains(":")] | any) as $ipv6 |
		$list[0].plugins[0] + {name, cniVersion, bridge: "cni\($bridge)"} |
		if .cniVersion == "1.1.0" then .cniVersion = "1.0.0" else . end |
		.ipam.ranges = [[{subnet: "10.\(88 - $bridge).0.0/16"}],
			if $ipv6 then [{subnet: "fd00:\(88 - $bridge)::/64"}] else empty end] |
		.ipam.routes |= if $ipv6 then . else .[:1] end' |
		CNI_COMMAND=$1 CNI_NETNS=$2 CNI_CONTAINERID=$call_container CNI_IFNAME=$call_interface \
			"$CNI_PATH/bridge"
}

replay_disconnect() { replay_bridge DEL "$(replay_call_netns)" || fail "bridge DEL"; }

# The namespace here that stands for that of the call
replay_call_netns() {
	local netns
	netns=$(of_call '.env.CNI_NETNS // ""')
	[ -z "$netns" ] || echo "${replay_netns[$netns]:-$netns}"
}

replay_succeeded() {
	local protocol address host_port port key
	[ "$call_command" = ADD ] || [ "$call_command" = DEL ] || return 0
	for key in "${!mapping_owner[@]}"; do
		[ "${mapping_owner[$key]}" = "$call_container" ] || continue
		mapping_owner[$key]=
		echo "$key" >>/run/concerned
	done
	[ "$call_command" = ADD ] || return 0
	call_mappings >/run/mappings
	while read -r protocol address host_port port; do
		mapping_owner["$protocol $address $host_port"]=$call_container
	done </run/mappings
}

# Checks the ports of the call and of its container for every client, and for one client the ports
# of other containers.
expect_all_mappings() {
	local key protocol address port
	call_mappings | cut -f 1-3 | tr '\t' ' ' >>/run/concerned
	for key in "${!mapping_owner[@]}"; do
		read -r protocol address port <<<"$key"
		if grep -qxF -- "$key" /run/concerned; then
			expect_mapping "$key" "$protocol" "$address" "$port"
		elif [ -n "${mapping_owner[$key]}" ]; then
			replay_questions "$address" | sed -n 1p >/run/questions
			expect_answers_of "${mapping_owner[$key]}" "$protocol" "$port"
		fi
	done
}

# expect_mapping KEY PROTOCOL ADDRESS PORT: KEY is the other three
expect_mapping() {
	replay_questions "$3" >/run/questions
	expect_answers_of "${mapping_owner[$1]}" "$2" "$4"
	replay_is_mapped_elsewhere "$2" "$3" "$4" || expect_no_answer host "$2" 127.0.0.1 "$4"
}

# expect_answers_of NAME PROTOCOL PORT: to every client; "": no answer
expect_answers_of() {
	local asker address
	while read -r asker address; do
		if [ -n "$1" ]; then
			expect_answer "$asker" "$2" "$address" "$3" "$1" -
		else
			expect_no_answer "$asker" "$2" "$address" "$3"
		fi
	done </run/questions
}

# A mapping at one address, which may not exist at others
replay_is_mapped_elsewhere() {
	case $2 in -|0.0.0.0|::) return 0 ;; esac
	[ -n "${mapping_owner["$1 - $3"]:-}${mapping_owner["$1 0.0.0.0 $3"]:-}" ]
}

# replay_questions MAPPED-ADDRESS: the clients that reach it: NAMESPACE ADDRESS, one line for each
replay_questions() {
	case $1 in
	-) replay_questions 0.0.0.0; [ -z "$replay_has_ipv6" ] || replay_questions :: ;;
	0.0.0.0) replay_questions "$host4"; echo "host 127.0.0.1" ;;
	::) replay_questions "$host6"; echo "host ::1" ;;
	*) echo "client $1"; echo "host $1" ;;
	esac
}
