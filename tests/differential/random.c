/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "flow.h"

static uint64_t state;

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t mixed = state += 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

void random_begin(uint64_t seed, uint64_t step)
{
	state = seed;
	state = next() + step;
	state = next();
}

unsigned random_below(unsigned limit)
{
	return (unsigned)(next() % limit);
}

bool random_chance(unsigned percent)
{
	return random_below(100) < percent;
}
