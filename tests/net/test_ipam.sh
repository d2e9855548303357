# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_ipam.sh - cni-ipam: Docker's remote IPAM API over host-local and static, with curl in Docker's
# place.

. "$here/ipam.sh"

pool=docker-local/10.91.0.0/24

pool_expect() {
	expect_equal "{\"PoolID\":\"$1\",\"Pool\":\"$2\",\"Data\":{}} 200" "$(pool_request "${@:2}")" \
		"RequestPool ${*:2}"
}

# Docker's calls that need no pool; a root-only socket; what is not of the API gets an error and
# not 200: another call, GET, no JSON, other types, a body of 70 KiB; a socket that systemd passes, which names the driver
test_ipam_protocol() {
	ipam_start
	expect_equal '{"Implements":["IpamDriver"]} 200' "$(post Plugin.Activate '')" Activate
	expect_equal '{"RequiresMACAddress":false,"RequiresRequestReplay":false} 200' \
		"$(post IpamDriver.GetCapabilities '')" GetCapabilities
	expect_equal '{"LocalDefaultAddressSpace":"docker-local","GlobalDefaultAddressSpace":"docker-global"} 200' \
		"$(post IpamDriver.GetDefaultAddressSpaces '')" GetDefaultAddressSpaces
	expect_equal '600 700 700' "$(stat -c %a "$ipam_socket" /run/docker/plugins /var/lib/cni-ipam |
		tr '\n' ' ' | sed 's/ $//')" "modes of socket, its directory, state"
	expect_err 'does not know this call' post IpamDriver.RequestLease '{}'
	expect_err 'POST only' curl -s --unix-socket "$ipam_socket" -w ' %{http_code}' http://x/Plugin.Activate
	expect_err 'not valid JSON' post IpamDriver.RequestPool '{'
	expect_err 'the request is empty' post IpamDriver.RequestPool ''
	expect_err 'AddressSpace' post IpamDriver.RequestPool '{"AddressSpace":7}'
	expect_err 'address space' post IpamDriver.RequestPool '{"Pool":"10.91.0.0/24"}'
	expect_err 'Options' post IpamDriver.RequestAddress '{"PoolID":"x","Options":[]}'
	expect_err 'longer than 64 KiB' post IpamDriver.RequestPool "$(printf '%070000d' 0)"
	kill "$ipam_process"
	wait "$ipam_process" || fail "exit status $? after SIGTERM"
	[ ! -e "$ipam_socket" ] || fail "the socket is left"
	perl -MSocket -e '$^F = 3; socket(my $s, AF_UNIX, SOCK_STREAM, 0); bind($s, pack_sockaddr_un(shift)) or die $!;
		listen($s, 9); @ENV{"LISTEN_PID", "LISTEN_FDS"} = ($$, 1); exec @ARGV' \
		"$ipam_socket" "$ipam" --socket /nowhere/at-all 2>>/run/results/ipam 3>&- &
	ipam_process=$!
	expect_equal '{"Implements":["IpamDriver"]} 200' "$(wait_until 10 ipam_listens; post Plugin.Activate '')" \
		"by the socket that was passed: $(cat /run/results/ipam)"
	pool_expect "$pool" 10.91.0.0/24
	expect_equal cni-ipam "$(jq -r .driver "$ipam_state")" "the driver"
	kill "$ipam_process"
	wait "$ipam_process" || fail "exit status $? after SIGTERM"
	[ -e "$ipam_socket" ] || fail "systemd's socket was removed"
	chmod 777 /run/docker/plugins
	output=$("$ipam" 2>&1) && fail "a socket where anybody may write"
	expect_contains "$output" 'others than root may write to /run/docker/plugins'
}

