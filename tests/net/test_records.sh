# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # the world's names: world.sh
#
# test_records.sh - what the maps say of an owner is damaged: nothing crashes, no port has two
# owners, and none stays that nobody can free.

hex_of() { printf '%s' "$1" | od -An -v -tx1 | tr -s ' \n' ' '; }

# bytes COUNT VALUE
bytes() { printf "$2 %.0s" $(seq "$1"); }

# key_of NAME: the key in attachments of a container's eth0 in the network bridge
key_of() {
	local bytes
	bytes=$(hex_of "bridge/$1/eth0")
	# shellcheck disable=SC2086
	echo $bytes $(bytes $((256 - $(wc -w <<<"$bytes"))) 00)
}

# little_endian NUMBER: four bytes
little_endian() {
	local bytes
	bytes=$(printf %08x "$1")
	echo "${bytes:6:2} ${bytes:4:2} ${bytes:2:2} ${bytes:0:2}"
}

# value_of MAP KEY: in bytes, as the key
value_of() {
	# shellcheck disable=SC2086
	bpftool -j map lookup pinned "$pins/$1" key hex $2 |
		jq -r '.value | map(ltrimstr("0x")) | join(" ")'
}

# poke MAP KEY OFFSET BYTES: changes a few bytes of a value
poke() {
	local value
	value=$(value_of "$1" "$2")
	# shellcheck disable=SC2086
	set -- "$1" "$2" $(($3 + 1)) "$4" $value
	# shellcheck disable=SC2086
	bpftool map update pinned "$pins/$1" key hex $2 value hex "${@:5:$(($3 - 1))}" $4 \
		"${@:$((4 + $3 + $(wc -w <<<"$4")))}"
}

poke_record() { poke attachments "$(key_of "$1")" "$2" "$3"; }
poke_slot() { poke slots "$(little_endian "$(slot_of "bridge/$1/eth0")")" "$2" "$3"; }

record_delete() {
	# shellcheck disable=SC2046
	bpftool map delete pinned "$pins/attachments" key hex $(key_of "$1")
}

# The record of `first`, under a key that no command can name.
record_rename() {
	local value
	value=$(value_of attachments "$(key_of first)")
	record_delete first
	# shellcheck disable=SC2046,SC2086
	bpftool map update pinned "$pins/attachments" \
		key hex $(bytes 256 2a) value hex $value
}

damage() {
	case $1 in
	'no record') record_delete first ;;
	'a key that does not split') record_rename ;;
	'another generation in the record') poke_record first 4 'ff ff 00 00' ;;
	'another generation in the slot') poke_slot first 0 'ff ff 00 00' ;;
	"another owner's slot") poke_record first 0 "$(value_of attachments "$(key_of bystander)" |
		cut -d ' ' -f 1-8)" ;;
	'a slot that does not exist') poke_record first 0 'ff ff ff 7f' ;;
	'slot zero') poke_record first 0 '00 00 00 00 00 00 00 00' ;;
	'garbage as state') poke_record first 26 4d ;;
	'garbage as interface') poke_record first 16 'ff ff ff ff' ;;
	'no interface') poke_record first 16 '00 00 00 00' ;;
	'the loopback as interface') poke_record first 16 '01 00 00 00' ;;
	'no ports counted') poke_record first 28 '00 00 00 00' ;;
	'a slot without end of name') poke_slot first 32 "$(bytes 256 41)" ;;
	'a slot with an empty name') poke_slot first 32 00 ;;
	'a slot of zeros') poke_slot first 0 "$(bytes 288 00)" ;;
	*) fail "no such damage: $1" ;;
	esac
}

damages=('no record' 'a key that does not split' 'another generation in the record'
	'another generation in the slot' "another owner's slot" 'a slot that does not exist'
	'slot zero' 'garbage as state' 'garbage as interface' 'no interface' 'the loopback as interface'
	'no ports counted' 'a slot without end of name' 'a slot with an empty name' 'a slot of zeros')

