# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# doctor.sh - how tests break a host, and expect `bpf-portmap doctor` to find that and nothing else.

# /sys/fs/bpf/xdp: another software's XDP program, which drops all that comes in (XDP_DROP is 1)
xdp_pin() { "$build/tests/tcx" pin /sys/fs/bpf/xdp /sys/fs/bpf/xdp-count xdp 1; }

# doctor CODE [ARGUMENT...]: the findings of the JSON are in /run/doctor, a line each. Nothing is sent,
# so that a check is what finds something: test_doctor_probe.sh has what is sent.
doctor() {
	local expected=$1 code=0
	shift
	${PREFIX:-} "${binary:-$build/bpf-portmap}" doctor "$@" --json --no-probe >/run/out 2>/run/err || code=$?
	jq -c 'select(.version == 1).items[] | select(.verdict != "ok")' /run/out >/run/doctor
	expect_equal "$expected" "$code" \
		"the exit status with $(cat /run/err) $(jq -r '"\(.check): \(.found)"' /run/doctor)"
}

# healthy [ARGUMENT...]: nothing is found
healthy() { doctor 0 "$@"; }

# finds CHECK WORDS CODE [ARGUMENT...]: this check has findings, one with these words, and no other
finds() {
	local check=$1 words=$2 code=$3
	shift 3
	doctor "$code" "$@"
	expect_equal "$check" "$(jq -r .check /run/doctor | sort -u | paste -sd ' ')" \
		"checks with findings: $(cat /run/doctor)"
	expect_contains "$(jq -r .found /run/doctor)" "$words"
}

# Runs the remedies that were printed, each once. The binary is where an administrator has it.
mend() {
	local remedies
	remedies=$(jq -rs 'map(.remedy // empty) | unique[]' /run/doctor)
	[ -n "$remedies" ] || fail "no remedy: $(cat /run/doctor)"
	PATH=$build:$PATH bash -ec "$remedies" >/run/mend 2>&1 || fail "$remedies: $(cat /run/mend)"
}

# breaks CHECK WORDS CODE COMMAND...: the command breaks what the check finds and the remedy mends
breaks() {
	local check=$1 words=$2 code=$3
	shift 3
	healthy
	"$@"
	finds "$check" "$words" "$code"
	mend
	healthy
}

healthy_host() {
	# What the machine itself has there is another matter.
	[ ! -d /etc/cni/net.d ] || mountpoint -q /etc/cni/net.d ||
		mount -t tmpfs tmpfs /etc/cni/net.d
	[ ! -d /opt/cni/bin ] || mountpoint -q /opt || mount -t tmpfs tmpfs /opt
	web_as_pod -p 8080:80/tcp -p 5353:80/udp
	ip route add default via "$client4"
	ip route add default via "$client6"
	expect_answer client tcp "$host4" 8080 web
}

# says WORDS [ARGUMENT...]: the first line is a failure with these words, and nothing stays
says() {
	local words=$1
	shift
	by_hand 2 doctor "${@:-8080/tcp}"
	expect_contains "$(head -n 1 /run/out)" 'FAIL  probe'
	expect_contains "$(head -n 1 /run/out)" "$words"
	nothing_stays
}

# begins WORDS [ARGUMENT...]: it fails, and the first line has these words
begins() {
	by_hand 2 doctor "${@:2}"
	expect_contains "$(head -n 1 /run/out)" "$1"
}

# good [ARGUMENT...]: the probe finds nothing
good() {
	by_hand 0 doctor "${@:-8080/tcp}"
	nothing_stays
}

# unsent [ARGUMENT...]: nothing is found, and nothing was sent that would show it
unsent() {
	by_hand 4 doctor "$@"
	expect_contains "$(tail -n 1 /run/out)" 'not probed: no packet was sent'
}

# No table of nftables, no connection, neither ours nor the container's.
nothing_stays() {
	expect_equal '' "$(nft list tables | grep doctor || true)"
	expect_equal '' "$(in_namespace web nft list tables | grep doctor || true)"
	expect_equal '' "$(in_namespace web ss -Htan state syn-recv 'sport = 80' || true)"
	expect_equal 0 "$("$build/bpf-portmap" flows --json --client 203.0.113.1 | jq '.items |
		map(select(.state == "new" or .state == "established")) | length')"
}

# own_directory PATH: an empty one in this test alone, whatever the machine has there
own_directory() {
	local parent=$1
	while [ ! -d "$parent" ]; do parent=${parent%/*}; done
	case $parent in '' | /etc) skip "there is no $1" ;; esac
	mount -t tmpfs tmpfs "$parent"
	mkdir -p "$1"
}

# own_proc DIRECTORY: its files are copies, which this test alone writes: settings that the kernel
# shows outside of network namespaces only, or lets nobody change there. sysctl(8) writes them as
# ever.
own_proc() {
	local file copies=/run/own${1//\//_}
	mkdir "$copies"
	for file in "$1"/*; do
		[ ! -f "$file" ] || cat "$file" >"$copies/${file##*/}" 2>/dev/null || true
	done
	mount --bind "$copies" "$1"
}

# record_set MAP KEY OFFSET BYTE...: changes bytes of the first entry of a map whose key, as bpftool
# prints it in JSON, contains the text
record_set() {
	local record offset=$3
	record=$(bpftool -j map dump pinned "$pins/$1" | jq -r --arg key "$2" --argjson offset "$offset" '
		map(select(.formatted.key | tostring | contains($key)))[0] |
		(.key | map(ltrimstr("0x")) | join(" ")) + " value hex " + (.value |
			map(ltrimstr("0x")) | to_entries | map(if .key >= $offset and
			.key < $offset + ($ARGS.positional | length)
			then $ARGS.positional[.key - $offset] else .value end) | join(" "))' \
		--args "${@:4}")
	bpftool map update pinned "$pins/$1" key hex $record
}
