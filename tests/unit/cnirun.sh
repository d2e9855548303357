# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2119,SC2120
#
# cnirun.sh - runs the whole of cnirun, built with the sanitizers, with plugins that are shell scripts:
# what they are told, in which order, and what becomes of their answers.
#
# A test is a function test_* whose name is the comment above it, or a `row`. It runs in a directory
# of its own, beside others, with the plugins a, b and c in bin/ and the list n.conflist of them.

cnirun=$(cd "$(dirname "$0")/../.." && pwd)/build/sanitized/cnirun
netns=/proc/self/ns/net # It exists, and no script looks into it.
cache=cni/results/n-c1-eth0
three='{"type":"a"},{"type":"b"},{"type":"c"}'
export ASAN_OPTIONS=detect_leaks=1:exitcode=99 UBSAN_OPTIONS=exitcode=99

fail() {
	echo "$*"
	exit 1
}

expect_equal() { [ "$1" = "$2" ] || fail "${3:-expected} '$1', not '$2'"; }
expect_contains() { [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"; }
has() { [ -e "$1" ] || fail "$1 is not there"; }
has_no() { [ ! -e "$1" ] || fail "$1 is there"; }

# A plugin notes each call and its stdin. What TYPE.COMMAND has, where that exists, it does before its
# ordinary answer: a result that names it, or versions.
plugin_make() {
	cat >"bin/$1" <<-'SH'
	#!/bin/sh
	me=${0##*/}
	cat >"stdin.$me.$CNI_COMMAND"
	env | grep ^CNI_ | sort >"env.$me.$CNI_COMMAND"
	echo "$CNI_COMMAND $me" >>calls
	[ ! -e "$me.$CNI_COMMAND" ] || . "./$me.$CNI_COMMAND"
	case $CNI_COMMAND in
	ADD) echo "{\"cniVersion\":\"1.1.0\",\"by\":\"$me\"}" ;;
	VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}' ;;
	esac
	SH
	chmod +x "bin/$1"
}

result_of() { echo "{\"cniVersion\":\"1.1.0\",\"by\":\"$1\"}"; }

# list_write VERSION PLUGINS [KEYS]
list_write() { echo "{\"cniVersion\":\"$1\",\"name\":\"n\",${3:-}\"plugins\":[$2]}" >n.conflist; }

# instruct TYPE.COMMAND LINE...
instruct() { printf '%s\n' "${@:2}" >"$1"; }

# run VERB...: its exit status is in $status, what it prints in the files stdout and stderr.
run() {
	status=0
	"${before_it[@]}" "$cnirun" "$@" >stdout 2>stderr || status=$?
	! grep -E 'Sanitizer:|runtime error:' stderr || fail "$(cat stderr)"
}
before_it=()

add() { run add "$PWD/n.conflist" "$netns" --id c1 "$@"; }
del() { run del "$PWD/n.conflist" "$netns" --id c1 "$@"; }
check() { run check "$PWD/n.conflist" "$netns" --id c1 "$@"; }
of_list() { run "$1" "$PWD/n.conflist" "${@:2}"; }

succeeds() { expect_equal 0 "$status" "the exit status, with $(cat stderr), expected"; }
# fails WORDS: with these words on stderr and nothing on stdout
fails() {
	expect_equal 1 "$status" "the exit status, with $(cat stderr), expected"
	says "$1"
	expect_equal '' "$(cat stdout)" "on stdout"
}
says() { expect_contains "$(cat stderr)" "$1"; }
prints() { expect_contains "$(cat stdout)" "$1"; }
prints_json() { expect_equal "$1" "$(tr -d ' \n' <stdout)" "on stdout"; }

# calls ADD a b DEL b a: these calls were made, and are forgotten
calls() {
	local word command expected=
	for word; do
		case $word in
		[A-Z]*) command=$word ;;
		*) expected+="$command $word"$'\n' ;;
		esac
	done
	expect_equal "${expected%?}" "$(cat calls)" "calls"
	: >calls
}

# stdin_of PLUGIN.COMMAND KEY JSON: of the object that the plugin found; '' where there is no such key
stdin_of() { expect_equal "$3" "$(jq -c --arg key "$2" '.[$key] // empty' "stdin.$1")" "$2 of $1"; }
# told PLUGIN.COMMAND NAME=VALUE: in its environment
told() { grep -qFx -- "$2" "env.$1" || fail "no $2 in $(cat "env.$1")"; }

# running FILE: the process whose number a plugin wrote there; a zombie, where nobody reaps, has ended
running() {
	local line
	line=$(cat "/proc/$(cat "$1")/stat" 2>/dev/null) && [[ ${line##*) } != Z* ]]
}
ended() { ! running "$1" || fail "the process of $1 is still there"; }
end_process() {
	running "$1" || fail "the process of $1 has ended"
	kill -9 "$(cat "$1")"
}

tests=() names=()
# row FUNCTION NAME ARGUMENT...: a test that is this call
row() {
	names+=("$2")
	tests+=("$(printf '%q ' "$1" "${@:3}")")
}

run_one() {
	set -eEuo pipefail
	trap 'echo "failed: $BASH_COMMAND (line $LINENO)"' ERR
	mkdir "$1"
	cd "$1"
	mkdir bin
	touch calls
	for plugin in a b c; do plugin_make "$plugin"; done
	list_write 1.1.0 "$three"
	export CNI_PATH=$PWD/bin CNI_CACHE_DIR=$PWD/cni
	eval "$2"
	touch "$1/succeeded"
}

run_all() {
	local scratch number failed=0
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	while IFS=$'\t' read -r function name; do row "$function" "$name"; done < <(
		awk '/^# / { name = name (name ? " " : "") substr($0, 3); next }
			/^test_/ { sub(/\(.*/, ""); print $0 "\t" name }
			{ name = "" }' "$0")
	for number in "${!tests[@]}"; do
		(run_one "$scratch/$number" "${tests[number]}") >"$scratch/$number.output" 2>&1 </dev/null &
		[ $((number % 8)) != 7 ] || wait
	done
	wait
	echo "1..${#tests[@]}"
	for number in "${!tests[@]}"; do
		if [ -e "$scratch/$number/succeeded" ]; then
			echo "ok $((number + 1)) - ${names[number]}"
		else
			echo "not ok $((number + 1)) - ${names[number]}"
			sed 's/^/# /' "$scratch/$number.output"
			failed=1
		fi
	done
	exit "$failed"
}
