# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_bpffs.sh - the file system of pins, in which other users may write, and which may be
# read-only, or not to be had.

# Where mount(8) mounts it everybody may make directories in it. bpffs_as_user COMMAND...
bpffs_as_user() {
	expect_equal 1777 "$(stat -c %a /sys/fs/bpf)" "mode of /sys/fs/bpf"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@" || fail "$*"
}

expect_pins_of_root() {
	expect_equal "0 700" "$(stat -c '%u %a' "$pins")" "owner and mode of $pins"
	[ -e "$pins/meta" ] || fail "nothing is pinned in $pins"
	[ ! -e "$pins-loading" ] || fail "$pins-loading is still there"
}

plugin_status() { plugin_call STATUS web 'del(.prevResult, .runtimeConfig) | .cniVersion = "1.1.0"'; }

# nothing is loaded
# one who makes such a directory again, in the instant after it was moved away, does not get our
# pins into it, neither in the place where we load nor in that of the pins
test_bpffs_made_again_by_another() {
	local path rival
	container_add_plain web
	plugin_config web >/run/config
	for path in "$pins-loading" "$pins"; do
		bpffs_as_user mkdir -p "$path/x"
		# The loop ends when it has been moved away once, or with its time.
		setpriv --reuid 65534 --regid 65534 --clear-groups timeout $((60 * SLOWER)) bash -c \
			'until mkdir "$1"; do sleep 0.01; done; mkdir "$1/x"' bash "$path" 2>/dev/null &
		rival=$!
		PREFIX="strace -f -o /dev/null -e trace=rename -e inject=rename:delay_exit=$((500000 * SLOWER)):when=1" \
			plugin_run ADD web </run/config >/run/out 2>/run/err || fail "$(cat /run/out)"
		wait "$rival" || fail "it was not moved away"
		expect_pins_of_root
		plugin_call DEL web || fail DEL
		rm -rf "$pins"
	done
}

# nothing is loaded
# what another user has made where we load, before the first ADD, is moved out of the way; a pin directory
# of another user is never used: STATUS and CHECK say so, DEL works, and ADD moves it out of the way
test_bpffs_pins_of_another() {
	container_start_plain web
	bpffs_as_user mkdir "$pins"
	bpffs_as_user mkdir -p "$pins-loading/x"
	plugin_status 2>/run/err || fail STATUS
	expect_in /run/err "$pins does not belong to root"
	expect_failure plugin_call CHECK web
	plugin_call DEL web 2>/run/err || fail DEL
	plugin_call ADD web >/run/out 2>/run/err || fail "$(cat /run/out)"
	expect_in /run/err "chmod 0700 /sys/fs/bpf"
	expect_pins_of_root
	expect_answer client tcp "$host4" 8080 web "$client4"
	plugin_call CHECK web || fail CHECK
}

# a link of another user, of the name that loaders use, leads to the pins of one host: the first ADD
# of another host removes nothing there
test_bpffs_links_of_another() {
	container_start web bridge -p 8080:80/tcp
	bpffs_as_user ln -s "$pins" "$pins-loading"
	second_host_make
	expect_pins_of_root
	container_check web bridge
}

