#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck disable=SC2016,SC2028,SC2119,SC2120,SC2317 # tests are called by their names
# cnirun_verbs_test.sh - what cnirun is asked for: its options, the cache of ADD's results, and the
# verbs that read it.

# shellcheck source=tests/unit/cnirun.sh
. "$(dirname "$0")/cnirun.sh"

portmappings='{"type":"a","capabilities":{"portMappings":true}}'

# -p goes to who declares it
test_capabilities_given() {
	list_write 1.1.0 '{"type":"a"},{"type":"b","capabilities":{"portMappings":true}}'
	add -p 8080:80 -p '[::1]:53:53/udp'
	succeeds
	stdin_of a.ADD runtimeConfig ''
	stdin_of b.ADD runtimeConfig '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"},{"hostPort":53,"containerPort":53,"protocol":"udp","hostIP":"::1"}]}'
}

# -p that nobody declares
test_capability_undeclared() {
	add -p 8080:80
	fails 'declares the capability "portMappings"'
	calls
}

# cnitool's variables
test_capabilities_of_cnitool() {
	list_write 1.1.0 '{"type":"a","capabilities":{"mac":true,"ips":true}}'
	CAP_ARGS='{"mac":"00:11","ips":[1],"undeclared":1}' CNI_ARGS=K=V CNI_IFNAME=net0 \
		add --capability 'ips=[2]'
	succeeds
	stdin_of a.ADD runtimeConfig '{"mac":"00:11","ips":[2]}'
	told a.ADD CNI_ARGS=K=V
	told a.ADD CNI_IFNAME=net0
}

# arguments from the cache when not given
test_from_cache_when_not_given() {
	list_write 1.1.0 "$portmappings"
	add -p 8080:80 --args A=1
	succeeds
	check
	succeeds
	told a.CHECK CNI_ARGS=A=1
	del
	succeeds
	stdin_of a.DEL runtimeConfig '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'
	told a.DEL CNI_ARGS=A=1
}

# given arguments beat the cache
test_given_beats_cache() {
	list_write 1.1.0 "$portmappings"
	add -p 8080:80 --args A=1
	del --capability 'portMappings=[]' --args B=2
	succeeds
	stdin_of a.DEL runtimeConfig '{"portMappings":[]}'
	told a.DEL CNI_ARGS=B=2
}

# DEL without netns
test_del_without_netns() {
	add
	of_list del '' --id c1
	succeeds
	told a.DEL "CNI_NETNS=$netns"
	of_list del ''
	fails --id
}

# ADD without netns
test_add_without_netns() {
	of_list add no-such-netns
	fails 'no network namespace /run/netns/no-such-netns'
	of_list add '' --id c1
	fails 'NETNS is empty'
	calls
}

# a corrupt cache: DEL goes on, CHECK fails
test_corrupt_cache() {
	add
	echo '{"kind":"cniCacheV1"' >"$cache"
	check
	fails "$cache"
	del
	succeeds
	stdin_of a.DEL prevResult ''
	has_no "$cache"
}

# a cache of the old format
test_old_cache() {
	add
	echo '{"cniVersion":"1.1.0","old":true}' >"$cache"
	del
	succeeds
	stdin_of a.DEL prevResult '{"cniVersion":"1.1.0","old":true}'
}

# a result that is none: DEL goes on, CHECK fails
test_invalid_cached_result() {
	# libcni reads it into its types, and goes on without what does not fit.
	add
	echo '{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2"}]}' >"$cache"
	check
	fails "$cache"': ips[0]: "address" is "10.0.0.2"'
	del
	succeeds
	says 'going on without the cached result: '
	stdin_of a.DEL prevResult ''
}

# a terminal does not obey what the cache says
test_list_is_clean() {
	add
	echo '{"kind":"cniCacheV1","networkName":"n","containerId":"c1","ifName":"eth0","netns":"/a\n\u001b[2Jb"}' >"$cache"
	of_list list
	succeeds
	prints '"/a\n\u001B[2Jb"'
}

# a cache of another version
test_cache_of_another_version() {
	# The list was rewritten since: the cached result is given as one of its new version.
	list_write 0.4.0 '{"type":"a"}'
	instruct a.ADD "echo '{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.2/24\"}]}'; exit 0"
	add
	succeeds
	list_write 1.0.0 '{"type":"a"}'
	del
	succeeds
	stdin_of a.DEL prevResult '{"cniVersion":"1.0.0","ips":[{"version":"4","address":"10.0.0.2/24"}]}'
}

