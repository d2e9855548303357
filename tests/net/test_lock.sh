# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_lock.sh - the locks of ADD and DEL: which processes can hold them, which ones they exclude,
# and how their holder is reported.

# The /sys of world.sh is this network namespace's sysfs.
lock_file=/sys/bus/platform/drivers_probe
claims_file=/sys/bus/platform/uevent

# All files on the plugin's way that could be locked by their names
lock_candidates() {
	echo "/proc/self/ns/net /sys /sys/fs /sys/fs/bpf /sys/bus/platform $lock_file \
/sys/bus/platform/uevent $pins $pins-loading $pins/meta /var/lib/cni $cgroup $build/bpf-portmap \
/run /run/netns /run/netns/web"
}

# lock_held WRAPPER...: a process that the wrapper starts locks every file that it can; the locked
# ones are in /run/held, its process ID in $holder.
lock_held() {
	: >/run/held
	"$@" "$build/tests/locker" $(lock_candidates) >/run/held &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
}

lock_let_go() {
	kill -9 "$holder"
	wait "$holder" 2>/dev/null || true
}

# own_lock_held [NAME [FILE]]: a process of root with this name holds a lock of the plugin's.
own_lock_held() {
	: >/run/held
	"$build/tests/locker" --name "${1:-holder}" "${2:-$lock_file}" >/run/held &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
	expect_in /run/held "${2:-$lock_file}"
}

# lock_waits FILE: the process with the ID $waiting waits for a lock.
lock_waits() {
	[ -e "/proc/$waiting" ] || fail "it did not wait: $(cat /run/out)"
	wait_until 20 waits_in_flock "$waiting" || fail "it does not wait for the lock: $(cat /run/out)"
}
waits_in_flock() {
	local call=
	read -r call _ <"/proc/$1/syscall"
	[[ $call = @(73|32) ]]
} 2>/dev/null

# expect_unhindered: ADD, a second ADD and DEL work, and wait for no process, or not for long.
expect_unhindered() {
	local since=$SECONDS
	plugin_call ADD web >/run/out 2>/run/err || fail "ADD: $(cat /run/out)"
	plugin_call ADD web >/run/out 2>/run/err || fail "ADD again: $(cat /run/out)"
	plugin_call DEL web >/run/out 2>/run/err || fail "DEL: $(cat /run/out)"
	kill -0 "$holder" || fail "the holder has ended"
	[ $((SECONDS - since)) -lt $((30 * ${SLOWER:-1})) ] || fail "took $((SECONDS - since)) s"
}

# a local user who locks every file that he can open makes neither ADD, nor a second one, nor DEL
# fail, also where no bpffs is mounted, nor does root of a user namespace, nor root without capabilities
# in the host's network namespace, with the mounts of a container
test_lock_local_user() {
	container_add_plain web
	lock_held setpriv --reuid 65534 --regid 65534 --clear-groups
	expect_in /run/held /proc/self/ns/net
	expect_unhindered
	lock_let_go
	umount /sys/fs/bpf
	lock_held setpriv --reuid 65534 --regid 65534 --clear-groups
	expect_in /run/held /sys/fs
	expect_unhindered
	expect_equal 1700 "$(stat -c %a /sys/fs/bpf)" "mode of /sys/fs/bpf"
	chmod 1777 /sys/fs/bpf
	lock_let_go
	lock_held unshare --mount sh -c 'umount /sys/fs/bpf; mount --bind /sys /sys
		mount -o remount,bind,ro /sys
		exec setpriv --bounding-set -all --inh-caps -all "$@"' sh
	expect_only_common_locks
	has_user_namespaces || return 0
	lock_let_go
	lock_held setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare --user --map-root-user --mount
	expect_only_common_locks
}

expect_only_common_locks() {
	expect_in /run/held /proc/self/ns/net
	expect_equal "" "$(grep -E "drivers_probe|uevent|$pins" /run/held)" "what only root may lock"
	expect_unhindered
}

