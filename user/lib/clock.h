/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.h - the time since the machine has booted, which nobody sets.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define MS_PER_SECOND 1000

static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_SECOND + now.tv_nsec / 1000000;
}

/* Seconds, as the programs in the kernel read them. */
static inline uint32_t clock_of_programs(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}
