# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# cgroups.sh - a cgroup for each test. It is the root of cgroup2 for the test, so that programs
# attached there apply to its own processes only, and are removed with it.
#
#   CGROUP2/bpf-portmap-tests.RUN/TEST
#
# Every process of a run, tests included, holds a lock on the run's cgroup. A cgroup without a lock
# is left over from a run that was killed.

cgroup_prefix=bpf-portmap-tests.

# Prints where cgroup2 is mounted. It is mounted here only if it is mounted nowhere else, because
# mounting it resets its options (nsdelegate).
cgroup2_find() {
	local path
	path=$(awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup2") print $5 }' \
		/proc/self/mountinfo | while read -r path; do
		[ ! -w "$path/cgroup.procs" ] || { printf '%b\n' "$path"; break; }
	done)
	if [ -z "$path" ]; then
		path=/run/net-tests/cgroup2
		mkdir -p "$path"
		mount -t cgroup2 cgroup2 "$path" 2>/dev/null || return 1
	fi
	echo "$path"
}

# Tries several times, because a test's last processes may take a moment to end. Most have no cgroup
# below.
cgroup_remove() {
	local rounds=100
	[ -d "$1" ] && ! rmdir "$1" 2>/dev/null || return 0
	while [ -d "$1" ] && ! find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do
		rounds=$((rounds - 1))
		[ "$rounds" -gt 0 ] || return 1
		sleep 0.05
	done
}

cgroups_sweep() {
	local path
	for path in "$1/$cgroup_prefix"*; do
		[ -d "$path" ] || continue
		flock --nonblock "$path" find "$path" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
}

# Makes the run's cgroup, locks it while a process of the run lives, and removes those of runs that
# have ended. Sets cgroup_of_run, which is empty where there is no cgroup2.
cgroups_open() {
	local root lock
	cgroup_of_run=
	root=$(cgroup2_find) || return 0
	exec {lock}<"$root"
	flock --timeout 10 "$lock" || return 0
	cgroups_sweep "$root"
	cgroup_of_run=$(mktemp -d "$root/${cgroup_prefix}XXXXXX" 2>/dev/null) || cgroup_of_run=
	if [ -n "$cgroup_of_run" ]; then
		exec {cgroup_lock}<"$cgroup_of_run"
		flock --shared "$cgroup_lock"
	fi
	exec {lock}<&-
}

cgroups_close() {
	[ -z "$cgroup_of_run" ] || cgroup_remove "$cgroup_of_run" ||
		echo "tests/net/run: cannot remove $cgroup_of_run" >&2
}

# cgroup_leave TEST: removes the cgroup of a test if world.c has not, because processes were in it.
cgroup_leave() {
	[ -z "$cgroup_of_run" ] || cgroup_remove "$cgroup_of_run/$1"
}
