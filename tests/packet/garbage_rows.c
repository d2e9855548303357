/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* garbage_rows.c - pseudo-random bytes, the same in each run, through five programs. */
#include <stdio.h>
#include <string.h>

#include "row.h"

#define NOISE_FRAMES 4000
#define DAMAGED_FRAMES 6000

static uint32_t random_state;

/* xorshift (Marsaglia 2003): the same numbers everywhere. */
static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static const enum device devices[ETHERNET_HOOKS] = {UPLINK, UPLINK, BRIDGE, BRIDGE, VETH_ONE};
static const char *const names[ETHERNET_HOOKS] = {"from_uplink", "to_uplink", "from_bridge",
						  "to_container", "from_container"};

static bool run_on(enum hook hook, struct frame *frame, int *verdict)
{
	bool egress = hook == TO_UPLINK || hook == TO_CONTAINER;

	*verdict = fixture_run(hook, devices[hook], egress ? VETH_ROUTED : devices[hook], frame);
	return *verdict > FIXTURE_REFUSED;
}

/* Noise after an Ethernet header never makes a packet to a mapped port. */
static void make_noise(struct frame *frame)
{
	static const uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100};
	uint16_t type = types[next_random() % 4];

	memset(frame, 0, sizeof(*frame));
	frame->length = 14 + next_random() % 200;
	for (size_t i = 0; i < frame->length; i++)
		frame->bytes[i] = next_random() & 0xff;
	memcpy(frame->bytes, host_mac(UPLINK), MAC_SIZE);
	frame->bytes[12] = type >> 8;
	frame->bytes[13] = type & 0xff;
	if (next_random() % 2)
		frame->bytes[14] = type == 0x0800 ? 0x45 : 0x60;
}

/* A frame with a tag that the kernel would remove after the program may be dropped. */
static bool noise_passed(enum hook hook, const struct frame *in, int verdict)
{
	bool tagged = in->bytes[12] == 0x81, enters = hook != TO_UPLINK && hook != TO_CONTAINER;

	return verdict == -1 || (verdict == 2 && tagged && enters);
}

static void run_noise(enum hook hook)
{
	struct frame in, out;
	int verdict;

	random_state = 2463534242u;
	for (int i = 0; i < NOISE_FRAMES; i++) {
		make_noise(&in);
		out = in;
		if (!run_on(hook, &out, &verdict))
			continue;
		if (!noise_passed(hook, &in, verdict) || !frame_equal(&in, &out)) {
			/* A veth without attachment: dropping is right; see neighbour_rows. */
			row_fail("frame %d: verdict %d, changed %d", i, verdict,
				 !frame_equal(&in, &out));
			return;
		}
	}
}

static const struct packet sound[] = {
	TCP(v4_client, 40000, v4_host, 8080, SYN),
	TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "hd"),
	UDP(v4_client, 5000, v4_host, 8080),
	TCP(v4_container_one, 25000, v4_host, 9090, SYN),
	UDP(v6_container_one, 25000, v6_server, 53),
	TCP(v4_container_one, 25000, v4_server, 443, SYN, .ipv4_options = 4),
	PING4(v4_container_one, v4_server, 7),
	PING6(v6_client, v6_container_one, 7),
	ERROR4(3, 4, v4_elsewhere, v4_host, TCP(v4_host, 20777, v4_server, 443, ACK)),
	ERROR4(11, 0, v4_elsewhere, v4_host, UDP(v4_host, 20778, v4_server, 53)),
	ERROR4(3, 3, v4_container_one, v4_server, UDP(v4_server, 53, v4_container_one, 25000),
	       .ipv4_options = 8),
	ERROR6(2, 0, v6_elsewhere, v6_host,
	       TCP(v6_host, 20777, v6_server, 443, ACK, .extensions = "h")),
	ERROR6(1, 4, v6_container_one, v6_server, UDP(v6_server, 53, v6_container_one, 25000)),
};

/* The flows of the packets that the errors quote */
static const struct entry quoted_flows[] = {
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 25000, v4_server, 443, v4_host, 20777),
	MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host, 20778),
	MASQUERADED(ANSWERED, IPPROTO_TCP, v6_container_one, 25000, v6_server, 443, v6_host, 20777),
	MASQUERADED(ANSWERED, IPPROTO_UDP, v6_container_one, 25000, v6_server, 53, v6_host, 20778),
};

static void put_quoted_flows(void)
{
	for (size_t i = 0; i < sizeof(quoted_flows) / sizeof(quoted_flows[0]); i++) {
		struct entry record = quoted_flows[i];

		record.owner = ONE;
		fixture_put(&record);
	}
}

