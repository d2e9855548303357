# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_podman.sh - Podman itself, with its CNI backend and our plugin in place of portmap.

# shellcheck source=tests/engines/engine.sh
. "$folder/engine.sh"

podman() {
	command podman --root /run/podman/storage --runroot /run/podman/run --storage-driver vfs \
		"$@" </dev/null
}

podman_version() { command podman --version 2>/dev/null | sed 's/.* //'; }

podman_world() {
	case $(podman_version) in
	4.*) ;;
	'') engine_missing podman ;;
	*) skip "podman $(podman_version) has no CNI backend" ;;
	esac
	engine_world
	mkdir -p /run/podman/networks
	cat >/run/podman/containers.conf <<-'CONF'
		[containers]
		pids_limit = 0
		seccomp_profile = "unconfined"
		default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
		[network]
		network_backend = "cni"
		cni_plugin_dirs = ["/run/cni-plugins"]
		network_config_dir = "/run/podman/networks"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		runtime = "runc"
	CONF
	export CONTAINERS_CONF=/run/podman/containers.conf
}

# network_create NAME [OPTION...]: the list that Podman makes of it, with portmap's type changed
network_create() {
	local name=${1}
	podman network create "${@:2}" "$name" >/dev/null
	sed -i 's/"type": "portmap"/"type": "bpf-portmap"/' "/run/podman/networks/$name.conflist"
	grep -q bpf-portmap "/run/podman/networks/$name.conflist" || fail "no portmap in $name"
}

# podman_run NAME "PROTOCOL/PORT..." OPTION...: a container that serves there
podman_run() {
	local name=$1 ports=$2
	shift 2
	# shellcheck disable=SC2086
	podman run -d --name "$name" "$@" --rootfs "$rootfs" \
		/bin/sh -c "$(serving "$name" $ports)" >/run/results/"$name" 2>&1 ||
		fail "podman run $name: $(cat /run/results/"$name")"
	# shellcheck disable=SC2086
	podman_serves "$name" $ports || fail "$name does not serve: $(podman logs "$name" 2>&1)"
}

podman_pid() { podman inspect -f '{{.State.Pid}}' "$1"; }

# Waits until NAME's process listens: podman_serves NAME PROTOCOL/PORT...
podman_serves() {
	local pid port
	pid=$(podman_pid "$1")
	shift
	for port; do
		wait_until 10 listens "$pid" "${port%/*}" "${port#*/}" || return 1
	done
}

listens() { nsenter --net=/proc/"$1"/ns/net ss -Hln "--$2" "sport = $3" | grep -q .; }

podman_remove() { podman rm -f -t 0 "$1" >/dev/null || fail "podman rm $1"; }

# podman run -p by Podman's own list with the type changed: a client outside is answered by the
# container, who sees the client; after podman rm nothing is left
test_podman_run() {
	podman_world
	network_create web
	podman_run web tcp/80 --network web -p 8080:80
	podman_remove web
	local before
	before=$(state_show)
	podman_run web tcp/80 --network web -p 8080:80
	expect_answer client tcp "$host4" 8080 web "$client4"
	podman_remove web
	expect_no_answer client tcp "$host4" 8080
	expect_same_state "$before"
	expect_equal "0 0" "$(map_count portmaps) $(map_count attachments)" "portmaps, attachments"
}

# what Podman sends is what data/ has, for those who can't run it
test_podman_sends() {
	podman_world
	[ "$(podman_version)" = 4.3.1 ] || skip "podman $(podman_version), and the data is of 4.3.1"
	recorder_install
	during 'podman network create web' network_create web
	during 'podman run -p 8080:80 -p 8080:80/udp' \
		podman_run web 'tcp/80 udp/80' --network web -p 8080:80 -p 8080:80/udp
	during 'podman restart' podman restart -t 0 web >/dev/null
	during 'podman network reload' podman network reload web >/dev/null
	during 'podman run of another container with the same port' \
		expect_failure podman_run second tcp/80 --network web -p 8080:80
	during 'podman rm of that' podman_remove second
	during 'podman rm -f' podman_remove web
	expect_recorded podman-4.3.1
}
