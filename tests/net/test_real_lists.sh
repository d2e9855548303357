# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_real_lists.sh - tests/lists has conflists as engines, agents and people have them, with other
# names and addresses: what `install` says of each, and ADD, `migrate` and going back where the
# plugins that it names are on this machine.

# FILE | install | ADD | migrate
# install: "ours", where it puts our plugin into the list, or what it says instead; ADD, by the list
# with ours: "answers", "silent" where it succeeds and maps nothing, or what it says; migrate, of a
# container that portmap has mapped: "mapped", or why it is left. "-": not tried, as portmap's own
# ADD fails there, or no port of it answers, or the list is refused.
lists='
antrea|ours|failed to find plugin "antrea"|-
aws-cilium|ours|failed to find plugin "aws-cni"|-
azure|ours|failed to find plugin "azure-vnet"|-
bandwidth-first|ours|answers|mapped
both|has portmap and bpf-portmap, which map the same ports|-|-
bridge-dhcp|ours|dhcp|-
bridge-tuned|ours|answers|mapped
bridge-without-addresses|ours|silent|-
calico|ours|failed to find plugin "calico"|-
calico-linkerd|ours|failed to find plugin "calico"|-
cilium|is Cilium|-|-
cilium-generic-veth|ours|failed to find plugin "cilium-cni"|-
cilium-with-portmap|is Cilium|-|-
conditions-conntrack|remove the key|-|remove the key
conditions-destination|"excludeCIDRs": ["192.0.2.99/32"]|-|mapped
conditions-interface|"excludeInterfaces": ["wg0"]|-|put in its place: "excludeInterfaces": ["wg0"]
conditions-nftables|remove the key|-|-
conditions-source|"sourceRanges": ["192.0.2.0/24", "2001:db8::/32"]|-|mapped
containerd|ours|answers|mapped
containerd-ptp|ours|answers|mapped
crio-bridge|has no plugin portmap|-|-
firecracker|has no plugin portmap|-|-
firecracker-ports|ours|failed to find plugin "tc-redirect-tap"|-
flannel|ours|failed to find plugin "flannel"|-
flannel-istio|ours|failed to find plugin "flannel"|-
gke|ours|answers|mapped
ipvlan-ports|ours|ipvlan|-
k0s-kube-router|ours|answers|mapped
k3s|ours|failed to find plugin "flannel"|-
kilo|ours|answers|mapped
kind|ours|answers|mapped
kube-ovn|ours|failed to find plugin "kube-ovn"|-
kube-router|ours|answers|mapped
macvlan-ports|ours|macvlan|-
minikube|ours|answers|mapped
multus|which runs the plugins of other lists|-|-
multus-second-network|ours|answers|mapped
nerdctl-compose|ours|failed to find plugin "isolation"|-
nerdctl-default|ours|answers|mapped
nerdctl-ipvlan|has no plugin portmap|-|-
nerdctl-odd|ours|too big integer|-
nomad-default|ours|answers|mapped
nomad-hairpin|ours|failed to find plugin "consul-cni"|-
nomad-own|ours|answers|mapped
one-plugin|has no "plugins"|-|-
podman-both-families|ours|answers|mapped
podman-created|ours|answers|mapped
podman-default|ours|answers|mapped
podman-dnsname|ours|failed to find plugin "dnsname"|-
podman-macvlan|has no plugin portmap|-|-
portmap-twice|has the same plugin twice|-|-
rke2-canal|ours|failed to find plugin "calico"|-
rke2-cilium|ours|failed to find plugin "cilium-cni"|-
several-versions|ours|answers|mapped
terway|ours|failed to find plugin "terway"|-
version-of-tomorrow|1.9.0|-|-
weave|ours|failed to find plugin "weave-net"|-
with-comments|is not valid JSON: line 1, column 1|-|-
without-capability|ours|no plugin of the list|-
without-name|has no "name"|-|-'

lists_begin() {
	local command
	mkdir -p "$bin" "$conf" /etc/cni/net.d
	mount -t tmpfs tmpfs /etc/cni/net.d
	cp -L "$reference_plugins"/* "$bin/"
	cp "$project"/tests/lists/*.conflist "$conf/"
	chmod 640 "$conf"/*
	chown 3:4 "$conf"/*
	plugins=$(ls -A "$bin")
	# As Nomad and kube-proxy make them.
	iptables -N NOMAD-ADMIN
	for command in iptables ip6tables; do "$command" -t nat -N KUBE-MARK-MASQ; done
	namespace_add new
	tcp_serve new
	expect_equal "$(printf '%s\n' "$conf"/* | sed 's,.*/,,; s,\.conflist$,,' | sort)" "$(for_each echo '$file')" "the lists that have a row"
}

