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

# Each of these prints digits, and the one behind it sets a variable to them, which takes no process.

# of an address of either family: $address
address_hex() {
	local address
	address_set "$1"
	echo "$address"
}
address_set() {
	local head=${1%%::*} tail='' group count
	address=
	if [[ $1 != *:* ]]; then
		printf -v address %02x ${1//./ }
		return
	fi
	case $1 in *::*) tail=${1#*::} ;; esac
	set -- ${head//:/ } - ${tail//:/ }
	count=$#
	for group; do
		if [ "$group" = - ]; then
			for ((; count <= 8; count++)); do address+=0000; done
		else
			printf -v group %04x "0x$group"
			address+=$group
		fi
	done
}

# checksum_hex DIGITS: their Internet checksum (RFC 1071), $checksum
checksum_hex() {
	local checksum
	checksum_set "$1"
	echo "$checksum"
}
checksum_set() {
	local digits=$1 sum=0 i
	[ $((${#digits} % 4)) = 0 ] || digits=${digits}00
	for ((i = 0; i < ${#digits}; i += 4)); do sum=$((sum + 0x${digits:i:4})); done
	sum=$(((sum & 0xffff) + (sum >> 16)))
	printf -v checksum %04x $((~(sum + (sum >> 16)) & 0xffff))
}

# ipv4_hex SOURCE DESTINATION PROTOCOL PAYLOAD [IDENTIFICATION [FRAGMENT [SIZE]]]: $packet. FRAGMENT is
# the header's field, flags and offset
ipv4_hex() {
	local packet
	ipv4_set "$@"
	echo "$packet"
}
ipv4_set() {
	local head tail address checksum size=${7:-$((20 + ${#4} / 2))}
	printf -v head '4500%04x%04x%04x40%02x' "$size" "${5:-0}" "${6:-0}" "$3"
	address_set "$1"
	tail=$address
	address_set "$2"
	tail+=$address
	checksum_set "${head}0000$tail"
	packet=$head$checksum$tail$4
}

# ipv6_hex SOURCE DESTINATION PROTOCOL PAYLOAD: $packet
ipv6_hex() {
	local packet
	ipv6_set "$@"
	echo "$packet"
}
ipv6_set() {
	local address
	printf -v packet '60000000%04x%02xff' $((${#4} / 2)) "$3"
	address_set "$1"
	packet+=$address
	address_set "$2"
	packet+=$address$4
}

# udp_hex SOURCE-PORT DESTINATION-PORT PAYLOAD [SIZE]: without a checksum, which IPv4 permits
udp_hex() { printf '%04x%04x%04x0000%s' "$1" "$2" "${4:-$((8 + ${#3} / 2))}" "$3"; }

# packet_hex SOURCE DESTINATION PROTOCOL BEFORE AFTER: of either family, $packet; the transport checksum
# stands between BEFORE and AFTER. The pseudo headers of both families have the same sum (RFC 8200 8.1).
packet_hex() {
	local packet
	packet_set "$@"
	echo "$packet"
}
packet_set() {
	local kind=4 pseudo address checksum
	case $1 in *:*) kind=6 ;; esac
	printf -v pseudo '%04x%04x' "$3" $(((${#4} + ${#5}) / 2 + 2))
	address_set "$1"
	pseudo+=$address
	address_set "$2"
	checksum_set "$pseudo$address${4}0000$5"
	"ipv${kind}_set" "$1" "$2" "$3" "$4$checksum$5"
}

# too_big_hex MTU QUOTED-PACKET: ICMP, "fragmentation needed"
too_big_hex() {
	local rest checksum
	printf -v rest '0000%04x%s' "$1" "$2"
	checksum_set "03040000$rest"
	echo "0304$checksum$rest"
}

# icmp6_hex SOURCE DESTINATION TYPE REST [router alert]: an ICMPv6 packet
icmp6_hex() {
	local pseudo message protocol=58 option='' address checksum packet
	address_set "$1"
	pseudo=$address
	address_set "$2"
	printf -v pseudo '%s%08x0000003a' "$pseudo$address" $((4 + ${#4} / 2))
	printf -v message %02x00 "$3"
	checksum_set "$pseudo${message}0000$4"
	message+=$checksum$4
	[ $# -lt 5 ] || { protocol=0 && option=3a00050200000100; }
	ipv6_set "$1" "$2" "$protocol" "$option$message"
	echo "$packet"
}

# frame_send NAMESPACE INTERFACE DESTINATION-MAC PACKET [TAG...]: a TAG is a VLAN ID (802.1Q); the
# first one is the outermost.
frame_send() {
	local who=$1 interface=$2 frame=${3//:/} packet=$4 tag mac
	mac=$(mac_in "$who" "$interface")
	frame+=${mac//:/}
	shift 4
	for tag; do
		printf -v tag 8100%04x "$tag"
		frame+=$tag
	done
	in_namespace "$who" "$build/tests/frame" "$interface" "${frame}0800$packet"
}

# forge NAMESPACE NEXT-HOP tcp|udp SOURCE PORT DESTINATION PORT [--tcp-flags LETTERS of FSRPA]
# [--source-mac MAC]: sends a SYN, or a datagram, past the IP stack to the next hop, which is an
# interface of the host or a MAC.
forge() {
	local who=$1 next=$2 own flags=S bits=0 head packet type=0800
	local -A bit=([F]=1 [S]=2 [R]=4 [P]=8 [A]=16)
	[[ $next = *:* ]] || next=$(mac_of "$next")
	case ${8:-} in
	--source-mac) own=$9 ;;
	--tcp-flags) flags=$9 ;;&
	*) own=$(mac_in "$who" eth0) ;;
	esac
	for ((; ${#flags}; )); do
		bits=$((bits | ${bit[${flags:0:1}]}))
		flags=${flags:1}
	done
	case $3 in
	tcp)
		printf -v head '%04x%04x000003e80000000050%02x03e8' "$5" "$7" "$bits"
		packet_set "$4" "$6" 6 "$head" 0000 ;;
	udp)
		printf -v head '%04x%04x000d' "$5" "$7"
		packet_set "$4" "$6" 17 "$head" 77686f3f0a ;;
	esac
	case $4 in *:*) type=86dd ;; esac
	in_namespace "$who" "$build/tests/frame" eth0 "${next//:/}${own//:/}$type$packet"
}