# pools: the same request has the same ID and is counted; a sub-pool; overlapping ones, a sub-pool
# without or outside of a pool, another option, an unknown network are refused; a chosen one is
# another each time and none of CNI's; the last release gives all back
test_ipam_pools() {
	ipam_start
	pool_expect "$pool" 10.91.0.0/24
	pool_expect "$pool" 10.91.0.0/24
	pool_expect "$pool/10.91.0.64/26" 10.91.0.0/24 10.91.0.64/26
	expect_err "pool 10.91.0.0/16: it overlaps with the subnet 10.91.0.0/24" pool_request 10.91.0.0/16
	expect_err "it overlaps with the subnet 10.91.0.0/24" pool_request 10.91.0.128/25
	expect_err 'sub-pool 10.91.0.0/26 without a pool' pool_request '' 10.91.0.0/26
	expect_err 'sub-pool 10.92.0.0/26 is no part of it' pool_request 10.91.0.0/24 10.92.0.0/26
	expect_err 'pool web: it is no ADDRESS/LENGTH' pool_request web
	conflist twin bridge '.name = "twin"'
	expect_err 'networks \"bridge\" and \"twin\" have this subnet' pool_request 10.88.0.0/16
	rm /run/conf/twin.conflist
	expect_err 'overlaps with a range of the CNI network \"bridge\"' pool_request 10.88.1.0/24
	expect_err 'unknown option \"dns\"' call RequestPool \
		'{AddressSpace: "docker-local", Pool: "10.94.0.0/24", Options: {dns: "x"}}'
	expect_err 'no network named \"none\"' call RequestPool \
		'{AddressSpace: "docker-local", Pool: "10.94.0.0/24", Options: {network: "none"}}'
	expect_err 'has no range of the subnet 10.94.0.0/24' call RequestPool \
		'{AddressSpace: "docker-local", Pool: "10.94.0.0/24", Options: {network: "bridge"}}'
	pool_expect docker-local/fd00:91::/64 fd00:91::/64
	conflist chosen bridge '.name = "chosen" | .plugins[0].ipam.ranges = [[{"subnet":"172.18.5.0/24"}]]'
	expect_equal '{"PoolID":"docker-local/172.19.0.0/16","Pool":"172.19.0.0/16","Data":{}} 200' \
		"$(pool_request '')" "beside a conflist with 172.18.5.0/24"
	expect_contains "$(pool_request '')" '"docker-local/172.20.0.0/16"'
	expect_contains "$(call RequestPool '{AddressSpace: "docker-local", V6: true}')" '"Pool":"fd'
	expect_equal 10.91.0.1 "$(given gateway_request "$pool")" gateway
	given address_request "$pool" >/dev/null
	expect_equal '{} 200' "$(pool_release "$pool")" "ReleasePool"
	expect_equal '{} 200' "$(pool_release "$pool")" "ReleasePool, the second user"
	expect_err "there is no pool \\\"$pool\\\"" pool_release "$pool"
	expect_err "there is no pool \\\"$pool\\\"" address_request "$pool"
	expect_equal '' "$(ipam_files)" "what host-local has"
	pool_expect "$pool" 10.91.0.0/24
}

# addresses: gateway, any, by name, IPv6, of a sub-pool; taken, outside, no host's, no address:
# refused with pool and address; release of what is not there; a full pool, and a free one again
test_ipam_addresses() {
	ipam_start
	pool_expect "$pool" 10.91.0.0/24
	pool_expect "$pool/10.91.0.64/29" 10.91.0.0/24 10.91.0.64/29
	expect_equal 10.91.0.254 "$(given gateway_request "$pool" 10.91.0.254)" "gateway by name"
	expect_equal 10.91.0.254 "$(given gateway_request "$pool/10.91.0.64/29" 10.91.0.254)" \
		"the same of a second network"
	expect_equal '{"Address":"10.91.0.1/24","Data":{}} 200' "$(address_request "$pool")" any
	expect_equal 10.91.0.9 "$(given address_request "$pool" 10.91.0.9)" "by name"
	expect_err "address 10.91.0.9 of pool $pool: Docker has it since 2" address_request "$pool" 10.91.0.9
	expect_err "as a gateway" address_request "$pool" 10.91.0.254
	expect_err "address 10.91.0.9 of pool" gateway_request "$pool" 10.91.0.9
	expect_err "address 10.92.0.9 of pool $pool: it is outside" address_request "$pool" 10.92.0.9
	expect_err "address 10.91.0.255 of pool $pool:" address_request "$pool" 10.91.0.255
	expect_err "address web of pool $pool: it is no address" address_request "$pool" web
	expect_equal '{} 200' "$(address_release "$pool" 10.91.0.9)" ReleaseAddress
	expect_equal '{} 200' "$(address_release "$pool" 10.91.0.9)" "of what is not there"
	expect_err 'there is no pool' address_release none 10.91.0.9
	address_release "$pool" 10.91.0.254 >/dev/null
	expect_err "as a gateway" address_request "$pool" 10.91.0.254 # the second network has it
	expect_contains "$(ipam_files)" /10.91.0.254
	address_release "$pool/10.91.0.64/29" 10.91.0.254 >/dev/null
	expect_equal 10.91.0.254 "$(given address_request "$pool" 10.91.0.254)" "no gateway any more"
	for number in 64 65 66 67 68 69 70 71; do
		expect_equal "10.91.0.$number" "$(given address_request "$pool/10.91.0.64/29")" "of the sub-pool"
	done
	expect_err 'no IP addresses available' address_request "$pool/10.91.0.64/29"
	expect_equal 10.91.0.200 "$(given address_request "$pool/10.91.0.64/29" 10.91.0.200)" \
		"by name outside of the sub-pool"
	address_release "$pool/10.91.0.64/29" 10.91.0.70 >/dev/null
	expect_equal 10.91.0.70 "$(given address_request "$pool/10.91.0.64/29")" "the one that is free"
	pool_expect docker-local/fd00:91::/64 fd00:91::/64
	expect_equal fd00:91::1 "$(given gateway_request docker-local/fd00:91::/64)" "gateway of IPv6"
	expect_equal fd00:91::2 "$(given address_request docker-local/fd00:91::/64)" "IPv6"
	expect_equal fd00:91::77 "$(given address_request docker-local/fd00:91::/64 fd00:91:0::0:77)" "by name"
}

