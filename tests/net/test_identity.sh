# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_identity.sh - containers that send packets with source addresses which are not their own.

needs_ours() { [ "$plugin" = bpf-portmap ] || skip "about what only we drop"; }

# a container's TCP packet that the kernel is to segment, with no total length in its IP header: the
# stack takes it for BIG TCP, however short it is; no container address leaves the host by it
test_identity_segmented() {
	needs_ours
	local segment packet source
	container_add evil bridge
	container_add web bridge
	capture_start out client eth0 "tcp port 5001"
	segment=$(printf '1388%04x%08x%08x5010ffff00000000' 5001 1 1)$(printf '00%.0s' {1..400})
	for source in "$(address4 web)" "$(address4 evil)"; do
		packet=$(ipv4_hex "$source" "$client4" 6 "$segment" 0 0 0)
		in_namespace evil "$build/tests/frame" eth0 \
			"$(mac_of cni0 | tr -d :)$(mac_in evil eth0 | tr -d :)0800$packet" 100
	done
	# the client refuses what it receives
	wait_until 5 grep -q "IP $client4.5001 > $host4.5000" /run/out.capture ||
		fail "captured: $(capture_stop out)"
	expect_equal 2 "$(capture_stop out | grep -c " IP ")" "one packet and the client's answer"
	expect_counted drop_forged_source 1 drop_forged_source
}

# a container's packets with another container's address are dropped: they do not leave the host nor
# reach others on the bridge, though there is no reverse path filter; nor can it take over a client's
# flow to a mapped port with the host's own address, of either family
test_identity_of_container() {
	needs_ours
	sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	container_add evil bridge
	container_add near bridge
	sysctl -qw net.ipv4.conf.cni0.rp_filter=0
	capture_start out client eth0 "udp port 5000"
	capture_start across near eth0 "udp port 5000"
	local before protocol
	before=$(counted drop_forged_source)
	forge evil cni0 udp "$(address4 web)" 5000 "$client4" 5001
	forge evil cni0 udp "$(address6 web)" 5000 "$client6" 5001
	forge evil "$(mac_in near eth0)" udp "$(address4 web)" 5000 "$(address4 near)" 5001
	forge evil "$(mac_in near eth0)" udp "$(address6 web)" 5000 "$(address6 near)" 5001
	expect_captured_nothing out
	expect_captured_nothing across
	expect_counted drop_forged_source $((before + 4)) drop_forged_source
	capture_start out client eth0 "udp port 5000"
	forge web cni0 udp "$(address4 web)" 5000 "$client4" 5001
	expect_contains "$(capture_stop out)" "$client4.5001"
	before=$(counted drop_forged_source)
	for protocol in tcp udp; do
		forge evil cni0 "$protocol" "$host6" 8080 "$client6" 4000
		forge evil cni0 "$protocol" "$host4" 8080 "$client4" 4000
	done
	expect_counted drop_forged_source $((before + 4)) drop_forged_source
	expect_answers client "$host6" 8080 web - --source-port 4000
	expect_answers client "$host4" 8080 web - --source-port 4000
}

# a container that is a router for networks of its own still works, and so does one that was given a
# further address later
test_identity_router() {
	container_add router bridge
	container_start web bridge -p 8080:80/tcp -p 8080:80/udp
	namespace_add inner
	in_namespace router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	link_make router inside "10.50.0.1/24 fd00:50::1/64" inner eth0 "10.50.0.2/24 fd00:50::2/64"
	ip -n inner route add default via 10.50.0.1
	ip -n inner route add default via fd00:50::1
	ip route add 10.50.0.0/24 via "$(address4 router)"
	ip route add fd00:50::/64 via "$(address6 router)"
	serve_in client 7000 outside
	expect_answers inner "$client4" 7000 outside 10.50.0.2
	expect_answers inner "$client6" 7000 outside fd00:50::2
	ip -n web address add 10.88.77.7/16 dev eth0
	expect_answer web tcp "$client4" 7000 outside 10.88.77.7 --from 10.88.77.7
}

# a container on two networks answers with the address of one through the veth of the other
test_identity_two_networks() {
	conflist other bridge "$other_network"
	container_add both bridge -p 8080:80/tcp -p 8080:80/udp
	runtime add other both --ifname eth1 >/run/out || fail "$(cat /run/out)"
	serve_in both 80
	# all answers leave by eth1
	ip -n both route replace default via 10.87.0.1
	ip -n both route replace default via fd00:87::1
	no_rp_filter="net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0"
	sysctl -qw $no_rp_filter net.ipv4.conf.cni0.rp_filter=0 net.ipv4.conf.cni1.rp_filter=0
	in_namespace both sysctl -qw $no_rp_filter net.ipv4.conf.eth0.rp_filter=0
	both expect_answers client @host 8080 both
	expect_answers client "$(address4 both)" 80 both
}

# two containers with the same address, on different networks: the older one's packets pass too
test_identity_same_address() {
	needs_ours
	conflist isolated bridge "$other_network"' | .name = "isolated" | .plugins[0].bridge = "cni2" |
		.plugins[0].ipam.ranges = [[{"subnet":"10.88.0.0/16"}]] | .plugins[0].isGateway = false |
		.plugins[0].ipam |= del(.routes)'
	conflist first bridge "$only_ipv4"
	container_add old first
	container_add new isolated 2>/run/warnings
	expect_equal "$(address4 old)" "$(address4 new)" addresses
	capture_start across host cni0 "udp port 5000"
	forge old cni0 udp "$(address4 old)" 5000 10.88.9.9 5001
	expect_contains "$(capture_stop across)" "10.88.9.9.5001"
}

# strict: only the mapped ports of a container are reachable, except for the host and other
# containers; flows that it begins, masqueraded or not, are answered
test_identity_strict() {
	needs_ours
	conflist strict bridge "$(with_ours '{"strict": true, "ipMasq": false}')"
	container_start web strict -p 8080:80/tcp -p 8080:80/udp
	container_add near bridge
	local before
	before=$(counted drop_strict)
	expect_no_answer client tcp "$(address4 web)" 80
	expect_no_answer client udp "$(address6 web)" 80
	[ "$(counted drop_strict)" -ge $((before + 2)) ] || fail "drop_strict $(counted drop_strict)"
	both expect_answers client @host 8080 web
	expect_answers host "$(address4 web)" 80 web
	expect_answers near "$(address4 web)" 80 web
	serve_in client 7000 outside
	expect_answers web "$client4" 7000 outside "$(address4 web)"
	expect_answers web "$client6" 7000 outside "$(address6 web)"
	# an error about what it has sent: no process listens there
	expect_contains "$(ask web udp "$client4" 7001 --connected || true)" refused
	container_check web strict
	expect_refusal strict container_check web bridge
	container_start closed strict
	expect_no_answer client tcp "$(address4 closed)" 80
	expect_answer host tcp "$(address4 closed)" 80 closed
	conflist masqueraded bridge "$(with_ours '{"strict": true}')"
	container_start portless masqueraded
	expect_no_answer client tcp "$(address4 portless)" 80
	serve_in server 7000 outside
	expect_answers portless "$server4" 7000 outside "$host4_second"
}
