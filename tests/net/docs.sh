# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs.sh - runs the commands of a page of docs/, in the world of the network tests.
#
# A page marks what is run in two ways:
#
#   ```console run            a block that the reader sees
#   <!-- run                  up to a line -->: preparations, which the reader does not see
#
# In a block `$ ` begins a command of the host, `client$ ` one in that network namespace, and `> `
# continues the line above. A command must succeed, or fail if it ends with `# fails`. What stands
# below it must be its whole output, but a line may be broken where there is a blank, and `...` stands
# for any text. Where nothing stands below it, the output is not looked at. All commands of a page run in one shell, in the
# project's folder.

# A host to install to: /etc is a copy; /opt and /usr/local are empty.
docs_world() {
	cp -a /etc /run/etc
	mount --bind /run/etc /etc
	mount -t tmpfs tmpfs /opt
	mount -t tmpfs tmpfs /usr/local
	rm -rf /etc/cni
	mkdir -p /etc/cni/net.d
	printf '%s\n' silent show-error >/run/.curlrc # as where it prints to a terminal
	export CURL_HOME=/run
	unset CNI_PATH
	# The pages use the jq that a reader has.
	export PATH=/usr/local/sbin:/usr/local/bin:/opt/cni/bin:${PATH//$BUILD\/tools:/}
	cd "$project" || fail "no $project"
}

# Installs what is under test, and builds nothing.
make() { command make --silent --no-print-directory --old-file all BUILD="$build" "$@"; }

# docs_container NAME [OPTION...]: a container of the list `bridge`, whose web server says who it is
docs_container() {
	local name=$1
	shift
	[ -e /opt/cni/bin/bpf-portmap ] || make install
	cp -n conf/bridge.conflist /etc/cni/net.d/
	ip netns add "$name"
	cnirun add bridge "$name" "$@" >/run/results/"$name"
	docs_web_server "$name"
}

# docs_container_of_pod: the container `web` as Kubernetes would add it
docs_container_of_pod() {
	export CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0'
	docs_container web -p 8080:80
}

docs_web_server() {
	mkdir -p /run/www/"$1"
	echo "hello from $1" >/run/www/"$1"/index.html
	in_namespace "$1" busybox httpd -p "[::]:${2:-80}" -h /run/www/"$1"
}

# docs_commands FILE: of the blocks that are run, LINE-NUMBER<tab>TEXT; a block ends with a form feed
docs_commands() {
	awk '/^ *```console run$/ || /^<!-- run$/ { inside = 1; match($0, /^ */); indent = RLENGTH; next }
		/^ *```/ || /^-->$/ { if (inside) print NR "\t\f"; inside = 0; next }
		inside { print NR "\t" substr($0, indent + 1) }' "$1"
}

# Blanks and line ends are one blank.
docs_flat() { tr -s '[:space:]' ' ' <<<"$1" | sed 's/^ //; s/ $//'; }

# docs_pattern TEXT: it as a pattern of the shell
docs_pattern() {
	local text
	text=$(docs_flat "$1")
	text=${text//\\/\\\\}
	text=${text//\*/\\*}
	text=${text//\?/\\?}
	text=${text//\[/\\[}
	echo "${text//.../*}"
}

# docs_run WHERE COMMAND OUTPUT: one command, and the output that it must have; "": any
docs_run() {
	local namespace=$1 command=$2 wanted=$3 status=0 seen
	if [ -n "$namespace" ]; then
		in_namespace "$namespace" bash -o pipefail -c "$command" >/run/docs.out 2>&1 || status=$?
	else
		eval "$command" >/run/docs.out 2>&1 || status=$?
	fi
	seen=$(cat /run/docs.out)
	case $command in
	*'# fails') [ "$status" != 0 ] || fail "$page: should have failed: $command: $seen" ;;
	*) [ "$status" = 0 ] || fail "$page: failed with status $status: $command: $seen" ;;
	esac
	[ -z "$wanted" ] || [[ $(docs_flat "$seen") == $(docs_pattern "$wanted") ]] ||
		fail "$page: $command: expected:
$wanted
got:
$seen"
}

# docs_page NAME [COMMAND...]: runs the commands of docs/NAME.md in a host of their own, COMMAND before
docs_page() {
	local file=docs/$1.md
	shift
	needs_cgroup
	docs_world
	[ $# = 0 ] || "$@"
	docs_run_file "$file"
}

docs_run_file() {
	local file=$1 number line namespace='' command='' wanted='' count=0 page=''
	while IFS=$'\t' read -r -u 9 number line; do
		case $line in
		'> '*) command+=$'\n'${line#> } && continue ;;
		*'$ '* | $'\f') ;;
		*) wanted+=${wanted:+$'\n'}$line && continue ;;
		esac
		if ! [[ $line =~ ^([a-z0-9]*)\$\ (.*) || $line = $'\f' ]]; then
			wanted+=${wanted:+$'\n'}$line
			continue
		fi
		[ -z "$command" ] || docs_run "$namespace" "$command" "$wanted"
		namespace=${BASH_REMATCH[1]:-} command=${BASH_REMATCH[2]:-} wanted=''
		[ "$line" != $'\f' ] || command=''
		page=${file##*/}:$number count=$((count + 1))
	done 9< <(docs_commands "$file")
	[ "$count" -gt 0 ] || fail "${file##*/} has no command to run"
}
