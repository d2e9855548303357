# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_list.sh - `bpf-portmap list`: which ports are mapped, whose they are, and how much
# they are used.

# without_since: the age of a record is a second or two
without_since() { sed -E 's/ [0-9]+s( |$)/ NOW\1/'; }

# list shows every port with its pod, where it leads, and how many connections it has and had; one that
# nobody has answered counts as new; --json names the host, the container, its veth, and both ends
test_operator_list_ports() {
	local address
	web_as_pod -p 8080:80/tcp -p "$host4:5353:80/udp"
	address=$(address4 web)
	expect_equal "$host4:5353 udp shop/web-0 $address:80 0 0 0 NOW
*:8080 tcp shop/web-0 $address:80 0 0 0 NOW
[::]:8080 tcp shop/web-0 [$(address6 web)]:80 0 0 0 NOW" "$(rows list | without_since)"
	expect_equal "$(jq -nc --arg id web --arg veth "$(host_veth web)" --arg to "$(address4 web)" '
		{kind: "mapping", host: {address: "0.0.0.0", port: 8080}, protocol: "tcp",
		 container: {name: "shop/web-0", kind: "pod", id: $id, network: "bridge",
			interface: "eth0", host_interface: $veth},
		 to: {address: $to, port: 80}, flows: 0, flows_half_open: 0, flows_total: 0,
		 remark: null}')" \
		"$(item '.items[] | select(.host.address == "0.0.0.0") | del(.since)' list)"
	expect_equal true "$(item '.items[0].since | fromdate | . > 1700000000' list)"
	expect_equal "$(uname -n)" "$(item .host list)"
	conversation_with web one client tcp "$host4" 8080
	expect_says one web
	expect_answer client tcp "$host4" 8080 web
	# The second connection has ended.
	wait_until 5 counts_are '1 0 2' || fail "expected 1 0 2: $(cat /run/out)"
	in_namespace web nft 'table inet silent { chain input {
		type filter hook input priority 0; policy drop; }; }'
	expect_no_answer client tcp "$host4" 8080
	expect_equal "2 1 3" "$(rows list | grep '^\*' | cut -d ' ' -f 5-7)"
	conversation_close one
}

counts_are() { [ "$(rows list --port 8080/tcp | grep '^\*' | cut -d ' ' -f 5-7)" = "$1" ]; }

# ports of a container in a row are one line, with the connections of all; one that leads elsewhere, of
# another protocol or container, is not among them; --port and --json have each
test_operator_list_ranges() {
	local address
	container_start web bridge -p 8000-8009:80-89/tcp -p 8010:80/tcp -p 8001:81/udp
	container_start other bridge -p 8011:91/tcp
	address=$(address4 web)
	serve_in web 81
	serve_in web 89
	expect_answer client tcp "$host4" 8001 web
	expect_answer client tcp "$host4" 8009 web
	expect_equal "*:8000-8009 tcp $address:80-89 2
*:8001 udp $address:81 0
*:8010 tcp $address:80 0
*:8011 tcp $(address4 other):91 0" "$(rows list | grep '^\*' | cut -d ' ' -f 1,2,4,7)"
	expect_contains "$(rows list)" "[::]:8000-8009 tcp web [$(address6 web)]:80-89 0"
	expect_equal "*:8001 tcp $address:81 1" \
		"$(rows list --port 8001/tcp | grep '^\*' | cut -d ' ' -f 1,2,4,7)"
	expect_equal '[8000,8001,8002,8003,8004,8005,8006,8007,8008,8009]' \
		"$(item '[.items[].host.port | select(. < 8010)] | unique' list)"
	expect_equal '[80,81,82,83,84,85,86,87,88,89]' \
		"$(item '[.items[] | select(.protocol == "tcp" and .host.port < 8010) | .to.port] | unique' list)"
}

