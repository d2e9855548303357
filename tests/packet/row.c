/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* row.c - runs rows, compares, and prints TAP. */
#include <arpa/inet.h>
#include <err.h>
#include <linux/pkt_cls.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records.h"
#include "row.h"

static int number;
static int failures;
static void (*usual_given)(void);
static int chosen;
static char complaints[8192];
static const char *current, *suffix = "";

struct run {
	const struct row *row;
	struct frame in;
	struct frame expected;
	struct frame got;
	struct counters counters_before;
	struct stored_entries flows_before; /* the packet */
};

void row_begin(const char *says)
{
	current = says;
	complaints[0] = '\0';
}

void row_fail(const char *why, ...)
{
	size_t length = strlen(complaints);
	va_list arguments;

	if (length + 4 > sizeof(complaints))
		return;
	va_start(arguments, why);
	memcpy(complaints + length, "# ", 3);
	vsnprintf(complaints + length + 2, sizeof(complaints) - length - 3, why, arguments);
	va_end(arguments);
	length = strlen(complaints);
	memcpy(complaints + length, "\n", 2);
}

void row_end(void)
{
	bool failed = complaints[0] != '\0';

	failures += failed;
	printf("%sok %d - %s%s\n%s", failed ? "not " : "", ++number, current, suffix, complaints);
	fflush(stdout);
}

static struct counters counted_from;

void row_begin_counting(const char *says)
{
	row_begin(says);
	fixture_read_counters(&counted_from);
}

void row_end_checked(void)
{
	records_check();
	row_end();
}

void row_forget_flows(void)
{
	const struct entry another = MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 25000,
						 v4_elsewhere, 53, v4_host, 25000, .owner = TWO);

	fixture_clear_flows();
	fixture_put(&another);
}

long row_counted(size_t counter)
{
	struct counters now;
	__u64 to, from;

	fixture_read_counters(&now);
	memcpy(&to, (const char *)&now + counter, sizeof(to));
	memcpy(&from, (const char *)&counted_from + counter, sizeof(from));
	return (long)(to - from);
}

void row_expect_number(long got, long expected, const char *what)
{
	if (got != expected)
		row_fail("%s: %ld, expected %ld", what, got, expected);
}

void row_expect_verdict(int got, int expected, const char *whose)
{
	if (got != expected)
		row_fail("%s: verdict is %d, expected %d", whose, got, expected);
}

void row_expect_passed(int got, const char *whose)
{
	row_expect_verdict(got, TC_ACT_UNSPEC, whose);
}

void row_expect_dropped(int got, const char *whose)
{
	row_expect_verdict(got, TC_ACT_SHOT, whose);
}

int row_finish(void)
{
	printf("1..%d\n", number);
	return failures;
}

int row_chosen(void)
{
	return chosen;
}

static bool is_egress(enum hook hook)
{
	return hook == TO_UPLINK || hook == TO_UPLINK_RAW || hook == TO_CONTAINER;
}

static const uint8_t *mac_of(enum mac mac, enum hook hook, enum device device)
{
	static const uint8_t foreign[] = {2, 0, 0, 0, 9, 9};
	static const uint8_t broadcast[] = {255, 255, 255, 255, 255, 255};
	static const uint8_t multicast[] = {1, 0, 0x5e, 0, 0, 1};
	static const uint8_t none[MAC_SIZE] = {0};

	switch (mac) {
	case MAC_UPLINK:
		return host_mac(UPLINK);
	case MAC_BRIDGE:
		return host_mac(BRIDGE);
	case MAC_CONTAINER_TWO:
		return host_container_two_mac();
	case MAC_FOREIGN:
		return foreign;
	case MAC_BROADCAST:
		return broadcast;
	case MAC_MULTICAST:
		return multicast;
	case MAC_CONTAINER_ONE:
		return host_container_mac(VETH_ONE);
	case MAC_CONTAINER_ROUTED:
		return host_container_mac(VETH_ROUTED);
	case MAC_ROUTED:
		return host_mac(VETH_ROUTED);
	case MAC_VETH_ONE:
		return host_mac(VETH_ONE);
	case MAC_NEIGHBOUR:
		return host_neighbour_mac();
	case MAC_NONE:
		return none;
	default:
		break;
	}
	if (is_egress(hook))
		return host_neighbour_mac();
	if (hook == FROM_CONTAINER && device != VETH_ROUTED)
		return host_mac(BRIDGE);
	return host_mac(device);
}

