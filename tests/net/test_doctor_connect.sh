# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_connect.sh - `bpf-portmap doctor` as a process of the host, as a container that asks, and
# out of a container to a server that is named.

# from the host itself: a port that answers, one whose server closes at once, one that nobody has
test_doctor_connect_localhost() {
	needs_cgroup
	healthy_host
	by_hand_says 0 'a process of this host connects to 127.0.0.1:8080, 1 times of 1' doctor 8080/tcp --from localhost
	expect_in /run/out 'connects to [::1]:8080'
	processes_end web
	by_hand_says 2 'to 127.0.0.1:8080 fail: Connection refused' doctor 8080/tcp --from localhost
	nft 'table inet f { chain c { type filter hook output priority 0; tcp dport 80 drop; }; }'
	by_hand_says 2 'to 127.0.0.1:8080 fail: dropped by the host: nft inet f, chain c, tcp dport 80 drop' \
		doctor 8080/tcp --from localhost
}

# from another container on the bridge, which a rule of bridges or of forwarding keeps from it
test_doctor_connect_container() {
	healthy_host
	container_add asker bridge
	by_hand_says 0 'asker connects to' doctor 8080/tcp --from asker
	expect_answer asker tcp "$host4" 8080 web
	nft 'table inet f { chain c { type filter hook forward priority 0; iifname "cni0" oifname "cni0" drop; }; }'
	expect_no_answer asker tcp "$host4" 8080
	by_hand 0 doctor 8080/tcp --from "$client4"
	# Once to each of the port's families, from whichever of its own addresses.
	expect_equal 2 "$("$build/bpf-portmap" doctor 8080/tcp --from asker --json | jq .summary.probed)"
	by_hand_says 2 'nft inet f, chain c, iifname "cni0" oifname "cni0" drop' doctor 8080/tcp --from asker
	nft flush ruleset
	in_namespace asker nft 'table inet o { chain c { type filter hook output priority 0; tcp dport 8080 drop; }; }'
	by_hand_says 2 "dropped in the container's own firewall: nft inet o, chain c, tcp dport 8080 drop" \
		doctor 8080/tcp --from asker
	by_hand 3 doctor 8080/tcp --from nobody-of-that-name
}

# from another container, where both are isolated ports of the bridge, which switches what answers, and where
# the other one has no route back or does not listen
test_doctor_connect_isolated() {
	FAST_PATH=off conflist bridge bridge .
	healthy_host
	container_add asker bridge
	bridge link set dev "$(host_veth asker)" isolated on
	by_hand 0 doctor 8080/tcp --from asker
	bridge link set dev "$(host_veth web)" isolated on
	ip -n web neighbour del "$(address4 asker)" dev eth0
	by_hand_says 2 "both $(host_veth asker) and $(host_veth web) are isolated ports of cni0" doctor 8080/tcp --from asker
	bridge link set dev "$(host_veth web)" isolated off
	processes_end web
	by_hand_says 2 'refused: nobody listens at tcp port' doctor 8080/tcp --from asker
}

# out of a container: to a server that is there, without a route inside, past a rule, and without
# masquerade
test_doctor_connect_out() {
	healthy_host
	in_namespace server "$peer" serve tcp any 5432 --name db --background
	by_hand_says 0 "shop/web-0 connects to $server4:5432" doctor 8080/tcp --to "$server4:5432"
	by_hand_says 0 "connects to [$server6]:5432" doctor 8080/tcp --to "[$server6]:5432"
	by_hand_says 2 'fail: Connection refused' doctor --from web-0 --to "$server4:5433"
	nft 'table inet f { chain c { type filter hook forward priority 0; tcp dport 5432 drop; }; }'
	by_hand_says 2 'nft inet f, chain c, rule handle 2 (tcp dport 5432 drop)' doctor 8080/tcp --to "$server4:5432"
	nft flush ruleset
	ip -n web route del default
	by_hand_says 2 "shop/web-0 has no route to $server4:5432" doctor 8080/tcp --to "$server4:5432"
	conflist plain bridge "$(with_ours '{ipMasq: false}')"
	container_add plain plain -p 8085:80/tcp
	by_hand 2 doctor 8085/tcp --to "$server4:5432"
	expect_contains "$(head -n 1 /run/out)" "it leaves with the container's own address"
	ip route del default
	by_hand_says 2 'Network is unreachable; the host has no route to it' doctor --from plain --to 203.0.113.9:443
	by_hand_warns 64 'must be a server with a port' doctor --to "$server4"
	by_hand_warns 64 'must be a server with a port' doctor --to 'a b:80'
	by_hand_warns 64 'must be a server with a port' doctor --to '[db]:80'
}

