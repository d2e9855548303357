# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_doctor_damaged.sh - whatever is pinned, the commands that look say a sentence, and none
# crashes: with the plugin under the sanitizers.

# Each as it is called; what they print is in /run/out and /run/err.
lookers() { echo list flows stats doctor; }

# looks CODES [ARGUMENT...]: the exit status, $code, is one of these, and nothing crashed
looks() {
	local codes=$1
	shift
	code=0
	${PREFIX:-} "${binary:-$build/bpf-portmap}" "$@" >/run/out 2>/run/err </dev/null || code=$?
	case " $codes " in *" $code "*) ;; *) fail "$* ends with $code: $(cat /run/err) ${pin:-}" ;; esac
	! LC_ALL=C tr -d '\n' </run/out | LC_ALL=C grep '[[:cntrl:]]' || fail "control characters: $*"
}

# random bytes in every map but meta
# limit 120 s
test_doctor_damaged_entries() {
	local seed
	binary=$build/sanitized/bpf-portmap
	healthy_host
	for seed in ${SEEDS:-1 2 3 4}; do
		"$build/tests/fill" damage "$pins" "$seed" $((seed % 2 ? 8 : 300))
		looks '1 2' doctor
		looks '1 2' doctor --json
		jq -e .items /run/out >/dev/null || fail "no JSON"
		looks '1 2' doctor 8080 --all
		for verb in list flows stats; do looks 0 "$verb"; done
	done
}

# random bytes in meta: another layout, or one that nobody has heard of
test_doctor_damaged_meta() {
	local byte verb
	binary=$build/sanitized/bpf-portmap
	healthy_host
	for byte in 0 1 2 3 4 8 12 16 24 28; do
		meta_set "$byte" a5
		looks '0 1 2' doctor
		for verb in list flows stats; do
			looks '0 1' "$verb"
			[ ! -s /run/err ] || expect_equal 1 "$(wc -l </run/err)" "$(cat /run/err)"
		done
	done
}

# pins of other maps: other types, other sizes, a program, a directory
# limit 120 s
test_doctor_damaged_pins() {
	local pin number=0 verb verbs=(list flows stats) types=(
		"hash key 4 value 4" "array key 4 value 8" "percpu_array key 4 value 8"
		"lru_hash key 64 value 512" "lpm_trie key 8 value 4 flags 1" "queue key 0 value 4")
	binary=$build/sanitized/bpf-portmap
	healthy_host
	for pin in "$pins"/*; do
		case ${pin##*/} in connect* | sendmsg* | recvmsg* | getpeer* | bind* | sock_* | sysfs) continue ;; esac
		mv "$pin" /sys/fs/bpf/kept
		case $((number % 8)) in
		6) bpftool prog pin name from_uplink "$pin" 2>/dev/null || cp_pin "$pin" ;;
		7) # of which the kernel says what it says of missing rights
			mkdir "$pin"
			looks 3 doctor
			expect_in /run/err "${pin##*/}: Is a directory" ;;
		*) bpftool map create "$pin" type ${types[number % 8]} entries 8 name foreign ;;
		esac
		number=$((number + 1))
		looks '2 3' doctor
		[ "$code" = 3 ] || expect_in /run/out 'FAIL'
		verb=${verbs[number % 3]}
		looks '0 1' "$verb"
		[ ! -s /run/err ] || expect_equal 1 "$(wc -l </run/err)" "${pin##*/}: $(cat /run/err)"
		rm -d "$pin"
		mv /sys/fs/bpf/kept "$pin"
	done
	unset binary
	healthy
}
# Any program will do.
cp_pin() {
	bpftool prog pin id "$(bpftool -j prog show | jq '[.[] | select(.name == "to_uplink")][0].id')" "$1"
}

# without rights: another user, and root without capabilities
test_doctor_damaged_rights() {
	local verb prefix
	healthy_host
	for prefix in "setpriv --reuid nobody --clear-groups" "setpriv --bounding-set -all"; do
		for verb in $(lookers); do
			PREFIX=$prefix looks '0 1 3' "$verb"
			[ "$code" = 0 ] || expect_equal 1 "$(wc -l </run/err)" "$verb: $(cat /run/err)"
		done
		PREFIX=$prefix doctor 3
		expect_equal rights "$(jq -r .check /run/doctor)"
	done
}