static struct packet with_choice(const struct packet *packet)
{
	struct packet copy = *packet;

	if (copy.from_port == CHOSEN)
		copy.from_port = chosen;
	if (copy.to_port == CHOSEN)
		copy.to_port = chosen;
	return copy;
}

void row_build(struct frame *frame, const struct packet *packet, enum hook hook, enum device device)
{
	static const uint8_t sender[] = {2, 0, 0, 0, 7, 7};
	struct packet copy = with_choice(packet), quoted;
	uint8_t to_mac[MAC_SIZE], from_mac[MAC_SIZE];

	if (packet->quotes) {
		quoted = with_choice(packet->quotes);
		copy.quotes = &quoted;
	}
	memcpy(to_mac, mac_of(packet->to_mac, hook, device), MAC_SIZE);
	memcpy(from_mac, packet->from_mac ? mac_of(packet->from_mac, hook, device) : sender,
	       MAC_SIZE);
	frame_build(frame, &copy, to_mac, from_mac);
	if (hook == FROM_UPLINK_RAW || hook == TO_UPLINK_RAW)
		frame_strip_ethernet(frame);
}

static struct packet expected_packet(const struct row *row)
{
	struct packet packet = row->out.protocol ? row->out : row->in;

	if (row->new_source.address)
		packet.from = row->new_source.address;
	if (row->new_source.port)
		packet.from_port = row->new_source.port;
	if (row->new_destination.address)
		packet.to = row->new_destination.address;
	if (row->new_destination.port)
		packet.to_port = row->new_destination.port;
	return packet;
}

/* If the row expects a port of the program's choice, reads it from the packet. */
static void learn_choice(const struct row *row, const struct run *run)
{
	bool echo = row->in.protocol == IPPROTO_ICMP || row->in.protocol == IPPROTO_ICMPV6;

	if (expected_packet(row).from_port != CHOSEN || row->in.from_port == CHOSEN)
		return;
	chosen = frame_source_port(&run->got);
	if (chosen == row->in.from_port)
		row_fail("source port %d should have been changed", chosen);
	if (!echo && is_egress(row->hook) && (chosen < 20000 || chosen > 29999))
		row_fail("source port %d is not in the masquerade set", chosen);
}

static void check_verdict(const struct row *row, int got)
{
	static const int actions[] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT};

	if (got != actions[row->verdict])
		row_fail("verdict is %d, expected %d", got, actions[row->verdict]);
}

/* An IPv4 packet that is routed out gets its priority from its type of service. A packet to a
 * container loses its mark. Nothing else may change. */
static void check_context(const struct row *row)
{
	bool out = row->by == PATH_OUT && !strchr(row->in.from, ':');

	fixture_check_context(row->by == PATH_CONTAINER, out ? (int)row->priority : -1);
}

static void check_packet(struct run *run)
{
	const struct row *row = run->row;
	const struct packet expected = expected_packet(row);

	row_build(&run->expected, &expected, row->hook, row->device);
	if (row->verdict == DROPPED || frame_equal(&run->expected, &run->got))
		return;
	row_fail("the packet differs:");
}

static void format_address(char *text, size_t size, const uint8_t *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		inet_ntop(AF_INET, address + 12, text, (socklen_t)size);
	else
		inet_ntop(AF_INET6, address, text, (socklen_t)size);
}

/* A record's state as rows name it. */
static enum flow_state state_of(const struct stored_entry *entry)
{
	uint32_t state = entry->connection.state, fins = STATE_FIN_INSIDE | STATE_FIN_OUTSIDE;

