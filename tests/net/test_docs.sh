# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
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
