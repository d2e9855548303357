# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_docs.sh - what README.md and docs/ say: the commands in them are run (docs.sh), and what they
# name is there.

. "$here/docs.sh"

# docs/getting-started.md: its commands do what it says
test_docs_getting_started() { docs_page getting-started getting_started_prepare; }
getting_started_prepare() { PATH=${PATH/:\/opt\/cni\/bin/}; } # the page says how to find the plugin

# docs/migrating.md: its commands do what it says
test_docs_migrating() {
	docs_page migrating migrating_prepare
	# What the page says of a new container that claims a port which portmap has
	ip netns add second
	ip netns add third
	cnirun add old second --id second -p 8090:80 >/dev/null
	cnirun add bridge third -p 8090:80 >/dev/null 2>/run/err || fail "$(cat /run/err)"
	expect_contains "$(docs_flat "$(cat /run/err)")" 'host port 8090/tcp is mapped to 10.87.0.3:80 by a rule in chain'
}
migrating_prepare() {
	docs_container unused
	jq '.name = "old" | .plugins[0].bridge = "cni1" | .plugins[0].ipam.ranges =
		[[{"subnet":"10.87.0.0/16"}]] | .plugins[0].ipMasq = true | .plugins[0].ipam.routes |= .[:1] |
		.plugins[1] = {type: "portmap", capabilities: {portMappings: true}}' \
		conf/bridge.conflist >/etc/cni/net.d/old.conflist
	ip netns add first
	cnirun add old first --id first -p 8080:80 >/dev/null
	docs_web_server first
	expect_equal 'hello from first' "$(in_namespace client curl -sS http://192.0.2.1:8080/)" 'by portmap'
	conversation_open talk client tcp 192.0.2.1 8080 >/dev/null
	wait_until 5 eval 'conntrack -L 2>/dev/null | grep ESTABLISHED >/dev/null'
}

# limit 120 s
# docs/podman.md: its commands do what it says, with Podman 5
test_docs_podman() {
	local folder=$project/tests/engines
	. "$folder/test_podman.sh"
	podman_world 5
	sed -i '/^network_config_dir\|^netavark_plugin_dirs/d' "$CONTAINERS_CONF"
	mkdir "$rootfs/www"
	echo hello >"$rootfs/www/index.html"
	tar -C "$rootfs" -c . | command podman --root /run/podman/storage --runroot /run/podman/run \
		--storage-driver vfs import --change 'CMD ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"]' \
		- nginx >/run/out 2>&1 || fail "$(cat /run/out)"
	docs_page podman make install
}

# docs/firewalls.md: its commands do what it says
test_docs_firewalls() { docs_page firewalls firewalls_prepare; }
firewalls_prepare() {
	docs_container web -p 8080:80
	nft add table inet filter
	nft 'add chain inet filter forward { type filter hook forward priority filter; }'
}

# docs/interfaces.md: its commands do what it says
test_docs_interfaces() { docs_page interfaces interfaces_prepare; }
interfaces_prepare() {
	docs_container web -p 8080:80
	ip link add eth2 type veth peer name eth9 netns server
}

# docs/connections.md: its commands do what it says
test_docs_connections() { docs_page connections connections_prepare; }
connections_prepare() {
	docs_container web -p 8080:80
	docs_web_server server 9000
}

# docs/port-does-not-answer.md: its commands do what it says
test_docs_port_does_not_answer() { docs_page port-does-not-answer port_prepare; }
port_prepare() {
	docs_container_of_pod
	bpf-portmap doctor 8080 >/run/out || fail "$(cat /run/out)"
	nft 'add table inet filter; add chain inet filter forward { type filter hook forward priority 0; policy drop; }'
}

# nothing is loaded
# docs/monitoring.md: its commands do what it says
test_docs_monitoring() { docs_page monitoring monitoring_prepare; }
monitoring_prepare() {
	docs_container_of_pod
	in_namespace client curl --local-port 51514 http://192.0.2.1:8080/ >/dev/null
}

