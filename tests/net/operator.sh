# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# operator.sh - how tests run the commands for people.

# by_hand CODE [ARGUMENT...]: what it prints is in /run/out and /run/err
by_hand() {
	local expected=$1 code=0
	shift
	${PREFIX:-} "${binary:-$build/bpf-portmap}" "$@" >/run/out 2>/run/err </dev/null || code=$?
	[ "$expected" = "$code" ] ||
		fail "the exit status of bpf-portmap $*: expected '$expected', got '$code': $(cat /run/err) $(head -n 3 /run/out)"
}

# by_hand_says CODE TEXT [ARGUMENT...]: TEXT is in what it prints; by_hand_warns: on standard error
by_hand_says() {
	by_hand "$1" "${@:3}"
	expect_in /run/out "$2"
}
by_hand_warns() {
	by_hand "$1" "${@:3}"
	expect_in /run/err "$2"
}

# rows [ARGUMENT...]: a table without its titles, a blank between columns
rows() {
	by_hand 0 "$@"
	tail -n +2 /run/out | sed 's/  */ /g'
}

# item FILTER [ARGUMENT...]: what a jq filter finds in the --json of a command
item() {
	local filter=$1
	shift
	by_hand 0 "$@" --json
	jq -e '.version == 1 and (.host | length > 0) and (.items | type == "array")' /run/out \
		>/dev/null || fail "not an object of version 1: $(cat /run/out)"
	jq -rc "$filter" /run/out
}

# web_as_pod [-p ...]: the container web, of the pod web-0 in the namespace shop
web_as_pod() {
	export CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0"
	container_start web bridge "$@"
	unset CNI_ARGS
}

# legacy_iptables: /run/legacy has iptables-legacy under the names that portmap runs
legacy_iptables() {
	iptables-legacy -w -t nat -S >/dev/null 2>&1 || skip 'no iptables-legacy, or a kernel without it'
	mkdir /run/legacy
	ln -s /usr/sbin/iptables-legacy /run/legacy/iptables
	ln -s /usr/sbin/ip6tables-legacy /run/legacy/ip6tables
}

# by_newer_portmap NAME MATCH...: maps what matches ("tcp dport 8080") to port 80 of the container NAME,
# which no portmap has done, as one with the backend nftables does (1.6 and newer; written after the
# rules of 1.9.1)
by_newer_portmap() {
	local name=$1 family address rule
	shift
	for family in ip ip6; do
		[ "$family" = ip ] && address=$(address4 "$name") || address=$(address6 "$name")
		nft -f - <<-RULES
		table $family cni_hostport {
			comment "CNI portmap plugin"
			chain hostports { $(for rule; do
				[ "$family ${rule%% *}" = 'ip6 ip' ] ||
					echo "$rule dnat to $(endpoint "$address" 80) comment \"$name\""
			done)
			}
			chain hostip_hostports { }
			chain hostports_all { }
			chain prerouting { type nat hook prerouting priority dstnat; }
			chain output { type nat hook output priority -100; }
			chain masquerading {
				type nat hook postrouting priority srcnat;
				$family saddr $address $family daddr $address masquerade comment "$name"
			}
		}
		flush chain $family cni_hostport hostports_all
		add rule $family cni_hostport hostports_all jump hostip_hostports
		add rule $family cni_hostport hostports_all jump hostports
		flush chain $family cni_hostport prerouting
		add rule $family cni_hostport prerouting fib daddr type local jump hostports_all
		flush chain $family cni_hostport output
		add rule $family cni_hostport output fib daddr type local jump hostports_all
		RULES
	done
}

# expect_within_budget ARGUMENT...: runs a command, which needs 64 MB at most. On a quiet machine it
# computes for less than two seconds; the limit only tells that from a walk of walks.
expect_within_budget() {
	local took computed kilobytes
	"$build/tests/fill" measure "$build/bpf-portmap" "$@" >/run/out 2>/run/err ||
		fail "$*: $(cat /run/err)"
	read -r took computed kilobytes < <(tail -n 1 /run/err)
	echo "note: $*: $took ms, of which it computed $computed ms; $kilobytes KB"
	[ "$computed" -le $((6000 * SLOWER)) ] || fail "$*: $computed ms"
	[ "$kilobytes" -le 65536 ] || fail "$*: $kilobytes KB"
}