# ports are chosen by container, port, protocol and network
test_operator_list_filters() {
	web_as_pod -p 8080:80/tcp -p 53:80/udp
	conflist other bridge "$other_network"
	container_start db other -p 5432:80/tcp
	expect_equal '[53,53,8080,8080]' "$(item '[.items[].host.port]' list --container web-0)"
	expect_equal '[5432,5432]' "$(item '[.items[].host.port]' list --container db)"
	expect_equal '[]' "$(item '[.items[].host.port]' list --container shop)"
	expect_equal '[5432,5432]' "$(item '[.items[].host.port]' list --network other)"
	expect_equal '[53,53]' "$(item '[.items[].host.port]' list --port 53)"
	expect_equal '[]' "$(item '[.items[].host.port]' list --port 53/tcp)"
	expect_contains "$(rows list --wide --network other)" " other $(host_veth db) db"
	by_hand_warns 64 'invalid --port "0"' list --port 0
	by_hand 64 list --port 53/quic
	by_hand 64 list --port
	expect_equal 'bpf-portmap: no value after --port; see bpf-portmap list --help' "$(cat /run/err)"
	by_hand 64 list --client 10.0.0.1
	by_hand 64 list --color=red
}

# ports that cannot work as they are have a remark; colours and the cut at the width only at a terminal
test_operator_list_remarks() {
	web_as_pod -p 127.0.0.1:8080:80/tcp -p 203.0.113.77:8081:80/tcp -p 8082:80/tcp
	local escape=$'\033['
	at_terminal() { script -qec "stty cols 40; $1 TERM=xterm $build/bpf-portmap list $2" /dev/null; }
	expect_contains "$(at_terminal '' '')" "$escape"
	at_terminal '' --color=never | tr -d '\r' >/run/out
	[ "$(wc -L </run/out)" -le 40 ] || fail "not cut at 40: $(cat /run/out)"
	expect_in /run/out '  ! hostIP is reached only from this'
	expect_contains "$(xargs </run/out)" 'TOTAL, SINCE: no room in this terminal for these columns'
	case $(at_terminal NO_COLOR=1 '')$(rows list) in *"$escape"*) fail "colours" ;; esac
	expect_contains "$(rows list --color=always)" "$escape"
	[ "$(rows list | wc -L)" -gt 60 ] || fail "cut without a terminal"
	expect_contains "$(rows list --port 8080)" '! hostIP is reached only from this host'
	expect_contains "$(rows list --port 8081)" '! hostIP is no address of this host'
	expect_equal 'null null' "$(item '[.items[].remark | tostring] | join(" ")' list --port 8082)"
	container_die web
	expect_contains "$(rows list --port 8082)" "! its container's interface is gone"
	"$build/bpf-portmap" attach >/dev/null
	expect_equal '' "$(rows list)"
}

# log_daemon_start: a log daemon, whose process ID is in $logger, and a rule that each ADD warns of
log_daemon_start() {
	mkdir /run/dev
	mount -t tmpfs tmpfs /run/dev
	cp -a /dev/null /dev/zero /dev/urandom /dev/random /run/dev
	mount --move /run/dev /dev
	busybox syslogd -n -O /run/syslog &
	logger=$!
	wait_until 5 test -S /dev/log || fail "no logger"
	nft 'table ip docker-bridges { chain nat-prerouting-and-output {
		tcp dport 8080 dnat to 10.0.0.5:80; }; }'
	nft 'table ip docker-bridges { chain nat-PREROUTING {
		type nat hook prerouting priority dstnat; fib daddr type local jump nat-prerouting-and-output; }; }'
}

# what ADD warns of is on standard error and in the system's log
test_operator_list_warnings() {
	local line='warning: host port 8080/tcp is mapped to 10.0.0.5:80 by a rule in chain nat-pre' logger
	log_daemon_start
	container_start web bridge -p 8080:80/tcp 2>/run/err
	expect_in /run/err "bpf-portmap: $line"
	wait_until 5 grep -q "daemon.warn bpf-portmap\[[0-9]*\]: ${line#*: }" /run/syslog ||
		fail "logged: $(cat /run/syslog)"
	kill "$logger"
}

# a log daemon that does not read holds nobody up, though no line more fits into its socket
test_operator_list_warnings_unread() {
	local logger number
	sysctl -qw net.unix.max_dgram_qlen=1
	log_daemon_start
	kill -STOP "$logger"
	container_add_plain web
	for number in 1 2 3 4; do
		PREFIX="timeout $((20 * ${SLOWER:-1}))" plugin_call ADD web >/run/out 2>/run/err ||
			fail "ADD number $number: $(cat /run/out)"
		expect_in /run/err 'host port 8080/tcp is mapped to 10.0.0.5:80'
	done
	kill -KILL "$logger"
}

