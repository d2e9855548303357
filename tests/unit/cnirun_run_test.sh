#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016,SC2028,SC2119,SC2120,SC2317 # tests are called by their names
# cnirun_run_test.sh - how cnirun runs plugins, and what it makes of their answers and of their failing.

# shellcheck source=tests/unit/cnirun.sh
. "$(dirname "$0")/cnirun.sh"

# ADD in order, each result the next one's prevResult
test_add_in_order() {
	add
	succeeds
	calls ADD a b c
	stdin_of a.ADD prevResult ''
	stdin_of b.ADD prevResult "$(result_of a)"
	stdin_of c.ADD prevResult "$(result_of b)"
	prints_json "$(result_of c)"
	has "$cache"
}

# DEL in reverse order, with the cached result
test_del_in_reverse() {
	add
	calls ADD a b c
	del
	succeeds
	expect_equal '' "$(cat stdout)"
	calls DEL c b a
	stdin_of c.DEL prevResult "$(result_of c)"
	stdin_of a.DEL prevResult "$(result_of c)"
	has_no "$cache"
	del
	succeeds
	stdin_of c.DEL prevResult ''
}

# DEL below 0.4.0 has no prevResult
test_del_before_040() {
	list_write 0.3.1 '{"type":"a"}'
	instruct a.ADD "echo '{\"cniVersion\":\"0.3.1\"}'; exit 0"
	add
	succeeds
	del
	succeeds
	stdin_of a.DEL prevResult ''
}

# environment_is PLUGIN.COMMAND NAME=VALUE...: the CNI_ variables that the plugin has
environment_is() {
	expect_equal "$(printf '%s\n' "${@:2}" "CNI_CACHE_DIR=$PWD/cni" "CNI_PATH=$PWD/bin" | sort)" \
		"$(cat "env.$1")" "the environment of $1"
}

# the CNI_ variables of ADD
test_environment_of_add() {
	CNI_CONTAINERID=stale add --ifname net7 --args 'A=1;B=2'
	succeeds
	environment_is a.ADD 'CNI_ARGS=A=1;B=2' CNI_COMMAND=ADD CNI_CONTAINERID=c1 CNI_IFNAME=net7 \
		"CNI_NETNS=$netns"
}

# the CNI_ variables of STATUS
test_environment_of_status() {
	CNI_IFNAME=stale of_list status
	succeeds
	environment_is a.STATUS CNI_ARGS= CNI_COMMAND=STATUS CNI_CONTAINERID= CNI_IFNAME= CNI_NETNS=
}

bad_name() {
	add "$@"
	fails 'cnirun: '
	calls
}
row bad_name "container ID with a slash" --id ../c
row bad_name "container ID empty" --id ''
row bad_name "container ID that begins with a dot" --id .c
row bad_name "ifname of 16 bytes" --ifname abcdefghijklmnop
row bad_name "ifname with a slash" --ifname a/b
row bad_name "ifname empty" --ifname ''
row bad_name "ifname .." --ifname ..

# after a failed ADD the whole list gets a DEL
test_failed_add_is_undone() {
	instruct b.ADD "echo '{\"code\":101,\"msg\":\"port 80 is taken\",\"details\":\"by x\"}'" 'exit 1'
	add
	fails 'cnirun: plugin type="b" name="n" failed (add): port 80 is taken; by x'
	calls ADD a b DEL c b a
	stdin_of b.DEL prevResult "$(result_of a)"
	has_no "$cache"
}

# fails_with CODE WORDS: what a plugin is instructed to do
fails_with() { echo "echo '{\"code\":$1,\"msg\":\"$2\"}'; exit 1"; }

# which goes on after an error
test_undoing_goes_on() {
	instruct c.ADD "$(fails_with 7 first)"
	instruct b.DEL "$(fails_with 7 second)"
	add
	fails 'failed (add): first
when cleaning up: plugin type="b" name="n" failed (delete): second'
	calls ADD a b c DEL c b a
}

# a failed ADD leaves an older one as it was
test_failed_add_keeps_older() {
	add
	cp "$cache" before
	calls ADD a b c
	instruct a.ADD "$(fails_with 7 exists)"
	add
	fails exists
	calls ADD a
	cmp before "$cache"
}

# also where the cache of that one is broken
test_failed_add_keeps_unreadable() {
	add
	calls ADD a b c
	echo broken >"$cache"
	instruct a.ADD "$(fails_with 7 exists)"
	add
	fails exists
	says 'was added before'
	calls ADD a
}

# an ADD that cannot print its result is undone
test_unprinted_add_is_undone() {
	# Nobody would know of the attachment.
	ln -s /dev/full stdout
	add
	expect_equal 1 "$status"
	says 'cnirun: cannot write to stdout: No space left on device'
	calls ADD a b c DEL c b a
	stdin_of a.DEL prevResult "$(result_of c)"
	has_no "$cache"
	instruct b.DEL "$(fails_with 5 busy)"
	add
	expect_equal 1 "$status"
	says 'when cleaning up: plugin type="b" name="n" failed (delete): busy'
	has "$cache"
	rm stdout b.DEL
	del
	succeeds
	has_no "$cache"
}

