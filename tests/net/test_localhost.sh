# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_localhost.sh - the host's own processes reach mapped ports, without route_localnet. The
# socket hooks that do this are tested in test_sockethooks.sh.

socket_tool=$build/tests/local
both='-p 8080:80/tcp -p 8080:80/udp'

# web_start [CONFLIST [-p ...]]: a container that serves port 8080 by TCP and UDP
web_start() {
	needs_cgroup
	local list=${1:-bridge}
	shift $(($# > 0 ? 1 : 0))
	container_start web "$list" ${@:-$both}
}

# on_host SOCKET STEP...: what the socket calls of a process of the host return
on_host() { "$socket_tool" "$@" 2>&1 || true; }

# shown SOCKET ADDRESS PORT: an address as a socket of that kind shows it
shown() {
	case $1:$2 in
	???6:*:*) echo "[$2]:$3" ;;
	???6:*) echo "[::ffff:$2]:$3" ;;
	*) echo "$2:$3" ;;
	esac
}

# host_towards ADDRESS: the host's address towards a container, which the container sees
host_towards() { ip -o route get "$1" | sed 's/.* src \([^ ]*\).*/\1/'; }

# sockets_for tcp|udp ADDRESS: the kinds of sockets that can use the address
sockets_for() {
	case $2 in *:*) echo "${1}6" ;; *) echo "${1}4 ${1}6" ;; esac
}