# one plan with cnirun: a subnet of a conflist shares its store, found by itself or by network=; the
# list's gateway is given to networks only, and each other address once
test_ipam_shared() {
	local shared=docker-local/10.88.0.0/16 one
	rm /run/conf/*
	conflist bridge bridge .
	ipam_start
	container_add c1 bridge
	pool_expect "$shared" 10.88.0.0/16
	expect_equal 10.88.0.1 "$(given gateway_request "$shared")" "the list's gateway"
	expect_err 'as a gateway' address_request "$shared" 10.88.0.1
	expect_err "address 10.88.0.2 of pool $shared: plugin" address_request "$shared" 10.88.0.2
	one=$(given address_request "$shared")
	expect_equal 10.88.0.3 "$one" "next to c1"
	container_add c2 bridge
	expect_contains "$(ip -n c2 -4 address show dev eth0)" 'inet 10.88.0.4/16'
	expect_equal "$one" "$(cd /var/lib/cni/networks/bridge && grep -l '^docker-' [0-9]*)" "in the list's store"
	pool_release "$shared" >/dev/null
	expect_err 'it is the gateway' call RequestAddress \
		"$(pool_request 10.88.0.0/16 10.88.9.0/24 | jq -c '{PoolID, Address: "10.88.0.1"}')"
	expect_equal 10.88.9.0 "$(given address_request "$shared/10.88.9.0/24")" "of a sub-pool"
}

# 200 requests at once get 200 addresses; meanwhile 400 clients are silent, one sends half a request
test_ipam_crowd() {
	local holder
	ipam_unsanitized
	ipam_start
	pool_request 10.91.0.0/16 >/dev/null
	perl -MSocket -e 'for (1 .. 401) { my $s; socket($s, AF_UNIX, SOCK_STREAM, 0) && connect($s, pack_sockaddr_un($ARGV[0])) or die $!;
		push @held, $s } syswrite($held[0], "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"); $| = 1; print "held\n"; sleep 1000' \
		"$ipam_socket" >/run/results/held &
	holder=$!
	wait_until 10 file_says held /run/results/held || fail "no silent clients"
	ipam_crowd
	kill "$holder"
	expect_equal 200 "$(ipam_files | wc -l)" "addresses of host-local"
}

# a daemon that may open few files, as many as a service has by default and more requests, answers all of them
test_ipam_few_files() {
	local files
	files=$(ulimit -Sn)
	ulimit -Sn 100
	ipam_start
	ulimit -Sn "$files"
	pool_request 10.91.0.0/16 >/dev/null
	ipam_crowd
}

# limit 300 s
# requests for one subnet that wait for each other for longer than the lock's limit (a plugin's time and
# 40 s) are all answered, as Docker waits without one
test_ipam_long_queue() {
	plugin_wrap host-local <<-'SH'
		[ "$CNI_COMMAND" != ADD ] || sleep 0.75
	SH
	ipam_unsanitized
	ipam_start --timeout 5
	pool_request 10.91.0.0/16 >/dev/null
	ipam_crowd 80
}

# --help and the manual page name the same options; what is no option is refused
test_ipam_help() {
	local option
	[ -x "$ipam" ] || skip "cni-ipam is not built: libmicrohttpd is missing"
	sed 's/\\-/-/g' "$project/man/cni-ipam.8" >/run/page
	{ "$ipam" --help && "$ipam" reconcile --help; } >/run/out
	grep -oE -- '--[a-z-]+' /run/out | sort -u | while read -r option; do
		case $option in --ipam-driver | --ipam-opt | --subnet) continue ;; esac
		grep -qE -- "^\.B.* $option([^a-z-]|\$)" /run/page || fail "the page does not explain $option"
	done
	expect_refusal 'cni-ipam: unknown option --grace' "$ipam" --grace 1
	expect_refusal 'one operand too many: serve' "$ipam" serve
	expect_failure "$ipam" --ipam /dev/null
	expect_failure "$ipam" reconcile --docker /run/none
	expect_contains "$output" 'cannot connect to /run/none: No such file or directory'
}

# killed before, while and after a plugin gives or frees an address: the next request undoes it, and the
# address is free; on a full disk nothing is given; a state of somebody else's making is left alone
test_ipam_killed() {
	local command when
	ipam_killer_install
	ipam_start
	pool_request 10.91.0.0/24 >/dev/null
	for command in ADD DEL; do
		for when in before during after; do
			[ "$command" = ADD ] || given address_request "$pool" 10.91.0.5 >/dev/null
			echo "$command $when" >/run/kill
			if [ "$command" = ADD ]; then
				address_request "$pool" 10.91.0.5 && fail "an answer: $command $when"
			else
				address_release "$pool" 10.91.0.5 && fail "an answer: $command $when"
			fi
			wait "$ipam_process" || true
			ipam_start
			wait_until 10 ipam_repaired || fail "not undone: $command $when"
			expect_equal '' "$(ipam_files)" "left after the kill: $command $when"
			expect_equal 10.91.0.5 "$(given address_request "$pool" 10.91.0.5)" "$command $when"
			address_release "$pool" 10.91.0.5 >/dev/null
		done
	done
	echo 'ADD worker' >/run/kill
	expect_err 'the process for the request was killed: try again' address_request "$pool" 10.91.0.5
	expect_equal 10.91.0.5 "$(given address_request "$pool" 10.91.0.5)" "by the same daemon"
	address_release "$pool" 10.91.0.5 >/dev/null
	touch /var/lib/cni-ipam/10.91.0.0_24.new
	pool_release "$pool" >/dev/null
	expect_equal lock "$(ls /var/lib/cni-ipam)" "files without a pool"
	pool_request 10.91.0.0/24 >/dev/null
	cp "$ipam_state" /run/state
	mount -t tmpfs -o size=8k,mode=700 tmpfs /var/lib/cni-ipam
	cp /run/state "$ipam_state"
	head -c 8192 /dev/zero >/var/lib/cni-ipam/filler 2>/dev/null || true
	expect_err '10.91.0.0_24.json: No space left on device' address_request "$pool" 10.91.0.5
	expect_equal '' "$(ipam_files)" "given on a full disk"
	umount /var/lib/cni-ipam
	echo '{"pools": 7}' >"$ipam_state"
	expect_err "$ipam_state cannot be used" address_request "$pool"
	expect_equal '{"pools": 7}' "$(cat "$ipam_state")" "the state"
}

# other plugins: static gives what is asked for, and one address once; one that leaves a process is
# asked again, one that hangs is killed, one that fails is quoted
test_ipam_plugins() {
	local seconds=$((1 + SLOWER))
	echo '{"type": "static", "addresses": [{"address": "10.91.0.3/24"}]}' >/run/static
	plugin_wrap host-local <<-'SH'
		[ "$CNI_COMMAND" = ADD ] && exec sleep 1000
	SH
	# It leaves a process running, which inherits all that it has.
	plugin_wrap static <<-'SH'
		sleep 1000 </dev/null >/dev/null 2>&1 &
		[ ! -e /run/deaf ] || exec $CNI_PATH/static.real < <(jq -c 'del(.runtimeConfig)')
	SH
	ln -s "$reference_plugins/static" /run/cni-plugins/static.real
	conflist hangs bridge '.name = "hangs" | .plugins[0].ipam.ranges = [[{"subnet":"10.92.0.0/24"}]]'
	ipam_start --ipam /run/static --timeout "$seconds"
	pool_request 10.91.0.0/24 >/dev/null
	expect_equal 10.91.0.3 "$(given address_request "$pool")" "static's own"
	expect_err 'gave 10.91.0.3, which Docker has already' address_request "$pool"
	pool_request 10.92.0.0/24 >/dev/null
	expect_err "did not end within $seconds seconds" address_request docker-local/10.92.0.0/24
	pool_request 10.93.0.0/24 >/dev/null
	expect_err 'the plugin \"static\" gave no address of the pool' address_request docker-local/10.93.0.0/24
	touch /run/deaf
	expect_err 'address 10.91.0.8 of pool docker-local/10.91.0.0/24: the plugin gave 10.91.0.3 instead' \
		address_request "$pool" 10.91.0.8
	rm /run/cni-plugins/static
	expect_err 'failed to find plugin \"static\"' address_request "$pool" 10.91.0.8
}

# The store of host-local, with the IDs
ipam_store() { (cd /var/lib/cni/networks && grep -r . --exclude='last*' --exclude=lock . | sort); }

# reconcile without a state: what host-local still keeps for Docker is taken over with its IDs, what nobody has
# is given back after the grace, and users and gateways of two networks of one subnet are counted at once, so that the
# first one's removal takes nothing from the second; what a container of CNI has is an error; networks of
# another driver, or without addresses of their own, are not looked at, another driver's addresses are left alone, and it
# cannot use the state
test_ipam_reconcile() {
	local subnet='{"Subnet": "10.91.0.0/24", "Gateway": "10.91.0.254"}' unnamed='{"Subnet": "10.92.0.0/24"}' before address
	ipam_start
	docker_fake
	for address in 1 2; do
		pool_request 10.91.0.0/24 >/dev/null
		pool_request 10.92.0.0/24 >/dev/null
		given gateway_request "$pool" 10.91.0.254 >/dev/null
		given gateway_request docker-local/10.92.0.0/24 >/dev/null
	done
	for address in 5 6 9; do given address_request "$pool" 10.91.0.$address >/dev/null; done
	docker_networks "$(docker_network one cni-ipam "$subnet" 10.91.0.5)" \
		"$(docker_network two cni-ipam "$subnet" 10.91.0.6)" \
		"$(docker_network three cni-ipam "$unnamed")" "$(docker_network four cni-ipam "$unnamed")" \
		"$(docker_network five default '{"Subnet": "10.93.0.0/24"}' 10.93.0.2)" \
		"$(docker_network six cni-ipam '{"Subnet": "10.94.0.0/24"}' | jq -c '.ConfigOnly = true')"
	printf 'docker-cni-ipam-b-0123456789abcdef\r\neth0' >/var/lib/cni/networks/docker-local-10.91.0.0_24/10.91.0.99
	before=$(ipam_store)
	rm /var/lib/cni-ipam/*.json
	expect_err 'if Docker has a network of it, `cni-ipam reconcile` makes it again' address_request "$pool"
	reconcile >/run/results/reconcile || fail "without a state: $(cat /run/results/reconcile)"
	expect_equal "$before" "$(ipam_store)" "host-local's store"
	expect_equal '2 2 2 2' "$(ipam_pools '[.[] | .users, (.addresses[].gateway // empty)] | join(" ")')" \
		"users and gateways: $(cat /run/results/reconcile)"
	expect_equal "given back: $pool 10.91.0.9" "$(reconcile --grace 0)" "what nobody has"
	expect_equal "$(grep -v '10.91.0.9:' <<<"$before")" "$(ipam_store)" "without it"
	expect_equal "no differences" "$(reconcile --grace 0)" "reconcile again"
	before=$(ipam_store)
	rm /var/lib/cni/networks/docker-local-10.91.0.0_24/10.91.0.[56]
	expect_equal "told the plugin: $pool 10.91.0.5 told the plugin: $pool 10.91.0.6" "$(reconcile | sort | xargs)" "a cleared store"
	expect_equal "$before" "$(ipam_store)" "the store that was cleared"
	address_release "$pool" 10.91.0.5 >/dev/null
	address_release "$pool" 10.91.0.254 >/dev/null
	pool_release "$pool" >/dev/null
	expect_err 'as a gateway' address_request "$pool" 10.91.0.254
	expect_equal '10.91.0.254 10.91.0.6 10.91.0.99 10.92.0.1' "$(ipam_files | sed 's,.*/,,' | xargs)" "one of two networks is left"
	expect_failure reconcile --grace 0 --socket /run/docker/plugins/other.sock
	expect_contains "$output" 'is of the driver "cni-ipam"'
	docker_networks "$(docker_network two cni-ipam "$subnet" 10.91.0.6 10.91.0.77)"
	printf 'pod\r\neth0' >/var/lib/cni/networks/docker-local-10.91.0.0_24/10.91.0.77
	expect_failure reconcile --grace 0
	expect_contains "$output" "container c10.91.0.77 of network two: address 10.91.0.77 of pool $pool:"
	expect_equal '10.91.0.254 10.91.0.6 10.91.0.77 10.91.0.99' "$(ipam_files | sed 's,.*/,,' | xargs)" "two networks are gone"
	docker_networks "$(docker_network spelled cni-ipam '{"Subnet": "FD00:92::/64", "Gateway": "FD00:92:0::1"}')"
	reconcile >/run/results/reconcile || fail "another spelling: $(cat /run/results/reconcile)"
	expect_equal "no differences" "$(reconcile)" "another spelling of a gateway"
	docker_networks
	jq '.pools[].addresses["10.91.0.254"].since = 0' "$ipam_state" >/run/state
	cp /run/state "$ipam_state"
	given gateway_request "$pool" 10.91.0.254 >/dev/null
	expect_equal "no differences" "$(reconcile)" "a gateway that was taken again just now"
}