# ADD waits for any process that holds one of the locks, and continues when that one is killed: in
# this mount namespace, in one with another sysfs and bpffs or with another file in place of the lock
# file, in another PID and cgroup namespace
test_lock_excludes() {
	local waiting adder command file
	web_added
	for command in \
		'exec "$@"' \
		'exec unshare --mount sh -c "mount -t bpf bpf /sys/fs/bpf && exec \"\$@\"" sh "$@"' \
		'exec unshare --mount sh -c "mkdir -p /run/sys && mount -t sysfs sysfs /run/sys &&
			mount --bind /sys/fs/bpf /run/sys/fs/bpf && mount --rbind /run/sys /sys && exec \"\$@\"" sh "$@"' \
		'exec unshare --mount sh -c "mount --bind /dev/null $file && exec \"\$@\"" sh "$@"' \
		'exec unshare --mount sh -c "mount -t tmpfs tmpfs /sys/bus/platform && exec \"\$@\"" sh "$@"' \
		'exec unshare --mount --pid --cgroup --fork --kill-child --mount-proc "$@"'; do
		for file in "$lock_file" "$claims_file"; do
			add_waits_for "$file" "$command"
		done
	done
}
add_waits_for() {
	export file=$1
	own_lock_held holder "$file"
	bash -c "$2" bash env -u CNI_PATH CNI_COMMAND=ADD CNI_CONTAINERID=web CNI_IFNAME=eth0 \
		CNI_NETNS=/run/netns/web "$build/bpf-portmap" </run/config >/run/out 2>&1 &
	adder=$!
	waiting=$adder
	case $2 in *--fork*)
		wait_until 10 pgrep -P "$adder" -x bpf-portmap >/run/waiting || fail "no ADD"
		waiting=$(cat /run/waiting) ;;
	esac
	lock_waits
	lock_let_go
	wait "$adder" || fail "ADD after the lock was let go: $(cat /run/out)"
}

# the lock of one network namespace does not delay another one, though both share the bpffs and the
# /sys that they see
test_lock_of_another_host() {
	container_start web bridge -p 8080:80/tcp
	own_lock_held
	second_host_make
	expect_answer outside2 tcp 192.0.3.1 8080 web2 192.0.3.10
	kill -0 "$holder" || fail "the holder has ended"
}

# nothing is loaded
# once the programs are loaded, ADD mounts nothing for the lock where /sys is that of this network
# namespace, and does where it is another one's
test_lock_mounts_nothing() {
	web_added
	PREFIX="strace -o /run/trace -e trace=fsopen,flock" plugin_run ADD web </run/config >/run/out ||
		fail "$(cat /run/out)"
	grep -q flock /run/trace || fail "took no lock"
	! grep fsopen /run/trace || fail "mounted a sysfs"
	namespace_add host2
	in_namespace host2 ip link set lo up
	second_host_make
	in_namespace host2 env CNI_PATH=/run/cni-plugins strace -f -o /run/trace -e trace=fsopen \
		"$cnirun" del /run/conf/second.conflist web2 --id web2 || fail "DEL in the second host"
	grep -q fsopen /run/trace || fail "used the sysfs of another host"
}

# limit 120 s
# where the sysfs of the network namespace is read-only, as runtimes make that of a container, ADD
# works, and waits for a holder of a directory of it
test_lock_read_only_sysfs() {
	namespace_add host2
	mkdir /run/sys
	in_namespace host2 mount -t sysfs -o ro sysfs /run/sys
	! : 2>/dev/null >/run/sys/bus/platform/drivers_probe || fail "it is not read-only"
	second_host_make
	expect_answer outside2 tcp 192.0.3.1 8080 web2 192.0.3.10
	"$build/tests/locker" /run/sys/bus/platform/drivers >/run/held &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
	expect_failure in_namespace host2 "$cnirun" del /run/conf/second.conflist web2 --id web2
	expect_contains "$output" "process $holder (locker)"
}

# a process of root that is called as we are and locks the network namespace's own file is not waited
# for: every process can open that
test_lock_of_everybody() {
	web_added
	"$build/tests/locker" --name bpf-portmap /proc/self/ns/net >/run/held &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
	PREFIX="strace -o /run/trace -e trace=flock,openat" plugin_run ADD web </run/config >/run/out 2>/run/err ||
		fail "$(cat /run/out)"
	grep -q '^flock.* = 0' /run/trace || fail "took no lock"
	! grep -E '^flock.*(EAGAIN|EINTR)' /run/trace || fail "waited"
	expect_equal "" "$(cat /run/err)" "warnings"
	plugin_run DEL web </run/config >/run/out 2>&1 || fail "$(cat /run/out)"
	lock_let_go
}

