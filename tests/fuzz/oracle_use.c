/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle_use.c - how a packet changes its connection: time-out, counts, states of TCP. */
#include <netinet/in.h>
#include <string.h>

#include "question.h"

#define FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)
#define AWAITED (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE)
#define BEHIND 65536
#define AHEAD (1 << 26)

/* The bit of the side that sends a packet this way; below, of the other side. */
static uint32_t sender(uint32_t bit, enum way way)
{
	return way == OUTWARDS ? bit : bit << 1;
}

static uint32_t receiver(uint32_t bit, enum way way)
{
	return sender(bit, way == OUTWARDS ? INWARDS : OUTWARDS);
}

struct touch *touch_of(struct question *question, const struct world_connection *record)
{
	struct expectation *expected = question->expected;
	struct touch *touch;

	for (int i = 0; i < expected->touch_count; i++)
		if (memcmp(&expected->touches[i].key, &record->key, sizeof(record->key)) == 0)
			return &expected->touches[i];
	touch = &expected->touches[expected->touch_count++ % TOUCHES];
	touch->key = record->key;
	touch->after = record->value;
	return touch;
}

void end_record(struct question *question, const struct world_connection *record)
{
	touch_of(question, record)->ends = true;
}

/* False: its veth is gone, or another connection has its alias. */
bool refresh(struct question *question, const struct world_connection *record)
{
	const struct world *world = question->world;
	const struct world_alias *alias;
	struct connection_key external;
	bool lost = false;

	if (record_has_owner(&record->value) && world->veth_gone[record->value.owner.slot]) {
		lost = true;
	} else if (needs_alias(&record->key, &record->value)) {
		external_key(&record->key, &record->value, &external);
		alias = record_alias(world, &external);
		lost = alias && alias->value.id != record->value.id;
	}
	if (lost)
		end_record(question, record);
	else
		touch_of(question, record)->after.last_seen = world->now;
	return !lost;
}

static bool is_close(uint32_t number, uint32_t last)
{
	return number - last + BEHIND < AHEAD + BEHIND;
}

static bool is_after(uint32_t number, uint32_t last)
{
	return (int32_t)(number - last) > 0;
}

static bool is_near(uint32_t number, uint32_t last)
{
	int32_t distance = (int32_t)(number - last);

	return distance >= -BEHIND && distance < BEHIND;
}

/* What is known about a side's next packet */
struct known {
	bool sequence;      /* `sent` */
	bool acknowledged;  /* `last` */
	bool others;        /* `end` */
	bool others_answer; /* the other side has acknowledged */
	uint32_t sent;      /* its next sequence number */
	uint32_t last;      /* its last acknowledgment */
	uint32_t end;       /* of what the other side has sent */
};

static struct known known_of(const struct connection *value, enum way way)
{
	struct known known = {
		.sequence = value->state & sender(STATE_SEQUENCE_INSIDE, way),
		.acknowledged = value->state & sender(STATE_ACKNOWLEDGED_INSIDE, way),
		.others = value->state & receiver(STATE_SEQUENCE_INSIDE, way),
		.others_answer = value->state & receiver(STATE_ACKNOWLEDGED_INSIDE, way),
		.last = value->tcp[way].acknowledged,
		.end = value->tcp[!way].sequence_end,
	};

	known.sent = known.sequence ? value->tcp[way].sequence_end : value->tcp[!way].acknowledged;
	return known;
}

/* Not before the last acknowledgment, nor after what the other side has sent, give or take 64 kB.
 */
static bool acknowledgment_fits(const struct known *known, const struct wire *wire)
{
	uint32_t first = known->last, end = known->end;

	if (!known->others)
		return !known->acknowledged || is_close(wire->tcp_acknowledgment, first);
	if (!known->acknowledged)
		first = wire->tcp_flags & SYN ? end : end - AHEAD;
	if (is_after(first, end))
		end = first;
	first -= BEHIND;
	end += BEHIND;
	return wire->tcp_acknowledgment - first <= end - first;
}