# a conflist that cannot be read could have the subnet: no store is begun beside its own; a subnet that another list
# has, or with network=, is given
test_ipam_unreadable() {
	ipam_start
	pool_request 10.88.0.0/16 >/dev/null
	pool_release docker-local/10.88.0.0/16 >/dev/null
	mv /run/conf/bridge.conflist /run/bridge
	head -c 99 /run/bridge >/run/conf/bridge.conflist
	expect_err 'pool 10.88.0.0/16: it could be of a conflist that cannot be read' pool_request 10.88.0.0/16
	expect_err '/run/conf/bridge.conflist' pool_request ''
	conflist other bridge '.name = "other" | .plugins[0].ipam.ranges = [[{"subnet":"10.97.0.0/16"}]]'
	pool_expect docker-local/10.97.0.0/16 10.97.0.0/16
	mv /run/bridge /run/conf/bridge.conflist
	pool_expect docker-local/10.88.0.0/16 10.88.0.0/16
	expect_equal bridge "$(ipam_pools '.["docker-local/10.88.0.0/16"].plan.name')" "the list's store"
}

# one pool's plugin fails: other pools go on and do not run it; in its own nothing is given before what was begun is
# undone, no list grows, what Docker gives back is remembered, the pool too; all is done once the plugin works
test_ipam_broken() {
	local try
	plugin_wrap static <<-'SH'
		[ ! -e /run/broken ] || { echo "$CNI_COMMAND" >>/run/calls; exit 1; }
	SH
	echo '{"type": "static"}' >/run/static
	conflist bridge bridge .
	ipam_start --ipam /run/static
	pool_request 10.88.0.0/16 >/dev/null
	pool_request 10.91.0.0/24 >/dev/null
	for try in 2 3 4; do given address_request "$pool" 10.91.0.$try >/dev/null; done
	touch /run/broken
	expect_err 'plugin' address_request "$pool" 10.91.0.7
	: >/run/calls
	given address_request docker-local/10.88.0.0/16 >/dev/null
	expect_equal '' "$(cat /run/calls)" "calls for another pool"
	for try in 1 2 3; do expect_err "of pool $pool: what is to be freed first" address_request "$pool" 10.91.0.8; done
	expect_equal 'DEL DEL DEL' "$(xargs </run/calls)" "calls for three requests"
	: >/run/calls
	for try in 1 2; do expect_equal '{} 200' "$(address_release "$pool" 10.91.0.2)" "what is given back"; done
	expect_equal '' "$(cat /run/calls)" "calls for what is given back"
	expect_equal 2 "$(ipam_pools 'map(.changing | length) | max')" "IDs to be freed"
	docker_fake
	docker_networks "$(docker_network one cni-ipam '{"Subnet": "10.91.0.0/24"}' 10.91.0.11 10.91.0.12)"
	expect_failure reconcile
	expect_equal DEL "$(xargs </run/calls)" "calls of reconcile: $output"
	expect_err "pool $pool" pool_release "$pool"
	expect_equal 4 "$(ipam_pools 'map(.changing | length) | max')" "with all of the pool"
	pool_request 10.92.0.0/24 >/dev/null
	expect_err 'plugin' address_request docker-local/10.92.0.0/24
	expect_err 'pool docker-local/10.92.0.0/24' pool_release docker-local/10.92.0.0/24
	expect_equal 1 "$(ipam_pools '.["docker-local/10.92.0.0/24"].changing | length')" "IDs of a pool without addresses"
	: >/run/calls
	ipam_kill
	ipam_start --ipam /run/static
	wait_until 10 file_says DEL /run/calls || fail "nothing is undone at the start"
	expect_err "there is no pool" post IpamDriver.ReleasePool '{"PoolID":"none"}'
	pool_expect "$pool" 10.91.0.0/24
	expect_err 'what is to be freed first' address_request "$pool" 10.91.0.4
	expect_err "pool $pool" pool_release "$pool"
	rm /run/broken
	ipam_kill
	ipam_start --ipam /run/static
	wait_until 10 ipam_repaired || fail "not undone"
	expect_equal docker-local/10.88.0.0/16 "$(ipam_pools 'keys[]')" "pools that are left"
}