	if (!(state & STATE_ASSURED))
		return STATE_NEW;
	if (entry->key.protocol != PROTOCOL_TCP)
		return STATE_ESTABLISHED;
	if ((state & (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE)) || (state & fins) == fins)
		return STATE_CLOSING;
	return state & fins ? STATE_FIN : STATE_ESTABLISHED;
}

static void describe(const char *what, const struct stored_entry *entry)
{
	char inside[INET6_ADDRSTRLEN], outside[INET6_ADDRSTRLEN], external[INET6_ADDRSTRLEN];
	const struct connection *connection = &entry->connection;
	const struct connection_key *key = &entry->key;

	format_address(inside, sizeof(inside), key->inside);
	format_address(outside, sizeof(outside), key->outside);
	format_address(external, sizeof(external), connection->external_address);
	row_fail("%s: protocol %u inside %s:%u outside %s:%u: external %s:%u peer %u kind %u"
		 " state %u (%x) begun by the %s, paths %u %u",
		 what, key->protocol, inside, key->inside_port, outside, key->outside_port,
		 external, connection->external_port, connection->peer_port, connection->kind,
		 state_of(entry), connection->state,
		 connection->begun_inside ? "inside" : "outside", connection->path[OUTWARDS],
		 connection->path[INWARDS]);
}

static uint16_t port_of(int port)
{
	return (uint16_t)(port == CHOSEN ? chosen : port);
}

static void expect_entry(struct stored_entry *stored, const struct entry *entry)
{
	static const uint32_t bits[] = {[STATE_FIN] = STATE_FIN_INSIDE,
					[STATE_CLOSING] = STATE_FIN_INSIDE | STATE_FIN_OUTSIDE};
	struct connection *connection = &stored->connection;

	memset(stored, 0, sizeof(*stored));
	records_key(entry, chosen, &stored->key);
	fixture_address(connection->external_address, entry->external);
	connection->external_port = port_of(entry->external_port);
	connection->peer_port = port_of(entry->peer_port);
	connection->kind = entry->kind;
	connection->begun_inside = entry->begun_inside;
	connection->state = entry->unconfirmed ? STATE_UNCONFIRMED : 0;
	if (entry->stage == ANSWERED)
		connection->state |= STATE_ASSURED;
	if (entry->state >= STATE_FIN)
		connection->state |= bits[entry->state];
	memcpy(connection->path, entry->path, sizeof(connection->path));
}

/* The record of a row's own packet, its addresses and ports as the packet has them before and after
 * the program. The peer is where it goes to, or where it comes from. A packet that does not leave
 * goes to a container, whose record it is; but who is masqueraded there is its sender. */
static struct entry of_this_packet(const struct row *row, const struct entry *entry)
{
	const struct packet *in = &row->in, expected = expected_packet(row), *out = &expected;
	bool leaves = row->hook == TO_UPLINK || row->hook == TO_UPLINK_RAW;
	bool arrives = row->hook == TO_CONTAINER ? entry->kind != FLOW_MASQUERADE : !leaves;
	bool echo = in->protocol == IPPROTO_ICMP || in->protocol == IPPROTO_ICMPV6;
	struct entry record = *entry;

	record.protocol = in->protocol;
	record.inside = arrives ? out->to : in->from;
	record.external = arrives ? in->to : out->from;
	record.outside = arrives ? in->from : in->to;
	if (echo) { /* its identifier is the port of the inside, and the peer has none */
		record.inside_port = arrives ? out->from_port : in->from_port;
		record.external_port = arrives ? in->from_port : out->from_port;
		return record;
	}
	record.inside_port = arrives ? out->to_port : in->from_port;
	record.external_port = arrives ? in->to_port : out->from_port;
	record.outside_port = arrives ? out->from_port : in->to_port;
	record.peer_port = arrives ? in->from_port : out->to_port;
	return record;
}

static bool is_entry(const struct entry *entry)
{
	return entry->inside || entry->of_this_packet;
}

static void expect_flow(const struct row *row, const struct entry *entry,
			struct stored_entries *expected)
{
	struct entry record = entry->of_this_packet ? of_this_packet(row, entry) : *entry;

