# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_alias.sh - bpf-portmap that is called `portmap`, and the reference plugin beside it as
# `portmap.reference`. agents/ has conflists as agents write them, unchanged: of Nomad 1.9
# (networking_bridge_linux.go), kindnet (cni.go), the AWS VPC CNI 1.19 (misc/10-aws.conflist),
# nerdctl 2 (netutil_unix.go), Calico 3.31 (manifests/calico.yaml, with the bandwidth plugin).

aliased=/run/cni-plugins/portmap
calls=/run/reference-calls

# The reference plugin goes behind a script that records its calls.
alias_install() {
	mkdir /run/reference
	mv "$aliased" /run/reference/portmap
	cat >"$aliased.reference" <<-SH
	#!/bin/sh
	echo "\$CNI_COMMAND \$CNI_CONTAINERID" >>$calls
	exec /run/reference/portmap
	SH
	chmod +x "$aliased.reference"
	ln -s "$build/bpf-portmap" "$aliased"
	: >$calls
}

# What the agents' own plugins do that are not installed: a veth with routes, as ptp makes it
agents_plugins() {
	local name
	for name in aws-cni calico; do
		cat >/run/cni-plugins/"$name" <<-SH
		#!/bin/sh
		jq -c '.type = "ptp" | .mtu = 1500 | .ipam = {type: "host-local", routes: [{dst: "0.0.0.0/0"}],
			ranges: [[{subnet: "10.91.0.0/16"}]]}' | exec /run/cni-plugins/ptp
		SH
		chmod +x /run/cni-plugins/"$name"
	done
	printf '#!/bin/sh\n[ "$CNI_COMMAND" != ADD ] || jq -c .prevResult\n' >/run/cni-plugins/egress-cni
	chmod +x /run/cni-plugins/egress-cni
	iptables -N NOMAD-ADMIN # as Nomad does
}

# Each container has one address, of IPv4.
container_serve() {
	container_add "$@"
	in_namespace "$1" "$peer" serve tcp any 80 --name "$1" --background
}

# expect_nothing_mapped: portmap's chains of containers are gone, and our maps are empty
# [SED]: without the lines that this command of sed deletes
expect_nothing_mapped() {
	local rules
	rules=$({ iptables-save -t nat; ip6tables-save -t nat; } | sed "${1:-}")
	case $rules in *CNI-DN-* | *'--dport'*) fail "left of portmap: $rules" ;; esac
	[ ! -e "$pins" ] ||
		expect_count "0 0" 'portmaps attachments'
}

