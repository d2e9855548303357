# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_docker.sh - the real Docker, whose addresses come from CNI plugins by cni-ipam.

. "$folder/engine.sh"
. "$folder/docker.sh"
. "$here/ipam.sh"

cni_address() { ip -n "$1" -4 -o address show dev eth0 | sed 's/.*inet \([^/]*\).*/\1/'; }

# A Docker network on the bridge of the CNI network `bridge`, both families
shared_create() {
	docker network create --ipam-driver cni-ipam --ipam-opt network=bridge --ipv6 \
		--subnet 10.88.0.0/16 --gateway 10.88.0.1 --subnet fd00:88::/64 --gateway fd00:88::1 \
		-o com.docker.network.bridge.name=cni0 "$1" >/dev/null || fail "network create $1"
}

expect_all_differ() {
	expect_equal '' "$(printf '%s\n' "$@" | sort | uniq -d)" "addresses of two containers"
}

# limit 120 s
# docker run on the bridge and the addresses of a CNI network, IPv4 and IPv6, beside containers of
# cnirun: no address twice, each reaches the other; --ip, one that is taken, a second network with a
# sub-pool and a gateway of its own, a chosen subnet, two networks of one subnet and one gateway, a
# network of two subnets; networks of a swarm are refused; reconcile without a state changes nothing
# in the plugin's store; after rm it has what it had before
test_docker_shared() {
	local before one two output stored
	ipam_start
	docker_world
	container_add c1 bridge
	before=$(ipam_files)
	shared_create shared
	docker_start one shared
	container_add c2 bridge
	docker_start two shared
	container_add c3 bridge
	one=$(docker_address one)
	two=$(docker_address two)
	expect_all_differ "$one" "$two" "$(cni_address c1)" "$(cni_address c2)" "$(cni_address c3)" 10.88.0.1
	serve_in c2 80
	output=$(nsenter --net="/proc/$(docker inspect -f '{{.State.Pid}}' one)/ns/net" \
		"$peer" ask tcp "$(cni_address c2)" 80 2>&1) || fail "Docker's container to cnirun's: $output"
	expect_equal "$one" "$(field_of client "$output" | address_part)" "seen by c2"
	docker_start fixed shared --ip 10.88.7.7 --ip6 fd00:88::77
	expect_equal 10.88.7.7 "$(docker_address fixed)" "--ip"
	output=$(docker run -d --network shared --ip "$(cni_address c2)" image /bin/busybox true 2>&1) &&
		fail "an address of cnirun's was given to Docker"
	expect_contains "$output" "address $(cni_address c2) of pool docker-local/10.88.0.0/16"
	docker network create --ipam-driver cni-ipam --subnet 10.91.0.0/24 --ip-range 10.91.0.64/29 \
		--gateway 10.91.0.254 --aux-address router=10.91.0.65 second >/dev/null
	docker network connect second one
	expect_equal 10.91.0.66 "$(docker inspect -f '{{.NetworkSettings.Networks.second.IPAddress}}' one)" \
		"the first of the sub-pool that is free"
	docker network create --ipam-driver cni-ipam chosen >/dev/null || fail "a chosen subnet"
	docker network create --ipam-driver cni-ipam -d macvlan --subnet 10.95.0.0/24 --gateway 10.95.0.9 \
		-o parent=eth0 lan0 >/dev/null || fail "macvlan"
	docker network create --ipam-driver cni-ipam -d macvlan --subnet 10.95.0.0/24 --gateway 10.95.0.9 \
		-o parent=eth1 lan1 >/dev/null || fail "macvlan, the second"
	ip link add parent0 type veth peer name parent1
	docker network create --ipam-driver cni-ipam -d macvlan --subnet 10.96.0.0/30 --gateway 10.96.0.1 \
		--subnet 10.97.0.0/30 --gateway 10.97.0.1 -o parent=parent0 subnets >/dev/null || fail "two subnets"
	docker_start first subnets
	one=$(docker_address first)
	output=$(docker run -d --network subnets image 2>&1) && fail "Docker has gone on to the other subnet"
	expect_contains "$output" "no IP addresses available in range set: ${one%2}1-$one"
	two=$(printf '10.96.0.2\n10.97.0.2\n' | grep -vx "$one")
	docker_start last subnets --ip "$two"
	expect_equal "$two" "$(docker_address last)" "of the other subnet"
	docker swarm init --advertise-addr 127.0.0.1 >/dev/null || fail "swarm init"
	output=$(docker network create -d overlay --ipam-driver cni-ipam over 2>&1) && fail "a network of a swarm"
	expect_contains "$output" "cni-ipam of type IpamDriver is not supported in swarm mode"
	docker network create --config-only --ipam-driver cni-ipam --subnet 10.98.0.0/24 template >/dev/null
	expect_equal "no differences" "$(reconcile --grace 0)" reconcile
	stored=$(cd /var/lib/cni/networks && grep -r docker- .)
	rm /var/lib/cni-ipam/*.json
	reconcile >/run/results/reconcile || fail "reconcile: $(cat /run/results/reconcile)"
	expect_equal "$stored" "$(cd /var/lib/cni/networks && grep -r docker- .)" "host-local's store after the state was lost"
	expect_equal "no differences" "$(reconcile --grace 0)" "reconcile again"
	container_del c2 bridge
	container_del c3 bridge
	docker rm -f one two fixed first last >/dev/null
	docker network rm lan0 >/dev/null
	expect_contains "$(ipam_files)" /10.95.0.9
	docker network rm shared second chosen lan1 subnets >/dev/null
	expect_equal "$before" "$(ipam_files)" "what host-local has"
	expect_equal '{}' "$(ipam_pools .)" "pools that are left"
	wait_until 10 no_veth_of_docker || fail "Docker's interfaces stay"
}

# Docker removes a container before its interface. That of the swarm itself stays.
no_veth_of_docker() {
	! ip -o link show type veth | grep -v docker_gwbridge | grep -E ' veth[0-9a-f]{7}@' >/dev/null
}

# limit 180 s
# restarts: of cni-ipam, killed while Docker runs, and while it waits for an address; of dockerd, which gives back what its containers
# had and starts them again; dockerd killed with its containers; an address that was lost and the
# whole state: reconcile gives back and asks again
test_docker_restarts() {
	local address answer starting
	ipam_start
	docker_world
	docker network create --ipam-driver cni-ipam --subnet 10.91.0.0/24 web >/dev/null
	docker_start one web
	docker_start fixed web --ip 10.91.0.100
	address=$(docker_address one)
	ipam_kill
	ipam_start
	docker_start two web
	expect_all_differ "$address" "$(docker_address two)" 10.91.0.100 10.91.0.1
	ipam_killer_install
	echo 'ADD after' >/run/kill
	docker run --network web image /bin/busybox true >/run/results/retried 2>&1 &
	starting=$!
	wait "$ipam_process" || true
	ipam_start
	# Docker repeats the request, but without its text.
	wait "$starting" || expect_in /run/results/retried 'the request is empty, as Docker'
	expect_equal "no differences" "$(reconcile --grace 0)" "after the request was repeated"
	dockerd_stop
	dockerd_start
	expect_equal ./docker-local-10.91.0.0_24/10.91.0.1 "$(ipam_files)" "what is given while all are stopped"
	docker start one fixed >/dev/null
	expect_equal 10.91.0.100 "$(docker_address fixed)" "--ip after a restart"
	kill -9 "$dockerd_process" "$(docker inspect -f '{{.State.Pid}}' one)"
	wait "$dockerd_process" || true
	rm -f /run/dockerd.pid
	dockerd_start
	docker start one >/dev/null || fail "docker start one"
	expect_equal "no differences" "$(reconcile --grace 0)" "after dockerd was killed"
	address=$(given address_request docker-local/10.91.0.0/24)
	expect_equal "no differences" "$(reconcile)" "younger than --grace"
	expect_equal "would be given back: docker-local/10.91.0.0/24 $address" \
		"$(reconcile --grace 0 --dry-run)" "--dry-run"
	expect_equal "$address" "$(reconcile --grace 0 --dry-run --json | jq -r '.[].address')" "--json"
	expect_equal "given back: docker-local/10.91.0.0/24 $address" "$(reconcile --grace 0)" reconcile
	answer=$(cd /var/lib/cni/networks && grep -r docker- .)
	rm -r /var/lib/cni-ipam
	reconcile --grace 0 >/run/results/reconcile || fail "reconcile: $(cat /run/results/reconcile)"
	expect_equal "$answer" "$(cd /var/lib/cni/networks && grep -r docker- .)" "of the plugin's store"
	answer=$(ipam_files)
	rm -r /var/lib/cni-ipam /var/lib/cni/networks
	reconcile --grace 0 >/run/results/reconcile || fail "reconcile: $(cat /run/results/reconcile)"
	expect_equal "$answer" "$(ipam_files)" "asked again for: $(cat /run/results/reconcile)"
	expect_equal "no differences" "$(reconcile --grace 0)" "the second time"
	docker rm -f one two fixed >/dev/null
	mv /run/cni-plugins/host-local /run/host-local
	docker network rm web >/dev/null
	expect_failure reconcile --grace 0
	expect_contains "$output" 'failed to find plugin "host-local"'
	mv /run/host-local /run/cni-plugins/host-local
	expect_contains "$(reconcile --grace 0)" 'given back: docker-local/10.91.0.0/24'
	expect_equal '' "$(ipam_files)" "what host-local has"
	expect_equal '{}' "$(ipam_pools .)" "pools that are left"
}

# limit 180 s
# addresses that Docker has lost, as when it is stopped with more containers than it can end in its
# time, are given back when it has been started anew, and when a pool is full; its containers keep theirs
test_docker_lost() {
	local number
	ipam_start
	docker_world
	docker network create --ipam-driver cni-ipam --subnet 10.91.0.0/28 web >/dev/null
	docker_start one web --restart always
	for number in {1..5}; do given address_request docker-local/10.91.0.0/28 >/dev/null; done
	dockerd_stop
	dockerd_start
	wait_until 60 nothing_lost || fail "$(reconcile --grace 0 --dry-run) $(cat /run/results/ipam)"
	expect_equal "10.91.0.1 $(docker_address one)" "$(ipam_files | sed 's,.*/,,' | xargs)" "addresses that are given"
	for number in {1..12}; do given address_request docker-local/10.91.0.0/28 >/dev/null; done
	expect_refusal 'no IP addresses available' docker run --network web image /bin/busybox true
	jq '.pools[].addresses[].since -= 3600' /var/lib/cni-ipam/10.91.0.0_28.json >/run/aged
	cp /run/aged /var/lib/cni-ipam/10.91.0.0_28.json
	docker_start two web
	expect_equal 3 "$(ipam_files | wc -l)" "addresses after the pool was full"
	expect_all_differ "$(docker_address one)" "$(docker_address two)" 10.91.0.1
}

nothing_lost() { [ "$(reconcile --grace 0 --dry-run)" = 'no differences' ]; }
