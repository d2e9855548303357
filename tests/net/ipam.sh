# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ipam.sh - a cni-ipam that runs, and requests as Docker sends them.

ipam=$build/sanitized/cni-ipam
ipam_socket=/run/docker/plugins/cni-ipam.sock
ipam_state=/var/lib/cni-ipam/10.91.0.0_24.json

ipam_start() {
	[ -x "$ipam" ] || skip "cni-ipam is not built: libmicrohttpd is missing"
	NETCONFPATH=${ipam_conflists:-/run/conf} "$ipam" "$@" 2>>/run/results/ipam &
	ipam_process=$!
	wait_until 10 ipam_listens || fail "cni-ipam does not listen: $(cat /run/results/ipam)"
}

# Not by connecting, as the one that was killed leaves its socket.
ipam_listens() { ss -Hxl src "$ipam_socket" | grep . >/dev/null; }

ipam_kill() {
	kill -9 "$ipam_process"
	wait "$ipam_process" 2>/dev/null || true
}

# post PATH JSON: prints the body and the HTTP status
post() {
	curl -s --max-time $((30 * SLOWER)) --unix-socket "$ipam_socket" -w ' %{http_code}' \
		-d "$2" "http://plugin/$1"
}

# call NAME FILTER [JQ-OPTION...]: a call of the driver with the request that the filter makes
call() {
	local name=$1 filter=$2
	shift 2
	post "IpamDriver.$name" "$(jq -nc "$@" "$filter")"
}

{
pool_request() { call RequestPool '{AddressSpace: "docker-local", Pool: $p, SubPool: $s}' \
	--arg p "$1" --arg s "${2:-}"; }
pool_release() { call ReleasePool '{PoolID: $p}' --arg p "$1"; }
address_request() { call RequestAddress '{PoolID: $p, Address: $a}' --arg p "$1" --arg a "${2:-}"; }
gateway_request() { call RequestAddress '{PoolID: $p, Address: $a,
	Options: {RequestAddressType: "com.docker.network.gateway"}}' --arg p "$1" --arg a "${2:-}"; }
address_release() { call ReleaseAddress '{PoolID: $p, Address: $a}' --arg p "$1" --arg a "$2"; }
}

# given COMMAND...: the address without its length, of a request that must succeed
given() {
	local answer
	answer=$("$@") || fail "$*: no answer"
	[ "${answer##* }" = 200 ] || fail "$*: $answer"
	answer=${answer#*\"Address\":\"}
	echo "${answer%%/*}"
}

# expect_err TEXT COMMAND...: {"Err": "...TEXT..."}, not 200
expect_err() {
	local text=$1 answer
	shift
	answer=$("$@") || fail "$*: no answer"
	case $answer in
	'{"Err":"'*"$text"*'"} '[45]??) ;;
	*) fail "$*: no error with \"$text\": $answer" ;;
	esac
}

# From here on the test starts the program without the sanitizers, with which each of its hundreds of
# processes would take ten times as much CPU.
ipam_unsanitized() {
	[ ! -x "$build/cni-ipam" ] || ipam=$build/cni-ipam
}

# ipam_crowd [COUNT]: as many requests at once (200) get as many addresses. Each answer has a file of its own, as curl
# writes those that come together on one line.
ipam_crowd() {
	local count=${1:-200}
	curl -sS -Z --parallel-immediate --parallel-max "$count" --unix-socket "$ipam_socket" \
		-d '{"PoolID":"docker-local/10.91.0.0/16"}' -o '/run/results/crowd.#1' \
		"http://x/IpamDriver.RequestAddress?[1-$count]"
	sed -s '$a\' /run/results/crowd.* >/run/results/crowd
	grep -v '"Address":"10.91' /run/results/crowd | sort | uniq -c >&2 || true
	expect_equal "$count" "$(sort -u /run/results/crowd | grep -c '"Address":"10.91')" "different addresses"
}

# docker_fake: Docker's API with the networks of docker_networks, where reconcile asks
docker_fake() {
	perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); bind($s, pack_sockaddr_un("/run/docker.sock")) or die $!;
		listen($s, 9); $| = 1; print "listens\n"; while (accept(my $c, $s)) { my ($path) = <$c> =~ m,GET /(\S+),;
		$path =~ tr,/,-,; my $f; print $c open($f, "<", "/run/docker-api/$path") ? ("HTTP/1.0 200 OK\r\n\r\n", <$f>) :
		"HTTP/1.0 404 Not Found\r\n\r\n{\"message\":\"network not found\"}"; close $c }' \
		>/run/results/docker_fake 2>&1 &
	wait_until 10 file_says listens /run/results/docker_fake || fail "no socket of Docker"
}

# docker_network NAME DRIVER CONFIG ADDRESS...: as Docker's API shows it, with containers
docker_network() {
	local name=$1 driver=$2 config=$3
	shift 3
	jq -nc --arg n "$name" --arg d "$driver" --argjson c "$config" '{Id: $n, Name: $n, Scope: "local",
		IPAM: {Driver: $d, Options: {}, Config: [$c]}, Containers: [$ARGS.positional[] |
		{key: ("c" + .), value: {Name: ("c" + .), IPv4Address: (. + "/24")}}] | from_entries}' --args "$@"
}

# docker_networks NETWORK...: what docker_fake answers from now on
docker_networks() {
	local network
	rm -rf /run/docker-api
	mkdir /run/docker-api
	printf '%s\n' "$@" | jq -sc . >/run/docker-api/networks
	for network; do
		echo "$network" >"/run/docker-api/networks-$(jq -r .Id <<<"$network")"
	done
}

reconcile() { NETCONFPATH=${ipam_conflists:-/run/conf} "$ipam" reconcile "$@" 2>&1; }

# ipam_pools FILTER: of the pools of all subnets
ipam_pools() { find /var/lib/cni-ipam -name '*.json' -exec cat {} + | jq -rs "map(.pools) | add // {} | $1"; }

# A new daemon undoes at its start what was left.
ipam_repaired() { [ "$(ipam_pools 'map(.changing[]) | length')" = 0 ]; }

# The addresses that host-local has given, of all networks
ipam_files() { (cd /var/lib/cni/networks && find . -type f -name '*[.:]*' ! -name 'last*' | sort); }

# Plugins in place of the reference's: /run/cni-plugins/NAME runs the commands on stdin first.
plugin_wrap() {
	rm "/run/cni-plugins/$1"
	{ printf '#!/bin/bash\n' && cat && echo "exec $reference_plugins/$1"; } >"/run/cni-plugins/$1"
	chmod 755 "/run/cni-plugins/$1"
}

# host-local kills cni-ipam once if /run/kill says when: "ADD before", "ADD during", "DEL after" ...; "ADD worker":
# the process of the request alone
ipam_killer_install() {
	plugin_wrap host-local <<-SH
		kill=\$(cat /run/kill 2>/dev/null)
		rm -f /run/kill
		daemon=\$(ps -o ppid= -p \$PPID)
		[ "\$kill" != "\$CNI_COMMAND worker" ] || { kill -9 \$PPID; exit 1; }
		[ "\$kill" != "\$CNI_COMMAND before" ] || { kill -9 \$daemon \$PPID; exit 1; }
		[ "\$kill" != "\$CNI_COMMAND during" ] || { kill -9 \$daemon \$PPID; sleep .5; }
		[ "\$kill" != "\$CNI_COMMAND after" ] || { $reference_plugins/host-local; kill -9 \$daemon \$PPID; exit 0; }
	SH
}