# limit 120 s
# the lists of Nomad, kindnet, AWS, nerdctl and Calico as they are: what portmap has mapped before is
# served, checked and removed by it, what comes then by us, and portmap is not asked about that
test_alias_lists_of_agents() {
	local file list
	agents_plugins
	alias_install
	for file in "$project"/tests/net/agents/*.conflist; do
		list=$(basename "$file" .conflist)
		cp "$file" /run/conf/
		mv "$aliased" /run/alias && ln -s /run/reference/portmap "$aliased"
		container_serve "old-$list" "$list" -p 8080:80/tcp
		mv /run/alias "$aliased"
		container_serve "new-$list" "$list" -p 9090:80/tcp
		expect_answer client tcp "$host4" 8080 "old-$list"
		expect_answer client tcp "$host4" 9090 "new-$list" "$client4"
		expect_count 1 portmaps "ports of ours with the list of $list"
		grep -qE '0.3.1|disableCheck' "$file" || container_check "new-$list" "$list" ||
			fail "CHECK of new-$list"
		container_remove "new-$list" "$list"
		container_remove "old-$list" "$list"
		expect_equal "DEL old-$list" "$(cat $calls)" 'calls of the reference plugin'
		expect_nothing_mapped
		: >$calls
	done
}

# alias_call COMMAND NAME [FILTER]: our plugin as `portmap`; portmap_call: the real one, which needs
# CNI_PATH
alias_call() { PREFIX="env CNI_PATH=$CNI_PATH ${PREFIX:-}" binary=$aliased plugin_call "$@"; }
portmap_call() { PREFIX="env CNI_PATH=$CNI_PATH" binary=/run/reference/portmap plugin_call "$@"; }

# the same container has ports from portmap and from us, as after a migration that was killed: DEL
# removes both, however often it is killed, and one more finds nothing to do; only a chain without
# rules may stay, which a portmap that is killed right before its last step leaves
test_alias_del_removes_both() {
	local rounds kill_window=200000 killed=0
	alias_install
	container_add_plain web
	for rounds in 1 2 3 4; do
		plugin_call ADD web '.type = "portmap"' >/run/out || fail "$(cat /run/out)"
		portmap_call ADD web >/run/out || fail "$(cat /run/out)"
		expect_contains "$(iptables-save -t nat)" CNI-DN-
		killed_at_random alias_call DEL web || true
		wait_until 10 reference_has_ended || fail "the reference plugin goes on"
		alias_call DEL web || fail DEL
		expect_nothing_mapped '/^:CNI-DN-/d'
	done
	: >$calls
	alias_call DEL web || fail "DEL of what is not there"
	PREFIX='env PATH=/nothing' alias_call DEL web || fail "DEL without iptables"
	expect_equal '' "$(cat $calls)" 'calls of the reference plugin'
}

# `install --alias` puts it there while a container runs; its DEL also finishes that of a portmap that
# was killed when it had emptied its chain
test_alias_installed() {
	local chain
	mkdir /run/reference /run/conflists
	cp -L "$reference_plugins/portmap" /run/reference/
	container_add_plain web
	portmap_call ADD web >/run/out || fail "$(cat /run/out)"
	jq "$as_reference" "$project/conf/bridge.conflist" >/run/conflists/10-bridge.conflist
	"$build/bpf-portmap" install --alias --bin-dir /run/reference --conf-dir /run/conflists \
		>/run/out 2>&1 || fail "install: $(cat /run/out)"
	chain=$(iptables-save -t nat | grep -o 'CNI-DN-[0-9a-f]*' | head -n 1)
	iptables -t nat -F "$chain"
	ip6tables -t nat -F "$chain"
	portmap_call DEL web || fail DEL
	expect_nothing_mapped
}

reference_has_ended() { ! pgrep -f ^/run/reference/portmap >/dev/null; }

# expect_alias_error CODE TEXT [COMMAND [FILTER]]: DEL fails, with what the reference plugin says
expect_alias_error() {
	expect_failure alias_call "${3:-DEL}" web "${4:-.}"
	expect_equal "$1" "$(sed -n '/^{/,$p' <<<"$output" | jq .code)" "code of $output"
	expect_contains "$output" "$2"
}

reference_says() {
	printf '#!/bin/sh\ncat >/dev/null\n%s\n' "$1" >"$aliased.reference"
	chmod +x "$aliased.reference"
}

# errors of the reference plugin are ours, except that it is older than the list or does not know GC;
# one that is missing is none; if it is bpf-portmap again, that is said, and nothing runs in a circle
test_alias_errors() {
	local way
	alias_install
	container_add_plain web
	portmap_call ADD web >/run/out || fail "$(cat /run/out)"
	reference_says 'exit 0'
	alias_call CHECK web || fail "CHECK of what portmap has mapped"
	expect_alias_error 5 'portmap.reference has ended without a result' ADD \
		'.conditionsV4 = ["-s", "192.0.2.0/24"]'
	reference_says 'echo "{\"code\": 11, \"msg\": \"xtables lock\", \"details\": \"held\"}"; exit 1'
	expect_alias_error 11 'portmap.reference: xtables lock; held'
	expect_alias_error 11 'xtables lock' CHECK
	reference_says 'echo oops; kill -9 $$'
	expect_alias_error 6 'its error on stdout is no CNI error: '
	chmod -x "$aliased.reference"
	expect_alias_error 5 'Permission denied; put the reference plugin portmap there'
	reference_says 'echo "{\"code\": 1, \"msg\": \"incompatible CNI versions\"}"; exit 1'
	alias_call DEL web || fail "DEL by an older reference plugin"
	for way in 'ln -s portmap' 'cp -L /run/cni-plugins/portmap'; do
		rm "$aliased.reference"
		$way "$aliased.reference"
		output=$(alias_call DEL web 2>&1) || fail "$way: $output"
		expect_contains "$output" 'portmap.reference is bpf-portmap itself'
		expect_equal 1 "$(grep -c . <<<"$output")" "lines in: $output"
		expect_failure alias_call CHECK web
	done
	rm "$aliased.reference"
	alias_call DEL web || fail "DEL without a reference plugin"
	mv /run/reference/portmap "$aliased.reference"
	alias_call GC web '.cniVersion = "1.1.0" | del(.prevResult, .runtimeConfig)' || fail GC
	alias_call DEL web || fail DEL
	expect_nothing_mapped
}

# a list with conditions of iptables, which we refuse under our own name, is served by the reference
# plugin: who may not reach the port does not; the other keys of portmap do no harm
test_alias_keys_of_portmap() {
	local conditions='.conditionsV4 = ["-s", "192.0.2.0/24"] | .conditionsV6 = ["-s", "2001:db8:1::/64"]'
	alias_install
	container_start_plain web
	expect_error 2 '' plugin_call ADD web "$conditions"
	alias_call ADD web "$conditions" >/run/out || fail "$(cat /run/out)"
	expect_same_json /run/results/web /run/out '[.ips, .interfaces]'
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_no_answer server tcp "$host4_second" 8080
	alias_call DEL web "$conditions" || fail DEL
	expect_nothing_mapped
	: >$calls
	alias_call ADD web '.markMasqBit = 13 | .backend = "iptables" | .snat = true | .masqAll = true |
		.conditionsV4 = []' >/run/out 2>/run/stderr || fail "$(cat /run/out)"
	expect_in /run/stderr '"markMasqBit" has no effect'
	expect_answer client tcp "$host4" 8080 web
	alias_call DEL web || fail DEL
	expect_equal '' "$(cat $calls)" 'calls of the reference plugin'
}
