# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_operator_flows.sh - `bpf-portmap flows`: which connections there are, in which state, and
# which way their packets go.

# flow_rows [ARGUMENT...]: without the last line
flow_rows() { rows flows "$@" | sed '$d'; }

# flows_counted [ARGUMENT...]: how many match
flows_counted() { item .summary.flows flows --count "$@"; }

# a connection to a mapped port is shown with its client, its port, its container, its packets, and
# whether they skip the IP stack; a masqueraded one begins inside, and has the host's address and port
test_operator_flows_mapping() {
	local web port
	web_as_pod -p 8080:80/tcp
	web=$(address4 web)
	conversation_with web one client tcp "$host4" 8080
	expect_says one web
	port=$(flow_rows --port 8080 | sed -E "s/.* $client4:([0-9]+) .*/\1/")
	expect_contains "$(flow_rows --port 8080/tcp)" \
		"tcp established mapping $client4:$port $host4:8080 shop/web-0 $web:80 "
	expect_equal "$(jq -nc --argjson port "$port" --arg client "$client4" --arg host "$host4" \
		--arg web "$web" '{protocol: "tcp", state: "established", half_open: false,
		kind: "mapping", begun_by: "peer", peer: {address: $client, port: $port},
		host: {address: $host, port: 8080}, container: "shop/web-0",
		inside: {address: $web, port: 80}, stack_reason: null, remark: null, counted: true}')" \
		"$(item '.items[] | .container |= .name |
			.counted = (.packets.in > 0 and .packets.out > 0 and .bytes.in > .packets.in) |
			del(.path, .packets, .bytes, .idle_seconds)' flows)"
	by_hand 0 flows
	expect_equal "1 flow; table 1 of 131,072 (0 %), half-open 0 of 32,768" \
		"$(tail -n 1 /run/out | sed -E 's/of [0-9,]+ \(0 %\)/of 131,072 (0 %)/; s/of [0-9,]+$/of 32,768/')"
	conversation_close one
	# The client's FIN may come after this.
	wait_until 5 flow_is_in time-wait || fail "$(flow_rows)"
	conversation_open two client tcp "$host4" 8080
	path_is() { expect_says two web; flow_rows --path "$1" | grep " $2 " >/dev/null; }
	wait_until 5 path_is fast fast/fast || fail "not on the fast path: $(cat /run/out)"
	expect_equal 0 "$(flows_counted --path stack --state established)"
	in_namespace server "$peer" serve tcp any 7 --name server --background
	conversation_with server out web tcp "$server4" 7
	expect_says out server
	expect_contains "$(flow_rows)" "tcp established masquerade $server4:7 $host4_second:"
	expect_equal '["masquerade","inside","shop/web-0"]' \
		"$(item '.items[] | [.kind, .begun_by, .container.name]' flows --client 198.51.100.0/24)"
	conversation_close two
	conversation_close out
}

# flow_is_in STATE: the only connection
flow_is_in() { [ "$(flow_rows | cut -d ' ' -f 2)" = "$1" ]; }

# one that nobody answers is half-open, and is said to be
test_operator_flows_half_open() {
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	in_namespace web nft 'table inet silent { chain input {
		type filter hook input priority 0; policy drop; }; }'
	expect_no_answers client "$host4" 8080
	expect_equal 'syn mapping stack/- -
unreplied mapping stack/- -' "$(flow_rows | sort | awk '{ print $2, $3, $8, $9 }')"
	wait_until 5 remarked || fail "no remark: $(cat /run/out)"
	expect_equal 2 "$(item .summary.half_open flows)"
	expect_equal 2 "$(flows_counted --state half-open)"
	expect_equal 1 "$(flows_counted --state syn)"
	expect_equal 1 "$(flows_counted --state unreplied)"
	expect_equal 0 "$(flows_counted --state established)"
	expect_equal '[null,{"in":"stack","out":null}]' \
		"$(item '[.items[] | .packets, .path] | unique' flows)"
}

remarked() { by_hand 0 flows --state syn; grep -q 'no answer from the container' /run/out; }

# UDP is established two seconds after it began.
three_are_established() {
	expect_says three web
	[ "$(flows_counted --state established)" = 3 ]
}

# every filter leaves what it names, and the sums at the end are of all
test_operator_flows_filters() {
	local row
	web_as_pod -p 8080:80/tcp -p 8080:80/udp
	container_start db bridge -p 5432:80/tcp
	conversation_open one client tcp "$host4" 8080
	conversation_open two client tcp "$host6" 5432
	conversation_open three client udp "$host4" 8080
	for row in one three one three; do expect_says "$row" web; done
	expect_says two db
	expect_says two db
	wait_until 10 three_are_established || fail "$(flows_counted --state established) are"
	while read -r row; do
		expect_equal "${row%% *}" "$(flows_counted ${row#* })" "flows ${row#* }"
	done <<-ROWS
	3 --state established
	2 --container web-0
	1 --container db
	0 --container nobody
	2 --port 8080
	1 --port 8080/udp
	2 --protocol tcp
	2 --client $client4
	2 --client 192.0.2.0/24
	0 --client 192.0.3.0/24
	1 --client $client6
	2 --client 192.0.2.0/24 --client 192.0.2.10/32
	1 --protocol tcp --port 8080 --state established --container shop/web-0
	ROWS
	expect_equal 3 "$(item .summary.established flows --container db)"
	expect_equal "3 flows; " "$(by_hand 0 flows --count; grep -o '^3 flows; ' /run/out)"
	expect_equal 1 "$(wc -l </run/out)" "lines of --count"
	by_hand 64 flows --state asleep
	by_hand 64 flows --client 10.0.0.0/33
	by_hand 64 flows --top 0
	for row in one two three; do conversation_close "$row"; done
}

# --top shows those with the most bytes, the biggest first
test_operator_flows_top() {
	container_add web bridge -p 80:80/tcp
	"$build/tests/fill" many "$pins" 10 3000
	expect_equal '[2999,2998,2997]' "$(item '[.items[].packets.in]' flows --top 3)"
	expect_equal '[2999,2998]' "$(item '[.items[].packets.in]' flows --top 2 --by packets)"
	expect_equal '[2993,2983]' "$(item '[.items[].packets.in]' flows --top 2 --container web-3)"
	expect_equal 10 "$(item '.items | length' flows --by bytes)"
	expect_equal 3000 "$(item .summary.flows flows --top 3)"
	expect_contains "$(rows flows --top 1)" ' 2999/2999 2999000/2999000 '
}

# --by client and --by container: how many connections each has, the most first
test_operator_flows_by() {
	local name
	web_as_pod -p 8080:80/tcp
	container_start db bridge -p 5432:80/tcp
	for name in one two three; do
		conversation_open $name client tcp "$host4" 8080
		expect_says $name web
	done
	conversation_with db four client tcp "$host4" 5432
	expect_equal "$client4 4 0" "$(rows flows --by client | head -n 1 | cut -d ' ' -f 1-3)"
	expect_equal "shop/web-0 3 0
db 1 0" "$(rows flows --by container | head -n 2 | cut -d ' ' -f 1-3)"
	expect_equal '["shop/web-0",3]' "$(item '.items[] | [.container.name, .flows]' flows --by container --top 1)"
	expect_equal "[\"$client4\",null,1]" "$(item '.items[] | [.client, .container, .flows]' flows --by client --port 5432)"
	for name in one two three four; do conversation_close $name; done
}