# containers that came without a name have the one in the files of nerdctl or Podman; what else lies
# there does no harm
test_operator_list_engine_names() {
	local id=4c01db0b339c0000000000000000000000000000000000000000000000000000
	local other=659a7fb2af476fae688d711213d91dc1550a37f0395a00a6f7bacb78ece3666b
	local names=/var/lib/nerdctl/1935db59/names/default storage=/var/lib/containers/storage
	mount -t tmpfs tmpfs /var/lib
	mkdir -p "$names" "$storage/overlay-containers" "$storage/vfs-containers"
	container_add_plain one
	container_add_plain two
	plugin_config one "$(mapping 8081)" | plugin_as "$id" one
	plugin_config two "$(mapping 8082)" | plugin_as "default-$other" two
	expect_equal "*:8081 4c01db0b339c
*:8082 659a7fb2af47" "$(rows list | grep '^\*' | cut -d ' ' -f 1,3)"
	echo -n "$other" >"$names/shop"
	mkfifo "$names/fifo"
	ln -s /dev/zero "$names/zero"
	mkdir "$names/directory"
	jq -nc --arg id "$id" '[{id: 7}, {id: $id, names: ["db\u001b[31m"]}, "x", {id: $id}]' \
		>"$storage/overlay-containers/containers.json"
	echo '[{"id":' >"$storage/vfs-containers/volatile-containers.json"
	expect_equal "*:8081 db?[31m
*:8082 shop" "$(rows list | grep '^\*' | cut -d ' ' -f 1,3)"
	expect_equal '[8082]' "$(item '[.items[].host.port] | unique' list --container shop)"
	expect_equal '[8082]' "$(item '[.items[].host.port] | unique' list --container 659a7f)"
	expect_equal 'shop container' "$(item '.items[0].container | "\(.name) \(.kind)"' list --port 8082)"
	by_hand_says 1 'container shop, container 659a7fb2af47, since' who 8082
}

# a record without a name, as those of containers that were adopted are, has that of the pod in what the
# runtime has kept of its ADD: in list, repair and uninstall
test_operator_list_adopted() {
	mount -t tmpfs tmpfs /var/lib
	mkdir -p /var/lib/cni/results
	container_add_plain web
	plugin_config web "$(mapping 8081)" | plugin_as web web
	expect_equal 'web' "$(item '.items[0].container.name' list)"
	echo '{"kind":"cniCacheV1","containerId":"web","cniArgs":[["IgnoreUnknown","1"],7,
		["K8S_POD_NAMESPACE","shop"],["K8S_POD_NAME","web-0"]]}' >/var/lib/cni/results/bridge-web-eth0
	expect_equal 'shop/web-0 pod' "$(item '.items[0].container | "\(.name) \(.kind)"' list)"
	expect_equal '[8081]' "$(item '[.items[].host.port] | unique' list --container web-0)"
	by_hand 1 uninstall --bin-dir /run/none --conf-dir /run/none
	expect_in /run/out 'pod shop/web-0 (sandbox web), interface eth0, network bridge: *:8081/tcp'
	expect_in /run/err 'new containers get no host ports from now on'
	container_die web
	by_hand_says 0 'removed pod shop/web-0 (sandbox web), interface eth0' repair
}

# a container that is only masqueraded is there, with its address and its connections; not with --port
test_operator_list_masquerade() {
	conflist other bridge "$other_network" '.ipMasq = true'
	container_start out other
	serve_in client 7000
	conversation_with client one out tcp "$client4" 7000
	expect_equal "(masquerade) - out $(address4 out) 1 0 - NOW" "$(rows list | grep -F "$(address4 out)" | without_since)"
	expect_equal '["masquerade",null,null,1,null]' "$(item '.items[] | select(.to.address | contains(":") | not) |
		[.kind, .host, .protocol, .flows, .remark]' list)"
	expect_equal '' "$(rows list --port 80)"
	conversation_close one
}

