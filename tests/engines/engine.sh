# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# engine.sh - what an engine needs to run in a test's namespaces, and how its calls are recorded.

engine_data=$project/tests/engines/data
rootfs=/run/rootfs

# What `make image` makes
our_image=localhost/bpf-portmap:$("$build/bpf-portmap" --version | cut -d ' ' -f 2)
image_tar=$project/build/bpf-portmap-image.tar

image_needed() { [ -e "$image_tar" ] || skip "there is no image; make image makes it"; }

# engine_missing ENGINE: skips the test, with the reason why the engine is not installed
engine_missing() {
	skip "$(cat "$project/build/engines/$1.missing" 2>/dev/null ||
		echo "$1 is not installed; make check-engines does that")"
}

# Mounts cgroup2 where an engine expects it. Its root must have no processes, so that it can
# delegate its controllers.
engine_world() {
	needs_cgroup
	mkdir "$cgroup/test"
	echo $$ >"$cgroup/test/cgroup.procs"
	mount -t tmpfs tmpfs /var/tmp
	# Podman keeps locks there, which all its instances share.
	mount -t tmpfs tmpfs /dev/shm
	rootfs_make
}

# A container's file system: /bin/peer, and /bin/sh to start several servers
rootfs_make() {
	local file
	mkdir -p "$rootfs"/{bin,etc,dev,proc,sys,tmp}
	cp "$(command -v busybox)" "$rootfs/bin/busybox"
	ln -s busybox "$rootfs/bin/sh"
	cp "$peer" "$rootfs/bin/peer"
	# It has some where DYNAMIC=1 has built it.
	{ ldd "$peer" 2>/dev/null || true; } | sed -n 's|^[^/]*\(/[^ ]*\).*|\1|p' | while read -r file; do
		mkdir -p "$rootfs$(dirname "$file")"
		cp "$file" "$rootfs$file"
	done
}

# serving NAME PROTOCOL/PORT...: a container's command line that starts these servers
serving() {
	local name=$1 port
	shift
	for port; do
		echo "/bin/peer serve ${port%/*} any ${port#*/} --name $name &"
	done
	echo wait
}

recorder_install() {
	mkdir /run/recorder
	mv /run/cni-plugins/bpf-portmap /run/recorder/plugin
	cp "$project/tests/engines/recorder" /run/cni-plugins/bpf-portmap
	touch /run/recorder/{calls,listening,stderr}
}

# during TEXT COMMAND...: calls recorded during the command are recorded with this text.
during() {
	echo "$1" >/run/recorder/during
	shift
	"$@"
}

# Removes what differs between runs: generated names, and the order of ports and of CNI_ARGS.
recorded_essence() {
	jq '.env.CNI_ARGS |= (split(";") | sort | join(";")) |
		if (.stdin | type) == "object" and .stdin.runtimeConfig.portMappings
		then .stdin.runtimeConfig.portMappings |= sort_by(tojson) else . end' "$1" | sed -E '
		s/[0-9a-f]{64}/ID/g; s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g
		s/([0-9a-f]{2}:){5}[0-9a-f]{2}/MAC/g; s/veth[0-9a-f]{8}/VETH/g; s/-[0-9a-f]{8}"/-ID"/g'
}

# expect_recorded NAME: the recorded calls equal data/NAME.jsonl. RECORD=1 writes that file.
expect_recorded() {
	local data=$engine_data/$1.jsonl
	[ -z "${RECORD:-}" ] || cp /run/recorder/calls "$data"
	diff -U4 <(recorded_essence "$data") <(recorded_essence /run/recorder/calls) >/run/difference ||
		fail "$1 sends something else than $data has:
$(head -n 50 /run/difference)"
}