static bool is_plausible(const struct connection *value, const struct wire *wire, enum way way)
{
	struct known known = known_of(value, way);

	if (!(wire->tcp_flags & ACK))
		return !known.sequence;
	return ((!known.sequence && !known.others_answer) ||
		is_close(wire->tcp_sequence, known.sent)) &&
	       acknowledgment_fits(&known, wire);
}

static bool fin_counts(const struct connection *value, const struct wire *wire, enum way way)
{
	struct known known = known_of(value, way);

	if (!is_plausible(value, wire, way))
		return false;
	return known.sequence || known.others_answer ? is_near(wire->tcp_sequence, known.sent)
						     : !known.others;
}

/* Nobody sends these flags, or accepts them. */
static bool is_odd(const struct wire *wire)
{
	return (wire->tcp_flags & SYN && wire->tcp_flags & FIN) ||
	       !(wire->tcp_flags & (SYN | ACK | RST));
}

/* Follows the numbers of one side. */
static void track(struct connection *value, const struct wire *wire, enum way way)
{
	struct tcp_numbers *sent = &value->tcp[way];
	uint32_t end = wire->tcp_sequence + wire->tcp_length;
	uint32_t sequence = sender(STATE_SEQUENCE_INSIDE, way);
	uint32_t acknowledged = sender(STATE_ACKNOWLEDGED_INSIDE, way);

	if (wire->tcp_flags & RST || !is_plausible(value, wire, way))
		return;
	/* New sequence numbers after the first packet are data, except for FIN. */
	if (value->state & sequence && is_after(end, sent->sequence_end) &&
	    !(wire->tcp_flags & FIN))
		value->state |= STATE_DATA;
	if (!(value->state & sequence) || is_after(end, sent->sequence_end))
		sent->sequence_end = end;
	value->state |= sequence;
	if (!(wire->tcp_flags & ACK))
		return;
	if (!(value->state & acknowledged) ||
	    is_after(wire->tcp_acknowledgment, sent->acknowledged))
		sent->acknowledged = wire->tcp_acknowledgment;
	value->state |= acknowledged;
}

/* What the first packet says about its side */
void track_first(struct connection *value, const struct wire *wire)
{
	if (!is_odd(wire))
		track(value, wire, value->begun_inside ? OUTWARDS : INWARDS);
}

static void forget_side(struct connection *value, enum way way)
{
	value->state &= ~sender(STATE_SEQUENCE_INSIDE | STATE_ACKNOWLEDGED_INSIDE, way);
}

/* Accepts a number up to 64 kB behind what the other side has sent. */
static bool acknowledges(const struct connection *value, const struct wire *wire, enum way way)
{
	if (!(value->state & receiver(STATE_SEQUENCE_INSIDE, way)))
		return true;
	return wire->tcp_flags & ACK &&
	       value->tcp[!way].sequence_end - wire->tcp_acknowledgment <= BEHIND;
}

/* Whether the receiver would accept this RST. */
static bool reset_counts(const struct connection *value, const struct wire *wire, enum way way)
{
	bool acknowledged = value->state & receiver(STATE_ACKNOWLEDGED_INSIDE, way);

	if (acknowledged && wire->tcp_sequence == value->tcp[!way].acknowledged)
		return true;
	if (value->state & sender(STATE_SEQUENCE_INSIDE, way))
		return wire->tcp_sequence == value->tcp[way].sequence_end;
	return !acknowledged;
}

static void forget(struct connection *value)
{
	value->state &= ~(FINS | AWAITED | STATE_SEQUENCE_INSIDE | STATE_SEQUENCE_OUTSIDE |
			  STATE_ACKNOWLEDGED_INSIDE | STATE_ACKNOWLEDGED_OUTSIDE |
			  STATE_SYN_INSIDE | STATE_SYN_OUTSIDE);
}

/* A SYN reopens a closed connection. On a live one it has no effect until it is answered. */
static void follow_syn(struct connection *value, const struct wire *wire, enum way way)
{
	bool begins = begins_tcp(wire);

	if (record_is_closed(value->state)) {
		if (!begins && way == INWARDS) {
			if (acknowledges(value, wire, way))
				value->state &= ~sender(STATE_AWAITED_INSIDE, way);
			return;
		}
		forget(value);
		value->state |= receiver(STATE_AWAITED_INSIDE, way);
		if (begins)
			value->state |= sender(STATE_AWAITED_INSIDE, way);
	} else if (begins) {
		value->state |= sender(STATE_SYN_INSIDE, way);
	} else if (value->state & receiver(STATE_SYN_INSIDE, way)) {
		forget(value);
		value->tcp[!way].sequence_end = wire->tcp_acknowledgment;
		value->state |= receiver(STATE_SEQUENCE_INSIDE, way);
	}
}