# a cache of a version before 0.3.0
test_cache_of_another_shape() {
	# Their results have another shape.
	list_write 0.2.0 '{"type":"a"}'
	instruct a.ADD "echo '{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.0.0.2/24\"}}'; exit 0"
	add
	succeeds
	list_write 1.0.0 '{"type":"a"}'
	check
	fails "$cache"': the result is of version "0.2.0", and the list of "1.0.0"'
	del
	succeeds
	says 'going on without the cached result: '
	stdin_of a.DEL prevResult ''
}

# a cache of another attachment
test_cache_of_another_attachment() {
	add
	calls ADD a b c
	echo "{\"name\":\"n-c1\",\"cniVersion\":\"1.1.0\",\"plugins\":[$three]}" >n.conflist
	of_list add "$netns" --id eth0 --ifname x
	succeeds
	mv "$cache" cni/results/n-c1-d-eth0
	: >calls
	of_list add "$netns" --id d
	fails 'choose another container ID'
	calls
	of_list del "$netns" --id d
	succeeds
	has cni/results/n-c1-d-eth0
}

gone() { echo "echo '{\"code\":7,\"msg\":\"$1\"}'; exit 1"; }

# CHECK in ADD's order with the final result
test_check_in_order() {
	add
	calls ADD a b c
	check
	succeeds
	expect_equal '' "$(cat stdout)"
	calls CHECK a b c
	stdin_of a.CHECK prevResult "$(result_of c)"
	instruct b.CHECK "$(gone gone)"
	check
	fails 'plugin type="b" name="n" failed (check): gone'
	calls CHECK a b
}

# CHECK below 0.4.0
test_check_too_old() {
	list_write 0.3.1 "$three"
	check
	fails 'does not support the CHECK command'
}

# disableCheck
test_check_disabled() {
	list_write 1.1.0 "$three" '"disableCheck":true,'
	check
	succeeds
	calls
}

# CHECK of what was never added
test_check_never_added() {
	instruct b.CHECK "$(gone 'no prevResult')"
	check
	fails 'plugin type="b" name="n" failed (check): no prevResult'
	calls CHECK a b
	stdin_of a.CHECK prevResult ''
}

# added ID...: attachments whose netns is a link of ours, which can be removed. The calls are forgotten.
added() {
	local id
	for id; do
		ln -s "$netns" "$id"
		of_list add "$PWD/$id" --id "$id" --args A=1
		succeeds
	done
	: >calls
}

# GC: stale ones get a DEL, then plugins a GC
test_gc_deletes_stale() {
	added live stale
	rm stale
	of_list gc
	succeeds
	expect_equal '' "$(cat stdout)"
	calls DEL c b a GC a b c
	told a.DEL CNI_CONTAINERID=stale
	told a.DEL CNI_ARGS=A=1
	told a.DEL "CNI_NETNS=$PWD/stale"
	stdin_of a.DEL prevResult "$(result_of c)"
	stdin_of c.GC cni.dev/valid-attachments '[{"containerID":"live","ifname":"eth0"}]'
	stdin_of c.GC cni.dev/attachments '[{"containerID":"live","ifname":"eth0"}]'
	has_no cni/results/n-stale-eth0
	has cni/results/n-live-eth0
}

# gc of a file that was a namespace
test_gc_of_plain_file() {
	# `umount` leaves the file that the namespace was mounted at.
	added live stale
	rm stale
	touch stale
	of_list gc
	succeeds
	calls DEL c b a GC a b c
	told a.DEL CNI_CONTAINERID=stale
	told a.DEL CNI_NETNS=
	has_no cni/results/n-stale-eth0
	has cni/results/n-live-eth0
}

# GC below 1.1.0: only DEL
test_gc_before_110() {
	list_write 1.0.0 '{"type":"a"}'
	added stale
	rm stale
	of_list gc
	succeeds
	calls DEL a
}

# disableGC
test_gc_disabled() {
	list_write 1.1.0 "$three" '"disableGC":true,'
	of_list gc
	succeeds
	calls
}

# GC goes on and reports all
test_gc_goes_on() {
	instruct c.DEL "$(gone first)"
	instruct a.GC "$(gone second)"
	added stale
	rm stale
	of_list gc
	fails 'failed (delete): first
'
	fails 'failed (gc): second'
	calls DEL c GC a b c
}

