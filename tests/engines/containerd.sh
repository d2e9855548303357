# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# containerd.sh - containerd as on a node of Kubernetes, in the namespaces of a test: with its own
# state, socket, conflists and plugins, and one image, because nothing can be pulled.

containerd_home=/run/containerd-home
cri_socket=$containerd_home/socket
image=localhost/serves-80:1

containerd_version() {
	containerd --version 2>/dev/null | grep -o ' v\{0,1\}[0-9][0-9.]*' | sed -n 1p | tr -d ' v'
}

containerd_world() {
	local program
	for program in containerd ctr runc protoc; do
		command -v "$program" >/dev/null || engine_missing containerd
	done
	engine_world
	mkdir -p "$containerd_home/conflists" "$containerd_home/bin"
	cp "$project/conf/bridge.conflist" "$containerd_home/conflists/"
	runc_without_limits
	containerd_configuration >"$containerd_home/configuration"
	containerd_start
	image_make "$containerd_home/image"
	image_import k8s.io
}

# cgroup2 may lack the controllers that limits need. containerd runs runc in the folder with the
# container's configuration.
runc_without_limits() {
	cat >"$containerd_home/bin/runc" <<-SH
	#!/bin/sh
	if [ -e config.json ]; then
		jq -c 'del(.linux.resources)' config.json >limitless.json && mv limitless.json config.json
	fi
	exec $(command -v runc) "\$@"
	SH
	chmod +x "$containerd_home/bin/runc"
}

# Lowering the score of the out-of-memory killer needs a capability that root may lack.
containerd_configuration() {
	cat <<-TOML
	version = 2
	root = "$containerd_home/root"
	state = "$containerd_home/state"
	[grpc]
	  address = "$cri_socket"
	[plugins."io.containerd.internal.v1.opt"]
	  path = "$containerd_home/opt"
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "$image"
	  disable_apparmor = true
	  restrict_oom_score_adj = true
	[plugins."io.containerd.grpc.v1.cri".cni]
	  conf_dir = "$containerd_home/conflists"
	  bin_dir = "$CNI_PATH"
	[plugins."io.containerd.grpc.v1.cri".containerd]
	  snapshotter = "native"
	TOML
}

containerd_start() {
	env -i PATH="$containerd_home/bin:$PATH" containerd --config "$containerd_home/configuration" \
		>>"$containerd_home/log" 2>&1 &
	containerd=$!
	wait_until 30 containerd_answers || fail "containerd: $(tail -n 20 "$containerd_home/log")"
}

containerd_answers() { sandboxes >/dev/null 2>&1; }

containerd_kill() {
	kill -9 "$containerd"
	wait "$containerd" 2>/dev/null || true
}

containerd_ctr() { ctr --address "$cri_socket" "$@"; }

image_import() { containerd_ctr -n "$1" image import "$containerd_home/image.tar" >/dev/null; }

# An OCI image of one layer. Its container serves port 80, with its host name in the answer.
image_make() {
	local directory=$1 serves layer config manifest
	serves=$(serving '$(busybox hostname)' tcp/80 udp/80)
	mkdir -p "$directory/blobs/sha256"
	tar -C "$rootfs" -cf "$directory/layer" .
	layer=$(image_blob "$directory" layer image.layer.v1.tar)
	jq -n --arg serves "$serves" --argjson layer "$layer" --arg machine "$(image_machine)" \
		'{architecture: $machine, os: "linux", rootfs: {type: "layers", diff_ids: [$layer.digest]},
		config: {Entrypoint: ["/bin/sh", "-c", $serves]}}' >"$directory/config"
	config=$(image_blob "$directory" config image.config.v1+json)
	jq -n --argjson layer "$layer" --argjson config "$config" \
		'{schemaVersion: 2, $config, layers: [$layer]}' >"$directory/manifest"
	manifest=$(image_blob "$directory" manifest image.manifest.v1+json)
	jq -n --argjson manifest "$manifest" --arg name "$image" '{schemaVersion: 2, manifests:
		[$manifest + {annotations: {"io.containerd.image.name": $name}}]}' >"$directory/index.json"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$directory/oci-layout"
	tar -C "$directory" -cf "$directory.tar" .
}

# The name of the architecture in OCI
image_machine() {
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	*) uname -m ;;
	esac
}

# image_blob DIRECTORY FILE TYPE: puts the file among the blobs and prints its descriptor
image_blob() {
	local digest
	digest=$(sha256sum "$1/$2" | cut -d ' ' -f 1)
	jq -n --arg type "application/vnd.oci.$3" --arg digest "sha256:$digest" \
		--argjson size "$(stat -c %s "$1/$2")" '{mediaType: $type, $digest, $size}'
	mv "$1/$2" "$1/blobs/sha256/$digest"
}
