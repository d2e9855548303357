# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_real_lists.sh - the kinds of lists that people and engines have, each through `install`, ADD,
# `migrate` and going back. Names and addresses are ours. Which word each gets stands in its row.

lists_begin() {
	mkdir -p "$bin" "$conf" /etc/cni/net.d
	mount -t tmpfs tmpfs /etc/cni/net.d
	cp -L "$reference_plugins"/* "$bin/"
	for name in old new; do
		namespace_add "$name"
		serve_in "$name" 80
	done
	rows_done=0
}

# node_run VERB NAME [OPTION...]: cnirun with the node's list and plugins
node_run() { CNI_PATH=$bin "$cnirun" "$1" "$conf/10-net.conflist" "$2" --id "$2" "${@:3}"; }

# row WORD ADD FILTER NAME: a list, made of the usual one by a jq filter. WORD: "ours", where install
# puts our plugin into it, or what it says instead. ADD: "answers", or what the runtime says.
row() {
	local word=$1 add=$2 filter=$3 what=$4 migrates=false
	echo "# $what" >&2
	rm -rf "${conf:?}"/*
	jq "$filter" "$project/tests/net/agents/usual.conflist" >"$conf/10-net.conflist"
	cp "$conf/10-net.conflist" /run/before
	if [ "$word" = ours ] && [ "$add" = answers ] && node_run add old -p 8080:80/tcp >/run/out 2>&1; then
		migrates=true
		expect_answer client tcp "$host4" 8080 old
	fi
	if [ "$word" != ours ]; then
		at_node 1 install
		expect_contains "$(cat /run/err)" "$word"
		cmp /run/before "$conf/10-net.conflist" || fail "$what: a list that is refused has changed"
		return
	fi
	at_node 0 install
	[ "$add" = answers ] || [ "$add" = silent ] || {
		expect_failure node_run add new -p 8081:80/tcp
		expect_contains "$output" "$add"
	}
	if [ "$add" = silent ]; then
		node_run add new -p 8081:80/tcp >/run/out 2>&1 || fail "$what: $(cat /run/out)"
		expect_no_answer client tcp "$host4" 8081
	fi
	if [ "$add" = answers ]; then
		node_run add new -p 8081:80/tcp >/run/out 2>&1 || fail "$what: $(cat /run/out)"
		expect_answer client tcp "$host4" 8081 new
	fi
	! $migrates || {
		by_hand 0 migrate --from-portmap
		expect_contains "$(cat /run/out)" mapped
		expect_answer client tcp "$host4" 8080 old
	}
	node_run del new >/run/out 2>&1 || true
	! $migrates || node_run del old >/run/out 2>&1 || fail "$what: DEL of the old one: $(cat /run/out)"
	[ ! -e "$pins" ] || expect_equal 0 "$(map_count portmaps)" "$what: ports that stay"
	at_node 0 uninstall
	cmp /run/before "$conf/10-net.conflist" || fail "$what: it is not what it was"
	ip link delete cni0 2>/dev/null || true
}

main='.plugins[0]' ports='.plugins[1]'

# limit 300 s
# the usual ones: of engines and of their manuals
test_real_lists_engines() {
	lists_begin
	row ours answers . "containerd's example: bridge, host-local, portmap"
	row ours answers '.cniVersion = "0.3.1"' "one of the first, version 0.3.1"
	row ours answers '.cniVersion = "0.4.0" | .plugins += [{"type": "firewall"}, {"type": "tuning"}]' "Podman 4's, nerdctl's"
	row ours answers '.plugins |= [.[0], {"type": "firewall", "backend": "iptables"}, .[1]]' "Nomad's: firewall before portmap"
	row ours answers "$ports.snat = true" "Nomad's, snat said"
	row ours answers ".plugins |= [{\"type\": \"loopback\"}] + ." "loopback first, Nomad's bridge"
	row ours answers '.plugins |= [.[0], {"type": "bandwidth", "capabilities": {"bandwidth": true}}, .[1]]' "bandwidth in between"
	row ours answers '.plugins += [{"type": "bandwidth", "capabilities": {"bandwidth": true}}]' "bandwidth behind"
	row ours answers "$main = {type: \"ptp\", ipMasq: true, ipam: $main.ipam}" "ptp, as kind has it"
	row ours answers "$main |= del(.ipMasq)" "without masquerade"
	row ours answers "$main |= (.mtu = 1400 | .hairpinMode = false | .promiscMode = true)" "an MTU, promiscuous"
	row ours answers "$main.forceAddress = true" "forceAddress"
	row ours answers "$main |= (.isDefaultGateway = true | del(.ipam.routes))" "isDefaultGateway"
}

# limit 300 s
# addresses: one family, both, several ranges, static, none
test_real_lists_addresses() {
	lists_begin
	row ours answers "$main.ipam.ranges += [[{\"subnet\": \"fd00:88::/64\"}]]" "both families"
	row ours answers "$main.ipam = {type: \"host-local\", subnet: \"10.88.0.0/16\", routes: [{\"dst\": \"0.0.0.0/0\"}]}" "host-local's oldest form"
	row ours answers "$main.ipam.ranges[0] += [{\"subnet\": \"10.89.0.0/24\"}]" "two subnets in one set"
	row ours answers "$main.ipam.ranges[0][0] += {\"rangeStart\": \"10.88.1.1\", \"rangeEnd\": \"10.88.1.9\"}" "a part of the subnet"
	row ours answers "$main.ipam.dataDir = \"/run/node/store\"" "a store of its own"
	row ours answers "$main.ipam.resolvConf = \"/etc/resolv.conf\"" "a resolver"
	row ours answers "$main.capabilities = {\"mac\": true, \"ips\": true}" "mac and ips"
	row ours silent "$main |= del(.ipam, .isGateway, .ipMasq)" "without ipam"
	row ours 'dhcp' "$main.ipam = {type: \"dhcp\"}" "dhcp without its daemon"
	row ours answers "$main.dns = {\"nameservers\": [\"10.88.0.1\"]}" "a name server"
}

# limit 300 s
# portmap's own options
test_real_lists_options() {
	lists_begin
	row ours answers "$ports.snat = false" "snat false"
	row ours answers "$ports.masqAll = true" "masqAll"
	row ours answers "$ports.markMasqBit = 5" "markMasqBit"
	row ours answers "$ports.externalSetMarkChain = \"KUBE-MARK-MASQ\" | $ports.snat = false" "externalSetMarkChain"
	row ours answers "$ports.backend = \"iptables\"" "a backend"
	row '"excludeCIDRs": ["192.0.2.99/32"]' . "$ports.conditionsV4 = [\"!\", \"-d\", \"192.0.2.99/32\"]" "conditions: not to one address"
	row '"sourceRanges": ["10.0.0.0/8", "::/0"]' . "$ports.conditionsV4 = [\"-s\", \"10.0.0.0/8\"]" "conditions: from one network"
	row '"excludeInterfaces": ["wg0"]' . "$ports.conditionsV4 = [\"!\", \"-i\", \"wg0\"] | $ports.conditionsV6 = [\"!\", \"-i\", \"wg0\"]" "conditions: not from one interface"
	row 'remove the key' . "$ports.conditionsV4 = [\"-m\", \"conntrack\", \"--ctstate\", \"NEW\"]" "conditions: a match"
	row ours answers "$ports |= (.conditionsV4 = [] | .conditionsV6 = [])" "conditions that are empty"
	row ours 'no plugin of the list' "$ports |= del(.capabilities)" "no capability"
	row ours answers "$ports.capabilities.snat = true" "a capability that nobody knows"
	row ours answers "$ports.runtimeConfig = {\"portMappings\": []}" "runtimeConfig in the list"
	row ours answers "$ports.\"x-note\" = \"by hand\"" "a key that nobody knows"
}

# limit 300 s
# networks of Kubernetes: what install makes of them; their plugins are not here
test_real_lists_agents() {
	lists_begin
	local type
	for type in flannel calico weave-net kube-router antrea ovn-k8s-cni-overlay aws-cni azure-vnet gke ; do
		row ours "failed to find plugin \"$type\"" ".plugins[0] = {type: \"$type\"}" "$type"
	done
	row ours 'failed to find plugin "cilium-cni"' '.plugins |= [.[0], {"type": "cilium-cni", "chaining-mode": "generic-veth"}, .[1]]' "Cilium behind another"
	row ours 'failed to find plugin "cilium-cni"' '.plugins[0] = {"type": "cilium-cni", "chaining-mode": "portmap"}' "Cilium with portmap in its chain"
	row "is Cilium's" . '.plugins[0] = {"type": "cilium-cni"}' "Cilium alone"
	row 'has no plugin portmap' . '.plugins |= .[:1]' "without portmap"
	row ours 'failed to find plugin "istio-cni"' '.plugins += [{"type": "istio-cni"}]' "a mesh behind"
}

# limit 300 s
# odd ones
test_real_lists_odd() {
	lists_begin
	row 'has no "name"' . 'del(.name)' "without a name"
	row 'has the same plugin twice' . ".plugins += [$ports]" "portmap twice"
	row 'map the same ports' . ".plugins += [$ports | .type = \"bpf-portmap\"]" "both"
	row 'it has no "plugins"' . 'del(.plugins)' "without plugins"
	row 'it has no "plugins"' . '.plugins = []' "an empty one"
	row '1.9.0' . '.cniVersion = "1.9.0"' "a version of the future"
	row ours answers '.cniVersions = ["0.4.0", "1.0.0", "1.2.0"]' "several versions"
	row ours answers '.disableCheck = true | .disableGC = true' "switches"
	row ours answers '.loadOnlyInlinedPlugins = false' "and that of the folder"
	row ours answers '.args = {"cni": {"labels": [{"key": "a", "value": "b"}]}}' "args"
	row ours answers '.name = "n-1_x.y"' "a name with all that it may have"
}

# limit 120 s
# a list with comments is refused by us as by every runtime, with line and column
test_real_lists_comments() {
	lists_begin
	{ echo '// the default network' && cat "$project/tests/net/agents/usual.conflist"; } >"$conf/10-net.conflist"
	at_node 1 install
	expect_contains "$(cat /run/err)" '10-net.conflist is not valid JSON: line 1, column 1'
	expect_failure node_run add new -p 8080:80/tcp
}