# GC beside files that cannot be read
test_gc_beside_unreadable() {
	# Of whom such files are is not known: the plugins are told to keep all that they may be of.
	added live stale
	rm stale
	echo broken >cni/results/n-a-b-eth0
	echo '{"cniVersion":"1.1.0"}' >cni/results/n-old-eth0
	echo 'no container has this ID' >cni/results/n-..-eth0
	mkfifo cni/results/n-pipe-eth0
	of_list gc
	succeeds
	calls DEL c b a GC a b c
	has_no cni/results/n-stale-eth0
	stdin_of a.GC cni.dev/valid-attachments '[{"containerID":"live","ifname":"eth0"},{"containerID":"a","ifname":"b-eth0"},{"containerID":"a-b","ifname":"eth0"},{"containerID":"old","ifname":"eth0"},{"containerID":"pipe","ifname":"eth0"}]'
	says 'n-a-b-eth0 cannot be used: '
	says 'n-old-eth0 cannot be used: '
	says 'n-pipe-eth0 is no regular file'
}

# GC of a netns whose path is relative
test_gc_of_relative_netns() {
	# Such a path is gone or not by where cnirun was called.
	added live
	echo '{"kind":"cniCacheV1","networkName":"n","containerId":"live","ifName":"eth0","netns":"run/netns/live"}' >cni/results/n-live-eth0
	of_list gc
	succeeds
	calls GC a b c
	stdin_of a.GC cni.dev/attachments '[{"containerID":"live","ifname":"eth0"}]'
}

# GC beside a file that tells of another container
test_gc_of_wrong_name() {
	# One that tells of another container than its name would have that one deleted.
	added live
	echo '{"kind":"cniCacheV1","networkName":"n","containerId":"live","ifName":"eth0","netns":"/nonexistent"}' >cni/results/n-liar-eth0
	of_list gc
	succeeds
	calls GC a b c
	has cni/results/n-live-eth0
	says 'n-liar-eth0 cannot be used: '
}

# pipes and devices in the cache
test_cache_of_special_files() {
	# Reading them would wait, or never end.
	add
	mkfifo cni/results/n-pipe-eth0
	ln -s /dev/zero cni/results/n-zero-eth0
	of_list list
	succeeds
	prints '"containerId": "c1"'
	says 'n-pipe-eth0 is no regular file'
	says 'n-zero-eth0 is no regular file'
	of_list check "$netns" --id pipe
	fails 'n-pipe-eth0 is no regular file'
	of_list add "$netns" --id zero
	succeeds
	of_list del "$netns" --id pipe
	succeeds
	has_no cni/results/n-pipe-eth0
}

# names that are too long for a file of the cache: ADD is undone and says so, DEL has no file to remove
test_names_too_long() {
	local network id
	network=$(printf 'n%.0s' {1..200})
	id=$(printf 'c%.0s' {1..64})
	echo "{\"cniVersion\":\"1.1.0\",\"name\":\"$network\",\"plugins\":[$three]}" >n.conflist
	of_list add "$netns" --id "$id"
	fails "cannot write $PWD/cni/results/$network-$id-eth0: File name too long"
	calls ADD a b c DEL c b a
	of_list del "$netns" --id "$id"
	succeeds
	expect_equal '' "$(cat stderr)" "on stderr"
	calls DEL c b a
}

# a list from a pipe
test_list_from_pipe() {
	# What the command line names need be no file.
	run status <(cat n.conflist)
	succeeds
	calls STATUS a b c
}

# pipes among the lists
test_pipe_among_lists() {
	mkfifo a.conflist
	NETCONFPATH=$PWD run status n
	fails 'a.conflist is no regular file'
}

# STATUS stops at the first error
test_status_asks_all() {
	of_list status
	succeeds
	calls STATUS a b c
	instruct b.STATUS "echo '{\"code\":50,\"msg\":\"no BPF\"}'; exit 1"
	of_list status
	fails 'plugin type="b" name="n" failed (status): no BPF'
	calls STATUS a b
}

# STATUS below 1.1.0 asks nobody
test_status_before_110() {
	list_write 1.0.0 "$three"
	of_list status
	succeeds
	calls
	expect_equal 'cnirun: warning: conflist "n" has cniVersion 1.0.0: plugins cannot be asked (1.1.0 needed)' \
		"$(cat stderr)"
	echo "{\"name\":\"n\",\"plugins\":[$three]}" >n.conflist
	of_list status
	succeeds
	says 'conflist "n" has no cniVersion: '
}

