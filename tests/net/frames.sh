# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# frames.sh - packets that no IP stack would send: fragments in any order, and IPv4 packets and frames
# in hexadecimal digits.

datagrams=$build/tests/datagrams

# expect_whole NAMESPACE|host ADDRESS PORT SIZE [OPTION...]: each datagram comes back intact.
expect_whole() {
	local who=$1 answer
	shift
	local command=("$datagrams" ask "$@")
	[ "$who" = host ] || command=(in_namespace "$who" "${command[@]}")
	answer=$("${command[@]}") || fail "$who sends to $*: ${answer##*$'\n'}"
}

# pieces_by_hand ORDER INTERFACE-OF-THE-NEXT-HOP: the options for a tool that fragments by itself
pieces_by_hand() { echo "--order $1 --interface eth0 --destination-mac $(mac_of "$2")"; }

address_hex() {
	printf %02x $(tr . ' ' <<<"$1")
}

# checksum_hex DIGITS: their Internet checksum (RFC 1071)
checksum_hex() {
	local digits=$1 sum=0 i
	[ $((${#digits} % 4)) = 0 ] || digits=${digits}00
	for ((i = 0; i < ${#digits}; i += 4)); do sum=$((sum + 0x${digits:i:4})); done
	sum=$(((sum & 0xffff) + (sum >> 16)))
	printf %04x $((~(sum + (sum >> 16)) & 0xffff))
}

# ipv4_hex SOURCE DESTINATION PROTOCOL PAYLOAD [IDENTIFICATION [FRAGMENT [SIZE]]]: FRAGMENT is the
# header's field, flags and offset
ipv4_hex() {
	local head tail size=${7:-$((20 + ${#4} / 2))}
	head=$(printf '4500%04x%04x%04x40%02x' "$size" "${5:-0}" "${6:-0}" "$3")
	tail=$(address_hex "$1")$(address_hex "$2")
	echo "$head$(checksum_hex "${head}0000$tail")$tail$4"
}

# all digits of an IPv6 address
address6_hex() {
	local head=${1%%::*} tail='' group digits='' count
	case $1 in *::*) tail=${1#*::} ;; esac
	set -- ${head//:/ } - ${tail//:/ }
	count=$#
	for group; do
		if [ "$group" = - ]; then
			for ((; count <= 8; count++)); do digits+=0000; done
		else
			printf -v group %04x "0x$group"
			digits+=$group
		fi
	done
	echo "$digits"
}

# ipv6_hex SOURCE DESTINATION PROTOCOL PAYLOAD
ipv6_hex() {
	printf '60000000%04x%02xff%s%s%s' $((${#4} / 2)) "$3" "$(address6_hex "$1")" \
		"$(address6_hex "$2")" "$4"
}

# udp_hex SOURCE-PORT DESTINATION-PORT PAYLOAD [SIZE]: without a checksum, which IPv4 permits
udp_hex() { printf '%04x%04x%04x0000%s' "$1" "$2" "${4:-$((8 + ${#3} / 2))}" "$3"; }

# packet_hex SOURCE DESTINATION PROTOCOL BEFORE AFTER: of either family; the transport checksum stands
# between BEFORE and AFTER. The pseudo headers of both families have the same sum (RFC 8200 8.1).
packet_hex() {
	local kind=4 pseudo
	case $1 in *:*) kind=6 ;; esac
	pseudo=$(printf '%04x%04x' "$3" $(((${#4} + ${#5}) / 2 + 2)))
	case $kind in
	4) pseudo+=$(address_hex "$1")$(address_hex "$2") ;;
	6) pseudo+=$(address6_hex "$1")$(address6_hex "$2") ;;
	esac
	"ipv${kind}_hex" "$1" "$2" "$3" "$4$(checksum_hex "$pseudo${4}0000$5")$5"
}

# too_big_hex MTU QUOTED-PACKET: ICMP, "fragmentation needed"
too_big_hex() {
	local rest
	rest=$(printf '0000%04x%s' "$1" "$2")
	echo "0304$(checksum_hex "03040000$rest")$rest"
}

# icmp6_hex SOURCE DESTINATION TYPE REST [router alert]: an ICMPv6 packet
icmp6_hex() {
	local pseudo message protocol=58 option=
	pseudo=$(address6_hex "$1")$(address6_hex "$2")$(printf '%08x0000003a' $((4 + ${#4} / 2)))
	message=$(printf %02x00 "$3")
	message+=$(checksum_hex "$pseudo${message}0000$4")$4
	[ $# -lt 5 ] || { protocol=0 && option=3a00050200000100; }
	ipv6_hex "$1" "$2" "$protocol" "$option$message"
}

# frame_send NAMESPACE INTERFACE DESTINATION-MAC PACKET [TAG...]: a TAG is a VLAN ID (802.1Q); the
# first one is the outermost.
frame_send() {
	local who=$1 interface=$2 frame=${3//:/} packet=$4 tag
	frame+=$(mac_in "$who" "$interface" | tr -d :)
	shift 4
	for tag; do frame+=$(printf '8100%04x' "$tag"); done
	in_namespace "$who" "$build/tests/frame" "$interface" "${frame}0800$packet"
}

# forge NAMESPACE NEXT-HOP tcp|udp SOURCE PORT DESTINATION PORT [--tcp-flags LETTERS of FSRPA]
# [--source-mac MAC]: sends a SYN, or a datagram, past the IP stack to the next hop, which is an
# interface of the host or a MAC.
forge() {
	local who=$1 next=$2 own flags=S bits=0 letter packet type=0800
	local -A bit=([F]=1 [S]=2 [R]=4 [P]=8 [A]=16)
	[[ $next = *:* ]] || next=$(mac_of "$next")
	own=$(mac_in "$who" eth0)
	case ${8:-} in
	--tcp-flags) flags=$9 ;;
	--source-mac) own=$9 ;;
	esac
	for letter in $(grep -o . <<<"$flags"); do bits=$((bits | ${bit[$letter]})); done
	case $3 in
	tcp) packet=$(packet_hex "$4" "$6" 6 "$(printf '%04x%04x000003e80000000050%02x03e8' "$5" "$7" "$bits")" 0000) ;;
	udp) packet=$(packet_hex "$4" "$6" 17 "$(printf '%04x%04x000d' "$5" "$7")" 77686f3f0a) ;;
	esac
	case $4 in *:*) type=86dd ;; esac
	in_namespace "$who" "$build/tests/frame" eth0 "${next//:/}${own//:/}$type$packet"
}
