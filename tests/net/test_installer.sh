# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_installer.sh - `bpf-portmap install` and `uninstall`, on directories as agents of networks
# leave them: what they make of each list, who may write and read at the same time, and what is left.

# Lists as the agents write them, blanks included.
list_of_kindnet() { cat "$project/tests/net/agents/kindnet.conflist"; }
list_of_calico() { cat "$project/tests/net/agents/calico.conflist"; }
list_of_aws() { jq -c . "$project/tests/net/agents/aws.conflist" | tr -d '\n'; }
list_of_flannel() { cat "$project/tests/lists/flannel.conflist"; }

# Big numbers, fractions, doubled keys and other types named portmap are nobody's business.
list_of_nerdctl() { cat "$project/tests/lists/nerdctl-odd.conflist"; }

# attributes FILE [set]: sets a label of SELinux and an ACL, or prints both
attributes() {
	perl -e '($file, $machine) = @ARGV; ($set, $get) = $machine eq "aarch64" ? (5, 8) : (188, 191);
		for (["security.selinux", "system_u:object_r:container_file_t:s0\0"],
			["system.posix_acl_access", pack("L<(S<S<L<)5", 2, 1, 6, -1, 2, 4, 65534, 4, 0, -1, 16, 4, -1, 32, 0, -1)]) {
			($name, $value, $got) = (@$_, " " x 100);
			if ($ARGV[2]) { syscall($set, $file, $name, $value, length $value, 0) && die "$name: $!\n"; next; }
			$length = syscall($get, $file, $name, $got, 100);
			print "$name ", $length < 0 ? "$!" : unpack("H*", substr($got, 0, $length)), "\n";
		}' "$1" "$(uname -m)" "${2:-}"
}

# the label of SELinux and the ACL of a list stay, through install and uninstall, beside a later list
# that is half written
test_installer_attributes() {
	local before
	node_make
	list_of_calico >"$conf/10-a.conflist"
	attributes "$conf/10-a.conflist" set 2>/run/err || skip "$(cat /run/err)"
	before=$(attributes "$conf/10-a.conflist")
	echo '{' >"$conf/99-later.conflist"
	at_node 0 install
	expect_equal "$before" "$(attributes "$conf/10-a.conflist")" "after install"
	expect_equal "$before" "$(attributes "$conf/10-a.conflist.bpf-portmap.bak")" "of what was kept"
	chmod o+x /run/node "$conf"
	setpriv --reuid 65534 --regid 65534 --clear-groups grep -q bpf-portmap "$conf/10-a.conflist" ||
		fail "who may read it by the ACL does not"
	at_node 0 uninstall
	expect_equal "$before" "$(attributes "$conf/10-a.conflist")" "after uninstall"
}

# refused WHAT [OPTION...]: install refuses, saying so, and changes nothing in either directory
refused() {
	local what=$1 before
	shift
	before=$(cd /run/node && find . -type f -exec sha256sum {} + | sort)
	at_node 1 install "$@"
	expect_in /run/err "$what"
	expect_equal "$before" "$(cd /run/node && find . -type f -exec sha256sum {} + | sort)"
}