# plugin_as ID NAME <CONFIG: ADD with this container ID
plugin_as() {
	env -u CNI_PATH CNI_COMMAND=ADD CNI_CONTAINERID="$1" CNI_IFNAME=eth0 CNI_NETNS="/run/netns/$2" \
		"$build/bpf-portmap" >/run/out 2>&1 || fail "ADD of $1: $(cat /run/out)"
}

# where no port is mapped list says so, and is no failure
test_operator_list_nothing() {
	by_hand_warns 0 'no port is mapped' list
	expect_equal '' "$(cat /run/out)"
}

# maps of another layout, pins that are missing, and a user without rights get a sentence, also from
# repair
test_operator_list_refused() {
	local verb
	web_as_pod -p 8080:80/tcp
	for verb in list gc; do
		PREFIX="setpriv --reuid 1000 --clear-groups" by_hand 1 "$verb"
		expect_equal 1 "$(wc -l </run/err)" "lines of: $(cat /run/err)"
		expect_in /run/err 'Permission denied'
	done
	mv "$pins/half_open" /sys/fs/bpf/elsewhere
	by_hand_warns 1 'missing' list --json
	expect_equal '' "$(cat /run/out)"
	mv /sys/fs/bpf/elsewhere "$pins/half_open"
	by_hand 0 list
	mv "$pins" /sys/fs/bpf/elsewhere
	for verb in 1:list 1:flows 1:stats 3:who\ 8080 1:upgrade\ --dry-run 1:repair\ --dry-run; do
		by_hand_warns "${verb%%:*}" 'maps or programs are missing' ${verb#*:}
	done
	mv /sys/fs/bpf/elsewhere "$pins"
	by_hand 0 list
	meta_set 0 63
	for verb in list gc; do
		by_hand_warns 1 'layout 99' "$verb"
	done
	meta_set 0 "$(sed -n 's/^#define LAYOUT \(.*\)/0\1/p' "$project/include/abi.h")"
	by_hand 0 list
	rm "$pins/connections"
	bpftool map create "$pins/connections" type hash key 4 value 4 entries 1 name connections
	by_hand_warns 1 'the maps in /sys/fs/bpf/bpf-portmap have another shape (connections)' list
}

# whatever stands in the maps, the readers neither crash nor print control characters
test_operator_list_damaged() {
	local seed verb
	local binary=$build/sanitized/bpf-portmap
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	expect_answers client "$host4" 8080 web
	for seed in ${SEEDS:-1 2 3 4}; do
		# A little leaves most of it readable, much leaves nothing.
		"$build/tests/fill" damage "$pins" "$seed" $((seed % 2 ? 8 : 300))
		for verb in $(operator_readers); do
			by_hand 0 ${verb//,/ }
			! LC_ALL=C grep -q '[[:cntrl:]]' /run/out || fail "control characters: $verb"
			# repair prints lines alone.
			[ "$verb" != repair,--dry-run ] || continue
			by_hand 0 ${verb//,/ } --json
			jq -e .items /run/out >/dev/null || fail "no JSON: $verb"
		done
	done
}

operator_readers() { echo list list,--wide flows flows,--top,5 stats stats,--all repair,--dry-run; }

# 10,000 ports and 500,000 connections are listed, by each command that reads them, in a few seconds
# and 64 MB
test_operator_list_large() {
	container_add web bridge -p 80:80/tcp
	"$build/tests/fill" many "$pins" 10000 500000
	expect_within_budget list
	expect_equal 10002 "$(tail -n +2 /run/out | wc -l)" "rows"
	expect_contains "$(grep ':1024 ' /run/out | sed 's/  */ /g')" \
		'*:1024 tcp shop/web-0 10.88.0.0:80 50 0 0'
	expect_within_budget list --json
	expect_within_budget flows
	expect_equal 500002 "$(wc -l </run/out)" "lines"
	expect_within_budget flows --json
	expect_within_budget flows --container web-77
	expect_within_budget flows --top 10 --json
	expect_within_budget flows --by client
	expect_within_budget stats
	expect_within_budget stats --prometheus --per-port
}