	expect_entry(&expected->entries[expected->count++], &record);
}

static void expect_flows(const struct row *row, struct stored_entries *expected)
{
	for (int i = 0; i < ROW_ENTRIES && is_entry(&row->flows[i]); i++)
		expect_flow(row, &row->flows[i], expected);
	if (is_entry(&row->adds))
		expect_flow(row, &row->adds, expected);
}

static bool entry_matches(const struct stored_entry *one, const struct stored_entry *other)
{
	const struct connection *a = &one->connection, *b = &other->connection;

	return memcmp(&one->key, &other->key, sizeof(one->key)) == 0 &&
	       memcmp(a->external_address, b->external_address, sizeof(a->external_address)) == 0 &&
	       a->external_port == b->external_port && a->peer_port == b->peer_port &&
	       a->kind == b->kind && a->begun_inside == b->begun_inside &&
	       state_of(one) == state_of(other) && !((a->state ^ b->state) & STATE_UNCONFIRMED) &&
	       memcmp(a->path, b->path, sizeof(a->path)) == 0;
}

static bool contains(const struct stored_entries *set, const struct stored_entry *entry)
{
	for (int i = 0; i < set->count; i++)
		if (entry_matches(&set->entries[i], entry))
			return true;
	return false;
}

static void complain_of_missing(const char *what, const struct stored_entries *from,
				const struct stored_entries *in)
{
	for (int i = 0; i < from->count; i++)
		if (!contains(in, &from->entries[i]))
			describe(what, &from->entries[i]);
}

static void check_flows(const struct run *run)
{
	const struct row *row = run->row;
	struct stored_entries expected = {0}, got;

	fixture_read_flows(&got);
	records_check();
	if (!is_entry(&row->flows[0]) && !row->no_flows)
		expected = run->flows_before;
	expect_flows(row, &expected);
	if (row->flows_unchecked)
		return;
	complain_of_missing("record missing", &expected, &got);
	complain_of_missing("record not expected", &got, &expected);
}

static bool is_counted(const struct row *row, const char *name)
{
	for (int i = 0; i < ROW_COUNTERS && row->counts[i]; i++)
		if (strcmp(row->counts[i], name) == 0)
			return true;
	return false;
}

/* A row must name each drop counter that moves. If it names any counter, it must name all but those
 * of rewritten packets and of the search for a port. */
static void check_counter(const struct row *row, const char *name, uint64_t difference)
{
	bool drop = strncmp(name, "drop_", 5) == 0;
	bool usual =
		strncmp(name, "rewritten_", 10) == 0 || strncmp(name, "masquerade_tries_", 17) == 0;
	bool named = is_counted(row, name);

	if (named && difference != 1)
		row_fail("%s went up by %llu, expected 1", name, (unsigned long long)difference);
	if (!named && difference && (drop || (row->counts[0] && !usual)))
		row_fail("%s went up by %llu, expected 0", name, (unsigned long long)difference);
}

static void check_counters(const struct run *run)
{
	struct counters now;

	fixture_read_counters(&now);
#define X(name, meaning) check_counter(run->row, #name, now.name - run->counters_before.name);
	COUNTERS(X)
#undef X
}

static bool is_containers(const char *address)
{
	static const char *const addresses[] = {
		v4_container_one, v4_container_two, v4_container_quiet, v4_container_routed,
		v6_container_one, v6_container_two, v6_container_quiet, v6_container_routed,
	};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		if (strcmp(address, addresses[i]) == 0)
			return true;
	return false;
}

static enum device came_in_by(enum hook hook, enum device device, const struct packet *packet)
{
	if (!is_egress(hook))
		return device;
	if (strcmp(packet->from, v4_container_routed) == 0 ||
	    strcmp(packet->from, v6_container_routed) == 0)
		return VETH_ROUTED;
	return device == UPLINK || device == SECOND_UPLINK || is_containers(packet->from) ? BRIDGE
											  : UPLINK;
}