# while a plugin hangs for one subnet, the requests of others are answered, also of one that is made and of a daemon that
# was started anew; at SIGTERM a request that was read is answered
test_ipam_hanging() {
	local request
	plugin_wrap static <<-'SH'
		touch "/run/hanging.$CNI_COMMAND"
		while [ -e /run/hang ]; do sleep .1; done
	SH
	echo '{"type": "static"}' >/run/static
	ipam_start --ipam /run/static --timeout 0
	pool_request 10.91.0.0/24 >/dev/null
	pool_request 10.88.0.0/16 >/dev/null
	touch /run/hang
	address_request "$pool" 10.91.0.5 >/run/results/hangs &
	wait_until 10 test -e /run/hanging.ADD || fail "the plugin was not run"
	given address_request docker-local/10.88.0.0/16 >/dev/null
	pool_expect docker-local/10.92.0.0/24 10.92.0.0/24
	expect_equal '' "$(cat /run/results/hangs)" "the answer of the subnet that hangs"
	ipam_kill
	ipam_start --ipam /run/static --timeout 0
	given address_request docker-local/10.88.0.0/16 >/dev/null
	rm /run/hang
	given address_request "$pool" 10.91.0.6 >/dev/null
	rm /run/hanging.ADD
	touch /run/hang
	address_request "$pool" 10.91.0.5 >/run/results/ends &
	request=$!
	wait_until 10 test -e /run/hanging.ADD || fail "the plugin was not run again"
	kill "$ipam_process"
	rm /run/hang
	wait "$ipam_process" || fail "exit status $? after SIGTERM"
	wait "$request"
	expect_equal '{"Address":"10.91.0.5/24","Data":{}} 200' "$(cat /run/results/ends)" "at SIGTERM"
}

