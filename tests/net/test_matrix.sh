# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_matrix.sh - every other plugin that is commonly chained, before us and after us, in each
# version of the specification that it supports.

entry_of() {
	case $1 in
	tuning) echo '{"type": "tuning", "sysctl": {"net.ipv4.tcp_keepalive_time": "600"}}' ;;
	bandwidth) echo '{"type": "bandwidth", "ingressRate": 80000000, "ingressBurst": 8000000,
		"egressRate": 80000000, "egressBurst": 8000000}' ;;
	firewall) echo '{"type": "firewall"}' ;;
	sbr) echo '{"type": "sbr"}' ;;
	esac
}

# speaks PLUGIN VERSION
speaks() {
	CNI_COMMAND=VERSION "$reference_plugins/$1" <<<'{"cniVersion": "1.0.0"}' |
		jq -e --arg version "$2" '.supportedVersions | index($version)' >/dev/null
}

# versions_of MAIN OTHER: those of the three versions that both plugins here support
versions_of() {
	local version plugin
	for version in 0.4.0 1.0.0 1.1.0; do
		for plugin in "$1" "$2" host-local; do
			speaks "$plugin" "$version" && continue
			echo "note: $plugin does not speak $version" >&2
			continue 2
		done
		echo "$version"
	done
}

# combination MAIN OTHER before|after VERSION: ADD, the port from outside, CHECK, DEL
combination() {
	local entry place
	entry=$(entry_of "$2")
	case $3 in before) place="[.[0], $entry, .[1]]" ;; after) place="[.[0], .[1], $entry]" ;; esac
	conflist combined "$1" ".cniVersion = \"$4\" | .plugins |= $place"
	namespace_add web
	runtime add combined web -p 8080:80/tcp >/run/out 2>&1 || fail "ADD: $(cat /run/out)"
	in_namespace web "$peer" serve tcp any 80 --name web --background
	expect_answer client tcp "$host4" 8080 web "$client4"
	# sbr moves the routes that bridge and ptp themselves check.
	[ "$2" = sbr ] || runtime check combined web >/run/out 2>&1 || fail "CHECK: $(cat /run/out)"
	runtime del combined web >/run/out 2>&1 || fail "DEL: $(cat /run/out)"
	container_die web
}

# matrix MAIN OTHER...: every combination; nothing is left in the end
matrix() {
	local main=$1 other place version done=0 before
	shift
	container_add warm "$main" -p 8080:80/tcp
	container_remove warm "$main"
	before=$(state_show)
	for other; do
		for version in $(versions_of "$main" "$other"); do
			for place in before after; do
				[ "$other" != bandwidth ] || [ "$place" = before ] ||
					[ "$(kernel_or 6.6)" = 6.6 ] || continue
				(combination "$main" "$other" "$place" "$version") ||
					fail "$main, $other $place us, version $version"
				done=$((done + 1))
			done
		done
	done
	expect_same_state "$before"
	echo "note: $done combinations"
}

# tuning and bandwidth, before us and after us, with bridge: ADD, CHECK, DEL, and nothing is left
test_matrix_bridge_tuning_bandwidth() { matrix bridge tuning bandwidth; }

# firewall and sbr, before us and after us, with bridge
test_matrix_bridge_firewall_sbr() { matrix bridge firewall sbr; }

# tuning and bandwidth, before us and after us, with ptp
test_matrix_ptp_tuning_bandwidth() { tcx_needed; matrix ptp tuning bandwidth; }

# firewall and sbr, before us and after us, with ptp
test_matrix_ptp_firewall_sbr() { matrix ptp firewall sbr; }
