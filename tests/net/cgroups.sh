# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# cgroups.sh - a cgroup for each test: the root of all that the test sees of cgroup2, so that
# programs attached there concern its own processes only, and end with it.
#
#   CGROUP2/bpf-portmap-tests.RUN/TEST
#
# Whoever belongs to a run, tests included, holds a lock on the run's cgroup. One that nobody
# holds is a left-over of a run that was killed.

cgroup_prefix=bpf-portmap-tests.

# Where cgroup2 is mounted. It is mounted here only if nowhere else: mounting it resets the
# options (nsdelegate) that it has.
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

# A test's last processes may take a moment to be gone.
cgroup_remove() {
	local rounds=100
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

# Makes the run's cgroup, locks it for as long as a process of the run lives, and sweeps those of
# runs that are no more. Sets cgroup_of_run, empty where there is no cgroup2.
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

# cgroup_enter TEST: the calling process, and its children, into the test's own
cgroup_enter() {
	[ -n "$cgroup_of_run" ] || return 0
	mkdir "$cgroup_of_run/$1" && echo "$BASHPID" >"$cgroup_of_run/$1/cgroup.procs"
}

cgroup_leave() {
	[ -z "$cgroup_of_run" ] || cgroup_remove "$cgroup_of_run/$1"
}