# a state that cannot be read: the daemon starts and answers what to do, and works as soon as there is one; the state of
# another driver is left alone
test_ipam_garbled() {
	mkdir -m 700 /var/lib/cni-ipam
	echo '{"pools": {"x": 7}}' >"$ipam_state"
	ipam_start
	expect_equal '{"Implements":["IpamDriver"]} 200' "$(post Plugin.Activate '')" "with a garbled state"
	expect_err "$ipam_state cannot be used" pool_request 10.91.0.0/24
	expect_equal '{"pools": {"x": 7}}' "$(cat "$ipam_state")" "the state"
	echo '{"pools": {}}' >"$ipam_state"
	pool_expect "$pool" 10.91.0.0/24
	rm "$ipam_state"
	pool_expect "$pool" 10.91.0.0/24
	chmod 777 /var/lib/cni-ipam
	expect_err 'must be a directory of user 0 that nobody else may write to' address_request "$pool"
	chmod 700 /var/lib/cni-ipam
	ipam_kill
	ipam_socket=/run/docker/plugins/other.sock
	ipam_start --socket "$ipam_socket"
	expect_err 'is of the driver \"cni-ipam\"' address_request "$pool"
}

# pools at the edges: of one and two addresses with a plugin that can, refused by name with host-local; a sub-pool that is
# the pool; a gateway outside of the sub-pool, and outside of the pool; a swarm's address space
test_ipam_edges() {
	ipam_start
	for small in 10.94.0.0/31 10.94.0.0/32 fd00:94::/127 fd00:94::/128; do
		expect_err "pool $small: host-local gives no address of so small a subnet" pool_request $small
	done
	pool_expect docker-local/10.94.0.0/30 10.94.0.0/30
	expect_equal 10.94.0.1 "$(given gateway_request docker-local/10.94.0.0/30)" "gateway of a /30"
	expect_equal 10.94.0.2 "$(given address_request docker-local/10.94.0.0/30)" "the other one"
	expect_err 'no IP addresses available' address_request docker-local/10.94.0.0/30
	pool_expect "$pool/10.91.0.0/24" 10.91.0.0/24 10.91.0.0/24
	expect_equal 10.91.0.1 "$(given gateway_request "$pool/10.91.0.0/24")" "gateway of a sub-pool that is the pool"
	expect_equal 10.91.0.2 "$(given address_request "$pool/10.91.0.0/24")" "address of it"
	pool_expect "$pool/10.91.0.128/25" 10.91.0.0/24 10.91.0.128/25
	expect_equal 10.91.0.3 "$(given gateway_request "$pool/10.91.0.128/25" 10.91.0.3)" "outside of the sub-pool"
	expect_err 'it is outside of the pool' gateway_request "$pool/10.91.0.128/25" 10.92.0.1
	expect_err 'networks of a swarm' call RequestPool '{AddressSpace: "docker-global", Pool: "10.95.0.0/24"}'
	ipam_kill
	echo '{"type": "static"}' >/run/static
	ipam_start --ipam /run/static
	pool_expect docker-local/10.94.1.0/31 10.94.1.0/31
	expect_equal 10.94.1.0 "$(given gateway_request docker-local/10.94.1.0/31)" "gateway of a /31"
	expect_equal 10.94.1.1 "$(given address_request docker-local/10.94.1.0/31 10.94.1.1)" "the other one"
	pool_expect docker-local/fd00:94::7/128 fd00:94::7/128
	expect_equal fd00:94::7 "$(given gateway_request docker-local/fd00:94::7/128)" "the only one"
}