# a bpffs, or a pin directory, in which others can replace what root has pinned: ADD and STATUS say
# so, and what to do
test_bpffs_written_by_others() {
	local path command
	container_add_plain web
	for command in 'chmod 0777 /sys/fs/bpf' 'chown 65534 /sys/fs/bpf' "chmod 0777 $pins"; do
		path=${command##* }
		$command
		expect_error 102 "chown root $path; chmod 0700 $path" plugin_call ADD web
		expect_error 50 "chown root $path; chmod 0700 $path" plugin_status
		chown root "$path"
		chmod 0700 "$path"
		plugin_call ADD web >/run/out || fail "$(cat /run/out)"
		plugin_status || fail STATUS
	done
}

# with_error CALL ERROR COMMAND...: the kernel refuses that system call.
with_error() {
	local call=$1 error=$2
	shift 2
	PREFIX="strace -f -o /dev/null -e trace=$call -e inject=$call:error=$error" "$@"
}

# nothing is loaded
# where no bpffs can be mounted ADD says so, and what to do; where the lock cannot be had, because
# mounting is not allowed at all, too
test_bpffs_not_mounted() {
	container_add_plain web
	expect_error 102 '' with_error fsopen EPERM plugin_call ADD web
	expect_contains "$output" 'cannot mount the sysfs of this network namespace'
	umount /sys/fs/bpf
	expect_error 102 '' with_error mount EPERM plugin_call ADD web
	expect_contains "$output" 'mount one on the host: `mount -t bpf'
	expect_refusal 'CONFIG_BPF_SYSCALL' with_error mount ENODEV plugin_call ADD web
	plugin_call ADD web >/run/out || fail "$(cat /run/out)"
}

# load_traced: the bpf() calls of a first ADD of web are in /run/trace. It fails in the end, and leaves
# nothing.
load_traced() {
	! PREFIX="strace -o /run/trace -e trace=bpf,rename -e inject=rename:error=EIO" \
		plugin_run ADD web </run/config >/run/out 2>&1 || fail "ADD without rename"
}

# load_refused PATTERN ERROR: the first ADD of web, in which the bpf() call with this in it, and all
# later ones, fail
load_refused() {
	local call
	call=$(awk -v pattern="$1" '/^bpf\(/ { number++; if (!found && $0 ~ pattern) found = number }
		END { print found }' /run/trace)
	[ -n "$call" ] || fail "no call with $1"
	PREFIX="strace -o /dev/null -e trace=bpf -e inject=bpf:error=$2:when=$call+" \
		expect_failure plugin_run ADD web </run/config
	expect_code 102
}

# nothing is loaded
# a program that the kernel refuses: the error names the kernel and the program first, and leaves
# libbpf's lines to the details; maps that there is no memory for: it says what to do
test_bpffs_load_refused() {
	mount -t tmpfs tmpfs /sys/kernel/btf # else the loader tries once more, with other programs
	container_add_plain web
	plugin_config web >/run/config
	load_traced
	load_refused 'BPF_PROG_LOAD.*"to_uplink"' EINVAL
	expect_contains "$(jq -r .msg <<<"$output")" "Linux $(uname -r) refuses the program to_uplink"
	expect_contains "$(jq -r .details <<<"$output")" libbpf
	load_refused 'BPF_MAP_CREATE.*"connections"' ENOMEM
	expect_contains "$(jq -r .msg <<<"$output")" 'MemoryMax of containerd.service'
}

# whatever is duplicated of a meta that only programs still know is closed again
test_bpffs_meta_unpinned() {
	local descriptor
	container_start web bridge -p 8080:80/tcp
	rm "$pins/meta"
	PREFIX="strace -o /run/trace -e trace=fcntl,close" plugin_status || fail STATUS
	for descriptor in $(sed -n 's/.*F_DUPFD_CLOEXEC.* = //p' /run/trace); do
		grep -q "^close($descriptor)" /run/trace || fail "$descriptor is never closed"
	done
}

# another bpffs that was mounted over ours for a while, and on which `repair` has pinned what it loaded:
# ADD works while it is there and afterwards, doctor tells what repair mends, and repair mends it
test_bpffs_covered() {
	local first
	for first in plugin_add_second repair_uncovered; do
		container_start web bridge -p 8080:80/tcp
		mount -t bpf bpf /sys/fs/bpf
		"$build/bpf-portmap" repair >/run/out 2>&1 || fail "repair: $(cat /run/out)"
		umount /sys/fs/bpf
		expect_failure "$build/bpf-portmap" doctor --no-probe
		$first
		container_check web bridge
		"$build/bpf-portmap" doctor --no-probe >/run/out || fail "doctor: $(cat /run/out)"
		[ "$first" = plugin_add_second ] || plugin_add_second
		expect_answer client tcp "$host4" 8080 web "$client4"
		expect_answer client tcp "$host4" 8081 second "$client4"
		container_remove second bridge
		container_remove web bridge
	done
}
plugin_add_second() { container_start second bridge -p 8081:80/tcp; }
repair_uncovered() { "$build/bpf-portmap" repair >/run/out 2>&1 || fail "repair: $(cat /run/out)"; }
