/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* siphash.h - SipHash-1-3: a hash that nobody can predict without the secret, and that does not
 * reveal it. */
#pragma once

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

struct sip_state {
	__u64 a, b, c, d;
};

static __always_inline __u64 rotate_left(__u64 word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static __always_inline void sip_round(struct sip_state *state)
{
	state->a += state->b;
	state->b = rotate_left(state->b, 13) ^ state->a;
	state->a = rotate_left(state->a, 32);
	state->c += state->d;
	state->d = rotate_left(state->d, 16) ^ state->c;
	state->a += state->d;
	state->d = rotate_left(state->d, 21) ^ state->a;
	state->c += state->b;
	state->b = rotate_left(state->b, 17) ^ state->c;
	state->c = rotate_left(state->c, 32);
}

static __always_inline void sip_take(struct sip_state *state, __u64 word)
{
	state->d ^= word;
	sip_round(state);
	state->a ^= word;
}

static __always_inline struct sip_state sip_begin(__u64 secret)
{
	return (struct sip_state){secret ^ 0x736f6d6570736575ULL, ~secret ^ 0x646f72616e646f6dULL,
				  secret ^ 0x6c7967656e657261ULL, ~secret ^ 0x7465646279746573ULL};
}

static __always_inline __u64 sip_end(struct sip_state *state)
{
	state->c ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(state);
	return state->a ^ state->b ^ state->c ^ state->d;
}