# out of a container to a name, which its own /etc/hosts or its own server of names knows
test_doctor_connect_name() {
	printf 'nameserver %s\nsearch example test\n' "$server4" >/run/resolv.conf
	echo "$server4 by-hosts" >/run/hosts
	mount --bind /run/resolv.conf /etc/resolv.conf
	mount --bind /run/hosts /etc/hosts
	healthy_host
	in_namespace server "$peer" serve tcp any 5432 --name db --background
	by_hand_says 2 "shop/web-0 finds no address of db: no answer from $server4" doctor 8080/tcp --to db:5432
	in_namespace server "$build/tests/names" :: "db.test=$server4" "only6.test=$server6" </dev/null >/dev/null
	by_hand_says 0 "shop/web-0 connects to db:5432 ($server4, as $server4 says)" doctor 8080/tcp --to db:5432
	expect_equal '' "$(grep 'finds no address' /run/out || true)"
	# With shared libraries, as DYNAMIC=1 links it.
	readelf -d "$build/sanitized/bpf-portmap" | grep 'NEEDED.*libresolv' >/dev/null || fail 'no shared libresolv'
	binary=$build/sanitized/bpf-portmap by_hand_says 0 "shop/web-0 connects to db:5432 ($server4, as $server4 says)" \
		doctor 8080/tcp --to db:5432
	by_hand_says 0 "connects to only6:5432 ($server6, as $server4 says)" doctor 8080/tcp --to only6:5432
	by_hand_says 0 "connects to by-hosts:5432 ($server4, as its /etc/hosts says)" doctor --from web-0 --to by-hosts:5432
	by_hand_says 2 "finds no address of nobody: $server4 knows no IPv" doctor --from web-0 --to nobody:5432
	: >/run/resolv.conf
	by_hand_says 2 'finds no address of db: no server is named in its /etc/resolv.conf' doctor 8080/tcp --to db:5432
}

# bash completes ports and containers, and zsh runs commands that print them
test_doctor_connect_completion() {
	healthy_host
	PATH=$build:$PATH
	. "$build/completion/bash"
	COMP_WORDS=(bpf-portmap doctor 80) COMP_CWORD=2 COMPREPLY=()
	_bpf_portmap
	expect_equal 8080/tcp "$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)"
	COMP_WORDS=(bpf-portmap list --container sh) COMP_CWORD=3 COMPREPLY=()
	_bpf_portmap
	expect_equal shop/web-0 "$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)"
	expect_equal '5353/udp 8080/tcp' "$(zsh_runs doctor '\*:.*:' | xargs)"
	expect_equal shop/web-0 "$(zsh_runs list '--container=.*:NAME:')"
	expect_equal 'localhost shop/web-0' "$(zsh_runs doctor '--from=.*:WHO:' | xargs)"
	expect_contains "$(zsh_runs doctor '--in=.*:INTERFACE:')" cni0
}

# zsh_runs VERB SPECIFICATION: the words that its action gives to compadd. It stands in braces, and
# is evaluated.
zsh_runs() {
	local action
	action=$(sed -n "/^\t$1) /,/;;/s/^\t*'$2{\(.*\)}'.*/\1/p" "$build/completion/zsh")
	compadd() { printf '%s\n' "${@:2}" | sort -u; }
	eval "${action//\\:/:}"
}
