/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* garbage_rows.c - pseudo-random bytes, the same in each run, through five programs. */
#include <stdio.h>
#include <string.h>

#include "row.h"

#define NOISE_FRAMES 4000

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

void garbage_rows(void)
{
	char says[120];

	for (int hook = 0; hook < ETHERNET_HOOKS; hook++) {
		fixture_reset();
		snprintf(says, sizeof(says), "[i13] pseudo-random bytes pass untouched, through %s",
			 names[hook]);
		row_begin(says);
		run_noise((enum hook)hook);
		records_check();
		row_end();
	}
}