tcp_serve() { in_namespace "$1" "$peer" serve tcp any 80 --name "$1" --background; }

# for_each COMMAND...: for each row, with its $file, $install, $add, $migrate, and a host port of its own
for_each() {
	local file install add migrate port=8000
	while IFS='|' read -r file install add migrate; do
		[ -n "$file" ] || continue
		port=$((port + 1))
		eval "$*"
	done <<<"$lists"
}

# node_run VERB CONTAINER [OPTION...]: cnirun with the node's list and plugins
node_run() { CNI_PATH=$bin "$cnirun" "$1" "$conf/$file.conflist" "$2" --id "$2" "${@:3}" >/run/said 2>&1; }

portmap_adds() {
	[ "$migrate" != - ] || return 0
	namespace_add "$file"
	tcp_serve "$file"
	node_run add "$file" -p "$port:80/tcp" || fail "$file: ADD by portmap: $(cat /run/said)"
	expect_answer client tcp "$host4" "$port" "$file"
}

is_installed() {
	local status=1
	[ "$install" != ours ] || status=0
	at_node "$status" install --list "$file.conflist"
	[ "$install" = ours ] || expect_in /run/err "$install"
}

# expect_one_word_changed: in each of ours, which keep mode and owner; what they were is kept beside
# them, and a second run changes nothing
expect_one_word_changed() {
	local ours
	ours=$(for_each '[ "$install" != ours ] || echo "$file.conflist"')
	expect_equal '640 3 4' "$(stat -c '%a %u %g' "$conf"/* | sort -u)" "modes and owners"
	{ diff -rU0 "$project/tests/lists" "$conf" || true; } | sed -n '/^--- /d; /^+++ /d; /^[-+]/p' >/run/changed
	expect_equal "$(wc -w <<<"$ours")" "$(grep -c '^+' /run/changed)" "lines that have changed"
	expect_equal "$(grep '^-' /run/changed)" \
		"$(sed -n 's/^+\(.*\)"bpf-portmap"/-\1"portmap"/p' /run/changed)" "what was there"
	(cd "$project/tests/lists" && cat $ours) |
		cmp - <(cd "$conf" && cat ${ours//.conflist/.conflist.bpf-portmap.bak}) || fail "what was kept"
	at_node 0 install --list kind.conflist
	expect_equal 'nothing to change' "$(cat /run/out)"
}

is_migrated() {
	local result=left
	[ "$migrate" != - ] || return 0
	[ "$migrate" != mapped ] || result=mapped
	jq -r --arg id "$file" '.items[] | select(.container_id == $id) | "\(.result) \(.reason)"' \
		/run/migrated >/run/said
	expect_in /run/said "$result"
	[ "$result" = mapped ] || expect_in /run/said "$migrate"
	expect_answer client tcp "$host4" "$port" "$file"
	node_run del "$file" || fail "$file: DEL: $(cat /run/said)"
	ip netns delete "$file"
}

ours_adds() {
	case $add in
	-) return ;;
	answers) node_run add new -p 8080:80/tcp || fail "$file: ADD: $(cat /run/said)"
		expect_answer client tcp "$host4" 8080 new ;;
	silent) node_run add new -p 8080:80/tcp || fail "$file: ADD: $(cat /run/said)"
		expect_refused client tcp "$host4" 8080 ;;
	*) expect_failure node_run add new -p 8080:80/tcp
		expect_in /run/said "$add" ;;
	esac
	node_run del new || true
}

# limit 300 s
# conflists of engines, agents and people: install changes one word, and the rest stays to the byte;
# ADD, migrate and going back, which leaves nothing
test_real_lists() {
	lists_begin
	for_each portmap_adds
	for_each is_installed
	expect_one_word_changed
	by_hand 1 migrate --from-portmap --json
	cp /run/out /run/migrated
	for_each is_migrated
	for_each ours_adds
	by_hand 0 repair
	expect_count 0 portmaps 'ports that stay'
	at_node 1 uninstall
	expect_in /run/err 'both.conflist has portmap and bpf-portmap, which map the same ports'
	cp "$project/tests/lists/cilium.conflist" "$conf/both.conflist"
	at_node 0 uninstall
	cp "$project/tests/lists/both.conflist" "$conf/"
	diff -r "$project/tests/lists" "$conf" >/run/out || fail "not as it was: $(cat /run/out)"
	expect_equal "$plugins" "$(ls -A "$bin")" "plugins"
}