# lists that are none for us (real_lists has more of them), options that ours refuses, a kernel or a
# bpffs that cannot do it: the node stays as it is, and the message says why
test_installer_refuses() {
	local name
	node_make
	refused 'has no conflist yet'
	list_of_calico | jq '.cniVersion = "1.2.0" | .cniVersions = ["1.2.0"]' >"$conf/10-a.conflist"
	refused 1.2.0
	list_of_calico | head -c 300 >"$conf/10-a.conflist"
	refused 'is not valid JSON'
	list_of_nerdctl | sed 's/"type" : "portmap"/& , "conditionsV6": ["-d"]/' >"$conf/10-a.conflist"
	refused 'conditionsV6' # beside a number that no integer holds
	list_of_calico | sed 's/"portmap"/"\\u0070ortmap"/' >"$conf/10-a.conflist"
	refused 'by hand'
	rm "$conf"/*
	list_of_calico >/run/node/elsewhere
	ln -s ../elsewhere "$conf/10-a.conflist"
	refused 'is a symbolic link'
	rm "$conf/10-a.conflist"
	mkfifo "$conf/10-a.conflist"
	refused 'is no regular file'
	rm "$conf/10-a.conflist"
	list_of_calico >"$conf/10-a.conflist"
	for name in 05-a.conf 05-a.json; do
		echo '{"cniVersion": "0.3.1", "name": "n", "type": "bridge"}' >"$conf/$name"
		refused 'the configuration of one plugin'
		rm "$conf/$name"
	done
	chmod 0777 /sys/fs/bpf
	refused 'the node stays with portmap: users other than root can replace'
	chmod 0700 /sys/fs/bpf
	# A chroot makes none.
	! has_user_namespaces ||
		PREFIX='unshare --user --map-root-user' refused 'rootless, in a user namespace'
	mv "$conf/10-a.conflist" "$conf/"$'10-\033[31m.conflist'
	echo '{' >"$conf/"$'05-\033[31m.conflist'
	refused '05-?[31m.conflist is not valid JSON'
	rm "$conf"/05-*
	at_node 0 install
	expect_in /run/out '10-?[31m.conflist: has bpf-portmap'
	at_node 0 uninstall
	expect_in /run/out '10-?[31m.conflist: has portmap again'
	mv "$conf"/10-* "$conf/10-a.conflist"
	touch "$conf/.bpf-portmap-new" # of a killed run
	mkdir "$conf/00-directory.conflist"
	at_node 0 install
	expect_equal '00-directory.conflist 10-a.conflist 10-a.conflist.bpf-portmap.bak' "$(ls -A "$conf" | xargs)"
}

# the alias: the list stays, our program is `portmap`, the reference plugin is kept beside it, also
# where there is no list yet; an agent that puts its own there again gets it kept; uninstall undoes
# it; k3s' link is refused
test_installer_alias() {
	node_make
	cp "$bin/portmap" /run/reference
	# nerdctl writes its list when it runs first
	at_node 0 install --alias
	cmp "$build/bpf-portmap" "$bin/portmap" || fail "portmap is not ours without a list"
	at_node 0 uninstall
	expect_equal 'bridge host-local portmap' "$(ls -A "$bin" | xargs)"
	list_of_calico >"$conf/10-a.conflist"
	at_node 0 install --alias
	cmp "$build/bpf-portmap" "$bin/portmap" || fail "portmap is not ours"
	cmp /run/reference "$bin/portmap.reference" || fail "the reference plugin is not kept"
	list_of_calico | cmp - "$conf/10-a.conflist" || fail "the list was changed"
	at_node 0 install --alias
	expect_equal 'nothing to change' "$(cat /run/out)"
	# Another version of ours is not taken for the reference plugin.
	echo >>"$bin/portmap"
	at_node 0 install --alias
	cmp /run/reference "$bin/portmap.reference" || fail "ours was kept as the reference plugin"
	cp "$bin/bridge" /run/newer
	cp /run/newer "$bin/agents"
	mv "$bin/agents" "$bin/portmap"
	at_node 0 install --alias
	cmp /run/newer "$bin/portmap.reference" || fail "the agent's newer plugin is not kept"
	at_node 0 uninstall
	cmp /run/newer "$bin/portmap" || fail "the reference plugin is not back"
	expect_equal 'bridge host-local portmap' "$(ls -A "$bin" | xargs)"
	ln -sf bridge "$bin/portmap"
	refused_alias=$(at_node 1 install --alias && cat /run/err)
	expect_contains "$refused_alias" 'is a link to bridge, which may look at the name'
	ln -sf bpf-portmap "$bin/portmap"
	at_node 0 install --alias
	at_node 1 uninstall
	expect_in /run/err 'bpf-portmap-as-portmap'
}

# several at once, with and without the alias: each change is made once, all succeed, and uninstall
# undoes all of it
test_installer_at_once() {
	local i runs=()
	node_make
	list_of_kindnet >"$conf/10-kindnet.conflist"
	for i in {1..6}; do
		[ $((i % 2)) = 0 ] && set -- --alias || set --
		"$build/bpf-portmap" install --bin-dir "$bin" --conf-dir "$conf" "$@" >"/run/out.$i" 2>&1 &
		runs+=($!)
	done
	for i in "${runs[@]}"; do wait "$i" || fail "it ended with $?: $(cat /run/out.*)"; done
	expect_equal '10-kindnet.conflist bpf-portmap portmap' "$(sed -n 's,^/run/node/[^/]*/\([^:]*\): .*,\1,p' \
		/run/out.* | sort | xargs)" "files that were changed"
	at_node 0 uninstall
	as_before "after several at once"
}