# a failed DEL keeps the cache
test_failed_del_keeps_cache() {
	add
	calls ADD a b c
	instruct b.DEL "$(fails_with 5 busy)"
	del
	fails 'plugin type="b" name="n" failed (delete): busy'
	calls DEL c b
	has "$cache"
}

# a plugin that is missing fails ADD before anything ran
test_missing_plugin() {
	rm bin/c
	add
	fails 'plugin type="c" name="n" failed (add): failed to find plugin "c"'
	calls
}

# a plugin that is missing stops DEL
test_missing_plugin_of_del() {
	add
	calls ADD a b c
	rm bin/b
	del
	fails '(delete): failed to find plugin "b"'
	calls DEL c
}

# the first regular file along CNI_PATH
test_first_file_wins() {
	list_write 1.1.0 '{"type":"a"}'
	mkdir -p 1/a 2
	add --cni-path "$PWD/1:/nonexistent::$PWD/bin"
	succeeds
	echo 'not executable' >2/a
	add --cni-path "$PWD/2:$PWD/bin"
	fails '2/a: Permission denied'
}

# a slash in the type
test_slash_in_type() {
	list_write 1.1.0 '{"type":"../bin/a"}'
	add
	fails 'invalid plugin type "../bin/a"'
	calls
}

# What a, the only plugin, does at ADD, and the result
answer() {
	list_write 1.1.0 '{"type":"a"}'
	instruct a.ADD "$1"
	add
	succeeds
	prints_json "$2"
}
# the same with the failure
bad_answer() {
	list_write 1.1.0 '{"type":"a"}'
	instruct a.ADD "$1"
	add
	fails "$2"
	calls ADD a DEL a
}
row answer "a result without version takes the list's" "echo '{\"x\":1}'; exit 0" \
	'{"x":1,"cniVersion":"1.1.0"}'
row answer "a result with an empty version, too" "echo '{\"cniVersion\":\"\"}'; exit 0" \
	'{"cniVersion":"1.1.0"}'
row answer "null is an empty result" 'echo null; exit 0' '{"cniVersion":"1.1.0"}'
row answer "another supported version is taken" "echo '{\"cniVersion\":\"0.3.1\"}'; exit 0" \
	'{"cniVersion":"0.3.1"}'
row answer "a result's keys, order and integers stay" \
	"echo '{\"z\":9007199254740993,\"cniVersion\":\"1.1.0\",\"a\":[]}'; exit 0" \
	'{"z":9007199254740993,"cniVersion":"1.1.0","a":[]}'
row bad_answer "a result of an unknown version" "echo '{\"cniVersion\":\"2.0.0\"}'; exit 0" \
	'failed (add): its result is of version "2.0.0"'
row bad_answer "an address that is none" \
	"echo '{\"ips\":[{\"address\":\"10.0.0.300/24\"}]}'; exit 0" \
	'cnirun: plugin type="a" name="n" failed (add): its result on stdout: ips[0]: "address" is "10.0.0.300/24"'
row bad_answer "addresses that are no array" "echo '{\"ips\":{}}'; exit 0" \
	'failed (add): its result on stdout: "ips" must be an array, found an object'
row bad_answer "empty stdout" 'exit 0' 'failed (add): succeeded, but with no result'
row bad_answer "stdout that is no JSON" 'echo hello; exit 0' 'failed (add): '
row bad_answer "stdout that is an array" "echo '[]'; exit 0" 'is not an object'
row bad_answer "two results" "echo '{}{}'; exit 0" 'failed (add): '
row bad_answer "failure without a word" 'exit 3' 'failed (add): exit status 3 with no error'
row bad_answer "failure without JSON" 'echo oops; exit 1' 'no CNI error: "oops'
row bad_answer "failure with an empty message" "$(fails_with 7 '')" 'no CNI error: "{"code":7,'
row bad_answer "failure with other JSON" "echo '{\"msg\":1}'; exit 1" 'no CNI error: '
row bad_answer "killed by a signal" 'kill -9 $$' 'failed (add): killed by signal 9'
row bad_answer "stderr is passed through" 'echo why >&2; exit 1' 'why
cnirun: plugin'
row bad_answer "a plugin that writes without end" 'exec cat /dev/zero' 'wrote more than'

# add_hanging FILE CALLS: ADD with a limit of one second for each plugin, or of more where a busy machine
# has not let them make so many calls in that time, and the one that hangs write FILE; $limit in words
add_hanging() {
	for limit in '1 second' '5 seconds' '25 seconds' '125 seconds'; do
		: >calls
		add --timeout "${limit% *}"
		[ ! -s "$1" ] || [ "$(wc -l <calls)" -lt "$2" ] || break
	done
}