# commands that work with what is loaded do not wait for each other, and uninstall waits for them
test_lock_shared() {
	local uninstall
	web_added
	(
		flock --shared 9
		echo ready >/run/held
		exec sleep 1000
	) 9>"$lock_file" &
	holder=$!
	wait_until 10 file_says ready /run/held || fail "the holder did not start"
	plugin_run CHECK web </run/config >/run/out || fail "$(cat /run/out)"
	plugin_run DEL web </run/config >/run/out || fail "$(cat /run/out)"
	"$build/bpf-portmap" attach >/run/out 2>&1 || fail "$(cat /run/out)"
	"$build/bpf-portmap" list >/run/out 2>&1 || fail "$(cat /run/out)"
	"$build/bpf-portmap" uninstall --bin-dir /run/bin --conf-dir /run/net.d >/run/out 2>&1 &
	uninstall=$!
	waiting=$uninstall lock_waits
	[ -e "$pins/meta" ] || fail "it did not wait before it removed the pins"
	lock_let_go
	wait "$uninstall" || fail "uninstall: $(cat /run/out)"
}

# commands that share the lock one after the other, without a break, do not keep uninstall waiting
test_lock_stream() {
	local number
	web_added
	plugin_run DEL web </run/config >/run/out || fail "$(cat /run/out)"
	for number in 1 2 3 4 5 6; do
		# Each holds it for at least a second.
		while [ ! -e /run/enough ]; do
			PREFIX='strace -o /dev/null -e trace=exit_group -e inject=exit_group:delay_enter=1000000' \
				plugin_run DEL "nobody$number" </run/config >/run/"del$number" 2>&1 ||
				echo failed >>/run/failures
		done &
	done
	wait_until 20 eval '[ "$(grep -c "FLOCK .* READ" /proc/locks)" -ge 6 ]'
	"$build/bpf-portmap" uninstall --bin-dir /run/bin --conf-dir /run/net.d >/run/out 2>&1 ||
		fail "uninstall: $(cat /run/out)"
	: >/run/enough
	wait
	[ ! -e /run/failures ] || fail "DEL: $(cat /run/del?)"
}

# limit 240 s
# a caller that blocks SIGALRM, or has a timer of its own, gets the error in the same time
test_lock_signals_are_blocked() {
	container_add_plain web
	plugin_config web >/run/config
	own_lock_held
	PREFIX='timeout --signal KILL 60 env --block-signal=ALRM' expect_failure plugin_run ADD web </run/config
	expect_code 11
	PREFIX='timeout --signal KILL 60 env --ignore-signal=ALRM' expect_failure plugin_run ADD web </run/config
	expect_code 11
}

# limit 120 s
# the error of an ADD that has waited in vain names the holder, as plain text; where the PID
# namespace does not show the holder, it names the command that does
test_lock_holder_is_named() {
	local other
	container_add_plain web
	plugin_config web >/run/config
	own_lock_held $'evil\e[2J\x9b'
	unshare --mount --pid --fork --kill-child --mount-proc env CNI_COMMAND=ADD \
		CNI_CONTAINERID=web CNI_IFNAME=eth0 CNI_NETNS=/run/netns/web \
		"$build/bpf-portmap" </run/config >/run/other 2>&1 &
	other=$!
	expect_error 11 '' plugin_run ADD web </run/config
	expect_contains "$(jq -r .msg <<<"$output")" "process $holder (evil?[2J?)"
	expect_contains "$output" "network namespace $(stat -L -c %i /proc/self/ns/net)"
	! wait "$other" || fail "ADD from another PID namespace did not wait"
	output=$(cat /run/other)
	expect_code 11
	eval "$(jq -r .msg <<<"$output" | grep -o 'grep [0-9a-f:]* /proc/locks')" >/run/locks
	expect_in /run/locks " $holder "
}

# whose container has a port that is taken is looked for in /proc without the lock of claims
test_lock_no_look_at_processes() {
	local id
	id=$(printf 'a%.0s' {1..64})
	container_add_plain first
	container_add_plain second
	plugin_config first | NETNS=/run/netns/first plugin_run ADD "$id" >/run/out || fail "$(cat /run/out)"
	PREFIX='strace -o /run/trace -e trace=openat2,openat,close' expect_failure plugin_call ADD second
	expect_contains "$output" "taken by container $id"
	awk '/uevent", .*O_WRONLY/ { held = $NF } held && $0 ~ "^close\\(" held "\\)" { held = "" }
		/\/proc\/[0-9]+\/cgroup/ { looked = 1; if (held) bad = 1 }
		END { exit !looked || bad }' /run/trace || fail "$(grep -E 'uevent|cgroup|close' /run/trace | tail -40)"
}
