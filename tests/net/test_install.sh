# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_install.sh - what a user gets: the two programs, where they are put, what they say of
# themselves, and what they say where they cannot work.

install_make() {
	make -C "$project" --no-print-directory --old-file all DESTDIR=/run/root "$@" >/run/out 2>&1 ||
		fail "make $*: $(cat /run/out)"
}

# both programs are static: they run in a root that holds nothing else; they still have their symbols,
# which a bug report needs
test_install_programs_are_static() {
	local program
	mkdir /run/empty
	cp "$build/bpf-portmap" "$build/cnirun" /run/empty
	output=$(CNI_COMMAND=VERSION chroot /run/empty /bpf-portmap) || fail "$output"
	expect_contains "$output" 1.1.0
	output=$(chroot /run/empty /cnirun --help) || fail "$output"
	expect_contains "$output" CONFLIST
	grep -aq -m 1 command_add "$build/bpf-portmap" || fail "bpf-portmap has no symbol table"
	for program in bpf-portmap cnirun; do
		grep -aq -m 1 '\.symtab' "$build/$program" || fail "$program has no symbol table"
	done
}

# the bill of materials names every library that the programs are linked with, static or shared, and
# has what SPDX requires; the same programs have the same bill, and one that was not built has none
test_install_bill() {
	local static='libbpf elfutils zlib jansson nettle libnl glibc libgcc'
	umount /var/lib # under it is dpkg's, which knows where libraries come from
	[ -d /var/lib/dpkg ] || skip 'no dpkg'
	# libelf of newer distributions has a part of it.
	! readelf -sW "$build/bpf-portmap" | grep -w ZSTD_compressStream2 >/dev/null || static+=' zstd'
	export SOURCE_DATE_EPOCH=0
	"$project/packaging/bill" 1.2.3 "$build/cnirun" "$build/bpf-portmap" >/run/bill || fail 'no bill'
	"$project/tests/packages/bill" /run/bill "$build/cnirun" $static || fail "$(cat /run/bill)"
	"$project/packaging/bill" 1.2.3 "$build/cnirun" "$build/bpf-portmap" | cmp - /run/bill || fail 'another bill'
	! "$project/packaging/bill" 1.2.3 "$build/cnirun" /bin/true 2>/run/err || fail 'a bill for nothing'
	expect_in /run/err 'no /bin/true.inputs'
	[ -x "$build/cni-ipam" ] || return 0
	"$project/packaging/bill" 1.2.3 "$build/cnirun" "$build/cni-ipam" >/run/bill || fail 'no bill of cni-ipam'
	"$project/tests/packages/bill" /run/bill "$build/cnirun" libmicrohttpd jansson nettle glibc || fail "$(cat /run/bill)"
	expect_equal DYNAMIC_LINK "$(jq -r '.relationships[] |
		select(.relatedSpdxElement == "SPDXRef-libmicrohttpd").relationshipType' /run/bill)" 'a shared library'
}

installed() { (cd /run/root && find . -type f | sed 's|^\./||' | sort | xargs); }

