# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_uninstall.sh - `bpf-portmap uninstall` while another command is half-way, and the other way
# round: what succeeds works, and what fails leaves nothing. At some of the places; STEP=1: at all.

# uninstall_make: a container `late` whose ADD comes at a bad time; /run/do VERB runs one command on it
uninstall_make() {
	[ -n "${LENT:-}" ] || skip "needs programs that are lent, anew for each step"
	container_add_plain late
	serve_in late 80
	plugin_config late "$(mapping 9090) | .cniVersion = \"1.1.0\"" >/run/config.late
	cat >/run/do <<-SCRIPT
		#!/bin/sh
		case \$1 in
		attach) exec $build/bpf-portmap attach eth0 ;;
		uninstall) exec $build/bpf-portmap uninstall --bin-dir /run/bin --conf-dir /run/net.d ;;
		esac
		name=\${2:-late}
		export CNI_COMMAND=\$1 CNI_CONTAINERID=\$name CNI_IFNAME=eth0 CNI_NETNS=/run/netns/\$name
		exec $build/bpf-portmap </run/config.\$name
	SCRIPT
	chmod +x /run/do
	mkdir /run/bin
	cp "$build/bpf-portmap" /run/ours
}

# As on a host whose containers have gone
installed_again() {
	rm -rf "$pins"
	"$build/tests/loaded" lend "$LENT" "$pins"
	ln -f /run/ours /run/bin/bpf-portmap
}

# each_place STRIDE STOPPED MEANWHILE: at every STRIDEth call of STOPPED, MEANWHILE runs, until it has
# ended or waits for the lock; then `afterwards` looks. What they print is in /run/out.VERB.
each_place() {
	local stride=${STEP:-$1} stopped=$2 meanwhile=$3 step places=0 code
	printf '#!/bin/sh\nexec /run/do %s >/run/out.%s 2>&1\n' "$meanwhile" "$meanwhile" >/run/meanwhile
	chmod +x /run/meanwhile
	for ((step = RANDOM % stride + 1; ; step += stride)); do
		installed_again
		"$before"
		code=0
		"$build/tests/traced" stop "$step" /run/meanwhile /run/do "$stopped" >/run/out."$stopped" 2>&1 ||
			code=$?
		[ "$code" != 99 ] || break
		place="$stopped stopped at $step for $meanwhile: $(cat /run/out.*)"
		places=$((places + 1))
		"$afterwards"
		rm -f /run/out.*
	done
	rm -rf "$pins" /run/out.*
	[ "$places" -ge 3 ] || fail "only $places places of $stopped"
	echo "note: $places places of $stopped, meanwhile $meanwhile, $SECONDS s"
}

what_is_left() {
	programs_show
	socket_hooks_show
	tc qdisc show | grep clsact || true
	find /sys/fs/bpf -mindepth 1 ! -name '*.debug'
}
is_nothing_left() { [ -z "$(what_is_left)" ]; }

# The kernel detaches a link a little later than its pin goes.
nothing_is_left() {
	wait_until 5 is_nothing_left || fail "left: $(what_is_left), $place"
}

uninstalled() {
	/run/do uninstall >/run/out 2>&1 || fail "uninstall: $(cat /run/out), $place"
	nothing_is_left
}

# An ADD that succeeded has the port, and uninstall finds it; another is to be tried again.
add_works_or_leaves_nothing() {
	if grep '"code"' /run/out.ADD >/dev/null; then
		grep '"code": 11,' /run/out.ADD >/dev/null || fail "the code, $place"
		expect_in /run/out.uninstall 'nothing of bpf-portmap is left'
		nothing_is_left
	else
		grep 'nothing of bpf-portmap is left' /run/out.uninstall >/dev/null || [ -x /run/bin/bpf-portmap ] ||
			fail "there is no binary for its DEL, $place"
		/run/do CHECK >/run/out || fail "CHECK: $(cat /run/out), $place"
		expect_answer client tcp "$host4" 9090 late
		/run/do DEL || fail "DEL, $place"
	fi
	uninstalled
}

# limit 120 s
# an ADD is stopped for uninstall, and uninstall for an ADD: it succeeds and its port answers, or it is
# to be tried again and nothing is left
test_uninstall_and_add() {
	local before=true afterwards=add_works_or_leaves_nothing place=
	uninstall_make
	each_place 75 ADD uninstall
	each_place 75 uninstall ADD
}

forget_pins() { rm -rf "$pins"; }