# would_break: what containerd would see now that makes the node NotReady: a first list that is no
# JSON, or a plugin that is not there
would_break() {
	local first type types
	first=$(cd "$conf" && for first in *.conf *.conflist *.json; do
		[ ! -f "$first" ] || echo "$first"
	done | sort | head -n 1)
	types=$(jq -r '.plugins[].type' "$conf/$first" 2>&1) || { echo "$first: $types" && return; }
	for type in $types; do
		case $type in
		portmap | bpf-portmap) "$bin/$type" </dev/null >/dev/null 2>&1 || echo "$type does not run" ;;
		esac
	done
}

# as_before WHEN: nothing of ours is there
as_before() {
	list_of_kindnet | cmp - "$conf/10-kindnet.conflist" || fail "$1: the list"
	cmp "$reference_plugins/portmap" "$bin/portmap" || fail "$1: portmap"
	expect_equal '10-kindnet.conflist' "$(ls -A "$conf")" "$1"
	expect_equal 'bridge host-local portmap' "$(ls -A "$bin" | xargs)" "$1"
}

# killed_everywhere BEFORE COMPLETED VERB [OPTION...]: the verb is killed before every fourth of its
# calls that change files (STEP=1: before each). BEFORE makes the state in which it begins; after the
# next call, COMPLETED must hold.
killed_everywhere() {
	local before=$1 completed=$2 step=${STEP:-4} call status
	shift 2
	for ((call = RANDOM % step + 1; ; call += step)); do
		$before
		status=0
		FILES=1 "$build/tests/traced" kill "$call" "$build/bpf-portmap" "$@" --bin-dir "$bin" --conf-dir "$conf" \
			>/run/out 2>&1 || status=$?
		[ "$status" != 0 ] || break
		expect_equal 137 "$status" "the status at call $call of $*: $(cat /run/out)"
		expect_equal '' "$(would_break)" "before call $call of $*, what containerd sees"
		at_node 0 "$@"
		$completed "after call $call of $*"
	done
	[ "$call" -ge 5 ] || fail "only $call calls of $*"
	echo "note: killed at up to $((call - step)) of $*"
}

uninstalled() { at_node 0 uninstall && as_before "before"; }
is_installed() {
	has_binary && is_ours 10-kindnet.conflist || fail "$1: not installed"
	expect_equal '10-kindnet.conflist 10-kindnet.conflist.bpf-portmap.bak' "$(ls -A "$conf" | xargs)" "$1"
	expect_equal 'bpf-portmap bridge host-local portmap' "$(ls -A "$bin" | xargs)" "$1"
}
has_alias() {
	cmp "$build/bpf-portmap" "$bin/portmap" && cmp "$reference_plugins/portmap" "$bin/portmap.reference" ||
		fail "$1: no alias"
	expect_equal 'bpf-portmap bridge host-local portmap portmap.reference' "$(ls -A "$bin" | xargs)" "$1"
}
with_list() { at_node 0 install; }
with_alias() { at_node 0 install --alias; }

# limit 120 s
# install and uninstall, with and without the alias, are killed before calls that change a file:
# each time the list is whole, and its programs are there and run; the next call completes it, and
# leaves nothing of the killed one
test_installer_killed() {
	node_make
	list_of_kindnet >"$conf/10-kindnet.conflist"
	killed_everywhere uninstalled is_installed install
	killed_everywhere uninstalled has_alias install --alias
	killed_everywhere with_list as_before uninstall
	killed_everywhere with_alias as_before uninstall
}

# watch_start [OPTION...]: install --watch, whose process is in $watcher
watch_start() {
	"$build/bpf-portmap" install --watch --bin-dir "$bin" --conf-dir "$conf" "$@" \
		>/run/watch 2>&1 &
	watcher=$!
}

watch_stop() {
	kill -TERM "$watcher"
	wait "$watcher" || fail "it ended with $?: $(cat /run/watch)"
}

is_ours() { grep -q '"bpf-portmap"' "$conf/$1" && ! ls "$conf"/.bpf-portmap-* >/dev/null 2>&1; }
has_binary() { cmp -s "$build/bpf-portmap" "$bin/bpf-portmap"; }