# what Docker lost when it ended is given back once it is started anew and answers, however late, and not
# what it gets meanwhile; a pool that is full of what Docker has lost gives one of these
test_ipam_lost() {
	local small=docker-local/10.92.0.0/29 address
	ipam_start
	pool_expect "$pool" 10.91.0.0/24
	for address in 5 6 9; do given address_request "$pool" 10.91.0.$address >/dev/null; done
	age "$ipam_state"
	post Plugin.Activate '' >/dev/null
	given address_request "$pool" 10.91.0.7 >/dev/null
	docker_networks "$(docker_network one cni-ipam '{"Subnet": "10.91.0.0/24"}' 10.91.0.5)" \
		"$(docker_network two cni-ipam '{"Subnet": "10.92.0.0/29"}' 10.92.0.2)"
	expect_equal '10.91.0.5 10.91.0.6 10.91.0.7 10.91.0.9' "$(ipam_files | sed 's,.*/,,' | xargs)" "before Docker answers"
	docker_fake
	wait_until 20 given_are 10.91.0.5 10.91.0.7 || fail "given are $(ipam_files | xargs): $(cat /run/results/ipam)"
	pool_expect "$small" 10.92.0.0/29
	for address in 1 2 3 4 5 6; do given address_request "$small" >/dev/null; done
	expect_err 'no IP addresses available' address_request "$small"
	age /var/lib/cni-ipam/10.92.0.0_29.json
	address=$(given address_request "$small")
	[ "$address" != 10.92.0.2 ] || fail "the address of a container was given twice"
	expect_equal 2 "$(ipam_files | grep -c /10.92)" "given of the pool that was full"
}

