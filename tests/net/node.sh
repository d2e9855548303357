# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# node.sh - the directories of a node, on which tests run `install` and `uninstall`.

bin=/run/node/bin conf=/run/node/conf

# node_make: directories of a node, with the reference plugins
node_make() {
	mkdir -p "$bin" "$conf"
	cp -L "$reference_plugins"/{bridge,host-local,portmap} "$bin/"
}

# at_node CODE VERB [OPTION...]: what it prints is in /run/out and /run/err
at_node() {
	by_hand "$1" "$2" --bin-dir "$bin" --conf-dir "$conf" "${@:3}"
}