static int send_from(enum hook hook, enum device device, enum device came_in,
		     const struct packet *packet)
{
	struct frame frame;

	row_build(&frame, packet, hook, device);
	return fixture_run(hook, device, came_in, &frame);
}

int row_send(enum hook hook, enum device device, const struct packet *packet)
{
	return send_from(hook, device, came_in_by(hook, device, packet), packet);
}

int row_send_of_host(enum hook hook, enum device device, const struct packet *packet)
{
	return send_from(hook, device, 0, packet);
}

static void prepare(const struct row *row)
{
	if (!row->then) {
		host_close_sockets();
		fixture_reset();
	}
	if (row->socket.address)
		host_open_socket(&row->socket);
	if (row->masquerade_ports[0] || row->no_ports)
		fixture_set_masquerade_ports(row->masquerade_ports[0], row->masquerade_ports[1]);
	for (int i = 0; i < ROW_HOLDS && row->holds[i].inside; i++) {
		fixture_put(&row->holds[i]);
		if (i == 0 && row->loses_alias)
			fixture_lose_alias(&row->holds[i]);
	}
	if (row->offloads)
		fixture_set_fast_path(row->offloads, FAST_PATH_ESTABLISHED);
	if (row->given)
		row->given();
	else if (usual_given && !row->then)
		usual_given();
	if (row->after)
		row->after(row->container);
}

static int prepare_and_run(struct run *run)
{
	const struct row *row = run->row;
	enum device came_in;
	int result;

	prepare(row);
	row_build(&run->in, &row->in, row->hook, row->device);
	run->got = run->in;
	fixture_read_counters(&run->counters_before);
	fixture_read_flows(&run->flows_before);
	fixture_set_mark(row->mark);
	came_in = row->of_the_host ? 0 : came_in_by(row->hook, row->device, &row->in);
	result = fixture_run(row->hook, row->device, came_in, &run->got);
	fixture_set_mark(MARK_USUAL);
	return result;
}

/* Runs the row and, where that must be within a second, those that it continues once more before.
 */
static int run_within_a_second(struct run *run)
{
	const struct row *row = run->row, *first = row;
	int tries = 0, verdict;
	uint32_t second;

	while (row->within_a_second && first->then)
		first--;
	do {
		second = fixture_second();
		for (run->row = first; run->row < row; run->row++)
			prepare_and_run(run);
		verdict = prepare_and_run(run);
	} while (row->within_a_second && second != fixture_second() && ++tries < 10);
	return verdict;
}

static void run_row(const struct row *row)
{
	static struct run run;
	int verdict;

	run.row = row;
	row_begin(row->then ? row->then : row->says);
	verdict = run_within_a_second(&run);
	check_verdict(row, verdict);
	check_context(row);
	learn_choice(row, &run);
	check_packet(&run);
	check_flows(&run);
	check_counters(&run);
	if (row->afterwards)
		row->afterwards();
	row_end();
	if (row->verdict != DROPPED && !frame_equal(&run.expected, &run.got))
		frame_print_difference(&run.expected, &run.got);
}

static void run_over_ipv6(const struct row *rows, size_t count)
{
	struct packet(*quoted)[2] = calloc(count, sizeof(*quoted));
	struct row *others = calloc(count, sizeof(*others));

	if (!quoted || !others)
		err(1, "%s", rows->says);
	for (size_t i = 0; i < count; i++)
		row_over_ipv6(&others[i], quoted[i], &rows[i]);
	suffix = ", over IPv6";
	for (size_t i = 0; i < count; i++)
		run_row(&others[i]);
	suffix = "";
	free(others);
	free(quoted);
}

void row_run_all(const struct row *rows, size_t count, void (*given)(void))
{
	size_t length;

	usual_given = given;
	for (size_t i = 0; i < count; i += length) {
		for (length = 1; i + length < count && rows[i + length].then; length++)
			;
		for (size_t k = 0; k < length; k++)
			run_row(&rows[i + k]);
		if (rows[i].both_families)
			run_over_ipv6(&rows[i], length);
	}
}