# expect_lines COMMAND-OUTPUT PATTERN...: one glob pattern for each line
expect_lines() {
	local said=$1 line pattern
	shift
	while read -r line; do
		pattern=${1-(no more)}
		[[ $line == $pattern ]] || fail "expected '$pattern', got '$line', of:
$said"
		shift $(($# > 0 ? 1 : 0))
	done <<<"$said"
	[ $# -eq 0 ] || fail "expected '$1' too, after:
$said"
}

# expect_connected SOCKET ADDRESS PORT NAME [SEEN]: connects and sends a request. NAME has seen the
# client address SEEN, and the socket shows the requested address as its peer.
expect_connected() {
	local socket=$1 address=$2 port=$3 name=$4 seen=${5:-*} asked from=none
	asked=$(shown "$socket" "$address" "$port")
	[ "${socket%?}" = tcp ] || from=$asked
	expect_lines "$(on_host "$socket" connect "$address" "$port" names ask)" \
		"connect ok" "peer=${asked//[/\\[} own=*" \
		"name=$name client=${seen//[/\\[}:* local=* from=${from//[/\\[}"
}

# expect_datagrams SOCKET ADDRESS PORT NAME [SEEN]: the same unconnected, with every send and
# receive call
expect_datagrams() {
	local socket=$1 address=$2 port=$3 name=$4 seen=${5:-*} from
	from=$(shown "$socket" "$address" "$port")
	local answer="name=$name client=${seen//[/\\[}:* local=* from=${from//[/\\[}"
	expect_lines "$(on_host "$socket" sendto "$address" "$port" recvfrom \
		sendmsg "$address" "$port" recvmsg sendmmsg "$address" "$port" recvmmsg names)" \
		"sendto ok" "$answer" "sendmsg ok" "$answer" "sendmmsg ok" "$answer" "peer=none own=*"
}

# expect_local ADDRESS PORT NAME [SEEN]: with every kind of socket
expect_local() {
	local socket
	for socket in $(sockets_for tcp "$1") $(sockets_for udp "$1"); do
		expect_connected "$socket" "$@"
	done
	for socket in $(sockets_for udp "$1"); do expect_datagrams "$socket" "$@"; done
}

# expect_not_local ADDRESS PORT: the host itself refuses every kind of socket
expect_not_local() {
	local socket
	for socket in $(sockets_for tcp "$1"); do
		expect_lines "$(on_host "$socket" connect "$1" "$2")" "connect: Connection refused"
	done
	for socket in $(sockets_for udp "$1"); do
		expect_lines "$(on_host "$socket" connect "$1" "$2" ask)" \
			"connect ok" "ask: Connection refused"
	done
}

# The same for a namespace's processes
expect_not_from() {
	local who=$1
	shift
	expect_no_answer "$who" tcp "$@"
	expect_no_answer "$who" udp "$@" --connected
}

# a process of the host, also one in a child cgroup, reaches a mapped port at 127.0.0.1, at any 127/8
# address, at ::1 and at every address of the host; TCP, UDP connected and not, IPv4 from IPv6
# sockets; its socket shows the requested address. No sysctl is changed: route_localnet stays off. connect
# and sendto to 0.0.0.0 or :: mean the host itself, too
test_localhost_every_address() {
	web_start
	local address setting socket
	for address in 127.0.0.1 127.1.2.3 127.255.255.254 ::1 "$host4" "$host4_second" "$bridge4" \
		"$host6" "$host6_second" "$bridge6"; do
		expect_local "$address" 8080 web
	done
	for setting in /proc/sys/net/ipv4/conf/*/route_localnet; do
		expect_equal 0 "$(cat "$setting")" "$setting"
	done
	mkdir -p "$cgroup/machine/service"
	answer=$(echo "$BASHPID" >"$cgroup/machine/service/cgroup.procs" &&
		on_host tcp4 connect 127.0.0.1 8080 ask)
	expect_contains "$answer" name=web
	for socket in tcp4 tcp6 udp4 udp6; do
		expect_contains "$(on_host "$socket" connect 0.0.0.0 8080 ask)" name=web
	done
	for socket in tcp6 udp6; do
		expect_contains "$(on_host "$socket" connect :: 8080 ask)" name=web
	done
	expect_contains "$(on_host udp4 sendto 0.0.0.0 8080 recvfrom)" name=web
	expect_contains "$(on_host udp6 sendto 0.0.0.0 8080 recvfrom)" name=web
	expect_contains "$(on_host udp6 sendto :: 8080 recvfrom)" name=web
}

# the container sees the host's address towards it, with both families, on a bridge and with ptp
test_localhost_source() {
	needs_cgroup
	local name address4 address6 socket
	container_start bridged bridge -p 8080:80/tcp -p 8080:80/udp
	container_start routed ptp -p 8081:80/tcp -p 8081:80/udp
	for name in bridged:8080 routed:8081; do
		address4=$(host_towards "$(address4 "${name%:*}")")
		address6=$(host_towards "$(address6 "${name%:*}")")
		expect_local 127.0.0.1 "${name#*:}" "${name%:*}" "$address4"
		for socket in tcp4 tcp6; do
			expect_connected $socket "$host4" "${name#*:}" "${name%:*}" "$address4"
		done
		# A connected UDP socket has the address that it asks.
		expect_connected udp4 "$host4" "${name#*:}" "${name%:*}" "$host4"
		expect_datagrams udp4 "$host4" "${name#*:}" "${name%:*}" "$address4"
		expect_local ::1 "${name#*:}" "${name%:*}" "[$address6]"
	done
}

# ports that are not mapped stay the host's own, also if the container uses that number inside, and so
# does UDP where TCP is mapped; nor does a mapping apply to a server elsewhere with the same port
test_localhost_other_ports() {
	web_start bridge -p 8080:80/tcp -p 8080:80/udp -p 8082:80/tcp -p 8083:80/udp
	serve_on_host 9999
	serve_on_host 80
	serve_on_host 8083
	serve_in server 8080
	expect_local 127.0.0.1 9999 host 127.0.0.1
	expect_local "$host4" 9999 host "$host4"
	expect_local ::1 9999 host "[::1]"
	expect_local 127.0.0.1 80 host 127.0.0.1
	expect_not_local 127.0.0.1 8081
	expect_not_local ::1 8081
	expect_answer host tcp "$(address4 web)" 80 web
	expect_answer host udp "$(address4 web)" 80 web
	expect_connected tcp4 127.0.0.1 8082 web
	expect_lines "$(on_host udp4 connect 127.0.0.1 8082 ask)" "connect ok" \
		"ask: Connection refused"
	expect_connected tcp4 127.0.0.1 8083 host
	expect_connected udp4 127.0.0.1 8083 web
	expect_local "$server4" 8080 server "$host4_second"
	expect_local "$server6" 8080 server "[$host6_second]"
}

# other containers on the bridge and clients outside still reach the ports, and a container's own
# 127.0.0.1 and ::1 stay its own, whatever is mapped; a process in another network namespace of the same
# cgroup is not affected
test_localhost_other_namespaces() {
	web_start
	container_start near bridge -p 8081:80/tcp -p 8081:80/udp
	expect_answers client "$host4" 8080 web "$client4"
	expect_answers client "$host6" 8081 near "$client6"
	expect_answers near "$host4" 8080 web "$(address4 near)"
	expect_answers web "$host4" 8080 web
	expect_local 127.0.0.1 8081 near
	local who
	for who in web near client; do
		expect_not_from "$who" 127.0.0.1 8080
		expect_not_from "$who" ::1 8080
		serve_in "$who" 8080 "own-$who"
		expect_answers "$who" 127.0.0.1 8080 "own-$who" 127.0.0.1
		expect_answers "$who" ::1 8080 "own-$who" ::1
	done
	namespace_add alone
	in_namespace alone ip address add "$host4/32" dev lo
	serve_in alone 8080
	expect_answers alone "$host4" 8080 alone
	expect_local 127.0.0.1 8080 web
}

# hostIP 127.0.0.1 and ::1: reachable from the host only, and each at that address only
test_localhost_only() {
	web_start bridge -p 127.0.0.1:8080:80/tcp -p 127.0.0.1:8080:80/udp \
		-p '[::1]:8080:80/tcp' -p '[::1]:8080:80/udp' -p 127.0.0.2:8081:80/tcp -p 127.0.0.2:8081:80/udp
	container_start near bridge
	local address
	expect_local 127.0.0.1 8080 web
	expect_local ::1 8080 web
	for address in 127.0.0.2 "$host4" "$bridge4" "$host6" "$bridge6"; do
		expect_not_local "$address" 8080
	done
	for address in "$host4" "$host6" 127.0.0.1 ::1; do expect_not_from client "$address" 8080; done
	for address in "$bridge4" "$host4" "$bridge6"; do expect_not_from near "$address" 8080; done
	expect_local 127.0.0.2 8081 web
	for address in 127.0.0.1 ::1 "$host4"; do expect_not_local "$address" 8081; done
	container_check web bridge
}

# forge_loopback NAMESPACE HOST-INTERFACE OWN4 OWN6: with source port 7001, every combination
forge_loopback() {
	local port protocol pair
	for port in 8080 8081; do
		for protocol in tcp udp; do
			for pair in "$3 127.0.0.1" "127.0.0.1 127.0.0.1" "127.0.0.1 $host4" \
				"127.0.0.1 $bridge4" "$4 ::1" "::1 ::1" "::1 $host6" "::1 $bridge6"; do
				forge "$1" "$2" "$protocol" "${pair% *}" 7001 "${pair#* }" "$port"
			done
		done
	done
}

# packets with a loopback source or destination from the wire, or from another container on the
# bridge, reach no container, neither with hostIP 127.0.0.1 nor without, whatever sysctls are set
test_localhost_forged() {
	web_start bridge -p 127.0.0.1:8080:80/tcp -p 127.0.0.1:8080:80/udp -p 8081:80/tcp \
		-p 8081:80/udp -p '[::1]:8080:80/udp'
	container_start near bridge
	sysctl -qw net.ipv4.conf.{all,eth0,cni0}.{rp_filter=0,route_localnet=1}
	capture_start web web eth0 "port 80"
	forge_loopback client eth0 "$client4" "$client6"
	forge_loopback near cni0 "$(address4 near)" "$(address6 near)"
	forge client eth0 udp "$client4" 7002 "$host4" 8081
	local seen
	seen=$(capture_stop web)
	expect_contains "$seen" 7002
	case $seen in *7001*) fail "a loopback address was taken from the wire: $seen" ;; esac
}

# a mapping of one address takes precedence over one of any address, loopback and other, IPv4 and
# IPv6
test_localhost_specific() {
	web_start
	container_start two bridge -p 127.0.0.2:8080:80/tcp -p 127.0.0.2:8080:80/udp
	container_start three bridge -p "$host4:8080:80/tcp" -p "$host4:8080:80/udp" \
		-p '[::1]:8080:80/tcp' -p '[::1]:8080:80/udp'
	expect_local 127.0.0.1 8080 web
	expect_local 127.0.0.2 8080 two
	expect_local "$host4" 8080 three
	expect_local ::1 8080 three
	expect_local "$host6" 8080 web
	container_remove two bridge
	container_remove three bridge
	expect_local 127.0.0.2 8080 web
	expect_local ::1 8080 web
}

# containers with one family are reached at that family's addresses; hostIP 0.0.0.0 and :: mean one
# family, for the host too; where the container does not listen, it is refused, as by any other host
test_localhost_single_stack() {
	conflist four bridge "$only_ipv4"
	conflist six bridge "$only_ipv6"' | .name = "six" | .plugins[0].bridge = "cni6"'
	web_start four
	container_start six six -p 8081:80/tcp -p 8081:80/udp
	expect_local 127.0.0.1 8080 web
	expect_local "$host4" 8080 web
	expect_not_local ::1 8080
	expect_local ::1 8081 six
	expect_local "$host6" 8081 six
	expect_not_local 127.0.0.1 8081
	conflist both bridge "$other_network"
	container_start dual both -p 0.0.0.0:8082:80/tcp -p 0.0.0.0:8082:80/udp -p '[::]:8083:80/tcp' \
		-p '[::]:8083:80/udp' -p 8084:81/tcp -p 8084:81/udp
	expect_local 127.0.0.1 8082 dual
	expect_local ::1 8083 dual
	expect_not_local ::1 8082
	expect_not_local 127.0.0.1 8083
	local address
	for address in 127.0.0.1 "$host4" ::1; do expect_not_local "$address" 8084; done
}

# with "localhost": false the host's own processes reach what listens on the host itself; others
# reach the port; also for a mapping of one address, where another container has the other addresses
test_localhost_off() {
	conflist off bridge "$(with_ours '{"localhost": false}')"
	web_start off
	container_start near bridge -p 8081:80/tcp -p 8081:80/udp
	local address
	for address in 127.0.0.1 ::1 "$host4" "$host6"; do expect_not_local "$address" 8080; done
	serve_on_host 8080
	expect_local 127.0.0.1 8080 host 127.0.0.1
	expect_local ::1 8080 host "[::1]"
	expect_answers client "$host4" 8080 web "$client4"
	expect_local 127.0.0.1 8081 near
	container_start all bridge -p 8082:80/tcp -p 8082:80/udp
	container_start one off -p "$host4:8082:80/tcp" -p "$host4:8082:80/udp"
	expect_not_local "$host4" 8082
	expect_local "$host4_second" 8082 all
	expect_local 127.0.0.1 8082 all
	expect_answers client "$host4" 8082 one "$client4"
}

# an address that the host gets later is reached after the next ADD, CHECK or attach; one that it
# loses is not the host's any more
test_localhost_addresses_change() {
	web_start
	ip address add 203.0.113.5/32 dev eth1
	container_check web bridge
	expect_local 203.0.113.5 8080 web
	ip address del 203.0.113.5/32 dev eth1
	in_namespace server ip address add 203.0.113.5/32 dev eth0
	ip route add 203.0.113.5 via "$server4"
	serve_in server 8080
	"$build/bpf-portmap" attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	expect_local 203.0.113.5 8080 server "$host4_second"
}

# at excluded addresses the host's processes reach what listens on the host itself; sourceRanges apply to
# clients elsewhere: the host itself reaches the port
test_localhost_excluded() {
	local address
	conflist excluded bridge "$(with_ours "{\"excludeCIDRs\": [\"$host4_second/32\", \"127.9.0.0/16\"]}")"
	ip link add kube-ipvs0 up type bridge
	ip address add 10.96.0.10/32 dev kube-ipvs0
	ip address add 2001:db8:96::10/128 dev kube-ipvs0 nodad
	web_start excluded
	serve_on_host 8080
	expect_local 10.96.0.10 8080 host
	expect_local 2001:db8:96::10 8080 host
	expect_local "$host4_second" 8080 host
	expect_local 127.9.9.9 8080 host
	expect_local "$host4" 8080 web
	expect_local 127.0.0.1 8080 web
	conflist ranges bridge "$(with_ours '{"sourceRanges": ["203.0.113.0/24", "2001:db8:9::/64"]}')"
	container_start ranges ranges -p 8081:80/tcp -p 8081:80/udp
	for address in 127.0.0.1 "$host4" ::1; do expect_local "$address" 8081 ranges; done
	expect_not_from client "$host4" 8081
}

# a socket that is bound to an address of the host, or to a port, keeps both; one that is bound to a
# loopback address is translated at lo, also where a process of the host listens; a datagram whose source
# address is set by a control message
test_localhost_bound() {
	web_start
	expect_lines "$(on_host tcp4 bind "$host4" 5001 connect 127.0.0.1 8080 names ask)" \
		"bind ok" "connect ok" "peer=127.0.0.1:8080 own=$host4:5001" \
		"name=web client=$host4:5001 *"
	expect_lines "$(on_host tcp4 bind 0.0.0.0 5002 connect 127.0.0.1 8080 ask)" \
		"bind ok" "connect ok" "name=web client=$bridge4:5002 *"
	expect_lines "$(on_host tcp6 bind :: 5003 connect ::1 8080 ask)" \
		"bind ok" "connect ok" "name=web client=\\[$bridge6]:5003 *"
	expect_lines "$(on_host udp4 bind "$host4" 5004 sendto "$host4" 8080 recvfrom)" \
		"bind ok" "sendto ok" "name=web client=$host4:5004 * from=$host4:8080"
	expect_lines "$(on_host udp6 bind :: 5005 sendto 127.0.0.1 8080 recvmsg)" \
		"bind ok" "sendto ok" "name=web client=$bridge4:5005 * from=\\[::ffff:127.0.0.1]:8080"
	expect_lines "$(on_host udp4 sendmsg-from "$host4" 127.0.0.1 8080 recvmsg)" \
		"sendmsg-from ok" "name=web client=$host4:* from=127.0.0.1:8080"
	expect_lines "$(on_host udp6 sendmsg-from "$host4" 127.0.0.1 8080 recvmsg)" \
		"sendmsg-from ok" "name=web client=$host4:* from=\\[::ffff:127.0.0.1]:8080"
	expect_lines "$(on_host tcp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 names ask)" \
		"bind ok" "connect ok" "peer=127.0.0.1:8080 own=127.0.0.1:*" "name=web client=$bridge4:*"
	expect_lines "$(on_host tcp6 bind ::1 0 connect ::1 8080 ask)" \
		"bind ok" "connect ok" "name=web client=\\[$bridge6]:*"
	expect_lines "$(on_host tcp6 bind 127.0.0.1 0 connect 127.0.0.1 8080 ask)" \
		"bind ok" "connect ok" "name=web client=$bridge4:*"
	expect_lines "$(on_host udp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 names ask)" \
		"bind ok" "connect ok" "peer=127.0.0.1:8080 own=127.0.0.1:*" "name=web client=$bridge4:*"
	expect_counted local_by_loopback 4 local_by_loopback
	serve_on_host 8080
	expect_lines "$(on_host udp4 bind 127.0.0.1 0 sendto 127.0.0.1 8080 recvfrom)" \
		"bind ok" "sendto ok" "name=web client=$bridge4:* from=127.0.0.1:8080"
	expect_lines "$(on_host udp6 bind ::1 0 sendto ::1 8080 recvfrom)" \
		"bind ok" "sendto ok" "name=web client=\\[$bridge6]:* from=\\[::1]:8080"
	expect_lines "$(on_host udp6 bind 127.0.0.1 0 sendto 127.0.0.1 8080 recvfrom)" \
		"bind ok" "sendto ok" "name=web client=$bridge4:* from=\\[::ffff:127.0.0.1]:8080"
	expect_lines "$(on_host tcp4 bind 127.0.0.1 0 connect 127.0.0.1 8080 ask)" \
		"bind ok" "connect ok" "name=web *"
	expect_lines "$(on_host udp4 sendmsg-from 127.0.0.1 127.0.0.1 8080 recvmsg)" \
		"sendmsg-from ok" "name=web client=$bridge4:* from=127.0.0.1:8080"
	expect_lines "$(on_host udp6 sendmsg-from 127.0.0.1 127.0.0.1 8080 recvmsg)" \
		"sendmsg-from ok" "name=web client=$bridge4:* from=\\[::ffff:127.0.0.1]:8080"
	expect_lines "$(on_host udp6 sendmsg-from ::1 ::1 8080 recvmsg)" \
		"sendmsg-from ok" "name=web client=\\[$bridge6]:* from=\\[::1]:8080"
}

# one UDP socket alternates between mapped ports of two containers, at several addresses, and the
# host's own; is connected several times, sends to another address meanwhile, and is disconnected (it is
# bound to 127.0.0.1 by then); uses a mapped port, and then the container itself, whose address it sees. Many at a time: each process sees its own peer
test_localhost_many_peers() {
	web_start
	container_start near bridge -p 8081:80/tcp -p 8081:80/udp
	serve_on_host 9999
	serve_in server 9000
	local round own steps=() expected=() number pids=()
	for round in 127.0.0.1:8080=web 127.0.0.1:8081=near 127.0.0.1:9999=host "$host4":8080=web \
		"$server4":9000=server 127.0.0.5:8080=web 127.0.0.1:8080=web; do
		local address=${round%%:*} port=${round#*:}
		steps+=(sendto "$address" "${port%=*}" recvmsg)
		expected+=("sendto ok" "name=${port#*=} * from=$address:${port%=*}")
	done
	expect_lines "$(on_host udp4 "${steps[@]}")" "${expected[@]}"
	own=$(address4 web)
	for _ in 1 2; do # a socket's second peer is the first one's container
		expect_lines "$(on_host udp4 connect "$bridge4" 8080 names ask connect "$own" 80 names ask \
			connect "$bridge4" 8080 ask)" \
			"connect ok" "peer=$bridge4:8080 *" "name=web * from=$bridge4:8080" \
			"connect ok" "peer=$own:80 *" "name=web * from=$own:80" \
			"connect ok" "name=web * from=$bridge4:8080"
	done
	expect_lines "$(on_host udp6 sendto ::1 8080 recvmsg sendto "$(address6 web)" 80 recvmsg \
		sendto 127.0.0.1 8080 recvmsg sendto "$own" 80 recvmsg)" \
		"sendto ok" "name=web * from=\\[::1]:8080" \
		"sendto ok" "name=web * from=\\[$(address6 web)]:80" \
		"sendto ok" "name=web * from=\\[::ffff:127.0.0.1]:8080" \
		"sendto ok" "name=web * from=\\[::ffff:$own]:80"
	expect_lines "$(on_host udp4 connect 127.0.0.1 8080 names ask connect 127.0.0.3 8080 names ask \
		connect 127.0.0.1 9999 names ask unconnect names connect "$host4" 8081 names ask)" \
		"connect ok" "peer=127.0.0.1:8080 *" "name=web * from=127.0.0.1:8080" \
		"connect ok" "peer=127.0.0.3:8080 *" "name=web * from=127.0.0.3:8080" \
		"connect ok" "peer=127.0.0.1:9999 *" "name=host * from=127.0.0.1:9999" \
		"unconnect ok" "peer=none *" \
		"connect ok" "peer=$host4:8081 *" "name=near * from=$host4:8081"
	expect_lines "$(on_host udp4 connect 127.0.0.1 8080 ask sendto 127.0.0.1 8080 recvmsg)" \
		"connect ok" "name=web * from=127.0.0.1:8080" \
		"sendto ok" "name=web * from=127.0.0.1:8080"
	for number in $(seq 40); do
		expect_connected "$([ $((number % 2)) = 0 ] && echo tcp4 || echo udp4)" \
			"127.0.0.$number" $((8080 + number % 3 / 2)) \
			"$([ $((number % 3)) = 2 ] && echo near || echo web)" &
		pids+=($!)
	done
	for number in "${pids[@]}"; do wait "$number" || fail "one of them"; done
}

# a server of the host answers a client of the host whose port happens to be mapped; and a process that
# binds such a port does not receive what is meant for the container: a conversation with the container
# continues
test_localhost_client_with_mapped_port() {
	web_start
	serve_on_host 9999
	local round
	for round in 1 2; do
		expect_lines "$(on_host udp4 bind 127.0.0.1 8080 sendto 127.0.0.1 9999 recvmsg)" \
			"bind ok" "sendto ok" "name=host client=127.0.0.1:8080 * from=127.0.0.1:9999"
		expect_lines "$(on_host udp4 bind 0.0.0.0 8080 sendto "$host4" 9999 recvmsg)" \
			"bind ok" "sendto ok" "name=host client=$host4:8080 * from=$host4:9999"
		expect_lines "$(on_host udp6 bind ::1 8080 connect ::1 9999 ask)" \
			"bind ok" "connect ok" "name=host client=\\[::1]:8080 * from=\\[::1]:9999"
	done
	expect_lines "$(on_host tcp4 bind 127.0.0.1 8080 connect 127.0.0.1 9999 ask)" \
		"bind ok" "connect ok" "name=host client=127.0.0.1:8080 *"
	expect_lines "$(on_host udp6 bind :: 8080 sendto "$host6" 9999 recvmsg)" \
		"bind ok" "sendto ok" "name=host client=\\[$host6]:8080 * from=\\[$host6]:9999"
	expect_local 127.0.0.1 8080 web
	mkfifo /run/go
	on_host udp4 bind 0.0.0.0 7777 sendto 127.0.0.1 8080 recvfrom wait recvfrom \
		sendto 127.0.0.1 8080 recvfrom </run/go >/run/said &
	local victim=$! go
	exec {go}>/run/go
	wait_until 5 file_says name=web /run/said
	expect_lines "$(on_host udp4 bind 127.0.0.1 8080 sendto 127.0.0.1 7777)" "bind ok" "sendto ok"
	echo >&"$go"
	wait "$victim"
	expect_lines "$(cat /run/said)" "bind ok" "sendto ok" "name=web * from=127.0.0.1:8080" \
		"* from=127.0.0.1:8080" "sendto ok" "name=web * from=127.0.0.1:8080"
}

# a process whose sockets send to mapped ports by the ten thousand takes nothing from another one's, TCP or
# UDP: it goes on to see the address that it has asked for; nor does one that sends to more of them than a
# socket remembers, which sees it of the last ones
test_localhost_of_many_sockets() {
	local port socket victims=()
	web_start
	container_add ports bridge $(for port in {8101..8120}; do echo "-p $port:$port/udp"; done)
	for socket in tcp4 udp4; do mkfifo "/run/go_$socket"; done
	on_host tcp4 connect 127.0.0.1 8080 wait names ask </run/go_tcp4 >/run/said_tcp4 &
	victims+=($!)
	on_host udp4 sendto 127.0.0.1 8080 wait recvfrom </run/go_udp4 >/run/said_udp4 &
	victims+=($!)
	exec {go_tcp4}>/run/go_tcp4 {go_udp4}>/run/go_udp4
	wait_until 5 file_says ok /run/said_tcp4 || fail "TCP: $(cat /run/said_tcp4)"
	wait_until 5 file_says ok /run/said_udp4 || fail "UDP: $(cat /run/said_udp4)"
	expect_lines "$(on_host udp4 others 40000 127.0.0.1 8101)" "others ok"
	echo >&"$go_tcp4"
	echo >&"$go_udp4"
	wait "${victims[@]}"
	expect_lines "$(cat /run/said_tcp4)" "connect ok" "peer=127.0.0.1:8080 *" "name=web *"
	expect_lines "$(cat /run/said_udp4)" "sendto ok" "name=web * from=127.0.0.1:8080"
	on_host udp4 $(for port in {8101..8120} 8080; do echo sendto 127.0.0.1 "$port"; done) \
		recvfrom >/run/said
	expect_in /run/said 'from=127.0.0.1:8080'
}

# a socket of each kind, one after another; TCP fast open, and a non-blocking connect
test_localhost_kinds() {
	web_start
	expect_connected tcp4 127.0.0.1 8080 web
	expect_connected tcp6 127.0.0.1 8080 web
	expect_connected tcp6 ::1 8080 web
	expect_connected udp4 127.0.0.1 8080 web
	expect_connected udp6 127.0.0.1 8080 web
	expect_connected udp6 ::1 8080 web
	sysctl -qw net.ipv4.tcp_fastopen=1
	expect_lines "$(on_host tcp4 fast-open 127.0.0.1 8080 names receive)" \
		"fast-open ok" "peer=127.0.0.1:8080 *" "name=web *"
	expect_lines "$(on_host tcp6 fast-open ::1 8080 names receive)" \
		"fast-open ok" "peer=\\[::1]:8080 *" "name=web *"
	expect_lines "$(on_host tcp4 connect-nonblocking 127.0.0.1 8080 names ask)" \
		"connect-nonblocking ok" "peer=127.0.0.1:8080 *" "name=web *"
	expect_lines "$(on_host tcp6 connect-nonblocking 127.0.0.1 8080 names ask)" \
		"connect-nonblocking ok" "peer=\\[::ffff:127.0.0.1]:8080 *" "name=web *"
}

# an established connection ends when its container is removed, and new ones are refused; new ones
# reach the next container with that port, also when it begins again; so does an unconnected UDP socket
test_localhost_container_gone() {
	web_start
	conversation_open old host tcp 127.0.0.1 8080
	conversation_open datagrams host udp 127.0.0.1 8080 --timeout 300
	expect_says old web
	expect_says datagrams web
	container_remove web bridge
	expect_not_local 127.0.0.1 8080
	expect_not_local ::1 8080
	case $(say old) in *name=*) fail "there was an answer" ;; esac
	local round
	for round in 1 2; do
		web_start
		expect_local 127.0.0.1 8080 web
		expect_local ::1 8080 web
		container_remove web bridge
	done
	container_start other bridge -p 8080:80/tcp -p 8080:80/udp
	expect_local 127.0.0.1 8080 other
	wait_until 5 says_now datagrams other || fail "the answer is: $(say datagrams)"
	expect_contains "$(say datagrams)" "from=127.0.0.1:8080"
	container_remove other bridge
	serve_on_host 8080
	expect_local 127.0.0.1 8080 host
}

# says_now CONVERSATION NAME: whether NAME answers now
says_now() {
	case $(say "$1") in *"name=$2 "*) ;; *) return 1 ;; esac
}
