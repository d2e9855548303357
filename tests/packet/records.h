/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* records.h - between fixture.c and records.c: the tables of connections. */
#ifndef BPF_PORTMAP_TESTS_RECORDS_H
#define BPF_PORTMAP_TESTS_RECORDS_H

#include "fixture.h"

#define PORT_SEED 0x5eed5eed5eedULL

struct portmap_bpf;

/* Between opening and loading the programs, and after loading. */
void records_prepare(struct portmap_bpf *opened);
void records_open(void);

void records_clear(void);

/* CHOSEN in an entry becomes chosen. */
void records_key(const struct entry *entry, int chosen, struct connection_key *key);

#endif
