# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# world.sh - the network in which a test runs, and helpers to change it.
#
#   client --------- eth0 [ this namespace plays the host ] eth1 --------- server
#   192.0.2.10       192.0.2.1                        198.51.100.1         198.51.100.10
#   2001:db8:1::10   2001:db8:1::1                    2001:db8:2::1        2001:db8:2::10
#                            cni0 ... | veth ...
#                                containers
#
# The test itself runs in the host's namespace; every other one is a namespace in /run/netns. The
# client has a route to everything behind the host, the server only one to the client's network, so
# packets that leave without masquerade have no answer from there.

project=${BASH_SOURCE[0]%/tests/net/world.sh} # of tests/net/run; others come by other ways
[[ $project = /* && $project != */../* ]] || project=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
build=${BUILD:-$project/build}
peer=$build/tests/peer
# SCTP of the kernel if it has any, else over raw sockets
sctp=$peer
[ -e /proc/net/sctp ] || sctp=$build/tests/sctp
plugin=${PLUGIN:-bpf-portmap}
cnirun=${CNIRUN:-$build/cnirun}
reference_plugins=${REFERENCE_PLUGINS:-/usr/lib/cni}
pins=/sys/fs/bpf/bpf-portmap
cgroup=/sys/fs/cgroup # the test's root of cgroup2, with its own processes only

host4=192.0.2.1 host6=2001:db8:1::1
client4=192.0.2.10 client6=2001:db8:1::10
host4_second=198.51.100.1 host6_second=2001:db8:2::1
server4=198.51.100.10 server6=2001:db8:2::10
bridge4=10.88.0.1 bridge6=fd00:88::1

export LC_ALL=C PATH=$build/tools:/usr/sbin:/usr/bin:/sbin:/bin
unset PREFIX binary # plugin_run reads them; `make PREFIX=` sets the first for all that it starts
export CNI_PATH=/run/cni-plugins
export GOMAXPROCS=1 # plugins and gojq start fewer threads

world_make() {
	local ours=$build/bpf-portmap host_lines='' peer_lines client_lines
	[ -x "$ours" ] || ours=
	"$build/tests/world" begin "${CGROUP_OF_RUN:+$cgroup}" "$reference_plugins"/* ${ours:+"$ours"} client server
	[ -z "${LENT:-}" ] || "$build/tests/loaded" lend "$LENT" "$pins" \
		${LENT_AT_SOCKETS:+${CGROUP_OF_RUN:+"$cgroup"}}
	network_plan client eth0 "$host4" "$host6" "$client4" "$client6" \
		"default via $host4" "default via $host6"
	client_lines=$peer_lines
	network_plan server eth1 "$host4_second" "$host6_second" "$server4" "$server6" \
		"192.0.2.0/24 via $host4_second" "2001:db8:1::/64 via $host6_second"
	ip -batch - <<<"$host_lines"
	ip -n client -batch - <<<"$client_lines"
	ip -n server -batch - <<<"$peer_lines"
	conflists bridge ptp bridge-bandwidth
}

# loaded_make: loads the programs, with the smallest table of flows, and pins them in the directory
# $KEEP for the tests that follow.
loaded_make() {
	conflist small bridge "$(with_ours '{flowEntries: 16384}')"
	container_add first small -p 8080:80/tcp
	container_remove first small
	"$build/tests/loaded" keep "$pins" "$KEEP"
	devices_remove
}

# No packet, of a connection that outlives its process, passes the programs any more. A group of
# devices is removed at once, which takes no longer than one device.
devices_remove() {
	local path
	for path in /sys/class/net/*; do
		[ "${path##*/}" = lo ] || echo "link set ${path##*/} group 1"
	done >/run/devices
	[ -s /run/devices ] || return 0
	echo link delete group 1 >>/run/devices
	ip -batch /run/devices
}

# For tests of programs attached to cgroups; cgroups.sh makes the cgroups.
needs_cgroup() { has_cgroup || skip "there is no cgroup2"; }
has_cgroup() { [ -e "$cgroup/cgroup.procs" ]; }

# namespace_add NAME...
namespace_add() { "$build/tests/world" add "$@"; }

# Not by `ip netns exec`, which mounts another /sys and hides the bpffs.
in_namespace() { "$build/tests/world" in "$@"; }

# network_make NAMESPACE HOST-INTERFACE HOST4 HOST6 PEER4 PEER6 [ROUTE...]: the ROUTEs are the
# peer's; the namespace is made if it is not there. The peer's neighbours are permanent, because a
# new link answers neighbour solicitations only after up to a second. Few processes, because every
# test begins with this.
network_make() {
	local host_lines='' peer_lines
	[ -e "/run/netns/$1" ] || namespace_add "$1"
	network_plan "$@"
	ip -batch - <<<"$host_lines"
	ip -n "$1" -batch - <<<"$peer_lines"
}

# network_plan: adds to $host_lines, and sets $peer_lines to, what ip(8) reads.
network_plan() {
	local name=$1 interface=$2 host4=$3 host6=$4 peer4=$5 peer6=$6 host_mac peer_mac routes=
	shift 6
	[ $# = 0 ] || printf -v routes 'route add %s\n' "$@"
	networks=$((${networks:-0} + 1))
	printf -v host_mac '02:00:c0:00:%02x:01' "$networks"
	printf -v peer_mac '02:00:c0:00:%02x:02' "$networks"
	host_lines+="link add $interface address $host_mac type veth peer name eth0 address $peer_mac netns $name
		address add $host4/24 dev $interface
		address add $host6/64 dev $interface nodad
		link set $interface up
		neighbour replace $peer4 lladdr $peer_mac dev $interface nud permanent
		neighbour replace $peer6 lladdr $peer_mac dev $interface nud permanent
	"
	peer_lines="address add $peer4/24 dev eth0
		address add $peer6/64 dev eth0 nodad
		link set eth0 up
		neighbour replace $host4 lladdr $host_mac dev eth0 nud permanent
		neighbour replace $host6 lladdr $host_mac dev eth0 nud permanent
		$routes"
}

# conflist NAME BASE FILTER: /run/conf/NAME.conflist is conf/BASE.conflist through a jq filter;
# with "." it is an exact copy. If FAST_PATH is set in the environment our entry has that fastPath,
# unless the filter sets another one.
conflist() {
	local name=$1 base=$2 filter=$3
	[ -z "${FAST_PATH:-}" ] || filter="$(fast_path_filter) | $filter"
	if [ "$plugin" != bpf-portmap ]; then
		jq "($filter) | $as_reference" "$project/conf/$base.conflist" >/run/conf/"$name".conflist
	elif [ "$filter" = . ]; then
		cp "$project/conf/$base.conflist" /run/conf/"$name".conflist
	else
		jq "$filter" "$project/conf/$base.conflist" >/run/conf/"$name".conflist
	fi
}

# conflists NAME...: those of conf/, by their own names
conflists() {
	local name text
	for name; do
		if [ "$plugin${FAST_PATH:-}" = bpf-portmap ]; then
			IFS= read -rd '' text <"$project/conf/$name.conflist" || true # all of it, without a process
			printf %s "$text" >"/run/conf/$name.conflist"
		else
			conflist "$name" "$name" .
		fi
	done
}

as_reference='(.plugins[] | select(.type == "bridge" or .type == "ptp")).ipMasq = true |
	(.plugins[] | select(.type == "bpf-portmap")) |= (.type = "portmap" | del(.ipMasq))'

# jq filters. only_main: the list without our plugin; other_network, third_network: the list on a
# second and a third bridge; with_ours KEYS: keys of our entry.
only_main='.plugins |= map(select(.type != "bpf-portmap"))'
other_network='.name = "other" | .plugins[0].bridge = "cni1" |
	.plugins[0].ipam.ranges = [[{"subnet":"10.87.0.0/16"}],[{"subnet":"fd00:87::/64"}]]'
third_network='.name = "third" | .plugins[0].bridge = "cni2" |
	.plugins[0].ipam.ranges = [[{"subnet":"10.86.0.0/16"}],[{"subnet":"fd00:86::/64"}]]'
only_ipv4='.plugins[0].ipam |= (.ranges |= .[:1] | .routes |= .[:1])'
only_ipv6='.plugins[0].ipam |= (.ranges |= .[1:] | .routes |= .[1:])'

with_ours() { echo "(.plugins[] | select(.type == \"bpf-portmap\")) |= (. + $1)"; }

fast_path_filter() {
	[ -n "${FAST_PATH:-}" ] && with_ours "{\"fastPath\": \"$FAST_PATH\"}" || echo .
}

# container_add NAME CONFLIST [-p ...]: makes a namespace and runs ADD; container_start also starts
# a server in it.
container_add() {
	local name=$1 list=$2 said
	shift 2
	[ -e "/run/netns/$name" ] || namespace_add "$name"
	said=/run/results/$name.err
	if ! runtime add "$list" "$name" "$@" >/run/results/"$name" 2>"$said"; then
		bridge_was_early "$said" && runtime add "$list" "$name" "$@" >/run/results/"$name" 2>"$said" ||
			fail "ADD of $name: $(cat "$said" /run/results/"$name")"
	fi
	[ ! -s "$said" ] || cat "$said" >&2
	wait_until 3 addresses_usable || true
}

# The reference's bridge adds the IPv6 route by its gateway before the kernel of a very busy machine
# has made the address's own route.
bridge_was_early() { grep -q 'type="bridge".*failed to add route.*no route to host' "$1"; }

# A new bridge or veth has a usable IPv6 address only after a while on a busy machine. Of a veth,
# iflink is the number of its other end.
addresses_usable() {
	local flags name link number
	while read -r _ _ _ _ flags name; do
		[ $((0x$flags & 0x40)) != 0 ] || continue
		[ ! -e "/sys/class/net/$name/bridge" ] || return 1
		read -r link <"/sys/class/net/$name/iflink" || continue
		read -r number <"/sys/class/net/$name/ifindex" || continue
		[ "$link" = "$number" ] || return 1
	done 2>/dev/null </proc/net/if_inet6
}

# address6_add ADDRESS/LENGTH DEVICE: an address of the host that neighbours find at once: a queue of the
# kernel joins the group to which they send their solicitations, and on a busy machine that is late.
address6_add() {
	local group
	ip address add "$1" dev "$2" nodad
	group=${1%/*}
	printf -v group '%-15s ff0200000000000000000001ff00%04x' "$2" "0x${group##*:}"
	wait_until 5 file_says "$group" /proc/net/igmp6 || fail "$2 does not listen to solicitations of $1"
}

container_del() {
	runtime del "$2" "$1" || fail "DEL of $1"
}

container_check() { runtime check "$2" "$1"; }

# Removes a container as a runtime does: DEL, then the namespace.
container_remove() {
	container_del "$1" "$2"
	ip netns delete "$1"
}

container_start() {
	container_add "$@"
	serve_in "$1" 80
}

# runtime VERB CONFLIST NAMESPACE [OPTION...]
runtime() {
	local verb=$1 list=$2 name=$3
	shift 3
	"$cnirun" "$verb" /run/conf/"$list".conflist "$name" --id "$name" \
		--timeout $((120 * ${SLOWER:-1})) "$@"
}

# serve_in NAMESPACE PORT [NAME]: TCP and UDP on every address, IPv4 and IPv6
serve_in() {
	in_namespace "$1" "$peer" serve both any "$2" --name "${3:-$1}" --background
}

# file_serve NAMESPACE PORT [BYTES]: an HTTP server with a file, of 1 MB, and scripts that say the sum
# and the number of the bytes that they receive
file_serve() {
	if [ ! -e /run/www ]; then
		mkdir -p /run/www/cgi-bin
		head -c "${3:-1000000}" /dev/urandom >/run/www/file
		printf '#!/bin/sh\necho\nmd5sum\n' >/run/www/cgi-bin/sum
		printf '#!/bin/sh\necho\nwc -c\n' >/run/www/cgi-bin/count
		chmod +x /run/www/cgi-bin/*
	fi
	in_namespace "$1" busybox httpd -p "$2" -h /run/www
}

# One socket for each address, because a socket for any address would announce all of them to its
# peer (multi-homing), which fails behind every NAT.
serve_sctp_in() {
	local address addresses=any
	[ "$sctp" != "$peer" ] || addresses="$(address4 "$1") $(address6 "$1")"
	for address in $addresses; do
		in_namespace "$1" "$sctp" serve sctp "$address" "$2" --name "${3:-$1}" --background
	done
}

# second_host_make: a second host with a container web2 and a client outside2, on the same bpffs
second_host_make() {
	[ -e /run/netns/host2 ] || namespace_add host2
	namespace_add outside2 web2
	ip link add up2 netns host2 type veth peer name eth0 netns outside2
	end_make host2 up2 192.0.3.1/24
	end_make outside2 eth0 192.0.3.10/24
	conflist second bridge '.name = "second" | .plugins[0].ipam.ranges =
		[[{"subnet":"10.86.0.0/16"}],[{"subnet":"fd00:86::/64"}]]'
	in_namespace host2 "$cnirun" add /run/conf/second.conflist web2 --id web2 -p 8080:80/tcp \
		>/run/out 2>&1 || fail "ADD in the second host: $(cat /run/out)"
	serve_in web2 80
}

# source_towards NAME ADDRESS: the source address that routing in the namespace chooses
source_towards() {
	local namespace=(-n "$1")
	[ "$1" != host ] || namespace=()
	ip "${namespace[@]}" -o route get "$2" | sed 's/.* src \([^ ]*\).*/\1/'
}

serve_on_host() {
	"$peer" serve both any "$1" --name host --background
}

# address4 NAME [INTERFACE]: the address of a container's interface
address4() { address_of -4 "$@"; }
address6() { address_of -6 "$@"; }
address_of() {
	local said
	said=$(ip -n "$2" "$1" -o address show dev "${3:-eth0}" scope global)
	[[ ! $said =~ \ inet6?\ ([^/]*) ]] || echo "${BASH_REMATCH[1]}"
}

mac_of() {
	local mac
	read -r mac <"/sys/class/net/$1/address"
	echo "$mac"
}
mac_in() {
	local said
	said=$(ip -n "$1" -o link show "$2")
	[[ ! $said =~ link/ether\ ([^ ]*) ]] || echo "${BASH_REMATCH[1]}"
}

# host_veth CONTAINER [INTERFACE]: the host's end of the veth
host_veth() {
	local said path index
	said=$(ip -n "$1" -o link show "${2:-eth0}")
	[[ $said =~ @if([0-9]+) ]] || return 0
	for path in /sys/class/net/*; do
		! read -r index <"$path/ifindex" 2>/dev/null || [ "$index" != "${BASH_REMATCH[1]}" ] ||
			echo "${path##*/}"
	done
}

reverse_path_loose() {
	local path
	for path in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 2 >"$path"; done
}

bridge_netfilter() {
	[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || skip "the kernel has no br_netfilter"
	sysctl -qw net.bridge.bridge-nf-call-iptables="$1" net.bridge.bridge-nf-call-ip6tables="$1"
}

far4=203.0.113.10 far6=2001:db8:9::10
hop4=10.99.0.2 hop6=2001:db8:8::2

# path_make: client becomes a router, followed by a link with an MTU of 1300, another router, and
# far:
#   far -1500- hop -1300- client -1500- eth0 [ host ]
path_make() {
	local name
	namespace_add hop far
	link_make client middle "10.99.0.1/24 2001:db8:8::1/64" hop eth0 "$hop4/24 $hop6/64"
	link_make hop eth1 "203.0.113.1/24 2001:db8:9::1/64" far eth0 "$far4/24 $far6/64"
	for name in client hop; do
		in_namespace "$name" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	done
	ip_lines client "link set middle mtu 1300" "route replace default via $hop4" \
		"route replace default via $hop6"
	ip_lines hop "link set eth0 mtu 1300" "route add default via 10.99.0.1" \
		"route add default via 2001:db8:8::1"
	ip_lines far "route add default via 203.0.113.1" "route add default via 2001:db8:9::1"
	ip_lines host "route add 203.0.113.0/24 via $client4" "route add 10.99.0.0/24 via $client4" \
		"route add 2001:db8:8::/64 via $client6" "route add 2001:db8:9::/64 via $client6"
	errors_unlimited host client hop far
}

# ip_lines NAMESPACE|host LINE...: what ip(8) reads, by one process
ip_lines() {
	local where=(-n "$1") IFS=$'\n'
	[ "$1" != host ] || where=()
	ip "${where[@]}" -batch - <<<"${*:2}"
}

# link_make NAMESPACE INTERFACE ADDRESSES NAMESPACE INTERFACE ADDRESSES
link_make() {
	ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
	end_make "$1" "$2" $3
	end_make "$4" "$5" $6
}

# end_make NAMESPACE|host INTERFACE ADDRESS...: which is up from now on
end_make() {
	local name=$1 interface=$2 address lines=()
	shift 2
	for address; do lines+=("address add $address dev $interface"); done
	ip_lines "$name" "${lines[@]}" "link set $interface up"
}

tunnel4=203.0.113.1 tunnel6=2001:db8:3::1
office4=203.0.113.10 office6=2001:db8:3::10

# tunnel_make [ARPHRD]: a VPN to another place, whose packets have no Ethernet header: tun0 here, tun0
# in `office`
tunnel_make() {
	namespace_add office
	"$build/tests/tun" tun0 /run/netns/office tun0 "$@"
	end_make host tun0 "$tunnel4/24" "$tunnel6/64"
	end_make office tun0 "$office4/24" "$office6/64"
}

# The kernel sends few errors a second to one peer; here all of them count.
# errors_unlimited NAMESPACE|host...
errors_unlimited() {
	local name run
	for name; do
		run=(in_namespace "$name")
		[ "$name" != host ] || run=()
		"${run[@]}" sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0
	done
}

# Accept what a careful administrator would: established flows, new ones to and from containers.
firewall_strict() {
	nft -f - <<-'RULES'
	table inet strict {
		chain forward {
			type filter hook forward priority filter; policy drop;
			ct state invalid counter drop
			ct state established,related accept
			ct state new ip daddr { 10.86.0.0/15, 10.88.0.0/15 } accept
			ct state new ip saddr { 10.86.0.0/15, 10.88.0.0/15 } accept
			ct state new ip6 daddr fd00::/16 accept
			ct state new ip6 saddr fd00::/16 accept
			counter
		}
	}
	RULES
}

# firewall_marks RULE...: the firewall marks packets before they are routed.
firewall_marks() {
	nft -f - <<-RULES
	table inet marks {
		chain marks {
			type filter hook prerouting priority mangle
			$(printf '%s\n' "$@")
		}
	}
	RULES
}

# zone_set ZONE: all that the host sees is in another of conntrack's zones.
zone_set() {
	nft -f - <<-RULES
	table inet zone {
		chain in { type filter hook prerouting priority raw; ct zone set $1; }
		chain out { type filter hook output priority raw; ct zone set $1; }
	}
	RULES
}

# state_show: what is left of containers, ours and of other plugins: interfaces, qdiscs, programs,
# map entries, pins. The first ADD's permanent part (maps, programs, hooks of uplinks and bridges)
# is in it too; not the programs at sockets, which come with the first ports.
socket_programs='(bind|connect|sendmsg|recvmsg|getpeername)[46]'
state_show() {
	local path kind rest
	for path in /sys/class/net/*; do [ ! -d "$path" ] || echo "${path##*/}"; done
	while read -r _ kind rest; do
		[[ $kind != @(clsact|ingress|tbf) ]] || echo "$kind $rest"
	done < <(tc qdisc show | sort)
	programs_show
	shopt -s globstar dotglob nullglob
	for path in /sys/fs/bpf/**; do [[ $path =~ /$socket_programs$ ]] || echo "$path"; done
	shopt -u globstar dotglob nullglob
	socket_hooks_show | uniq -d
	"$build/tests/tcx" state "$pins" portmaps endpoints attachments interfaces policies slots
}

programs_show() {
	local kind device hook
	"$build/tests/tcx" show
	while read -r _ kind _ _ device _; do
		[[ $kind = @(clsact|ingress) ]] || continue
		for hook in ingress egress; do filters "$device" "$hook" "$device $hook "; done
	done < <(tc qdisc show)
}

# socket_hooks_show [CGROUP]: the programs at the sockets of the test's processes, or of another
# cgroup, sorted: the name of the hook, then the program's
socket_hooks_show() {
	! has_cgroup || "$build/tests/tcx" sockets "${1:-$cgroup}" | sort
}

# attached DEVICE ingress|egress: all programs at a hook, ours and others
attached() {
	"$build/tests/tcx" show "$1" "$2"
	filters "$@"
}
filters() {
	local line
	while read -r line; do
		[[ ! $line =~ \ name\ ([^ ]*)\ tag\  ]] || echo "${3:-}clsact ${BASH_REMATCH[1]}"
	done < <(tc filter show dev "$1" "$2" 2>/dev/null)
}

# strip DEVICE: removes all programs, in whatever way they are attached.
strip() {
	local hook way program
	for hook in ingress egress; do
		attached "$1" "$hook" | while read -r way program; do
			[ "$way" != tcx ] || "$build/tests/tcx" detach "$1" "$hook" "$program"
		done
	done
	tc qdisc del dev "$1" clsact 2>/dev/null || true
}

# detach_ours DEVICE HOOK PROGRAM; detach_once does not look afterwards: it may be attached again
detach_once() { "$build/tests/tcx" detach "$@" || tc filter del dev "$1" "$2"; }
detach_ours() {
	detach_once "$@"
	case $(attached "$1" "$2") in *"$3"*) fail "$3 is still on $1 $2" ;; esac
}

# map_count MAP...: how many entries each has; of `slots`, how many are live
map_count() { "$build/tests/tcx" entries "$pins" "$@"; }

# expect_count NUMBERS MAP [WHAT]: NUMBERS are those of the maps, with a blank between them
expect_count() {
	local seen
	seen=$("$build/tests/tcx" entries "$pins" $2) || fail "$2: cannot be counted"
	[ "$seen" = "$1" ] || fail "$2${3:+ ($3)}: expected '$1', got '$seen'"
}

# map_counted PIN: the first counter of a map that tcx has pinned
map_counted() {
	bpftool -j map dump pinned "$1" | jq -r '.[0].formatted.value // (.[0].value |
		map(ltrimstr("0x")) | reverse | join("") | ascii_downcase | explode |
		reduce .[] as $c (0; . * 16 + (if $c > 96 then $c - 87 else $c - 48 end)))'
}

# counted NAME: a counter of our programs, the sum of all CPUs
counted() { "$build/tests/tcx" counters "$pins/counters" "$1"; }

# How many packets have skipped the IP stack, as the programs count them
fast_packets() {
	local into out
	fast_each_way
	echo $((into + out))
}

# stack_watch: from now on `forwarded tcp|udp|icmp|sctp` prints how many packets of that protocol
# the IP stack has forwarded, whether a firewall dropped them or not; `forwarded connected` prints
# how many TCP packets without SYN, because a SYN may be sent again on a busy machine. The rules do
# not turn conntrack on.
stack_watch() {
	nft -f - <<-'RULES'
	table inet watch {
		counter seen_tcp { }
		counter seen_connected { }
		counter seen_udp { }
		counter seen_icmp { }
		counter seen_sctp { }
		chain forward {
			type filter hook forward priority -400;
			meta l4proto tcp counter name seen_tcp
			tcp flags & syn == 0 counter name seen_connected
			meta l4proto udp counter name seen_udp
			meta l4proto { icmp, ipv6-icmp } counter name seen_icmp
			meta l4proto sctp counter name seen_sctp
		}
	}
	RULES
}

forwarded() { packets_of inet watch "seen_$1"; }

# packets_of FAMILY TABLE COUNTER: of a named counter of nftables; packets_take sets $packets to it.
packets_of() {
	local packets
	packets_take "$@" && echo "$packets"
}
packets_take() {
	local said
	said=$(nft list counter "$@")
	[[ $said =~ packets\ ([0-9]+) ]] && packets=${BASH_REMATCH[1]}
}

# For an administrator who has changed a firewall: flows skip the stack only after it has accepted
# them again.
drop_offload() { "$build/bpf-portmap" drop-offload || fail "drop-offload"; }

# flows_age SECONDS: makes the last packet of each connection through the stack, in both directions,
# so much older. The programs notice it in the next second. As for them, seconds are 32 bits, and a
# difference of two is right also where the machine was booted later than that packet.
flows_age() {
	bpftool -j map dump pinned "$pins/connections" | jq -r --argjson age "$1" '
		def left_stack($way): 112 + 4 * $way;
		def older($way): .formatted.value.left_stack[$way] as $when |
			if $when == 0 then . else reduce range(4) as $byte (.;
				.value[left_stack($way) + $byte] =
					((($when - $age + 4294967296) / pow(256; $byte) | floor) % 256)) end;
		.[] | older(0) | older(1) |
		(.key | map(ltrimstr("0x")) | join(" ")) + " value hex " +
			(.value | map(if type == "number" then "0123456789abcdef" as $digits |
				$digits[. / 16 | floor:(. / 16 | floor) + 1] + $digits[. % 16:. % 16 + 1]
				else ltrimstr("0x") end) | join(" "))' |
		while read -r record; do
			bpftool map update pinned "$pins/connections" key hex $record
		done
	wait_until 5 second_is_over "$(seconds_of_uptime)"
}

seconds_of_uptime() {
	local seconds
	IFS=. read -r seconds _ </proc/uptime
	echo "$seconds"
}
second_is_over() { [ "$(seconds_of_uptime)" != "$1" ]; }

# In a chroot the kernel makes none.
has_user_namespaces() { unshare --user --map-root-user true 2>/dev/null; }

tcx_needed() { [ "$(kernel_or 6.6)" = 6.6 ] || skip "the kernel has no TCX, which came with 6.6"; }

# kernel_or VERSION: the older one of this kernel's version and the given one
kernel_or() { printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1; }

# wait_until SECONDS COMMAND...: waits until the command succeeds; longer on a slow machine. The
# command is asked less and less often, because it mostly starts processes, of which the others that
# wait have too many already. It may take as long as the pauses: so the seconds are counted twice.
wait_until() {
	local left=$(($1 * 2000 * ${SLOWER:-1})) pause=10
	shift
	while ! "$@"; do
		[ "$left" -gt 0 ] || return 1
		pause_for "$pause"
		left=$((left - pause))
		pause=$((pause < 80 ? pause * 2 : 100))
	done
}

# pause_for MILLISECONDS: as sleep(1), without a process
pause_for() {
	local seconds
	printf -v seconds %d.%03d $(($1 / 1000)) $(($1 % 1000))
	read -rt "$seconds" <>/run/never || true
}

# file_read FILE: sets $text to what it holds, without its last line ends; "" if it is not there.
# file_says TEXT FILE: TEXT is in it. Both without a process
file_read() {
	text=
	[ ! -r "$1" ] || IFS= read -rd '' text <"$1" || true
	while [[ $text = *$'\n' ]]; do text=${text%$'\n'}; done
}
file_says() {
	local text
	file_read "$2"
	[[ $text = *"$1"* ]]
}

# Below: our plugin without a runtime, on a container that another plugin has connected.

# container_add_plain NAME [LIST]: the container has a network, and our plugin was not called for
# it.
container_add_plain() {
	local list=${2:-plain}
	[ -e /run/conf/plain.conflist ] || conflist plain bridge "$only_main"
	container_add "$1" "$list"
}

container_start_plain() {
	container_add_plain "$1"
	serve_in "$1" 80
}

# web_added: our plugin was called for the container web, with the configuration in /run/config.
web_added() {
	container_add_plain web
	plugin_config web >/run/config
	plugin_run ADD web </run/config >/run/out || fail "$(cat /run/out)"
}

# plugin_config NAME [FILTER]: the configuration that a runtime passes, with 8080 mapped to 80/tcp. It is
# text unless the filter is another one than `mapping` makes, because jq takes as long as five other processes.
plugin_config() {
	local text entry filter=${2:-.}
	local mappings='[{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]'
	if [[ $filter =~ ^"$mapping_begins"(\[\{[^|{}]*\}\])$ ]]; then
		mappings=${BASH_REMATCH[1]} filter=.
	fi
	file_read "$project/conf/bridge.conflist"
	entry=${text##*'"type": "bpf-portmap",'}
	entry=${entry%%$'\n    }'*}
	[ -z "${FAST_PATH:-}" ] || entry+=", \"fastPath\": \"$FAST_PATH\""
	file_read "/run/results/$1"
	text="{\"type\": \"bpf-portmap\", $entry, \"cniVersion\": \"1.0.0\", \"name\": \"bridge\",
		\"prevResult\": $text, \"runtimeConfig\": {\"portMappings\": $mappings}}"
	if [ "$filter" = . ]; then echo "$text"; else jq -c "$filter" <<<"$text"; fi
}

# plugin_run COMMAND NAME <CONFIG: IFNAME, NETNS, PREFIX (a command before ours), binary may be set
plugin_run() {
	(
		unset CNI_PATH
		CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_IFNAME=${IFNAME:-eth0} CNI_NETNS=${NETNS-/run/netns/$2} \
			exec ${PREFIX:-} "${binary:-$build/bpf-portmap}"
	)
}

# plugin_call COMMAND NAME [FILTER]
plugin_call() {
	local config=/run/config.$BASHPID # several calls at once
	plugin_config "$2" "${3:-.}" >"$config"
	plugin_run "$1" "$2" <"$config"
}

# STATUS, which needs no container
status() { plugin_run STATUS any <<<'{"cniVersion":"1.1.0","name":"bridge","type":"bpf-portmap"}'; }

mapping_begins='.runtimeConfig.portMappings = '
mapping() {
	echo "${mapping_begins}[{\"hostPort\": $1, \"containerPort\": ${2:-80}, \"protocol\": \"${3:-tcp}\"}]"
}

# killed_at_random COMMAND...: a plugin call that is killed after a random time of up to
# $kill_window microseconds. The window grows with each call that was killed and shrinks with each
# that was not, so that about half of them are killed, whatever the machine's pace. Counts in
# $killed; $kill_moment is the time.
killed_at_random() {
	printf -v kill_moment '0.%06d' $(((RANDOM * 32768 + RANDOM) % kill_window + 1))
	if PREFIX="timeout --signal KILL $kill_moment" "$@"; then
		kill_window=$((kill_window * 9 / 10 + 10))
	else
		killed=$((killed + 1))
		kill_window=$((kill_window < 800000 ? kill_window * 11 / 10 : kill_window))
	fi
}

# container_die NAME: a container that ends without DEL, first its processes, then its namespace.
container_die() {
	local veth
	veth=$(host_veth "$1" 2>/dev/null) || true
	processes_end "$1"
	ip netns delete "$1"
	[ -z "$veth" ] || wait_until 5 no_interface "$veth" || fail "$veth, of the dead $1, stays"
}

# processes_end NAMESPACE: kills its processes, and waits for their end. Their sockets are closed only
# then: ip netns pids no longer shows them somewhat earlier.
processes_end() {
	local pids
	pids=$(ip netns pids "$1")
	kill -9 $pids 2>/dev/null || true
	wait_until 10 have_ended $pids || fail "of $1, one of the processes" $pids "stays"
}

have_ended() {
	local pid
	for pid; do [ ! -e "/proc/$pid" ] || return 1; done
}

no_interface() { [ ! -e "/sys/class/net/$1" ]; }

# slot_of NAME: the slot of an attachment; next_slot_set SLOT: the next ADD tries this one first.
slot_of() {
	bpftool -j map dump pinned "$pins/attachments" |
		jq ".[].formatted | select(.key.name == \"$1\").value.owner.slot"
}

next_slot_set() {
	local byte
	meta_set 28 "$(printf %02x "$1")"
	for byte in 29 30 31; do meta_set "$byte" 00; done
}

# meta_set OFFSET BYTE: changes the map meta, as another version of bpf-portmap would write it
meta_set() {
	local value
	value=$(bpftool -j map dump pinned "$pins/meta" | jq -r \
		'.[0].value | map(ltrimstr("0x")) | .['"$1"'] = "'"$2"'" | join(" ")')
	bpftool map update pinned "$pins/meta" key hex 00 00 00 00 value hex $value
}

# Deletes all records of connections, as if they had expired: a memo, which the last packet may have
# made, is not valid in the next second.
connections_forget() {
	[ -e "$pins/connections" ] || return 0
	map_empty connections
	map_empty aliases
	sleep 1
}

# Deletes every entry of a map.
map_empty() {
	bpftool -j map dump pinned "$pins/$1" | jq -r '.[].key | join(" ")' | sed 's/0x//g' |
		while read -r key; do
			bpftool map delete pinned "$pins/$1" key hex $key 2>/dev/null || true
		done
}