# limit 240 s
# an ADD that loads everything anew just before the binary goes, or after it, is seen by uninstall: its
# port answers, and the binary is there for its DEL
test_uninstall_binary() {
	local before=forget_pins afterwards=add_works_or_leaves_nothing place=
	uninstall_make
	FILES=1 each_place 4 uninstall ADD
}

late_add() { /run/do ADD >/run/out || fail "ADD: $(cat /run/out)"; }

attach_leaves_nothing() {
	! grep 'bpf-portmap: ' /run/out.attach || fail "attach, $place"
	expect_in /run/out.uninstall 'nothing of bpf-portmap is left'
	nothing_is_left
}

del_succeeds() {
	[ ! -s /run/out.DEL ] || fail "DEL, $place"
	uninstalled
}

# limit 120 s
# attach and DEL are stopped for uninstall, and uninstall for them: nothing is loaded that was not, and
# nothing is left
test_uninstall_and_attach() {
	local before=true afterwards=attach_leaves_nothing place=
	uninstall_make
	each_place 50 attach uninstall
	each_place 70 uninstall attach
	before=late_add afterwards=del_succeeds
	each_place 9 DEL uninstall
	each_place 40 uninstall DEL
}

# limit 120 s
# uninstall is killed at some places: attach says nothing of it and fails nowhere, the next ADD's port
# answers, and uninstall completes it
test_uninstall_killed() {
	local call code=137 place stride=${STEP:-40}
	uninstall_make
	for ((call = RANDOM % stride + 1; code == 137; call += stride)); do
		installed_again
		/run/do attach >/run/out || fail "attach: $(cat /run/out)"
		code=0
		"$build/tests/traced" kill -a "$call" /run/do uninstall >/run/out 2>&1 || code=$?
		place="killed at $call"
		/run/do attach >/run/out 2>&1 || fail "attach: $(cat /run/out), $place"
		if [ $((call / stride % 2)) = 1 ]; then
			late_add
			expect_answer client tcp "$host4" 9090 late
			/run/do DEL || fail "DEL, $place"
		fi
		uninstalled
	done
	echo "note: killed at up to $call"
}

# limit 240 s
# uninstall --drop-ports takes them away; killed before changes of maps and programs, or of files, the
# next call completes it; what another host in another network namespace has stays, and so do qdiscs
# and filters of others
test_uninstall_drop() {
	local kind call code stride=${STEP:-7}
	uninstall_make
	node_make
	cp "$project/tests/lists/kind.conflist" "$conf/10-a.conflist"
	tc qdisc add dev eth1 clsact
	tc filter add dev eth1 ingress priority 7 protocol all u32 match u32 0 0 flowid 1:1
	conflist clsact bridge "$(with_ours '{attach: "clsact"}')"
	# The other host's maps are its own, as each step empties those that are lent.
	rm -rf "$pins"
	container_start web clsact -p 8080:80/tcp
	second_host_make
	at_node 0 uninstall --drop-ports
	for kind in env FILES=1; do
		for ((call = RANDOM % stride + 1, code = 137; code == 137; call += stride)); do
			"$build/tests/loaded" lend "$LENT" "$pins"
			container_again
			at_node 0 install
			code=0
			env "$kind" "$build/tests/traced" kill "$call" "$build/bpf-portmap" uninstall --drop-ports --bin-dir "$bin" \
				--conf-dir "$conf" >/run/out 2>&1 || code=$?
			at_node 0 uninstall --drop-ports
			expect_equal '' "$(programs_show | grep -v clsact.u32 || true)" "programs, killed at $call ($kind)"
			# The kernel lets go of them a moment after their pins.
			wait_until 10 sockets_have_one_set ||
				fail "programs at sockets, at $call ($kind): $(socket_hooks_show)"
			expect_equal '' "$(find "$pins" -maxdepth 1 ! -type d)" "pins, at $call ($kind)"
			expect_equal '' "$(tc qdisc show dev eth0 | grep clsact || true)" "qdisc, at $call ($kind)"
		done
		echo "note: killed up to call $call ($kind)"
		[ "$call" -ge 15 ] || fail "only $call calls"
		stride=${STEP:-60}
	done
	expect_no_answer client tcp "$host4" 8080
	expect_answer outside2 tcp 192.0.3.1 8080 web2
	expect_contains "$(tc filter show dev eth1 ingress)" u32
}

sockets_have_one_set() { [ -z "$(socket_hooks_show | uniq -d)" ]; }

container_again() {
	runtime del clsact web 2>/run/err || true
	container_add web clsact -p 8080:80/tcp
}
