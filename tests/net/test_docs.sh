# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016 # the world's names: world.sh; backquotes of Markdown
#
# test_docs.sh - what README.md and docs/ say: the commands in them are run (docs.sh), and what they
# name is there.

# shellcheck source=tests/net/docs.sh
. "$here/docs.sh"

# docs/getting-started.md: its commands do what it says
test_docs_getting_started() { docs_page getting-started; }

# docs/migrating.md: its commands do what it says
test_docs_migrating() { docs_page migrating; }

# docs/firewalls.md: its commands do what it says
test_docs_firewalls() { docs_page firewalls; }

# docs/host-access.md: its commands do what it says
test_docs_host_access() { docs_page host-access; }

# docs/masquerade.md: its commands do what it says
test_docs_masquerade() { docs_page masquerade; }

# docs/interfaces.md: its commands do what it says
test_docs_interfaces() { docs_page interfaces; }

# docs/fast-path.md: its commands do what it says
test_docs_fast_path() { docs_page fast-path; }

# docs/connections.md: its commands do what it says
test_docs_connections() { docs_page connections; }

# docs/monitoring.md: its commands do what it says
test_docs_monitoring() { docs_page monitoring; }

# docs/troubleshooting.md: its commands do what it says
test_docs_troubleshooting() { docs_page troubleshooting; }

# docs/upgrading.md: its commands do what it says
test_docs_upgrading() { docs_page upgrading; }

# docs/kubernetes.md: its commands do what it says
test_docs_kubernetes() { docs_page kubernetes; }

# docs/packaging.md: its commands do what it says
test_docs_packaging() { docs_page packaging; }

# docs/security.md: its commands do what it says
test_docs_security() { docs_page security; }

# docs/internals.md: every file of bpf/ is in its table, behind what it includes
test_docs_table_of_bpf() {
	local file included
	sed -n '/^### bpf/,/^### user/s/.*| \(`.*`\) |$/\1/p' "$project/docs/internals.md" |
		grep -o '[a-z0-9_.]*\.[ch]' >/run/order
	(cd "$project/bpf" && ls) | sort >/run/files
	sort /run/order | diff /run/files - || fail "the table does not name each file once"
	while read -r file; do
		echo "$file" >>/run/before
		sed -n 's/^#include "\(.*\)"/\1/p' "$project/bpf/$file" | grep -xFf /run/files >/run/included || continue
		while read -r included; do
			grep -qxF "$included" /run/before || fail "$file includes $included, which stands behind it"
		done </run/included
	done </run/order
}

# every page of docs/ with commands that are marked as run is a test here, and every page is in README
test_docs_pages_are_complete() {
	local page name
	for page in "$project"/docs/*.md; do
		name=${page##*/}
		grep -qF "(docs/$name)" "$project/README.md" || fail "README.md does not name docs/$name"
		[ -z "$(docs_commands "$page")" ] || expect_contains \
			"$(declare -f "test_docs_$(tr - _ <<<"${name%.md}")")" "docs_page ${name%.md}"
	done
}

# anchors FILE: those of its headings, as GitHub makes them
anchors() {
	sed -n '/^```/,/^```$/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
		sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# every link to a file of this project leads to one, and to a heading that it has
test_docs_links() {
	local file link target anchor
	cd "$project" || fail "no $project"
	for file in ./*.md docs/*.md tests/README.md tests/*/README.md; do
		while read -r link; do
			case $link in http*) continue ;; esac
			target=${link%%#*} anchor=${link#*#}
			target=${file%/*}/$target
			[ "${link:0:1}" != '#' ] || target=$file
			[ -e "$target" ] || fail "$file: there is no $link"
			[ "$anchor" = "$link" ] || anchors "$target" | grep -qxF "$anchor" ||
				fail "$file: $target has no heading #$anchor"
		done < <(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//')
	done
}

# every counter and every map that the pages name exists
test_docs_names_exist() {
	local name
	cd "$project" || fail "no $project"
	while read -r name; do
		grep -q "X($name," include/counters.h || fail "there is no counter $name"
	done < <(grep -ohE '`(drop|flow|fast|local|rewritten|fragment|forwarding)_[a-z0-9_]+`' README.md docs/*.md |
		tr -d '`' | sort -u)
	while read -r name; do
		grep -qE "^[A-Z_]+_OF\(${name##*/}," bpf/maps.h || fail "there is no map $name"
	done < <(grep -ohE '/sys/fs/bpf/bpf-portmap/[a-z_]+' ./*.md docs/*.md man/* | sort -u)
}

# every option of a conflist that a page shows is one that the plugin reads
test_docs_conflists() {
	local file number=0 entry
	cd "$project" || fail "no $project"
	for file in README.md docs/*.md; do
		awk '/^```json$/ { inside = 1; next } /^```$/ { if (inside) printf "\036"; inside = 0 } inside' "$file" >/run/blocks
		while IFS= read -r -d $'\036' entry; do
			number=$((number + 1))
			jq '(.plugins // [.])[] | select(.type == "bpf-portmap") |
				. + {cniVersion: "1.1.0", name: "test"}' <<<"$entry" >/run/entry ||
				fail "$file: not JSON: $entry"
			[ -s /run/entry ] || fail "$file: without bpf-portmap: $entry"
			CNI_COMMAND=STATUS "$build/bpf-portmap" </run/entry >/run/out 2>&1 ||
				fail "$file: $(cat /run/out): $entry"
		done </run/blocks
	done
	[ "$number" -gt 0 ] || fail "no page shows a conflist"
}

# the runner fails a page whose command fails, succeeds though it should not, or says something else
test_docs_runner() {
	local text
	docs_world
	for text in '$ false' '$ true # fails' $'$ echo one\ntwo' $'$ echo one two\none' $'$ echo "a*b"\naxb' \
		'client$ false' $'$ echo one\none\n$ false' $'$ printf "one\\n> two\\n"\ntwo'; do
		printf '```console run\n%s\n```\n' "$text" >/run/page.md
		! (docs_run_file /run/page.md) 2>/run/err || fail "should have failed: $text"
	done
	printf 'no command\n' >/run/page.md
	! (docs_run_file /run/page.md) 2>/run/err || fail "a page without commands"
	for text in $'$ echo one two three\none...three' $'$ x=1\n$ echo "$x"\n1' $'$ echo one two\none\ntwo' \
		$'client$ ip -o -4 address show eth0\n...192.0.2.10/24...' $'$ echo one |\n>   cat\none' '$ false # fails'; do
		printf '```console run\n%s\n```\n' "$text" >/run/page.md
		docs_run_file /run/page.md
	done
}
