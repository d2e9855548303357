# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_kubernetes.sh - conf/kubernetes: the manifests, and their container in the real containerd.

. "$folder/engine.sh"
. "$folder/cri.sh"
. "$folder/containerd.sh"

kubectl=$project/build/kubectl
manifests=$project/conf/kubernetes

# manifest OVERLAY: the DaemonSet, as kubectl makes it of the overlay; typed: through the types of
# Kubernetes, which leave out what they do not know
manifest() { "$kubectl" kustomize "$manifests/$1" | "$kubectl" annotate --local -f - test=1 -o json; }
typed() { "$kubectl" set env --local -f - TEST=1 -o json; }

kubectl_needed() {
	[ -x "$kubectl" ] || engine_missing kubectl
	export HOME=/run
}

# every overlay is a DaemonSet in which Kubernetes knows each field; it is put into kube-system, with
# the image that `make image` makes
test_kubernetes_manifests() {
	local overlay unknown
	kubectl_needed
	for overlay in base k3s alias; do
		manifest "$overlay" >/run/manifest || fail "kubectl kustomize $overlay"
		typed </run/manifest >/run/typed || fail "$overlay is refused"
		unknown=$(jq -r --slurpfile typed /run/typed '[paths(scalars)] - [$typed[0] | paths(scalars)] |
			.[] | map(tostring) | join(".")' /run/manifest)
		expect_equal '' "$unknown" "unknown fields of $overlay"
		expect_equal null "$(jq -c '.spec.template.spec.containers[0].resources.limits' /run/manifest)" \
			"limits of $overlay, in which the maps might have to fit"
		expect_equal "DaemonSet kube-system $our_image" "$(jq -r '"\(.kind) \(.metadata.namespace) \(
			.spec.template.spec.containers[0].image)"' /run/manifest)" "$overlay"
	done
	expect_equal '["install","--watch","--alias"]' "$(manifest alias |
		jq -c '.spec.template.spec.containers[0].args')" "arguments of the alias"
	expect_equal '/var/lib/rancher/k3s/data/cni /var/lib/rancher/k3s/agent/etc/cni/net.d' "$(manifest k3s |
		jq -r '[.spec.template.spec.volumes[:2][].hostPath.path] | join(" ")')" "directories of k3s"
}

# A node whose conflist has portmap
node_world() {
	kubectl_needed
	image_needed
	mkdir -p /run/node/bin
	cp -L "$reference_plugins"/{bridge,host-local,portmap,loopback} /run/node/bin
	CNI_PATH=/run/node/bin containerd_world
	conflists=$containerd_home/conflists
	jq "$as_reference" "$conflists/bridge.conflist" >/run/list
	cp /run/list "$conflists/new" && mv "$conflists/new" "$conflists/bridge.conflist"
	# As Kubespray leaves them, and archives of the reference plugins
	chown -R 997 /run/node/bin "$conflists"
	chmod 600 "$conflists/bridge.conflist"
	containerd_ctr image import "$image_tar" >/run/out 2>&1 || fail "import: $(cat /run/out)"
	manifest base | typed >/run/typed
}

# daemon NAME [FILTER] -- [ARGUMENT...]: the DaemonSet's container as the manifest says, which may be
# changed by the jq filter: capabilities, mounts, read-only root, the engine's seccomp profile
daemon() {
	local name=$1 filter=. options capability
	shift
	[ "$1" = -- ] || { filter=$1 && shift; }
	shift
	mapfile -t options < <(jq -r "$filter"' | .spec.template.spec as $pod | $pod.containers[0] as $c |
		{"/opt/cni/bin": "/run/node/bin", "/etc/cni/net.d": "'"$conflists"'"} as $node |
		(if $pod.hostNetwork then "--net-host" else empty end),
		(if $c.securityContext.readOnlyRootFilesystem then "--read-only" else empty end),
		(if $c.securityContext.seccompProfile.type == "RuntimeDefault" then "--seccomp" else empty end),
		($c.securityContext.capabilities.add[] | "--cap-add", "CAP_\(.)"),
		($c.volumeMounts[] | . as $mount | ($pod.volumes[] | select(.name == $mount.name).hostPath.path) |
			"--mount", "type=bind,src=\($node[.] // .),dst=\($mount.mountPath),options=rbind:\(
			if $mount.readOnly then "ro" else "rw" end):rslave")' /run/typed)
	# ctr drops last.
	for capability in $default_capabilities; do
		[[ " ${options[*]} " == *" CAP_$capability "* ]] || options+=(--cap-drop "CAP_$capability")
	done
	[ $# -gt 0 ] || set -- $(jq -r '.spec.template.spec.containers[0].args[]' /run/typed)
	containerd_ctr run --rm --snapshotter native "${options[@]}" \
		"$our_image" "$name" /bpf-portmap "$@"
}

default_capabilities='CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP
	NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'

is_ours() { grep -q bpf-portmap "$conflists/bridge.conflist" && [ -e /run/node/bin/bpf-portmap ]; }

without() { echo ".spec.template.spec.containers[0].securityContext.capabilities.add -= [\"$1\"]"; }

# limit 180 s
# in the real containerd the DaemonSet's container, with the capabilities, mounts and read-only root
# of the manifest, makes the node's list ours; a Pod's port is served, also to the host's processes;
# it repairs and cleans up; its probe works; without CAP_SYS_ADMIN it would not do
test_kubernetes_daemon() {
	local conflists daemon before
	node_world
	daemon install -- >/run/daemon 2>&1 &
	daemon=$!
	wait_until 20 is_ours || fail "the list is not ours: $(cat /run/daemon)"
	expect_equal '600 997' "$(stat -c '%a %u' "$conflists/bridge.conflist")" "mode and owner of the list"
	output=$(sandbox_run web 8080:80/tcp) || fail "RunPodSandbox: $output"
	wait_until 10 answers_at 8080 || fail "web does not serve"
	expect_answer host tcp 127.0.0.1 8080 web
	# Not by exec, whose root is another one where these tests run in a chroot.
	daemon probe -- doctor --quick >/run/out 2>&1 || fail "doctor --quick: $(cat /run/out)"
	before=$(programs_show; socket_hooks_show)
	strip eth0
	rm "$pins/connect4"
	daemon attach -- attach >/run/out 2>&1 || fail "attach: $(cat /run/out)"
	expect_equal "$before" "$(programs_show; socket_hooks_show)" "programs after attach"
	expect_answer host tcp 127.0.0.1 8080 web
	output=$(sandbox_run dead 9090:80/tcp) || fail "RunPodSandbox: $output"
	ip link delete "$(ip -o link show type veth | sed -n 's/^[0-9]*: \(veth[0-9a-f]*\)@.*/\1/p' | tail -n 1)"
	daemon gc -- gc >/run/out 2>&1 || fail "gc: $(cat /run/out)"
	expect_in /run/out '*:9090/tcp'
	containerd_ctr task kill --signal TERM install
	wait "$daemon" || fail "it ends with $?: $(cat /run/daemon)"
	is_ours || fail "it has undone its work"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_failure daemon without "$(without SYS_ADMIN)" -- attach
}

answers_at() { ask client tcp "$host4" "$1" >/dev/null 2>&1; }
