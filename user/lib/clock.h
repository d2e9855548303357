/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clock.h - the time, mostly that since the machine has booted, which nobody sets. */
#pragma once

#include <stdint.h>
#include <time.h>

#define MS_PER_SECOND 1000
#define NSEC_PER_SEC 1000000000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static inline int64_t clock_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / (NSEC_PER_SEC / MS_PER_SECOND));
}

/* Seconds, as the programs in the kernel read them. */
static inline uint32_t clock_of_programs(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}