# docs/upgrading.md: its commands do what it says
test_docs_upgrading() { docs_page upgrading upgrading_prepare; }
upgrading_prepare() {
	local offset
	docs_container web -p 8080:80
	. "$here/test_install.sh"
	for offset in 32 34 36; do meta_set $offset 30; done
}

# docs/kubernetes.md: its commands do what it says
test_docs_kubernetes() { docs_page kubernetes kubernetes_prepare; }
kubernetes_prepare() {
	docs_container unused
	ip netns add pod
	ip netns add other
}

# docs/installing.md: its commands do what it says
test_docs_installing() { docs_page installing installing_prepare; }
installing_prepare() {
	mkdir -p /opt/cni/bin
	cp -L /usr/lib/cni/{bridge,host-local,portmap} /opt/cni/bin/
	jq '.name = "bridge" | .plugins[1] = {"type": "portmap", "capabilities": {"portMappings": true}}' \
		conf/bridge.conflist >/etc/cni/net.d/10-bridge.conflist
	PATH=$build:$PATH
}

# packaging/README.md: its commands do what it says
test_docs_packaging() {
	docs_world
	docs_run_file packaging/README.md
}

# docs/security.md: its commands do what it says
test_docs_security() { docs_page security docs_container web -p 8080:80; }

# docs/docker.md: its commands do what it says, with the real Docker
# limit 120 s
test_docs_docker() {
	. "$project/tests/engines/engine.sh"
	. "$project/tests/engines/docker.sh"
	. "$here/ipam.sh"
	ipam_conflists=/etc/cni/net.d
	ipam_start --cni-path /run/cni-plugins
	docker_world
	docker_image nginx
	docs_page docker docs_container cni
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
	for file in ./*.md docs/*.md packaging/README.md tests/README.md tests/*/README.md; do
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

# The Makefile decides which version this is; others name it.
expect_version() {
	local version file
	cd "$project" || fail "no $project"
	version=$(sed -n 's/^VERSION := //p' Makefile)
	expect_contains "$(sed -n 1p debian/changelog)" "($version-1)"
	expect_in packaging/bpf-portmap.spec "Version:        $version"
	expect_in conf/kubernetes/base/kustomization.yaml "newTag: $version"
	expect_contains "$(grep -m 1 '^## ' CHANGELOG.md)" "## [$version]"
	expect_contains "$("$build/bpf-portmap" --version)" "$version"
	for file in README.md docs/*.md packaging/README.md; do
		! grep -oE 'bpf-portmap:[0-9][0-9.]*' "$file" | grep -vFx "bpf-portmap:$version" ||
			fail "$file names an image of another version"
	done
}

# What .github/ runs is in the Makefile.
expect_targets() {
	local target
	cd "$project" || fail "no $project"
	sed -n 's/.*target: \[\(.*\)\]$/\1/p; s/.*- run: make \([a-z].*\)/\1/p' .github/workflows/*.yml |
		tr -s ', ' '\n' | grep -v = | sort -u >/run/targets
	grep -qx check /run/targets || fail "no target in .github/workflows: $(cat /run/targets)"
	while read -r target; do
		grep -qE "^([a-z0-9-]+ )*$target( [a-z0-9-]+)*:" Makefile || fail "there is no make $target"
	done </run/targets
}

# CONTRIBUTING.md: the places of its table of changes
expect_places() {
	local name file
	cd "$project" || fail "no $project"
	sed -nE 's/^\| .* \| `([A-Za-z_]+)` .*in `([a-z_.\/]+)` \|$/\1 \2/p' CONTRIBUTING.md >/run/places
	expect_equal 10 "$(wc -l </run/places)" "changes with a place"
	while read -r name file; do
		grep -qw "$name" "$file" || fail "CONTRIBUTING.md: there is no $name in $file"
	done </run/places
}

# what the pages name is there: the version, pages, links and their headings, counters, maps, the files of bpf/ in
# the order of their includes; so are the targets that .github/ runs, and the places that CONTRIBUTING.md names
test_docs_names() {
	expect_version
	expect_all_pages
	expect_links
	expect_names
	expect_table_of_bpf
	expect_targets
	expect_places
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
