/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* random.h - pseudo-random numbers from a seed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void random_seed(uint64_t seed);
uint32_t random_number(void);

/* 0 to limit - 1. */
uint32_t random_below(uint32_t limit);
bool random_one_in(uint32_t odds);

#define RANDOM_OF(array) ((array)[random_below(sizeof(array) / sizeof((array)[0]))])