# VERSION of each plugin
test_version_table() {
	list_write 0.4.0 '{"type":"a"},{"type":"b"}'
	instruct b.VERSION "echo '{\"supportedVersions\":[\"0.1.0\"]}'; exit 0"
	of_list version
	succeeds
	expect_equal 'PLUGIN               0.4.0   VERSIONS
a                    yes     0.4.0 1.0.0
b                    no      0.1.0' "$(cat stdout)"
	told a.VERSION CNI_NETNS=dummy
	stdin_of a.VERSION cniVersion '"1.1.0"'
}

# VERSION goes on after a bad answer
test_version_goes_on() {
	instruct a.VERSION 'echo hello; exit 0'
	instruct b.VERSION "echo '{\"supportedVersions\":\"1.0.0\"}'; exit 0"
	of_list version
	expect_equal 1 "$status"
	expect_equal 'PLUGIN               1.1.0   VERSIONS
a                    ?
b                    ?
c                    no      0.4.0 1.0.0' "$(cat stdout)"
	says 'cnirun: plugin type="a" name="n" failed (version): its answer on stdout is not valid JSON'
	says '
plugin type="b" name="n" failed (version): "supportedVersions" must be an array'
}

# list
test_list_of_cache() {
	list_write 1.1.0 "$portmappings"
	instruct a.ADD "echo '{\"ips\":[{\"address\":\"10.0.0.2/24\"}]}'; exit 0"
	add -p 127.0.0.1:8080:80 -p '[::1]:9:9/udp'
	of_list list
	succeeds
	expect_equal "[\"c1\",\"$netns\",[\"10.0.0.2/24\"],[8080,9],null]" "$(jq -c \
		'.[0] | [.containerId, .netns, [.result.ips[].address],
		[.capabilityArgs.portMappings[].hostPort], .config]' stdout)"
}

# refused WORDS ARGUMENT...: with these words; LIST stands for the list
refused() {
	local words=$1
	shift
	run "${@/#%LIST/$PWD/n.conflist}"
	fails "$words"
	calls
}
row refused "an unknown verb" 'unknown verb "ad"' ad
row refused "a verb in capitals" 'unknown verb "ADD"' ADD LIST $netns
row refused "no list" 'missing operand: CONFLIST' add
row refused "no netns" 'missing operand: NETNS' add LIST
row refused "too many operands" 'one operand too many' gc LIST $netns
row refused "an unknown option" 'unknown option --foo' add LIST $netns --foo
row refused "an unknown letter" 'unknown option -x;' add LIST $netns -x
row refused "an unknown letter among others" 'unknown option -x;' add -xp
row refused "a byte that is no letter" 'unknown option -?;' add $'-\xff'
row refused "another verb's option" 'unknown option -p;' gc LIST -p 80:80
row refused "another verb's long option" 'unknown option --publish;' gc LIST --publish 80:80
row refused "an option without value" 'no value after --id' add LIST $netns --id
row refused "a letter without value" 'no value after -p;' add LIST $netns -p
row refused "a bad -p" 'invalid -p "0:80"' add LIST $netns -p 0:80
row refused "a bad --args" 'CNI_ARGS pair "A"' add LIST $netns --args A
row refused "a --capability without value" NAME=JSON add LIST $netns --capability x
row refused "a --capability that is no JSON" 'invalid --capability' add LIST $netns --capability 'x={'
row refused "a --timeout that is no number" 'invalid --timeout "1s"' add LIST $netns --timeout 1s
row refused "a --timeout below 0" 'invalid --timeout "-1"' add LIST $netns --timeout -1
row refused "an empty --timeout" 'invalid --timeout ""' gc LIST --timeout ''
row refused "a --timeout of seven digits" 'invalid --timeout "1000000"' gc LIST --timeout 1000000
row refused "a list that does not exist" /nonexistent.conflist gc /nonexistent.conflist

# -p beside --capability portMappings
test_both_ways_of_ports() {
	add -p 80:80 --capability 'portMappings=[]'
	fails 'both -p and --capability portMappings'
}

# --help of each verb
test_help_of_verbs() {
	local verb summary
	run --help
	succeeds
	sed -n 's/^  \([a-z]*\)  *CONFLIST\( NETNS\)\{0,1\}  *\(.*\)/\1 \3/p' stdout >verbs
	expect_equal 7 "$(wc -l <verbs)" "verbs"
	while read -r verb summary; do
		run "$verb" --help
		succeeds
		prints "$summary"
		case $verb in
		add | del | check) prints --publish ;;
		*) ! grep -- --publish stdout || fail "--publish of $verb" ;;
		esac
	done <verbs
}

run_all
