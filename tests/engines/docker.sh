# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docker.sh - a dockerd that runs, without rules and without its own bridge.

# From the package that is installed, or that `install` has unpacked
docker_world() {
	local unpacked=$project/build/docker
	[ ! -d "$unpacked" ] || PATH=$PATH:$unpacked/usr/sbin:$unpacked/usr/bin
	command -v dockerd >/dev/null || engine_missing docker
	command -v containerd >/dev/null || engine_missing containerd
	engine_world
	# It writes there.
	cp -a /etc /run/etc-of-docker
	mount --bind /run/etc-of-docker /etc
	dockerd_start
	docker_image image
}

# docker_image NAME: an image that does nothing
docker_image() {
	tar -C "$rootfs" -c . |
		docker import --change 'CMD ["/bin/busybox", "sleep", "1000000"]' - "$1" >/dev/null ||
		fail "docker import"
}

dockerd_start() {
	dockerd --storage-driver vfs --iptables=false --ip6tables=false --ip-forward=false --bridge none \
		--exec-opt native.cgroupdriver=cgroupfs --userland-proxy=false --pidfile /run/dockerd.pid \
		</dev/null >>/run/results/dockerd 2>&1 &
	dockerd_process=$!
	wait_until 60 docker version >/dev/null 2>&1 || fail "dockerd: $(tail /run/results/dockerd)"
}

dockerd_stop() {
	kill "$dockerd_process"
	wait "$dockerd_process" || true
}

# docker_start NAME NETWORK [OPTION...]: a container that does nothing
docker_start() {
	local name=$1 network=$2
	shift 2
	docker run -d --init=false --name "$name" --network "$network" "$@" image >/run/results/"$name" 2>&1 ||
		fail "docker run $name: $(cat /run/results/"$name")"
}

docker_address() {
	docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$1"
}
