/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* records.h - the tables of connections, as fixture.c uses them. */
#pragma once

#include "fixture.h"

#define PORT_SEED 0x5eed5eed5eedULL

struct portmap_bpf;

/* To be called before and after the programs are loaded */
void records_prepare(struct portmap_bpf *opened);
void records_forget_memos(void);
void records_open(void);

void records_clear(void);
/* What addresses and ports there have been */
void records_clear_bits(void);

/* CHOSEN in an entry becomes chosen. */
void records_key(const struct entry *entry, int chosen, struct connection_key *key);