/* Whether the packet was sent after the connection was closed. */
static bool shows_life(const struct connection *value, const struct wire *wire, enum way way)
{
	return !(value->state & sender(STATE_SEQUENCE_INSIDE, way)) ||
	       !is_after(value->tcp[way].sequence_end, wire->tcp_sequence + 1);
}

/* Whether a side that is awaited has gone on. */
static bool revives(const struct connection *value, const struct wire *wire, enum way way)
{
	return value->state & sender(STATE_AWAITED_INSIDE, way) && shows_life(value, wire, way) &&
	       is_plausible(value, wire, way) &&
	       (known_of(value, way).acknowledged || acknowledges(value, wire, way));
}

static void follow(const struct world *world, const struct connection_key *key,
		   struct connection *value, const struct wire *wire, enum way way)
{
	bool was_closed = record_is_closed(value->state), followed = true;
	uint32_t awaited = sender(STATE_AWAITED_INSIDE, way);
	uint32_t fin = sender(STATE_FIN_INSIDE, way);

	if (wire->tcp_flags & RST) {
		if (reset_counts(value, wire, way))
			value->state |= AWAITED;
	} else if (wire->tcp_flags & SYN) {
		follow_syn(value, wire, way);
	} else if ((wire->tcp_flags & FIN && !(value->state & fin) &&
		    fin_counts(value, wire, way)) ||
		   revives(value, wire, way)) {
		if (revives(value, wire, way))
			value->state &= ~awaited;
		if (wire->tcp_flags & FIN && fin_counts(value, wire, way))
			value->state |= fin;
	} else {
		followed = false;
	}
	/* A closed one does not count. */
	if (followed && record_is_closed(value->state))
		value->state &= ~STATE_COUNTED;
	else if (followed && was_closed)
		value->state |= share_is_left(world, key, value) ? STATE_COUNTED : AWAITED;
	track(value, wire, way);
}

static enum used assure(struct question *question, const struct world_connection *record,
			struct connection *value)
{
	bool untranslated = !record_has_owner(value) || value->kind == FLOW_DIRECT;

	question->expected->takes_assured = true;
	if (!share_is_left(question->world, &record->key, value) || !place_is_left(question->world))
		return untranslated ? USED : USED_REFUSED;
	value->state |= STATE_ASSURED;
	if (record->key.protocol != PROTOCOL_TCP || !record_is_closed(value->state))
		value->state |= STATE_COUNTED;
	return USED;
}

/* A refused connection ends at once; any other that is reset lives for ten seconds. */
static void reset_half_open(struct question *question, const struct world_connection *record,
			    struct connection *value, enum way way)
{
	const struct wire *wire = &question->visit->wire;
	struct known known = known_of(value, way);
	bool reply = value->begun_inside == (way == INWARDS), right;

	right = known.others_answer && wire->tcp_sequence == value->tcp[!way].acknowledged;
	if (known.sequence)
		right |= wire->tcp_sequence == known.sent;
	else if (wire->tcp_flags & ACK && known.others)
		right |= wire->tcp_acknowledgment == known.end;
	if (!right)
		return;
	if (reply && !(value->state & STATE_REPLIED) && value->kind != FLOW_DIRECT)
		end_record(question, record);
	else
		value->state |= AWAITED;
}

/* False: the packet changes nothing but the time. */
static bool follow_half_open(struct question *question, const struct world_connection *record,
			     struct connection *value, enum way way)
{
	const struct wire *wire = &question->visit->wire;
	bool reply = value->begun_inside == (way == INWARDS);
	struct known known = known_of(value, way);

