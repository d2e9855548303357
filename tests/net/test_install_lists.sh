# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_install_lists.sh - `install`, `doctor` and going back, with lists whose plugins stand elsewhere:
# in the network's folder (CNI 1.3), in Multus' delegates; and lists that are odd.

# list FILTER: a list of a node, through a jq filter
list() {
	jq "$1" <<-'JSON'
	{"cniVersion": "1.0.0", "name": "net1", "plugins": [
	 {"type": "bridge", "bridge": "cni7", "isGateway": true,
	  "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}},
	 {"type": "portmap", "capabilities": {"portMappings": true}}]}
	JSON
}

# portmap in the folder of the network: install changes its file there, to one word, and uninstall
# gives it back; a file that only looks like it is none
test_install_lists_folder() {
	node_make
	mkdir "$conf/net1"
	list '.cniVersion = "1.1.0" | .plugins |= .[:1]' >"$conf/10-a.conflist"
	echo '{"type": "tuning"}' >"$conf/net1/10-tuning.conf"
	echo '{ "type" : "portmap" ,"capabilities": {"portMappings": true}}' >"$conf/net1/50-ports.conf"
	echo '{"type": "portmap"}' >"$conf/net1/60-ports.conf.old"
	cp -r "$conf" /run/before
	at_node 0 install
	expect_in /run/out "$conf/net1/50-ports.conf: has bpf-portmap in the place of portmap"
	expect_equal '{ "type" : "bpf-portmap" ,"capabilities": {"portMappings": true}}' \
		"$(cat "$conf/net1/50-ports.conf")"
	cmp /run/before/10-a.conflist "$conf/10-a.conflist" || fail "the list"
	at_node 0 install
	expect_equal 'nothing to change' "$(cat /run/out)"
	at_node 0 uninstall
	diff -r /run/before "$conf" >/run/diff || fail "not as it was: $(cat /run/diff)"
	list '.loadOnlyInlinedPlugins = true | .plugins |= .[:1]' >"$conf/10-a.conflist"
	at_node 1 install
	expect_in /run/err 'has no plugin portmap'
}

# one of Cilium's chaining mode is not refused; unknown versions beside a known one are no reason to
# refuse; portmap without its capability is said
test_install_lists_odd() {
	local filter
	node_make
	for filter in '.cniVersions = ["1.0.0", "1.1.0", "1.2.0"]' '.cniVersion = "1.2.0" | .cniVersions = ["1.1.0"]' \
		'.plugins = [{"type": "cilium-cni", "chaining-mode": "portmap"}, .plugins[1]]' \
		'del(.plugins[1].capabilities)'; do
		list "$filter" >"$conf/10-a.conflist"
		at_node 0 install
		expect_in /run/out '10-a.conflist: has bpf-portmap in the place of portmap'
		case $filter in
		*capabilities*) expect_in /run/err 'runtimes tell it no ports' ;;
		*) expect_equal '' "$(cat /run/err)" "$filter" ;;
		esac
		at_node 0 uninstall
	done
}

# doctor without a port: Multus first, whose delegate has portmap, while a later list has ours, warns;
# where the delegate has ours nothing is wrong; portmap in the folder beside ours maps twice
test_install_lists_doctor() {
	ip route add default via "$client4"
	ip route add default via "$client6"
	own_directory /etc/cni
	mkdir -p /etc/cni/net.d/net1
	list '.plugins[1].type = "bpf-portmap"' >/etc/cni/net.d/10-a.conflist
	container_add_plain web
	serve_in web 80
	plugin_config web | plugin_run ADD web >/run/out || fail "$(cat /run/out)"
	list '{cniVersion: "1.0.0", name: "multus", type: "multus", delegates: [.]}' >/etc/cni/net.d/00-multus.conf
	by_hand 1 doctor
	expect_in /run/out 'runtimes take /etc/cni/net.d/00-multus.conf, the first one'
	list '.plugins[1].type = "bpf-portmap" | {cniVersion: "1.0.0", name: "multus", type: "multus",
		delegates: [.]}' >/etc/cni/net.d/00-multus.conf
	by_hand 0 doctor
	! grep 'runtimes take' /run/out || fail "the delegate has ours"
	rm /etc/cni/net.d/00-multus.conf
	echo '{"type": "portmap", "capabilities": {"portMappings": true}}' >/etc/cni/net.d/net1/50-ports.conf
	by_hand 2 doctor
	expect_in /run/out '10-a.conflist has portmap as well: both map the same ports'
	remedy_works 'rm /etc/cni/net.d/net1/50-ports.conf'
	list '.plugins |= .[:1]' >/etc/cni/net.d/10-a.conflist
	echo '{"type": "bpf-portmap"}' >/etc/cni/net.d/net1/50-ports.conf
	by_hand 2 doctor
	remedy_works 'jq .capabilities.portMappings = true /etc/cni/net.d/net1/50-ports.conf >'
}