# Runs a command of the plugin, which may fail but must say so in the way of CNI.
try() {
	local code=0
	"$@" >/run/out 2>/run/err || code=$?
	[ "$code" = 0 ] || [ "$(jq '(.code > 0) and (.msg | length > 0)' /run/out)" = true ] ||
		fail "$what: $* ended with $code: $(cat /run/out /run/err)"
	return "$code"
}

must() { try "$@" || fail "$what: $*: $(cat /run/out)"; }

gc() {
	plugin_run GC any <<<'{"cniVersion": "1.1.0", "name": "bridge", "type": "bpf-portmap",
		"cni.dev/valid-attachments": [{"containerID": "bystander", "ifname": "eth0"}]}'
}

# What belongs to containers in the maps
state_of_maps() {
	local map maps='portmaps endpoints attachments policies interfaces'
	for map in $maps; do echo "map dump pinned $pins/$map"; done | bpftool -j batch file - |
		jq -r '.[].output[].formatted | "\(.key | tojson) of \(.value.owner | tojson)"' | sort
	echo "live: $(live_slots)"
}

before_damage() {
	local name
	for name in first second bystander; do
		container_add_plain "$name"
		plugin_config "$name" "$(mapping 8080)" >"/run/config.$name"
	done
	plugin_config bystander "$(mapping 9090) | .maxFlows = 7" >/run/config.bystander
	plugin_config first "$(mapping 8081)" >/run/config.elsewhere
	serve_in first 80
	serve_in second 80
	what=preparation
	must plugin_run ADD bystander </run/config.bystander
	bystander=$(state_of_maps)
}

# The other container is not touched, and nothing is there of those that are deleted.
expect_only_bystander() {
	local now
	now=$(state_of_maps)
	[ "$now" = "$bystander" ] ||
		fail "$what: not as before: $(diff <(echo "$bystander") <(echo "$now"))"
}

after_damage() {
	must gc
	expect_only_bystander
	must plugin_run CHECK bystander </run/config.bystander
}

# limit 120 s
# a damaged owner's port is refused or taken over, and there is one owner at each moment; a late
# DEL takes nothing from the new one [i07]
test_records_conflict() {
	local what owner other
	before_damage
	for what in "${damages[@]}"; do
		must plugin_run ADD first </run/config.first
		damage "$what"
		! try plugin_run CHECK first </run/config.first || fail "$what: CHECK finds nothing wrong"
		try plugin_run STATUS '' </run/config.first || true
		owner=second other=first
		if ! try plugin_run ADD second </run/config.second; then
			expect_equal 101 "$(jq .code /run/out)" "$what: the code of $(cat /run/out)"
			owner=first other=second
		else
			grep -q 'taken over from' /run/err || fail "$what: no line on stderr"
		fi
		must plugin_run DEL "$other" </run/config.first
		expect_answer client tcp "$host4" 8080 "$owner"
		must plugin_run DEL "$owner" </run/config.first
		after_damage
	done
}

# limit 120 s
# DEL, ADD again and GC free what a damaged owner had
test_records_free() {
	local what command
	before_damage
	for what in "${damages[@]}"; do
		for command in DEL ADD GC; do
			must plugin_run ADD first </run/config.first
			damage "$what"
			case $command in
			GC) must gc ;;
			DEL) must plugin_run DEL first </run/config.first ;;
			ADD)
				must plugin_run ADD first </run/config.elsewhere
				must plugin_run CHECK first </run/config.elsewhere
				must plugin_run DEL first </run/config.elsewhere ;;
			esac
			# How many ports to look for, a key that is lost, and what an owner without a
			# record has, stand nowhere else: GC finds that.
			case $what in
			'no record' | 'no ports counted' | 'a key that does not split') ;;
			*) expect_only_bystander ;;
			esac
			must plugin_run ADD second </run/config.second
			must plugin_run CHECK second </run/config.second
			must plugin_run DEL second </run/config.second
		done
		after_damage
	done
}
