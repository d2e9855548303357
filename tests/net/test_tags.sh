# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_tags.sh - frames with VLAN tags under a priority tag (VID 0). The kernel strips all of them
# after tc, and delivers what is left.

# tagged_send NAMESPACE NEXT-HOP DESTINATION PORT BYTES [TAG...]: UDP from its own address
tagged_send() {
	local who=$1 hop=$2 destination=$3 port=$4 bytes=$5 source
	shift 5
	source=$(address4 "$who")
	frame_send "$who" eth0 "$(mac_of "$hop")" \
		"$(ipv4_hex "$source" "$destination" 17 "$(udp_hex 5000 "$port" "$bytes")")" "$@"
}

# An interface that comes up after ADD, with another host behind it
late_make() {
	namespace_add late
	ip link add late0 type veth peer name eth0 netns late
	end_make host late0 203.0.113.1/24
	end_make late eth0 203.0.113.10/24
}

tags_of_container() {
	local hop
	container_add hostile "$1"
	hop=$([ "$1" = ptp ] && host_veth hostile || echo cni0)
	late_make
	capture_start leak late eth0 "udp port 9"
	tagged_send hostile "$hop" 203.0.113.10 9 00
	tagged_send hostile "$hop" 203.0.113.10 9 00 0
	expect_counted drop_unclassified_interface 2 "untagged, and with a priority"
	tagged_send hostile "$hop" 203.0.113.10 9 00 0 0
	tagged_send hostile "$hop" 203.0.113.10 9 00 0 0 0 0 0 0 0 0
	tagged_send hostile "$hop" 203.0.113.10 9 00 0 7
	expect_captured_nothing leak
	expect_counted drop_nested_tags 3 "with one tag under another"
}

# a container's frame with tags under a priority tag does not pass the program at its veth
test_tags_of_container() { tags_of_container bridge; }

# nor does it on a ptp link
test_tags_of_container_ptp() { tags_of_container ptp; }

# a frame from outside with tags under a priority tag does not bypass the host's mappings; one with
# only a priority tag is answered, and one for a VLAN belongs to the VLAN device
test_tags_from_outside() {
	container_start web bridge -p 8080:80/udp
	serve_on_host 8080
	capture_start answers client eth0 "udp src port 8080"
	tagged_send client eth0 "$host4" 8080 77686f3f0a 0 0
	tagged_send client eth0 "$host4" 8080 77686f3f0a 0 0 0 0 0 0
	tagged_send client eth0 "$host4" 8080 77686f3f0a 0 7
	tagged_send client eth0 "$host4" 8080 77686f3f0a 0
	wait_until 5 test -s /run/answers.capture || fail "a priority is not answered"
	expect_equal 1 "$(capture_stop answers | grep -c UDP)" answers
	expect_counted flow_mapping 1 "flows to the container"
	expect_counted drop_nested_tags 2 "one tag under another, but for the one for a VLAN"
}

# priority_ends NAMESPACE NEXT-HOP DESTINATION PORT RECEIVER RECEIVERS-PORT
priority_ends() {
	local seen
	ask "$1" udp "$3" "$4" --source-port 5000 --count 6 >/run/out || fail "$1 asks: $(cat /run/out)"
	CAPTURE=-e capture_start received "$5" eth0 "udp dst port $6 or vlan"
	for _ in {1..6}; do tagged_send "$1" "$2" "$3" "$4" 77686f3f0a 57344; done
	seen=$(capture_stop received)
	expect_equal 6 "$(grep -c "$6: UDP" <<<"$seen")" "datagrams to $5"
	case $seen in *802.1Q*) fail "a priority was passed on to $5: $seen" ;; esac
}

# also with portmap
# a priority tag ends at this host: what skips the IP stack leaves without it, out and into a
# container
test_tags_end_here() {
	container_start web bridge -p 8080:80/udp
	serve_in server 9000
	priority_ends web cni0 "$server4" 9000 server 9000
	priority_ends client eth0 "$host4" 8080 web 80
	[ "$plugin" != bpf-portmap ] || [ "$(fast_packets)" -ge 12 ] || fail "few skip the IP stack"
}