# nothing is loaded
# limit 120 s
# --watch: agents that rename another list in, write one in place and slowly, remove the binary,
# take a name before the present one, or replace both directories; the list is ours again each
# time, half a list is waited for; the programs are loaded once it is ours, before the first container
# needs them; SIGTERM leaves all in place
test_installer_watch() {
	local running
	node_make
	watch_start
	wait_until 5 file_says 'no conflist yet' /run/watch || fail "$(cat /run/watch)"
	[ ! -e "$pins" ] || fail "loaded without a list"
	list_of_kindnet >"$conf/10-kindnet.conflist"
	wait_until 5 is_ours 10-kindnet.conflist || fail "it does not see a list that appears"
	has_binary || fail "the list came before the binary"
	wait_until 20 [ -e "$pins/from_container" ] || fail "nothing is loaded: $(cat /run/watch)"
	# kindnet: another subnet, by rename
	list_of_kindnet | sed 's/10.244.0.0/10.244.7.0/' >"$conf/.temporary"
	mv "$conf/.temporary" "$conf/10-kindnet.conflist"
	wait_until 5 is_ours 10-kindnet.conflist || fail "not after a rename"
	expect_in "$conf/10-kindnet.conflist" 10.244.7.0
	list_of_kindnet | cmp - "$conf/10-kindnet.conflist.bpf-portmap.bak" || fail "the first one is not kept"
	# flannel: in place, slowly
	exec 7>"$conf/10-kindnet.conflist"
	list_of_flannel | head -c 200 >&7
	sleep 0.3
	expect_equal 200 "$(stat -c %s "$conf/10-kindnet.conflist")" "half a list"
	list_of_flannel | tail -c +201 >&7
	exec 7>&-
	wait_until 5 is_ours 10-kindnet.conflist || fail "not after it was written in place"
	list_of_flannel | sed 's/"portmap"/"bpf-portmap"/' | cmp - "$conf/10-kindnet.conflist"
	# Both at once; the binary by one that is running, into which the kernel lets nobody write
	cp "$build/bpf-portmap" "$bin/older"
	echo >>"$bin/older"
	"$bin/older" install --watch --bin-dir /run/none --conf-dir /run/none >/run/running 2>&1 &
	running=$!
	wait_until 5 grep . /run/running >/dev/null || fail "an older binary does not run"
	mv "$bin/older" "$bin/bpf-portmap"
	list_of_aws >"$conf/10-kindnet.conflist"
	wait_until 10 is_ours 10-kindnet.conflist || fail "not after both were replaced"
	wait_until 10 has_binary || fail "the binary is not there again: $(cat /run/watch)"
	kill $running
	list_of_calico >"$conf/05-first.conflist"
	wait_until 20 is_ours 05-first.conflist || fail "not the list that is first by now"
	# Other directories under the same names
	mv /run/node /run/old-node
	mkdir -p /run/node
	cp -a /run/old-node/bin "$bin"
	mkdir "$conf"
	list_of_flannel >"$conf/10-flannel.conflist"
	wait_until 40 is_ours 10-flannel.conflist || fail "not in directories that were replaced"
	# Whoever uninstalls while it runs gets it back, and at no moment a list without its program.
	for _ in {1..5}; do
		at_node 0 uninstall
		expect_equal '' "$(would_break)"
	done
	wait_until 60 is_ours 10-flannel.conflist || fail "not after uninstall"
	watch_stop
	has_binary && is_ours 10-flannel.conflist || fail "it did not leave all in place"
}

