/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table_size.h - how large the table of connections is, and the maps that go with it: for how many
 * assured connections there is room (include/abi.h).
 */
#pragma once

#include <stdint.h>

struct bpf_object;

/* Returns the size that fits the machine's memory: the nearest power of two. */
uint32_t table_default_size(void);

/* Sets the size of those maps of the object that are to be made. Returns -1 and errno. */
int table_set_size(const struct bpf_object *object, uint32_t assured);
