# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2016 # the world's names: world.sh; backquotes of Markdown
#
# test_docs.sh - what README.md and docs/ say: the commands in them are run (docs.sh), and what they
# name is there.
#
# nothing is loaded before these tests

# shellcheck source=tests/net/docs.sh
. "$here/docs.sh"

# docs/getting-started.md: its commands do what it says
test_docs_getting_started() { docs_page getting-started; }

# docs/migrating.md: its commands do what it says
test_docs_migrating() { docs_page migrating; }

# limit 120 s
# docs/podman.md: its commands do what it says, with Podman 5
test_docs_podman() {
	local folder=$project/tests/engines
	# shellcheck source=tests/engines/test_podman.sh
	. "$folder/test_podman.sh"
	podman_world 5
	sed -i '/^network_config_dir\|^netavark_plugin_dirs/d' "$CONTAINERS_CONF"
	mkdir "$rootfs/www"
	echo hello >"$rootfs/www/index.html"
	tar -C "$rootfs" -c . | command podman --root /run/podman/storage --runroot /run/podman/run \
		--storage-driver vfs import --change 'CMD ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"]' \
		- nginx >/run/out 2>&1 || fail "$(cat /run/out)"
	docs_page podman
}

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

# docs/installing.md: its commands do what it says
test_docs_installing() { docs_page installing; }

# docs/k3s.md: its commands do what it says
test_docs_k3s() { docs_page k3s; }

# docs/packaging.md: its commands do what it says
test_docs_packaging() { docs_page packaging; }

# docs/security.md: its commands do what it says
test_docs_security() { docs_page security; }

# docs/docker.md: its commands do what it says, with the real Docker
# limit 120 s
test_docs_docker() {
	# shellcheck source=tests/engines/engine.sh
	. "$project/tests/engines/engine.sh"
	# shellcheck source=tests/engines/docker.sh
	. "$project/tests/engines/docker.sh"
	# shellcheck source=tests/net/ipam.sh
	. "$here/ipam.sh"
	ipam_conflists=/etc/cni/net.d
	ipam_start --cni-path /run/cni-plugins
	docker_world
	docker_image nginx
	docs_page docker
}

# docs/internals.md: every file of bpf/ is in its table, once, behind what it includes
expect_table_of_bpf() {
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

# A page with commands that are marked as run is a test here, and every page is in README.
expect_all_pages() {
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

# A link to a file of this project leads to one, and to a heading that it has.
expect_links() {
	local file link target anchor
	cd "$project" || fail "no $project"
	for file in ./*.md docs/*.md tests/README.md tests/*/README.md; do
		grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//' >/run/links || continue
		while read -r link; do
			case $link in http*) continue ;; esac
			target=${link%%#*} anchor=${link#*#}
			target=${file%/*}/$target
			[ "${link:0:1}" != '#' ] || target=$file
			[ -e "$target" ] || fail "$file: there is no $link"
			[ "$anchor" != "$link" ] || continue
			anchors "$target" >/run/anchors
			grep -qxF "$anchor" /run/anchors || fail "$file: $target has no heading #$anchor"
		done </run/links
	done
}

# Counters and maps that the pages name
expect_names() {
	local name
	cd "$project" || fail "no $project"
	grep -ohE '`(drop|flow|fast|local|rewritten|fragment|forwarding)_[a-z0-9_]+`' README.md docs/*.md |
		tr -d '`' | sort -u >/run/names
	while read -r name; do
		grep -q "X($name," include/counters.h || fail "there is no counter $name"
	done </run/names
	grep -ohE '/sys/fs/bpf/bpf-portmap/[a-z_]+' ./*.md docs/*.md man/* | sort -u >/run/names
	while read -r name; do
		grep -qE "^[A-Z_]+_OF\(${name##*/}," bpf/maps.h || fail "there is no map $name"
	done </run/names
}

# what the pages name is there: pages, links and their headings, counters, maps, the files of bpf/ in
# the order of their includes
test_docs_names() {
	expect_all_pages
	expect_links
	expect_names
	expect_table_of_bpf
}

# every conflist that a page shows is JSON that the plugin accepts, with options of its manual page
test_docs_conflists() {
	local file number=0 entry key
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
			for key in $(jq -r 'del(.type, .cniVersion, .name) | keys[]' /run/entry); do
				grep -qwF "$key" man/bpf-portmap.conf.5.in || fail "$file: $key is no option"
			done
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