# hanging FILE LINE...: what a, the only plugin, does at ADD; of whose number is in the file has ended
# after it
hanging() {
	list_write 1.1.0 '{"type":"a"}'
	instruct a.ADD "${@:2}"
	add_hanging "$1" 2
	fails "cnirun: plugin type=\"a\" name=\"n\" failed (add): did not end within $limit and was killed, with the processes that it had started; --timeout SECONDS gives it more time"
	calls ADD a DEL a
	ended "$1"
	has_no "$cache"
}
row hanging "a plugin that hangs" me 'echo $$ >me; exec sleep 1000'
row hanging "a plugin that closes its stdout and hangs" me 'echo $$ >me; exec sleep 1000 >&-'
row hanging "a plugin that is stopped" me 'echo $$ >me; kill -STOP $$; sleep 1000'
row hanging "a plugin that waits for a child in a session of its own" child \
	"setsid sh -c 'echo \$\$ >child; exec sleep 1000' & wait"
row hanging "a plugin that waits for a grandchild" child \
	"sh -c 'sleep 1000 & echo \$! >child; wait; true'; true"
row hanging "a plugin that writes slowly without end" me "echo \$\$ >me; while echo '{}'; do sleep 0.1; done"

# a process that a plugin leaves behind
test_child_left_behind() {
	# One that ended in time may leave what it wants, and nobody waits for that.
	list_write 1.1.0 '{"type":"a"}'
	instruct a.ADD 'sleep 1000 & echo $! >child'
	add
	succeeds
	prints_json "$(result_of a)"
	says 'bin/a has left a process that keeps its stdout open'
	end_process child
}

# a plugin that hangs, after one that left a helper
test_helper_of_another_plugin() {
	instruct a.ADD 'sleep 200 >&- & echo $! >helper'
	instruct b.ADD 'echo $$ >me; exec sleep 1000'
	add_hanging me 5
	fails "plugin type=\"b\" name=\"n\" failed (add): did not end within $limit"
	calls ADD a b DEL c b a
	ended me
	end_process helper
}

# a plugin that hangs, beside a process that is not cnirun's
test_child_of_before() {
	# A child that cnirun has not started
	before_it=(sh -c 'sleep 200 >/dev/null 2>&1 & echo $! >before; exec "$@"' sh)
	instruct a.ADD 'echo $$ >me; exec sleep 1000'
	add_hanging me 4
	says "did not end within $limit"
	ended me
	end_process before
}

# --timeout 0
test_no_timeout() {
	instruct a.ADD 'sleep 1.2'
	add --timeout 0
	succeeds
}

# SIGCHLD is ignored
test_children_ignored() {
	# cnirun inherits that: the kernel would tell nobody how a plugin ended.
	before_it=(env --ignore-signal=CHLD)
	add
	succeeds
}

# plugin_config_large: more than a pipe holds
plugin_config_large() { list_write 1.1.0 "{\"type\":\"a\",\"big\":\"$(printf '%0300000d' 0)\"}"; }

# streams larger than a pipe
test_large_streams() {
	# Both ways at once: the plugin writes first and then reads.
	plugin_config_large
	cat >bin/a <<-'SH'
	#!/bin/sh
	head -c 300000 /dev/zero | tr '\0' ' '
	cat >stdin.a.ADD
	echo '{}'
	SH
	add
	succeeds
	prints_json '{"cniVersion":"1.1.0"}'
	[ "$(stat -c %s stdin.a.ADD)" -gt 300000 ] || fail "not all of stdin"
}

# a large stdin that is not read
test_stdin_unread() {
	plugin_config_large
	printf '#!/bin/sh\nexec <&-\necho "{}"\n' >bin/a
	add
	succeeds
}

# a terminal does not obey what plugins say
test_terminal_not_driven() {
	# A plugin's words are shown, but a terminal is not driven by them.
	list_write 1.1.0 '{"type":"a"}'
	instruct a.ADD "printf '%s' '{\"code\":7,\"msg\":\"red\\u001b[31m\\nline\",\"details\":\"\\u009b2J\"}'; exit 1"
	add
	fails 'failed (add): red?[31m
line; ??2J'
	instruct a.ADD "printf 'oops \\033]0;title\\007'; exit 1"
	add
	fails 'no CNI error: "oops ?]0;title?"'
	instruct a.VERSION "printf '%s' '{\"supportedVersions\":[\"\\u001b[2J\"]}'; exit 0"
	of_list version
	succeeds
	prints ' ?[2J'
	instruct a.ADD "printf '%s' '{\"interfaces\":[{\"name\":\"\\u009b2J\"}],\"ips\":[]}'; exit 0"
	add
	succeeds
	prints '"name": "\u009B2J"'
}

# a busy file is tried again
test_busy_file() {
	# A file that is being written cannot be executed; here it stays so for 1.5 seconds.
	list_write 1.1.0 '{"type":"a"}'
	(touch busy && sleep 1.5) >>bin/a &
	while [ ! -e busy ]; do sleep 0.01; done
	add
	wait
	succeeds
	calls ADD a
}

# a file that stays busy is an error
test_still_busy_file() {
	list_write 1.1.0 '{"type":"a"}'
	exec 9>>bin/a
	add
	fails 'bin/a: Text file busy'
}

run_all
