# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_support.sh - `bpf-portmap support`, the tar file for whoever is to find a fault.

support_world() {
	mkdir -p /etc/cni/net.d
	mount -t tmpfs tmpfs /etc/cni/net.d
	cd /run || exit
}

# unpacked [FILE]: the directory that the tar has
unpacked() {
	rm -rf /run/unpacked
	mkdir /run/unpacked
	tar -xf "${1:-/run/out.tar}" -C /run/unpacked || fail 'no tar'
	find /run/unpacked -mindepth 1 -maxdepth 1
}

# expect_in_manifest ok|failed NAME
expect_in_manifest() {
	grep "^$1 *$2 " "$directory/MANIFEST" >/dev/null || fail "no '$1 $2' in $(cat "$directory/MANIFEST")"
}

# it has the tables, programs, rules and conflists, each as its own command prints it
test_operator_support() {
	local directory
	support_world
	container_start web bridge -p 8080:80/tcp
	expect_answer client tcp "$host4" 8080 web
	nft add table ip seen_by_support
	by_hand 0 support
	expect_equal 1 "$(find /run -maxdepth 1 -name 'bpf-portmap-support-*.tar' | wc -l)" 'files'
	expect_equal 600 "$(stat -c %a /run/bpf-portmap-support-*.tar)" mode
	directory=$(unpacked /run/bpf-portmap-support-*.tar)
	expect_equal 8080 "$(jq '.items[0].host.port' "$directory/bpf-portmap/list.json")"
	expect_equal web "$(jq -r '.items[0].container.id' "$directory/bpf-portmap/list.json")"
	jq -e '.items | length > 0' "$directory/bpf-portmap/stats.json" >/dev/null || fail stats
	jq -e '.items | length > 25' "$directory/bpf-portmap/doctor.json" >/dev/null || fail doctor
	jq -e '[.[] | select(.name == "from_uplink")] | length > 0' "$directory/bpf/programs.json" >/dev/null ||
		fail 'no programs'
	expect_in "$directory/rules/nftables" seen_by_support
	expect_in "$directory/bpf-portmap/pins" portmaps
	expect_in "$directory/sysctls" 'net.ipv4.ip_forward = 1'
	expect_in "$directory/sysctls" 'net.ipv4.conf.eth0.rp_filter'
	expect_in "$directory/versions/system" "$(uname -r)"
	jq -e 'map(.ifname) | index("eth0")' "$directory/network/links.json" >/dev/null || fail links
	expect_in_manifest ok tc/eth0-ingress
	by_hand_warns 1 'File exists' support /run/bpf-portmap-support-*.tar
	"$build/bpf-portmap" support - </dev/null | tar -t | grep '/MANIFEST$' || fail 'standard output'
}

