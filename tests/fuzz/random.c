/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* random.c - xorshift64*, seeded through splitmix64, so that close seeds differ. */
#include "random.h"

static uint64_t state = 1;

void random_seed(uint64_t seed)
{
	seed += 0x9e3779b97f4a7c15;
	seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
	seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
	state = (seed ^ seed >> 31) | 1;
}

uint32_t random_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)(state * 0x2545f4914f6cdd1d >> 32);
}

uint32_t random_below(uint32_t limit)
{
	return (uint32_t)((uint64_t)random_number() * limit >> 32);
}

bool random_one_in(uint32_t odds)
{
	return random_below(odds) == 0;
}