	if (is_odd(wire))
		return false;
	if (wire->tcp_flags & RST) {
		reset_half_open(question, record, value, way);
		return false;
	}
	if (wire->tcp_flags & SYN) {
		if (wire->tcp_flags & ACK && known.others &&
		    !is_near(wire->tcp_acknowledgment, known.end))
			return false;
		forget_side(value, way);
		if (!(wire->tcp_flags & ACK) && value->state & AWAITED) {
			forget_side(value, !way);
			value->state &= ~(AWAITED | STATE_REPLIED);
		}
	} else if (value->state & AWAITED) {
		return false;
	} else if (value->state & STATE_REPLIED && !reply) {
		if (!acknowledges(value, wire, way))
			return false;
		if (!is_plausible(value, wire, way))
			forget_side(value, way);
	} else if (!is_plausible(value, wire, way)) {
		return false;
	}
	if (wire->tcp_flags & FIN && fin_counts(value, wire, way))
		value->state |= sender(STATE_FIN_INSIDE, way);
	track(value, wire, way);
	return true;
}

/* TCP is assured with the third packet: one, one back, and another one of the side that began. All
 * others two seconds after their first, replies alone not in an account with a sixteenth of the
 * table. */
static bool lasts(const struct world *world, const struct world_connection *record,
		  const struct connection *value, bool reply)
{
	if (!(value->state & STATE_REPLIED))
		return false;
	if (record->key.protocol == PROTOCOL_TCP)
		return !reply;
	return (int32_t)(value->last_seen - value->begun) >= 2 &&
	       !(reply && is_hog(world, &record->key, value));
}

static enum used use_half_open(struct question *question, const struct world_connection *record,
			       struct connection *value, enum way way)
{
	const struct wire *wire = &question->visit->wire;
	bool reply = value->begun_inside == (way == INWARDS);
	enum used used;

	if (record->key.protocol == PROTOCOL_TCP && !follow_half_open(question, record, value, way))
		return USED;
	if (reply)
		value->state |= STATE_REPLIED;
	if (!lasts(question->world, record, value, reply) || wire->tcp_flags & SYN)
		return USED;
	used = assure(question, record, value);
	return reply ? USED : used; /* or else it stays half-open */
}

/* What nobody would accept does not keep a closed connection alive; a half-closed one is kept by
 * the side that has not sent FIN. */
static bool keeps(const struct world_connection *record, const struct wire *wire, enum way way)
{
	uint32_t state = record->value.state;

	if (record->key.protocol != PROTOCOL_TCP || wire->tcp_flags & SYN)
		return true;
	if (record_is_closed(state))
		return is_plausible(&record->value, wire, way);
	return !(state & sender(STATE_FIN_INSIDE, way));
}

enum used use(struct question *question, const struct world_connection *record, enum way way,
	      size_t length)
{
	const struct wire *wire = &question->visit->wire;
	struct connection *value;

	if (record->value.last_seen != question->world->now && keeps(record, wire, way) &&
	    !refresh(question, record))
		return USED_ENDED;
	value = &touch_of(question, record)->after;
	if (!(value->state & STATE_ASSURED))
		return use_half_open(question, record, value, way);
	value->packets[way]++;
	value->bytes[way] += length;
	if (record->key.protocol == PROTOCOL_TCP && !is_odd(wire))
		follow(question->world, &record->key, value, wire, way);
	return USED;
}

/* Whether it is decided now if the connection skips the IP stack. If so, the packet counts at
 * ingress. */
bool is_candidate(const struct question *question, const struct world_connection *record,
		  enum way way)
{
	const struct connection *value = &record->value;

	return value->path[way] == PATH_UNDECIDED &&
	       value->next_hop[way].asked != (uint16_t)question->world->now &&
	       question->visit->wire.kind != WIRE_ERROR &&
	       !(question->visit->wire.tcp_flags & RST) &&
	       (record->key.protocol == PROTOCOL_TCP || record->key.protocol == PROTOCOL_UDP) &&
	       (value->kind == FLOW_MAPPING || value->kind == FLOW_MASQUERADE) &&
	       value->left_stack[way] && !(question->visit->wire.tcp_flags & SYN) &&
	       value->state & (STATE_ASSURED | STATE_REPLIED);
}