folder_is_watched() {
	grep -qs "^inotify .*ino:$(printf %x "$(stat -c %i "$conf/net1")") " /proc/"$watcher"/fdinfo/*
}

# --watch: the folder with more plugins of the network (CNI 1.3) is watched like the others, so that a
# file there is ours again as soon
test_installer_watch_folder() {
	node_make
	mkdir "$conf/net1"
	echo '{"cniVersion": "1.1.0", "name": "net1", "plugins": [{"type": "bridge"}]}' >"$conf/10-a.conflist"
	echo '{"type": "portmap"}' >"$conf/net1/50-ports.conf"
	watch_start
	wait_until 20 is_ours net1/50-ports.conf || fail "$(cat /run/watch)"
	wait_until 5 folder_is_watched || fail "nobody watches $conf/net1"
	echo '{"type": "portmap", "snat": false}' >"$conf/net1/50-ports.conf"
	wait_until 20 is_ours net1/50-ports.conf || fail "not after it was written again"
	watch_stop
}

# --watch: where the machine has no inotify instance left, as on nodes of kind, that is said, and it
# looks every few seconds
test_installer_watch_blind() {
	node_make
	strace -D -o /dev/null -e trace=inotify_init1 -e inject=inotify_init1:error=EMFILE "$build/bpf-portmap" install \
		--watch --bin-dir "$bin" --conf-dir "$conf" >/run/watch 2>&1 &
	watcher=$!
	wait_until 5 file_says 'no conflist yet' /run/watch || fail "$(cat /run/watch)"
	expect_in /run/watch 'fs.inotify.max_user_instances'
	list_of_kindnet >"$conf/10-a.conflist"
	wait_until 20 is_ours 10-a.conflist || fail "$(cat /run/watch)"
	expect_little_work 2
	watch_stop
}

# numbered N: kindnet's list, another one for each N; without a process, as an agent has none either
numbered() {
	local list
	IFS= read -rd '' list <"$project/tests/net/agents/kindnet.conflist" || true
	printf %s "${list/\"mtu\": 1500/\"mtu\": $1}"
}

# has_number N: the list is ours, and the agent's last one
has_number() {
	local list present
	IFS= read -rd '' list < <(numbered "$1") || true
	IFS= read -rd '' present <"$conf/10-a.conflist" || true
	is_ours 10-a.conflist && [ "$present" = "${list/\"portmap\"/\"bpf-portmap\"}" ]
}

# in an image that has nothing but the program, read-only, with few capabilities, the host's
# directories mounted, which are another user's, and of which one is a link as in k3s: it works as on
# the host
test_installer_image() {
	local image=/run/image
	node_make
	mkdir -p "$image"/{proc,sys,host} /run/node/data/hash
	mv "$bin" /run/node/data/hash/bin
	ln -s hash /run/node/data/current
	list_of_flannel >"$conf/10-flannel.conflist"
	cp "$build/bpf-portmap" "$image/"
	mount --bind "$image" "$image"
	mount -o remount,bind,ro "$image"
	chmod 640 "$conf/10-flannel.conflist"
	chown -R 997:998 /run/node
	mount --rbind /proc "$image/proc"
	mount --rbind /sys "$image/sys"
	mount --bind /run/node "$image/host"
	in_image() {
		setpriv --bounding-set -all,+sys_admin,+net_admin,+sys_chroot,+dac_override,+chown --inh-caps -all \
			chroot "$image" /bpf-portmap "$@" --bin-dir /host/data/current/bin --conf-dir /host/conf \
			>/run/out 2>&1 || fail "$* in the image: $(cat /run/out)"
	}
	in_image install
	is_ours 10-flannel.conflist || fail "the list"
	expect_equal '640 997 998' "$(stat -c '%a %u %g' "$conf/10-flannel.conflist")" "mode and owner of the list"
	cmp "$build/bpf-portmap" /run/node/data/hash/bin/bpf-portmap || fail "the binary"
	in_image uninstall
	list_of_flannel | cmp - "$conf/10-flannel.conflist" || fail "the list is not given back"
	expect_equal 'bridge host-local portmap' "$(ls -A /run/node/data/hash/bin | xargs)"
}

# in such a container on a node that has no bpffs yet, as kind's and k3d's have none: none is mounted
# that only the container sees, its probe is content, and after the node's first ADD it works with
# what that ADD has pinned
test_installer_image_no_bpffs() {
	local image=/run/image container before
	node_make
	mkdir -p "$image"/{proc,sys,host}
	list_of_kindnet >"$conf/10-a.conflist"
	cp "$build/bpf-portmap" "$image/"
	umount /sys/fs/bpf
	mount --make-rshared /
	cat >/run/container <<-SH
	mount --rbind /proc $image/proc
	mount -t sysfs sysfs $image/sys
	mount --rbind /sys/fs/bpf $image/sys/fs/bpf
	mount --rbind /sys/fs/cgroup $image/sys/fs/cgroup
	mount --bind /run/node $image/host
	exec chroot $image /bpf-portmap install --watch=1 --bin-dir /host/bin --conf-dir /host/conf
	SH
	unshare --mount --propagation slave sh /run/container >/run/watch 2>&1 &
	container=$!
	wait_until 10 is_ours 10-a.conflist || fail "$(cat /run/watch)"
	nsenter --target $container --mount --root /bpf-portmap doctor --quick >/run/out ||
		fail "doctor --quick before the first ADD: $(cat /run/out)"
	container_start web bridge -p 8080:80/tcp
	before=$(programs_show; socket_hooks_show)
	strip eth0
	wait_until 10 has_programs "$before" || fail "it does not repair: $(cat /run/watch)"
	kill -TERM $container
	wait $container || fail "it ended with $?: $(cat /run/watch)"
	# A busy machine may need longer for the first ADD than `repair` waits for the lock.
	! grep '^bpf-portmap: ' /run/watch | grep -v 'the lock .* has been held' || fail "it complains"
	# One to which the node's mounts do not come
	expect_failure unshare --mount --propagation private sh -c \
		"umount /sys/fs/bpf && mount --bind /sys/fs/bpf /sys/fs/bpf && exec $build/bpf-portmap attach"
	expect_contains "$output" 'this container sees no BPF file system'
	expect_equal "$before" "$(programs_show; socket_hooks_show)" "programs after all that"
}
has_programs() { [ "$1" = "$(programs_show; socket_hooks_show)" ]; }

# meanwhile_agent COMMAND: the script that runs while install is stopped
meanwhile_agent() {
	printf '#!/bin/sh\n%s\n' "$1" >/run/meanwhile
	chmod +x /run/meanwhile
}

# limit 180 s
# an agent writes its list, by rename or in place, while install, whose binary is there already, is
# stopped before each of its calls that change files: the agent's list is what is there in the end, with our plugin, but where it
# wrote in the instant of the rename itself, which is one of these calls: there one of the two is
# there, whole; so it is where it writes one after the other while a watcher runs
test_installer_race() {
	local call code agent lost
	node_make
	numbered 1 >"$conf/10-a.conflist"
	at_node 0 install
	for agent in "mv /run/node/.t $conf/10-a.conflist" "cat /run/list.new >$conf/10-a.conflist"; do
		meanwhile_agent "$agent"
		lost=0
		for ((call = 1; ; call++)); do
			numbered "1$call" >"$conf/10-a.conflist"
			rm -f "$conf"/*.bak
			numbered "2$call" >/run/list.new
			cp /run/list.new /run/node/.t
			code=0
			FILES=1 "$build/tests/traced" stop "$call" /run/meanwhile "$build/bpf-portmap" install \
				--bin-dir "$bin" --conf-dir "$conf" >/run/out 2>&1 || code=$?
			[ "$code" != 99 ] || break
			[ "$code" = 0 ] || expect_in /run/out 'was changed meanwhile'
			at_node 0 install
			has_number "2$call" || { has_number "1$call" && ((lost += 1)); } ||
				fail "$agent at call $call: $(cat "$conf/10-a.conflist")"
			expect_equal '' "$(find "$conf" "$bin" -name '.*')" "left at call $call"
		done
		[ "$call" -ge 9 ] || fail "only $call calls"
		echo "note: lost at $lost of $((call - 1)) calls: $agent"
		[ "$lost" -le 1 ] || fail "$agent is lost at $lost calls"
	done
	numbered 1 >"$conf/10-a.conflist"
	watch_start
	for ((call = 2; call <= 200; call++)); do
		numbered "$call" >"$conf/10-a.conflist"
		pause_for 5
	done
	wait_until 60 has_number 200 || fail "the last one is lost: $(cat "$conf/10-a.conflist" /run/watch)"
	watch_stop
}

rewrites() { while [ -e /run/fighting ]; do list_of_kindnet >"$conf/.t" && mv "$conf/.t" "$conf/10-a.conflist"; done; }

# limit 120 s
# --watch: an agent that changes the list back at once, again and again, is waited for, and said so;
# meanwhile hardly any processor time is used
test_installer_watch_fight() {
	local agent
	node_make
	list_of_kindnet >"$conf/10-a.conflist"
	watch_start
	wait_until 5 is_ours 10-a.conflist || fail "$(cat /run/watch)"
	touch /run/fighting
	rewrites &
	agent=$!
	wait_until 20 file_says 'again and again: waiting for' /run/watch || fail "$(cat /run/watch)"
	expect_little_work 2
	rm /run/fighting
	wait $agent
	[ "$(wc -l </run/watch)" -le 20 ] || fail "it says too much: $(cat /run/watch)"
	watch_stop
	[ -x "$bin/portmap" ] || fail "no portmap"
}

# ticks: what the watcher has used of the processor, in 1/100 s
ticks() { awk '{ print $14 + $15 }' "/proc/$watcher/stat"; }

# expect_little_work SECONDS: the watcher uses a tenth of the processor at most; of the time that has
# passed, which is more than SECONDS on a busy machine, where what it does takes longer, too.
expect_little_work() {
	local before used since=${EPOCHREALTIME/./} passed
	before=$(ticks)
	sleep "$1"
	used=$(($(ticks) - before))
	passed=$(((${EPOCHREALTIME/./} - since) / 10000))
	echo "note: it has used $used ticks of $passed"
	[ $((used * 10)) -le $((passed * ${SLOWER:-1})) ] || fail "$used ticks of $passed"
}

# limit 120 s
# no room on the disk, for the binary or for the list: nothing changes, nothing is left half written,
# and the watcher tries again without keeping the processor busy
test_installer_full_disk() {
	node_make
	list_of_kindnet >/run/list
	mount -t tmpfs -o size=64k tmpfs "$conf"
	cp /run/list "$conf/10-a.conflist"
	cat /dev/zero >"$conf/filler" 2>/run/err || true
	at_node 1 install
	expect_in /run/err 'No space left'
	cmp /run/list "$conf/10-a.conflist" || fail "the list"
	expect_equal '10-a.conflist filler' "$(ls -A "$conf" | xargs)"
	watch_start
	wait_until 5 file_says 'No space left' /run/watch || fail "$(cat /run/watch)"
	expect_little_work 2
	rm "$conf/filler"
	wait_until 10 is_ours 10-a.conflist || fail "not when there is room"
	watch_stop
	at_node 0 uninstall
	mount -t tmpfs -o size=1m tmpfs "$bin"
	refused 'No space left'
	cmp /run/list "$conf/10-a.conflist" || fail "the list came before the binary"
}

# limit 120 s
# --watch runs gc and attach: a container that was killed is removed, an interface that is new has
# programs; what attach warns of every time is said once
test_installer_watch_chores() {
	node_make
	list_of_kindnet >"$conf/10-a.conflist"
	container_start web bridge -p 8080:80/tcp
	container_die web
	strip eth0
	"$build/tests/tcx" count eth0 ingress /sys/fs/bpf/before
	watch_start --watch=1
	wait_until 10 no_records || fail "gc does not run: $(cat /run/watch)"
	wait_until 10 has_uplink || fail "attach does not run: $(cat /run/watch)"
	expect_in /run/watch '*:8080/tcp'
	for _ in 1 2; do
		detach_once eth0 ingress from_uplink
		wait_until 10 has_uplink || fail "attach runs once only: $(cat /run/watch)"
	done
	# By the look before it installs, and by attach
	expect_equal 2 "$(grep -c 'warning: .* runs before' /run/watch)" "warnings: $(cat /run/watch)"
	watch_stop
}

# it ends at once, while its repair waits for a lock, and that ends with it
test_installer_watch_ends() {
	local holder since
	node_make
	list_of_kindnet >"$conf/10-a.conflist"
	container_start web bridge -p 8080:80/tcp
	"$build/tests/locker" /sys/bus/platform/uevent >/run/held &
	holder=$!
	wait_until 5 file_says ready /run/held || fail "the holder did not start"
	watch_start --watch=1
	wait_until 20 repair_waits || fail "repair does not wait: $(cat /run/watch)"
	since=$SECONDS
	watch_stop
	[ $((SECONDS - since)) -lt $((10 * SLOWER)) ] || fail "it ended after $((SECONDS - since)) s"
	! kill -0 "$repairer" 2>/dev/null || fail "repair goes on: $(ps -ef)"
	kill "$holder"
	expect_answer client tcp "$host4" 8080 web
}
# $repairer: the process of `repair`, which has slept in one call for a while
repair_waits() {
	local before=${repairer:-}
	sleep 0.2
	repairer=$(pgrep -P "$watcher") && [ "$repairer" = "$before" ] && grep -q '^State:.S' "/proc/$repairer/status"
}

no_records() { [ "$(map_count attachments)" = 0 ]; }
has_uplink() { attached eth0 ingress | grep from_uplink >/dev/null; }

# objects_of_ours: "prog 12" of each program, map and link that is pinned, and of the maps that are not
objects_of_ours() {
	local path kind id
	for path in "$pins"/*; do
		for kind in prog map link; do
			id=$(bpftool -j "$kind" show pinned "$path" 2>/dev/null |
				jq -r '(if type == "array" then .[0] else . end).id // empty') || true
			[ -z "$id" ] || echo "$kind $id"
		done
	done
	bpftool -j prog show pinned "$pins/from_uplink" | jq -r '.map_ids[] | "map \(.)"'
}

# Other tests run at the same time, so only these are looked for.
none_is_left() {
	local kind id
	while read -r kind id; do
		! bpftool "$kind" show id "$id" >/dev/null 2>&1 || return 1
	done </run/objects
}

# snapshot: all that a host may have of us, but for programs, maps and links
snapshot() {
	tc qdisc show dev eth0
	tc qdisc show dev eth1
	find /sys/fs/bpf -mindepth 1 | sort
	find /run/node /etc/cni /opt/cni /var/lib 2>/dev/null | sort || true
	(cd "$conf" && sha256sum -- *)
	find /run -maxdepth 1 | grep -v '/run/\(out\|err\|results\|before\|objects\|netns\|containers\)$' | sort
	sysctl -a 2>/dev/null | grep -E '(all|default|eth0|eth1|ipv4)\.(forwarding|route_localnet|rp_filter|ip_forward) ' | sort || true
}

# nothing is loaded
# limit 120 s
# uninstall refuses while containers have ports, names them, and gives back the list already; when
# they are gone nothing is left, compared with before the first ADD: programs, maps, links, qdiscs,
# pins, files, settings; once more changes nothing
test_installer_uninstall() {
	local before
	node_make
	list_of_kindnet >"$conf/10-a.conflist"
	# As the bridge plugin does.
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	snapshot >/run/before
	at_node 0 install
	conflist clsact bridge "$(with_ours '{attach: "clsact"}')"
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	container_start db clsact -p 5432:80/tcp
	container_start dead bridge -p 7070:80/tcp
	container_die dead
	expect_answer client tcp "$host4" 8080 web
	at_node 1 uninstall
	expect_in /run/err '2 containers still have host ports or masquerade from bpf-portmap; new containers get their ports from portmap'
	expect_in /run/out 'pod shop/web-0 (sandbox web), interface eth0, network bridge: *:8080/tcp, [::]:8080/tcp'
	expect_in /run/err '--drop-ports'
	list_of_kindnet | cmp - "$conf/10-a.conflist" || fail "the list is not given back first"
	has_binary || fail "the binary went before the containers"
	expect_answer client tcp "$host4" 8080 web
	container_remove web bridge
	container_remove db clsact
	objects_of_ours >/run/objects
	[ "$(wc -l </run/objects)" -ge 35 ] || fail "objects: $(cat /run/objects)"
	at_node 0 uninstall
	wait_until 10 none_is_left || fail "programs, maps or links are left of: $(cat /run/objects)"
	ip link delete cni0
	rm -rf /var/lib/cni/*
	snapshot | diff /run/before - || fail "something is left"
	at_node 0 uninstall
	expect_equal 'nothing of bpf-portmap is left in use on this host' "$(cat /run/out)"
}

# uninstall keeps what a list was before install, and says so, where none that is whole is in its place:
# it is gone, half written, empty, a link, or no list; with a whole one, whosever it is, the copy goes
test_installer_uninstall_keeps() {
	local damage list=$conf/10-a.conflist
	node_make
	for damage in 'rm $list' 'truncate -s 100 $list' ': >$list' 'ln -sf ../bin/portmap $list' 'echo {} >$list'; do
		list_of_kindnet >"$list"
		at_node 0 install
		eval "$damage"
		for _ in 1 2; do
			at_node 0 uninstall
			list_of_kindnet | cmp - "$list.bpf-portmap.bak" || fail "the only good copy is lost: $damage"
			expect_in /run/out "$list" "stays in $list.bpf-portmap.bak"
		done
		rm -f "$list"
		list_of_kindnet | jq 'del(.plugins[1])' >"$list"
		at_node 0 uninstall
		expect_equal '10-a.conflist' "$(ls -A "$conf" | xargs)" "after another list came"
	done
}

# uninstall changes nothing where a list names ours that install has not changed, unless it is
# named; maps of another layout are left, unless --purge
test_installer_uninstall_refuses() {
	node_make
	list_of_kindnet | sed 's/"portmap"/"bpf-portmap"/' >"$conf/10-a.conflist"
	at_node 0 install
	at_node 1 uninstall
	expect_in /run/err 'change it by hand, or name it with --list'
	list_of_calico | jq '.name = "bpf-portmap"' >"$conf/20-other.conflist"
	mv "$conf/10-a.conflist" /run/node/elsewhere
	ln -s ../elsewhere "$conf/10-a.conflist"
	at_node 1 uninstall
	expect_in /run/err '10-a.conflist names bpf-portmap, and cannot be changed here: '
	mv /run/node/elsewhere "$conf/10-a.conflist"
	has_binary || fail "the binary is gone"
	container_start web bridge -p 8080:80/tcp
	meta_set 0 63
	at_node 1 uninstall --list 10-a.conflist
	expect_in /run/err 'layout 99'
	expect_answer client tcp "$host4" 8080 web
	list_of_kindnet | cmp - "$conf/10-a.conflist" || fail "the list that was named"
	at_node 0 uninstall --purge
	expect_equal '' "$(programs_show)$(find /sys/fs/bpf -mindepth 1 ! -name '*.debug')"
	[ ! -e "$bin/bpf-portmap" ] || fail "the binary is there"
}