/* Over a valid header or segment, checksum included, the sum is all ones. */
static uint32_t add_words(const uint8_t *bytes, size_t size, uint32_t sum)
{
	for (size_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The error's checksum covers the quoted packet, and over IPv6 the addresses; that of the quoted
 * header covers the header. */
static bool error_changed_soundly(const struct frame *in, const struct frame *out, size_t icmp)
{
	bool ipv4 = in->bytes[12] == 0x08;
	size_t start = ipv4 ? icmp : 22, quoted = icmp + 8, size;

	if (add_words(in->bytes + start, in->length - start, 0) !=
	    add_words(out->bytes + start, in->length - start, 0))
		return false;
	if (memcmp(in->bytes + icmp, out->bytes + icmp, 2) ||
	    memcmp(in->bytes + icmp + 4, out->bytes + icmp + 4, ipv4 ? 14 : 12))
		return false;
	size = (in->bytes[quoted] & 15) * 4u;
	return !ipv4 ||
	       add_words(in->bytes + quoted, size, 0) == add_words(out->bytes + quoted, size, 0);
}

static bool is_error(const struct frame *frame, size_t transport)
{
	uint8_t type = frame->bytes[transport];

	if (frame->bytes[12] == 0x08)
		return frame->bytes[23] == IPPROTO_ICMP && (type == 3 || type == 11 || type == 12);
	return frame->bytes[20] == IPPROTO_ICMPV6 && type >= 1 && type <= 4;
}

/*
 * A checksum must be wrong by the same amount before and after: then the update is right, even if
 * the damaged packet's checksum was not. Only addresses, ports and checksums may differ.
 */
static bool changed_soundly(const struct frame *in, const struct frame *out)
{
	bool ipv4 = in->bytes[12] == 0x08;
	size_t ports = ipv4 ? 14 + (in->bytes[14] & 15) * 4u : 0;
	size_t end;

	if (in->length != out->length || memcmp(in->bytes + 6, out->bytes + 6, 8))
		return false;
	if (!ipv4)
		return memcmp(in->bytes + 14, out->bytes + 14, 8) == 0 &&
		       (!is_error(in, 54) || error_changed_soundly(in, out, 54));
	if (add_words(in->bytes + 14, ports - 14, 0) != add_words(out->bytes + 14, ports - 14, 0))
		return false;
	if (is_error(in, ports))
		return memcmp(in->bytes + 14, out->bytes + 14, 10) == 0 &&
		       error_changed_soundly(in, out, ports);
	end = in->bytes[23] == IPPROTO_TCP ? 18 : in->bytes[23] == IPPROTO_UDP ? 8 : 6;
	return memcmp(in->bytes + 14, out->bytes + 14, 10) == 0 &&
	       (in->length <= ports + end ||
		memcmp(in->bytes + ports + end, out->bytes + ports + end,
		       in->length - ports - end) == 0);
}

static void damage(struct frame *frame)
{
	unsigned int times = 1 + next_random() % 3;

	for (unsigned int i = 0; i < times; i++) {
		size_t at = 12 + next_random() % (frame->length - 12);

		frame->bytes[at] ^= (uint8_t)(1u << next_random() % 8);
	}
	if (next_random() % 4 == 0)
		frame->length -= next_random() % (frame->length - 14);
}

static void run_damaged(enum hook hook)
{
	size_t count = sizeof(sound) / sizeof(sound[0]);
	struct frame in, out;
	int verdict;

	random_state = 88675123u;
	for (int i = 0; i < DAMAGED_FRAMES; i++) {
		if (i % 200 == 0) {
			fixture_reset();
			put_quoted_flows();
		}
		row_build(&in, &sound[next_random() % count], hook, devices[hook]);
		damage(&in);
		out = in;
		if (!run_on(hook, &out, &verdict) || verdict == 2 || frame_equal(&in, &out))
			continue;
		/* 7: redirected to the uplink of the client's route */
		if ((verdict != -1 && verdict != 7) || !changed_soundly(&in, &out)) {
			row_fail("frame %d: verdict %d, changed where it should not be", i,
				 verdict);
			frame_print_difference(&in, &out);
			return;
		}
	}
}

static void run_on_all(const char *what, void (*run)(enum hook hook))
{
	char says[120];

	for (int hook = 0; hook < ETHERNET_HOOKS; hook++) {
		fixture_reset();
		snprintf(says, sizeof(says), "%s, through %s", what, names[hook]);
		row_begin(says);
		run((enum hook)hook);
		records_check();
		row_end();
	}
}

void garbage_rows(void)
{
	run_on_all("pseudo-random bytes pass untouched", run_noise);
	run_on_all("damaged packets change soundly or not at all", run_damaged);
}