# remedy_works TEXT: doctor's remedy is this, and after it doctor finds nothing
remedy_works() {
	local remedy
	remedy=$(sed -n 's/^ *remedy *//p' /run/out)
	expect_contains "${remedy//\'/}" "$1"
	eval "$remedy"
	by_hand 0 doctor
}

# migrate names the file that has portmap, in the folder as well, and support brings it along
test_install_lists_folder_named() {
	own_directory /etc/cni
	mkdir -p /etc/cni/net.d/net1
	list '.plugins |= .[:1]' >/etc/cni/net.d/10-a.conflist
	echo '{"type": "portmap", "password": "secret"}' >/etc/cni/net.d/net1/50-ports.conf
	list '{cniVersion: "1.0.0", name: "multus", type: "multus", delegates: [.]}' >/etc/cni/net.d/20-multus.conf
	by_hand 0 migrate --from-portmap
	expect_equal '  /etc/cni/net.d/net1/50-ports.conf
  /etc/cni/net.d/20-multus.conf' "$(grep '^  /' /run/out)" 'files that it names'
	by_hand 0 support /run/support.tar
	tar -xOf /run/support.tar --wildcards '*/conflists/net1/50-ports.conf' >/run/plugin
	expect_in /run/plugin portmap
	! grep secret /run/plugin || fail 'the password is in it'
}

# Multus before the network's list: install says that this one is to be named; where its delegates
# have ours, changed by hand, uninstall leaves the binary that they name
test_install_lists_multus() {
	local filter
	node_make
	list . >"$conf/10-a.conflist"
	for filter in '{type: "multus", delegates: [.]}' '{plugins: [{type: "multus", delegates: [.]}]}'; do
		list "$filter"' + {cniVersion: "1.0.0", name: "multus"}' >"$conf/00-multus.conflist"
		at_node 1 install
		expect_in /run/err "00-multus.conflist is Multus', which runs the plugins of other lists: name the one"
		at_node 0 install --list 10-a.conflist
		list '.plugins[1].type = "bpf-portmap" | '"$filter"' + {cniVersion: "1.0.0", name: "multus"}' \
			>"$conf/00-multus.conflist"
		at_node 1 uninstall
		expect_in /run/err '00-multus.conflist'
		[ -x "$bin/bpf-portmap" ] || fail "the binary is gone"
		rm "$conf/00-multus.conflist"
		at_node 0 uninstall
	done
}

# an alias that a runtime may never run, as another directory of plugins has portmap too: install says so
test_install_lists_alias_elsewhere() {
	node_make
	own_directory /opt/cni/bin
	list . >"$conf/10-a.conflist"
	at_node 0 install --alias
	! grep /opt/cni/bin /run/err || fail "there is none"
	at_node 0 uninstall
	cp -L "$reference_plugins/portmap" /opt/cni/bin/
	at_node 0 install --alias
	expect_in /run/err '/opt/cni/bin/portmap is there as well: a runtime that searches /opt/cni/bin first'
	at_node 0 uninstall
}

# going back: uninstall names containers by the first digits of their IDs, and says what a static Pod needs
test_install_lists_back() {
	local id
	id=106d2c0b339c$(printf '%052d' 7)
	node_make
	list . >"$conf/10-a.conflist"
	at_node 0 install
	container_add_plain web
	plugin_config web | CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=kube-system;K8S_POD_NAME=web-node1' \
		NETNS=/run/netns/web plugin_run ADD "$id" >/run/out || fail "$(cat /run/out)"
	at_node 1 uninstall
	expect_in /run/out 'pod kube-system/web-node1 (sandbox 106d2c0b339c), interface eth0'
	expect_in /run/err 'a static Pod by moving its manifest away and back'
	at_node 0 uninstall --drop-ports
}