# files_for PREFIX CNIDIR: what is put there; cni-ipam is built where libmicrohttpd is
files_for() {
	local ipam='bin/cni-ipam lib/systemd/system/cni-ipam.service lib/systemd/system/cni-ipam.socket
		share/man/man8/cni-ipam.8'
	[ -x "$build/cni-ipam" ] || ipam=
	(
		cd "$project" || exit
		echo "$2/bpf-portmap"
		printf "$1/%s\n" bin/cnirun lib/netavark/bpf-portmap $ipam \
			lib/systemd/system/bpf-portmap{,-load,-metrics}.service lib/systemd/system/bpf-portmap.timer \
			lib/udev/rules.d/90-bpf-portmap.rules \
			lib/{NetworkManager/dispatcher.d,networkd-dispatcher/routable.d}/90-bpf-portmap \
			share/man/man{1/cnirun.1,5/bpf-portmap.conf.5,8/bpf-portmap.8,8/netavark-bpf-portmap.8} \
			share/{bash-completion/completions/bpf-portmap,zsh/site-functions/_bpf-portmap} \
			share/fish/vendor_completions.d/bpf-portmap.fish
		printf "$1/share/doc/bpf-portmap/%s\n" CHANGELOG.md LICENSES/*.txt README.md SECURITY.md \
			$(find conf -type f) docs/*.md
	) | sort | xargs
}

# every licence that a file names comes with its whole text in LICENSES/, and no other; what has no SPDX
# line is covered by REUSE.toml
test_install_licences() {
	local licence
	cd "$project" || fail "no $project"
	grep -rhE -m 1 'SPDX-License-Identifier' Makefile REUSE.toml bpf conf include man tests user vmlinux |
		sed 's/.*SPDX-License-Identifier//' | grep -oE '[A-Za-z][A-Za-z0-9.-]+' |
		grep -vxE 'OR|AND|WITH' | sort -u >/run/named
	(cd LICENSES && ls) | sed 's/\.txt$//' | sort | diff /run/named - || fail "LICENSES/ has others"
	while read -r licence; do
		[ -s "LICENSES/$licence.txt" ] || fail "no text of $licence"
	done </run/named
	expect_in LICENSES/GPL-2.0-only.txt 'END OF TERMS AND CONDITIONS'
	expect_in LICENSES/BSD-2-Clause.txt 'POSSIBILITY OF SUCH DAMAGE'
	expect_in REUSE.toml 'path = ["**"]'
}

# make install puts both programs, their manual pages and documents where CNIDIR and PREFIX say, and
# make uninstall leaves nothing
test_install_and_uninstall() {
	install_make install
	expect_equal "$(files_for usr/local opt/cni/bin)" "$(installed)" "files"
	CNI_COMMAND=VERSION /run/root/opt/cni/bin/bpf-portmap >/run/out || fail "it does not run"
	install_make uninstall
	expect_equal "" "$(installed)" "files after uninstall"
	install_make install PREFIX=/usr CNIDIR=/usr/lib/cni
	expect_equal "$(files_for usr usr/lib/cni)" "$(installed)" "files"
	install_make uninstall PREFIX=/usr CNIDIR=/usr/lib/cni
	expect_equal "" "$(installed)" "files after uninstall"
}

# while make install puts a newer plugin in its place, a runtime can run it at each moment
test_install_again() {
	local caller
	install_make install
	while [ ! -e /run/done ]; do
		CNI_COMMAND=VERSION /run/root/opt/cni/bin/bpf-portmap </dev/null >/dev/null || echo "status $?"
	done >/run/failures 2>&1 &
	caller=$!
	for _ in 1 2; do install_make install; done
	touch /run/done
	wait "$caller"
	expect_equal '' "$(cat /run/failures)" "calls that failed"
}

# both programs tell their version and explain themselves on stdout; a command, an option or an operand that
# bpf-portmap does not know is refused with 64
test_install_help_on_stdout() {
	local arguments version
	version=$(sed -n 's/^VERSION := //p' "$project/Makefile")
	by_hand 0 --version
	expect_equal "bpf-portmap $version" "$(cat /run/out)"
	for arguments in --help -h help; do
		by_hand_says 0 '  repair        attaches what is missing' "$arguments"
		expect_equal "" "$(cat /run/err)" "stderr of $arguments"
		[ "$(wc -l </run/out)" -le 40 ] && [ "$(wc -L </run/out)" -le 80 ] || fail "not one screen"
	done
	for arguments in 'repair --help' 'attach eth0 -h' 'help attach'; do
		by_hand_says 0 'usage: bpf-portmap repair [INTERFACE...]' $arguments
		expect_equal "" "$(cat /run/err)" "stderr of $arguments"
	done
	by_hand_says 0 'usage: bpf-portmap drop-offload' drop-offload --help
	expect_equal "cnirun $version" "$("$cnirun" --version)"
	by_hand 64 lists
	expect_equal 'bpf-portmap: unknown command "lists"; see bpf-portmap --help' "$(cat /run/err)"
	by_hand 64 attach eth0 --verbose
	expect_equal 'bpf-portmap: unknown option --verbose; see bpf-portmap attach --help' "$(cat /run/err)"
	by_hand 64 --verbose
	expect_equal 'bpf-portmap: unknown option --verbose; see bpf-portmap --help' "$(cat /run/err)"
	by_hand 64 drop-offload now
	expect_equal 'bpf-portmap: drop-offload takes no "now"; see bpf-portmap drop-offload --help' "$(cat /run/err)"
	by_hand_warns 64 'unknown command "atach"' help atach
	expect_equal "" "$(cat /run/out)" "stdout"
	by_hand 64 doctor 80x
	by_hand 64 who 80x
	by_hand 64 trace tcp a b
	by_hand 64 trace --port x
	by_hand 64 migrate
}

# what --help names, of verbs and options, the manual pages explain; a wrong verb of cnirun is named
test_install_manual_pages() {
	local verb word
	# To files: grep ends at the first line that matches, and sed would fail for that.
	sed 's/\\-/-/g' "$project/man/cnirun.1" >/run/cnirun.1
	sed 's/\\-/-/g' "$build/man/bpf-portmap.8" >/run/bpf-portmap.8
	"$cnirun" --help >/run/help || fail "--help"
	expect_refusal destroy "$cnirun" destroy
	for verb in add del check gc status version list; do
		expect_in /run/help "$verb"
		"$cnirun" "$verb" --help >/run/out || fail "$verb --help"
		expect_in /run/out "cnirun $verb"
		for word in "$verb" $(grep -o '^  --[a-z-]*' /run/out); do
			grep -qE "^\.[BI]+R? .*$word" /run/cnirun.1 ||
				fail "$word is not in cnirun(1)"
		done
	done
	"$build/bpf-portmap" --help 2>&1 | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' >/run/out
	expect_equal "list who flows stats doctor trace repair upgrade drop-offload install migrate uninstall support" "$(xargs </run/out)" "verbs of bpf-portmap"
	for verb in $(cat /run/out); do
		"$build/bpf-portmap" "$verb" --help >/run/help || fail "$verb --help"
		for word in "$verb" $(grep -o '^  --[a-z-]*' /run/help); do
			grep -qE "^\.[RBI]+ .*$word" /run/bpf-portmap.8 ||
				fail "$word is not in bpf-portmap(8)"
		done
	done
}

# completed WORD...: what bash offers for the last word
completed() {
	COMP_WORDS=(bpf-portmap "$@") COMP_CWORD=$#
	_bpf_portmap
	echo "${COMPREPLY[*]}"
}

# shells complete verbs, their options, and what those may be
test_install_completion() {
	local shell
	for shell in bash zsh fish; do
		! command -v "$shell" >/dev/null || "$shell" -n "$build/completion/$shell" ||
			fail "$shell does not accept it"
	done
	. "$build/completion/bash"
	expect_equal 'list' "$(completed li)"
	expect_equal 'list who flows stats doctor trace repair upgrade drop-offload install migrate uninstall support help --help --version' "$(completed '')"
	expect_equal '--container --count --color' "$(completed flows --co)"
	expect_equal 'syn syn-recv' "$(completed flows --state sy)"
	expect_equal 'syn syn-recv' "$(completed flows --state = sy)"
	expect_equal 'auto always never' "$(completed flows --color =)"
	expect_equal '' "$(completed list --top)"
	expect_equal 'eth0 eth1' "$(completed repair eth)"
}

# maps of another layout: ADD, CHECK and STATUS refuse and say what to do, DEL succeeds so that the
# plugins before us give the address back, nothing is changed, and traffic goes on
test_install_other_layout() {
	container_start web bridge -p 8080:80/tcp
	container_add_plain second
	meta_set 0 63
	local before command
	before=$(state_show)
	for command in ADD CHECK; do
		expect_error 102 'layout 99' plugin_call "$command" second "$(mapping 9090)"
		grep -qE 'use the bpf-portmap [0-9.]+ that made them, or stop all containers' \
			<<<"$output" || fail "$command: $output"
	done
	expect_error 50 '' plugin_call STATUS second 'del(.prevResult) | .cniVersion = "1.1.0"'
	plugin_call DEL second 2>/run/err || fail DEL
	expect_in /run/err 'layout 99'
	expect_same_state "$before"
	expect_answer client tcp "$host4" 8080 web "$client4"
	meta_set 0 "$(sed -n 's/^#define LAYOUT \(.*\)/0\1/p' "$project/include/abi.h")"
	plugin_call ADD second "$(mapping 9090)" >/run/out || fail "$(cat /run/out)"
}

# maps that are not complete, as after a kill while loading, are mended by the next ADD
test_install_incomplete_maps() {
	container_start web bridge -p 8080:80/tcp
	meta_set 4 00
	container_start other bridge -p 9090:80/tcp
	expect_answer client tcp "$host4" 9090 other "$client4"
	expect_answer client tcp "$host4" 8080 web "$client4"
	expect_equal "" "$(programs_show | sort | uniq -d)" "programs attached twice"
}

# places_used NAME: how many places of the table the programs use
places_used() {
	local map
	for map in $(bpftool -j prog show pinned "$pins/from_uplink" | jq '.map_ids[]'); do
		bpftool -j map show id "$map" | jq -e '.name | endswith(".rodata")' >/run/out || continue
		bpftool -j map dump id "$map" |
			jq ".[0].formatted.value[\".rodata\"][] | .$1_places // empty"
	done
}

# entries_of MAP: how many there are
entries_of() { bpftool -j map show pinned "$pins/$1" | jq .max_entries; }

# expect_sizes ASSURED HALF_OPEN WHEN: place 0 is none, and every place has an entry
expect_sizes() {
	local map
	expect_equal "$1" "$(places_used assured)" "assured connections that the programs allow, $3"
	expect_equal $(($1 + 1)) "$(entries_of assured)" "places in assured, $3"
	expect_equal "$2" "$(places_used half_open)" "half-open ones that they allow, $3"
	expect_equal $(($2 + 1)) "$(entries_of half_open)" "places in half_open, $3"
	for map in connections aliases; do
		[ "$(entries_of $map)" -ge $(($1 + $2)) ] || fail "$map has $(entries_of $map) entries, $3"
	done
}

# nothing is loaded
# the programs use the whole of the table that the list asks for, also those that come later to it
test_install_table_size() {
	local offset
	conflist sized bridge "$(with_ours '{flowEntries: 131073}')"
	container_start web sized -p 8080:80/tcp
	expect_sizes 262144 65536 "at first"
	for offset in 32 34 36; do meta_set "$offset" 30; done
	container_start other bridge -p 9090:80/tcp
	expect_sizes 262144 65536 "after an upgrade by another list"
}