# what the state has lost and a container of another pool of the subnet has is not given back; a network that is removed
# while Docker is asked is no error; what lists no networks is not Docker, and nothing is given back
test_ipam_lost_beside() {
	local subnet='"Subnet": "10.91.0.0/24"' given
	ipam_start
	pool_expect "$pool" 10.91.0.0/24
	pool_expect "$pool/10.91.0.64/26" 10.91.0.0/24 10.91.0.64/26
	given=$(given address_request "$pool" 10.91.0.9) # of nobody
	given address_request "$pool/10.91.0.64/26" >/dev/null
	docker_networks "$(docker_network one cni-ipam "{$subnet}")" "$(docker_network gone cni-ipam "{$subnet}")" \
		"$(docker_network two cni-ipam "{$subnet, \"IPRange\": \"10.91.0.64/26\"}" 10.91.0.64)"
	rm /run/docker-api/networks-gone
	jq 'del(.pools[].addresses["10.91.0.64"])' "$ipam_state" >/run/state
	cp /run/state "$ipam_state"
	age "$ipam_state"
	touch -d '-1 hour' /var/lib/cni/networks/docker-local-10.91.0.0_24/10.91.0.64
	docker_fake
	mv /run/docker-api/networks /run/networks
	expect_failure reconcile
	expect_contains "$output" 'what listens at /run/docker.sock is not Docker'
	expect_equal "10.91.0.64 $given" "$(ipam_files | sed 's,.*/,,' | xargs)" "given, without a list of networks"
	mv /run/networks /run/docker-api/networks
	post Plugin.Activate '' >/dev/null
	wait_until 20 given_are 10.91.0.64 || fail "given are $(ipam_files | xargs): $(cat /run/results/ipam)"
}

# age FILE: what it has was given an hour before
age() {
	jq '.pools[].addresses[].since -= 3600 | .pools[].since -= 3600' "$1" >/run/aged
	cp /run/aged "$1"
}

given_are() { [ "$(ipam_files | sed 's,.*/,,' | xargs)" = "$*" ]; }

# reconcile without a state: networks that have no gateway get none, of which each would take an address:
# gateway_mode isolated, of the family that it names; macvlan --internal; ipvlan l3
test_ipam_reconcile_without_gateway() {
	ipam_start
	docker_fake
	docker_networks \
		"$(docker_network one cni-ipam '{"Subnet": "10.91.0.0/24"}' 10.91.0.5 | jq -c '.Driver = "bridge" | .Internal = true |
			.Options = {"com.docker.network.bridge.gateway_mode_ipv4": "isolated"}')" \
		"$(docker_network two cni-ipam '{"Subnet": "10.92.0.0/24"}' | jq -c '.Driver = "macvlan" | .Internal = true')" \
		"$(docker_network three cni-ipam '{"Subnet": "10.93.0.0/24"}' | jq -c '.Driver = "ipvlan" | .Options = {ipvlan_mode: "l3"}')" \
		"$(docker_network four cni-ipam '{"Subnet": "10.94.0.0/24"}' | jq -c '.Driver = "bridge" | .Internal = true')" \
		"$(docker_network five cni-ipam '{"Subnet": "fd00:95::/64"}' | jq -c '.Driver = "bridge" | .Internal = true |
			.Options = {"com.docker.network.bridge.gateway_mode_ipv4": "isolated"}')"
	reconcile >/run/results/reconcile || fail "$(cat /run/results/reconcile)"
	expect_equal '10.91.0.5 10.94.0.1 fd00:95::1' \
		"$(ipam_pools '[.[].addresses | keys[]] | sort | join(" ")')" "addresses: $(cat /run/results/reconcile)"
	expect_equal "no differences" "$(reconcile)" "reconcile again"
}

# dhcp beneath it is refused where a network is made, with the reason; other subnets are given
test_ipam_dhcp() {
	conflist lease bridge '.name = "lease" | .plugins[0].ipam = {"type": "dhcp"}'
	ipam_start
	expect_err 'the plugin \"dhcp\" asks for an address from inside' call RequestPool \
		'{AddressSpace: "docker-local", Pool: "10.97.0.0/24", Options: {network: "lease"}}'
	pool_request 10.98.0.0/24 >/dev/null
	expect_equal 10.98.0.1 "$(given address_request docker-local/10.98.0.0/24)" "another subnet's"
}