# neither passwords of other plugins in conflists nor the environment are in it
test_operator_support_secrets() {
	local directory
	support_world
	export SECRET_IN_ENVIRONMENT=hunter2
	export CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;TOKEN=hunter2'
	container_start web bridge -p 8080:80/tcp
	unset CNI_ARGS
	jq '.plugins += [{"type": "calico", "etcd_password": "hunter2", "mtu": 1440,
		"kubernetes": {"name": "hunter2", "token": "hunter2"},
		"policy": ["hunter2"], "capabilities": {"bandwidth": true}}]
		| .plugins[0].args = {"cni": {"key": "hunter2"}}
		| .plugins[0].dataDir = "https://admin:hunter2@store/"
		| .plugins[0].addresses = ["https://admin:hunter2@store/"]' \
		"$project/conf/bridge.conflist" >/etc/cni/net.d/10-calico.conflist
	echo 'password: hunter2' >/etc/cni/net.d/20-broken.conflist
	echo 'hunter2' >/etc/cni/net.d/calico-kubeconfig
	cp "$project/conf/bridge.conflist" /etc/cni/net.d/30-the-network-of-the-cluster-in-rack-1.conflist
	cp "$project/conf/ptp.conflist" /etc/cni/net.d/30-the-network-of-the-cluster-in-rack-2.conflist
	cp "$project/conf/ptp.conflist" "/etc/cni/net.d/40-"$'\033[31m.conflist'
	by_hand 0 support /run/out.tar
	directory=$(unpacked)
	! grep -rl hunter2 "$directory" || fail 'a secret is in it'
	jq -e '.plugins[-1] == {"type": "calico", "etcd_password": "(left out)", "mtu": 1440,
		"kubernetes": "(left out)", "policy": "(left out)", "capabilities": {"bandwidth": true}}' \
		"$directory/conflists/10-calico.conflist" >/run/equal ||
		fail "$(cat "$directory/conflists/10-calico.conflist")"
	expect_equal "$(jq '.plugins[1]' "$project/conf/bridge.conflist")" \
		"$(jq '.plugins[1]' "$directory/conflists/10-calico.conflist")" 'our own entry'
	expect_in_manifest failed conflists/20-broken.conflist
	expect_equal 2 "$(find "$directory/conflists" -name '30-*.conflist' | wc -l)" 'lists with long names'
	! grep $'\033' "$directory/MANIFEST" || fail 'a name is not printable'
	expect_equal shop/web-0 "$(jq -r '.items[0].container.name' "$directory/bpf-portmap/list.json")"
}

# a program that hangs, one that fails and one that is missing are in the manifest, and the rest in
# the tar
test_operator_support_hanging() {
	local directory since=$SECONDS
	support_world
	mkdir /run/hang
	printf '#!/bin/sh\ntrap "" TERM INT\nsetsid sleep 600 &\nsleep 600\n' >/run/hang/nft
	printf '#!/bin/sh\necho half\necho no rights >&2\nexit 3\n' >/run/hang/tc
	chmod 755 /run/hang/*
	mount --bind /run/hang/nft "$(command -v nft)"
	mount --bind /run/hang/tc "$(command -v tc)"
	mount --bind /dev/null "$(readlink -f "$(command -v bridge)")"
	by_hand 0 support /run/out.tar
	[ $((SECONDS - since)) -le $((90 * SLOWER)) ] || fail "it took $((SECONDS - since)) s"
	directory=$(unpacked)
	grep '^failed *rules/nftables .*did not end within' "$directory/MANIFEST" >/dev/null || fail "$(cat "$directory/MANIFEST")"
	grep '^failed *tc/qdiscs .*status 3, no rights' "$directory/MANIFEST" >/dev/null || fail "$(cat "$directory/MANIFEST")"
	expect_in_manifest failed network/bridge.json
	expect_equal half "$(cat "$directory/tc/qdiscs")"
	expect_in_manifest ok network/links.json
}

# it works with damaged maps, for a user without rights, and says where it could not write
test_operator_support_damaged() {
	local directory
	support_world
	container_start web bridge -p 8080:80/tcp
	rm "$pins/portmaps" "$pins/slots"
	by_hand 0 support /run/out.tar
	directory=$(unpacked)
	expect_in_manifest failed bpf-portmap/list.json
	expect_in_manifest ok bpf-portmap/pins
	by_hand_warns 1 'No such file' support /run/nowhere/out.tar
	mkdir -m 777 /run/open
	cp "$build/bpf-portmap" /run/open/
	PREFIX='setpriv --reuid 65534 --regid 65534 --clear-groups' binary=/run/open/bpf-portmap \
		by_hand 0 support /run/open/out.tar
	directory=$(unpacked /run/open/out.tar)
	expect_in_manifest failed bpf-portmap/list.json
	mkdir /run/small
	mount -t tmpfs -o size=16k tmpfs /run/small
	by_hand_warns 1 'No space left' support /run/small/out.tar
	[ ! -e /run/small/out.tar ] || fail 'half a file stays'
}
