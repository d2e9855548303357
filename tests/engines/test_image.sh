# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_image.sh - the container image of `make image`, in real engines.

. "$folder/engine.sh"
. "$folder/cri.sh"
. "$folder/containerd.sh"

# the image has the static binary and licences, all of them root's; its blobs are what their names say
test_image_contents() {
	local blob layer
	image_needed
	mkdir /run/image
	tar -C /run/image -xf "$image_tar"
	for blob in /run/image/blobs/sha256/*; do
		expect_equal "${blob##*/}" "$(sha256sum <"$blob" | cut -d ' ' -f 1)" "digest of a blob"
	done
	layer=/run/image/$(jq -r '.[0].Layers[0]' /run/image/manifest.json)
	expect_equal "$(cd "$project" && printf '%s\n' bpf-portmap LICENSES/ LICENSES/*.txt \
		LICENSES/libraries.txt | sort)" "$(tar -tzf "$layer" | sort)" "files"
	expect_equal '' "$(tar --numeric-owner -tvzf "$layer" | grep -v ' 0/0 ')" "files of others"
	expect_equal '["install","--watch"]' \
		"$(jq -c .config.Cmd "/run/image/$(jq -r '.[0].Config' /run/image/manifest.json)")" command
}

# limit 120 s
# containerd imports the image and runs it, with a read-only root
test_image_containerd() {
	image_needed
	containerd_world
	containerd_ctr image import "$image_tar" >/run/out 2>&1 || fail "import: $(cat /run/out)"
	expect_contains "$(containerd_ctr image ls -q)" "$our_image"
	output=$(containerd_ctr run --rm --snapshotter native --read-only "$our_image" asked \
		/bpf-portmap --version 2>&1) || fail "$output"
	expect_equal "$("$build/bpf-portmap" --version)" "$output" version
}
